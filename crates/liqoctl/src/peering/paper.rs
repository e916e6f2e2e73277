//! Offers and contracts, for people and for programs.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use liqo_api::resource_offer::OfferedPool;
use liqo_api::{Contract, ResourceOffer, annotations};
use liqo_core::Resources;
use liqo_core::contract::Terms;
use liqo_core::names::PoolName;
use liqo_core::pools::Pool;
use serde::Serialize;

use super::amounts;

/// What is lent of one pool of the provider's nodes, which is a virtual node of its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PoolView {
    pub(crate) name: String,
    pub(crate) resources: BTreeMap<String, Quantity>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    /// What one pod can have on its nodes now; a contract says nothing about that.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) largest_pod: BTreeMap<String, Quantity>,
}

impl PoolView {
    fn offered(pool: &OfferedPool) -> Self {
        let largest = pool.largest_pod.as_ref().map(|largest| largest.on_one_node.clone());
        Self {
            name: pool.name.clone(),
            resources: pool.resources.clone(),
            labels: pool.labels.clone(),
            largest_pod: largest.unwrap_or_default(),
        }
    }

    /// The pools that terms speak of.
    pub(crate) fn all_of(terms: &Terms) -> Vec<Self> {
        let view = |(name, pool): (&PoolName, &Pool)| Self {
            name: name.to_string(),
            resources: texts(&pool.resources),
            labels: pool.labels.clone(),
            largest_pod: BTreeMap::new(),
        };
        terms.pools.iter().map(view).collect()
    }

    /// What there is of it.
    pub(crate) fn sentence(&self) -> String {
        let mut text = amounts(&self.resources);
        if !self.labels.is_empty() {
            let labels: Vec<String> =
                self.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            text += &format!("; labels {}", labels.join(", "));
        }
        if !self.largest_pod.is_empty() {
            text += &format!("; largest pod {}", amounts(&self.largest_pod));
        }
        text
    }
}

/// The names of pools in a cell of a table.
pub(crate) fn pool_names(pools: &[PoolView]) -> String {
    let names: Vec<&str> = pools.iter().map(|pool| pool.name.as_str()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

/// A list as objects have it.
pub(crate) fn texts(resources: &Resources) -> BTreeMap<String, Quantity> {
    resources.iter().map(|(name, amount)| (name.to_string(), Quantity(amount.to_string()))).collect()
}

/// An offer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OfferView {
    /// The peer, as it is called here.
    pub(crate) peer: String,
    /// Whether it is ours: `lend`, or the peer's: `borrow`.
    pub(crate) direction: &'static str,
    /// The ResourceOffer and where it is.
    pub(crate) name: String,
    pub(crate) namespace: String,
    #[serde(rename = "providerID")]
    pub(crate) provider_id: String,
    pub(crate) phase: String,
    pub(crate) resources: BTreeMap<String, Quantity>,
    /// The same by pool of the provider's nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pools: Vec<PoolView>,
    /// What one pod can have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) largest_pod: BTreeMap<String, Quantity>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) prices: BTreeMap<String, Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) currency: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price_period: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid_until: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    /// Why it is in that phase.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
    /// What a person decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<String>,
}

impl OfferView {
    pub(crate) fn of(offer: &ResourceOffer, peer: &str, ours: bool) -> Self {
        let spec = &offer.spec;
        let status = offer.status.clone().unwrap_or_default();
        let message =
            status.conditions.iter().map(|it| it.message.clone()).find(|message| !message.is_empty());
        let largest = spec.largest_pod.as_ref().map(|largest| largest.on_one_node.clone());
        Self {
            peer: peer.to_owned(),
            direction: direction(ours),
            name: offer.name_any(),
            namespace: offer.namespace().unwrap_or_default(),
            provider_id: spec.cluster_id.clone(),
            phase: format!("{:?}", status.phase),
            resources: spec.resource_quota.hard.clone(),
            pools: spec.pools.iter().map(PoolView::offered).collect(),
            largest_pod: largest.unwrap_or_default(),
            prices: spec.prices.clone(),
            currency: spec.currency.clone(),
            price_period: spec.price_period.clone(),
            valid_until: spec.valid_until.as_ref().map(|time| time.0),
            policy: spec.policy.clone(),
            message: message.unwrap_or_default(),
            decision: offer.annotations().get(annotations::DECISION).cloned(),
        }
    }

    /// What it costs per unit.
    pub(crate) fn price(&self) -> String {
        let (Some(currency), Some(period)) = (&self.currency, &self.price_period) else {
            return "free".to_owned();
        };
        if self.prices.is_empty() {
            "free".to_owned()
        } else {
            format!("{currency} {period}: {}", amounts(&self.prices))
        }
    }

    pub(crate) fn sentence(&self) -> String {
        format!("{}, {}; {}", self.phase, amounts(&self.resources), self.price())
    }
}

/// A contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContractView {
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// The peer, as it is called here.
    pub(crate) peer: String,
    /// Whether we lend by it or borrow.
    pub(crate) direction: &'static str,
    #[serde(rename = "providerID")]
    pub(crate) provider_id: String,
    #[serde(rename = "consumerID")]
    pub(crate) consumer_id: String,
    pub(crate) phase: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) resources: BTreeMap<String, Quantity>,
    /// The same by pool of the provider's nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) pools: Vec<PoolView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) valid_until: Option<Timestamp>,
    /// Which amendment is in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sequence: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) created: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<Timestamp>,
    /// Whether it is signed and kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conditions: Vec<ConditionView>,
}

/// A condition of a contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionView {
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) status: String,
    pub(crate) since: Timestamp,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl ContractView {
    pub(crate) fn of(contract: &Contract, peer: &str, ours: bool) -> Self {
        let status = contract.status.clone().unwrap_or_default();
        let conditions = status.conditions.iter().map(|it| ConditionView {
            type_: it.type_.clone(),
            status: it.status.clone(),
            since: it.last_transition_time.0,
            reason: it.reason.clone(),
            message: it.message.clone(),
        });
        Self {
            name: contract.name_any(),
            namespace: contract.namespace().unwrap_or_default(),
            peer: peer.to_owned(),
            direction: direction(ours),
            provider_id: contract.spec.provider_id.clone(),
            consumer_id: contract.spec.consumer_id.clone(),
            phase: format!("{:?}", status.phase),
            resources: status.resources.clone(),
            pools: status.agreed.as_ref().map_or_else(Vec::new, |agreed| pools_of(&agreed.terms)),
            price: status.price.clone(),
            valid_until: status.valid_until.as_ref().map(|time| time.0),
            sequence: status.sequence,
            digest: status.digest.clone(),
            created: contract.creation_timestamp().map(|time| time.0),
            ended: contract.spec.ended.as_ref().map(|ended| ended.time.0),
            conditions: conditions.collect(),
        }
    }

    /// What does not hold: the condition and its message.
    pub(crate) fn broken(&self) -> Vec<(&str, &str)> {
        let broken = self.conditions.iter().filter(|it| it.status == "False");
        broken.map(|it| (it.type_.as_str(), it.message.as_str())).collect()
    }

    pub(crate) fn sentence(&self) -> String {
        let price = self.price.as_deref().unwrap_or("free");
        let until = self.valid_until.map(|time| format!("; until {time}")).unwrap_or_default();
        format!("{} {}, {}; {price}{until}", self.name, self.phase, amounts(&self.resources))
    }
}

/// The pools in the text of terms; none where it cannot be read, which `contract verify` tells about.
fn pools_of(terms: &str) -> Vec<PoolView> {
    Terms::parse(terms.as_bytes()).map_or_else(|_| Vec::new(), |terms| PoolView::all_of(&terms))
}

const fn direction(ours: bool) -> &'static str {
    if ours { "lend" } else { "borrow" }
}
