//! How far borrowing from a peer is, from what the objects say.

use jiff::Timestamp;
use kube::ResourceExt;
use liqo_api::foreign_cluster::{
    NOT_ASKED, PeeringCondition, PeeringConditionStatus as Status, PeeringConditionType as Part,
};
use liqo_api::resource_offer::OfferPhase;
use liqo_api::{ForeignCluster, ResourceOffer};

use super::{Papers, amounts, id_of};

/// The reason of conditions about a peer that cannot be reached.
const UNREACHABLE: &str = "PeerUnreachable";
/// The reason of a condition about a peer that was offered something, and where a person has to decide.
const CONSUMER_DECIDES: &str = "ConsumerDecides";

/// The steps to a contract, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Identity,
    Certificate,
    Request,
    Offer,
    Contract,
    /// What we offer unasked.
    StandingOffer,
}

impl Step {
    /// The word for it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Certificate => "certificate",
            Self::Request => "request",
            Self::Offer => "offer",
            Self::Contract => "contract",
            Self::StandingOffer => "standing offer",
        }
    }
}

impl Step {
    /// What there is not, when nothing comes of the step.
    pub(crate) fn lacking(self, peer: &str) -> String {
        match self {
            Self::Identity => format!("it is not known who {peer} is"),
            Self::Certificate => format!("there is no certificate from {peer}"),
            Self::Request => format!("there is no offer from {peer}"),
            Self::Offer => format!("the offer of {peer} is not accepted"),
            Self::Contract => format!("there is no contract with {peer}"),
            Self::StandingOffer => format!("{peer} is not lent to"),
        }
    }
}

/// What is not done yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) step: Step,
    /// What is waited for.
    pub(crate) why: String,
    /// Since when the cluster says so.
    pub(crate) since: Option<Timestamp>,
    pub(crate) kind: Kind,
}

/// Whether waiting helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It is on its way.
    Going,
    /// Somebody said no, or something is wrong; unless that changes at once, waiting is of no use.
    Refused,
    /// A person has to decide.
    Person,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phases {
    /// What is done, with a sentence about each.
    pub(crate) done: Vec<(Step, String)>,
    /// What comes next; nothing if all is done.
    pub(crate) waiting: Option<Waiting>,
}

/// A condition of the ForeignCluster.
pub(crate) fn condition(cluster: &ForeignCluster, part: Part) -> Option<&PeeringCondition> {
    let conditions = cluster.status.iter().flat_map(|status| &status.peering_conditions);
    conditions.into_iter().find(|condition| condition.type_ == part)
}

/// What a condition says, for a person.
pub(crate) fn words(condition: &PeeringCondition) -> String {
    match (condition.message.is_empty(), condition.reason.is_empty()) {
        (false, _) => condition.message.clone(),
        (true, false) => condition.reason.clone(),
        (true, true) => format!("{:?}", condition.status),
    }
}

/// Whether a condition's state needs somebody's attention.
pub(crate) const fn is_bad(status: Status) -> bool {
    matches!(status, Status::Denied | Status::EmptyDenied | Status::Error)
}

/// How far borrowing is.
pub(crate) fn outgoing(cluster: &ForeignCluster, papers: &Papers) -> Phases {
    let mut done = Vec::new();
    // That nobody wanted anything of the peer is not what is waited for once somebody does.
    let authentication =
        condition(cluster, Part::AuthenticationStatus).filter(|condition| condition.reason != NOT_ASKED);
    let outgoing = condition(cluster, Part::OutgoingPeering);
    let Some(id) = id_of(cluster).filter(|_| matches!(cluster.identity(), Some(Ok(_)))) else {
        return Phases {
            done,
            waiting: Some(waiting(Step::Identity, authentication, "the peer's name is asked for")),
        };
    };
    let name = super::name_of(cluster).unwrap_or_default();
    done.push((Step::Identity, format!("{name} (ID {id})")));

    let trusted = authentication.is_some_and(|it| it.status == Status::Established);
    // A peer that came to us by itself may lend here without our having called it.
    let pushed = papers.offered_by(id).is_some();
    if !trusted && !pushed {
        let waiting = waiting(Step::Certificate, authentication, "the peer is asked for a certificate");
        return Phases { done, waiting: Some(waiting) };
    }
    done.push((Step::Certificate, "the peer knows us".to_owned()));

    let Some(offer) = papers.offered_by(id) else {
        let established = outgoing.is_some_and(|it| it.status == Status::Established);
        if !established {
            let waiting = waiting(Step::Request, outgoing, "the peer is asked for an offer");
            return Phases { done, waiting: Some(waiting) };
        }
        done.push((Step::Request, "answered".to_owned()));
        return finish(done, outgoing, id, papers);
    };
    done.push((Step::Request, "answered".to_owned()));
    if let Some(waiting) = decision(&cluster.name_any(), offer, outgoing) {
        return Phases { done, waiting: Some(waiting) };
    }
    done.push((Step::Offer, format!("{}, accepted", amounts(&offer.spec.resource_quota.hard))));
    finish(done, outgoing, id, papers)
}

/// How far it is to offer a peer resources unasked: done when the offer lies there and somebody has to decide, or signed.
pub(crate) fn lending(cluster: &ForeignCluster) -> Phases {
    let step = Step::StandingOffer;
    let told = condition(cluster, Part::IncomingPeering);
    let trusted = cluster.peering_status(Part::AuthenticationStatus) == Status::Established;
    let peer = cluster.name_any();
    let done = match told {
        Some(it) if it.status == Status::Established || it.reason == CONSUMER_DECIDES => Some(words(it)),
        _ => None,
    };
    match done {
        Some(sentence) => Phases { done: vec![(step, sentence)], waiting: None },
        None if trusted => {
            let usual = format!("{peer} is about to be offered resources");
            Phases { done: Vec::new(), waiting: Some(waiting(step, told, &usual)) }
        }
        None => {
            let told = condition(cluster, Part::AuthenticationStatus).filter(|it| it.reason != NOT_ASKED);
            let waiting = waiting(Step::Certificate, told, "the peer is asked for a certificate");
            Phases { done: Vec::new(), waiting: Some(waiting) }
        }
    }
}

/// What is waited for as long as the offer is not accepted.
fn decision(peer: &str, offer: &ResourceOffer, outgoing: Option<&PeeringCondition>) -> Option<Waiting> {
    let phase = offer.status.as_ref().map(|status| status.phase).unwrap_or_default();
    let told = offer.status.iter().flat_map(|status| &status.conditions);
    let said = told.map(|condition| condition.message.clone()).find(|message| !message.is_empty());
    let since = outgoing.and_then(|it| it.last_transition_time.as_ref()).map(|time| time.0);
    let (why, kind) = match phase {
        OfferPhase::Accepted => return None,
        OfferPhase::Pending => (said.unwrap_or_else(|| "the offer is looked at".to_owned()), Kind::Going),
        OfferPhase::Refused => (
            format!("refused here: {}", said.unwrap_or_else(|| "no reason is told".to_owned())),
            Kind::Refused,
        ),
        OfferPhase::ManualActionRequired => {
            let reason = said.map(|said| format!(" ({said})")).unwrap_or_default();
            let why = format!(
                "somebody has to decide{reason}: liqoctl offer accept {peer}, or liqoctl offer refuse {peer}"
            );
            (why, Kind::Person)
        }
    };
    Some(Waiting { step: Step::Offer, why, since, kind })
}

fn finish(
    mut done: Vec<(Step, String)>,
    outgoing: Option<&PeeringCondition>,
    id: &str,
    papers: &Papers,
) -> Phases {
    let contract = papers.lent_by(id);
    let in_force = contract.filter(|it| it.status.as_ref().is_some_and(|status| status.phase.is_in_force()));
    match (in_force, outgoing) {
        (Some(contract), Some(condition)) if condition.status == Status::Established => {
            let until = contract.status.as_ref().and_then(|status| status.valid_until.as_ref());
            let until = until.map(|time| format!(", until {}", time.0)).unwrap_or_default();
            done.push((Step::Contract, format!("{} signed by both{until}", contract.name_any())));
            Phases { done, waiting: None }
        }
        _ => {
            Phases { done, waiting: Some(waiting(Step::Contract, outgoing, "the signatures are exchanged")) }
        }
    }
}

/// What a condition says about a step that is not done; `usual` where nothing is said yet.
fn waiting(step: Step, condition: Option<&PeeringCondition>, usual: &str) -> Waiting {
    let Some(condition) = condition else {
        return Waiting { step, why: usual.to_owned(), since: None, kind: Kind::Going };
    };
    // A peer that is out of reach may come back; everything else that is bad is somebody's to change.
    let refused = is_bad(condition.status) && condition.reason != UNREACHABLE;
    let kind = if refused { Kind::Refused } else { Kind::Going };
    // Nothing and done are no answers to what is waited for.
    let telling = !matches!(condition.status, Status::None | Status::Established | Status::Success)
        || !condition.message.is_empty() && condition.status == Status::None;
    let why = if telling { words(condition) } else { usual.to_owned() };
    Waiting { step, why, since: condition.last_transition_time.as_ref().map(|time| time.0), kind }
}

#[cfg(test)]
mod tests;
