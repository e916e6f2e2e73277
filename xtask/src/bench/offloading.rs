//! What offloading costs: the same Deployment directly in the provider and through a virtual node of the consumer.
//!
//! Two installed clusters; the provider's pods are placed on hollow nodes, so that what is measured is the way there and
//! back and not the start of containers.

use std::time::Duration;

use anyhow::{Context, Result};

use super::measure::{Baseline, Measurement, Samples, Unit};
use super::peering::Programs;

mod endpoints;
mod failover;
mod latency;
mod load;
mod pair;

use pair::{Pair, Shape};

/// At most so many times as long as without us, where Kubernetes itself is the brake.
const TIMES_AT_USUAL_RATE: f64 = 1.10;
/// The same where it is not, and both clusters share the processors.
const TIMES_AT_HIGH_RATE: f64 = 2.5;
const REQUESTS_PER_POD: f64 = 12.0;
const MILLISECONDS_PER_POD: f64 = 3.0;
/// Of all of Liqo's own processes.
const MILLISECONDS_OF_LIQO: f64 = 27.0;
const MEGABYTES: f64 = 150.0;
/// From here on, it is a promise.
const MANY: u32 = 10_000;
/// When all pods are gone, memory is near what it was before.
const TIMES_AFTERWARDS: f64 = 1.5;

/// What one run of a Deployment took without us.
#[derive(Clone, Copy, Debug)]
struct Vanilla {
    seconds: f64,
    requests_per_pod: f64,
}

/// What one run of a Deployment took.
#[derive(Clone, Copy, Debug)]
struct Run {
    seconds: f64,
    requests_per_pod: f64,
    own_milliseconds_per_pod: f64,
    memory: Memory,
}

/// Megabytes of the consumer's and the provider's manager: before, with all pods there, and when they are gone.
#[derive(Clone, Copy, Debug)]
struct Memory {
    before: (f64, f64),
    with: (f64, f64),
    after: (f64, f64),
}

/// The numbers of so many pods, at the rate of requests that Kubernetes' own controllers have, or at this one.
pub(super) fn measure(programs: &Programs, rate: Option<u32>, sizes: &[u32]) -> Result<Vec<Measurement>> {
    runtime()?.block_on(async {
        let lent = sizes.iter().copied().max().unwrap_or(0);
        let pair = Pair::start(programs, Shape { rate, lent, own: 0 }).await?;
        let mut without = Vec::new();
        for pods in sizes {
            without.push(pair.vanilla(*pods).await?);
        }
        pair.peer("Remote")?;
        let mut measurements = Vec::new();
        for (pods, vanilla) in sizes.iter().zip(without) {
            measurements.extend(compare(&pair, vanilla, rate, *pods).await?);
        }
        Ok(measurements)
    })
}

/// How soon things are known on the other side, and how soon pods are back when that side is gone.
pub(super) fn soon(programs: &Programs, rate: u32, endpoints: &[u32]) -> Result<Vec<Measurement>> {
    runtime()?.block_on(async {
        let own = endpoints.iter().copied().max().unwrap_or(0);
        let pair = Pair::start(programs, Shape { rate: Some(rate), lent: 0, own }).await?;
        pair.peer("LocalAndRemote")?;
        let mut measurements = Vec::new();
        for pods in endpoints {
            measurements.push(Box::pin(endpoints::measure(&pair, *pods)).await?);
        }
        pair.only_remote()?;
        measurements.push(latency::measure(&pair).await?);
        // The last, since nothing is left of the provider.
        measurements.push(failover::measure(&pair).await?);
        Ok(measurements)
    })
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

async fn compare(pair: &Pair, vanilla: Vanilla, rate: Option<u32>, pods: u32) -> Result<Vec<Measurement>> {
    let ours = pair.offloaded(pods).await?;
    eprintln!("  {pods} pods: {ours:.2?}; without us {vanilla:.2?}");
    let (how, times) = match rate {
        Some(rate) => (format!("{rate} requests/s"), TIMES_AT_HIGH_RATE),
        None => ("usual rates".to_owned(), TIMES_AT_USUAL_RATE),
    };
    let mut told = vec![
        one(
            format!("{pods} pods Ready at {how}"),
            Unit::Seconds,
            ours.seconds,
            Some(times * vanilla.seconds),
            ("directly in the provider", vanilla.seconds),
        )?,
        one(
            format!("requests for each of {pods} pods, both clusters, {how}"),
            Unit::Count,
            ours.requests_per_pod,
            Some(REQUESTS_PER_POD),
            ("directly in the provider", vanilla.requests_per_pod),
        )?,
        one(
            format!("our CPU for each of {pods} pods, both managers, {how}"),
            Unit::Milliseconds,
            ours.own_milliseconds_per_pod,
            Some(MILLISECONDS_PER_POD),
            ("Liqo 1.2 on such a machine", MILLISECONDS_OF_LIQO),
        )?,
    ];
    let Memory { before, with, after } = ours.memory;
    let sides = [("consumer", before.0, with.0, after.0), ("provider", before.1, with.1, after.1)];
    for (side, before, with, after) in sides {
        let what = format!("{side}'s manager with {pods} pods, {how}");
        told.push(one(what, Unit::Megabytes, with, (pods >= MANY).then_some(MEGABYTES), ("before", before))?);
        let what = format!("{side}'s manager after {pods} pods are gone, {how}");
        told.push(one(what, Unit::Megabytes, after, Some(TIMES_AFTERWARDS * before), ("before", before))?);
    }
    Ok(told)
}

fn one(
    what: String,
    unit: Unit,
    value: f64,
    target: Option<f64>,
    baseline: (&str, f64),
) -> Result<Measurement> {
    let samples = |value: f64| Samples::new([value]).context("nothing was measured");
    let baseline = Baseline { what: baseline.0.to_owned(), samples: samples(baseline.1)? };
    Ok(Measurement { what, unit, samples: samples(value)?, target, baseline })
}

/// How often is looked for what nothing tells.
const LOOK: Duration = Duration::from_millis(100);
/// What has not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(900);
