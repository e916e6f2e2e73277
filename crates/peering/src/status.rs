//! What a ForeignCluster tells about borrowing and lending.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use liqo_api::foreign_cluster::{
    PeeringCondition, PeeringConditionStatus as Status, PeeringConditionType as Part,
};
use liqo_api::{ForeignCluster, conditions};
use liqo_kit::Key;

use crate::events::{Report, cut};
use crate::places::{Peer, Planned, View};
use crate::steps::Step;

/// How long a state on the way need not be told: most are over sooner.
const FLEETING: SignedDuration = SignedDuration::from_millis(1500);
/// The longest message; the API server refuses longer ones.
const MAX_MESSAGE: usize = 1024;

/// What should be told of one direction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) status: Status,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// When it must be told, if it is still so.
    patient_until: Option<Timestamp>,
    /// Nothing is known that would be another thing to tell than what is told.
    unchanged: bool,
}

impl Told {
    pub(crate) fn new(status: Status, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            reason,
            message: cut(&message.into(), MAX_MESSAGE).to_owned(),
            patient_until: None,
            unchanged: false,
        }
    }

    /// Neither there nor on its way.
    pub(crate) fn nothing(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(Status::None, reason, message)
    }

    /// On its way since then; told if it takes long.
    pub(crate) fn pending(reason: &'static str, message: impl Into<String>, since: Timestamp) -> Self {
        let until = since.saturating_add(FLEETING).unwrap_or(since);
        Self { patient_until: Some(until), ..Self::new(Status::Pending, reason, message) }
    }

    /// What is told already, while nothing else is known; `otherwise` if nothing is told that something could be left of.
    pub(crate) fn unchanged(cluster: &ForeignCluster, part: Part, otherwise: Self) -> Self {
        match current(cluster, part).filter(|told| told.status != Status::None) {
            Some(told) => Self { status: told.status, unchanged: true, ..otherwise },
            None => otherwise,
        }
    }

    /// The same, unless that is told in other words already: a peer out of reach is out of reach, whatever the network says
    /// of it.
    pub(crate) fn unless_told(self, cluster: &ForeignCluster, part: Part) -> Self {
        let said = |told: &&PeeringCondition| told.status == self.status && told.reason == self.reason;
        let unchanged = current(cluster, part).filter(said).is_some();
        Self { unchanged, ..self }
    }

    /// The same, unless that state is told already, whatever the reason: it only goes on.
    pub(crate) fn unless_begun(self, cluster: &ForeignCluster, part: Part) -> Self {
        let unchanged = current(cluster, part).is_some_and(|told| told.status == self.status);
        Self { unchanged, ..self }
    }

    fn condition(&self, type_: Part, cluster: &ForeignCluster) -> PeeringCondition {
        PeeringCondition {
            type_,
            status: self.status,
            last_transition_time: None,
            reason: self.reason.to_owned(),
            message: self.message.clone(),
            observed_generation: cluster.metadata.generation,
        }
    }
}

/// What the ForeignCluster tells of a direction now.
pub(crate) fn current(cluster: &ForeignCluster, part: Part) -> Option<&PeeringCondition> {
    let conditions = cluster.status.iter().flat_map(|status| &status.peering_conditions);
    conditions.into_iter().find(|condition| condition.type_ == part)
}

/// Since when a direction is in the state that it is in.
pub(crate) fn since(cluster: &ForeignCluster, part: Part) -> Option<Timestamp> {
    Some(current(cluster, part)?.last_transition_time.as_ref()?.0)
}

/// What is told of a peer whose API server we should see and do not.
pub(crate) fn out_of_reach(view: &View<'_>, peer: &Peer<'_>, part: Part) -> Told {
    let name = peer.name();
    match view.index.links.get(&peer.id).and_then(|link| link.trouble.as_ref()) {
        Some(trouble) => {
            let message = format!("the API server of {name} does not answer: {trouble}");
            Told::new(Status::Error, "PeerUnreachable", message).unless_told(peer.cluster, part)
        }
        None => {
            let since = since(peer.cluster, part).unwrap_or(view.now);
            let connecting =
                Told::pending("Connecting", format!("connecting to the API server of {name}"), since);
            Told::unchanged(peer.cluster, part, connecting)
        }
    }
}

/// Tells of both directions what is not told yet.
pub(crate) fn tell(
    view: &View<'_>,
    cluster: &ForeignCluster,
    outgoing: &Told,
    incoming: &Told,
    planned: &mut Planned,
) {
    let both = [(Part::OutgoingPeering, outgoing), (Part::IncomingPeering, incoming)];
    let untold =
        both.iter().all(|(part, told)| current(cluster, *part).is_none() && told.status == Status::None);
    if untold {
        return;
    }
    let mut told_now = Vec::new();
    let mut changed = false;
    for (part, told) in both {
        let earlier = current(cluster, part);
        told_now.extend(earlier.cloned());
        if told.unchanged {
            continue;
        }
        if let (Some(until), Some(earlier)) = (told.patient_until, earlier)
            && earlier.status == told.status
            && view.now < until
        {
            planned.wake_at(until);
            continue;
        }
        let condition = told.condition(part, cluster);
        planned.step(report(view, cluster, &condition, earlier, told.reason));
        changed |= conditions::set(&mut told_now, condition, view.now);
    }
    if changed {
        let status = serde_json::json!({ "peeringConditions": told_now });
        planned.step(Step::apply_status::<ForeignCluster>(
            Key::cluster(&cluster.name_any()),
            &status,
            "tell",
        ));
    }
}

fn report(
    view: &View<'_>,
    cluster: &ForeignCluster,
    condition: &PeeringCondition,
    earlier: Option<&PeeringCondition>,
    reason: &'static str,
) -> Option<Step> {
    let said = |it: &PeeringCondition| (it.reason.clone(), it.message.clone());
    let was_nothing = earlier.is_none_or(|earlier| earlier.status == Status::None);
    if earlier.is_some_and(|earlier| said(earlier) == said(condition))
        || (was_nothing && condition.status == Status::None)
    {
        return None;
    }
    let since = earlier.and_then(|earlier| earlier.last_transition_time.as_ref());
    let occasion = since.map_or(0, |time| time.0.as_second());
    let report = Report::new(reason, condition.message.clone(), occasion);
    let bad = matches!(condition.status, Status::Denied | Status::EmptyDenied | Status::Error);
    Some(if bad { report.warning() } else { report }.about(view, cluster))
}
