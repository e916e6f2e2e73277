//! How long after a Service is created its many endpoints are known, at home and at the provider. The pods are there before.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::load::{self, Load, NAME};
use super::pair::{NAMESPACE, Pair};
use super::{LOOK, PATIENCE};
use crate::bench::measure::{Baseline, Measurement, Samples, Unit};

/// At most so many times as long as until they are known at home.
const TIMES: f64 = 1.2;
const ROUNDS: usize = 5;

/// The time until a Service has so many endpoints, at home and at the provider.
pub(super) async fn measure(pair: &Pair, pods: u32) -> Result<Measurement> {
    load::deploy(&pair.consumer, NAMESPACE, &Load { pods, at_home: true }).await?;
    let services: Api<Service> = Api::namespaced(pair.consumer.clone(), NAMESPACE);
    let (mut at_home, mut away) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let (created, here, there) = tokio::join!(
            async { services.create(&PostParams::default(), &service()?).await.map_err(anyhow::Error::from) },
            complete(&pair.consumer, pods, started),
            complete(&pair.provider, pods, started),
        );
        created?;
        at_home.push(here?);
        away.push(there?);
        services.delete(NAME, &DeleteParams::default()).await?;
        gone(&pair.consumer).await?;
        gone(&pair.provider).await?;
    }
    load::remove(&pair.consumer, NAMESPACE).await?;
    let samples = |of| Samples::new(of).context("nothing was measured");
    let (here, there) = (samples(at_home)?, samples(away)?);
    eprintln!("  {pods} endpoints: at home {here:.3?}, at the provider {there:.3?}");
    Ok(Measurement {
        what: format!("a Service with {pods} endpoints, reflected"),
        unit: Unit::Seconds,
        target: Some(TIMES * here.median()),
        samples: there,
        baseline: Baseline { what: "its endpoints known at home".to_owned(), samples: here },
    })
}

fn service() -> Result<Service> {
    Ok(serde_json::from_value(json!({
        "metadata": { "name": NAME },
        "spec": { "selector": { "app": NAME }, "ports": [{ "port": 80 }] },
    }))?)
}

/// Seconds from then until a cluster knows all endpoints.
async fn complete(client: &Client, pods: u32, since: Instant) -> Result<f64> {
    let slices: Api<EndpointSlice> = Api::all(client.clone());
    let of = watcher::Config::default().labels(&format!("kubernetes.io/service-name={NAME}"));
    let all = async {
        let mut events = std::pin::pin!(watcher(slices, of).applied_objects());
        let mut known = HashMap::new();
        while let Some(event) = events.next().await {
            let Ok(slice) = event else { continue };
            known.insert(slice.name_any(), ready(&slice));
            if known.values().sum::<usize>() >= pods as usize {
                return Ok(since.elapsed().as_secs_f64());
            }
        }
        bail!("the watch ended")
    };
    tokio::time::timeout(PATIENCE, all).await.with_context(|| format!("{pods} endpoints did not come"))?
}

/// Waits until a cluster knows no endpoints any more.
async fn gone(client: &Client) -> Result<()> {
    let slices: Api<EndpointSlice> = Api::all(client.clone());
    let of = ListParams::default().labels(&format!("kubernetes.io/service-name={NAME}")).limit(1);
    let deadline = Instant::now() + PATIENCE;
    while !slices.list_metadata(&of).await?.items.is_empty() {
        anyhow::ensure!(Instant::now() < deadline, "the endpoints of {NAME} stay");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

fn ready(slice: &EndpointSlice) -> usize {
    let is_ready = |conditions: Option<bool>| conditions != Some(false);
    let endpoints = slice.endpoints.iter();
    endpoints.filter(|one| is_ready(one.conditions.as_ref().and_then(|found| found.ready))).count()
}
