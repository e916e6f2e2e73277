//! Nodes as they are read: of others only that they exist.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use liqo_core::Resources;
use liqo_core::names::{ClusterId, PoolName};
use liqo_kit::watch::{Identity, Wire};
use serde::Deserialize;

/// How the provider ID of a node of ours begins.
const PROVIDER_SCHEME: &str = "liqo://";

/// What a node stands for: a provider, or one pool of its nodes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) cluster: ClusterId,
    pub(crate) pool: Option<PoolName>,
}

impl Place {
    /// The provider as a whole.
    pub(crate) const fn whole(cluster: ClusterId) -> Self {
        Self { cluster, pool: None }
    }

    /// The ID by which a node of ours is known to stand for this. Kubernetes lets nobody change it.
    pub(crate) fn provider_id(&self) -> String {
        let Self { cluster, pool } = self;
        match pool {
            Some(pool) => format!("{PROVIDER_SCHEME}{cluster}/{pool}"),
            None => format!("{PROVIDER_SCHEME}{cluster}"),
        }
    }

    /// What a node with this ID stands for.
    fn read(provider_id: &str) -> Option<Self> {
        let id = provider_id.strip_prefix(PROVIDER_SCHEME)?;
        let (cluster, pool) = match id.split_once('/') {
            Some((cluster, pool)) => (cluster, Some(pool.parse().ok()?)),
            None => (id, None),
        };
        Some(Self { cluster: cluster.parse().ok()?, pool })
    }
}

/// A node as it is read.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NodeOnWire {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    deletion_timestamp: Option<serde::de::IgnoredAny>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "providerID")]
    provider_id: String,
    unschedulable: bool,
    taints: Option<Vec<Taint>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    capacity: Option<BTreeMap<String, String>>,
    allocatable: Option<BTreeMap<String, String>>,
    conditions: Option<Vec<NodeCondition>>,
    addresses: Option<Vec<Address>>,
    daemon_endpoints: Endpoints,
    node_info: Info,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Endpoints {
    kubelet_endpoint: Endpoint,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    #[serde(rename = "Port")]
    port: u16,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Info {
    kubelet_version: String,
    architecture: String,
}

impl Wire for NodeOnWire {
    fn identity(&self) -> Identity<'_> {
        let Metadata { name, uid, resource_version, .. } = &self.metadata;
        Identity { namespace: None, name, uid, resource_version }
    }
}

/// What is known of a node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Known {
    /// Somebody else's.
    Other,
    /// One that stands for a provider.
    Ours(Box<Facts>),
}

/// A node that stands for a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// What it stands for; not known only in the default.
    pub(crate) place: Option<Place>,
    pub(crate) uid: String,
    pub(crate) version: String,
    pub(crate) deleting: bool,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) unschedulable: bool,
    pub(crate) taints: Vec<Taint>,
    pub(crate) capacity: Resources,
    pub(crate) allocatable: Resources,
    pub(crate) conditions: Vec<NodeCondition>,
    pub(crate) addresses: Vec<(String, String)>,
    pub(crate) port: u16,
    pub(crate) version_shown: String,
    pub(crate) architecture: String,
}

impl Known {
    /// Reads a node.
    pub(crate) fn read(node: NodeOnWire) -> Self {
        let NodeOnWire { metadata, spec, status } = node;
        let Some(place) = Place::read(&spec.provider_id) else { return Self::Other };
        let amounts =
            |list: Option<BTreeMap<String, String>>| Resources::parse(list.unwrap_or_default()).resources;
        let addresses = status.addresses.unwrap_or_default().into_iter();
        Self::Ours(Box::new(Facts {
            place: Some(place),
            uid: metadata.uid,
            version: metadata.resource_version,
            deleting: metadata.deletion_timestamp.is_some(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            unschedulable: spec.unschedulable,
            taints: spec.taints.unwrap_or_default(),
            capacity: amounts(status.capacity),
            allocatable: amounts(status.allocatable),
            conditions: status.conditions.unwrap_or_default(),
            addresses: addresses.map(|it| (it.kind, it.address)).collect(),
            port: status.daemon_endpoints.kubelet_endpoint.port,
            version_shown: status.node_info.kubelet_version,
            architecture: status.node_info.architecture,
        }))
    }
}

impl Facts {
    /// A condition.
    pub(crate) fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.conditions.iter().find(|condition| condition.type_ == kind)
    }
}
