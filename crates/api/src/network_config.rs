//! NetworkConfig: what a cluster tells a peer about its network.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClusterIdentity, schema::rules};

/// Key in a tunnel's settings: the WireGuard public key, in base64.
pub const PUBLIC_KEY: &str = "publicKey";

/// Key in a tunnel's settings: the UDP port, as text.
pub const PORT: &str = "port";

/// The network of the cluster that wrote this.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "net.liqo.io",
    version = "v1alpha1",
    kind = "NetworkConfig",
    plural = "networkconfigs",
    namespaced,
    shortname = "netcfg",
    category = "liqo",
    status = "NetworkConfigStatus",
    derive = "PartialEq",
    doc = "What one cluster tells a peer about its network, and how the peer remaps it.",
    printcolumn(name = "Peering Cluster", type_ = "string", json_path = ".spec.cluster.clusterName"),
    printcolumn(name = "Endpoint IP", type_ = "string", json_path = ".spec.endpointIP", priority = 1),
    printcolumn(name = "VPN Backend", type_ = "string", json_path = ".spec.backendType", priority = 1),
    printcolumn(name = "Processed", type_ = "boolean", json_path = ".status.processed"),
    printcolumn(name = "Local", type_ = "string", json_path = ".metadata.labels.liqo\\.io/replication"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(validation = rules::disjoint("podCIDR", "externalCIDR"))]
pub struct NetworkConfigSpec {
    /// The peer that this is for.
    #[x_kube(validation = rules::immutable(
        "the cluster that a NetworkConfig is for cannot change: delete it and create another one"
    ))]
    pub cluster: ClusterIdentity,

    /// The network of the writer's pods.
    #[serde(rename = "podCIDR")]
    #[schemars(schema_with = "crate::schema::network::cidr")]
    pub pod_cidr: String,

    /// The network from which the writer takes addresses for what is not a pod of its own.
    #[serde(rename = "externalCIDR")]
    #[schemars(schema_with = "crate::schema::network::cidr")]
    pub external_cidr: String,

    /// Where the writer's gateway can be reached: an IP address or DNS name.
    #[serde(rename = "endpointIP")]
    #[schemars(schema_with = "crate::schema::network::endpoint")]
    pub endpoint_ip: String,

    /// What kind of tunnel the gateway speaks.
    #[serde(rename = "backendType")]
    pub backend_type: TunnelBackend,

    /// The settings of the tunnel: for wireguard, publicKey and port.
    #[schemars(schema_with = "crate::schema::network::wireguard_settings")]
    pub backend_config: BTreeMap<String, String>,
}

/// The kinds of tunnels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TunnelBackend {
    /// WireGuard.
    #[default]
    Wireguard,
}

/// What the peer made of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct NetworkConfigStatus {
    /// Whether the peer has chosen the networks below.
    #[serde(default)]
    pub processed: bool,

    /// The network that the writer's pods have in the peer's eyes; None if it is podCIDR itself.
    #[serde(rename = "podCIDRNAT", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::network::cidr_or_none")]
    pub pod_cidr_nat: Option<String>,

    /// The network that the writer's external addresses have in the peer's eyes; None if it is externalCIDR itself.
    #[serde(rename = "externalCIDRNAT", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::network::cidr_or_none")]
    pub external_cidr_nat: Option<String>,

    /// Further aspects of the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}
