//! The pods of the bench: making and changing them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Failure;

/// Requests under way at once; more make a small API server slower, not faster.
const AT_ONCE: usize = 64;

/// The pods that are changed.
pub(crate) const CHANGING: &str = "changing=yes";

/// Creates the pods, every `share`th of them one that will change; returns the size of the biggest as the server sends
/// it.
pub(crate) async fn fill(client: &Client, count: usize, share: usize) -> Result<usize, Failure> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
    // Without a controller manager nobody else makes it, and no pod is admitted without it.
    accounts.create(&PostParams::default(), &account).await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let (params, done) = (PostParams::default(), AtomicUsize::new(0));
    futures::stream::iter(0..count)
        .map(|number| {
            let (pods, params, done) = (&pods, &params, &done);
            async move {
                let pod = pods
                    .create(params, &serde_json::from_value(pod(number, number.is_multiple_of(share)))?)
                    .await?;
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                if done.is_multiple_of(1000) {
                    eprintln!("  {done} of {count} pods created");
                }
                Ok::<_, Failure>(serde_json::to_vec(&pod)?.len())
            }
        })
        .buffer_unordered(AT_ONCE)
        .try_fold(0, |biggest, bytes| async move { Ok(biggest.max(bytes)) })
        .await
}

/// A pod of ordinary size: two containers with environment, probes and volumes.
fn pod(number: usize, changing: bool) -> Value {
    let container = |name: &str| {
        let env: Vec<_> = (0..20)
            .map(|n| json!({"name": format!("SETTING_{n}"), "value": format!("value-of-{n}")}))
            .collect();
        json!({
            "name": name, "image": format!("registry.example/team/{name}:1.{}", number % 10),
            "env": env, "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
            "livenessProbe": {"httpGet": {"path": "/live", "port": 8080}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("pod-{number:05}"),
            "labels": {"app": format!("app-{}", number % 50), "tier": "backend", "changing": if changing { "yes" } else { "no" }},
            "annotations": {"example.com/config-hash": "0123456789abcdef0123456789abcdef"},
        },
        "spec": {
            "nodeName": format!("node-{}", number % 100),
            "automountServiceAccountToken": false,
            "containers": [container("app"), container("sidecar")],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    })
}

/// Which changes to make.
pub(crate) struct Changes<'a> {
    /// All pods.
    pub(crate) pods: usize,
    /// Every so manyth of them is one that changes.
    pub(crate) share: usize,
    /// Changes a second.
    pub(crate) rate: usize,
    pub(crate) lasting: Duration,
    /// Something new, or the server would see that nothing changes and tell nobody.
    pub(crate) mark: &'a str,
}

impl Changes<'_> {
    /// Changes pods at the wanted rate, or as fast as the server can; returns how many changes were made.
    pub(crate) async fn make(&self, client: &Client) -> Result<u64, Failure> {
        let api: Api<Pod> = Api::namespaced(client.clone(), "default");
        let deadline = Instant::now() + self.lasting;
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(self.rate)?);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
        let pace = futures::stream::unfold((ticks, 0), |(mut ticks, number)| async move {
            ticks.tick().await;
            Some((number, (ticks, number + 1)))
        });
        let params = PatchParams::default();
        let made = pace
            .take_while(|_| std::future::ready(Instant::now() < deadline))
            .map(|number: usize| {
                let (api, params) = (&api, &params);
                let name = format!("pod-{:05}", number * self.share % self.pods);
                let patch = json!({"metadata": {"labels": {"changed": format!("{number}-{}", self.mark)}}});
                async move { api.patch_metadata(&name, params, &Patch::Merge(&patch)).await }
            })
            .buffer_unordered(AT_ONCE)
            .try_fold(0, |made, _| async move { Ok(made + 1) })
            .await?;
        Ok(made)
    }
}
