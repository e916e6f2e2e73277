//! Lending no more, or not at all: contracts end, the offer goes, and the peer is told why.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use liqo_api::contract::{ContractPhase, ContractStatus};
use liqo_api::foreign_cluster::PeeringConditionStatus as Status;
use liqo_api::{ResourceRequest, conditions};

use super::Lending;
use crate::copies;
use crate::events::Report;
use crate::index::Deal;
use crate::places::{Peer, Planned};
use crate::standing::{condition, whole_second};
use crate::status::Told;
use crate::steps::Step;

/// Condition of a contract that is over: why.
const ENDED: &str = "Ended";

/// Why we do not lend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why {
    pub(crate) reason: &'static str,
    /// For the other side.
    pub(crate) message: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Nobody wants anything.
    Nothing,
    /// The peer goes, or we let it go.
    Parting,
    /// The peer wants something and does not get it.
    Refused,
    /// The peer is put out, whatever it wants.
    Out,
    /// The peer wants something, and somebody has to say yes.
    Waiting,
}

impl Why {
    fn new(reason: &'static str, message: impl Into<String>, kind: Kind) -> Self {
        Self { reason, message: message.into(), kind }
    }

    pub(super) fn not_asked() -> Self {
        Self::new("NotAsked", "the consumer does not ask for resources any more", Kind::Nothing)
    }

    pub(super) fn elsewhere() -> Self {
        Self::new(
            "Elsewhere",
            "the resources are lent over the other channel between the clusters",
            Kind::Nothing,
        )
    }

    pub(super) fn removed() -> Self {
        Self::new("PeerRemoved", "the provider has ended the peering", Kind::Parting)
    }

    pub(super) fn put_out() -> Self {
        let message =
            "the provider has put this cluster out: what it came in by was revoked, and it needs a new token";
        Self::new("PeerPutOut", message, Kind::Out)
    }

    pub(super) fn withdrawn(request: &ResourceRequest) -> Self {
        let since = request.spec.withdrawal_timestamp.as_ref().map(|time| time.0);
        let since = since.map_or_else(String::new, |since| format!(" at {since}"));
        Self::new("Withdrawn", format!("the consumer withdrew its request{since}"), Kind::Parting)
    }

    pub(super) fn disabled(peer: &Peer<'_>) -> Self {
        use liqo_api::foreign_cluster::PeeringEnabled;
        let message = match peer.cluster.spec.incoming_peering_enabled {
            PeeringEnabled::No => "the provider does not lend to this cluster",
            _ => "the provider does not lend to clusters that it was not told to lend to",
        };
        Self::new("IncomingDisabled", message, Kind::Refused)
    }

    pub(super) fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(reason, message, Kind::Refused)
    }

    pub(super) fn waiting(reason: &'static str, message: impl Into<String>) -> Self {
        Self::new(reason, message, Kind::Waiting)
    }

    /// What our side is told.
    pub(super) fn told(&self, peer: &Peer<'_>) -> Told {
        match self.kind {
            Kind::Nothing => super::not_asked(),
            Kind::Parting => Told::new(Status::Disconnecting, self.reason, self.message.clone()),
            Kind::Refused => {
                let message = format!("{} asks for resources and is refused: {}", peer.name(), self.message);
                Told::new(Status::Denied, self.reason, message)
            }
            Kind::Out => {
                let message = format!("{} is lent nothing: {}", peer.name(), self.message);
                Told::new(Status::Denied, self.reason, message)
            }
            Kind::Waiting => {
                let message = format!("{} asks for resources and waits: {}", peer.name(), self.message);
                Told::new(Status::Pending, self.reason, message)
            }
        }
    }
}

impl Lending<'_> {
    /// Ends what there is; `None` if there is nothing, and nobody asks.
    pub(super) fn close(&self, why: &Why, planned: &mut Planned) -> Option<Told> {
        let mut busy = false;
        // The offer first: a consumer whose contract is over takes up what is still offered.
        if let Some(offer) = self.offer() {
            busy |= self.is_here() || !offer.is_withdrawn();
            self.take_back(planned);
        }
        let offered = self.offer().is_some_and(|offer| !offer.is_withdrawn());
        for deal in self.deals() {
            busy |= !deal.is_over();
            if !offered || deal.spec.ended.is_some() {
                self.end(deal, why, planned);
            }
        }
        self.forget_all(planned);
        // While we look there: what we keep of contracts would outlive them by the time that is given to parting.
        busy |= !self.is_here() && !self.has_forgotten();
        if let Some(request) = self.request() {
            let reply = super::reply::refused(request, why, self.view.now);
            planned.step(Step::bring_status(self.table.at, request, &reply, "answer"));
            return Some(why.told(self.peer));
        }
        busy.then(|| Told::new(Status::Disconnecting, why.reason, why.message.clone()))
    }

    /// Takes the offer back: who owns the place removes it.
    fn take_back(&self, planned: &mut Planned) {
        let Some(offer) = self.offer() else { return };
        if self.is_here() {
            planned.step(Step::delete(self.table.at, &**offer, "delete offer"));
        } else if !offer.is_withdrawn() {
            let mut wanted = (**offer).clone();
            wanted.spec.withdrawal_timestamp = Some(Time(whole_second(self.view.now)));
            planned.step(Step::bring(self.table.at, &**offer, &wanted, "withdraw offer"));
        }
    }

    /// Ends a contract, if it is not over.
    pub(super) fn end(&self, deal: &Deal, why: &Why, planned: &mut Planned) {
        if deal.is_over() {
            return;
        }
        let (reason, message) = match &deal.spec.ended {
            Some(ended) => ("EndedByConsumer", by_consumer(&ended.reason, &ended.message)),
            None => (why.reason, why.message.clone()),
        };
        self.finish(deal, ContractPhase::Ended, reason, &message, planned);
    }

    /// Says that a contract is over.
    pub(super) fn finish(
        &self,
        deal: &Deal,
        phase: ContractPhase,
        reason: &'static str,
        message: &str,
        planned: &mut Planned,
    ) {
        let wanted = over(deal, phase, reason, message, self.view.now);
        planned.step(Step::bring_status(self.table.at, &**deal, &wanted, "end contract"));
        let report =
            Report::new("ContractEnded", format!("contract {}: {message}", deal.name_any()), phase as u8);
        planned.step(report.about(self.view, self.peer.cluster));
    }

    /// Forgets contracts that are over when nobody asks any more.
    fn forget_all(&self, planned: &mut Planned) {
        if self.request().is_some() {
            return;
        }
        for deal in self.deals().into_iter().filter(|deal| deal.is_over()) {
            if self.is_here() {
                self.forget(deal, planned);
            } else {
                copies::part(self.view, self.peer, deal, planned);
            }
        }
    }

    /// Whether we keep nothing of contracts at the peer any more.
    fn has_forgotten(&self) -> bool {
        let (me, them) = (self.view.me.id().as_str(), self.peer.id.as_str());
        self.peer.copies.contracts(me, them).next().is_none()
    }

    /// Removes a contract that is over, once it is in the log.
    pub(super) fn forget(&self, deal: &Deal, planned: &mut Planned) {
        if self.is_here() && copies::is_logged(self.view, deal) {
            planned.step(Step::delete(self.table.at, &**deal, "delete contract"));
        }
    }
}

fn by_consumer(reason: &str, message: &str) -> String {
    let text = if message.is_empty() { reason } else { message };
    format!("the consumer ended it: {text}")
}

/// The contract when it is over.
pub(crate) fn over(
    deal: &Deal,
    phase: ContractPhase,
    reason: &'static str,
    message: &str,
    now: Timestamp,
) -> liqo_api::Contract {
    let mut wanted = (**deal).clone();
    let status = wanted.status.get_or_insert_with(ContractStatus::default);
    status.phase = phase;
    let ended = condition(ENDED, true, reason, message, deal.metadata.generation);
    conditions::set(&mut status.conditions, ended, now);
    wanted
}
