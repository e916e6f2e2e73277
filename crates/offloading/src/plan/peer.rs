//! One cluster: our map for it, and the copy at our place there.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::names::NamespaceName;
use liqo_api::namespace_offloading::NamespaceMappingStrategy;
use liqo_api::{NamespaceMap, NamespaceMapSpec, NamespaceOffloading, labels};
use liqo_core::names::ClusterId;

use super::verdict::verdict;
use super::{View, drain};
use crate::events::labels_of;
use crate::index::Peer;
use crate::steps::{Step, Where};

/// What is missing of our maps for this cluster.
pub(super) fn plan(view: &View<'_>, cluster: &ClusterId) -> Vec<Step> {
    let wanted = mapping(view, cluster);
    let original = view.index.original(cluster);
    let Some(peer) = view.index.peers.get(cluster) else {
        // Nobody is there to be told; where nothing is wanted either, our own note can go.
        let forgotten = original.filter(|_| wanted.is_empty());
        return forgotten.map(|map| Step::delete(Where::Here, map, "forget")).into_iter().collect();
    };
    if wanted.is_empty() { withdraw(view, cluster, peer) } else { extend(view, cluster, peer, &wanted) }
}

/// The names at this cluster of the namespaces that should be there.
fn mapping(view: &View<'_>, cluster: &ClusterId) -> BTreeMap<String, String> {
    let known = [view.index.original(cluster), view.index.copy(cluster)];
    let known =
        |namespace: &str| known.iter().flatten().find_map(|map| map.spec.desired_mapping.get(namespace));
    let mut mapping = BTreeMap::new();
    for (namespace, offloading) in &view.index.offloadings {
        if verdict(view, Some(offloading), cluster).required {
            // What is there cannot move to another name.
            let name = known(namespace).cloned().or_else(|| remote_name(view, offloading));
            mapping.extend(name.map(|name| (namespace.to_string(), name)));
        }
    }
    let mapped = view.index.original(cluster).map(|map| &map.spec.desired_mapping);
    for (namespace, name) in mapped.into_iter().flatten() {
        if !mapping.contains_key(namespace) && drain::holds(view, namespace, cluster) {
            mapping.insert(namespace.clone(), name.clone());
        }
    }
    mapping
}

/// What the namespace is called in other clusters.
pub(super) fn remote_name(view: &View<'_>, offloading: &NamespaceOffloading) -> Option<String> {
    let name: NamespaceName = offloading.namespace()?.parse().ok()?;
    Some(match offloading.spec.namespace_mapping_strategy {
        NamespaceMappingStrategy::EnforceSameName => name.into(),
        NamespaceMappingStrategy::DefaultName => view.me.default_remote_namespace(&name).into(),
    })
}

fn extend(view: &View<'_>, cluster: &ClusterId, peer: &Peer, wanted: &BTreeMap<String, String>) -> Vec<Step> {
    let original = view.index.original(cluster);
    let Some(name) = original.map(ResourceExt::name_any).or_else(|| peer.unique_name.clone()) else {
        return Vec::new();
    };
    let mut steps = Vec::new();
    let own = map(&name, &peer.local_namespace, wanted, &of_original(cluster));
    match original {
        None => steps.push(Step::create(Where::Here, &own, "map")),
        Some(seen) => steps.extend(Step::bring(Where::Here, seen, &shaped(seen, &own), "map")),
    }
    if let (Ok(place), Some(there)) = (&peer.place, view.index.places.get(cluster)) {
        let copied = map(&name, place, wanted, &of_copy(view));
        match there.maps.get(&name) {
            None if there.synced => steps.push(Step::create(Where::There, &copied, "copy")),
            None => {}
            Some(seen) => steps.extend(Step::bring(Where::There, seen, &shaped(seen, &copied), "copy")),
        }
    }
    if !steps.iter().any(|step| step.at == Where::Here) {
        // Two writes to one object at once would conflict.
        steps.extend(mirror(view, cluster));
    }
    steps
}

fn withdraw(view: &View<'_>, cluster: &ClusterId, peer: &Peer) -> Vec<Step> {
    let original = view.index.original(cluster);
    let there = view.index.places.get(cluster);
    let forget = |map: &NamespaceMap| Step::delete(Where::Here, map, "forget");
    let Some(copy) = view.index.copy(cluster) else {
        // Where we cannot look, the copy may still be there; who does not lend any more has removed all of ours by itself.
        let certain = there.is_some_and(|there| there.synced) || (peer.place.is_err() && !peer.lends);
        return original.filter(|_| certain).map(forget).into_iter().collect();
    };
    let empty = |seen: &NamespaceMap| {
        let mut wanted = seen.clone();
        wanted.spec.desired_mapping.clear();
        wanted
    };
    let gone = copy.status.as_ref().is_none_or(|status| status.current_mapping.is_empty());
    let mut steps = Vec::new();
    if copy.spec.desired_mapping.is_empty() && gone {
        steps.push(Step::delete(Where::There, copy, "uncopy"));
    } else {
        steps.extend(Step::bring(Where::There, copy, &empty(copy), "copy"));
    }
    steps.extend(original.and_then(|seen| Step::bring(Where::Here, seen, &empty(seen), "map")));
    if !steps.iter().any(|step| step.at == Where::Here) {
        // Two writes to one object at once would conflict.
        steps.extend(mirror(view, cluster));
    }
    steps
}

/// What the provider says of its namespaces, for those who look here.
fn mirror(view: &View<'_>, cluster: &ClusterId) -> Option<Step> {
    let (seen, copy) = (view.index.original(cluster)?, view.index.copy(cluster)?);
    let mut wanted = seen.clone();
    wanted.status = copy.status.clone();
    Step::bring_status(seen, &wanted, "mirror")
}

type Labels = Vec<(&'static str, String)>;

fn of_original(cluster: &ClusterId) -> Labels {
    vec![
        (labels::REMOTE_CLUSTER_ID, cluster.to_string()),
        (labels::REPLICATION, labels::TRUE.to_owned()),
        (labels::REPLICATION_DESTINATION, cluster.to_string()),
    ]
}

fn of_copy(view: &View<'_>) -> Labels {
    vec![(labels::REPLICATED, labels::TRUE.to_owned()), (labels::REPLICATION_ORIGIN, view.me.id.to_string())]
}

fn map(name: &str, namespace: &str, mapping: &BTreeMap<String, String>, marks: &Labels) -> NamespaceMap {
    let mut map = NamespaceMap::new(name, NamespaceMapSpec { desired_mapping: mapping.clone() });
    let marks = marks.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    map.metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels_of().into_iter().chain(marks).collect()),
        ..ObjectMeta::default()
    };
    map
}

/// The map as it is seen, with what we say about it.
fn shaped(seen: &NamespaceMap, ours: &NamespaceMap) -> NamespaceMap {
    let mut wanted = seen.clone();
    wanted.spec = ours.spec.clone();
    wanted.labels_mut().extend(ours.labels().clone());
    wanted
}
