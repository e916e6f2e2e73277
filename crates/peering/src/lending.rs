//! Lending: a peer asks, or we offer by ourselves; policy decides, and what both signed holds.
//!
//! ```text
//!  ResourceRequest ─▶ policies ─▶ ResourceOffer ─▶ Contract, proposed by the peer ─▶ judge ─▶ signed
//!                        ▲                                                             │
//!                        └────────────────────── ledger ◀──────────────────────────────┘
//! ```
//!
//! All of it lies in the peer's namespace here if the peer asks, and in our namespace there if we push an offer. There, what
//! we sign is kept here first, with our signature, so that it is known to be sold whatever becomes of the link.

use kube::ResourceExt;
use liqo_api::ResourceRequest;
use liqo_api::foreign_cluster::{
    PeeringConditionStatus as Status, PeeringConditionType as Part, PeeringEnabled,
};

use liqo_core::contract::Terms;

use crate::borrowing::NOT_TOLD;
use crate::index::{Bid, Deal};
use crate::parting;
use crate::places::{Peer, Planned, Table, View};
use crate::status::{self, Told};
use crate::steps::Where;

mod close;
mod contracts;
mod evaluate;
mod judge;
mod keep;
pub(crate) mod obligations;
mod reply;

pub(crate) use close::{Why, over};
pub use evaluate::SOLD_BY;
pub(crate) use evaluate::{evaluate, ledger, pots, reservation};
pub(crate) use reply::OFFERED;

/// One peer that we lend to, or do not, at one place.
pub(crate) struct Lending<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) peer: &'a Peer<'a>,
    pub(crate) table: &'a Table<'a>,
}

/// Where we lend, and whether.
enum Seat {
    /// We have nothing to do with it.
    None,
    /// There.
    At(Where),
    /// Not any more, or not at all.
    Closed(Why),
}

/// Whether we lend to this peer unasked.
pub(crate) fn pushes(peer: &Peer<'_>) -> bool {
    let asked = peer.here.as_ref().and_then(|here| here.request_of(&peer.id)).is_some();
    peer.cluster.spec.incoming_peering_enabled == PeeringEnabled::Yes
        && !asked
        && !peer.is_going()
        && !peer.put_out
}

/// What should happen, and what is to be told of it.
pub(crate) fn plan(view: &View<'_>, peer: &Peer<'_>, planned: &mut Planned) -> Told {
    let seat = seat(view, peer);
    let mut told = None;
    for table in peer.tables() {
        let lending = Lending { view, peer, table };
        let here = match &seat {
            Seat::At(at) if *at == table.at => Some(lending.keep(planned)),
            Seat::Closed(why) => lending.close(why, planned),
            Seat::At(_) => lending.close(&Why::elsewhere(), planned),
            Seat::None => lending.close(&Why::not_asked(), planned),
        };
        lending.drop_orphans(planned);
        told = here.or(told);
    }
    if peer.there.is_none() {
        forget_copies(view, peer, &seat, planned);
    }
    let told = told.or_else(|| out_of_reach(view, peer, &seat, planned));
    told.unwrap_or_else(|| unknown_place(view, peer, &seat))
}

fn seat(view: &View<'_>, peer: &Peer<'_>) -> Seat {
    let request = peer.here.as_ref().and_then(|here| here.request_of(&peer.id));
    let asked = request.is_some();
    if peer.is_going() {
        return Seat::Closed(Why::removed());
    }
    let allowed = match peer.cluster.spec.incoming_peering_enabled {
        PeeringEnabled::Yes => true,
        PeeringEnabled::No => false,
        PeeringEnabled::Auto => view.settings.incoming,
    };
    match request {
        Some(request) if request.spec.withdrawal_timestamp.is_some() => Seat::Closed(Why::withdrawn(request)),
        _ if peer.put_out && (asked || peer.cluster.spec.incoming_peering_enabled == PeeringEnabled::Yes) => {
            Seat::Closed(Why::put_out())
        }
        _ if !allowed && asked => Seat::Closed(Why::disabled(peer)),
        Some(_) => Seat::At(Where::Here),
        None if pushes(peer) => Seat::At(Where::There),
        None => Seat::None,
    }
}

/// What is told while something may lie at a peer that is not lent to any more and cannot be reached.
fn out_of_reach(view: &View<'_>, peer: &Peer<'_>, seat: &Seat, planned: &mut Planned) -> Option<Told> {
    peer.access?;
    let told = status::current(peer.cluster, Part::IncomingPeering)?;
    let over = told.status == Status::None && told.reason != NOT_TOLD;
    if over || peer.there.is_some() || matches!(seat, Seat::At(_)) {
        return None;
    }
    let since = match told.status {
        Status::Disconnecting => told.last_transition_time.as_ref().map(|time| time.0),
        _ => None,
    };
    let (at, name) = (parting::deadline(view, peer, since.unwrap_or(view.now)), peer.name());
    // The time for telling it was over when that was noted, and does not begin anew.
    if told.status != Status::None && view.now < at {
        planned.wake_at(at);
        let message = format!("{name} cannot be reached to be told that nothing is lent any more");
        let told = Told::new(Status::Disconnecting, "PeerUnreachable", message);
        return Some(told.unless_begun(peer.cluster, Part::IncomingPeering));
    }
    let message =
        format!("{name} could not be told that nothing is lent any more; it will be when it can be reached");
    Some(Told::nothing(NOT_TOLD, message))
}

/// What is told while nothing is known of the place.
fn unknown_place(view: &View<'_>, peer: &Peer<'_>, seat: &Seat) -> Told {
    match seat {
        Seat::At(Where::There) if peer.access.is_none() => {
            let message =
                format!("{} is offered resources as soon as we have an identity there", peer.name());
            Told::pending("WaitingForIdentity", message, view.now)
        }
        Seat::At(_) => {
            // What was agreed on holds, whether or not the other side can be asked.
            let in_force = peer.copies.contracts(view.me.id().as_str(), peer.id.as_str());
            let mut in_force =
                in_force.filter(|copy| copy.is_live() && !crate::copies::is_past(copy, view.now));
            match in_force.find_map(Deal::agreed_terms) {
                Some(terms) => established(peer, terms),
                None => status::out_of_reach(view, peer, Part::IncomingPeering),
            }
        }
        Seat::Closed(why) => why.told(peer),
        Seat::None => not_asked(),
    }
}

/// What is told while a contract is in force.
fn established(peer: &Peer<'_>, terms: &Terms) -> Told {
    let message = format!("{} may use {} by contract {}", peer.name(), terms.resources, terms.contract);
    Told::new(Status::Established, "ContractInForce", message)
}

fn not_asked() -> Told {
    Told::nothing("NotAsked", "it has not asked for resources")
}

/// Forgets what we keep of contracts at a peer that was not reached in time.
fn forget_copies(view: &View<'_>, peer: &Peer<'_>, seat: &Seat, planned: &mut Planned) {
    if matches!(seat, Seat::At(Where::There)) {
        return;
    }
    let (me, them) = (view.me.id().clone(), peer.id.clone());
    for copy in peer.copies.contracts(me.as_str(), them.as_str()) {
        crate::parting::forget(view, peer, Part::IncomingPeering, copy, planned);
    }
}

impl<'a> Lending<'a> {
    fn is_here(&self) -> bool {
        self.table.at == Where::Here
    }

    /// What the peer asks for.
    fn request(&self) -> Option<&'a ResourceRequest> {
        self.is_here().then(|| self.table.request_of(&self.peer.id)).flatten()
    }

    /// What we offer.
    fn offer(&self) -> Option<&'a Bid> {
        self.table.offer_of(self.view.me.id())
    }

    /// The contracts with this peer, the oldest first.
    fn deals(&self) -> Vec<&'a Deal> {
        let (me, them) = (self.view.me.id().as_str(), self.peer.id.as_str());
        self.table.contracts(me, them).collect()
    }

    /// Removes our copies of contracts that the peer has removed: nothing is sold by them any more.
    fn drop_orphans(&self, planned: &mut Planned) {
        if self.is_here() {
            return;
        }
        let (me, them) = (self.view.me.id().as_str(), self.peer.id.as_str());
        for copy in self.peer.copies.contracts(me, them) {
            if self.table.contract(&copy.name_any()).is_none() {
                crate::copies::remove(self.view, copy, planned);
            }
        }
    }

    /// Whether what was promised to be kept on the ForeignCluster is: before anything lies at a peer.
    fn is_ready(&self) -> bool {
        let told = status::current(self.peer.cluster, Part::IncomingPeering);
        self.is_here() || (self.peer.has_finalizer() && told.is_some_and(|told| told.status != Status::None))
    }

    fn occasion(&self, deal: &Deal) -> String {
        format!("{} {}", deal.name_any(), deal.metadata.generation.unwrap_or_default())
    }
}
