//! What contracts say that belongs into the log.

use jiff::Timestamp;
use liqo_api::contract::{CAPACITY_BACKED, ContractPhase, ContractStatus, WITHIN_AGREED};
use liqo_core::canonical::Digest;
use liqo_core::chain::Event;
use liqo_core::contract::Terms;
use liqo_core::names::ContractId;

use super::SKEW;

/// What a contract that both signed says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The contract.
    pub contract: ContractId,
    /// The digest of the terms that both signed last.
    pub digest: Digest,
    /// Which amendment they are.
    pub sequence: u64,
    /// From when on they are valid.
    pub not_before: Timestamp,
    /// How it ended, if it did.
    pub over: Option<Event>,
    /// Whether somebody does not keep it.
    pub broken: bool,
}

/// What is to be noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The contract.
    pub contract: ContractId,
    /// The digest of the terms.
    pub digest: Digest,
    /// What happened.
    pub event: Event,
}

impl Account {
    /// What a contract with these terms and this status says.
    pub fn of(terms: &Terms, status: &ContractStatus) -> Self {
        let broken = |kind: &str| {
            status.conditions.iter().any(|condition| condition.type_ == kind && condition.status == "False")
        };
        Self {
            contract: terms.contract.clone(),
            digest: terms.digest(),
            sequence: terms.sequence,
            not_before: terms.not_before,
            over: match status.phase {
                ContractPhase::Expired => Some(Event::Expired),
                ContractPhase::Ended => Some(Event::Ended),
                ContractPhase::Proposed
                | ContractPhase::Active
                | ContractPhase::Amending
                | ContractPhase::Refused => None,
            },
            broken: broken(CAPACITY_BACKED) || broken(WITHIN_AGREED),
        }
    }

    /// How the latest terms came about, where the ones before were noted at `before`. Amendments keep the beginning of
    /// what they amend; only a renewal begins anew.
    pub(super) fn agreement(&self, before: Option<Timestamp>) -> Event {
        let renewed = before.is_some_and(|before| self.not_before.duration_since(before) > SKEW);
        match self.sequence {
            0 => Event::Signed,
            _ if renewed => Event::Renewed,
            _ => Event::Amended,
        }
    }
}
