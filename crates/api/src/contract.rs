//! Contract: what two clusters agreed on, and signed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{
    api::resource::Quantity,
    apis::meta::v1::{Condition, Time},
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rules;

/// Condition: both signatures are there and right.
pub const SIGNED: &str = "Signed";

/// Condition: what was promised is backed by nodes of the provider.
pub const CAPACITY_BACKED: &str = "CapacityBacked";

/// Condition: the consumer uses no more than was agreed.
pub const WITHIN_AGREED: &str = "WithinAgreed";

/// What the consumer proposes, and whether it ends the contract. Written by the consumer alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "sharing.liqo.io",
    version = "v1alpha1",
    kind = "Contract",
    plural = "contracts",
    namespaced,
    shortname = "lct",
    category = "liqo",
    status = "ContractStatus",
    derive = "PartialEq",
    doc = "What a provider and a consumer agreed on: the consumer writes the spec, the provider the status, and both sign.",
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.providerID"),
    printcolumn(name = "Consumer", type_ = "string", json_path = ".spec.consumerID"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".status.resources.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".status.resources.memory"),
    printcolumn(name = "Until", type_ = "string", json_path = ".status.validUntil"),
    printcolumn(name = "Price", type_ = "string", json_path = ".status.price", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self.providerID != self.consumerID")
        .message("a contract needs two parties: providerID and consumerID are the same"),
    validation = Rule::new("!has(oldSelf.ended) || has(self.ended)")
        .message("what is over does not begin again: make another contract")
        .field_path(".ended"),
    validation = Rule::new(
        "!has(oldSelf.ended) || (self.terms == oldSelf.terms && self.consumerSignature == oldSelf.consumerSignature)",
    )
    .message("a contract that is over is not amended: make another one")
    .field_path(".terms"),
)]
pub struct ContractSpec {
    /// The cluster ID of the one that lends.
    #[serde(rename = "providerID")]
    #[schemars(schema_with = "crate::schema::cluster_id")]
    #[x_kube(validation = rules::immutable("the parties cannot change: make another contract"))]
    pub provider_id: String,

    /// The cluster ID of the one that borrows.
    #[serde(rename = "consumerID")]
    #[schemars(schema_with = "crate::schema::cluster_id")]
    #[x_kube(validation = rules::immutable("the parties cannot change: make another contract"))]
    pub consumer_id: String,

    /// The terms that the consumer proposes: the canonical text that is signed.
    #[schemars(schema_with = "crate::schema::sharing::terms")]
    pub terms: String,

    /// The consumer's signature over the terms: ed25519: and 128 hex digits.
    #[schemars(schema_with = "crate::schema::sharing::signature")]
    pub consumer_signature: String,

    /// Set when the consumer ends the contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// When and why a contract was ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// When.
    #[schemars(schema_with = "crate::schema::time")]
    pub time: Time,

    /// Why, as one word for programs.
    #[schemars(schema_with = "crate::schema::sharing::reason")]
    pub reason: String,

    /// Why, as a sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::sentence")]
    pub message: String,
}

/// What the provider says of the contract. Written by the provider alone.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContractStatus {
    /// How far it is.
    #[serde(default)]
    pub phase: ContractPhase,

    /// What is in force: signed by both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreed: Option<Agreed>,

    /// The digest of the terms in force: sha256: and 64 hex digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::digest")]
    pub digest: Option<String>,

    /// Which amendment is in force; 0 is the first agreement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::sequence")]
    pub sequence: Option<u64>,

    /// What is lent, for people; what counts are the terms.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub resources: BTreeMap<String, Quantity>,

    /// Until when the terms in force are valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::time")]
    pub valid_until: Option<Time>,

    /// What it costs, for people; what counts are the terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::sharing::sentence")]
    pub price: Option<String>,

    /// Whether the contract is signed and kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// Terms that both signed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agreed {
    /// The canonical text that was signed.
    #[schemars(schema_with = "crate::schema::sharing::terms")]
    pub terms: String,

    /// The consumer's signature: ed25519: and 128 hex digits.
    #[schemars(schema_with = "crate::schema::sharing::signature")]
    pub consumer_signature: String,

    /// The provider's signature: ed25519: and 128 hex digits.
    #[schemars(schema_with = "crate::schema::sharing::signature")]
    pub provider_signature: String,

    /// When the provider signed.
    #[schemars(schema_with = "crate::schema::time")]
    pub time: Time,
}

/// How far a contract is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum ContractPhase {
    /// The consumer signed, the provider has not yet.
    #[default]
    Proposed,
    /// Both signed.
    Active,
    /// Both signed, and an amendment waits for the provider's signature.
    Amending,
    /// The provider does not sign; the condition says why.
    Refused,
    /// It came to its end.
    Expired,
    /// Somebody ended it.
    Ended,
}

impl ContractPhase {
    /// Whether both signed and the contract is in force.
    pub const fn is_in_force(self) -> bool {
        matches!(self, Self::Active | Self::Amending)
    }

    /// Whether nothing can come any more.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Refused | Self::Expired | Self::Ended)
    }
}
