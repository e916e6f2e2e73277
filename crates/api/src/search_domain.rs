//! SearchDomain: where to look for peers by DNS.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::ClusterIdentity;

/// Condition: the domain can be searched.
pub const READY: &str = "Ready";

/// Condition: every record of the domain names a cluster that answers; if not, the message says which does not, and why.
pub const RECORDS_VALID: &str = "RecordsValid";

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
    printcolumn(name = "Found", type_ = "integer", json_path = ".status.found"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
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

    /// Which clusters those are; of very many, the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = crate::schema::limits::MAX_FOUND))]
    pub clusters: Vec<ClusterIdentity>,

    /// When the domain was last asked. Not every question is noted here: at most one in ten minutes, or what changed
    /// something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub last_query: Option<Time>,

    /// Whether the search works, and if not, why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}
