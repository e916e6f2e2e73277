//! Pods at home as they are read: whole but for who wrote which field, which is half of their metadata.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time};
use liqo_kit::watch::{Identity, Wire};
use serde::Deserialize;

/// A pod at home as it is read.
#[derive(Deserialize)]
pub(crate) struct HomeOnWire {
    metadata: Meta,
    spec: Option<PodSpec>,
    status: Option<PodStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    namespace: Option<String>,
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    deletion_timestamp: Option<Time>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

impl Wire for HomeOnWire {
    fn identity(&self) -> Identity<'_> {
        Identity {
            namespace: self.metadata.namespace.as_deref(),
            name: &self.metadata.name,
            uid: &self.metadata.uid,
            resource_version: &self.metadata.resource_version,
        }
    }
}

impl From<HomeOnWire> for Pod {
    fn from(wire: HomeOnWire) -> Self {
        let HomeOnWire { metadata: meta, spec, status } = wire;
        let metadata = ObjectMeta {
            namespace: meta.namespace,
            name: Some(meta.name),
            uid: Some(meta.uid),
            resource_version: Some(meta.resource_version),
            deletion_timestamp: meta.deletion_timestamp,
            labels: meta.labels,
            annotations: meta.annotations,
            owner_references: meta.owner_references,
            ..ObjectMeta::default()
        };
        Self { metadata, spec, status }
    }
}
