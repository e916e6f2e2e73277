//! How much later than at home the endpoints of a large Service are known at the provider.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use super::PATIENCE;
use super::load::{self, Load, NAME};
use super::pair::{NAMESPACE, Pair};
use crate::bench::measure::{Measurement, Unit};

/// At most so many times as long as until they are known at home.
const TIMES: f64 = 1.2;

/// The time until a Service has so many endpoints, at home and at the provider.
pub(super) async fn measure(pair: &Pair, pods: u32) -> Result<Measurement> {
    let services: Api<Service> = Api::namespaced(pair.consumer.clone(), NAMESPACE);
    services.create(&PostParams::default(), &service()?).await?;
    let started = Instant::now();
    let load = Load { pods, at_home: true };
    let (_, here, there) = tokio::try_join!(
        load::deploy(&pair.consumer, NAMESPACE, &load),
        complete(&pair.consumer, pods, started),
        complete(&pair.provider, pods, started),
    )?;
    eprintln!("  {pods} endpoints: at home after {here:.2} s, at the provider after {there:.2} s");
    services.delete(NAME, &DeleteParams::default()).await?;
    load::remove(&pair.consumer, NAMESPACE).await?;
    super::one(
        format!("a Service with {pods} endpoints, reflected"),
        Unit::Seconds,
        there,
        Some(TIMES * here),
        ("its endpoints known at home", here),
    )
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

fn ready(slice: &EndpointSlice) -> usize {
    let is_ready = |conditions: Option<bool>| conditions != Some(false);
    let endpoints = slice.endpoints.iter();
    endpoints.filter(|one| is_ready(one.conditions.as_ref().and_then(|found| found.ready))).count()
}
