//! What has been promised to whom. What a provider has promised it has not got any more.
//!
//! A [`Sale`] is one contract's claim. It enters by [`Ledger::admit`], which refuses what is no longer there to be
//! sold, first as a **proposal** (reserved while the signatures are under way) and by [`Ledger::confirm`] as
//! **standing**. An amendment is a proposal of the same contract with a higher sequence number: until it is confirmed
//! the larger of old and new is reserved, then it replaces its predecessor. A proposal that comes to nothing is
//! [abandoned](Ledger::abandon), a contract that is over is [ended](Ledger::end), and neither leaves anything reserved.
//!
//! # What may be sold
//!
//! Each policy is a **pot** that all its peers share; sharing without any policy is a pot of its own. Of every
//! resource
//!
//! 1. all sales of a pot together are at most what the policy allows ([`Limits::pot`]),
//! 2. all sales of all pots together are at most what the cluster has ([`Limits::total`]), and
//! 3. all sales of a pool together are at most what the policy allows of its nodes ([`Limits::pools`]),
//!
//! at the moment of admission. Sales of a pot whose policy no longer exists count against every pot. Capacity may
//! shrink later; then nothing is taken away silently, [`Ledger::shortages`] says whose promise is not backed any more.
//!
//! A ledger is a value: every step gives a new one. It is made anew from the contracts after a restart, in any order.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::contract::Terms;
use crate::names::{ClusterId, ContractId, PoolName};
use crate::quantity::Quantity;
use crate::resources::{ResourceProblems, Resources};

mod shortage;

#[cfg(test)]
mod tests;

pub use shortage::Shortage;

/// Where a sale comes from: the policy's name, or `None` for what is shared without any policy.
pub type Pot = Option<String>;

/// What one contract claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sale {
    /// The contract.
    pub contract: ContractId,
    /// Which amendment of it, 0 being the original.
    pub sequence: u64,
    /// The consumer.
    pub peer: ClusterId,
    /// The pot that it comes from.
    pub pot: Pot,
    /// What is promised.
    pub resources: Resources,
    /// What of it is promised of which pool; nothing where the policy has none.
    pub pools: BTreeMap<PoolName, Resources>,
    /// When it was promised first; who came first is served first if it is not enough for all.
    pub since: Timestamp,
}

/// How much may be sold now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// What the sale's pot may have sold in all, this sale included.
    pub pot: Resources,
    /// What all pots together may have sold in all, this sale included.
    pub total: Resources,
    /// What each pool of the sale's pot may have sold in all, this sale included.
    pub pools: BTreeMap<PoolName, Resources>,
    /// The pots that exist; what was sold from another one counts against each of them.
    pub pots: BTreeSet<Pot>,
}

/// All promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    entries: BTreeMap<ContractId, Entry>,
}

/// What is known of one contract.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Proposed(Sale),
    Standing(Sale),
    Amending { standing: Sale, proposed: Sale },
}

/// Why a sale is not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// There is not enough left.
    #[error("not enough left to sell: {0} too much")]
    Shortfall(Resources),
    /// The contract is at a later amendment already.
    #[error("contract {contract} is at amendment {standing} already; amendment {sequence} comes too late")]
    Stale {
        /// The contract.
        contract: ContractId,
        /// The amendment that was to be admitted.
        sequence: u64,
        /// The amendment that stands.
        standing: u64,
    },
    /// The contract is somebody else's.
    #[error("contract {contract} belongs to another cluster than {peer}")]
    Foreign {
        /// The contract.
        contract: ContractId,
        /// The cluster that it was to be admitted for.
        peer: ClusterId,
    },
    /// The amounts are none.
    #[error("the amounts cannot be sold: {0}")]
    Amounts(ResourceProblems),
}

impl Sale {
    /// What the terms of a contract claim.
    pub fn of(terms: &Terms, pot: Pot, since: Timestamp) -> Self {
        Self {
            contract: terms.contract.clone(),
            sequence: terms.sequence,
            peer: terms.consumer.id.clone(),
            pot,
            resources: terms.resources.clone(),
            pools: terms.pools.iter().map(|(name, pool)| (name.clone(), pool.resources.clone())).collect(),
            since,
        }
    }

    fn part(&self, part: Part<'_>) -> &Resources {
        const NOTHING: &Resources = &Resources::new();
        match part {
            Part::All => &self.resources,
            Part::Pool(pool) => self.pools.get(pool).unwrap_or(NOTHING),
        }
    }
}

/// What of each sale is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part<'a> {
    /// All of it.
    All,
    /// What it has of one pool.
    Pool(&'a PoolName),
}

impl Ledger {
    /// Admits a sale as a proposal if what it adds is still there. Admitting the same sale again changes nothing.
    ///
    /// A resource of which an amendment wants no more than the contract has from the pot already is never refused:
    /// giving back must always be possible, also when there is less than was sold.
    pub fn admit(&self, limits: &Limits, sale: Sale) -> Result<Self, NotAdmitted> {
        sale.resources.clone().refuse_negative().into_result().map_err(NotAdmitted::Amounts)?;
        if let Some(entry) = self.entries.get(&sale.contract) {
            if entry.has(&sale) {
                return Ok(self.clone());
            }
            entry.check_order(&sale)?;
        }
        let in_pot = |there: &Sale| limits.counts_against(&sale.pot, &there.pot);
        let mut shortfall = self.excess(Part::All, &sale, in_pot, &limits.pot).max(&self.excess(
            Part::All,
            &sale,
            |_| true,
            &limits.total,
        ));
        for pool in sale.pools.keys() {
            const NONE: &Resources = &Resources::new();
            let limit = limits.pools.get(pool).unwrap_or(NONE);
            shortfall = shortfall.max(&self.excess(Part::Pool(pool), &sale, in_pot, limit));
        }
        if !shortfall.is_empty() {
            return Err(NotAdmitted::Shortfall(shortfall));
        }
        Ok(self.with_proposal(sale))
    }

    /// Makes a proposal standing; what stood before is gone. Nothing happens if there is no such proposal.
    #[must_use]
    pub fn confirm(&self, contract: &str, sequence: u64) -> Self {
        self.changed(contract, |entry| match entry {
            Entry::Proposed(proposed) | Entry::Amending { proposed, .. } if proposed.sequence == sequence => {
                Some(Entry::Standing(proposed))
            }
            other => Some(other),
        })
    }

    /// Forgets a proposal; what stood before stands. Nothing happens if there is no such proposal.
    #[must_use]
    pub fn abandon(&self, contract: &str, sequence: u64) -> Self {
        self.changed(contract, |entry| match entry {
            Entry::Proposed(proposed) if proposed.sequence == sequence => None,
            Entry::Amending { standing, proposed } if proposed.sequence == sequence => {
                Some(Entry::Standing(standing))
            }
            other => Some(other),
        })
    }

    /// Forgets a contract altogether.
    #[must_use]
    pub fn end(&self, contract: &str) -> Self {
        let mut ledger = self.clone();
        ledger.entries.remove(contract);
        ledger
    }

    /// Puts a sale in that was admitted before, without asking: for making the ledger anew from contracts. A later
    /// amendment replaces an earlier one, so that the order does not matter.
    #[must_use]
    pub fn restore(&self, sale: Sale, standing: bool) -> Self {
        let mut ledger = self.clone();
        ledger.put(sale, standing);
        ledger
    }

    fn put(&mut self, sale: Sale, standing: bool) {
        let contract = sale.contract.clone();
        let (stood, waited) = match self.entries.remove(&contract) {
            None => (None, None),
            Some(Entry::Proposed(proposed)) => (None, Some(proposed)),
            Some(Entry::Standing(standing)) => (Some(standing), None),
            Some(Entry::Amending { standing, proposed }) => (Some(standing), Some(proposed)),
        };
        let entry = if standing {
            Entry::made_of(later(stood, sale), waited)
        } else {
            let proposed = later(waited, sale);
            match stood {
                None => Entry::Proposed(proposed),
                Some(stood) => Entry::made_of(stood, Some(proposed)),
            }
        };
        self.entries.insert(contract, entry);
    }

    /// What is reserved in all.
    pub fn sold(&self) -> Resources {
        self.sum(|_| true)
    }

    /// What is reserved for a peer.
    pub fn sold_to(&self, peer: &str) -> Resources {
        self.sum(|sale| sale.peer.as_str() == peer)
    }

    /// What is reserved for the sales that `counts` says yes to.
    pub(crate) fn sum(&self, counts: impl Fn(&Sale) -> bool) -> Resources {
        self.sum_of(Part::All, counts)
    }

    fn sum_of(&self, part: Part<'_>, counts: impl Fn(&Sale) -> bool) -> Resources {
        let mut sum = Resources::new();
        self.entries.values().for_each(|entry| sum.accumulate(&entry.reserved(part, &counts)));
        sum
    }

    /// What is reserved of a part for each peer that has a sale which `counts` says yes to.
    pub(crate) fn sum_by_peer(
        &self,
        part: Part<'_>,
        counts: impl Fn(&Sale) -> bool,
    ) -> BTreeMap<&ClusterId, Resources> {
        let mut sums: BTreeMap<&ClusterId, Resources> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| entry.sales().any(&counts)) {
            sums.entry(&entry.latest().peer).or_default().accumulate(&entry.reserved(part, &counts));
        }
        sums
    }

    /// All sales, standing or proposed.
    pub fn sales(&self) -> impl Iterator<Item = &Sale> {
        self.entries.values().flat_map(Entry::sales)
    }

    /// By how much the sales that `counts` says yes to exceed `limit` once `sale` is among them; only the resources
    /// of which the sale adds to what its contract has.
    fn excess(
        &self,
        part: Part<'_>,
        sale: &Sale,
        counts: impl Fn(&Sale) -> bool,
        limit: &Resources,
    ) -> Resources {
        let mine = |there: &Sale| there.contract == sale.contract;
        let already = self.sum_of(part, |there| mine(there) && counts(there));
        let others = self.sum_of(part, |there| !mine(there) && counts(there));
        sale.part(part)
            .iter()
            .filter(|(name, wanted)| *wanted > already.amount(name.as_str()))
            .map(|(name, wanted)| {
                let sold = others.amount(name.as_str()).saturating_add(wanted);
                (name.clone(), sold.sub_to_zero(limit.amount(name.as_str()).max(Quantity::ZERO)))
            })
            .filter(|(_, excess)| excess.is_positive())
            .collect()
    }

    fn with_proposal(&self, proposed: Sale) -> Self {
        let mut ledger = self.clone();
        let contract = proposed.contract.clone();
        let entry = match ledger.entries.remove(&contract) {
            None | Some(Entry::Proposed(_)) => Entry::Proposed(proposed),
            Some(Entry::Standing(standing) | Entry::Amending { standing, .. }) => {
                Entry::Amending { standing, proposed }
            }
        };
        ledger.entries.insert(contract, entry);
        ledger
    }

    fn changed(&self, contract: &str, change: impl FnOnce(Entry) -> Option<Entry>) -> Self {
        let mut ledger = self.clone();
        if let Some((contract, entry)) = ledger.entries.remove_entry(contract)
            && let Some(entry) = change(entry)
        {
            ledger.entries.insert(contract, entry);
        }
        ledger
    }
}

/// The later of two amendments.
fn later(known: Option<Sale>, new: Sale) -> Sale {
    match known {
        Some(known) if known.sequence > new.sequence => known,
        _ => new,
    }
}

/// Makes the ledger anew from contracts: each with whether it stands (or is proposed).
impl FromIterator<(Sale, bool)> for Ledger {
    fn from_iter<I: IntoIterator<Item = (Sale, bool)>>(sales: I) -> Self {
        let mut ledger = Self::default();
        for (sale, standing) in sales {
            ledger.put(sale, standing);
        }
        ledger
    }
}

impl Limits {
    /// Whether a sale from pot `from` counts against `pot`.
    pub(crate) fn counts_against(&self, pot: &Pot, from: &Pot) -> bool {
        from == pot || !self.pots.contains(from)
    }
}

impl Entry {
    /// What must not be sold to anybody else: the larger of what stands and what is proposed, of those that count.
    fn reserved(&self, part: Part<'_>, counts: impl Fn(&Sale) -> bool) -> Resources {
        match self {
            Self::Amending { standing, proposed } if counts(standing) && counts(proposed) => {
                standing.part(part).max(proposed.part(part))
            }
            Self::Amending { standing: sale, .. } | Self::Proposed(sale) | Self::Standing(sale)
                if counts(sale) =>
            {
                sale.part(part).clone()
            }
            Self::Amending { proposed: sale, .. } if counts(sale) => sale.part(part).clone(),
            _ => Resources::new(),
        }
    }

    /// A proposal that was confirmed meanwhile is none any more.
    fn made_of(standing: Sale, proposed: Option<Sale>) -> Self {
        match proposed {
            Some(proposed) if proposed.sequence > standing.sequence => Self::Amending { standing, proposed },
            _ => Self::Standing(standing),
        }
    }

    fn sales(&self) -> impl Iterator<Item = &Sale> {
        let (first, second) = match self {
            Self::Proposed(sale) | Self::Standing(sale) => (sale, None),
            Self::Amending { standing, proposed } => (standing, Some(proposed)),
        };
        std::iter::once(first).chain(second)
    }

    const fn latest(&self) -> &Sale {
        match self {
            Self::Proposed(sale) | Self::Standing(sale) | Self::Amending { proposed: sale, .. } => sale,
        }
    }

    const fn standing(&self) -> Option<&Sale> {
        match self {
            Self::Proposed(_) => None,
            Self::Standing(sale) | Self::Amending { standing: sale, .. } => Some(sale),
        }
    }

    fn has(&self, sale: &Sale) -> bool {
        self.standing() == Some(sale) || self.latest() == sale
    }

    fn check_order(&self, sale: &Sale) -> Result<(), NotAdmitted> {
        let contract = || sale.contract.clone();
        if self.latest().peer != sale.peer {
            return Err(NotAdmitted::Foreign { contract: contract(), peer: sale.peer.clone() });
        }
        match self.standing() {
            Some(standing) if standing.sequence >= sale.sequence => {
                let (sequence, standing) = (sale.sequence, standing.sequence);
                Err(NotAdmitted::Stale { contract: contract(), sequence, standing })
            }
            _ => Ok(()),
        }
    }
}
