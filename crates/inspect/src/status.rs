//! How an installation is, at one look.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use liqo_install::finding::Finding;
use serde::Serialize;
use serde_json::Value;

use crate::auth::auth_url;
use crate::check::{self, Report, World};
use crate::facts::{Facts, Hello, Server};
use crate::installation::{Installation, Unread, flag, pod_of};
use crate::peer::PeerView;
use crate::pod::PodView;
use crate::version::{self, Build};

/// What `liqoctl status` tells.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// There is a manager.
    pub installed: bool,
    /// Nothing has failed; there may be warnings among the problems.
    pub healthy: bool,
    /// Where it was looked for.
    pub namespace: String,
    /// Who the cluster is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterIdentity>,
    /// Who decides where workloads run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_mode: Option<String>,
    /// What runs in which version.
    pub versions: StatusVersions,
    /// What the manager can do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// Who leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<Leader>,
    /// Where other clusters reach this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_url: Option<String>,
    /// Whether it finds others on the local network, and is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_network: Option<LocalNetwork>,
    /// What was configured for the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<std::collections::BTreeMap<String, String>>,
    /// What the cluster says of itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionView>,
    /// Pods of liqo.
    pub pods: Vec<PodStatus>,
    /// Peers.
    pub peers: Vec<PeerView>,
    /// What is not as it should be, the worst first.
    pub problems: Vec<Finding>,
    /// The time that ages are counted from.
    pub at: Timestamp,
}

/// Who a cluster is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterIdentity {
    /// What people call it.
    pub name: String,
    /// What identifies it for good.
    pub id: String,
    /// The SHA-256 of its public key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// What runs in which version.
#[derive(Debug, Clone, Serialize)]
pub struct StatusVersions {
    /// This program.
    pub client: String,
    /// The manager.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manager: Option<String>,
    /// The API server.
    pub kubernetes: String,
}

/// Who leads.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// The pod.
    pub name: String,
    /// When it showed last that it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewed: Option<Timestamp>,
}

/// What is done on the local network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LocalNetwork {
    /// Other clusters are looked for.
    pub discovery: bool,
    /// They are told about this one.
    pub advertisement: bool,
}

/// A condition of the ClusterConfig.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionView {
    /// What it is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A pod of liqo.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodStatus {
    /// Its name.
    pub name: String,
    /// What it is part of.
    pub component: String,
    /// Whether all its containers are ready.
    pub ready: bool,
    /// Containers that are ready.
    pub ready_containers: usize,
    /// All containers.
    pub containers: usize,
    /// In one word, as kubectl has it.
    pub status: String,
    /// How often its containers were started again.
    pub restarts: i32,
    /// Since when it exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Where it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// What it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
}

impl Installation {
    /// How the installation is.
    pub async fn status(&self, server: &Server) -> Status {
        let (facts, hello) = tokio::join!(Box::pin(self.facts(server)), self.hello());
        let client = Build::this().version;
        let report = check::evaluate(&World::new(&facts, &hello));
        summarise(&facts, &hello, &report, client)
    }
}

pub(crate) fn summarise(facts: &Facts, hello: &Hello, report: &Report, client: &str) -> Status {
    let config = facts.config.as_ref().ok();
    let status = config.map(|config| &config["status"]).unwrap_or(&Value::Null);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let strings = |value: &Value| value.as_array().into_iter().flatten().filter_map(text).collect();
    Status {
        installed: !facts.manager.as_ref().is_err_and(Unread::is_absent),
        healthy: report.healthy,
        namespace: facts.namespace_name.clone(),
        cluster: identity(facts, status),
        working_mode: text(&status["workingMode"])
            .or_else(|| config.and_then(|it| text(&it["spec"]["workingMode"]))),
        versions: StatusVersions {
            client: client.to_owned(),
            manager: version::manager(&facts.config, &facts.manager),
            kubernetes: facts.server.version.clone(),
        },
        capabilities: strings(&status["capabilities"]),
        leader: leader(facts),
        auth_url: auth_url(&facts.auth_service, &facts.nodes, &facts.manager).ok(),
        local_network: facts.discovery.as_ref().ok().map(local_network),
        network: facts.network.as_ref().ok().and_then(|map| map.data.clone()),
        conditions: status["conditions"].as_array().into_iter().flatten().map(condition).collect(),
        pods: facts.pods.iter().flatten().map(|pod| pod_status(&PodView::new(pod))).collect(),
        peers: facts.peers.iter().flatten().map(PeerView::new).collect(),
        problems: report.problems().into_iter().cloned().collect(),
        at: hello.now,
    }
}

fn local_network(discovery: &Deployment) -> LocalNetwork {
    let is_set = |name: &str| flag(discovery, name) == Some("true");
    LocalNetwork {
        discovery: is_set("--mdns-enable-discovery="),
        advertisement: is_set("--mdns-enable-advertisement="),
    }
}

/// From the ConfigMap, which is there before the ClusterConfig.
fn identity(facts: &Facts, status: &Value) -> Option<ClusterIdentity> {
    let map = facts.identity.as_ref().ok().and_then(|map| map.data.clone()).unwrap_or_default();
    let told = &status["clusterIdentity"];
    let text = |key: &str, field: &str| map.get(key).cloned().or(told[field].as_str().map(str::to_owned));
    Some(ClusterIdentity {
        id: text(liqo_api::cluster_config::CLUSTER_ID_KEY, "clusterID")?,
        name: text(liqo_api::cluster_config::CLUSTER_NAME_KEY, "clusterName")?,
        fingerprint: status["fingerprint"].as_str().map(str::to_owned),
    })
}

fn leader(facts: &Facts) -> Option<Leader> {
    let spec = facts.lease.as_ref().ok()?.spec.as_ref()?;
    let holder = spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())?;
    Some(Leader { name: pod_of(holder).to_owned(), renewed: spec.renew_time.as_ref().map(|time| time.0) })
}

fn condition(condition: &Value) -> ConditionView {
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    ConditionView {
        type_: text("type"),
        status: text("status"),
        reason: text("reason"),
        message: text("message"),
        since: text("lastTransitionTime").parse().ok(),
    }
}

fn pod_status(pod: &PodView) -> PodStatus {
    PodStatus {
        name: pod.name.clone(),
        component: pod.component.clone(),
        ready: pod.is_ready(),
        ready_containers: pod.ready,
        containers: pod.containers,
        status: pod.status.clone(),
        restarts: pod.restarts,
        created: pod.created,
        node: pod.node.clone(),
        image: pod.image.clone(),
    }
}
