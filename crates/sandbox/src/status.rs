//! What a sandbox is doing, for people and for programs.

use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::ListParams;
use serde::Serialize;

use crate::cluster::Cluster;
use crate::parts::PartState;
use crate::sandbox::Sandbox;
use crate::spec::Flavour;
use crate::state::Faults;

/// A cluster that hangs must not hang the table.
const PATIENCE: Duration = Duration::from_secs(5);

/// The whole sandbox.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Its name.
    pub name: String,
    /// One kubeconfig with a context per cluster.
    pub kubeconfig: PathBuf,
    /// Its clusters.
    pub clusters: Vec<ClusterStatus>,
    /// Network faults that are set.
    pub faults: Faults,
}

/// One cluster.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterStatus {
    /// Its name.
    pub name: String,
    /// How its nodes are made.
    pub flavour: Flavour,
    /// Where its API server is.
    pub api_server: String,
    /// Whether the API server says that it is ready.
    pub ready: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The version the API server reports.
    pub version: Option<String>,
    /// Nodes that are ready.
    pub nodes_ready: usize,
    /// All nodes.
    pub nodes: usize,
    /// Pods that run.
    pub pods_running: usize,
    /// The pods' network.
    #[serde(rename = "podCIDR")]
    pub pod_cidr: String,
    /// The services' network.
    #[serde(rename = "serviceCIDR")]
    pub service_cidr: String,
    /// Its kubeconfig.
    pub kubeconfig: PathBuf,
    /// What each part is doing.
    pub components: Vec<ComponentStatus>,
}

/// One part.
#[derive(Debug, Clone, Serialize)]
pub struct ComponentStatus {
    /// As commands call it.
    pub name: String,
    /// What it is doing.
    pub state: PartState,
    /// Its log.
    pub log: Option<PathBuf>,
}

impl ClusterStatus {
    /// The parts that should run and do not.
    pub fn troubled(&self) -> Vec<&ComponentStatus> {
        self.components.iter().filter(|component| component.state != PartState::Running).collect()
    }
}

#[derive(Default)]
struct Seen {
    version: Option<String>,
    nodes_ready: usize,
    nodes: usize,
    pods_running: usize,
}

impl Sandbox {
    /// Asks all clusters at once.
    pub async fn status(&self) -> Status {
        Status {
            name: self.place().name().to_owned(),
            kubeconfig: self.place().kubeconfig(),
            clusters: futures::future::join_all(
                self.clusters().map(|cluster| async move { of(cluster).await }),
            )
            .await,
            faults: self.state().faults.clone(),
        }
    }
}

async fn of(cluster: Cluster<'_>) -> ClusterStatus {
    let answer = tokio::time::timeout(PATIENCE, look(cluster)).await;
    let answer = answer.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs())));
    let (seen, reason) = match answer {
        Ok(seen) => (seen, None),
        Err(reason) => (Seen::default(), Some(reason)),
    };
    let plan = cluster.plan();
    let components = cluster.part_states().into_iter().map(|(part, state)| ComponentStatus {
        name: part.to_string(),
        state,
        log: cluster.logs(&[part]).pop(),
    });
    ClusterStatus {
        name: plan.name().to_owned(),
        flavour: plan.spec.flavour(),
        api_server: plan.api_url(),
        ready: reason.is_none(),
        reason,
        version: seen.version,
        nodes_ready: seen.nodes_ready,
        nodes: seen.nodes,
        pods_running: seen.pods_running,
        pod_cidr: plan.spec.pod_cidr.to_string(),
        service_cidr: plan.spec.service_cidr.to_string(),
        kubeconfig: plan.kubeconfig(),
        components: components.collect(),
    }
}

async fn look(cluster: Cluster<'_>) -> Result<Seen, String> {
    cluster.api_ready().await?;
    let text = |error: kube::Error| error.to_string();
    let client = cluster.client().await.map_err(|error| error.to_string())?;
    let version = client.apiserver_version().await.map_err(text)?.git_version;
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await.map_err(text)?;
    let running = ListParams::default().fields("status.phase=Running");
    let pods = Api::<Pod>::all(client).list_metadata(&running).await.map_err(text)?;
    let is_ready = |node: &&Node| {
        let conditions =
            node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    Ok(Seen {
        version: Some(version),
        nodes_ready: nodes.items.iter().filter(is_ready).count(),
        nodes: nodes.items.len(),
        pods_running: pods.items.len(),
    })
}
