//! ResourceOffer: what a provider offers to a consumer.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::ContainerImage,
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{Condition, Time},
    },
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    schema::rules,
    sharing_policy::{Enforcement, Renewal},
};

/// What is offered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "sharing.liqo.io",
    version = "v1alpha1",
    kind = "ResourceOffer",
    plural = "resourceoffers",
    namespaced,
    shortname = "offer",
    category = "liqo",
    status = "ResourceOfferStatus",
    derive = "PartialEq",
    doc = "Capacity that a provider offers to one consumer; once accepted, it becomes a virtual node there.",
    printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "VirtualKubeletStatus", type_ = "string", json_path = ".status.virtualKubeletStatus"),
    printcolumn(name = "Local", type_ = "string", json_path = ".metadata.labels.liqo\\.io/replication"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.currency) == has(self.pricePeriod)")
        .message("currency and pricePeriod go together: a price is so much of a currency for so long"),
)]
pub struct ResourceOfferSpec {
    /// The cluster ID of the provider.
    #[schemars(schema_with = "crate::schema::cluster_id")]
    #[x_kube(validation = rules::immutable(
        "the offering cluster cannot change: delete this ResourceOffer and create another one"
    ))]
    pub cluster_id: String,

    /// Images that the provider's nodes already have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::images")]
    pub images: Vec<ContainerImage>,

    /// The amounts offered.
    #[serde(default, skip_serializing_if = "OfferedQuota::is_empty")]
    pub resource_quota: OfferedQuota,

    /// The same amounts by pool of the provider's nodes, to which they add up; each pool becomes a virtual node. Left out,
    /// there is one for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = crate::schema::limits::MAX_POOLS))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["name".to_owned()]))]
    pub pools: Vec<OfferedPool>,

    /// Labels for the virtual node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::labels")]
    pub labels: BTreeMap<String, String>,

    /// What a unit of each resource costs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub prices: BTreeMap<String, Quantity>,

    /// The currency of the prices, such as EUR.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::currency")]
    pub currency: Option<String>,

    /// What a price is for: Hourly, Daily, Weekly, Monthly, Yearly or a length of time such as 15m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::period")]
    pub price_period: Option<String>,

    /// Until when the offer stands, unless it is made anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub valid_until: Option<Time>,

    /// The largest pods that fit now, as a sum says nothing about fragments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_pod: Option<LargestPod>,

    /// Services of the provider that the consumer may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = crate::schema::limits::MAX_SERVICES))]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["namespace".to_owned(), "name".to_owned()]))]
    pub services: Vec<OfferedService>,

    /// What a contract about this offer says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<OfferedContract>,

    /// The SharingPolicy that the offer comes from; left out, there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::object_name")]
    pub policy: Option<String>,

    /// Set when the offer is withdrawn, so that the consumer can leave in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub withdrawal_timestamp: Option<Time>,

    /// Storage classes that the consumer's volumes may use. At most one is the default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = crate::schema::limits::MAX_STORAGE_CLASSES))]
    #[x_kube(
        merge_strategy = ListMerge::Map(vec!["storageClassName".to_owned()]),
        validation = Rule::new("self.filter(class, has(class.default) && class.default).size() <= 1")
            .message("at most one storage class can be the default"),
    )]
    pub storage_classes: Vec<OfferedStorageClass>,
}

/// The amounts offered, in the shape of a core/v1 ResourceQuotaSpec of which only `hard` has a meaning here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedQuota {
    /// The amount of each resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub hard: BTreeMap<String, Quantity>,
}

impl OfferedQuota {
    fn is_empty(&self) -> bool {
        self.hard.is_empty()
    }
}

/// What is offered of one pool of the provider's nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedPool {
    /// What the provider calls it.
    #[schemars(schema_with = "crate::schema::pools::name")]
    pub name: String,

    /// The amount of each resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::pools::amounts")]
    pub resources: BTreeMap<String, Quantity>,

    /// Labels for its virtual node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::pools::labels")]
    pub labels: BTreeMap<String, String>,

    /// The largest pods that fit into it now. For information, as that of the whole offer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::pools::largest_pod")]
    pub largest_pod: Option<LargestPod>,
}

/// A storage class of the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedStorageClass {
    /// Its name at the provider.
    #[schemars(schema_with = "crate::schema::object_name")]
    pub storage_class_name: String,

    /// Whether volumes that name no class get this one.
    #[serde(default)]
    pub default: bool,
}

/// The largest pods that fit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct LargestPod {
    /// What one pod can have as a whole, on the roomiest node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub on_one_node: BTreeMap<String, Quantity>,

    /// The most of each resource alone that any one node has.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub of_each: BTreeMap<String, Quantity>,
}

/// A service of the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedService {
    /// Its namespace at the provider.
    #[schemars(schema_with = "crate::schema::namespace_name")]
    pub namespace: String,

    /// Its name.
    #[schemars(schema_with = "crate::schema::service_name")]
    pub name: String,
}

/// What a contract about an offer says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferedContract {
    /// How long it lasts, such as 24h.
    #[schemars(schema_with = "crate::schema::sharing::span")]
    pub duration: String,

    /// What happens when it comes to its end.
    #[serde(default)]
    pub renewal: Renewal,

    /// Whether use beyond the agreed is refused at admission or reported.
    #[serde(default)]
    pub enforcement: Enforcement,

    /// What else is promised, such as availability: "99.9".
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::service_level")]
    pub service_level: BTreeMap<String, String>,

    /// When it ends at the latest, whatever its duration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub ends_by: Option<Time>,
}

/// What became of the offer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceOfferStatus {
    /// Whether the consumer accepted it.
    #[serde(default)]
    pub phase: OfferPhase,

    /// Whether its virtual node exists.
    #[serde(default)]
    pub virtual_kubelet_status: VirtualKubeletStatus,

    /// Further aspects of the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// How far an offer is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OfferPhase {
    /// The consumer has not decided yet.
    #[default]
    Pending,
    /// A person has to decide.
    ManualActionRequired,
    /// The consumer wants it.
    Accepted,
    /// The consumer does not want it.
    Refused,
}

/// Whether a virtual node serves the offer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum VirtualKubeletStatus {
    /// There is none.
    #[default]
    None,
    /// There is one.
    Created,
    /// It is being taken down.
    Deleting,
}

#[cfg(test)]
mod tests;
