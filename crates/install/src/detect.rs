//! Concludes from the facts what cluster it is, and where its networks and its API server are.
//!
//! Pure: every conclusion says what it was drawn from, and the facts of a cluster can be replayed in a test.

mod api_server;
mod distribution;
mod name;
mod networks;

use std::fmt;

use serde::Serialize;

pub(crate) use api_server::only_here;
pub use distribution::Distribution;
pub use name::generated as generated_name;

use crate::facts::Facts;

/// A conclusion, and what it was drawn from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found<T> {
    /// What was found.
    pub value: T,
    /// Where: "ConfigMap kube-system/kubeadm-config".
    pub source: String,
}

impl<T> Found<T> {
    pub(crate) fn new(value: impl Into<T>, source: impl Into<String>) -> Self {
        Self { value: value.into(), source: source.into() }
    }
}

impl<T: fmt::Display> fmt::Display for Found<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (from {})", self.value, self.source)
    }
}

/// What the facts tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Detected {
    /// Which distribution it is; `None` if it could be any.
    pub distribution: Option<Found<Distribution>>,
    /// Where peers reach the API server.
    pub api_server: Option<Found<String>>,
    /// The pods' network.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: Option<Found<String>>,
    /// The services' network.
    #[serde(rename = "serviceCIDR")]
    pub service_cidr: Option<Found<String>>,
    /// What the cluster is called elsewhere.
    pub cluster_name: Option<Found<String>>,
    /// Where the cluster is.
    pub region: Option<Found<String>>,
}

/// Draws the conclusions; `told` is the distribution that the user named.
pub fn detect(facts: &Facts, told: Option<Distribution>) -> Detected {
    let distribution = distribution::find(facts);
    let assumed = told.or(distribution.as_ref().map(|found| found.value));
    let service_cidr = networks::services(facts, assumed);
    Detected {
        api_server: api_server::find(facts),
        pod_cidr: networks::pods(facts, assumed, service_cidr.as_ref()),
        service_cidr,
        cluster_name: name::find(facts),
        region: region(facts),
        distribution,
    }
}

/// The region, if all nodes are in the same.
fn region(facts: &Facts) -> Option<Found<String>> {
    let mut regions = facts.nodes.iter().map(|node| node.labels.get(liqo_api::labels::REGION));
    let first = regions.next()??;
    regions
        .all(|region| region == Some(first))
        .then(|| Found::new(first.as_str(), format!("the nodes' label {}", liqo_api::labels::REGION)))
}

#[cfg(test)]
mod tests;
