//! How offers come about, and what would change.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use kube::ResourceExt;
use liqo_api::ForeignCluster;
use liqo_core::Resources;
use liqo_core::policy::{Evaluation, Policy, Verdict, evaluate};
use serde::Serialize;

use super::world::World;
use crate::table::Table;

/// How the offer to one cluster comes about.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explained {
    pub(super) peer: String,
    #[serde(flatten)]
    pub(super) answer: Answer,
    /// Step by step.
    pub(super) lines: Vec<String>,
}

/// What a cluster is answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    /// Offer, Refuse or NeedsApproval.
    pub(super) verdict: &'static str,
    /// Why it gets nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) policy: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) resources: BTreeMap<String, String>,
    /// The same by pool of this cluster's nodes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) pools: BTreeMap<String, BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) price: Option<String>,
}

/// What changes for one cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Change {
    pub(super) peer: String,
    pub(super) changed: bool,
    pub(super) before: Answer,
    pub(super) after: Answer,
}

impl Explained {
    pub(super) fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

impl Answer {
    fn of(verdict: &Verdict) -> Self {
        let nothing = |verdict, message: &str| Self {
            verdict,
            message: Some(message.to_owned()),
            policy: None,
            resources: BTreeMap::new(),
            pools: BTreeMap::new(),
            price: None,
        };
        match verdict {
            Verdict::Refuse(refusal) => nothing("Refuse", &refusal.message),
            Verdict::NeedsApproval(message) => nothing("NeedsApproval", message),
            Verdict::Offer(offer) => {
                let texts = |resources: &Resources| {
                    resources.iter().map(|(name, amount)| (name.to_string(), amount.to_string())).collect()
                };
                let pools = offer.pools.iter();
                let price = offer.prices.as_ref().and_then(|prices| {
                    let total = prices.total(&offer.resources).ok()?;
                    Some(format!("{} {total}", prices.currency()))
                });
                Self {
                    verdict: "Offer",
                    message: None,
                    policy: offer.policy.clone(),
                    resources: texts(&offer.resources),
                    pools: pools.map(|(name, pool)| (name.to_string(), texts(&pool.resources))).collect(),
                    price,
                }
            }
        }
    }

    fn sentence(&self) -> String {
        let words = self.message.as_deref().unwrap_or_default();
        match self.verdict {
            "Refuse" => format!("refused: {words}"),
            "NeedsApproval" => format!("waits: {words}"),
            _ => {
                let policy = self.policy.as_ref().map(|name| format!(" by {name}")).unwrap_or_default();
                let pool = |(name, part): (&String, &BTreeMap<_, _>)| format!("{name}: {}", listed(part));
                let pools: Vec<String> = self.pools.iter().map(pool).collect();
                let pools = if pools.is_empty() { String::new() } else { format!(" ({})", pools.join("; ")) };
                let price = self.price.as_deref().unwrap_or("free");
                format!("{}{pools}{policy}, {price}", listed(&self.resources))
            }
        }
    }
}

/// Amounts in a sentence, what everybody looks for first.
fn listed(resources: &BTreeMap<String, String>) -> String {
    let first = ["cpu", "memory"];
    let named = first.iter().filter_map(|name| Some((*name, resources.get(*name)?)));
    let rest = resources.iter().map(|(name, amount)| (name.as_str(), amount));
    let rest = rest.filter(|(name, _)| !first.contains(name));
    let all: Vec<String> = named.chain(rest).map(|(name, amount)| format!("{name} {amount}")).collect();
    all.join(", ")
}

fn evaluation(world: &World, policies: &[Policy], cluster: &ForeignCluster) -> Option<Evaluation> {
    let peer = world.peer(cluster)?;
    Some(evaluate(policies, world.percentage, &peer, world.stock.capacity(), &world.ledger, world.now))
}

/// How the offer to a cluster comes about with these policies.
pub(super) fn explain(world: &World, policies: &[Policy], cluster: &ForeignCluster) -> Result<Explained> {
    let peer = cluster.name_any();
    let found = evaluation(world, policies, cluster);
    let found = found.with_context(|| {
        format!("it is not known yet who {peer} is; liqoctl status peer {peer} shows more")
    })?;
    Ok(Explained {
        peer,
        answer: Answer::of(&found.verdict),
        lines: found.lines.iter().map(ToString::to_string).collect(),
    })
}

/// What would change for each cluster.
pub(super) fn changes(world: &World, then: &[Policy]) -> Vec<Change> {
    let change = |cluster: &ForeignCluster| {
        let before = Answer::of(&evaluation(world, world.stock.policies(), cluster)?.verdict);
        let after = Answer::of(&evaluation(world, then, cluster)?.verdict);
        Some(Change { peer: cluster.name_any(), changed: before != after, before, after })
    };
    world.clusters.iter().filter_map(change).collect()
}

pub(super) fn changes_text(changes: &[Change], wide: bool) -> String {
    let shown: Vec<&Change> = changes.iter().filter(|change| wide || change.changed).collect();
    if shown.is_empty() {
        return match changes.len() {
            0 => "no other cluster is known, so that nothing changes for anybody now\n".to_owned(),
            _ => "nothing would change for any known cluster now\n".to_owned(),
        };
    }
    let mut table = Table::new(["PEER", "NOW", "THEN"]);
    for change in shown {
        let then = if change.changed { change.after.sentence() } else { "the same".to_owned() };
        table.row([change.peer.clone(), change.before.sentence(), then]);
    }
    table.to_string()
}
