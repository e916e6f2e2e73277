//! What the peer proposes, signed or refused; and what becomes of what was signed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use liqo_api::conditions;
use liqo_api::contract::{Agreed, CAPACITY_BACKED, ContractPhase, ContractStatus, SIGNED, WITHIN_AGREED};
use liqo_core::contract::Terms;
use liqo_core::ledger::Sale;
use liqo_core::policy::Offer;

use super::judge::{Judged, judge};
use super::keep::Standing;
use super::{Lending, Why};
use crate::copies;
use crate::events::Report;
use crate::index::{Bid, Deal};
use crate::offer;
use crate::paper;
use crate::places::Planned;
use crate::standing::{condition, whole_second};
use crate::steps::Step;

/// Contracts of one peer that are looked at: it can make as many objects as it likes, and needs one.
const MOST_DEALS: usize = 8;

/// An offer that stands, with what it was made of.
pub(super) type Offered<'a> = (&'a Bid, &'a Offer, Standing);

impl<'a> Lending<'a> {
    /// The contract that both signed and that is not over.
    pub(super) fn in_force(&self) -> Option<&'a Deal> {
        let mut deals = self.deals().into_iter();
        deals.find(|deal| {
            let open = !deal.is_over() && !copies::is_noted_over(self.view, deal);
            open && deal.agreed.is_some() && self.is_signed_by_us(deal)
        })
    }

    fn is_signed_by_us(&self, deal: &Deal) -> bool {
        let (Some(terms), Some(signed)) = (deal.agreed_terms(), deal.signed()) else { return false };
        let key = &self.view.me.party.key;
        terms.contract.as_str() == deal.name_any()
            && copies::is_signed(self.view, key, terms, &signed.provider_signature)
    }

    /// Answers every proposal, and ends what is over.
    pub(super) fn settle(&self, offered: Option<Offered<'_>>, planned: &mut Planned) {
        let in_force = self.in_force().map(|deal| deal.name_any());
        let deals = self.deals();
        let (over, live): (Vec<&Deal>, Vec<&Deal>) = deals.into_iter().partition(|deal| deal.is_over());
        for deal in live.iter().take(MOST_DEALS) {
            let other = in_force.as_ref().filter(|name| **name != deal.name_any());
            self.settle_one(deal, offered, other, planned);
        }
        // The latest that is over stays, for those who wonder; unless there is another.
        let kept = over.last().filter(|_| live.is_empty()).map(|deal| deal.name_any());
        for deal in over.iter().filter(|deal| Some(deal.name_any()) != kept) {
            self.forget(deal, planned);
        }
    }

    fn settle_one(
        &self,
        deal: &'a Deal,
        offered: Option<Offered<'_>>,
        other: Option<&String>,
        planned: &mut Planned,
    ) {
        if deal.spec.ended.is_some() {
            return self.end(deal, &Why::not_asked(), planned);
        }
        if copies::is_noted_over(self.view, deal) {
            let message = "it was over before, and is not taken up again";
            return self.finish(deal, ContractPhase::Ended, "OverAlready", message, planned);
        }
        if let Some(terms) = deal.agreed_terms().filter(|_| self.is_signed_by_us(deal)) {
            planned.wake_at(terms.not_after);
            if terms.not_after <= self.view.now {
                let message = format!("it came to its end at {}", terms.not_after);
                return self.finish(deal, ContractPhase::Expired, "Expired", &message, planned);
            }
        }
        if deal.is_settled() && self.is_signed_by_us(deal) {
            return self.watch_over(deal, planned);
        }
        match judge(self, deal, offered, other) {
            Judged::Sign(terms, sale) => self.sign(deal, &terms, sale, planned),
            Judged::Refuse(reason, message) => self.turn_down(deal, reason, &message, planned),
            Judged::Wait => self.watch_over(deal, planned),
        }
    }

    /// Signs: the write at which the contract holds.
    fn sign(&self, deal: &Deal, terms: &Terms, sale: Sale, planned: &mut Planned) {
        let signature = paper::sign(&self.view.me.identity, terms);
        // At a peer, it must be known here to be sold before it is.
        if !self.is_here()
            && !copies::reserve(self.peer, deal, super::reservation(&signature, &sale.pot), planned)
        {
            return;
        }
        let mut wanted = (**deal).clone();
        let now = self.view.now;
        let mut status = agreed_status(terms, deal, &signature, Time(whole_second(now)));
        status.conditions = wanted.status.take().map(|status| status.conditions).unwrap_or_default();
        let (reason, message) = match terms.sequence {
            0 => ("Signed", "both have signed".to_owned()),
            sequence => ("Amended", format!("both have signed amendment {sequence}")),
        };
        let signed = condition(SIGNED, true, reason, &message, deal.metadata.generation);
        conditions::set(&mut status.conditions, signed, now);
        for kind in [CAPACITY_BACKED, WITHIN_AGREED] {
            let kept = condition(kind, true, "Kept", super::obligations::kept(kind), None);
            if !status.conditions.iter().any(|it| it.type_ == kind) {
                conditions::set(&mut status.conditions, kept, now);
            }
        }
        wanted.status = Some(status);
        let step = Step::bring_status(self.table.at, &**deal, &wanted, "sign");
        planned.step(step.map(|step| step.selling(sale)));
        let event = if terms.sequence == 0 { "ContractSigned" } else { "ContractAmended" };
        let message = format!("contract {} with {}: {}", terms.contract, self.peer.name(), terms.resources);
        planned.step(Report::new(event, message, terms.digest()).about(self.view, self.peer.cluster));
    }

    /// Says why a proposal is not signed; what was signed before stands.
    fn turn_down(&self, deal: &Deal, reason: &'static str, message: &str, planned: &mut Planned) {
        let mut wanted = (**deal).clone();
        let status = wanted.status.get_or_insert_with(ContractStatus::default);
        let stands = deal.agreed.is_some() && self.is_signed_by_us(deal);
        status.phase = if stands { ContractPhase::Active } else { ContractPhase::Refused };
        let text =
            if stands { format!("{message}; what was signed before stands") } else { message.to_owned() };
        let refused = condition(SIGNED, stands, reason, &text, deal.metadata.generation);
        conditions::set(&mut status.conditions, refused, self.view.now);
        if !stands {
            // What somebody else wrote there was never agreed on.
            status.agreed = None;
        }
        let Some(step) = Step::bring_status(self.table.at, &**deal, &wanted, "refuse contract") else {
            return;
        };
        planned.step(step);
        let text = format!("contract {} with {} is not signed: {message}", deal.name_any(), self.peer.name());
        let report = Report::new("ContractRefused", text, self.occasion(deal)).warning();
        planned.step(report.about(self.view, self.peer.cluster));
    }

    /// Tells whether what was signed is kept, and that an amendment waits.
    fn watch_over(&self, deal: &Deal, planned: &mut Planned) {
        let mut wanted = (**deal).clone();
        let status = wanted.status.get_or_insert_with(ContractStatus::default);
        if self.is_signed_by_us(deal) {
            let waits = !deal.is_settled() && !self.is_answered(deal);
            status.phase = if waits { ContractPhase::Amending } else { ContractPhase::Active };
            super::obligations::tell(self, deal, status, planned);
        }
        planned.step(Step::bring_status(self.table.at, &**deal, &wanted, "keep contract"));
        if !self.is_here() {
            copies::mirror(self.view, self.peer, deal, planned);
        }
    }

    /// Whether this very proposal was refused.
    fn is_answered(&self, deal: &Deal) -> bool {
        let answer = deal.condition(SIGNED);
        answer.is_some_and(|answer| answer.observed_generation == deal.metadata.generation)
    }
}

/// What the contract says once it is signed.
fn agreed_status(terms: &Terms, deal: &Deal, signature: &str, time: Time) -> ContractStatus {
    ContractStatus {
        phase: ContractPhase::Active,
        agreed: Some(Agreed {
            terms: deal.spec.terms.clone(),
            consumer_signature: deal.spec.consumer_signature.clone(),
            provider_signature: signature.to_owned(),
            time,
        }),
        digest: Some(terms.digest().to_string()),
        sequence: Some(terms.sequence),
        resources: offer::texts(&terms.resources),
        valid_until: Some(Time(terms.not_after)),
        price: paper::price(terms),
        conditions: Vec::new(),
    }
}
