//! On which nodes of the providers pods of ours run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use liqo_providers::Health;
use liqo_providers::nodes::{Behind, NodeKey, Nodes};

use super::index::Pods;

#[cfg(test)]
mod tests;

/// How many pods of a node are known by name, to ask by another where one did not help.
const MOST_PODS: usize = 3;
/// How long the provider's scheduler may take before a pod counts as one that finds no node.
const PLACING: SignedDuration = SignedDuration::from_secs(10);

/// On which nodes of the providers pods of ours run.
#[derive(Debug, Default)]
pub(crate) struct Footprint {
    /// By provider and node.
    nodes: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Tread>>,
    /// By virtual node.
    behind: BTreeMap<Arc<str>, Reach>,
}

/// A node of a provider with pods of ours.
#[derive(Debug, Default)]
struct Tread {
    /// Whether one of them says that the node does not answer.
    said_gone: bool,
    /// Some that run: the namespaces at home and their names.
    pods: Vec<(Box<str>, Box<str>)>,
}

/// What is behind a virtual node.
#[derive(Debug, Default)]
struct Reach {
    provider: Arc<str>,
    nodes: BTreeSet<Arc<str>>,
    unplaced: bool,
    /// Whether it is not known yet what is there.
    unseen: bool,
}

impl Footprint {
    /// Where pods are `now`.
    pub(crate) fn of(pods: &Pods, now: Timestamp) -> Self {
        let mut footprint = Self::default();
        let unseen = pods.unseen_providers();
        for (name, node) in pods.nodes() {
            let unseen = unseen.contains(&*node.provider);
            let reach = Reach { provider: Arc::from(&*node.provider), unseen, ..Reach::default() };
            footprint.behind.insert(Arc::from(&**name), reach);
        }
        for (key, home) in pods.homes() {
            let (Some(reach), Some(namespace)) = (footprint.behind.get_mut(&home.node), key.namespace())
            else {
                continue;
            };
            let place = pods.place(namespace, &reach.provider);
            let Some(remote) = place.and_then(|place| place.pods.get(key.name())) else { continue };
            let Some(node) = remote.node.as_deref() else {
                reach.unplaced |= now.duration_since(remote.since) >= PLACING;
                continue;
            };
            let nodes = footprint.nodes.entry(Arc::clone(&reach.provider)).or_default();
            if !nodes.contains_key(node) {
                nodes.insert(Arc::from(node), Tread::default());
            }
            if !reach.nodes.contains(node) {
                reach.nodes.insert(Arc::from(node));
            }
            let Some(tread) = nodes.get_mut(node) else { continue };
            tread.said_gone |= home.cut_off.as_deref() == Some(node);
            if remote.runs && tread.pods.len() < MOST_PODS {
                tread.pods.push((namespace.into(), key.name().into()));
            }
        }
        footprint
    }

    /// The nodes, with whether each was said to be gone.
    pub(crate) fn used(&self) -> BTreeMap<NodeKey, bool> {
        let all = self.nodes.iter().flat_map(|(provider, nodes)| {
            let key = |name: &Arc<str>| (Arc::clone(provider), Arc::clone(name));
            nodes.iter().map(move |(name, tread)| (key(name), tread.said_gone))
        });
        all.collect()
    }

    /// A pod by which this node can be asked: another one for each `attempt`.
    pub(crate) fn pod(&self, (provider, node): &NodeKey, attempt: u32) -> Option<(&str, &str)> {
        let pods = &self.nodes.get(provider)?.get(node)?.pods;
        let turn = usize::try_from(attempt).unwrap_or_default().checked_rem(pods.len())?;
        pods.get(turn).map(|(namespace, name)| (&**namespace, &**name))
    }

    /// What is behind each virtual node, as far as it can be told.
    pub(crate) fn behind(&self, known: &Nodes) -> BTreeMap<Arc<str>, Behind> {
        let behind = |reach: &Reach| {
            let told = reach.nodes.iter().filter(|node| !known.is_mute(&reach.provider, node));
            let mut nodes: Vec<_> = told.map(|node| known.health(&reach.provider, node)).collect();
            nodes.extend(reach.unseen.then_some(Health::Unknown));
            Behind { nodes, unplaced: reach.unplaced }
        };
        self.behind.iter().map(|(name, reach)| (Arc::clone(name), behind(reach))).collect()
    }
}
