//! What the room knows: namespaces, what their owners want, the nodes that stand for clusters, and the maps here and there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Node, NodeSpec};
use kube::ResourceExt;
use liqo_api::names::{self, NAMESPACE_OFFLOADING};
use liqo_api::outage::Outage;
use liqo_api::{NamespaceMap, NamespaceOffloading, labels};
use liqo_core::names::ClusterId;
use liqo_kit::index::Grouped;
use liqo_kit::{Index as Indexed, Key};
use liqo_providers::{ByCluster, Health, Provider};

use crate::fail_back::FailBack;
use crate::failover::Failover;
use crate::placement::Placement;
use crate::selector::NodeView;
use crate::webhook::{Configured, Kept};

#[cfg(test)]
mod tests;

/// What a plan is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// The webhook's certificate.
    House,
    Namespace(Arc<str>),
    Peer(ClusterId),
}

/// A node that stands for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub(crate) cluster: ClusterId,
    labels: BTreeMap<String, String>,
    /// When its provider last did not answer.
    pub(crate) outage: Option<Outage>,
    /// Whether pods may come to it now.
    pub(crate) usable: bool,
}

impl NodeFacts {
    pub(crate) fn read(node: &Node) -> Option<Self> {
        let cluster = node.labels().get(labels::REMOTE_CLUSTER_ID)?.parse().ok()?;
        let spec = node.spec.as_ref();
        let away = |spec: &NodeSpec| {
            spec.unschedulable == Some(true)
                || spec.taints.iter().flatten().any(|taint| taint.key == names::UNREACHABLE_TAINT)
        };
        Some(Self {
            cluster,
            labels: node.labels().clone(),
            outage: Outage::read(node.annotations()),
            usable: !spec.is_some_and(away),
        })
    }

    /// The node as selectors see it.
    pub(crate) fn view<'a>(&'a self, name: &'a str) -> NodeView<'a> {
        NodeView { name, labels: &self.labels }
    }
}

/// A provider, as far as this room needs to know.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Peer {
    /// Tells it from others of the same name; not known while there is no contract.
    pub(crate) unique_name: Option<String>,
    pub(crate) local_namespace: Arc<str>,
    /// Our place there, or why it cannot be reached.
    pub(crate) place: Result<String, Arc<str>>,
    pub(crate) lends: bool,
    pub(crate) ending: bool,
    pub(crate) health: Health,
}

impl Peer {
    fn read(provider: &Provider) -> Self {
        let unique_name = provider.name.as_ref().and_then(|name| {
            let (id, name) = (provider.id.as_str().parse().ok()?, name.as_str().parse().ok()?);
            Some(names::Identity { id, name }.unique_name())
        });
        Self {
            unique_name,
            local_namespace: Arc::clone(&provider.local_namespace),
            place: provider.link.as_ref().map(|link| link.place.to_string()).map_err(Arc::clone),
            lends: provider.lent.is_some(),
            ending: provider.lent.as_ref().is_some_and(|lent| lent.ending),
            health: provider.health.clone(),
        }
    }
}

/// What is seen at our place at a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Place {
    pub(crate) synced: bool,
    pub(crate) maps: BTreeMap<String, NamespaceMap>,
}

/// All of it.
pub(crate) struct Index {
    pub(crate) namespaces: BTreeMap<Arc<str>, Namespace>,
    pub(crate) offloadings: BTreeMap<Arc<str>, NamespaceOffloading>,
    nodes: Grouped<NodeFacts, ClusterId>,
    maps: Grouped<NamespaceMap, ClusterId>,
    pub(crate) peers: BTreeMap<ClusterId, Peer>,
    pub(crate) places: BTreeMap<ClusterId, Place>,
    pub(crate) kept: Option<Kept>,
    pub(crate) configured: Option<Configured>,
    /// Namespaces whose pods have left these nodes of a cluster; found out by this process, hence gone with it.
    pub(crate) drained: BTreeMap<(Arc<str>, ClusterId), BTreeSet<String>>,
    dirty: BTreeSet<Subject>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            namespaces: BTreeMap::new(),
            offloadings: BTreeMap::new(),
            nodes: Grouped::by(|_, node| Some(node.cluster.clone())),
            maps: Grouped::by(|_, map| cluster_of(map)),
            peers: BTreeMap::new(),
            places: BTreeMap::new(),
            kept: None,
            configured: None,
            drained: BTreeMap::new(),
            dirty: BTreeSet::new(),
        }
    }
}

impl Index {
    /// What changed since the last time this was asked.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Subject> {
        std::mem::take(&mut self.dirty)
    }

    pub(crate) fn touch(&mut self, subject: Subject) {
        self.dirty.insert(subject);
    }

    pub(crate) fn touch_namespace(&mut self, namespace: &str) {
        self.dirty.insert(Subject::Namespace(namespace.into()));
        // What a namespace wants is what the maps say.
        let clusters = self.clusters();
        self.dirty.extend(clusters.into_iter().map(Subject::Peer));
    }

    /// A cluster changed: all who want to be there look again.
    pub(crate) fn touch_peer(&mut self, cluster: &ClusterId) {
        self.dirty.insert(Subject::Peer(cluster.clone()));
        self.dirty.extend(self.offloadings.keys().map(|namespace| Subject::Namespace(Arc::clone(namespace))));
    }

    pub(crate) fn touch_all(&mut self) {
        self.dirty.insert(Subject::House);
        self.dirty.extend(self.namespaces.keys().map(|namespace| Subject::Namespace(Arc::clone(namespace))));
        let clusters = self.clusters();
        self.dirty.extend(clusters.into_iter().map(Subject::Peer));
    }

    /// Takes in who the providers are.
    pub(crate) fn set_peers(&mut self, providers: &ByCluster) {
        let now: BTreeMap<_, _> = providers.iter().map(|(id, it)| (id.clone(), Peer::read(it))).collect();
        let ids: BTreeSet<_> = now.keys().chain(self.peers.keys()).cloned().collect();
        let changed: Vec<_> = ids.into_iter().filter(|id| now.get(id) != self.peers.get(id)).collect();
        self.peers = now;
        changed.iter().for_each(|id| self.touch_peer(id));
    }

    /// All clusters that have to do with us.
    pub(crate) fn clusters(&self) -> BTreeSet<ClusterId> {
        self.peers.keys().chain(self.nodes.groups()).chain(self.maps.groups()).cloned().collect()
    }

    /// The nodes that stand for this cluster.
    pub(crate) fn nodes_of(&self, cluster: &ClusterId) -> impl Iterator<Item = (&str, &NodeFacts)> {
        self.nodes.group(cluster).map(|(key, node)| (key.name(), node))
    }

    /// Our map for this cluster.
    pub(crate) fn original(&self, cluster: &ClusterId) -> Option<&NamespaceMap> {
        self.maps.group(cluster).next().map(|(_, map)| map)
    }

    /// The copy of our map at this cluster.
    pub(crate) fn copy(&self, cluster: &ClusterId) -> Option<&NamespaceMap> {
        let place = self.places.get(cluster)?;
        let name = self.original(cluster).map(ResourceExt::name_any);
        let name = name.or_else(|| self.peers.get(cluster)?.unique_name.clone())?;
        place.maps.get(&name)
    }

    /// Where the pods of a namespace may run; nothing if the namespace is not offloaded, as far as is known.
    pub(crate) fn placement(&self, namespace: &str) -> Option<Placement> {
        let offloading = self.offloadings.get(namespace)?;
        if offloading.metadata.deletion_timestamp.is_some() {
            // Pods that leave now come home.
            let strategy = liqo_api::namespace_offloading::PodOffloadingStrategy::Local;
            return Some(Placement { strategy, ..Placement::default() });
        }
        Some(Placement {
            strategy: offloading.spec.pod_offloading_strategy,
            selector: offloading.spec.cluster_selector.clone(),
            failover: self.failover(namespace).unwrap_or_default(),
            prefer_remote: self.fail_back(namespace).is_ok_and(|it| it != FailBack::Never),
        })
    }

    /// How long the pods of a namespace wait for a provider that does not answer.
    pub(crate) fn failover(&self, namespace: &str) -> Result<Failover, String> {
        Failover::read(self.annotations(namespace))
    }

    /// Whether the pods of a namespace go back to a provider that answers again.
    pub(crate) fn fail_back(&self, namespace: &str) -> Result<FailBack, String> {
        FailBack::read(self.annotations(namespace))
    }

    /// What is noted on the NamespaceOffloading, and on the namespace.
    fn annotations(&self, namespace: &str) -> impl Iterator<Item = &BTreeMap<String, String>> {
        let offloading = self.offloadings.get(namespace).map(ResourceExt::annotations);
        let namespace = self.namespaces.get(namespace).map(ResourceExt::annotations);
        offloading.into_iter().chain(namespace)
    }
}

/// Whose map this is, if it is one of ours.
fn cluster_of(map: &NamespaceMap) -> Option<ClusterId> {
    if map.labels().contains_key(labels::REPLICATED) {
        return None;
    }
    map.labels().get(labels::REMOTE_CLUSTER_ID)?.parse().ok()
}

/// Whether two versions of an object differ in more than their version.
fn is_same<K: kube::Resource + Clone + PartialEq>(one: &K, other: &K) -> bool {
    let bare = |object: &K| {
        let mut object = object.clone();
        object.meta_mut().resource_version = None;
        object.meta_mut().managed_fields = None;
        object
    };
    bare(one) == bare(other)
}

impl Indexed<Namespace> for Index {
    fn apply(&mut self, key: &Key, object: Namespace) {
        let name: Arc<str> = key.name().into();
        let former = self.namespaces.insert(Arc::clone(&name), object);
        if former.is_none_or(|former| !is_same(&former, &self.namespaces[&name])) {
            self.touch_namespace(&name);
        }
    }

    fn delete(&mut self, key: &Key) {
        self.namespaces.remove(key.name());
        self.touch_namespace(key.name());
    }
}

impl Indexed<NamespaceOffloading> for Index {
    fn apply(&mut self, key: &Key, object: NamespaceOffloading) {
        // No other name is legal.
        if let (Some(namespace), NAMESPACE_OFFLOADING) = (key.namespace(), key.name()) {
            self.offloadings.insert(namespace.into(), object);
            self.touch_namespace(namespace);
        }
    }

    fn delete(&mut self, key: &Key) {
        if let Some(namespace) = key.namespace() {
            self.offloadings.remove(namespace);
            self.touch_namespace(namespace);
        }
    }
}

impl Indexed<NodeFacts> for Index {
    fn apply(&mut self, key: &Key, object: NodeFacts) {
        // Nodes tell of themselves all the time; what counts here hardly ever changes.
        let former = self.nodes.store().get(key);
        if former == Some(&object) {
            return;
        }
        let clusters = [former.map(|former| former.cluster.clone()), Some(object.cluster.clone())];
        self.nodes.apply(key, object);
        clusters.iter().flatten().for_each(|cluster| self.touch_peer(cluster));
    }

    fn delete(&mut self, key: &Key) {
        let former = self.nodes.store().get(key).map(|former| former.cluster.clone());
        self.nodes.delete(key);
        former.iter().for_each(|cluster| self.touch_peer(cluster));
    }
}

impl Indexed<NamespaceMap> for Index {
    fn apply(&mut self, key: &Key, object: NamespaceMap) {
        let former = self.maps.store().get(key).and_then(cluster_of);
        let clusters = [former, cluster_of(&object)];
        self.maps.apply(key, object);
        clusters.iter().flatten().for_each(|cluster| self.touch_peer(cluster));
    }

    fn delete(&mut self, key: &Key) {
        let former = self.maps.store().get(key).and_then(cluster_of);
        self.maps.delete(key);
        former.iter().for_each(|cluster| self.touch_peer(cluster));
    }
}

impl Indexed<Kept> for Index {
    fn apply(&mut self, _: &Key, object: Kept) {
        self.kept = Some(object);
        self.touch(Subject::House);
    }

    fn delete(&mut self, _: &Key) {
        self.kept = None;
        self.touch(Subject::House);
    }
}

impl Indexed<Configured> for Index {
    fn apply(&mut self, _: &Key, object: Configured) {
        self.configured = Some(object);
        self.touch(Subject::House);
    }

    fn delete(&mut self, _: &Key) {
        self.configured = None;
        self.touch(Subject::House);
    }
}
