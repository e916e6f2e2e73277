//! Pools: parts of what is lent, each of which stands for certain nodes of the provider.
//!
//! A consumer sees each pool as a node of its own. What the pools have adds up to what is lent, resource by resource:
//! [`split`] shares out an amount so that this holds.

use std::collections::BTreeMap;

use crate::names::PoolName;
use crate::quantity::Quantity;
use crate::resources::{ResourceName, Resources};
use crate::selector::Labels;

#[cfg(test)]
mod tests;

/// Pools in a policy, an offer or a contract; each becomes a node at every consumer.
pub const MOST_POOLS: usize = 16;
/// Labels of a pool.
pub const MOST_LABELS: usize = 16;

/// What is lent of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// How much.
    pub resources: Resources,
    /// Labels for its node.
    pub labels: Labels,
}

/// Pools by their names.
pub type Pools = BTreeMap<PoolName, Pool>;

/// What all pools have together.
pub fn sum(pools: &Pools) -> Resources {
    let mut sum = Resources::new();
    pools.values().for_each(|pool| sum.accumulate(&pool.resources));
    sum
}

/// Shares out `total` over pools in proportion to what each of them `has`, and never more than that.
///
/// What the pools get adds up to `total`, or to all that they have if that is less. Nothing of a resource is not named.
pub fn split(total: &Resources, has: &BTreeMap<PoolName, Resources>) -> BTreeMap<PoolName, Resources> {
    let mut parts: BTreeMap<PoolName, Resources> =
        has.keys().map(|name| (name.clone(), Resources::new())).collect();
    for (name, amount) in total.iter() {
        let there: Vec<Quantity> = has.values().map(|it| it.amount(name.as_str())).collect();
        for (part, share) in parts.values_mut().zip(shares(name, amount, &there)) {
            if let Some(share) = share.filter(|share| share.is_positive()) {
                part.insert(name.clone(), share);
            }
        }
    }
    parts
}

/// The shares of one resource, in whole portions where these add up, else in the smallest steps.
fn shares(name: &ResourceName, amount: Quantity, there: &[Quantity]) -> Vec<Option<Quantity>> {
    let steps = |amount: Quantity, step: u128| u128::try_from(amount.nanos()).unwrap_or(0) / step;
    let (portion, step) = (name.portion(), name.granularity().nanos());
    let whole: Vec<u128> = there.iter().map(|it| steps(*it, portion)).collect();
    let enough = whole.iter().fold(0, |sum: u128, it| sum.saturating_add(*it)) >= steps(amount, portion);
    let in_portions = enough && steps(amount, portion).checked_mul(portion) == Some(steps(amount, 1));
    let (step, weights) = if in_portions {
        (portion, whole)
    } else {
        (step, there.iter().map(|it| steps(*it, step)).collect())
    };
    let shares = in_proportion(steps(amount, step), &weights).into_iter();
    let quantity = |steps: u128| {
        let nanos = steps.checked_mul(step).and_then(|nanos| i128::try_from(nanos).ok())?;
        Quantity::from_nanos(nanos, name.format())
    };
    shares.map(quantity).collect()
}

/// Whole numbers in proportion to `weights`, none above its weight. What rounding leaves goes to the first with room.
fn in_proportion(total: u128, weights: &[u128]) -> Vec<u128> {
    let sum = weights.iter().fold(0_u128, |sum, weight| sum.saturating_add(*weight));
    let total = total.min(sum);
    // Amounts too large to multiply are shared out one pool after the other, which is exact as well.
    let share = |weight: &u128| total.checked_mul(*weight).map_or(0, |product| product / sum.max(1));
    let mut shares: Vec<u128> = weights.iter().map(share).collect();
    let mut left = total.saturating_sub(shares.iter().sum());
    for (share, weight) in shares.iter_mut().zip(weights) {
        let more = left.min(weight.saturating_sub(*share));
        *share += more;
        left -= more;
    }
    shares
}
