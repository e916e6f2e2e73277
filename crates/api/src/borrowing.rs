//! What a cluster wants to borrow, and what it accepts of what it is offered.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::schema::rules;

/// What is wanted of a provider and what is accepted.
///
/// A ClusterConfig has it for all peers, a ForeignCluster for one; there, what is set takes the place of the same field
/// of the ClusterConfig ([`Borrowing::or`]).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = rules::no_more_than("minimum", "wanted", "minimum must not be more than what is wanted"),
)]
pub struct Borrowing {
    /// Whether offers are accepted without a person. Left out, as the controller manager is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automatic: Option<bool>,

    /// The most that is wanted of these resources; of others, what is offered is taken.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub wanted: BTreeMap<String, Quantity>,

    /// The least that is accepted of these resources.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub minimum: BTreeMap<String, Quantity>,

    /// The currencies that are paid in; left out, any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::sharing::currencies")]
    pub currencies: Vec<String>,

    /// The highest price of a unit of these resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_prices: Option<UnitPrices>,

    /// The highest price of all that is offered together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum_total: Option<Total>,
}

/// Prices of units.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnitPrices {
    /// The currency, such as EUR.
    #[schemars(schema_with = "crate::schema::sharing::currency")]
    pub currency: String,

    /// What a price is for: Hourly, Daily, Weekly, Monthly, Yearly or a length of time such as 15m.
    #[schemars(schema_with = "crate::schema::sharing::period")]
    pub period: String,

    /// What a core, a GiB or one of each resource costs per period.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crate::schema::resources::resource_list")]
    pub per_unit: BTreeMap<String, Quantity>,
}

/// The price of everything together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Total {
    /// The currency, such as EUR.
    #[schemars(schema_with = "crate::schema::sharing::currency")]
    pub currency: String,

    /// What the amount is for: Hourly, Daily, Weekly, Monthly, Yearly or a length of time such as 15m.
    #[schemars(schema_with = "crate::schema::sharing::period")]
    pub period: String,

    /// How much.
    #[schemars(schema_with = "crate::schema::resources::amount")]
    pub amount: Quantity,
}

impl Borrowing {
    /// These settings, and where something is not set, the `general` ones.
    #[must_use]
    pub fn or(self, general: &Self) -> Self {
        fn first<T: Clone + Default + PartialEq>(own: T, general: &T) -> T {
            if own == T::default() { general.clone() } else { own }
        }
        Self {
            automatic: first(self.automatic, &general.automatic),
            wanted: first(self.wanted, &general.wanted),
            minimum: first(self.minimum, &general.minimum),
            currencies: first(self.currencies, &general.currencies),
            maximum_prices: first(self.maximum_prices, &general.maximum_prices),
            maximum_total: first(self.maximum_total, &general.maximum_total),
        }
    }

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests;
