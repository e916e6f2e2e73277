//! What a consumer writes down: the first proposal, and everything after it.

use aws_lc_rs::rand;
use jiff::Timestamp;
use liqo_core::Resources;
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, InvalidTerms, Party, Terms};
use liqo_core::money::Prices;
use liqo_core::names::ContractId;

use crate::offer::Read;

/// What the names of contracts begin with.
const PREFIX: &str = "c-";
/// Random bytes in a contract's name: as many as no two of them have alike by chance.
const RANDOM: usize = 10;

/// What a contract is drafted from.
#[derive(Clone, Copy, Debug)]
pub struct Draft<'a> {
    /// Who uses: the one that drafts.
    pub consumer: &'a Party,
    /// Who lends.
    pub provider: &'a Party,
    /// The offer that was accepted.
    pub offer: &'a Read,
    /// What is taken of it.
    pub taken: &'a Resources,
}

/// A name for a contract that no other has; `None` if there is no randomness.
pub fn new_contract_id() -> Option<ContractId> {
    let mut bytes = [0; RANDOM];
    rand::fill(&mut bytes).ok()?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{digits}").parse().ok()
}

impl Draft<'_> {
    /// The first terms of a contract, valid from now on.
    pub fn proposal(&self, contract: ContractId, now: Timestamp) -> Result<Terms, InvalidTerms> {
        Terms::new(self.clauses(contract, 0, None, self.offer.validity(now)))
    }

    /// The terms that should follow on `agreed`; `None` if those are what they should be.
    ///
    /// An amendment changes what is lent and for what, not how long: only where the contract is to be `renewed`, it goes
    /// on for as long as the offer says. What the offer ends, ends.
    pub fn amendment(
        &self,
        agreed: &Terms,
        renewed: bool,
        now: Timestamp,
    ) -> Result<Option<Terms>, InvalidTerms> {
        let sequence = agreed.sequence.saturating_add(1);
        let times = self.times(agreed, renewed, now);
        let clauses = self.clauses(agreed.contract.clone(), sequence, Some(agreed.digest()), times);
        let unchanged =
            Clauses { sequence: agreed.sequence, predecessor: agreed.predecessor, ..clauses.clone() };
        if unchanged == **agreed || clauses.not_after <= now {
            return Ok(None);
        }
        Terms::new(clauses).map(Some)
    }

    fn times(&self, agreed: &Terms, renewed: bool, now: Timestamp) -> (Timestamp, Timestamp) {
        let anew = self.offer.validity(now);
        if renewed && anew.1 > agreed.not_after {
            return anew;
        }
        let longest = self.offer.end_by(self.offer.duration.after(agreed.not_before));
        (agreed.not_before, agreed.not_after.min(whole_second(longest)))
    }

    fn clauses(
        &self,
        contract: ContractId,
        sequence: u64,
        predecessor: Option<Digest>,
        (not_before, not_after): (Timestamp, Timestamp),
    ) -> Clauses {
        Clauses {
            contract,
            sequence,
            predecessor,
            provider: self.provider.clone(),
            consumer: self.consumer.clone(),
            resources: self.taken.clone(),
            pools: self.offer.pools_of(self.taken),
            prices: self.prices(),
            not_before,
            not_after,
            renewal: self.offer.renewal,
            enforcement: self.offer.enforcement,
            service_level: self.offer.service_level.clone(),
            offer: self.offer.digest,
        }
    }

    /// The prices of what is taken.
    fn prices(&self) -> Option<Prices> {
        let prices = self.offer.prices.as_ref()?.only(|name| self.taken.get(name.as_str()).is_some());
        let free = prices.iter().len() == 0;
        (!free).then_some(prices)
    }
}

pub(super) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
