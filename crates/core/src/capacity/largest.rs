//! The largest single pod that fits: a sum alone lies about fragmentation.
//!
//! Ten nodes with one free core each are ten free cores and no room for a pod that wants two. "Largest" has no one
//! meaning for several resources at once, so there are two honest answers:
//!
//! - [`LargestPod::on_one_node`]: one pod that fits as a whole, now. It is all that is free on the roomiest node.
//!   Which node is the roomiest is decided by CPU and memory, which every pod needs: a node's room is the smaller
//!   of its shares of all free CPU and of all free memory (of what is offered at all, where one of them is not).
//!   A node without a place for one more pod has no room.
//! - [`LargestPod::of_each`]: for each resource alone, the most that is free of it on any one node. A pod that wants
//!   more of one resource than this fits nowhere; one that stays below may still not fit, if it wants several.
//!
//! Here nobody's use counts as free, not even the asker's: its own pods are where they are.

use std::cmp::Ordering;

use super::{Capacity, PODS, Picks, left, sum};
use crate::fraction;
use crate::quantity::Quantity;
use crate::resources::Resources;

/// The largest pods that fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LargestPod {
    /// What one pod can have as a whole on the roomiest node.
    pub on_one_node: Resources,
    /// The most of each resource alone on any node.
    pub of_each: Resources,
}

impl Capacity {
    /// The largest pods that fit on the selected nodes, of the resources in `offered` and never more than that.
    pub fn largest_pod(&self, selector: &impl Picks, offered: &Resources) -> LargestPod {
        let nodes: Vec<Resources> = self
            .selected(selector)
            .map(|(node, load)| {
                let mut requested = load.local.clone();
                load.peers.values().for_each(|used| requested.accumulate(used));
                left(node, &requested)
            })
            .filter(|free| free.get(PODS).is_none_or(Quantity::is_positive))
            .collect();
        let within = |free: &Resources| -> Resources {
            let amounts = offered.iter().filter(|(name, _)| name.as_str() != PODS);
            amounts
                .map(|(name, most)| (name.clone(), free.amount(name.as_str()).min(most)))
                .filter(|(_, amount)| amount.is_positive())
                .collect()
        };
        let total = sum(nodes.iter());
        let deciding = deciding(offered);
        let roomiest = nodes.iter().reduce(|best, other| {
            if room(other, &total, &deciding).compare(&room(best, &total, &deciding)).is_gt() {
                other
            } else {
                best
            }
        });
        let of_each = nodes.iter().fold(Resources::new(), |most, free| most.max(free));
        LargestPod { on_one_node: roomiest.map(within).unwrap_or_default(), of_each: within(&of_each) }
    }
}

/// The resources by which the roomiest node is found.
fn deciding(offered: &Resources) -> Vec<&str> {
    let common: Vec<&str> =
        ["cpu", "memory"].into_iter().filter(|name| offered.get(name).is_some()).collect();
    if common.is_empty() { offered.iter().map(|(name, _)| name.as_str()).collect() } else { common }
}

/// A share of what is free, as a fraction.
struct Share(u128, u128);

impl Share {
    fn compare(&self, other: &Self) -> Ordering {
        fraction::compare((self.0, self.1), (other.0, other.1))
    }
}

/// The smallest of the node's shares.
fn room(free: &Resources, total: &Resources, deciding: &[&str]) -> Share {
    let share = |name: &&str| {
        Share(free.amount(name).nanos().unsigned_abs(), total.amount(name).nanos().unsigned_abs())
    };
    deciding.iter().map(share).min_by(Share::compare).unwrap_or(Share(0, 1))
}
