//! SharingPolicy: what is shared, how much, with whom, at what price and when.
//!
//! The shape is that of [`liqo_core::policy::Spec`], which says what each field means in detail and into which the spec
//! converts.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, LabelSelector, LabelSelectorRequirement, Time},
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::borrowing::UnitPrices;

mod read;

/// Condition: the policy makes sense. One that does not refuses everybody whom it is about.
pub const VALID: &str = "Valid";

/// What is shared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "sharing.liqo.io",
    version = "v1alpha1",
    kind = "SharingPolicy",
    plural = "sharingpolicies",
    shortname = "spol",
    category = "liqo",
    status = "SharingPolicyStatus",
    derive = "PartialEq",
    doc = "What this cluster shares: which resources, how much, with whom, at what price and when. The most specific \
           policy about a cluster applies.",
    printcolumn(name = "Action", type_ = "string", json_path = ".spec.action"),
    printcolumn(name = "Percentage", type_ = "integer", json_path = ".spec.share.percentage"),
    printcolumn(name = "Approval", type_ = "string", json_path = ".spec.approval", priority = 1),
    printcolumn(name = "Currency", type_ = "string", json_path = ".spec.prices.currency", priority = 1),
    printcolumn(name = "Peers", type_ = "string", json_path = ".status.peers"),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.notBefore) || !has(self.notAfter) || self.notBefore < self.notAfter")
        .message("must be later than notBefore")
        .field_path(".notAfter"),
)]
pub struct SharingPolicySpec {
    /// With whom; left out, with any cluster.
    #[serde(default, skip_serializing_if = "PolicyPeers::is_empty")]
    pub peers: PolicyPeers,

    /// Whether these clusters get something or nothing.
    #[serde(default)]
    pub action: PolicyAction,

    /// Whether somebody has to say yes to each cluster: `liqoctl policy approve` or the annotation
    /// sharing.liqo.io/approved on the ForeignCluster.
    #[serde(default)]
    pub approval: Approval,

    /// Names or patterns of the resources to share; left out, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::some_patterns")]
    pub resources: Option<Vec<String>>,

    /// The nodes to share; left out, all.
    #[serde(default, skip_serializing_if = "is_everything")]
    #[schemars(schema_with = "crate::schema::selector::label_selector")]
    pub node_selector: LabelSelector,

    /// Parts of these nodes that are lent apart from each other: each becomes a node of its own at other clusters. A node
    /// that two of them select belongs to the first; one that none selects is not shared. Left out, all nodes are one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = crate::schema::limits::MAX_POOLS))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub pools: Vec<PolicyPool>,

    /// How much of every resource.
    #[serde(default, skip_serializing_if = "Share::is_empty")]
    pub share: Share,

    /// How much of particular resources; what is left out here is as in share.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::shares::<ResourceShare>")]
    pub shares: BTreeMap<String, ResourceShare>,

    /// Names or patterns of the storage classes that may be used; left out, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::patterns")]
    pub storage_classes: Option<Vec<String>>,

    /// The storage class of volumes that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::object_name")]
    pub default_storage_class: Option<String>,

    /// Names or patterns of the exported services, as namespace/name; left out, none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::patterns")]
    pub services: Vec<String>,

    /// Names or patterns of the images that are told about; left out, none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::patterns")]
    pub images: Vec<String>,

    /// What it costs; left out, nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<UnitPrices>,

    /// When: weekly windows of time; left out, always.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = crate::schema::limits::MAX_WINDOWS))]
    #[x_kube(merge_strategy = ListMerge::Atomic)]
    pub windows: Vec<TimeWindow>,

    /// From when on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub not_before: Option<Time>,

    /// Until when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub not_after: Option<Time>,

    /// Whether use beyond the agreed is refused at admission or reported.
    #[serde(default)]
    pub enforcement: Enforcement,

    /// What contracts under this policy say.
    #[serde(default, skip_serializing_if = "PolicyContract::is_empty")]
    pub contract: PolicyContract,

    /// How the pods of these clusters run here.
    #[serde(default, skip_serializing_if = "PolicyWorkloads::is_empty")]
    pub workloads: PolicyWorkloads,
}

fn is_everything(selector: &LabelSelector) -> bool {
    *selector == LabelSelector::default()
}

/// Whom a policy is about. A cluster must be in the list, if there is one, and meet all requirements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPeers {
    /// Cluster IDs.
    #[serde(rename = "clusterIDs", default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::cluster_ids")]
    pub cluster_ids: Vec<String>,

    /// Labels that the ForeignCluster must have with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::match_labels")]
    pub match_labels: BTreeMap<String, String>,

    /// Further requirements on the labels of the ForeignCluster; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::selector::match_expressions")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

impl PolicyPeers {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A part of the nodes that is lent apart from the others.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPool {
    /// What it is called, here and at other clusters.
    #[schemars(schema_with = "crate::schema::pools::name")]
    pub name: String,

    /// Its nodes; left out, all that belong to no pool before it.
    #[serde(default, skip_serializing_if = "is_everything")]
    #[schemars(schema_with = "crate::schema::pools::selector")]
    pub node_selector: LabelSelector,

    /// Labels for the nodes that stand for it at other clusters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::pools::labels")]
    pub labels: BTreeMap<String, String>,
}

/// Whether clusters get something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PolicyAction {
    /// They do.
    #[default]
    Allow,
    /// They get nothing.
    Deny,
}

/// Whether somebody has to say yes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// Nobody has to.
    #[default]
    Automatic,
    /// Somebody has to, for each cluster.
    Required,
}

/// What happens to use beyond the agreed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Enforcement {
    /// It is refused at admission.
    #[default]
    Hard,
    /// It is reported.
    Soft,
}

/// What happens when a contract comes to its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Renewal {
    /// It goes on for as long again, if both sign.
    #[default]
    Auto,
    /// It is over.
    None,
}

/// Where a share lies between two portions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Rounding {
    /// The smaller one.
    #[default]
    Down,
    /// The larger one.
    Up,
    /// The nearer one.
    Nearest,
}

/// How much of every resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Share {
    /// Hundredths of what is free, 0 to 100; left out, the cluster's own percentage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::percentage")]
    pub percentage: Option<u8>,

    /// How many times the capacity is sold, such as 1.5; at most 100, with at most three decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::overcommit")]
    pub overcommit: Option<Quantity>,

    /// Which portion it is where a share lies between two; left out, the smaller one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<Rounding>,

    /// Hundredths of all that the policy shares which one cluster gets at most, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::percentage")]
    pub per_peer_percentage: Option<u8>,
}

impl Share {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How much of one resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceShare {
    /// Hundredths of what is free, 0 to 100; with a cap and no percentage, all up to the cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::percentage")]
    pub percentage: Option<u8>,

    /// How many times the capacity is sold, such as 1.5; at most 100, with at most three decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::overcommit")]
    pub overcommit: Option<Quantity>,

    /// Which portion it is where a share lies between two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounding: Option<Rounding>,

    /// Hundredths of all that the policy shares which one cluster gets at most, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::percentage")]
    pub per_peer_percentage: Option<u8>,

    /// Never more than this to all clusters together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::resources::amount")]
    pub cap: Option<Quantity>,

    /// Never more than this to one cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::resources::amount")]
    pub per_peer_cap: Option<Quantity>,

    /// Kept back for the cluster itself before anything is shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::resources::amount")]
    pub reserve: Option<Quantity>,

    /// What an autoscaler can add: counted as if it were there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::resources::amount")]
    pub autoscaled: Option<Quantity>,
}

/// A weekly window of time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.from != self.to")
        .message("must not be the same as from: write 00:00 and 24:00 for a whole day, or remove the window")
        .field_path(".to"),
)]
pub struct TimeWindow {
    /// The days on which it opens; left out, every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::days")]
    pub days: Vec<String>,

    /// When it opens, as 20:00.
    #[schemars(schema_with = "crate::schema::sharing::opening_time")]
    pub from: String,

    /// When it closes, as 06:00 (of the next day, if that is not after from) or 24:00.
    #[schemars(schema_with = "crate::schema::sharing::closing_time")]
    pub to: String,

    /// Such as Europe/Rome; left out, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::time_zone")]
    pub time_zone: Option<String>,
}

/// What contracts under a policy say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyContract {
    /// How long an offer stands, such as 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::span")]
    pub offer_validity: Option<String>,

    /// How long a contract lasts, such as 30d.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::span")]
    pub duration: Option<String>,

    /// What happens at the end; left out, it goes on for as long again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewal: Option<Renewal>,

    /// What else is promised, such as availability: "99.9".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::service_level")]
    pub service_level: BTreeMap<String, String>,
}

impl PolicyContract {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How pods of other clusters run here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyWorkloads {
    /// The Pod Security level that their namespaces enforce; left out, Baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<PodSecurity>,

    /// The RuntimeClass that they run under, such as one of a hardened runtime; left out, the nodes' usual runtime.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::object_name")]
    pub runtime_class: Option<String>,

    /// The highest priority that they may have; left out, 0. A pod that asks for a PriorityClass with more gets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub max_priority: Option<i32>,

    /// Names or patterns of further annotations that their pods keep; what node agents and admission read in annotations
    /// can give rights, so that only harmless ones are kept otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::patterns")]
    pub annotations: Vec<String>,

    /// The custom resources that they may bring along, such as widgets.example.com, of those that the cluster hosts
    /// (customKinds.hosted of the chart's values); left out, all of these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::custom_kinds")]
    pub custom_kinds: Option<Vec<String>>,
}

impl PolicyWorkloads {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The levels of Kubernetes' Pod Security Standards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PodSecurity {
    /// Nothing is refused by Pod Security; host namespaces and host paths are refused all the same.
    Privileged,
    /// What gives rights on the node is refused.
    #[default]
    Baseline,
    /// What is not hardened is refused.
    Restricted,
}

impl PodSecurity {
    /// The level as Kubernetes spells it in labels.
    pub const fn as_label(self) -> &'static str {
        match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        }
    }
}

/// Whether the policy makes sense, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharingPolicyStatus {
    /// The metadata.generation that this was found out about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::generation")]
    pub observed_generation: Option<i64>,

    /// The clusters that it is applied to now; of very many, the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::cluster_names")]
    pub peers: Vec<String>,

    /// What is sold by it now.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub sold: BTreeMap<String, Quantity>,

    /// Whether the policy makes sense, and if not, why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests;
