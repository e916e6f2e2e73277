//! Capacity that shrank below what was sold: whose promise is not backed any more.

use std::cmp::Reverse;

use super::{Entry, Ledger, Pot, Sale};
use crate::names::{ClusterId, ContractId};
use crate::quantity::Quantity;
use crate::resources::{ResourceName, Resources};

/// A standing contract of which a part is not backed by capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// The contract.
    pub contract: ContractId,
    /// The consumer.
    pub peer: ClusterId,
    /// What was promised and is not there.
    pub missing: Resources,
}

impl Ledger {
    /// The standing contracts from pots that `counts` says yes to which `backing` does not suffice for.
    ///
    /// Who was promised first is served first: the latest promises are the ones that are not kept.
    pub fn shortages(&self, counts: impl Fn(&Pot) -> bool, backing: &Resources) -> Vec<Shortage> {
        let mut sales: Vec<&Sale> =
            self.entries.values().filter_map(Entry::standing).filter(|sale| counts(&sale.pot)).collect();
        sales.sort_by_key(|sale| Reverse((sale.since, sale.contract.clone())));
        let sold = sales.iter().fold(Resources::new(), |sum, sale| sum.saturating_add(&sale.resources));
        // Who has less than nothing lacks no more than all that was sold.
        let mut excess = sold.lacking_in(backing).capped_by(&sold);

        let mut missing_of = |sale: &Sale| -> Resources {
            let take = |(name, promised): (&ResourceName, Quantity)| {
                let missing = promised.min(excess.amount(name.as_str()));
                excess.insert(name.clone(), excess.amount(name.as_str()).sub_to_zero(missing));
                (name.clone(), missing)
            };
            sale.resources.iter().map(take).filter(|(_, missing)| missing.is_positive()).collect()
        };
        sales
            .into_iter()
            .map(|sale| Shortage {
                contract: sale.contract.clone(),
                peer: sale.peer.clone(),
                missing: missing_of(sale),
            })
            .filter(|shortage| !shortage.missing.is_empty())
            .collect()
    }
}
