//! How long after a change at the provider a pod at home tells it.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::load::{self, Load, NAME};
use super::pair::{NAMESPACE, Pair};
use crate::bench::measure::{Measurement, Unit};

const PODS: u32 = 50;
const CHANGES: usize = 300;
const TARGET: f64 = 100.0;
/// A change that nobody has seen by then is lost.
const LOST: Duration = Duration::from_secs(30);
/// A little more than one change can cause.
const ROOM: usize = 256;

/// The 99th percentile of many changes, one after the other.
pub(super) async fn measure(pair: &Pair) -> Result<Measurement> {
    load::deploy(&pair.consumer, NAMESPACE, &Load { pods: PODS, at_home: false }).await?;
    let remote: Api<Pod> = Api::all(pair.provider.clone());
    let pods = remote.list(&ListParams::default().labels(&format!("app={NAME}"))).await?.items;
    let mut watching = JoinSet::new();
    let mut there = follow(&pair.provider, &mut watching);
    let mut here = follow(&pair.consumer, &mut watching);
    let (mut theirs, mut ours) = (Vec::new(), Vec::new());
    for change in 0..CHANGES {
        let pod = pods.get(change % pods.len().max(1)).context("the provider has no pods")?;
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        // Ready to begin with, and at every second round.
        let ready = (change / pods.len()) % 2 == 1;
        let started = Instant::now();
        turn(&pair.provider, &namespace, &name, ready).await?;
        theirs.push(seen(&mut there, &name, ready, started).await.context("at the provider")?);
        ours.push(seen(&mut here, &name, ready, started).await.context("at home")?);
    }
    watching.shutdown().await;
    load::remove(&pair.consumer, NAMESPACE).await?;
    let (theirs, ours) = (percentile(theirs), percentile(ours));
    eprintln!(
        "  a change of status: 99 of 100 are at home within {ours:.1} ms, at the provider itself {theirs:.1} ms"
    );
    super::one(
        "a pod's change at the provider seen at home, 99th percentile".to_owned(),
        Unit::Milliseconds,
        ours,
        Some(TARGET),
        ("seen at the provider itself", theirs),
    )
}

async fn turn(client: &Client, namespace: &str, name: &str, ready: bool) -> Result<()> {
    let status = if ready { "True" } else { "False" };
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = json!({ "type": "Ready", "status": status, "lastTransitionTime": now });
    let patch = json!({ "status": { "conditions": [condition] } });
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    pods.patch_status(name, &PatchParams::default(), &Patch::Strategic(patch)).await?;
    Ok(())
}

/// What is seen of the pods of a cluster, and when.
fn follow(client: &Client, watching: &mut JoinSet<()>) -> mpsc::Receiver<(String, bool, Instant)> {
    let (sender, receiver) = mpsc::channel(ROOM);
    let pods: Api<Pod> = Api::all(client.clone());
    watching.spawn(async move {
        let events =
            watcher(pods, watcher::Config::default().labels(&format!("app={NAME}"))).touched_objects();
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            let Ok(pod) = event else { continue };
            if sender.send((pod.name_any(), is_ready(&pod), Instant::now())).await.is_err() {
                return;
            }
        }
    });
    receiver
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Milliseconds from then until the pod was seen like this.
async fn seen(
    events: &mut mpsc::Receiver<(String, bool, Instant)>,
    name: &str,
    ready: bool,
    since: Instant,
) -> Result<f64> {
    let wanted = async {
        while let Some((found, state, when)) = events.recv().await {
            if found == name && state == ready && when > since {
                return Ok((when - since).as_secs_f64() * 1e3);
            }
        }
        bail!("the watch ended")
    };
    let lost = || format!("{name} was not seen to change in {} s", LOST.as_secs());
    tokio::time::timeout(LOST, wanted).await.with_context(lost)?
}

fn percentile(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() * 99 / 100).or(of.last()).copied().unwrap_or_default()
}
