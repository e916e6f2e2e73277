//! Whether what was promised is still there.

use std::collections::{BTreeMap, BTreeSet};

use super::nodes::Nodes;
use super::{Policy, Sharing};
use crate::capacity::{Capacity, Picks};
use crate::ledger::{Ledger, Pot, Sale, Shortage};
use crate::names::ClusterId;
use crate::quantity::{Ratio, Rounding};
use crate::resources::{ResourceName, Resources};
use crate::selector::Selector;

/// The standing contracts that are not backed by capacity any more, and by how much.
///
/// Capacity means nodes, not permission: who lowers a percentage breaks no promise by that. Overcommit and what an
/// autoscaler can add count as they did when it was sold. Each pot must be backed by the nodes of its policy, and all
/// pots together by all nodes; of two answers about one contract the worse one counts.
pub fn shortages(policies: &[Policy], capacity: &Capacity, ledger: &Ledger) -> Vec<Shortage> {
    let without_policy = Sharing::default();
    let sharing_of = |pot: &Pot| {
        let policy = policies.iter().find(|policy| Some(&policy.name) == pot.as_ref());
        policy.map_or(&without_policy, |policy| &policy.sharing)
    };
    let pots: BTreeSet<&Pot> = ledger.sales().map(|sale| &sale.pot).collect();
    let mut worst: BTreeMap<_, Shortage> = BTreeMap::new();
    let mut note = |shortages: Vec<Shortage>| {
        for shortage in shortages {
            let known = worst.entry(shortage.contract.clone()).or_insert_with(|| shortage.clone());
            known.missing = known.missing.max(&shortage.missing);
        }
    };
    for pot in &pots {
        let sharing = sharing_of(pot);
        let backing =
            backing(capacity, ledger, &Nodes::Shared(sharing), &[sharing], |sale| sale.pot == **pot);
        note(ledger.shortages(|sold_from| sold_from == *pot, &backing));
    }
    let all: Vec<&Sharing> = pots.iter().map(|pot| sharing_of(pot)).collect();
    let backing = backing(capacity, ledger, &Selector::everything(), &all, |_| true);
    note(ledger.shortages(|_| true, &backing));
    worst.into_values().collect()
}

/// What stands behind some sales. Where several policies sell the same nodes, the most generous of them decides.
fn backing(
    capacity: &Capacity,
    ledger: &Ledger,
    nodes: &impl Picks,
    sharings: &[&Sharing],
    counts: impl Fn(&Sale) -> bool,
) -> Resources {
    let holders: BTreeSet<&ClusterId> =
        ledger.sales().filter(|sale| counts(sale)).map(|sale| &sale.peer).collect();
    let there = capacity.backing(nodes, |peer| holders.contains(peer));
    let sold = ledger.sum(&counts);
    let of_each = |name: &ResourceName| {
        let amount = there.amount(name.as_str());
        let with = |sharing: &&Sharing| {
            let share = sharing.of(name);
            let all = amount.saturating_add(share.autoscaled);
            all.scale_to(share.overcommit.max_one(), 1, Rounding::TowardZero).unwrap_or(all)
        };
        (name.clone(), sharings.iter().map(with).max().unwrap_or(amount))
    };
    sold.iter().map(|(name, _)| of_each(name)).collect()
}

impl Ratio {
    /// Selling less than there is takes nothing away from what is there.
    fn max_one(self) -> Self {
        if self.numerator() < self.denominator() { Self::ONE } else { self }
    }
}
