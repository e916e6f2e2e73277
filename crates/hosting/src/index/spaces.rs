//! Namespaces, and what is in those of consumers.

use std::collections::BTreeMap;

use k8s_openapi::api::rbac::v1::{RoleBinding, Subject};
use liqo_api::{annotations, labels};
use liqo_core::names::ClusterId;
use liqo_kit::Key;
use liqo_kit::watch::{Identity, Meta, NotedMeta, Wire};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::objects::POD_SECURITY;

/// A namespace as it is read.
#[derive(Deserialize)]
pub(crate) struct SpaceOnWire {
    pub(super) metadata: NotedMeta,
}

impl Wire for SpaceOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// What matters of a namespace: of most, that their names are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: Box<str>,
    pub(crate) deleting: bool,
    /// Whose it is, if it is a consumer's.
    pub(crate) peer: Option<ClusterId>,
    /// The map that asked for it.
    pub(crate) map: Option<Key>,
    /// Its name at the consumer.
    pub(crate) original: Option<Box<str>>,
    /// The Pod Security level that it enforces.
    pub(crate) level: Option<Box<str>>,
    /// The custom kinds that it may have; `None` if all.
    pub(crate) custom_kinds: Option<Box<str>>,
}

impl Space {
    pub(crate) fn read(namespace: SpaceOnWire) -> Option<Self> {
        let meta = namespace.metadata;
        let peer = meta.labels.get(labels::REMOTE_CLUSTER_ID).and_then(|peer| peer.parse().ok());
        let map = meta.annotations.get(annotations::MANAGED_BY_NAMESPACE_MAP).map(key);
        // Only both together say that it was made here for a consumer.
        let (peer, map) = peer.zip(map).unzip();
        let of_peer = |text: Option<&str>| text.filter(|_| peer.is_some()).map(Into::into);
        Some(Self {
            deleting: meta.deletion_timestamp.is_some(),
            original: of_peer(meta.annotations.get(annotations::ORIGINAL_NAME)),
            level: of_peer(meta.labels.get(POD_SECURITY)),
            custom_kinds: of_peer(meta.annotations.get(annotations::CUSTOM_KINDS)),
            resource_version: if peer.is_some() { meta.resource_version } else { Box::default() },
            uid: meta.uid,
            peer,
            map,
        })
    }

    /// Whose it is, as far as others are concerned who want its name.
    pub(crate) fn holder(&self) -> (&str, bool, Option<&ClusterId>, Option<&str>) {
        (&self.uid, self.deleting, self.peer.as_ref(), self.original.as_deref())
    }
}

fn key(text: &str) -> Key {
    match text.split_once('/') {
        Some((namespace, name)) => Key::namespaced(namespace, name),
        None => Key::cluster(text),
    }
}

/// A quota as it is read: of its status, which changes with every pod, only what is counted, not how many there are.
#[derive(Deserialize)]
pub(crate) struct QuotaOnWire {
    metadata: Meta,
    #[serde(default)]
    spec: QuotaSpec,
    #[serde(default)]
    status: QuotaStatus,
}

#[derive(Default, Deserialize)]
struct QuotaStatus {
    #[serde(default)]
    used: BTreeMap<String, IgnoredAny>,
}

#[derive(Default, Deserialize)]
struct QuotaSpec {
    #[serde(default)]
    hard: BTreeMap<String, String>,
}

impl Wire for QuotaOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// What matters of a quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: Box<str>,
    pub(crate) hard: BTreeMap<String, String>,
    /// Whether all that it limits is counted; until then, the API server refuses all of it.
    pub(crate) counted: bool,
}

impl Quota {
    pub(crate) fn read(quota: QuotaOnWire) -> Self {
        let Meta { uid, resource_version, .. } = quota.metadata;
        let hard = quota.spec.hard;
        let counted = hard.keys().all(|name| quota.status.used.contains_key(name));
        Self { uid, resource_version, hard, counted }
    }

    /// Whether both allow the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.uid == other.uid && self.hard == other.hard && self.counted == other.counted
    }
}

/// A role binding, as it is read.
pub(crate) type BindingOnWire = RoleBinding;

/// What matters of a role binding.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Binding {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) role: String,
    pub(crate) subjects: Vec<Subject>,
}

impl Binding {
    pub(crate) fn read(binding: BindingOnWire) -> Self {
        Self {
            uid: binding.metadata.uid.unwrap_or_default(),
            resource_version: binding.metadata.resource_version.unwrap_or_default(),
            role: format!("{}/{}", binding.role_ref.kind, binding.role_ref.name),
            subjects: binding.subjects.unwrap_or_default(),
        }
    }
}
