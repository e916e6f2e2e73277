//! NamespaceMap: which namespaces a consumer wants at one provider.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// The namespaces wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "virtualkubelet.liqo.io",
    version = "v1alpha1",
    kind = "NamespaceMap",
    plural = "namespacemaps",
    namespaced,
    shortname = "nsmap",
    category = "liqo",
    status = "NamespaceMapStatus",
    derive = "PartialEq",
    doc = "The namespaces of a consumer that exist, or should exist, at one provider.",
    printcolumn(name = "Local", type_ = "string", json_path = ".metadata.labels.liqo\\.io/replication"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceMapSpec {
    /// Names at the provider, by the name at the consumer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "desired_mapping")]
    pub desired_mapping: BTreeMap<String, String>,
}

fn desired_mapping(generator: &mut SchemaGenerator) -> Schema {
    crate::schema::namespace_map(crate::schema::namespace_name(generator))
}

/// The namespaces there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceMapStatus {
    /// The state of each namespace at the provider, by the name at the consumer.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = crate::schema::limits::MAX_NAMESPACES))]
    pub current_mapping: BTreeMap<String, RemoteNamespace>,

    /// Aspects of the state that concern no single namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A namespace at the provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteNamespace {
    /// Its name at the provider.
    #[schemars(schema_with = "crate::schema::namespace_name")]
    pub remote_namespace: String,

    /// Its state.
    pub phase: MappingPhase,

    /// Why it is not accepted, as one word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // No rule: it would be reckoned for all namespaces of a map, which is more than the API server allows.
    #[schemars(length(max = crate::schema::limits::MAX_LABEL))]
    pub reason: Option<String>,

    /// Why it is not accepted, as a sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::sentence")]
    pub message: Option<String>,
}

/// The states of a namespace at the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum MappingPhase {
    /// It exists and the consumer may use it.
    Accepted,
    /// It cannot be created, for example because another one has its name.
    CreationLoopBackOff,
    /// It is being removed.
    Terminating,
}
