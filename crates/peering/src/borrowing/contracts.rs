//! The contract: proposed, amended, renewed, and checked once the provider signed.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::contract::{CAPACITY_BACKED, ContractPhase, SIGNED, WITHIN_AGREED};
use liqo_api::foreign_cluster::PeeringConditionStatus as Status;
use liqo_api::{Contract, ContractSpec, labels};
use liqo_core::contract::{Action, Lifecycle, Party, State, Terms};
use liqo_core::{Resources, Span};

use super::decide::Choice;
use super::{Borrowing, Wish};
use crate::copies;
use crate::events::{Report, labels_of};
use crate::index::{Bid, Deal, created};
use crate::offer::Read;
use crate::paper::{self, Draft};
use crate::places::{Peer, Planned};
use crate::standing::is_true;
use crate::status::Told;
use crate::steps::{Paced, Step, Where};

/// How long a signature may take.
const SIGNING: Span = Span::clamped(60);
/// How long we wait before we propose again what was refused, if nothing else changes.
const AGAIN: Span = Span::clamped(30);

/// What is told while a contract is in force.
pub(super) fn established(peer: &Peer<'_>, terms: &Terms) -> Told {
    let message =
        format!("{} is borrowed from {} by contract {}", terms.resources, peer.name(), terms.contract);
    Told::new(Status::Established, "ContractInForce", message)
}

impl<'a> Borrowing<'a> {
    /// Decides on the offer and does what follows.
    pub(super) fn decide_and_sign(&self, bid: &'a Bid, wish: Wish, planned: &mut Planned) -> Told {
        let in_force = self.in_force();
        let choice = self.choose(bid, wish, in_force);
        self.answer(bid, &choice, planned);
        if wish == Wish::Undecided {
            self.end_all(planned);
        }
        self.end_noted(planned);
        let told = match (&choice, &bid.read) {
            (Choice::Take(taken), Ok(read)) => self.contract(read, taken, in_force, planned),
            (_, _) if in_force.is_some() => self.in_force_told(in_force),
            (Choice::Ask(why), _) => Told::new(Status::Pending, "ManualActionRequired", why.clone()),
            (Choice::Leave(reason, why), _) => {
                Told::new(Status::Denied, reason, format!("the offer is refused here: {why}"))
            }
            (Choice::Take(_), Err(problem)) => Told::new(Status::Error, "InvalidOffer", problem.clone()),
        };
        self.mirror_all(planned);
        told
    }

    /// The contract that both signed and that is in force now.
    fn in_force(&self) -> Option<&'a Deal> {
        let mut deals = self.deals().into_iter();
        deals.find(|deal| self.is_open(deal) && self.is_agreed(deal) && !copies::is_past(deal, self.view.now))
    }

    /// Whether it is, or may yet be, in force for us.
    fn is_open(&self, deal: &Deal) -> bool {
        deal.is_live() && !copies::is_noted_over(self.view, deal)
    }

    /// Whether the provider signed what it says was agreed on.
    pub(super) fn is_agreed(&self, deal: &Deal) -> bool {
        let (Some(key), Some(terms), Some(signed)) = (&self.peer.key, deal.agreed_terms(), deal.signed())
        else {
            return false;
        };
        terms.contract.as_str() == deal.name_any()
            && terms.provider.id == self.peer.id
            && terms.consumer == self.view.me.party
            && copies::is_signed(self.view, key, terms, &signed.provider_signature)
            && copies::is_signed(self.view, &self.view.me.party.key, terms, &signed.consumer_signature)
    }

    fn in_force_told(&self, in_force: Option<&Deal>) -> Told {
        match in_force.and_then(Deal::agreed_terms) {
            Some(terms) => established(self.peer, terms),
            None => Told::nothing("NoContract", "there is no contract"),
        }
    }

    fn contract(
        &self,
        read: &Read,
        taken: &Resources,
        in_force: Option<&'a Deal>,
        planned: &mut Planned,
    ) -> Told {
        let Some(key) = self.peer.key else {
            let message = format!(
                "the key of {} is not known, so that no contract can be signed with it",
                self.peer.name()
            );
            return Told::new(Status::Error, "KeyUnknown", message);
        };
        let Ok(name) = self.peer.name().parse() else {
            return Told::new(Status::Error, "InvalidName", "the peer's name cannot be in a contract");
        };
        let provider = Party { id: self.peer.id.clone(), name, key };
        let draft = Draft { consumer: &self.view.me.party, provider: &provider, offer: read, taken };
        if let Some(deal) = in_force {
            self.end_others(deal, planned);
            self.amend(&draft, deal, planned);
            return self.in_force_told(in_force);
        }
        let deals = self.deals();
        match deals.iter().rev().find(|deal| self.is_open(deal)) {
            Some(deal) => {
                self.end_others(deal, planned);
                self.pursue(&draft, deal, planned)
            }
            None => self.propose(&draft, deals.last().copied(), planned),
        }
    }

    /// A contract is in force: amends it when something else is offered or its end is near.
    fn amend(&self, draft: &Draft<'_>, deal: &Deal, planned: &mut Planned) {
        let (Some(agreed), Some(signed)) = (deal.agreed_terms(), deal.signed()) else { return };
        planned.wake_at(agreed.not_after);
        let proposed = deal.proposed.as_ref().ok().filter(|_| !deal.is_settled());
        let stale =
            proposed.is_none_or(|terms| terms.offer != draft.offer.digest || terms.resources != *draft.taken);
        let refused = self.refused(deal);
        if proposed.is_some() && !stale && refused.as_ref().is_none_or(|(_, _, again)| *again > self.view.now)
        {
            if let Some((_, _, again)) = refused {
                planned.wake_at(again);
            }
            return;
        }
        let renewed = self.is_due(agreed, signed.time.0, planned);
        // What else we want is offered in a moment: one change of mind makes one amendment, not one for each offer.
        let answered = renewed || self.is_answered();
        if !answered || !copies::has_logged(self.view, agreed) {
            return;
        }
        match draft.amendment(agreed, renewed, self.view.now) {
            Ok(Some(terms)) if Some(&terms) != proposed => self.rewrite(deal, &terms, planned),
            Ok(_) => {}
            Err(error) => tracing::warn!(contract = deal.name_any(), %error, "cannot be amended"),
        }
    }

    /// Whether the contract is to be renewed now.
    fn is_due(&self, agreed: &Terms, since: Timestamp, planned: &mut Planned) -> bool {
        let life = Lifecycle {
            state: State::Active,
            since,
            not_before: agreed.not_before,
            not_after: agreed.not_after,
            renewal: agreed.renewal,
        };
        let due = life.due(SIGNING, self.view.now);
        if let Some(next) = due.next {
            planned.wake_at(next);
        }
        matches!(due.action, Some(Action::Renew(_)))
    }

    /// The provider's refusal of this very proposal: word, sentence, and when to try again.
    fn refused(&self, deal: &Deal) -> Option<(String, String, Timestamp)> {
        if deal.is_settled() {
            return None;
        }
        let answer = deal.condition(SIGNED)?;
        if answer.observed_generation != deal.metadata.generation {
            return None;
        }
        let again = AGAIN.after(answer.last_transition_time.0);
        Some((answer.reason.clone(), answer.message.clone(), again))
    }

    /// A proposal is under way.
    fn pursue(&self, draft: &Draft<'_>, deal: &'a Deal, planned: &mut Planned) -> Told {
        let name = self.peer.name();
        if deal.agreed.is_some() && !copies::is_past(deal, self.view.now) {
            let message = format!("what {name} says it signed is not what it signed, or not with its key");
            return Told::new(Status::Error, "InvalidSignature", message);
        }
        if copies::is_past(deal, self.view.now) {
            return Told::pending("Expired", "the contract came to its end", self.view.now);
        }
        let stale = deal.proposed.as_ref().map_or(true, |terms| {
            terms.offer != draft.offer.digest
                || terms.resources != *draft.taken
                || terms.not_after <= self.view.now
        });
        let refused = self.refused(deal);
        let again = refused.as_ref().is_some_and(|(_, _, again)| *again <= self.view.now);
        if stale || again {
            match deal.id().map(|id| draft.proposal(id, self.view.now)) {
                Some(Ok(terms)) => self.rewrite(deal, &terms, planned),
                Some(Err(error)) => {
                    return Told::new(
                        Status::Error,
                        "InvalidTerms",
                        format!("no contract can be made: {error}"),
                    );
                }
                None => {}
            }
        }
        match refused {
            Some((_, message, again)) => {
                planned.wake_at(again);
                Told::new(
                    Status::Error,
                    "ContractRefused",
                    format!("provider refused the contract: {message}"),
                )
            }
            None => {
                let message = format!("contract {} waits for the signature of {name}", deal.name_any());
                Told::pending("ContractProposed", message, created(&**deal))
            }
        }
    }

    /// Proposes other terms by the same contract, at the pace that is allowed.
    fn rewrite(&self, deal: &Deal, terms: &Terms, planned: &mut Planned) {
        let version = deal.metadata.resource_version.clone().unwrap_or_default();
        if !self.may_propose(&version, planned) {
            return;
        }
        let mut wanted = (**deal).clone();
        wanted.spec = self.signed(terms);
        let step = Step::bring(self.table.at, &**deal, &wanted, "amend contract");
        planned.step(step.map(|step| step.paced(Paced::Proposal, &version)));
    }

    fn may_propose(&self, occasion: &str, planned: &mut Planned) -> bool {
        let now = self.view.now;
        let paces = &self.view.index.memory.proposals;
        let allowed = paces.allowed_at(&self.peer.id, occasion, self.view.settings.proposals, now);
        if allowed > now {
            planned.wake_at(allowed);
        }
        allowed <= now
    }

    /// Our proposal, signed.
    fn signed(&self, terms: &Terms) -> ContractSpec {
        ContractSpec {
            provider_id: self.peer.id.to_string(),
            consumer_id: self.view.me.id().to_string(),
            terms: String::from_utf8_lossy(terms.canonical()).into_owned(),
            consumer_signature: paper::sign(&self.view.me.identity, terms),
            ended: None,
        }
    }

    /// Proposes a contract: here first, so that a restart goes on with the same one.
    fn propose(&self, draft: &Draft<'_>, earlier: Option<&Deal>, planned: &mut Planned) -> Told {
        let name = self.peer.name();
        if let Some(terms) =
            earlier.filter(|deal| deal.phase() == ContractPhase::Expired).and_then(Deal::agreed_terms)
            && terms.renewal.is_none()
            && terms.offer == draft.offer.digest
        {
            let message = format!("contract {} ended as agreed at {}", terms.contract, terms.not_after);
            return Told::nothing("EndedAsAgreed", message);
        }
        let told = Told::pending("Proposing", format!("a contract is proposed to {name}"), self.view.now);
        if !self.is_here()
            && let Some(copy) = self.unborn(draft.offer)
        {
            planned.step(Step::create(self.table.at, &self.original(copy), "propose contract"));
            return told;
        }
        let Some(id) = self.view.index.memory.fresh(&self.peer.id) else { return told };
        if !self.may_propose(id.as_str(), planned) || self.peer.copies.namespace.is_empty() {
            return told;
        }
        match draft.proposal(id.clone(), self.view.now) {
            Ok(terms) => self.write_proposal(&terms, planned),
            Err(error) => {
                return Told::new(Status::Error, "InvalidTerms", format!("no contract can be made: {error}"));
            }
        }
        told
    }

    fn write_proposal(&self, terms: &Terms, planned: &mut Planned) {
        let spec = self.signed(terms);
        let contract = if self.is_here() {
            self.original_of(terms.contract.to_string(), spec)
        } else {
            let metadata = copies::copy_metadata(self.peer, terms.contract.to_string());
            Contract { metadata, spec, status: None }
        };
        let step = Step::create(Where::Here, &contract, "draft contract");
        planned.step(step.paced(Paced::Proposal, terms.contract.as_str()));
        let message =
            format!("contract {} is proposed to {}: {}", terms.contract, self.peer.name(), terms.resources);
        let report = Report::new("ContractProposed", message, terms.contract.clone());
        planned.step(report.about(self.view, self.peer.cluster));
    }

    /// A copy whose original was never made, and that is still what we want.
    fn unborn(&self, offer: &Read) -> Option<&'a Deal> {
        self.copies().into_iter().find(|copy| {
            let about_this = copy.proposed.as_ref().is_ok_and(|terms| {
                terms.offer == offer.digest && terms.sequence == 0 && terms.not_after > self.view.now
            });
            about_this && copy.status.is_none() && self.table.contract(&copy.name_any()).is_none()
        })
    }

    fn original(&self, copy: &Deal) -> Contract {
        self.original_of(copy.name_any(), copy.spec.clone())
    }

    fn original_of(&self, name: String, spec: ContractSpec) -> Contract {
        let mut all = labels_of();
        // Whose it is, for the one at whose place it lies.
        let whose = if self.is_here() { &self.peer.id } else { self.view.me.id() };
        all.insert(labels::CLUSTER_ID.to_owned(), whose.to_string());
        let metadata = ObjectMeta {
            name: Some(name),
            namespace: Some(self.table.namespace.to_owned()),
            labels: Some(all),
            ..ObjectMeta::default()
        };
        Contract { metadata, spec, status: None }
    }

    /// Has our copies say what the originals say, as far as that is true; and removes what nobody needs.
    pub(super) fn mirror_all(&self, planned: &mut Planned) {
        let deals = self.deals();
        let latest = deals.last().map(|deal| deal.name_any());
        for deal in &deals {
            let true_ = deal.agreed.is_none() || self.is_agreed(deal);
            if true_ {
                self.tell_alarms(deal, planned);
            }
            if self.is_here() {
                if deal.is_over() && Some(deal.name_any()) != latest && copies::is_logged(self.view, deal) {
                    planned.step(Step::delete(Where::Here, &***deal, "delete contract"));
                }
            } else if deal.is_over() && Some(deal.name_any()) != latest {
                copies::part(self.view, self.peer, deal, planned);
            } else if true_ {
                copies::mirror(self.view, self.peer, deal, planned);
            }
        }
        if self.is_here() {
            return;
        }
        let offer = self.offer().and_then(|bid| bid.read.as_ref().ok());
        // One is enough: what was drafted before another one was known is not needed.
        let open = deals.iter().any(|deal| self.is_open(deal));
        let unborn = offer.filter(|_| !open).and_then(|offer| self.unborn(offer)).map(|copy| copy.name_any());
        for copy in self.copies() {
            let orphan = self.table.contract(&copy.name_any()).is_none();
            if orphan && Some(copy.name_any()) != unborn {
                copies::remove(self.view, copy, planned);
            }
        }
    }

    /// Tells here what the provider says of the contract's being kept.
    fn tell_alarms(&self, deal: &Deal, planned: &mut Planned) {
        let copy = self.peer.copies.contract(&deal.name_any());
        for (kind, reason) in [(CAPACITY_BACKED, "CapacityMissing"), (WITHIN_AGREED, "UsedBeyondAgreed")] {
            let Some(now) = deal.condition(kind) else { continue };
            let told = match copy {
                _ if self.is_here() => self.is_told_here(deal, now),
                Some(copy) => copy.condition(kind).is_none_or(is_true) == is_true(now),
                None => continue,
            };
            if !told {
                planned.step(self.alarm(deal, now, reason).about(self.view, self.peer.cluster));
            }
        }
    }

    /// Whether nothing is to be told of a condition of a contract that lies here, where no copy of ours shows what it said
    /// before. What is wrong is told as long as it is, which makes one event; that it is right again, until the log has it.
    fn is_told_here(&self, deal: &Deal, now: &Condition) -> bool {
        if deal.is_over() || !is_true(now) {
            return deal.is_over();
        }
        let all = || [CAPACITY_BACKED, WITHIN_AGREED].into_iter().filter_map(|kind| deal.condition(kind));
        // The last one that became right says that all is.
        let is_last = all().all(|it| is_true(it) && it.last_transition_time <= now.last_transition_time);
        !is_last || deal.id().is_none_or(|id| !self.view.index.log.is_broken(&id))
    }

    /// What is told of a condition: in words that stay the same, so that it is told once.
    fn alarm(&self, deal: &Deal, now: &Condition, reason: &'static str) -> Report {
        let since = now.last_transition_time.0;
        let (name, peer) = (deal.name_any(), self.peer.name());
        if is_true(now) {
            Report::new("ContractKept", format!("contract {name} with {peer} is kept again"), since)
        } else {
            Report::new(reason, format!("contract {name} with {peer}: {}", now.message), since).warning()
        }
    }
}
