//! Lending: the offer follows what the policies say, and what the peer proposes is answered.

use kube::api::ObjectMeta;
use liqo_api::foreign_cluster::PeeringConditionStatus as Status;
use liqo_api::resource_offer::OfferPhase;
use liqo_api::{ResourceOffer, ResourceOfferSpec, ResourceRequest, labels};
use liqo_core::Resources;
use liqo_core::policy::{Cause, Offer, Verdict, dropped};
use liqo_core::threshold::Difference;

use super::{Lending, Why, evaluate};
use crate::events::{Report, labels_of};
use crate::index::{Bid, Deal, created};
use crate::offer::{self, Making, Plan};
use crate::places::Planned;
use crate::status::Told;
use crate::steps::{Paced, Step};

/// Condition of an offer: whether the consumer takes it, and why.
pub(crate) use crate::borrowing::ACCEPTED;

/// How the offer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It says what it should.
    Right,
    /// It will say something else as soon as it may.
    Changing,
    /// There is less than it says; that is not told before it is certain.
    Held,
}

impl Lending<'_> {
    /// Offers, signs, and tells how far that is.
    pub(super) fn keep(&self, planned: &mut Planned) -> Told {
        let wants = self.request().map_or_else(Resources::new, wanted);
        let verdict = evaluate(self.view, self.peer, &wants);
        let in_force = self.in_force();
        match &*verdict {
            Verdict::Offer(offer) => self.lend(offer, in_force, planned),
            Verdict::Refuse(refusal) => match (refusal.cause, in_force) {
                // What is gone of what was promised is a shortage, no refusal; unless the policy took it back.
                (Cause::NothingLeft, Some(deal)) if !self.is_taken_back(deal) => {
                    self.settle(None, planned);
                    self.established(deal)
                }
                _ => self.refuse(&Why::refused(word(refusal.cause), refusal.message.clone()), planned),
            },
            Verdict::NeedsApproval(message) => {
                let message =
                    format!("{message}; it is given by the annotation sharing.liqo.io/approved=true");
                self.refuse(&Why::waiting("NeedsApproval", message), planned)
            }
        }
    }

    fn refuse(&self, why: &Why, planned: &mut Planned) -> Told {
        self.close(why, planned).unwrap_or_else(|| why.told(self.peer))
    }

    fn lend(&self, offer: &Offer, in_force: Option<&Deal>, planned: &mut Planned) -> Told {
        let name = self.peer.name();
        if !self.is_ready() {
            return Told::new(
                Status::Pending,
                "Offering",
                format!("{name} is about to be offered resources"),
            );
        }
        let standing = self.offer_as_it_should_be(offer, in_force, planned);
        let Some(bid) = self.offer() else {
            return Told::pending(
                "Offering",
                format!("{name} is being offered {}", offer.resources),
                self.view.now,
            );
        };
        // A request is answered when the offer says what it should, so that the peer knows that it need not wait.
        if let Some(request) = self.request().filter(|_| standing != Standing::Changing) {
            let message = offer.policy.as_ref().map_or_else(
                || "the cluster shares with everybody".to_owned(),
                |policy| format!("policy {policy} applies"),
            );
            let reply = super::reply::offered(request, &message, self.view.now);
            planned.step(Step::bring_status(self.table.at, request, &reply, "answer"));
        }
        self.settle(Some((bid, offer, standing)), planned);
        match in_force {
            Some(deal) => self.established(deal),
            None => self.waiting(bid),
        }
    }

    /// Writes the offer if it is missing or different enough, at the pace that is allowed.
    fn offer_as_it_should_be(
        &self,
        offer: &Offer,
        in_force: Option<&Deal>,
        planned: &mut Planned,
    ) -> Standing {
        let (settings, now) = (self.view.settings, self.view.now);
        let goods = self.view.index.stock.goods(&offer.extras);
        let provider = self.view.me.id().as_str();
        let new = Making { provider, offer, goods: &goods, labels: &settings.labels, now }.spec();
        let bid = self.offer();
        let validity = offer.conditions.offer_validity;
        let written = bid.map(|bid| &bid.spec);
        let (spec, differences) = match offer::plan(written, &new, validity, settings.threshold, now) {
            Plan::Keep(until) => {
                planned.wake_at(until);
                return Standing::Right;
            }
            Plan::Write { spec, differences } => (spec, differences),
        };
        let Some(bid) = bid else {
            self.create_offer(*spec, planned);
            return Standing::Changing;
        };
        if in_force.is_some_and(|deal| self.is_short(deal, &differences)) {
            return Standing::Held;
        }
        let version = bid.metadata.resource_version.clone().unwrap_or_default();
        let paces = &self.view.index.memory.offers;
        let allowed = paces.allowed_at(&self.peer.id, &version, settings.offers, now);
        if allowed > now {
            planned.wake_at(allowed);
            return Standing::Changing;
        }
        // Who only stands for longer is still the same offer.
        let same = offer::digest(&spec).ok() == bid.digest();
        let mut wanted = (**bid).clone();
        wanted.spec = *spec;
        let step = Step::bring(self.table.at, &**bid, &wanted, "change offer");
        planned.step(step.map(|step| step.paced(Paced::Offer, &version)));
        if same {
            return Standing::Right;
        }
        let changes: Vec<String> = differences.iter().map(ToString::to_string).collect();
        let message = format!("the offer to {} changes: {}", self.peer.name(), changes.join(", "));
        planned.step(Report::new("OfferChanged", message, version).about(self.view, self.peer.cluster));
        Standing::Changing
    }

    fn create_offer(&self, spec: ResourceOfferSpec, planned: &mut Planned) {
        let amounts: Vec<String> =
            spec.resource_quota.hard.iter().map(|(name, amount)| format!("{name}={}", amount.0)).collect();
        let message = format!("{} is offered {}", self.peer.name(), amounts.join(", "));
        let occasion = self.request().map_or_else(String::new, |request| created(request).to_string());
        planned.step(Step::create(self.table.at, &self.new_offer(spec), "create offer"));
        planned.step(Report::new("ResourcesOffered", message, occasion).about(self.view, self.peer.cluster));
    }

    fn new_offer(&self, spec: ResourceOfferSpec) -> ResourceOffer {
        let ours = self.view.me.names();
        // Two clusters of the same name may offer to each other at one place.
        let taken = self.table.offer_name_is_taken(ours.name.as_str(), self.view.me.id());
        let name = if taken { ours.unique_name() } else { ours.name.to_string() };
        let mut all = labels_of();
        // Whose it is, for the one who reads it: there, that is us.
        let whose = if self.is_here() { &self.peer.id } else { self.view.me.id() };
        all.insert(labels::CLUSTER_ID.to_owned(), whose.to_string());
        let metadata = ObjectMeta {
            name: Some(name),
            namespace: Some(self.table.namespace.to_owned()),
            labels: Some(all),
            ..ObjectMeta::default()
        };
        ResourceOffer { metadata, spec, status: None }
    }

    /// Whether capacity is missing for what was agreed, and that is not yet certain.
    fn is_short(&self, deal: &Deal, differences: &[Difference]) -> bool {
        let Some(doubt) = deal.id().and_then(|id| self.view.index.memory.doubts.get(&id)) else {
            return false;
        };
        let less = differences
            .iter()
            .any(|difference| matches!(difference, Difference::Amount { old, new, .. } if new < old));
        less && !doubt.missing.is_empty() && !doubt.backing.raised && !self.has_dropped_pool(deal)
    }

    /// Whether the contract is about pools, and no policy has any of them any more.
    fn is_taken_back(&self, deal: &Deal) -> bool {
        deal.agreed_terms().is_some_and(|terms| dropped(self.view.index.stock.policies(), terms.pools.keys()))
    }

    /// Whether the contract is about a pool that no policy has any more: who removed it knows, and there is nothing to wait
    /// for.
    fn has_dropped_pool(&self, deal: &Deal) -> bool {
        let mut pools = deal.agreed_terms().into_iter().flat_map(|terms| terms.pools.keys());
        pools.any(|pool| dropped(self.view.index.stock.policies(), [pool]))
    }

    /// What is told while the consumer has not signed.
    fn waiting(&self, bid: &Bid) -> Told {
        let name = self.peer.name();
        let status = bid.status.as_ref();
        let said = status.and_then(|status| status.conditions.iter().find(|it| it.type_ == ACCEPTED));
        let why = said.map_or_else(String::new, |said| format!(": {}", said.message));
        match status.map_or(OfferPhase::Pending, |status| status.phase) {
            OfferPhase::Refused => {
                Told::new(Status::Denied, "OfferRefused", format!("{name} refused the offer{why}"))
            }
            OfferPhase::ManualActionRequired => Told::new(
                Status::Pending,
                "ConsumerDecides",
                format!("somebody at {name} has to decide{why}"),
            ),
            OfferPhase::Pending | OfferPhase::Accepted => {
                let message = format!("{name} was offered resources and has not signed a contract yet");
                Told::pending("Offered", message, created(&**bid))
            }
        }
    }

    /// What is told while a contract is in force.
    fn established(&self, deal: &Deal) -> Told {
        let Some(terms) = deal.agreed_terms() else {
            return Told::new(Status::Error, "UnreadableContract", "what was agreed on cannot be read");
        };
        super::established(self.peer, terms)
    }
}

fn word(cause: Cause) -> &'static str {
    match cause {
        Cause::Denied => "DeniedByPolicy",
        Cause::NotSelected => "NoPolicyApplies",
        Cause::OutsideTime => "OutsideTime",
        Cause::InvalidPolicy => "InvalidPolicy",
        Cause::NothingLeft => "NothingLeft",
    }
}

/// The most that the peer wants of some resources. What makes no sense of it is not there.
fn wanted(request: &ResourceRequest) -> Resources {
    offer::amounts(&request.spec.resources).0
}
