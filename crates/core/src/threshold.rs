//! When a new offer is different enough to be told, and how often it may be told.
//!
//! Capacity changes with every pod. An offer is written anew when an amount changed by more than some percentage of
//! what was offered, when a resource came or went, or when anything else of it changed; and then at a bounded pace.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;

use crate::capacity::LargestPod;
use crate::fraction;
use crate::names::PoolName;
use crate::policy::{Offer, Percent};
use crate::pools::{Pool, Pools};
use crate::quantity::Quantity;
use crate::resources::{ResourceName, Resources};
use crate::span::Span;

#[cfg(test)]
mod tests;

/// One respect in which two offers differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// There is more or less of a resource, or it came or went (nothing before or after).
    Amount {
        /// The resource.
        resource: ResourceName,
        /// How much was offered.
        old: Quantity,
        /// How much is to be offered.
        new: Quantity,
    },
    /// The largest pod that fits is another one. It is for information and no part of a contract.
    LargestPod,
    /// The prices.
    Prices,
    /// Storage classes, services or images.
    Extras,
    /// What the pools have, or which there are.
    Pools,
    /// The labels of the virtual node.
    Labels,
    /// The images that the nodes have. They are for information and no part of a contract.
    Images,
    /// What a contract would say.
    Conditions,
    /// The policy that it comes from, or its end.
    Policy,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount { resource, old, new } => write!(formatter, "{resource} {old} → {new}"),
            Self::LargestPod => formatter.write_str("largest pod"),
            Self::Prices => formatter.write_str("prices"),
            Self::Extras => formatter.write_str("storage classes, services or images"),
            Self::Pools => formatter.write_str("pools"),
            Self::Labels => formatter.write_str("labels"),
            Self::Images => formatter.write_str("images"),
            Self::Conditions => formatter.write_str("contract conditions"),
            Self::Policy => formatter.write_str("policy or end"),
        }
    }
}

/// In what respects `new` differs from `old` enough to be told; empty if in none.
pub fn differences(old: &Offer, new: &Offer, threshold: Percent) -> Vec<Difference> {
    let mut differences = amount_differences(&old.resources, &new.resources, threshold);
    let pod_differs = largest_pod_differs(&old.largest_pod, &new.largest_pod, threshold)
        || old.largest_pods.iter().any(|(pool, old)| {
            new.largest_pods.get(pool).is_some_and(|new| largest_pod_differs(old, new, threshold))
        });
    let others = [
        (pools_differ(&old.pools, &new.pools, threshold), Difference::Pools),
        (pod_differs, Difference::LargestPod),
        (old.prices != new.prices, Difference::Prices),
        (old.extras != new.extras, Difference::Extras),
        (old.conditions != new.conditions, Difference::Conditions),
        (old.policy != new.policy || old.ends != new.ends, Difference::Policy),
    ];
    differences.extend(others.into_iter().filter(|(differs, _)| *differs).map(|(_, difference)| difference));
    differences
}

/// Whether enough more or less fits into one pod.
pub fn largest_pod_differs(old: &LargestPod, new: &LargestPod, threshold: Percent) -> bool {
    let pairs = [(&old.on_one_node, &new.on_one_node), (&old.of_each, &new.of_each)];
    pairs.into_iter().any(|(old, new)| !amount_differences(old, new, threshold).is_empty())
}

/// Whether there are other pools, or one has other labels, or enough more or less of something.
pub fn pools_differ(old: &Pools, new: &Pools, threshold: Percent) -> bool {
    let differs = |(name, old): (_, &Pool)| {
        new.get::<PoolName>(name).is_none_or(|new| {
            old.labels != new.labels
                || !amount_differences(&old.resources, &new.resources, threshold).is_empty()
        })
    };
    old.len() != new.len() || old.iter().any(differs)
}

/// Whether `new` should be told to somebody who was told `old`.
pub fn differs_enough(old: &Offer, new: &Offer, threshold: Percent) -> bool {
    !differences(old, new, threshold).is_empty()
}

/// The amounts that changed by more than the threshold, came or went.
pub fn amount_differences(old: &Resources, new: &Resources, threshold: Percent) -> Vec<Difference> {
    let names: BTreeSet<&ResourceName> = old.iter().chain(new.iter()).map(|(name, _)| name).collect();
    names
        .into_iter()
        .map(|name| (name, old.amount(name.as_str()), new.amount(name.as_str())))
        .filter(|(_, old, new)| amount_differs(*old, *new, threshold))
        .map(|(resource, old, new)| Difference::Amount { resource: resource.clone(), old, new })
        .collect()
}

/// More than so many hundredths of what it was, in either direction. What came or went always differs.
fn amount_differs(old: Quantity, new: Quantity, threshold: Percent) -> bool {
    if old.is_zero() || new.is_zero() {
        return old != new;
    }
    let change = old.nanos().abs_diff(new.nanos());
    let allowed = (u128::from(threshold.get()), 100);
    fraction::compare((change, old.nanos().unsigned_abs()), allowed).is_gt()
}

/// How often something may happen: so many times at once, then once every so often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How many times at once; at least one.
    pub burst: u32,
    /// The time between two in the long run.
    pub every: Span,
}

/// Keeps a pace. It is a value without a clock: small enough to keep one for each peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limiter {
    /// When all that happened is paid off at one every so often.
    paid_off: Timestamp,
}

impl Default for Limiter {
    fn default() -> Self {
        Self { paid_off: Timestamp::MIN }
    }
}

impl Limiter {
    /// When it may happen next: now, or later.
    pub fn next_allowed(&self, pace: Pace, now: Timestamp) -> Timestamp {
        let credit = pace.credit();
        // A clock that was put back must not lock anybody out for longer than the debt can be.
        let paid_off = self.paid_off.min(pace.every.after(credit_after(credit, now)));
        credit.map_or(paid_off, |credit| credit.before(paid_off)).max(now)
    }

    /// The limiter after it happened.
    #[must_use]
    pub fn taken(&self, pace: Pace, now: Timestamp) -> Self {
        let most = pace.every.after(credit_after(pace.credit(), now));
        Self { paid_off: pace.every.after(self.paid_off.max(now)).min(most) }
    }
}

impl Pace {
    /// How far ahead of the pace one may be.
    fn credit(self) -> Option<Span> {
        Span::from_seconds(self.every.seconds().saturating_mul(u64::from(self.burst.saturating_sub(1))))
    }
}

fn credit_after(credit: Option<Span>, now: Timestamp) -> Timestamp {
    credit.map_or(now, |credit| credit.after(now))
}
