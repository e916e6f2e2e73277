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

use crate::schema::rules;

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

    /// Labels for the virtual node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::labels")]
    pub labels: BTreeMap<String, String>,

    /// What a unit of each resource costs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub prices: BTreeMap<String, Quantity>,

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
