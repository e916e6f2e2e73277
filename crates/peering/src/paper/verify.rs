//! Checking a contract with nothing but the paper and the two public keys.

use kube::ResourceExt;
use liqo_api::Contract;
use liqo_api::contract::{Agreed, ContractStatus};
use liqo_core::contract::{PublicKey, Terms};
use serde::Serialize;

use super::{is_signed, price};
use crate::offer::amounts;

/// The public keys of the parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    /// Of the one that lends.
    pub provider: PublicKey,
    /// Of the one that borrows.
    pub consumer: PublicKey,
}

/// One thing that must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What must hold.
    pub what: String,
    /// Why it does not; `None` if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// The terms that both signed, as far as they can be read.
    pub terms: Option<Terms>,
    /// All that was checked, in order.
    pub checks: Vec<Check>,
}

impl Verification {
    /// Whether everything holds.
    pub fn is_valid(&self) -> bool {
        self.terms.is_some() && self.checks.iter().all(|check| check.problem.is_none())
    }

    fn note(&mut self, what: &str, outcome: Result<(), String>) {
        self.checks.push(Check { what: what.to_owned(), problem: outcome.err() });
    }

    fn must(&mut self, what: &str, holds: bool, problem: impl Into<String>) {
        self.note(what, if holds { Ok(()) } else { Err(problem.into()) });
    }
}

/// Checks everything that a contract says of itself.
///
/// What counts is what both signed. What stands beside it for people must say the same, or somebody changed it.
pub fn verify(contract: &Contract, keys: &Keys) -> Verification {
    let mut found = Verification::default();
    let Some(status) = &contract.status else {
        found.must("signed by both", false, "the provider has not signed it");
        check_proposal(contract, None, keys, &mut found);
        return found;
    };
    let Some(agreed) = &status.agreed else {
        found.must("signed by both", false, "the provider has not signed it");
        check_proposal(contract, None, keys, &mut found);
        return found;
    };
    let terms = match Terms::parse(agreed.terms.as_bytes()) {
        Ok(terms) => terms,
        Err(error) => {
            found.must("the terms are in canonical form", false, error.to_string());
            return found;
        }
    };
    found.must("the terms are in canonical form", true, "");
    check_parties(contract, &terms, keys, &mut found);
    check_signatures(agreed, &terms, keys, &mut found);
    found.note("what stands beside the terms says the same", check_told(status, &terms));
    check_proposal(contract, Some(&terms), keys, &mut found);
    found.terms = Some(terms);
    found
}

fn check_parties(contract: &Contract, terms: &Terms, keys: &Keys, found: &mut Verification) {
    let name = contract.name_any();
    found.must(
        "the terms are those of this contract",
        terms.contract.as_str() == name,
        format!("they are those of contract {}, and this is {name}", terms.contract),
    );
    for (what, party, id, key) in [
        ("provider", &terms.provider, &contract.spec.provider_id, &keys.provider),
        ("consumer", &terms.consumer, &contract.spec.consumer_id, &keys.consumer),
    ] {
        found.must(
            &format!("the {what} is the one that the contract names"),
            party.id.as_str() == id,
            format!("the terms name {}, the contract {id:?}", party.id),
        );
        found.must(
            &format!("the {what}'s key is the given one"),
            party.key == *key,
            format!("the terms name the key {}, given was {key}", party.key),
        );
    }
}

fn check_signatures(agreed: &Agreed, terms: &Terms, keys: &Keys, found: &mut Verification) {
    for (what, key, signature) in [
        ("consumer", &keys.consumer, &agreed.consumer_signature),
        ("provider", &keys.provider, &agreed.provider_signature),
    ] {
        found.must(
            &format!("the {what} signed these terms"),
            is_signed(key, terms, signature),
            format!("the signature is not that of {key} under these terms"),
        );
    }
}

/// What people read instead of the terms.
fn check_told(status: &ContractStatus, terms: &Terms) -> Result<(), String> {
    let other = |what: &str, told: &dyn std::fmt::Display, signed: &dyn std::fmt::Display| {
        Err(format!("the status says {what} {told}, signed was {signed}"))
    };
    if let Some(digest) = status.digest.as_ref().filter(|digest| **digest != terms.digest().to_string()) {
        return other("digest", digest, &terms.digest());
    }
    if let Some(sequence) = status.sequence.filter(|sequence| *sequence != terms.sequence) {
        return other("amendment", &sequence, &terms.sequence);
    }
    let (resources, _) = amounts(&status.resources);
    if !status.resources.is_empty() && resources != terms.resources {
        return other("resources", &resources, &terms.resources);
    }
    if let Some(until) = status.valid_until.as_ref().filter(|until| until.0 != terms.not_after) {
        return other("until", &until.0, &terms.not_after);
    }
    let signed = price(terms);
    match &status.price {
        Some(told) if Some(told) != signed.as_ref() => {
            other("price", told, &signed.unwrap_or_else(|| "none".to_owned()))
        }
        _ => Ok(()),
    }
}

/// What the consumer proposes beyond what both signed.
fn check_proposal(contract: &Contract, agreed: Option<&Terms>, keys: &Keys, found: &mut Verification) {
    let spec = &contract.spec;
    if agreed.is_some_and(|agreed| agreed.canonical() == spec.terms.as_bytes()) {
        return;
    }
    let proposed = Terms::parse(spec.terms.as_bytes()).map_err(|error| error.to_string());
    let outcome = proposed.and_then(|terms| {
        if !is_signed(&keys.consumer, &terms, &spec.consumer_signature) {
            return Err(format!("the signature is not that of {} under these terms", keys.consumer));
        }
        agreed.map_or(Ok(()), |agreed| terms.check_follows(agreed).map_err(|error| error.to_string()))
    });
    found.note("the consumer signed what it proposes", outcome);
}
