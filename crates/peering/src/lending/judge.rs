//! Whether we sign what a peer proposes. Everything in it is hostile until checked.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use liqo_core::contract::Terms;
use liqo_core::ledger::{NotAdmitted, Sale};
use liqo_core::policy::Offer;

use super::Lending;
use super::contracts::Offered;
use super::evaluate::ledger;
use super::keep::Standing;
use crate::copies;
use crate::index::{Deal, created};
use crate::offer::Read;

/// By how much the clocks of two clusters may differ.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// What becomes of a proposal.
pub(super) enum Judged {
    /// It is signed, and sells this.
    Sign(Terms, Sale),
    /// It is not: a word and a sentence.
    Refuse(&'static str, String),
    /// Something else must happen first, which is under way.
    Wait,
}

type Refused = (&'static str, String);

fn refused<T>(reason: &'static str, message: impl Into<String>) -> Result<T, Refused> {
    Err((reason, message.into()))
}

/// What becomes of the peer's latest proposal.
pub(super) fn judge(
    lending: &Lending<'_>,
    deal: &Deal,
    offered: Option<Offered<'_>>,
    other: Option<&String>,
) -> Judged {
    let terms = match signed_terms(lending, deal, other) {
        Ok(terms) => terms,
        Err((reason, message)) => return Judged::Refuse(reason, message),
    };
    let Some((bid, offer, standing)) = offered else { return Judged::Wait };
    let Ok(read) = &bid.read else { return Judged::Wait };
    // Who proposes by an offer that has changed sees the new one, and proposes again.
    if terms.offer != read.digest || standing == Standing::Changing {
        return Judged::Wait;
    }
    if deal.agreed_terms().is_some_and(|before| !copies::has_logged(lending.view, before)) {
        return Judged::Wait;
    }
    let checked = check_times(lending.view.now, &terms, deal.agreed_terms(), read)
        .and_then(|()| check_clauses(&terms, read))
        .and_then(|()| admit(lending, deal, &terms, offer));
    match checked {
        Ok(sale) => Judged::Sign(terms, sale),
        Err((reason, message)) => Judged::Refuse(reason, message),
    }
}

/// The terms, if they are this peer's and ours, and it signed them.
fn signed_terms(lending: &Lending<'_>, deal: &Deal, other: Option<&String>) -> Result<Terms, Refused> {
    let (me, peer) = (lending.view.me, lending.peer);
    let Some(key) = &peer.key else {
        let message = "the provider does not know the consumer's key, so that no signature can be checked";
        return refused("KeyUnknown", message);
    };
    let terms = match &deal.proposed {
        Ok(terms) => terms,
        Err(problem) => return refused("InvalidTerms", format!("the terms cannot be read: {problem}")),
    };
    if terms.contract.as_str() != deal.name_any() {
        return refused("WrongContract", "the terms are those of another contract");
    }
    if terms.provider != me.party {
        return refused(
            "WrongProvider",
            "the terms name another provider, or another key or name of this one",
        );
    }
    let (id, name) = (&terms.consumer.id, &terms.consumer.name);
    if *id != peer.id || name.as_str() != peer.name() || terms.consumer.key != *key {
        return refused("WrongConsumer", "the terms name another consumer, or another key or name of it");
    }
    if !copies::is_signed(lending.view, key, terms, &deal.spec.consumer_signature) {
        return refused(
            "InvalidSignature",
            "the consumer's signature is not that of its key under these terms",
        );
    }
    if let Some(other) = other {
        return refused("AlreadyInForce", format!("contract {other} is in force; amend it, or end it first"));
    }
    check_sequence(terms, deal)?;
    Ok(terms.clone())
}

fn check_sequence(terms: &Terms, deal: &Deal) -> Result<(), Refused> {
    match deal.agreed_terms() {
        Some(before) => {
            terms.check_follows(before).or_else(|error| refused("DoesNotFollow", error.to_string()))
        }
        None if terms.sequence == 0 => Ok(()),
        None => refused("DoesNotFollow", "it is an amendment, and nothing was agreed on before"),
    }
}

fn check_times(now: Timestamp, terms: &Terms, before: Option<&Terms>, read: &Read) -> Result<(), Refused> {
    let latest_begin = now.saturating_add(SKEW).unwrap_or(now);
    if terms.not_before > latest_begin {
        return refused("WrongTimes", format!("it begins at {}, and it is {now} here", terms.not_before));
    }
    if terms.not_after <= now {
        return refused("WrongTimes", format!("it ended at {}, and it is {now} here", terms.not_after));
    }
    if terms.not_after > read.end_by(read.duration.after(terms.not_before)) {
        return refused("WrongTimes", "it lasts longer than what was offered");
    }
    let renewable = read.renewal.is_some();
    match before {
        Some(before) if !renewable && terms.not_after > before.not_after => {
            refused("WrongTimes", "what was agreed on is not renewed")
        }
        _ => Ok(()),
    }
}

fn check_clauses(terms: &Terms, read: &Read) -> Result<(), Refused> {
    let beyond = terms.resources.lacking_in(&read.resources);
    if !beyond.is_empty() {
        return refused("MoreThanOffered", format!("{beyond} more than was offered"));
    }
    check_pools(terms, read)?;
    let prices =
        read.prices.as_ref().map(|prices| prices.only(|name| terms.resources.get(name.as_str()).is_some()));
    let prices = prices.filter(|prices| prices.iter().len() > 0);
    let same = [
        (terms.prices == prices, "prices"),
        (terms.renewal == read.renewal, "renewal"),
        (terms.enforcement == read.enforcement, "enforcement"),
        (terms.service_level == read.service_level, "service level"),
    ];
    match same.iter().find(|(same, _)| !same) {
        Some((_, what)) => refused("OtherThanOffered", format!("its {what} is not what was offered")),
        None => Ok(()),
    }
}

/// Whether it takes of each pool no more than is offered of it, and names its labels as they are offered.
fn check_pools(terms: &Terms, read: &Read) -> Result<(), Refused> {
    if terms.pools.is_empty() != read.pools.is_empty() {
        return refused("OtherThanOffered", "it does not say by pool what is offered by pool");
    }
    for (name, pool) in &terms.pools {
        let Some(offered) = read.pools.get(name) else {
            return refused("OtherThanOffered", format!("pool {name} was not offered"));
        };
        let beyond = pool.resources.lacking_in(&offered.resources);
        if !beyond.is_empty() {
            return refused("MoreThanOffered", format!("{beyond} more than was offered of pool {name}"));
        }
        if pool.labels != offered.labels {
            return refused(
                "OtherThanOffered",
                format!("the labels of pool {name} are not those that were offered"),
            );
        }
    }
    Ok(())
}

fn admit(lending: &Lending<'_>, deal: &Deal, terms: &Terms, offer: &Offer) -> Result<Sale, Refused> {
    let sale = Sale::of(terms, offer.policy.clone(), created(&**deal));
    let ledger = ledger(lending.view.index, lending.view.me);
    match ledger.admit(&offer.limits, sale.clone()) {
        Ok(_) => Ok(sale),
        Err(error @ NotAdmitted::Shortfall(_)) => refused("NothingLeft", error.to_string()),
        Err(error) => refused("NotAdmitted", error.to_string()),
    }
}
