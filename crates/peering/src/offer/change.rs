//! Whether an offer that is written must be written anew.

use jiff::Timestamp;
use liqo_api::ResourceOfferSpec;
use liqo_api::resource_offer::{LargestPod, OfferedPool};
use liqo_core::policy::Percent;
use liqo_core::pools::{Pool, Pools};
use liqo_core::threshold::{self as thresholds, Difference, amount_differences, pools_differ};
use liqo_core::{Span, capacity};

use super::amounts;

/// An offer is told anew when it stands for less than this part of its validity.
const REFRESH_FRACTION: u64 = 2;

/// What to do with an offer.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing; look again at this time, if nothing happens before.
    Keep(Timestamp),
    /// Write it.
    Write {
        /// This is what is to be written.
        spec: Box<ResourceOfferSpec>,
        /// In what it differs. Nothing if it only stands for longer.
        differences: Vec<Difference>,
    },
}

/// What to do when `written` is there and `new` should be, made now from an offer that stands for `validity`.
///
/// As long as nothing differs by more than the threshold, the offer stays the same to the byte in what its digest
/// covers, so that who accepted it has nothing to accept again.
pub fn plan(
    written: Option<&ResourceOfferSpec>,
    new: &ResourceOfferSpec,
    validity: Span,
    threshold: Percent,
    now: Timestamp,
) -> Plan {
    let write = |spec: ResourceOfferSpec, differences| Plan::Write { spec: Box::new(spec), differences };
    let Some(written) = written else { return write(new.clone(), Vec::new()) };
    let differences = differences(written, new, threshold);
    if differences.iter().any(is_part_of_the_offer)
        || written.withdrawal_timestamp != new.withdrawal_timestamp
    {
        return write(new.clone(), differences);
    }
    let lead = Span::clamped(validity.seconds() / REFRESH_FRACTION);
    let refresh = written.valid_until.as_ref().map_or(Timestamp::MIN, |until| lead.before(until.0));
    let stands_longer = written.valid_until < new.valid_until;
    if differences.is_empty() && (now < refresh || !stands_longer) {
        return Plan::Keep(if now < refresh { refresh } else { validity.after(now) });
    }
    let same = ResourceOfferSpec {
        valid_until: new.valid_until.clone(),
        largest_pod: new.largest_pod.clone(),
        images: new.images.clone(),
        pools: with_largest_pods(&written.pools, &new.pools),
        ..written.clone()
    };
    write(same, differences)
}

/// The pools as they are written, with the largest pods of now.
fn with_largest_pods(written: &[OfferedPool], new: &[OfferedPool]) -> Vec<OfferedPool> {
    let now =
        |name: &str| new.iter().find(|pool| pool.name == name).and_then(|pool| pool.largest_pod.clone());
    written.iter().map(|pool| OfferedPool { largest_pod: now(&pool.name), ..pool.clone() }).collect()
}

/// Whether the digest of an offer covers it; what else there is informs and binds nobody.
fn is_part_of_the_offer(difference: &Difference) -> bool {
    !matches!(difference, Difference::LargestPod | Difference::Images)
}

/// In what respects `new` differs from `written` enough to be told.
pub fn differences(
    written: &ResourceOfferSpec,
    new: &ResourceOfferSpec,
    threshold: Percent,
) -> Vec<Difference> {
    let offered = |spec: &ResourceOfferSpec| amounts(&spec.resource_quota.hard).0;
    let mut differences = amount_differences(&offered(written), &offered(new), threshold);
    let prices =
        |spec: &ResourceOfferSpec| (spec.prices.clone(), spec.currency.clone(), spec.price_period.clone());
    let others = [
        (pools_differ(&pools(written), &pools(new), threshold), Difference::Pools),
        (largest_pod_differs(written, new, threshold), Difference::LargestPod),
        (written.images != new.images, Difference::Images),
        (prices(written) != prices(new), Difference::Prices),
        (
            written.storage_classes != new.storage_classes || written.services != new.services,
            Difference::Extras,
        ),
        (written.labels != new.labels, Difference::Labels),
        (without_end(written) != without_end(new), Difference::Conditions),
        (written.policy != new.policy || ends_by(written) != ends_by(new), Difference::Policy),
    ];
    differences.extend(others.into_iter().filter(|(differs, _)| *differs).map(|(_, difference)| difference));
    differences
}

/// What is said of pools, whether or not it makes sense.
fn pools(spec: &ResourceOfferSpec) -> Pools {
    let named = spec.pools.iter().filter_map(|pool| {
        let (resources, labels) = (amounts(&pool.resources).0, pool.labels.clone());
        Some((pool.name.parse().ok()?, Pool { resources, labels }))
    });
    named.collect()
}

fn largest_pod_differs(written: &ResourceOfferSpec, new: &ResourceOfferSpec, threshold: Percent) -> bool {
    let read = |largest: Option<&LargestPod>| {
        let LargestPod { on_one_node, of_each } = largest.cloned().unwrap_or_default();
        capacity::LargestPod { on_one_node: amounts(&on_one_node).0, of_each: amounts(&of_each).0 }
    };
    let differs = |written: Option<&LargestPod>, new: Option<&LargestPod>| {
        thresholds::largest_pod_differs(&read(written), &read(new), threshold)
    };
    // Where there are other pools, that is what differs.
    let of_pools = written.pools.iter().zip(&new.pools).filter(|(written, new)| written.name == new.name);
    differs(written.largest_pod.as_ref(), new.largest_pod.as_ref())
        || of_pools.into_iter().any(|(it, new)| differs(it.largest_pod.as_ref(), new.largest_pod.as_ref()))
}

fn without_end(spec: &ResourceOfferSpec) -> Option<liqo_api::resource_offer::OfferedContract> {
    spec.contract
        .clone()
        .map(|contract| liqo_api::resource_offer::OfferedContract { ends_by: None, ..contract })
}

fn ends_by(spec: &ResourceOfferSpec) -> Option<Timestamp> {
    spec.contract.as_ref()?.ends_by.as_ref().map(|time| time.0)
}
