//! ForeignCluster: a peer, known or wanted.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Borrowing, labels,
    names::{Identity, InvalidName},
    schema::{limits::MAX_CA_BUNDLE, rules},
};

/// What we want of the peer and how to reach it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "discovery.liqo.io",
    version = "v1alpha1",
    kind = "ForeignCluster",
    plural = "foreignclusters",
    shortname = "fc",
    category = "liqo",
    status = "ForeignClusterStatus",
    derive = "PartialEq",
    doc = "A cluster that this one may lend capacity to or borrow capacity from.",
    printcolumn(
        name = "ClusterID",
        type_ = "string",
        json_path = ".spec.clusterIdentity.clusterID",
        priority = 1
    ),
    printcolumn(
        name = "ClusterName",
        type_ = "string",
        json_path = ".spec.clusterIdentity.clusterName",
        priority = 1
    ),
    printcolumn(
        name = "Outgoing peering phase",
        type_ = "string",
        json_path = ".status.peeringConditions[?(@.type == 'OutgoingPeering')].status"
    ),
    printcolumn(
        name = "Incoming peering phase",
        type_ = "string",
        json_path = ".status.peeringConditions[?(@.type == 'IncomingPeering')].status"
    ),
    printcolumn(
        name = "Networking status",
        type_ = "string",
        json_path = ".status.peeringConditions[?(@.type == 'NetworkStatus')].status"
    ),
    printcolumn(
        name = "Authentication status",
        type_ = "string",
        json_path = ".status.peeringConditions[?(@.type == 'AuthenticationStatus')].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::set_once(
        &["clusterIdentity", "clusterID"],
        "the cluster ID cannot change once it is known: for another cluster, create another ForeignCluster",
    ),
    validation = rules::set_once(
        &["clusterIdentity", "clusterName"],
        "the cluster name cannot change once it is known, because nodes and namespaces are named after it: \
         delete this ForeignCluster and create it again",
    ),
    validation = Rule::new(
        "has(self.foreignAuthUrl) || (has(self.clusterIdentity) && has(self.clusterIdentity.clusterID) && \
         has(self.clusterIdentity.clusterName))",
    )
    .message("foreignAuthUrl is required, unless the peer's ID and name are known because it called us"),
)]
pub struct ForeignClusterSpec {
    /// Who the peer is. What is left out is asked from its authentication service and filled in once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_identity: Option<ForeignIdentity>,

    /// Whether to borrow from the peer. Auto decides by how it was found.
    #[serde(default)]
    pub outgoing_peering_enabled: PeeringEnabled,

    /// Whether to lend to the peer. Auto follows the cluster's general setting.
    #[serde(default)]
    pub incoming_peering_enabled: PeeringEnabled,

    /// Whether to connect the two clusters' pod networks.
    #[serde(default)]
    pub networking_enabled: NetworkingEnabled,

    /// The https URL of the peer's authentication service. A peer that called us need not have one; whoever is to be
    /// called must.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "crate::schema::network::https_url")]
    pub foreign_auth_url: String,

    /// The URL of a proxy through which the peer's API server is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::network::proxy_url")]
    pub foreign_proxy_url: Option<String>,

    /// Whether to accept any certificate from the authentication service. Only for trying things out: whoever sits
    /// in between can then take the token. It means nothing beside authFingerprint or authCaBundle.
    // Liqo's default is true, which switches TLS verification off for everyone who does not think of it.
    #[serde(rename = "insecureSkipTLSVerify", default)]
    pub insecure_skip_tls_verify: bool,

    /// The fingerprint of the authentication service's certificate: sha256: and the 64 hex digits of the SHA-256 of its
    /// DER form. With one, that certificate is trusted and no other, whoever issued it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::certificate_fingerprint")]
    pub auth_fingerprint: Option<String>,

    /// The authorities that vouch for the authentication service, as certificates in PEM. With them, a certificate that
    /// one of them signed for the host in foreignAuthUrl is trusted and no other, and may be renewed as often as its
    /// owner likes. Where authFingerprint is set, that counts instead; without either, the machine's authorities do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::ca_bundle")]
    pub auth_ca_bundle: Option<String>,

    /// Seconds after which a cluster found on the network is forgotten unless it is heard of again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::ttl")]
    pub ttl: Option<u32>,

    /// What to borrow from this peer and which of its offers to accept. What is left out is as in the ClusterConfig.
    #[serde(default, skip_serializing_if = "Borrowing::is_empty")]
    pub borrowing: Borrowing,
}

/// The longest [`ForeignClusterSpec::auth_ca_bundle`], in bytes.
pub const MAX_AUTH_CA_BUNDLE: usize = MAX_CA_BUNDLE as usize;

impl ForeignClusterSpec {
    /// A peer of which only the authentication URL is known; everything else is default.
    pub fn new(foreign_auth_url: impl Into<String>) -> Self {
        Self {
            cluster_identity: None,
            outgoing_peering_enabled: PeeringEnabled::default(),
            incoming_peering_enabled: PeeringEnabled::default(),
            networking_enabled: NetworkingEnabled::default(),
            foreign_auth_url: foreign_auth_url.into(),
            foreign_proxy_url: None,
            insecure_skip_tls_verify: false,
            auth_fingerprint: None,
            auth_ca_bundle: None,
            ttl: None,
            borrowing: Borrowing::default(),
        }
    }
}

/// What is known of a peer's identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct ForeignIdentity {
    /// What identifies the cluster for good, such as a UUID.
    #[serde(rename = "clusterID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::cluster_id")]
    pub cluster_id: Option<String>,

    /// What people call the cluster.
    #[serde(rename = "clusterName", default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::cluster_name")]
    pub cluster_name: Option<String>,
}

impl From<Identity> for ForeignIdentity {
    fn from(identity: Identity) -> Self {
        Self { cluster_id: Some(identity.id.into()), cluster_name: Some(identity.name.into()) }
    }
}

/// Whether a direction of the peering is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PeeringEnabled {
    /// Decided by how the peer was found and by the cluster's general settings.
    #[default]
    Auto,
    /// Not wanted.
    No,
    /// Wanted.
    Yes,
}

/// Whether the pod networks are connected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum NetworkingEnabled {
    /// They are not.
    No,
    /// They are.
    #[default]
    Yes,
}

/// How far the peering is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForeignClusterStatus {
    /// Where the objects of this peering live.
    #[serde(default, skip_serializing_if = "TenantNamespaces::is_empty")]
    pub tenant_namespace: TenantNamespaces,

    /// The state of each part of the peering, at most one entry per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".to_owned()]))]
    pub peering_conditions: Vec<PeeringCondition>,
}

/// The tenant namespaces of a peering.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
pub struct TenantNamespaces {
    /// The one in this cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::namespace_name")]
    pub local: Option<String>,

    /// The one in the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::namespace_name")]
    pub remote: Option<String>,
}

impl TenantNamespaces {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The state of one part of the peering.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PeeringCondition {
    /// Which part.
    #[serde(rename = "type")]
    pub type_: PeeringConditionType,

    /// Its state.
    #[serde(default)]
    pub status: PeeringConditionStatus,

    /// When the state last changed.
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

/// The parts of a peering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PeeringConditionType {
    /// We borrow from the peer.
    OutgoingPeering,
    /// The peer borrows from us.
    IncomingPeering,
    /// The pod networks are connected.
    NetworkStatus,
    /// We have an identity at the peer.
    AuthenticationStatus,
    /// The ForeignCluster itself makes sense.
    ProcessForeignClusterStatus,
}

/// The states of a part of a peering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PeeringConditionStatus {
    /// Neither there nor on its way.
    #[default]
    None,
    /// On its way.
    Pending,
    /// There.
    Established,
    /// Going away.
    Disconnecting,
    /// Refused by the peer.
    Denied,
    /// Refused by the peer, as no token was given.
    EmptyDenied,
    /// Failed; the message says how.
    Error,
    /// Done.
    Success,
}

/// How a peer became known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiscoveryType {
    /// By multicast DNS on the local network.
    Lan,
    /// By DNS, through a search domain.
    Wan,
    /// Someone created it.
    Manual,
    /// It asked us.
    IncomingPeering,
}

impl DiscoveryType {
    /// The value of the label [`labels::DISCOVERY_TYPE`].
    pub const fn as_label(self) -> &'static str {
        match self {
            Self::Lan => "LAN",
            Self::Wan => "WAN",
            Self::Manual => "Manual",
            Self::IncomingPeering => "IncomingPeering",
        }
    }

    /// Reads the label. An absent or unknown value means that someone created the object by hand.
    pub fn from_labels(labels: Option<&BTreeMap<String, String>>) -> Self {
        let value = labels.and_then(|labels| labels.get(labels::DISCOVERY_TYPE)).map(String::as_str);
        [Self::Lan, Self::Wan, Self::IncomingPeering]
            .into_iter()
            .find(|kind| Some(kind.as_label()) == value)
            .unwrap_or(Self::Manual)
    }
}

/// Reason of the condition AuthenticationStatus of a cluster that is known, and of which nobody wants anything yet.
pub const NOT_ASKED: &str = "NotAsked";

impl ForeignCluster {
    /// How the peer became known.
    pub fn discovery_type(&self) -> DiscoveryType {
        DiscoveryType::from_labels(self.metadata.labels.as_ref())
    }

    /// Who the peer is, once both its ID and its name are known.
    pub fn identity(&self) -> Option<Result<Identity, InvalidName>> {
        let identity = self.spec.cluster_identity.as_ref()?;
        let (id, name) = (identity.cluster_id.as_ref()?, identity.cluster_name.as_ref()?);
        let parse = || Ok(Identity { id: id.parse()?, name: name.parse()? });
        Some(parse())
    }

    /// Whether to borrow from the peer: as the spec says, and where that says Auto, by how the peer was found.
    ///
    /// `autojoin` is the cluster's general setting; `domain_joins` tells of a SearchDomain whether its clusters are to be
    /// joined (no, when it is gone).
    pub fn wants_outgoing(&self, autojoin: bool, domain_joins: impl FnOnce(&str) -> bool) -> bool {
        match self.spec.outgoing_peering_enabled {
            PeeringEnabled::Yes => true,
            PeeringEnabled::No => false,
            PeeringEnabled::Auto => {
                autojoin
                    && match self.discovery_type() {
                        DiscoveryType::Lan => true,
                        DiscoveryType::Wan => {
                            let labels = self.metadata.labels.as_ref();
                            labels
                                .and_then(|labels| labels.get(labels::SEARCH_DOMAIN))
                                .is_some_and(|name| domain_joins(name))
                        }
                        DiscoveryType::Manual | DiscoveryType::IncomingPeering => false,
                    }
            }
        }
    }

    /// The state of one part of the peering; `None` if nothing is known of it.
    pub fn peering_status(&self, part: PeeringConditionType) -> PeeringConditionStatus {
        self.status
            .iter()
            .flat_map(|status| &status.peering_conditions)
            .find(|condition| condition.type_ == part)
            .map_or(PeeringConditionStatus::None, |condition| condition.status)
    }
}

#[cfg(test)]
mod tests;
