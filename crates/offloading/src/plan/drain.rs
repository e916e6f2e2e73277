//! Pods that have to leave a cluster before their namespace does, or those of its nodes that are not selected any more.

use std::sync::Arc;

use jiff::Timestamp;
use liqo_api::NamespaceOffloading;
use liqo_api::namespace_offloading::{ConditionStatus, RemoteNamespaceConditionType};
use liqo_core::names::ClusterId;

use super::verdict::verdict;
use super::{View, status};
use crate::selector;

/// The pods of a namespace that have to leave a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drain {
    pub(crate) namespace: Arc<str>,
    pub(crate) cluster: ClusterId,
    /// The nodes that they have to leave.
    pub(crate) nodes: Vec<String>,
    /// Until when they are asked to; then they are deleted.
    pub(crate) until: Timestamp,
    /// When it is over, whatever is left.
    pub(crate) end: Timestamp,
}

/// All that has to leave now.
pub(crate) fn drains(view: &View<'_>) -> Vec<Drain> {
    let mut all = Vec::new();
    for cluster in view.index.clusters() {
        let Some(map) = view.index.original(&cluster) else { continue };
        for namespace in map.spec.desired_mapping.keys() {
            let offloading = view.index.offloadings.get(namespace.as_str());
            let stays = verdict(view, offloading, &cluster).required;
            let (nodes, since) = match offloading.filter(|_| stays) {
                // What begins now is kept by who carries it out: nothing waits for its end.
                Some(offloading) => (not_selected(view, offloading, &cluster), view.now),
                None => (nodes(view, &cluster), since(view, offloading, &cluster)),
            };
            if stays && nodes.is_empty() {
                continue;
            }
            all.push(Drain {
                namespace: namespace.as_str().into(),
                nodes,
                until: later(since, view.settings.eviction),
                end: end(view, since),
                cluster: cluster.clone(),
            });
        }
    }
    all
}

fn nodes(view: &View<'_>, cluster: &ClusterId) -> Vec<String> {
    view.index.nodes_of(cluster).map(|(name, _)| name.to_owned()).collect()
}

/// The nodes of a cluster that the namespace stays at, but not at them: a provider with pools has several.
fn not_selected(view: &View<'_>, offloading: &NamespaceOffloading, cluster: &ClusterId) -> Vec<String> {
    let selector = offloading.spec.cluster_selector.as_ref();
    let others =
        view.index.nodes_of(cluster).filter(|(name, node)| !selector::selects(selector, node.view(name)));
    others.map(|(name, _)| name.to_owned()).collect()
}

/// Whether the namespace still has to be at the cluster, because its pods are.
pub(super) fn holds(view: &View<'_>, namespace: &str, cluster: &ClusterId) -> bool {
    let emptied = view.index.drained.get(&(Arc::from(namespace), cluster.clone()));
    if emptied.is_some_and(|emptied| view.index.nodes_of(cluster).all(|(name, _)| emptied.contains(name))) {
        return false;
    }
    let offloading = view.index.offloadings.get(namespace);
    view.now < end(view, since(view, offloading, cluster))
}

/// When something of this namespace is over by itself.
pub(super) fn due(view: &View<'_>, offloading: &NamespaceOffloading) -> Option<Timestamp> {
    let namespace = offloading.metadata.namespace.as_deref()?;
    let mapped = |cluster: &ClusterId| {
        view.index.original(cluster).is_some_and(|map| map.spec.desired_mapping.contains_key(namespace))
    };
    let clusters = view.index.clusters();
    let leaving = clusters.iter().filter(|cluster| mapped(cluster));
    let leaving = leaving.filter(|cluster| !verdict(view, Some(offloading), cluster).required);
    let ends = leaving.map(|cluster| end(view, since(view, Some(offloading), cluster)));
    let deleted = offloading.metadata.deletion_timestamp.as_ref().map(|deleted| end(view, deleted.0));
    ends.chain(deleted).filter(|end| *end > view.now).min()
}

/// When withdrawing that began then is over, whatever is left.
pub(super) fn end(view: &View<'_>, since: Timestamp) -> Timestamp {
    later(later(since, view.settings.eviction), view.settings.deletion)
}

fn later(time: Timestamp, by: jiff::SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// Since when the namespace is to leave the cluster: it is in the status, so that a restart does not begin anew.
fn since(view: &View<'_>, offloading: Option<&NamespaceOffloading>, cluster: &ClusterId) -> Timestamp {
    let Some(offloading) = offloading else { return view.now };
    if let Some(deleted) = &offloading.metadata.deletion_timestamp {
        return deleted.0;
    }
    let told = offloading.status.as_ref().and_then(|status| {
        let conditions = status.remote_namespaces_conditions.get(&status::name_of(view, cluster))?;
        let required = |type_| type_ == RemoteNamespaceConditionType::OffloadingRequired;
        conditions.0.iter().find(|it| required(it.type_) && it.status == ConditionStatus::False)
    });
    told.and_then(|told| told.last_transition_time.as_ref()).map_or(view.now, |time| time.0)
}
