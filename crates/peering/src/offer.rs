//! Offers, as they are written for the other side and as they are read from it.
//!
//! ```text
//! provider: core Offer + Goods ──make──▶ ResourceOfferSpec ──plan: is it another one?──▶ written, or not
//! consumer: ResourceOfferSpec ──Read::of──▶ Read ──decide (core) with Wants──▶ taken, left, or asked about
//! ```
//!
//! # The digest of an offer
//!
//! The [canonical](liqo_core::canonical) digest, with the domain [`OFFER_DOMAIN`], of the spec without what changes
//! while the offer stays the same: `validUntil`, `withdrawalTimestamp`, `largestPod` (of pools too) and `images`. A contract names the
//! digest of its offer, so that both sides know what was accepted.
//!
//! # What is hostile
//!
//! What a provider writes is parsed field by field. A resource that makes no sense is left out and told about; prices or
//! times that make none spoil the offer, as nobody should pay by them.

use std::fmt;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use liqo_api::ResourceOfferSpec;
use liqo_core::Resources;
use liqo_core::canonical::{Digest, NotCanonical};
use serde_json::Value;

mod change;
mod make;
mod read;
#[cfg(test)]
mod tests;
mod wants;

pub use change::{Plan, differences, plan};
pub use make::Making;
pub use read::Read;
pub use wants::Wants;

/// The domain of the digest of offers.
pub const OFFER_DOMAIN: &str = "liqo.io/offer/v1";

/// Fields that change while the offer stays the same.
const NOT_IN_DIGEST: [&str; 4] = ["validUntil", "withdrawalTimestamp", "largestPod", "images"];

/// The digest of an offer.
pub fn digest(spec: &ResourceOfferSpec) -> Result<Digest, NotCanonical> {
    let mut document = serde_json::to_value(spec).map_err(|error| NotCanonical::Json(error.to_string()))?;
    if let Value::Object(fields) = &mut document {
        for field in NOT_IN_DIGEST {
            fields.remove(field);
        }
        let pools = fields.get_mut("pools").and_then(Value::as_array_mut);
        for pool in pools.into_iter().flatten().filter_map(Value::as_object_mut) {
            pool.remove("largestPod");
        }
    }
    Digest::of_document(OFFER_DOMAIN, &document)
}

/// Everything that is wrong with something, a sentence each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    fn add(&mut self, field: &str, problem: impl fmt::Display) {
        self.0.push(format!("{field}: {problem}"));
    }

    /// Notes the error, if it is one.
    fn keep<T, E: fmt::Display>(&mut self, field: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(field, error)).ok()
    }

    /// The sentences.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join("; "))
    }
}

impl std::error::Error for Problems {}

type Texts = std::collections::BTreeMap<String, Text>;

/// A list as objects have it.
pub(crate) fn texts(resources: &Resources) -> Texts {
    resources.iter().map(|(name, amount)| (name.to_string(), Text(amount.to_string()))).collect()
}

/// A list out of an object: what is fine, and a sentence for what is not.
pub(crate) fn amounts(texts: &Texts) -> (Resources, Vec<String>) {
    let read = Resources::parse(texts.iter().map(|(name, amount)| (name, amount.0.trim())));
    let positive = read.resources.refuse_negative();
    let problems = read.problems.iter().chain(&positive.problems).map(ToString::to_string).collect();
    (positive.resources, problems)
}
