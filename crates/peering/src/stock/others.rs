//! Namespaces of peers, storage classes, services and policies.

use liqo_api::labels;
use liqo_core::names::ClusterId;
use liqo_core::policy::{Policy, Spec};
use liqo_kit::watch::{Identity, Meta, MetaOnly, NotedMeta, Wire};
use serde::Deserialize;
use serde_json::Value;

/// Marks the storage class of volumes that name none.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Who provides volumes that may be in other clusters. What they stand for is not ours to lend.
const VIRTUAL_PROVISIONER: &str = "liqo.io/storage";

/// A namespace that belongs to a peer: the pods in it are the peer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lodging {
    /// The peer.
    pub peer: ClusterId,
}

/// Selects the namespaces that can be lodgings.
pub const fn is_lodging_selector() -> &'static str {
    labels::REMOTE_CLUSTER_ID
}

impl Lodging {
    /// Reads a namespace's metadata; `None` if it is no peer's.
    pub fn read(namespace: &MetaOnly) -> Option<Self> {
        let peer = namespace.metadata.labels.get(labels::REMOTE_CLUSTER_ID)?;
        Some(Self { peer: peer.parse().ok()? })
    }
}

/// A storage class as it is read.
#[derive(Clone, Debug, Deserialize)]
pub struct ClassOnWire {
    metadata: NotedMeta,
    #[serde(default)]
    provisioner: String,
}

impl Wire for ClassOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// What matters of a storage class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassFacts {
    /// Whether volumes that name no class get this one.
    pub default: bool,
}

impl ClassFacts {
    /// Reads a storage class; `None` if it provides what other clusters have.
    pub fn read(class: &ClassOnWire) -> Option<Self> {
        let default = class.metadata.annotations.get(DEFAULT_CLASS) == Some(labels::TRUE);
        (class.provisioner != VIRTUAL_PROVISIONER).then_some(Self { default })
    }
}

/// A service of this cluster. That it is there is all that matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceFacts;

impl ServiceFacts {
    /// Reads a service's metadata; `None` if it is a copy of another cluster's.
    pub fn read(service: &MetaOnly) -> Option<Self> {
        service.metadata.labels.get(labels::REFLECTION_ORIGIN).is_none().then_some(Self)
    }
}

/// A SharingPolicy as it is read: its spec as it stands, because one that makes no sense must not count as not there.
#[derive(Clone, Debug, Deserialize)]
pub struct PolicyOnWire {
    metadata: Meta,
    #[serde(default)]
    spec: Value,
}

impl Wire for PolicyOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// Reads a policy. It is always one: if it makes no sense, it refuses.
pub fn read_policy(policy: PolicyOnWire) -> Option<Policy> {
    let name = policy.metadata.name;
    let spec = if policy.spec.is_null() { Ok(Spec::default()) } else { serde_json::from_value(policy.spec) };
    Some(match spec {
        Ok(spec) => Policy::read(name, &spec),
        Err(error) => Policy::unreadable(name, error),
    })
}
