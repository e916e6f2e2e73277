//! Whether an offer is taken: by limits, or by a person.

use liqo_api::conditions;
use liqo_api::resource_offer::{OfferPhase, ResourceOfferStatus};
use liqo_core::Resources;
use liqo_core::acceptance::{self, Decision, Limits};

use super::{Borrowing, Wish};
use crate::events::Report;
use crate::index::{Bid, Deal};
use crate::places::Planned;
use crate::standing::condition;
use crate::steps::{Step, Where};

/// Condition of an offer: whether the consumer takes it, and why.
pub(crate) const ACCEPTED: &str = "Accepted";

/// What we do with an offer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    /// We take this of it.
    Take(Resources),
    /// We leave it; a word and a sentence.
    Leave(&'static str, String),
    /// Somebody has to say what to do.
    Ask(String),
}

impl Choice {
    fn phase(&self) -> OfferPhase {
        match self {
            Self::Take(_) => OfferPhase::Accepted,
            Self::Leave(..) => OfferPhase::Refused,
            Self::Ask(_) => OfferPhase::ManualActionRequired,
        }
    }
}

impl Borrowing<'_> {
    /// What to do with the offer. `in_force` is what was agreed on already.
    pub(super) fn choose(&self, bid: &Bid, wish: Wish, in_force: Option<&Deal>) -> Choice {
        let read = match &bid.read {
            Ok(read) => read,
            Err(problem) => {
                return Choice::Leave("InvalidOffer", format!("the offer makes no sense: {problem}"));
            }
        };
        let wants = match self.wants() {
            Ok(wants) => wants,
            Err(problem) => return Choice::Ask(format!("what is wanted cannot be read: {problem}")),
        };
        let taken = read.taken(&wants.wanted);
        let agreed = in_force.and_then(Deal::agreed_terms);
        // What was accepted once is not asked about again because its time passes.
        if agreed.is_some_and(|terms| terms.offer == read.digest && terms.resources == taken) {
            return Choice::Take(taken);
        }
        let by_hand = self.hand(bid);
        if by_hand == Some(false) {
            return Choice::Leave("RefusedByHand", "somebody refused it".to_owned());
        }
        if wish == Wish::Undecided {
            let name = self.peer.name();
            return Choice::Ask(format!(
                "{name} offers this unasked; accept it with `liqoctl offer accept {name}`"
            ));
        }
        // A person may take what the limits would not; but not what makes no sense.
        let limits = if by_hand == Some(true) { Limits::default() } else { wants.limits };
        match acceptance::decide(&limits, read.offered(&taken), self.view.now) {
            Decision::Accept => Choice::Take(taken),
            Decision::Refuse(why) => Choice::Leave("BeyondLimits", why),
            Decision::Manual(why) => {
                let name = self.peer.name();
                Choice::Ask(format!("{why}; accept it with `liqoctl offer accept {name}`, or refuse it"))
            }
        }
    }

    /// Tells both sides what we do with the offer.
    pub(super) fn answer(&self, bid: &Bid, choice: &Choice, planned: &mut Planned) {
        let changed = self.answer_one(self.table.at, bid, choice, planned);
        if !self.is_here()
            && let Some(copy) = self.peer.copies.offer_of(&self.peer.id)
        {
            self.answer_one(Where::Here, copy, choice, planned);
        }
        if changed {
            let name = self.peer.name();
            let report = match choice {
                Choice::Take(taken) => {
                    Report::new("OfferAccepted", format!("{taken} of {name} is accepted"), occasion(bid))
                }
                Choice::Leave(_, why) => Report::new(
                    "OfferRefused",
                    format!("the offer of {name} is refused: {why}"),
                    occasion(bid),
                )
                .warning(),
                Choice::Ask(why) => {
                    Report::new("DecisionNeeded", format!("the offer of {name}: {why}"), occasion(bid))
                }
            };
            planned.step(report.about(self.view, self.peer.cluster));
        }
    }

    fn answer_one(&self, at: Where, bid: &Bid, choice: &Choice, planned: &mut Planned) -> bool {
        let mut wanted = (**bid).clone();
        let status = wanted.status.get_or_insert_with(ResourceOfferStatus::default);
        status.phase = choice.phase();
        let (reason, message) = match choice {
            Choice::Take(_) => ("Accepted", "the offer is accepted".to_owned()),
            Choice::Leave(reason, why) => (*reason, why.clone()),
            Choice::Ask(why) => ("DecisionNeeded", why.clone()),
        };
        let accepted = matches!(choice, Choice::Take(_));
        let said = condition(ACCEPTED, accepted, reason, &message, None);
        conditions::set(&mut status.conditions, said, self.view.now);
        let step = Step::bring_status(at, &**bid, &wanted, "answer offer");
        let changed = step.is_some();
        planned.step(step);
        changed
    }
}

fn occasion(bid: &Bid) -> String {
    bid.digest().map(|digest| digest.to_string()).unwrap_or_default()
}
