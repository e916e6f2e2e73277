//! The consumer's side: whether an offer is accepted.
//!
//! An offer that breaks a limit is refused, with the limit in the reason. One that keeps them all is accepted, or left
//! to a person where accepting by itself is switched off. So is one whose price cannot be compared, because the limit
//! is in another currency: nobody guesses exchange rates.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::money::{Currency, Prices, Rate};
use crate::resources::Resources;

#[cfg(test)]
mod tests;

/// What a consumer accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Whether offers are accepted without a person.
    pub automatic: bool,
    /// At least this much of these resources.
    pub at_least: Resources,
    /// The currencies that can be paid in; `None` for any.
    pub currencies: Option<BTreeSet<Currency>>,
    /// The highest price of a unit of these resources.
    pub highest_prices: Option<Prices>,
    /// The highest price of all that is offered.
    pub highest_total: Option<(Currency, Rate)>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            automatic: true,
            at_least: Resources::new(),
            currencies: None,
            highest_prices: None,
            highest_total: None,
        }
    }
}

/// What matters of an offer.
#[derive(Clone, Copy, Debug)]
pub struct Offered<'a> {
    /// How much.
    pub resources: &'a Resources,
    /// What it costs; `None` if it is free.
    pub prices: Option<&'a Prices>,
    /// Until when the offer stands.
    pub valid_until: Option<Timestamp>,
}

/// What to do with an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Take it.
    Accept,
    /// Leave it; the sentence says why.
    Refuse(String),
    /// A person has to decide; the sentence says why.
    Manual(String),
}

/// What to do with an offer now.
pub fn decide(limits: &Limits, offered: Offered<'_>, now: Timestamp) -> Decision {
    if let Some(until) = offered.valid_until.filter(|until| *until <= now) {
        return Decision::Refuse(format!("the offer ended at {until}"));
    }
    if let Err(problems) = offered.resources.clone().refuse_negative().into_result() {
        return Decision::Refuse(format!("the offer makes no sense: {problems}"));
    }
    let lacking = limits.at_least.lacking_in(offered.resources);
    if !lacking.is_empty() {
        return Decision::Refuse(format!("the offer lacks {lacking} of the least that is wanted"));
    }
    let paid = match offered.prices.map(|prices| pay(limits, prices, offered.resources)) {
        Some(Err(decision)) => return decision,
        Some(Ok(sentence)) => sentence,
        None => None,
    };
    match (paid, limits.automatic) {
        (Some(doubt), _) => Decision::Manual(doubt),
        (None, false) => Decision::Manual("offers are accepted by hand here".to_owned()),
        (None, true) => Decision::Accept,
    }
}

/// Whether the prices are within the limits: refused, or a doubt that a person has to settle, or none.
fn pay(limits: &Limits, prices: &Prices, resources: &Resources) -> Result<Option<String>, Decision> {
    let total = match prices.total(resources) {
        Ok(total) if total.is_zero() => return Ok(None),
        Ok(total) => total,
        Err(problem) => return Err(Decision::Refuse(format!("the price makes no sense: {problem}"))),
    };
    let currency = prices.currency();
    if limits.currencies.as_ref().is_some_and(|allowed| !allowed.contains(currency)) {
        return Err(Decision::Refuse(format!("the price is in {currency}, which is not paid in here")));
    }
    let mut doubt = None;
    let mut comparable = |of: &Currency| {
        if of != currency {
            doubt = Some(format!(
                "the price is in {currency} and its limit in {of}: somebody has to compare them"
            ));
        }
        of == currency
    };
    if let Some(highest) = limits.highest_prices.as_ref().filter(|highest| comparable(highest.currency())) {
        for (name, _) in resources.iter() {
            let (price, limit) = (prices.of(name.as_str()), highest.get(name.as_str()));
            if let Some(limit) = limit.filter(|limit| price > *limit) {
                let reason = format!("{name} costs {currency} {price}, the highest accepted is {limit}");
                return Err(Decision::Refuse(reason));
            }
        }
    }
    if let Some((_, limit)) = limits.highest_total.as_ref().filter(|(of, _)| comparable(of))
        && total > *limit
    {
        let reason = format!("all together costs {currency} {total}, the highest accepted is {limit}");
        return Err(Decision::Refuse(reason));
    }
    Ok(doubt)
}
