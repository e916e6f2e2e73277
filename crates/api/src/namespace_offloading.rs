//! NamespaceOffloading: which peers a namespace extends to.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::NodeSelector,
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::NAMESPACE_OFFLOADING;
use crate::schema::limits::{MAX_LABEL, MAX_SUBDOMAIN};
use crate::schema::rules;

/// Kinds of custom resources that a namespace reflects: each costs two watches for each cluster.
const MAX_REFLECTED_KINDS: u32 = 16;

/// Where the namespace's pods may run, and what the namespace is called there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "offloading.liqo.io",
    version = "v1alpha1",
    kind = "NamespaceOffloading",
    plural = "namespaceoffloadings",
    namespaced,
    shortname = "nsof",
    category = "liqo",
    status = "NamespaceOffloadingStatus",
    derive = "PartialEq",
    doc = "Extends its namespace to other clusters. Its name is always offloading.",
    validation = Rule::new(format!("self.metadata.name == '{NAMESPACE_OFFLOADING}'"))
        .message("a NamespaceOffloading must be named \"offloading\", because a namespace has at most one"),
    printcolumn(name = "NamespaceMappingStrategy", type_ = "string", json_path = ".spec.namespaceMappingStrategy"),
    printcolumn(name = "PodOffloadingStrategy", type_ = "string", json_path = ".spec.podOffloadingStrategy"),
    printcolumn(name = "OffloadingPhase", type_ = "string", json_path = ".status.offloadingPhase"),
    printcolumn(
        name = "RemoteNamespaceName",
        type_ = "string",
        json_path = ".status.remoteNamespaceName",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceOffloadingSpec {
    /// What the namespace is called in the other clusters. Cannot change, because what runs there could not move to
    /// the new name.
    #[serde(default)]
    #[x_kube(validation = rules::immutable(
        "namespaceMappingStrategy cannot change while the namespace is offloaded: delete this NamespaceOffloading and \
         create it again"
    ))]
    pub namespace_mapping_strategy: NamespaceMappingStrategy,

    /// Where the namespace's pods may run.
    #[serde(default)]
    pub pod_offloading_strategy: PodOffloadingStrategy,

    /// Which clusters the namespace extends to, by the labels of their virtual nodes. Without terms, to all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::selector::node_selector")]
    pub cluster_selector: Option<NodeSelector>,

    /// Kinds of custom resources that are copied to the other clusters, one way. Both sides must allow it: see the
    /// status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "reflect")]
    pub reflect: Vec<KindName>,
}

/// A kind of custom resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, KubeSchema)]
#[x_kube(validation = Rule::new("self.group.contains('.') && !(self.group in ['admissionregistration.k8s.io', \
    'apiextensions.k8s.io', 'apiregistration.k8s.io', 'authentication.k8s.io', 'authorization.k8s.io', \
    'certificates.k8s.io', 'coordination.k8s.io', 'discovery.k8s.io', 'events.k8s.io', 'flowcontrol.apiserver.k8s.io', \
    'metrics.k8s.io', 'networking.k8s.io', 'node.k8s.io', 'rbac.authorization.k8s.io', 'resource.k8s.io', \
    'scheduling.k8s.io', 'storage.k8s.io'])")
    .message("only custom resources can be reflected: what pods need of Kubernetes' own kinds goes along by itself")
    .field_path(".group"))]
#[x_kube(validation = Rule::new("self.group != 'liqo.io' && !self.group.endsWith('.liqo.io')")
    .message("Liqo's own kinds are not reflected")
    .field_path(".group"))]
pub struct KindName {
    /// The API group, such as `example.com`.
    #[schemars(length(min = 1, max = MAX_SUBDOMAIN), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"))]
    pub group: String,

    /// The kind, such as `Widget`.
    #[schemars(length(min = 1, max = MAX_LABEL), regex(pattern = r"^[A-Z][A-Za-z0-9]*$"))]
    pub kind: String,
}

impl std::fmt::Display for KindName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.group, self.kind)
    }
}

fn reflect(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "maxItems": MAX_REFLECTED_KINDS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["group", "kind"],
        "items": KindName::json_schema(generator),
    })
}

/// How the remote namespaces are named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NamespaceMappingStrategy {
    /// Like the local one, whoever may use that name there.
    EnforceSameName,
    /// With the home cluster's unique name appended.
    #[default]
    DefaultName,
}

/// Where pods may run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PodOffloadingStrategy {
    /// Only in this cluster; services are still reflected.
    Local,
    /// Only in the other clusters.
    Remote,
    /// In any of them.
    #[default]
    LocalAndRemote,
}

/// How far the offloading is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceOffloadingStatus {
    /// What the namespace is called in the other clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::namespace_name")]
    pub remote_namespace_name: Option<String>,

    /// The state over all clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offloading_phase: Option<OffloadingPhase>,

    /// The state in each cluster, by the cluster's unique name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = crate::schema::limits::MAX_PEERS))]
    pub remote_namespaces_conditions: BTreeMap<String, RemoteNamespaceConditions>,

    /// Aspects of the state that concern no single cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What became of the kinds that are reflected. One that is not wanted any more stays here until its copies are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "reflected")]
    pub reflected: Vec<ReflectedKind>,
}

fn reflected(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        // Those that are wanted, and as many that are not any more.
        "maxItems": 2 * MAX_REFLECTED_KINDS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["group", "kind"],
        "items": ReflectedKind::json_schema(generator),
    })
}

/// A kind of custom resources that is reflected, or should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReflectedKind {
    /// The API group.
    #[schemars(length(max = MAX_SUBDOMAIN))]
    pub group: String,

    /// The kind.
    #[schemars(length(max = MAX_LABEL))]
    pub kind: String,

    /// The version in which it is copied; none while the kind is not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_LABEL))]
    pub version: Option<String>,

    /// What the API calls its objects; none while the kind is not known here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_SUBDOMAIN))]
    pub plural: Option<String>,

    /// Whether it is reflected to all the clusters that have the namespace.
    pub status: ConditionStatus,

    /// Why, as one word for programs.
    #[schemars(schema_with = "crate::schema::condition_reason")]
    pub reason: String,

    /// Why, as a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_message")]
    pub message: String,

    /// The clusters where it is not, by their unique name, and why not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = crate::schema::limits::MAX_PEERS))]
    pub failing: BTreeMap<String, NotReflected>,
}

impl ReflectedKind {
    /// Which kind this is about.
    pub fn name(&self) -> KindName {
        KindName { group: self.group.clone(), kind: self.kind.clone() }
    }
}

/// Why a kind is not reflected to a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct NotReflected {
    /// As one word for programs.
    // No rule: it would be reckoned for all clusters, which is more than the API server allows.
    #[schemars(length(max = MAX_LABEL))]
    pub reason: String,

    /// As a sentence for people.
    #[schemars(schema_with = "crate::schema::sharing::sentence")]
    pub message: String,
}

/// The state over all clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OffloadingPhase {
    /// The namespace exists in all the clusters selected.
    Ready,
    /// The selector matches no cluster.
    NoClusterSelected,
    /// Not all clusters answered yet.
    InProgress,
    /// Some clusters failed.
    SomeFailed,
    /// All clusters failed.
    AllFailed,
    /// The namespaces are being removed.
    Terminating,
}

/// The state in one cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RemoteNamespaceConditions(pub Vec<RemoteNamespaceCondition>);

impl JsonSchema for RemoteNamespaceConditions {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RemoteNamespaceConditions".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "array",
            "maxItems": 8,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": RemoteNamespaceCondition::json_schema(generator),
        })
    }
}

/// One aspect of the state in one cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemoteNamespaceCondition {
    /// The aspect.
    #[serde(rename = "type")]
    pub type_: RemoteNamespaceConditionType,

    /// Whether it holds.
    pub status: ConditionStatus,

    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub last_transition_time: Option<Time>,

    /// Why, as one word for programs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_reason")]
    pub reason: String,

    /// Why, as a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_message")]
    pub message: String,

    /// The metadata.generation that this was found out about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::generation")]
    pub observed_generation: Option<i64>,
}

/// Aspects of a remote namespace's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum RemoteNamespaceConditionType {
    /// The selector matches the cluster.
    OffloadingRequired,
    /// The namespace exists there.
    Ready,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It does.
    True,
    /// It does not.
    False,
    /// It is not known.
    Unknown,
}
