//! Pods that go back to a provider that answers again.
//!
//! ```text
//!        from            until        + grace       + steady
//!  ───────┼────────────────┼─────────────┼─────────────┼──────────▶
//!         │  pods started elsewhere      │             │ are asked to leave, the oldest first,
//!         └──────────────────────────────┘             │ one after the other
//! ```
//!
//! Who was made after that time is never asked, so that a pod that does not find its way back is asked once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{NodeSelector, Pod, PodSpec};
use kube::ResourceExt;
use liqo_api::{NamespaceOffloading, labels};
use liqo_core::names::ClusterId;
use liqo_providers::Health;

use super::View;
use super::verdict::verdict;
use crate::fail_back::FailBack;
use crate::failover::Failover;
use crate::selector::{self, NodeView};

#[cfg(test)]
mod tests;

/// Whose pods are not made anew, or must not be: those of a node, and those that are work half done.
const STAYING: [&str; 3] = ["DaemonSet", "Job", "Node"];

/// A namespace whose pods may go back to a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Return {
    pub(crate) namespace: Arc<str>,
    pub(crate) cluster: ClusterId,
    /// What people call the cluster.
    pub(crate) called: String,
    /// When the pods were made, from and (without it) until.
    pub(crate) made: (Timestamp, Timestamp),
    /// Since when the cluster answers again.
    pub(crate) since: Timestamp,
    /// The nodes that they may go back to, with their labels.
    pub(crate) nodes: BTreeMap<String, BTreeMap<String, String>>,
}

/// All that may go back now.
pub(crate) fn returns(view: &View<'_>) -> Vec<Return> {
    let offloadings = view.index.offloadings.values();
    offloadings
        .flat_map(|offloading| of_namespace(view, offloading))
        .filter(|(due, _)| *due <= view.now)
        .map(|(_, it)| it)
        .collect()
}

/// When something of this namespace may go back that may not yet.
pub(super) fn due(view: &View<'_>, offloading: &NamespaceOffloading) -> Option<Timestamp> {
    of_namespace(view, offloading).map(|(due, _)| due).filter(|due| *due > view.now).min()
}

/// What of this namespace may go back, and from when on.
fn of_namespace<'a>(
    view: &'a View<'_>,
    offloading: &'a NamespaceOffloading,
) -> impl Iterator<Item = (Timestamp, Return)> + 'a {
    let namespace: Arc<str> = offloading.namespace().unwrap_or_default().into();
    let steady = match view.index.fail_back(&namespace) {
        Ok(FailBack::After(steady)) => Some(steady),
        Ok(FailBack::Never) | Err(_) => None,
    };
    steady.into_iter().flat_map(move |steady| {
        let grace = grace(view, &namespace, steady);
        let namespace = Arc::clone(&namespace);
        let clusters = view.index.clusters().into_iter().filter(|cluster| is_back(view, offloading, cluster));
        clusters.flat_map(move |cluster| {
            to_cluster(view, offloading, &namespace, &cluster, steady, grace).collect::<Vec<_>>()
        })
    })
}

/// For how long after the outage pods are made because of it. Half of the wait at most: what is made when the first was asked to
/// leave must be outside, though the clocks of the API server and ours differ.
fn grace(view: &View<'_>, namespace: &str, steady: SignedDuration) -> SignedDuration {
    let failover = view.index.failover(namespace).unwrap_or_default();
    let seconds = match failover {
        Failover::After(seconds) => seconds,
        Failover::Never => 0,
    };
    SignedDuration::from_secs(seconds).min(steady / 2)
}

/// Whether pods of the namespace may run at the cluster, and the cluster answers.
fn is_back(view: &View<'_>, offloading: &NamespaceOffloading, cluster: &ClusterId) -> bool {
    let peer = view.index.peers.get(cluster);
    peer.is_some_and(|peer| peer.health == Health::Reachable && peer.lends && peer.place.is_ok())
        && verdict(view, Some(offloading), cluster).required
}

/// One return for each outage: the nodes of a cluster, if it has several, usually had the same one.
fn to_cluster(
    view: &View<'_>,
    offloading: &NamespaceOffloading,
    namespace: &Arc<str>,
    cluster: &ClusterId,
    steady: SignedDuration,
    grace: SignedDuration,
) -> impl Iterator<Item = (Timestamp, Return)> {
    let selector = offloading.spec.cluster_selector.as_ref();
    let mut by_outage: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (name, node) in view.index.nodes_of(cluster) {
        if let Some(outage) =
            node.outage.filter(|_| node.usable && selector::selects(selector, node.view(name)))
        {
            by_outage.entry(outage).or_default().insert(name.to_owned(), node.view(name).labels.clone());
        }
    }
    let called = super::status::name_of(view, cluster);
    by_outage.into_iter().map(move |(outage, nodes)| {
        let back = Return {
            namespace: Arc::clone(namespace),
            cluster: cluster.clone(),
            called: called.clone(),
            made: (outage.from, later(outage.until, grace)),
            since: outage.until,
            nodes,
        };
        (later(outage.until, steady), back)
    })
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Those of the namespace's pods that go back, the oldest first.
pub(crate) fn going_back(back: &Return, mut pods: Vec<Pod>) -> Vec<Pod> {
    let names: BTreeSet<&str> = back.nodes.keys().map(String::as_str).collect();
    pods.retain(|pod| goes_back(back, &names, pod));
    pods.sort_by_cached_key(|pod| (pod.creation_timestamp().map(|it| it.0), pod.name_any()));
    pods
}

fn goes_back(back: &Return, there: &BTreeSet<&str>, pod: &Pod) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let made = pod.creation_timestamp().is_some_and(|it| back.made.0 <= it.0 && it.0 < back.made.1);
    let elsewhere = spec.node_name.as_deref().is_some_and(|node| !node.is_empty() && !there.contains(node));
    let may_leave = pod.labels().get(labels::SHADOW_POD).is_some_and(|it| it == labels::TRUE);
    let fits = || back.nodes.iter().any(|(name, labels)| fits(spec, NodeView { name, labels }));
    made && elsewhere && may_leave && is_made_anew(pod) && !has_volume_here(spec) && is_alive(pod) && fits()
}

/// Whether somebody makes another one when this one leaves.
fn is_made_anew(pod: &Pod) -> bool {
    let mut owners = pod.owner_references().iter().filter(|owner| owner.controller == Some(true));
    owners.next().is_some_and(|owner| !STAYING.contains(&owner.kind.as_str()))
}

/// Whether it has a claim, whose volume is where it runs now.
fn has_volume_here(spec: &PodSpec) -> bool {
    spec.volumes.iter().flatten().any(|it| it.persistent_volume_claim.is_some() || it.ephemeral.is_some())
}

fn is_alive(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    pod.metadata.deletion_timestamp.is_none() && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether the pod itself would go to this node.
fn fits(spec: &PodSpec, node: NodeView<'_>) -> bool {
    let affinity = spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
    let required: Option<&NodeSelector> =
        affinity.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
    let mut wanted = spec.node_selector.iter().flatten();
    selector::selects(required, node) && wanted.all(|(key, value)| node.labels.get(key) == Some(value))
}
