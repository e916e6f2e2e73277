//! ResourceRequest: a consumer asks a provider for an offer.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, Time},
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ClusterIdentity, schema::rules};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "discovery.liqo.io",
    version = "v1alpha1",
    kind = "ResourceRequest",
    plural = "resourcerequests",
    namespaced,
    shortname = "rr",
    category = "liqo",
    status = "ResourceRequestStatus",
    derive = "PartialEq",
    doc = "A cluster's wish to borrow capacity, written into its tenant namespace at the provider.",
    printcolumn(name = "Local", type_ = "string", json_path = ".metadata.labels.liqo\\.io/replication"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequestSpec {
    /// The cluster that asks.
    #[x_kube(validation = rules::immutable(
        "the requesting cluster cannot change: delete this ResourceRequest and create another one"
    ))]
    pub cluster_identity: ClusterIdentity,

    /// The https URL of the asking cluster's authentication service, if it can be reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::network::https_url")]
    pub auth_url: Option<String>,

    /// The most that is wanted of these resources; of others, what is offered is taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub resources: BTreeMap<String, Quantity>,

    /// Set when the request is withdrawn, so that the provider can end the lending in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub withdrawal_timestamp: Option<Time>,
}

/// What became of the request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRequestStatus {
    /// When the provider withdrew the offer it had made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub offer_withdrawal_timestamp: Option<Time>,

    /// Whether there is an offer.
    #[serde(default)]
    pub offer_state: OfferState,

    /// Further aspects of the state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Whether a request was answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum OfferState {
    /// There is no offer.
    #[default]
    None,
    /// There is an offer.
    Created,
}
