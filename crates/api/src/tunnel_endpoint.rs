//! TunnelEndpoint: everything the gateway needs to know about the tunnel to one peer.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    TunnelBackend,
    schema::{network::NOT_REMAPPED, rules},
};

/// The networks on both sides and where the peer's gateway is.
///
/// "NAT" networks are how one side's network looks to the other side: the `local` ones how the peer sees ours, the
/// `remote` ones how we see the peer's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "net.liqo.io",
    version = "v1alpha1",
    kind = "TunnelEndpoint",
    plural = "tunnelendpoints",
    namespaced,
    shortname = "tep",
    category = "liqo",
    status = "TunnelEndpointStatus",
    derive = "PartialEq",
    doc = "The tunnel to one peer: the networks on both sides, where the peer's gateway is, and whether it answers.",
    printcolumn(name = "Peering Cluster ID", type_ = "string", json_path = ".spec.clusterID"),
    printcolumn(name = "Endpoint IP", type_ = "string", json_path = ".spec.endpointIP", priority = 1),
    printcolumn(name = "Backend type", type_ = "string", json_path = ".spec.backendType"),
    printcolumn(name = "Connection status", type_ = "string", json_path = ".status.connection.status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[x_kube(
    validation = rules::disjoint("localPodCIDR", "localExternalCIDR"),
    validation = rules::disjoint("remotePodCIDR", "remoteExternalCIDR"),
)]
pub struct TunnelEndpointSpec {
    /// The cluster ID of the peer.
    #[serde(rename = "clusterID")]
    #[schemars(schema_with = "crate::schema::cluster_id")]
    #[x_kube(validation = rules::immutable(
        "the cluster at the other end cannot change: delete this TunnelEndpoint and create another one"
    ))]
    pub cluster_id: String,

    /// The network of our pods.
    #[serde(rename = "localPodCIDR")]
    #[schemars(schema_with = "crate::schema::network::cidr")]
    pub local_pod_cidr: String,

    /// The network of our pods in the peer's eyes.
    #[serde(rename = "localNATPodCIDR", default = "not_remapped")]
    #[schemars(schema_with = "crate::schema::network::cidr_or_none")]
    pub local_nat_pod_cidr: String,

    /// Our external network.
    #[serde(rename = "localExternalCIDR")]
    #[schemars(schema_with = "crate::schema::network::cidr")]
    pub local_external_cidr: String,

    /// Our external network in the peer's eyes.
    #[serde(rename = "localNATExternalCIDR", default = "not_remapped")]
    #[schemars(schema_with = "crate::schema::network::cidr_or_none")]
    pub local_nat_external_cidr: String,

    /// The network of the peer's pods.
    #[serde(rename = "remotePodCIDR")]
    #[schemars(schema_with = "crate::schema::network::cidr")]
    pub remote_pod_cidr: String,

    /// The network of the peer's pods in our eyes.
    #[serde(rename = "remoteNATPodCIDR", default = "not_remapped")]
    #[schemars(schema_with = "crate::schema::network::cidr_or_none")]
    pub remote_nat_pod_cidr: String,

    /// The peer's external network.
    #[serde(rename = "remoteExternalCIDR")]
    #[schemars(schema_with = "crate::schema::network::cidr")]
    pub remote_external_cidr: String,

    /// The peer's external network in our eyes.
    #[serde(rename = "remoteNATExternalCIDR", default = "not_remapped")]
    #[schemars(schema_with = "crate::schema::network::cidr_or_none")]
    pub remote_nat_external_cidr: String,

    /// Where the peer's gateway can be reached: an IP address or DNS name.
    #[serde(rename = "endpointIP")]
    #[schemars(schema_with = "crate::schema::network::endpoint")]
    pub endpoint_ip: String,

    /// What kind of tunnel it is.
    #[serde(rename = "backendType")]
    pub backend_type: TunnelBackend,

    /// The settings of the tunnel: for wireguard, publicKey and port.
    #[schemars(schema_with = "crate::schema::network::wireguard_settings")]
    pub backend_config: BTreeMap<String, String>,
}

fn not_remapped() -> String {
    NOT_REMAPPED.to_owned()
}

/// What the gateway set up, and whether the peer answers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
pub struct TunnelEndpointStatus {
    /// Index of the tunnel's interface.
    #[serde(rename = "tunnelIFaceIndex", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::count")]
    pub tunnel_interface_index: Option<u32>,

    /// Name of the tunnel's interface.
    #[serde(rename = "tunnelIFaceName", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::network::interface_name")]
    pub tunnel_interface_name: Option<String>,

    /// Index of the interface that leads to the gateway.
    #[serde(rename = "vethIFaceIndex", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::count")]
    pub veth_interface_index: Option<u32>,

    /// Name of the interface that leads to the gateway.
    #[serde(rename = "vethIFaceName", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::network::interface_name")]
    pub veth_interface_name: Option<String>,

    /// Address of the interface that leads to the gateway.
    #[serde(rename = "vethIP", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::network::ip")]
    pub veth_ip: Option<String>,

    /// Address of the node with the active gateway.
    #[serde(rename = "gatewayIP", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::network::ip")]
    pub gateway_ip: Option<String>,

    /// Whether the peer answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<Connection>,

    /// Further aspects of the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Whether the peer answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// In one word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ConnectionStatus>,

    /// As a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "crate::schema::condition_message")]
    pub status_message: String,

    /// How the tunnel's backend is set up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::network::backend_report")]
    pub peer_configuration: BTreeMap<String, String>,
}

/// Whether the peer answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionStatus {
    /// It does.
    Connected,
    /// Not yet.
    Connecting,
    /// It does not, or the tunnel could not be set up.
    Error,
}
