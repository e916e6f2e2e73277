//! Empties nodes: asks pods to leave as their budgets allow, and when the time is over, makes them.

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams, ListParams, Preconditions};
use kube::{Api, ResourceExt};

use crate::metrics::VirtualNodeMetrics;
use crate::plan::Draining;

/// Pods asked at once.
const AT_ONCE: usize = 16;
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The answer to an eviction that a budget does not allow now.
const BLOCKED: u16 = 429;
/// Pods of these belong to the node and are removed with it.
const DAEMON_SET: &str = "DaemonSet";

/// Goes over one node once, and returns how many pods are left.
pub(crate) async fn sweep(
    client: &kube::Client,
    draining: &Draining,
    metrics: &VirtualNodeMetrics,
) -> Result<usize, String> {
    let all: Api<Pod> = Api::all(client.clone());
    let params = ListParams::default().fields(&format!("spec.nodeName={}", draining.node));
    let found = tokio::time::timeout(TIMEOUT, all.list(&params)).await;
    let found = found.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())?;
    let pods: Vec<Pod> = found.items.into_iter().filter(must_leave).collect();
    let left = pods.len();
    let staying = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    let asking = stream::iter(staying).for_each_concurrent(AT_ONCE, |pod| async move {
        let outcome = tokio::time::timeout(TIMEOUT, ask(client, &pod, draining.must)).await;
        let outcome = outcome.unwrap_or(Ok("failed")).unwrap_or_else(|error| {
            let (namespace, name) = (pod.namespace(), pod.name_any());
            tracing::warn!(node = draining.node, ?namespace, name, %error, "a pod could not be moved");
            "failed"
        });
        metrics.evicted(outcome);
    });
    asking.await;
    Ok(left)
}

fn must_leave(pod: &Pod) -> bool {
    !pod.owner_references().iter().any(|owner| owner.kind == DAEMON_SET && owner.controller == Some(true))
}

async fn ask(client: &kube::Client, pod: &Pod, must: bool) -> Result<&'static str, kube::Error> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
    // Never a pod that took the name since.
    let preconditions = Some(Preconditions { uid: pod.uid(), resource_version: None });
    let delete = DeleteParams { preconditions, ..DeleteParams::default() };
    if must {
        return match pods.delete(&pod.name_any(), &delete).await {
            Ok(_) => Ok("deleted"),
            Err(error) if is_gone(&error) => Ok("deleted"),
            Err(error) => Err(error),
        };
    }
    let evict = EvictParams { delete_options: Some(delete), ..EvictParams::default() };
    match pods.evict(&pod.name_any(), &evict).await {
        Ok(_) => Ok("evicted"),
        Err(error) if is_gone(&error) => Ok("evicted"),
        Err(kube::Error::Api(status)) if status.code == BLOCKED => Ok("blocked"),
        Err(error) => Err(error),
    }
}

/// Gone, or another pod by now.
fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 404 | 409))
}
