//! What a cluster has to share: its nodes, what their pods request, and what is left.
//!
//! A node counts if it is **ready, schedulable and physical** (a virtual node stands for somebody else's capacity,
//! which must not be lent on as if it were ours). Of each such node there is free what it can allocate, minus what
//! the pods placed on it request. Each node and each resource stands for itself: a node that is overdrawn on memory
//! has none left, which takes nothing from its CPU and nothing from the other nodes.
//!
//! Pods that somebody else offloaded here are counted by owner, so that a peer's own pods can be counted as free
//! when it is the one who asks: what it uses is part of what it is offered.

use std::collections::BTreeMap;

use crate::names::ClusterId;
use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceName, Resources};
use crate::selector::{Labels, Selector};

mod largest;
mod pod;

#[cfg(test)]
mod tests;

pub use largest::LargestPod;
pub use pod::{InitContainer, PodRequests};

/// The resource that says how many pods a node takes.
const PODS: &str = "pods";

/// A node, as far as sharing is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What pods may request on it in all.
    pub allocatable: Resources,
    /// Its labels, which policies select by.
    pub labels: Labels,
    /// Whether its kubelet says that it is ready.
    pub ready: bool,
    /// Whether new pods may come: neither cordoned nor tainted against everybody.
    pub schedulable: bool,
    /// Whether it stands for another cluster.
    pub virtual_node: bool,
}

/// Whose pod it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Somebody's of this cluster.
    Local,
    /// Offloaded by a peer.
    Peer(ClusterId),
}

/// What the pods on one node request, by owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    local: Resources,
    peers: BTreeMap<ClusterId, Resources>,
}

/// Which nodes are meant.
pub trait Picks {
    /// Whether a node with these labels is.
    fn picks(&self, labels: &Labels) -> bool;
}

impl Picks for Selector {
    fn picks(&self, labels: &Labels) -> bool {
        self.matches(labels)
    }
}

/// All nodes with their load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capacity {
    nodes: BTreeMap<String, (Node, Load)>,
}

/// Why nodes do not count, for who wonders where the capacity is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCount {
    /// Nodes that count.
    pub counted: usize,
    /// Nodes that are not ready.
    pub not_ready: usize,
    /// Nodes that take no new pods.
    pub unschedulable: usize,
    /// Nodes that stand for other clusters.
    pub virtual_nodes: usize,
    /// Nodes that the policy does not select.
    pub not_selected: usize,
}

/// What some nodes have, and what of it is left for a certain asker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// What the nodes can allocate.
    pub allocatable: Resources,
    /// What local pods request on them.
    pub local: Resources,
    /// What pods of peers request on them whose use is not counted as free.
    pub foreign: Resources,
    /// What is left: never negative, and node by node, so that an overdrawn node takes nothing from the others.
    pub free: Resources,
}

impl Load {
    /// Counts a pod that is placed on the node and has not finished.
    pub fn add(&mut self, owner: &Owner, requests: &Resources) {
        let sum = match owner {
            Owner::Local => &mut self.local,
            Owner::Peer(peer) => self.peers.entry(peer.clone()).or_default(),
        };
        for (name, amount) in counted(requests) {
            let total = sum.amount(name.as_str()).saturating_add(amount);
            sum.insert(name, total);
        }
    }

    /// Counts a pod no longer that was counted before.
    ///
    /// Says whether that worked: from a sum that was too large to reckon with nothing can be taken away, so that the
    /// load has to be made anew from the pods that are left.
    #[must_use]
    pub fn remove(&mut self, owner: &Owner, requests: &Resources) -> bool {
        let sum = match owner {
            Owner::Local => Some(&mut self.local),
            Owner::Peer(peer) => self.peers.get_mut(peer),
        };
        let Some(sum) = sum else { return false };
        for (name, amount) in counted(requests) {
            let total = sum.amount(name.as_str());
            let left = total.saturating_add(-amount);
            if total == Quantity::MAX || left.is_negative() {
                return false;
            }
            sum.insert(name, left);
        }
        // What is left must equal a load that never had the pod.
        sum.retain(|_, amount| !amount.is_zero());
        self.peers.retain(|_, used| !used.is_empty());
        true
    }
}

/// What a pod counts for: what it requests of each resource, and itself, where it does not say so.
fn counted(requests: &Resources) -> impl Iterator<Item = (ResourceName, Quantity)> {
    let pods = (!requests.amount(PODS).is_positive()).then(|| PODS.parse().ok()).flatten();
    let itself = pods.map(|pods: ResourceName| (pods, Quantity::from_units(1, Format::DecimalSi)));
    let requested = requests.iter().filter(|(_, amount)| amount.is_positive());
    requested.map(|(name, amount)| (name.clone(), amount)).chain(itself)
}

impl FromIterator<(Owner, Resources)> for Load {
    fn from_iter<I: IntoIterator<Item = (Owner, Resources)>>(pods: I) -> Self {
        let mut load = Self::default();
        for (owner, requests) in pods {
            load.add(&owner, &requests);
        }
        load
    }
}

impl Node {
    /// Whether its capacity can be shared at all.
    const fn counts(&self) -> bool {
        self.ready && self.schedulable && !self.virtual_node
    }
}

impl Capacity {
    /// Adds a node with its load, or replaces the node of that name.
    pub fn insert(&mut self, node: Node, load: Load) {
        self.nodes.insert(node.name.clone(), (node, load));
    }

    /// Removes the node of this name, and gives what was known of it.
    pub fn remove(&mut self, node: &str) -> Option<(Node, Load)> {
        self.nodes.remove(node)
    }

    /// The node of this name.
    pub fn node(&self, node: &str) -> Option<&Node> {
        self.nodes.get(node).map(|(node, _)| node)
    }

    /// The load of the node of this name, to be changed as pods come and go.
    pub fn load_mut(&mut self, node: &str) -> Option<&mut Load> {
        self.nodes.get_mut(node).map(|(_, load)| load)
    }

    /// How many nodes count for a policy with this selector, and why the others do not.
    pub fn count(&self, selector: &impl Picks) -> NodeCount {
        let mut count = NodeCount::default();
        for (node, _) in self.nodes.values() {
            let place = match node {
                node if node.virtual_node => &mut count.virtual_nodes,
                node if !node.ready => &mut count.not_ready,
                node if !node.schedulable => &mut count.unschedulable,
                node if !selector.picks(&node.labels) => &mut count.not_selected,
                _ => &mut count.counted,
            };
            *place += 1;
        }
        count
    }

    /// What the selected nodes have. What the peers of `counts_as_free` use there is counted as free.
    pub fn pool(&self, selector: &impl Picks, counts_as_free: impl Fn(&ClusterId) -> bool) -> Pool {
        let mut pool = Pool::default();
        for (node, load) in self.selected(selector) {
            let foreign =
                sum(load.peers.iter().filter(|(peer, _)| !counts_as_free(peer)).map(|(_, used)| used));
            let mut requested = load.local.clone();
            requested.accumulate(&foreign);
            pool.free.accumulate(&left(node, &requested));
            pool.allocatable.accumulate(&node.allocatable);
            pool.local.accumulate(&load.local);
            pool.foreign.accumulate(&foreign);
        }
        pool
    }

    /// What is free for one peer before any policy: allocatable minus requests, plus what it uses itself.
    pub fn free_for(&self, peer: &ClusterId, selector: &impl Picks) -> Resources {
        self.pool(selector, |other| other == peer).free
    }

    /// What stands behind promises to the peers of `promised` on the selected nodes: what is free there when their own
    /// use is counted as free, and what they use on nodes that take no new pods, because those pods still run.
    pub fn backing(&self, selector: &impl Picks, promised: impl Fn(&ClusterId) -> bool) -> Resources {
        let served = self
            .nodes
            .values()
            .filter(|(node, _)| node.ready && !node.schedulable && !node.virtual_node)
            .filter(|(node, _)| selector.picks(&node.labels))
            .flat_map(|(_, load)| load.peers.iter().filter(|(peer, _)| promised(peer)).map(|(_, used)| used));
        sum(served).saturating_add(&self.pool(selector, &promised).free)
    }

    /// What each peer's pods request on the selected nodes.
    pub fn used_by_peers(&self, selector: &impl Picks) -> BTreeMap<ClusterId, Resources> {
        let mut used: BTreeMap<ClusterId, Resources> = BTreeMap::new();
        for (peer, requests) in self.selected(selector).flat_map(|(_, load)| &load.peers) {
            match used.get_mut(peer) {
                Some(sum) => sum.accumulate(requests),
                None => drop(used.insert(peer.clone(), requests.clone())),
            }
        }
        used
    }

    /// What a peer's pods request on any node, ready or not: what a contract is held against.
    pub fn used_anywhere_by(&self, peer: &str) -> Resources {
        sum(self.nodes.values().filter_map(|(_, load)| load.peers.get(peer)))
    }

    fn selected<'a>(&'a self, selector: &'a impl Picks) -> impl Iterator<Item = (&'a Node, &'a Load)> {
        self.nodes
            .values()
            .filter(|(node, _)| node.counts() && selector.picks(&node.labels))
            .map(|(node, load)| (node, load))
    }
}

/// What is left of a node's resources; only of those that the node has.
fn left(node: &Node, requested: &Resources) -> Resources {
    let left = |amount: Quantity, name: &ResourceName| amount.sub_to_zero(requested.amount(name.as_str()));
    node.allocatable.iter().map(|(name, amount)| (name.clone(), left(amount, name))).collect()
}

fn sum<'a>(lists: impl Iterator<Item = &'a Resources>) -> Resources {
    let mut sum = Resources::new();
    lists.for_each(|list| sum.accumulate(list));
    sum
}
