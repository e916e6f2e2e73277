//! How long pods are away when their provider is.

use anyhow::Result;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, Client};
use tokio::time::Instant;

use super::load::{self, Load, NAME};
use super::pair::{NAMESPACE, Pair};
use super::{LOOK, PATIENCE};
use crate::bench::measure::{Measurement, Unit};
use crate::bench::two::{CONSUMER, PROVIDER};

const PODS: u32 = 100;
const TARGET: f64 = 30.0;
/// What Kubernetes takes by default: 45 s to notice, and then its pods tolerate it for five minutes.
const KUBERNETES: f64 = 345.0;

/// Seconds from stopping the provider until all pods run at home.
pub(super) async fn measure(pair: &Pair) -> Result<Measurement> {
    pair.only_remote()?;
    load::deploy(&pair.consumer, NAMESPACE, &Load { pods: PODS, at_home: false }).await?;
    pair.kubectl(CONSUMER, &["uncordon", "-l", "type=kwok"])?;
    let started = Instant::now();
    let (stopped, back) = tokio::join!(pair.stop(PROVIDER), until_back(&pair.consumer));
    stopped?;
    back?;
    let seconds = started.elapsed().as_secs_f64();
    eprintln!("  {PODS} pods are back {seconds:.1} s after their provider was stopped");
    super::one(
        format!("{PODS} pods back after their provider was stopped"),
        Unit::Seconds,
        seconds,
        Some(TARGET),
        ("Kubernetes' defaults, reckoned", KUBERNETES),
    )
}

async fn until_back(client: &Client) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    let of = ListParams::default().labels(&format!("app={NAME}"));
    loop {
        let found = pods.list(&of).await?.items;
        let at_home = found.iter().filter(|pod| is_back(pod)).count();
        if at_home >= PODS as usize {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < deadline, "only {at_home} of {PODS} pods came back");
        tokio::time::sleep(LOOK).await;
    }
}

fn is_back(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready =
        conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    ready && node.is_some_and(|node| !node.starts_with("liqo-")) && pod.metadata.deletion_timestamp.is_none()
}
