//! What the cluster is called already, and a name for one that is not called anything.

use std::hash::{BuildHasher, Hasher, RandomState};

use liqo_api::names::MAX_LABEL;

use super::Found;
use super::distribution::SANDBOX_LABEL;
use crate::facts::Facts;

/// Names that every cluster of a distribution has: they tell nothing apart.
const EVERYBODYS: [&str; 5] = ["default", "kubernetes", "local", "cluster", "in-cluster"];

/// The name by which the cluster is known to the one who installs.
pub(super) fn find(facts: &Facts) -> Option<Found<String>> {
    if let Some(sandbox) = &facts.sandbox {
        return Some(Found::new(
            sandbox.cluster.as_str(),
            format!("the running sandbox {}", sandbox.sandbox),
        ));
    }
    let labelled = |label: &str| {
        let name = facts.nodes.iter().find_map(|node| node.labels.get(label))?;
        Some(Found::new(tidy(name)?, format!("the nodes' label {label}")))
    };
    labelled(SANDBOX_LABEL)
        .or_else(|| labelled("alpha.eksctl.io/cluster-name"))
        .or_else(|| kind(facts))
        .or_else(|| {
            let context = facts.context.as_deref()?;
            Some(Found::new(tidy(short(context))?, format!("the kubeconfig's context {context}")))
        })
}

/// kind names its nodes after the cluster.
fn kind(facts: &Facts) -> Option<Found<String>> {
    let node = facts.nodes.iter().find(|node| node.provider_id.starts_with("kind://"))?;
    let name = node.provider_id.trim_start_matches("kind://").split('/').nth(1)?;
    Some(Found::new(tidy(name)?, format!("the provider of node {}", node.name)))
}

/// The part of a context's name that means the cluster.
fn short(context: &str) -> &str {
    if context.starts_with("arn:") {
        return context.rsplit('/').next().unwrap_or(context);
    }
    if context.starts_with("gke_") {
        return context.rsplit('_').next().unwrap_or(context);
    }
    context.rsplit('@').next().unwrap_or(context).trim_start_matches("kind-").trim_start_matches("k3d-")
}

/// A legal name as near to this one as possible; none if it would tell nothing.
fn tidy(name: &str) -> Option<String> {
    let legal = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let mut name: String = name.chars().map(legal).collect();
    while name.contains("--") {
        name = name.replace("--", "-");
    }
    let name: String = name.trim_matches('-').chars().take(MAX_LABEL).collect();
    let name = name.trim_end_matches('-');
    (!name.is_empty() && !EVERYBODYS.contains(&name)).then(|| name.to_owned())
}

const HOW: [&str; 16] = [
    "amber", "brave", "calm", "clear", "eager", "fair", "gentle", "green", "kind", "lively", "noble",
    "quiet", "round", "silver", "swift", "warm",
];
const WHAT: [&str; 16] = [
    "badger", "beech", "cedar", "crane", "falcon", "harbour", "island", "lark", "maple", "meadow", "otter",
    "pine", "river", "spruce", "tern", "valley",
];

/// A name that is easy to say and that hardly any other cluster has, such as `swift-otter-3f2a`.
pub fn generated() -> String {
    let bits = RandomState::new().build_hasher().finish();
    let pick = |list: &[&'static str; 16], shift: u32| list[usize::from((bits >> shift) as u8 % 16)];
    format!("{}-{}-{:04x}", pick(&HOW, 0), pick(&WHAT, 8), (bits >> 16) as u16)
}
