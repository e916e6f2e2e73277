//! How much of each resource.

use std::collections::{BTreeMap, BTreeSet};

use super::explain::Lines;
use super::nodes::Nodes;
use super::{Peer, Percent, Share, Sharing};
use crate::capacity::{Capacity, NodeCount, Picks, Pool};
use crate::ledger::{Ledger, Limits, Part, Pot, Sale};
use crate::names::PoolName;
use crate::pools::{self, Pools};
use crate::quantity::{Quantity, Ratio, Rounding};
use crate::resources::{ResourceName, Resources};
use crate::selector::Selector;

/// Always shared: nothing runs without.
pub(super) const PODS: &str = "pods";

/// The question, with what is the same for all resources.
pub(super) struct Question<'a> {
    pub(super) sharing: &'a Sharing,
    pub(super) default_percentage: Percent,
    pub(super) pot: Pot,
    pub(super) pots: BTreeSet<Pot>,
    pub(super) peer: &'a Peer,
    pub(super) capacity: &'a Capacity,
    pub(super) ledger: &'a Ledger,
}

/// What comes out for all resources.
pub(super) struct Amounts {
    pub(super) offered: Resources,
    pub(super) pools: Pools,
    pub(super) limits: Limits,
}

/// What there is on some nodes, and what of it belongs to other peers.
struct Side {
    pool: Pool,
    /// Sold to others.
    sold: Resources,
    /// What others use beyond what they were sold.
    overuse: Resources,
}

impl Question<'_> {
    pub(super) fn answer(&self, lines: &mut Lines) -> Amounts {
        let mut limits = Limits { pots: self.pots.clone(), ..Limits::default() };
        let shared = Nodes::Shared(self.sharing);
        let pot = self.side(&shared, Part::All, |sale| limits.counts_against(&self.pot, &sale.pot));
        let all = self.side(&Selector::everything(), Part::All, |_| true);
        lines.say(nodes(self.capacity.count(&shared)));
        let left = self.left_in_pools(&mut limits);

        let mut amounts = Amounts { offered: Resources::new(), pools: Pools::new(), limits };
        for name in self.names(&pot.pool) {
            let share = self.sharing.of(&name);
            let in_pot = self.pot_of(&name, &share, &pot, lines);
            let in_all = total_of(&name, &share, &all);
            amounts.limits.pot.insert(name.clone(), in_pot);
            amounts.limits.total.insert(name.clone(), in_all);
            let offered = self.offer_of(&name, &share, (in_pot, &pot), (in_all, &all), lines);
            let unsold = (!left.is_empty()).then(|| sum_of(&name, &left));
            let offered = capped(offered, unsold, &name, "at most, unsold in the pools", lines);
            lines.amount(&name, "offered", offered);
            if offered.is_positive() {
                amounts.offered.insert(name.clone(), offered.with_format(name.format()));
            }
        }
        self.share_out(&left, &mut amounts, lines);
        amounts
    }

    /// What each pool has left for the asker, in whole portions; notes what it may have sold in all.
    fn left_in_pools(&self, limits: &mut Limits) -> BTreeMap<PoolName, Resources> {
        let mut left = BTreeMap::new();
        for pool in &self.sharing.pools {
            let counts = |sale: &Sale| limits.counts_against(&self.pot, &sale.pot);
            let side = self.side(&Nodes::Pool(self.sharing, &pool.name), Part::Pool(&pool.name), counts);
            let (mut most, mut rest) = (Resources::new(), Resources::new());
            for name in self.names(&side.pool) {
                let of = |list: &Resources| list.amount(name.as_str());
                let share = self.sharing.of(&name);
                let percentage = share.percentage.unwrap_or(self.default_percentage);
                let pot =
                    share.portion_of(of(&side.pool.free), percentage, &name).sub_to_zero(of(&side.overuse));
                rest.insert(name.clone(), floor(pot.sub_to_zero(of(&side.sold)), Ratio::ONE, &name));
                most.insert(name, pot);
            }
            limits.pools.insert(pool.name.clone(), most);
            left.insert(pool.name.clone(), rest);
        }
        left
    }

    /// Shares out what is offered over the pools. One of which nothing but places for pods would be left is not offered.
    fn share_out(&self, left: &BTreeMap<PoolName, Resources>, amounts: &mut Amounts, lines: &mut Lines) {
        let mut parts = pools::split(&amounts.offered, left);
        for pool in &self.sharing.pools {
            let Some(resources) = parts.remove(&pool.name) else { continue };
            if resources.iter().all(|(name, _)| name.as_str() == PODS) {
                amounts.offered = amounts.offered.sub_to_zero(&resources);
                continue;
            }
            lines.say(format!("pool {}: {resources}", pool.name));
            amounts.pools.insert(pool.name.clone(), pools::Pool { resources, labels: pool.labels.clone() });
        }
        amounts.offered.retain(|_, amount| amount.is_positive());
    }

    /// What the nodes have for the clusters whose sales count, the asker being one of them.
    fn side(&self, nodes: &impl Picks, part: Part<'_>, counts: impl Fn(&Sale) -> bool) -> Side {
        let mut sold = self.ledger.sum_by_peer(part, counts);
        sold.remove(&self.peer.id);
        let pool = self.capacity.pool(nodes, |peer| *peer == self.peer.id || sold.contains_key(peer));
        let used = self.capacity.used_by_peers(nodes);
        let mut side = Side { pool, sold: Resources::new(), overuse: Resources::new() };
        for (other, sold) in sold {
            side.sold.accumulate(&sold);
            if let Some(used) = used.get(other) {
                side.overuse.accumulate(&used.sub_to_zero(&sold));
            }
        }
        side
    }

    fn names(&self, pool: &Pool) -> BTreeSet<ResourceName> {
        let there = pool.allocatable.iter().map(|(name, _)| name);
        let coming = self.sharing.particular.iter().filter(|(_, share)| share.autoscaled.is_positive());
        let all = there.chain(coming.map(|(name, _)| name));
        all.filter(|name| name.as_str() == PODS || self.sharing.names.matches(name.as_str()))
            .cloned()
            .collect()
    }

    /// What the pot may have sold in all.
    fn pot_of(&self, name: &ResourceName, share: &Share, side: &Side, lines: &mut Lines) -> Quantity {
        let of = |list: &Resources| list.amount(name.as_str());
        lines.amount(name, "allocatable on these nodes", of(&side.pool.allocatable));
        lines.if_any(name, "requested by local pods", -of(&side.pool.local));
        lines.if_any(name, "used by clusters that do not share this pot", -of(&side.pool.foreign));
        let requested = of(&side.pool.local).saturating_add(of(&side.pool.foreign));
        let overdrawn =
            of(&side.pool.free).saturating_add(-of(&side.pool.allocatable)).saturating_add(requested);
        lines.if_any(
            name,
            "requested in excess on overdrawn nodes, which takes nothing from the others",
            overdrawn,
        );
        lines.if_any(name, "an autoscaler can add", share.autoscaled);
        lines.if_any(name, "kept back", -share.reserve);
        let base = of(&side.pool.free).saturating_add(share.autoscaled).sub_to_zero(share.reserve);

        let percentage = share.percentage.unwrap_or(self.default_percentage);
        let pot = share.portion_of(base, percentage, name);
        lines.amount(name, share.portion_text(base, percentage, name), pot);
        let pot = capped(pot, share.cap, name, "at most, for all clusters together", lines);
        lines.if_any(name, "used by others beyond what they were sold", -of(&side.overuse));
        pot.sub_to_zero(of(&side.overuse))
    }

    fn offer_of(
        &self,
        name: &ResourceName,
        share: &Share,
        (in_pot, pot): (Quantity, &Side),
        (in_all, all): (Quantity, &Side),
        lines: &mut Lines,
    ) -> Quantity {
        let of = |list: &Resources| list.amount(name.as_str());
        lines.if_any(name, "sold to other clusters", -of(&pot.sold));
        let left = in_pot.sub_to_zero(of(&pot.sold));
        let left = capped(
            left,
            Some(in_all.sub_to_zero(of(&all.sold))),
            name,
            "at most, unsold in the whole cluster",
            lines,
        );
        let per_peer = share.per_peer.map(|percent| floor(in_pot, percent.ratio(), name));
        let left = capped(left, per_peer, name, "at most, by the percentage for one cluster", lines);
        let left = capped(left, share.per_peer_cap, name, "at most, for one cluster", lines);
        capped(left, self.peer.wants.get(name.as_str()), name, "at most, as asked for", lines)
            .max(Quantity::ZERO)
    }
}

/// What all pools have of one resource.
fn sum_of(name: &ResourceName, pools: &BTreeMap<PoolName, Resources>) -> Quantity {
    pools.values().fold(Quantity::ZERO, |sum, pool| sum.saturating_add(pool.amount(name.as_str())))
}

/// What all pots together may have sold in all, by the overcommit of the policy that is asked.
fn total_of(name: &ResourceName, share: &Share, all: &Side) -> Quantity {
    let free = all.pool.free.amount(name.as_str()).saturating_add(share.autoscaled);
    floor(free, share.overcommit, name).sub_to_zero(all.overuse.amount(name.as_str()))
}

/// The smaller of an amount and a limit, in whole portions, with a line if the limit is what counts.
fn capped(
    amount: Quantity,
    limit: Option<Quantity>,
    name: &ResourceName,
    text: &str,
    lines: &mut Lines,
) -> Quantity {
    match limit.map(|limit| floor(limit, Ratio::ONE, name)) {
        Some(limit) if limit < amount => {
            lines.amount(name, text, limit);
            limit
        }
        _ => amount,
    }
}

/// Whole portions in a share; what is beyond reckoning is nothing, so that it cannot be sold.
fn floor(amount: Quantity, ratio: Ratio, name: &ResourceName) -> Quantity {
    amount.scale_to(ratio, name.portion(), Rounding::TowardZero).unwrap_or_default()
}

impl Sharing {
    pub(super) fn of(&self, name: &ResourceName) -> Share {
        self.particular.get(name).copied().unwrap_or(self.every)
    }
}

impl Percent {
    pub(super) fn ratio(self) -> Ratio {
        Ratio::percent(self.get().into())
    }
}

impl Share {
    /// The share, rounded as told, and never more than there is times the overcommit.
    fn portion_of(&self, base: Quantity, percentage: Percent, name: &ResourceName) -> Quantity {
        self.rounded(base, percentage, name, self.rounding)
    }

    fn rounded(
        &self,
        base: Quantity,
        percentage: Percent,
        name: &ResourceName,
        rounding: Rounding,
    ) -> Quantity {
        // Both are small: the percentage at most 100, the overcommit thousandths.
        let numerator = u64::from(percentage.get()).saturating_mul(self.overcommit.numerator());
        let denominator = self.overcommit.denominator().saturating_mul(100);
        let ratio = Ratio::new(numerator, denominator).unwrap_or(Ratio::percent(0));
        let share = base.scale_to(ratio, name.portion(), rounding).unwrap_or_default();
        share.min(floor(base, self.overcommit, name))
    }

    fn portion_text(&self, base: Quantity, percentage: Percent, name: &ResourceName) -> String {
        let base = base.with_format(name.format());
        let mut text = format!("{percentage} of {base}");
        if self.overcommit != Ratio::ONE {
            text.push_str(&format!(", sold {} times", decimal(self.overcommit)));
        }
        let up = self.rounded(base, percentage, name, Rounding::AwayFromZero);
        let down = self.rounded(base, percentage, name, Rounding::TowardZero);
        if up != down {
            let how = match self.rounding {
                Rounding::TowardZero => "down",
                Rounding::AwayFromZero => "up",
                Rounding::Nearest => "to the nearest",
            };
            text.push_str(&format!(", rounded {how}"));
        }
        text
    }
}

/// A ratio of thousandths as a decimal number: 1.5.
fn decimal(ratio: Ratio) -> String {
    let thousandths = ratio.numerator() * 1000 / ratio.denominator();
    let text = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn nodes(count: NodeCount) -> String {
    let mut text = match count.counted {
        1 => "1 node counts".to_owned(),
        counted => format!("{counted} nodes count"),
    };
    let others = [
        (count.not_selected, "not selected by the policy"),
        (count.not_ready, "not ready"),
        (count.unschedulable, "unschedulable"),
        (count.virtual_nodes, "virtual"),
    ];
    let others: Vec<String> =
        others.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")).collect();
    if !others.is_empty() {
        text.push_str(&format!("; not counted: {}", others.join(", ")));
    }
    text
}
