//! Parting: what the ForeignCluster must say before anything lies anywhere, and when it may go.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use liqo_api::foreign_cluster::{
    DiscoveryType, PeeringConditionStatus as Status, PeeringConditionType as Part,
};
use liqo_api::{ForeignCluster, annotations, finalizers, labels};
use liqo_core::names::ClusterId;

use crate::borrowing::{self, NOT_TOLD, Wish};
use crate::copies;
use crate::index::Deal;
use crate::lending;
use crate::places::{Peer, Planned, View};
use crate::status::{self, Told};
use crate::steps::{Step, Where};

/// How long putting in order what we keep ourselves may take, once nobody is waited for.
const TIDYING: SignedDuration = SignedDuration::from_secs(4);

/// Until when the other side is waited for, when parting began then.
pub(crate) fn deadline(view: &View<'_>, peer: &Peer<'_>, since: Timestamp) -> Timestamp {
    // Nobody waits longer for one part of it than for the whole.
    let since = match &peer.cluster.metadata.deletion_timestamp {
        Some(deleted) => since.min(deleted.0),
        None => since,
    };
    if peer.is_forced() {
        return since;
    }
    let usual = since.saturating_add(view.settings.parting).unwrap_or(since);
    // Who may not look at its place any more has none: the peer has parted already, and there is nobody to tell.
    let forbidden = peer.forbidden.filter(|_| peer.is_going());
    forbidden
        .and_then(|forbidden| forbidden.checked_add(view.settings.forbidden).ok())
        .map_or(usual, |at| usual.min(at))
}

/// Removes what we keep of a contract at a peer that cannot be reached, once the time for that is over.
pub(crate) fn forget(view: &View<'_>, peer: &Peer<'_>, part: Part, copy: &Deal, planned: &mut Planned) {
    let told = status::current(peer.cluster, part);
    let ending = told.is_none_or(|told| matches!(told.status, Status::Disconnecting | Status::None));
    let since =
        told.and_then(|told| told.last_transition_time.as_ref()).filter(|_| ending).map(|time| time.0);
    let since = if told.is_none() { peer.deleted_at() } else { since };
    let at = deadline(view, peer, since.unwrap_or(view.now));
    if view.now < at {
        planned.wake_at(at);
    } else {
        copies::remove(view, copy, planned);
    }
}

/// What we look at our place at a peer for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Purpose {
    borrow: bool,
    lend: bool,
}

impl Purpose {
    /// Whether something is not wanted any more that was. Then all that lies there is looked at anew: what we wrote last
    /// may not have been told yet, and would stay behind.
    pub(crate) fn ends(self, now: Self) -> bool {
        (self.borrow && !now.borrow) || (self.lend && !now.lend)
    }
}

/// What we must see our place at this peer for; nothing if we need not.
pub(crate) fn needs_link(view: &View<'_>, id: &ClusterId) -> Option<Purpose> {
    let peer = Peer::read(view.index, id)?;
    peer.access?;
    let may_lie_there = |part| {
        status::current(peer.cluster, part)
            .is_some_and(|told| told.status != Status::None || told.reason == NOT_TOLD)
    };
    let lent_here = peer.here.as_ref().and_then(|here| here.request_of(id)).is_some();
    let purpose = Purpose { borrow: borrowing::wish(view, &peer) == Wish::Yes, lend: lending::pushes(&peer) };
    let needed = purpose != Purpose::default()
        || may_lie_there(Part::OutgoingPeering)
        || (may_lie_there(Part::IncomingPeering) && !lent_here && peer.has_finalizer());
    needed.then_some(purpose)
}

/// What should happen for one peer.
pub(crate) fn plan(view: &View<'_>, id: &ClusterId) -> Planned {
    let mut planned = Planned::default();
    let Some(peer) = Peer::read(view.index, id) else { return planned };
    if let Some(note) = note_leaving(&peer).filter(|_| !peer.is_going()) {
        planned.step(note);
        return planned;
    }
    let outgoing = borrowing::plan(view, &peer, &mut planned);
    let incoming = lending::plan(view, &peer, &mut planned);
    if peer.is_going() {
        go(view, &peer, (&outgoing, &incoming), &mut planned);
        return planned;
    }
    let wanted =
        [&outgoing, &incoming].iter().any(|told| told.status != Status::None || told.reason == NOT_TOLD);
    // It stays until it is told that nothing lies anywhere: a restart in between would look for it again.
    let holds = wanted || (peer.has_finalizer() && !is_told_over(&peer));
    if holds != peer.has_finalizer() {
        planned.step(finalizer(&peer, holds));
    }
    forget_leaver(&peer, &mut planned);
    status::tell(view, peer.cluster, &outgoing, &incoming, &mut planned);
    planned
}

/// Whether the ForeignCluster says that nothing lies anywhere.
fn is_told_over(peer: &Peer<'_>) -> bool {
    let over = |part| {
        status::current(peer.cluster, part)
            .is_none_or(|told| told.status == Status::None && told.reason != NOT_TOLD)
    };
    over(Part::OutgoingPeering) && over(Part::IncomingPeering)
}

/// The ForeignCluster goes: once all is over, or nobody waits any longer, it may.
fn go(view: &View<'_>, peer: &Peer<'_>, told: (&Told, &Told), planned: &mut Planned) {
    if !peer.has_finalizer() {
        // Nothing lies anywhere, or nobody waited for it.
        planned.steps.clear();
        return;
    }
    let deleted = peer.deleted_at().unwrap_or(view.now);
    let at = deadline(view, peer, deleted);
    planned.wake_at(at);
    let open = |told: &Told| told.status == Status::Disconnecting;
    let writes_left = planned.steps.iter().any(|step| step.what != "report");
    let over = !open(told.0) && !writes_left && closed(view, peer);
    // The other side is not waited for any longer; what we keep ourselves is put in order all the same.
    let untidy = planned.steps.iter().any(|step| step.what != "report" && step.at == Where::Here)
        || !copies_are_gone(view, peer);
    let end = at.saturating_add(TIDYING).unwrap_or(at);
    if over || (view.now >= at && !untidy) || view.now >= end {
        planned.step(finalizer(peer, false));
        return;
    }
    planned.wake_at(end);
    status::tell(view, peer.cluster, told.0, told.1, planned);
}

/// Whether what we lent is over, as far as the peer can see it.
fn closed(view: &View<'_>, peer: &Peer<'_>) -> bool {
    let (me, them) = (view.me.id().as_str(), peer.id.as_str());
    let lent = peer.tables().all(|table| table.contracts(me, them).all(Deal::is_over));
    lent && copies_are_gone(view, peer)
}

/// Whether nothing is left of what we kept about contracts. It goes once it is logged, which is lost with it otherwise.
fn copies_are_gone(view: &View<'_>, peer: &Peer<'_>) -> bool {
    let (me, them) = (view.me.id().as_str(), peer.id.as_str());
    peer.copies.contracts(me, them).chain(peer.copies.contracts(them, me)).next().is_none()
}

fn finalizer(peer: &Peer<'_>, there: bool) -> Option<Step> {
    let mut wanted = peer.cluster.clone();
    let finalizers = wanted.finalizers_mut();
    finalizers.retain(|finalizer| finalizer != finalizers::CONTRACTS);
    if there {
        finalizers.push(finalizers::CONTRACTS.to_owned());
    }
    let what = if there { "add finalizer" } else { "remove finalizer" };
    Step::bring(Where::Here, peer.cluster, &wanted, what)
}

/// A peer that came by itself and goes for good is noted to do so; nothing if that is noted, or it does not.
///
/// This comes before everything else: once the peer is answered, its request goes, and with it what it said.
fn note_leaving(peer: &Peer<'_>) -> Option<Step> {
    let request = peer.here.as_ref().and_then(|here| here.request_of(&peer.id))?;
    let came_by_itself = peer.cluster.discovery_type() == DiscoveryType::IncomingPeering;
    let leaving = request.annotations().get(annotations::LEAVING).map(String::as_str) == Some(labels::TRUE)
        && request.spec.withdrawal_timestamp.is_some();
    let mut wanted: ForeignCluster = peer.cluster.clone();
    if leaving && came_by_itself {
        wanted.annotations_mut().insert(annotations::WITHDRAWN.to_owned(), labels::TRUE.to_owned());
    } else if peer.is(annotations::WITHDRAWN) {
        // It came back.
        wanted.annotations_mut().remove(annotations::WITHDRAWN);
    }
    Step::bring(Where::Here, peer.cluster, &wanted, "note leaving")
}

/// A peer that came by itself and went for good is forgotten, once its request is gone.
fn forget_leaver(peer: &Peer<'_>, planned: &mut Planned) {
    let asks = peer.here.as_ref().and_then(|here| here.request_of(&peer.id)).is_some();
    let came_by_itself = peer.cluster.discovery_type() == DiscoveryType::IncomingPeering;
    let settled = peer.here.as_ref().is_none_or(|here| here.contracts_of_anybody() == 0);
    if came_by_itself && peer.is(annotations::WITHDRAWN) && !asks && settled {
        planned.step(Step::delete(Where::Here, peer.cluster, "delete foreign cluster"));
    }
}
