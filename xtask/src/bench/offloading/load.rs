//! The Deployment that is measured, and what the API servers count meanwhile.

use anyhow::{Context, Result};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::json;
use tokio::time::Instant;

use super::{LOOK, PATIENCE};

pub(super) const NAME: &str = "load";
/// Kept up by kwok and kubelets whether there are pods or not.
const BACKGROUND: [&str; 4] = ["leases", "nodes", "tokenreviews", "subjectaccessreviews"];

/// A Deployment to measure with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) pods: u32,
    /// Whether its pods may not leave the cluster.
    pub(super) at_home: bool,
}

fn deployment(load: &Load) -> Result<Deployment> {
    let nodes = if load.at_home { json!({ "type": "kwok" }) } else { json!({}) };
    Ok(serde_json::from_value(json!({
        "metadata": { "name": NAME },
        "spec": {
            "replicas": load.pods,
            "selector": { "matchLabels": { "app": NAME } },
            "template": {
                "metadata": { "labels": { "app": NAME } },
                "spec": {
                    "automountServiceAccountToken": false,
                    "nodeSelector": nodes,
                    "topologySpreadConstraints": [{
                        "maxSkew": 3,
                        "topologyKey": "kubernetes.io/hostname",
                        "whenUnsatisfiable": "ScheduleAnyway",
                        "labelSelector": { "matchLabels": { "app": NAME } },
                    }],
                    "containers": [{
                        "name": "app",
                        "image": "localhost/liqo/sandbox-app:1",
                        "resources": { "requests": { "cpu": "10m", "memory": "8Mi" } },
                    }],
                },
            },
        },
    }))?)
}

/// Seconds until all pods of a Deployment are ready.
pub(super) async fn deploy(client: &Client, namespace: &str, load: &Load) -> Result<f64> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    let started = Instant::now();
    deployments.create(&PostParams::default(), &deployment(load)?).await?;
    let wanted = i32::try_from(load.pods)?;
    let all_ready = |found: Option<&Deployment>| {
        let status = found.and_then(|found| found.status.as_ref());
        status.and_then(|status| status.ready_replicas) == Some(wanted)
    };
    let ready = await_condition(deployments.clone(), NAME, all_ready);
    tokio::time::timeout(PATIENCE, ready)
        .await
        .with_context(|| format!("{} pods are not ready", load.pods))??;
    Ok(started.elapsed().as_secs_f64())
}

/// Removes it, and waits until it is gone with its pods.
pub(super) async fn remove(client: &Client, namespace: &str) -> Result<()> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), namespace);
    deployments.delete(NAME, &DeleteParams::foreground()).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let deadline = Instant::now() + PATIENCE;
    while deployments.get_metadata_opt(NAME).await?.is_some()
        || !pods.list_metadata(&ListParams::default().limit(1)).await?.items.is_empty()
    {
        anyhow::ensure!(Instant::now() < deadline, "pods are still there after {} s", PATIENCE.as_secs());
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Requests that an API server has answered so far, but watches and what goes on anyway.
pub(super) async fn requests(client: &Client) -> Result<f64> {
    let request = http::Request::get("/metrics").body(Vec::new())?;
    let text = client.request_text(request).await?;
    let lines = text.lines().filter(|line| line.starts_with("apiserver_request_total{"));
    let counted = lines.filter(|line| {
        // With what comes before it: `resource` is also how `subresource` ends.
        let has = |label: &str, value: &str| {
            ['{', ','].iter().any(|before| line.contains(&format!("{before}{label}=\"{value}\"")))
        };
        !has("verb", "WATCH")
            && !has("verb", "LIST")
            && !BACKGROUND.iter().any(|name| has("resource", name))
            && !has("resource", "")
    });
    Ok(counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
}
