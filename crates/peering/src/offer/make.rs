//! From what a policy gives to the object that the other side reads.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerImage;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use liqo_api::ResourceOfferSpec;
use liqo_api::resource_offer::{
    LargestPod, OfferedContract, OfferedPool, OfferedQuota, OfferedService, OfferedStorageClass,
};
use liqo_api::sharing_policy as api;
use liqo_core::contract::{Enforcement, Renewal};
use liqo_core::names::PoolName;
use liqo_core::policy::{Conditions, Offer};
use liqo_core::pools::Pool;
use liqo_core::{Resources, capacity};

use super::texts;
use crate::stock::Goods;

/// Resources and labels in an offer; the API takes no more.
const MOST_RESOURCES: usize = 64;
const MOST_LABELS: usize = 64;

/// Resources that nothing runs without: they are not left out of a list that is too long.
const COMMON: [&str; 4] = ["cpu", "memory", "pods", "ephemeral-storage"];

/// What an offer is made of.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// Who offers.
    pub provider: &'a str,
    /// What the policy gives.
    pub offer: &'a Offer,
    /// What there is besides resources.
    pub goods: &'a Goods,
    /// Labels for the virtual node.
    pub labels: &'a BTreeMap<String, String>,
    /// The time.
    pub now: Timestamp,
}

impl Making<'_> {
    /// The offer as it is written. Of it, only `validUntil` depends on the time.
    pub fn spec(&self) -> ResourceOfferSpec {
        let resources = bounded(&self.offer.resources);
        let Offer { policy, largest_pod, prices, conditions, ends, .. } = self.offer;
        let prices = prices.as_ref().filter(|prices| prices.iter().len() > 0);
        let per_unit = prices.iter().flat_map(|prices| prices.iter());
        let per_unit: Resources = per_unit.map(|(name, price)| (name.clone(), price)).collect();
        let until = conditions.offer_validity.after(self.now);
        ResourceOfferSpec {
            cluster_id: self.provider.to_owned(),
            images: self.images(),
            resource_quota: OfferedQuota { hard: texts(&resources) },
            pools: self.pools(&resources),
            labels: self
                .labels
                .iter()
                .take(MOST_LABELS)
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
            prices: texts(&bounded(&per_unit)),
            currency: prices.map(|prices| prices.currency().to_string()),
            price_period: prices.map(|prices| prices.period().word()),
            valid_until: Some(time(self.offer.end_by(until))),
            largest_pod: Some(self::largest_pod(largest_pod)),
            services: self.services(),
            contract: Some(contract(conditions, *ends)),
            policy: policy.clone(),
            withdrawal_timestamp: None,
            storage_classes: self.storage_classes(),
        }
    }

    /// The pools, of the resources that are in the offer.
    fn pools(&self, resources: &Resources) -> Vec<OfferedPool> {
        let pool = |(name, pool): (&PoolName, &Pool)| {
            let mut of_pool = pool.resources.clone();
            of_pool.retain(|name, _| resources.get(name.as_str()).is_some());
            let (name, labels) = (name.to_string(), pool.labels.clone());
            let largest = self.offer.largest_pods.get(name.as_str()).map(largest_pod);
            OfferedPool { name, resources: texts(&of_pool), labels, largest_pod: largest }
        };
        self.offer.pools.iter().map(pool).filter(|pool| !pool.resources.is_empty()).collect()
    }

    fn images(&self) -> Vec<ContainerImage> {
        let image = |image: &std::sync::Arc<crate::stock::Image>| ContainerImage {
            names: Some(image.names.clone()),
            size_bytes: Some(image.size),
        };
        self.goods.images.iter().map(image).collect()
    }

    fn services(&self) -> Vec<OfferedService> {
        let services = self.goods.services.iter();
        services
            .map(|(namespace, name)| OfferedService { namespace: namespace.clone(), name: name.clone() })
            .collect()
    }

    fn storage_classes(&self) -> Vec<OfferedStorageClass> {
        let class = |(name, default): &(String, bool)| OfferedStorageClass {
            storage_class_name: name.clone(),
            default: *default,
        };
        self.goods.storage_classes.iter().map(class).collect()
    }
}

fn largest_pod(largest: &capacity::LargestPod) -> LargestPod {
    LargestPod {
        on_one_node: texts(&bounded(&largest.on_one_node)),
        of_each: texts(&bounded(&largest.of_each)),
    }
}

fn contract(conditions: &Conditions, ends: Option<Timestamp>) -> OfferedContract {
    let promises = conditions.service_level.iter();
    OfferedContract {
        duration: conditions.duration.to_string(),
        renewal: match conditions.renewal {
            Renewal::Auto => api::Renewal::Auto,
            Renewal::None => api::Renewal::None,
        },
        enforcement: match conditions.enforcement {
            Enforcement::Hard => api::Enforcement::Hard,
            Enforcement::Soft => api::Enforcement::Soft,
        },
        service_level: promises.map(|(name, text)| (name.to_owned(), text.to_owned())).collect(),
        ends_by: ends.map(time),
    }
}

/// A moment as objects have it, in whole seconds: parts would be gone when it is read back, and look like a change.
pub(super) fn time(moment: Timestamp) -> Time {
    Time(Timestamp::from_second(moment.as_second()).unwrap_or(moment))
}

/// At most as many resources as an object takes.
fn bounded(resources: &Resources) -> Resources {
    if resources.len() <= MOST_RESOURCES {
        return resources.clone();
    }
    let common = |name: &str| COMMON.contains(&name);
    let first = resources.iter().filter(|(name, _)| common(name.as_str()));
    let others = resources.iter().filter(|(name, _)| !common(name.as_str()));
    first.chain(others).take(MOST_RESOURCES).map(|(name, amount)| (name.clone(), amount)).collect()
}
