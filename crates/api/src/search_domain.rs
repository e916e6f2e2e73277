//! SearchDomain: where to look for peers by DNS.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Which domain to search and what to do with what is found there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "discovery.liqo.io",
    version = "v1alpha1",
    kind = "SearchDomain",
    plural = "searchdomains",
    shortname = "sd",
    category = "liqo",
    status = "SearchDomainStatus",
    derive = "PartialEq",
    doc = "A DNS domain whose records name clusters to peer with.",
    printcolumn(name = "Domain", type_ = "string", json_path = ".spec.domain"),
    printcolumn(name = "Autojoin", type_ = "boolean", json_path = ".spec.autojoin"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct SearchDomainSpec {
    /// The DNS domain.
    #[schemars(schema_with = "crate::schema::domain")]
    pub domain: String,

    /// Whether to borrow from the clusters found there without being told to.
    #[serde(default)]
    pub autojoin: bool,
}

/// What the last search gave.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchDomainStatus {
    /// How many clusters the domain names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::count")]
    pub found: Option<u32>,

    /// Whether the search works, and if not, why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}
