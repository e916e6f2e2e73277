//! ClusterConfig: what a cluster tells about itself.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Borrowing, ClusterIdentity};

/// Name of the only ClusterConfig.
pub const CLUSTER_CONFIG: &str = "liqo";

/// ConfigMap with the cluster's identity for everyone to read, in the namespace that Liqo is installed in.
pub const CLUSTER_ID_CONFIG_MAP: &str = "clusterid-configmap";

/// Key of [`CLUSTER_ID_CONFIG_MAP`].
pub const CLUSTER_ID_KEY: &str = "CLUSTER_ID";

/// Key of [`CLUSTER_ID_CONFIG_MAP`].
pub const CLUSTER_NAME_KEY: &str = "CLUSTER_NAME";

/// Annotation on [`CLUSTER_ID_CONFIG_MAP`]: the fingerprint of the key that belongs to the identity, so that another key
/// is noticed.
pub const KEY_FINGERPRINT: &str = "liqo.io/key-fingerprint";

/// Secret with the cluster's identity and the private key that proves it, in the same namespace.
pub const IDENTITY_SECRET: &str = "liqo-identity";

/// Type of [`IDENTITY_SECRET`].
pub const IDENTITY_SECRET_TYPE: &str = "liqo.io/identity";

/// Keys of [`IDENTITY_SECRET`]: the private key (PKCS#8) and the public key (SPKI), both as PEM, and the identity that
/// they belong to.
pub mod identity_secret {
    /// The Ed25519 key with which the cluster signs.
    pub const PRIVATE_KEY: &str = "private-key";
    /// The key by which others recognise what it signed.
    pub const PUBLIC_KEY: &str = "public-key";
    /// What identifies the cluster for good.
    pub const CLUSTER_ID: &str = "cluster-id";
    /// What people call it.
    pub const CLUSTER_NAME: &str = "cluster-name";
}

/// Condition: the cluster has an identity, and the key that proves it.
pub const IDENTITY_READY: &str = "IdentityReady";

/// Condition: everything that this version does is at work.
pub const READY: &str = "Ready";

/// How the cluster works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "config.liqo.io",
    version = "v1alpha1",
    kind = "ClusterConfig",
    plural = "clusterconfigs",
    shortname = "lcc",
    category = "liqo",
    status = "ClusterConfigStatus",
    derive = "PartialEq",
    doc = "What this cluster tells about itself: identity, working mode, version. Its name is always liqo.",
    validation = Rule::new(format!("self.metadata.name == '{CLUSTER_CONFIG}'"))
        .message("a ClusterConfig must be named \"liqo\", because a cluster has one"),
    printcolumn(name = "Cluster name", type_ = "string", json_path = ".status.clusterIdentity.clusterName"),
    printcolumn(
        name = "Cluster ID",
        type_ = "string",
        json_path = ".status.clusterIdentity.clusterID",
        priority = 1
    ),
    printcolumn(name = "Mode", type_ = "string", json_path = ".status.workingMode"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConfigSpec {
    /// Who decides where the cluster's workloads run.
    #[serde(default)]
    pub working_mode: WorkingMode,

    /// What to borrow, and which offers to accept.
    #[serde(default, skip_serializing_if = "Borrowing::is_empty")]
    pub borrowing: Borrowing,
}

/// Who decides where a cluster's workloads run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum WorkingMode {
    /// The cluster itself.
    #[default]
    Autonomous,
}

/// What the cluster is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterConfigStatus {
    /// Which cluster this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_identity: Option<ClusterIdentity>,

    /// The key by which others recognise what this cluster signed, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::public_key")]
    pub public_key: Option<String>,

    /// The SHA-256 of the public key (DER), for comparing by eye.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::fingerprint")]
    pub fingerprint: Option<String>,

    /// Who decides where the cluster's workloads run, now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_mode: Option<WorkingMode>,

    /// The version of the controller manager that leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::version")]
    pub version: Option<String>,

    /// What that version can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::capabilities")]
    pub capabilities: Vec<String>,

    /// The pod of the controller manager that leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::object_name")]
    pub leader: Option<String>,

    /// Whether all is well, and if not, why and what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}
