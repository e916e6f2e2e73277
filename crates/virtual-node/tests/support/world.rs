//! A consumer with the room in it, and providers that it has contracts with, as if they had peered.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Node};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::names::Identity;
use liqo_kit::Supervisor;
use liqo_kit::clusters::{ClientConfig, Clusters, client};
use liqo_kit::lease::{Campaign, LeaseConfig};
use liqo_kit::rbac::{NODE_LEASES, Rule, Scope};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_providers::Providers;
use liqo_sandbox::TestCluster;
use liqo_virtual_node::{Room, Settings};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::lender::{Certified, certify};

pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
const NAMESPACE: &str = "liqo";
const ACCOUNT: &str = "liqo-controller-manager";
const ROOM: &str = "system:serviceaccount:liqo:liqo-controller-manager";
/// Us.
pub(crate) const ME: &str = "11111111-0000-4000-8000-000000000001";

/// Waits until `check` returns something, and shows what it last said if it does not in time.
pub(crate) async fn eventually<T, F, Fut>(what: &str, mut check: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let deadline = Instant::now() + DEADLINE;
    loop {
        match check().await {
            Ok(found) => return found,
            Err(state) => assert!(Instant::now() < deadline, "{what}: {state}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Applies an object of any kind.
pub(crate) async fn put(client: &kube::Client, object: &Value) {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    let (group, version) = match text("apiVersion").split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text("apiVersion")),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind { group, version, kind: text("kind") });
    let metadata = &object["metadata"];
    let api: Api<DynamicObject> = match metadata["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let (name, params) = (metadata["name"].as_str().unwrap(), PatchParams::apply("test").force());
    eventually(name, || async {
        let applied = api.patch(name, &params, &Patch::Apply(object)).await;
        applied.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    if !object["status"].is_null() {
        api.patch_status(name, &params, &Patch::Apply(object)).await.unwrap();
    }
}

/// The kinds, a namespace and the rights of the room.
pub(crate) async fn install(client: &kube::Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("test").force();
    for definition in liqo_api::crds() {
        definitions.patch(&definition.name_any(), &params, &Patch::Apply(&definition)).await.unwrap();
    }
    for definition in liqo_api::crds() {
        eventually(&definition.name_any(), || async {
            let found = definitions.get(&definition.name_any()).await.map_err(|error| error.to_string())?;
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            let established = conditions.iter().any(|it| it.type_ == "Established" && it.status == "True");
            established.then_some(()).ok_or_else(|| "not established".to_owned())
        })
        .await;
    }
    namespace(client, NAMESPACE).await;
    let rule = |rule: &Rule| {
        let mut all = json!({ "apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs });
        if !rule.names.is_empty() {
            all["resourceNames"] = json!(rule.names);
        }
        all
    };
    let subjects = json!([{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }]);
    for (scope, at) in [(Scope::Cluster, None), (Scope::NodeLeases, Some(NODE_LEASES))] {
        let all = liqo_providers::RULES.iter().chain(liqo_virtual_node::RULES);
        let rules: Vec<Value> = all.filter(|it| it.scope == scope).map(rule).collect();
        bind(client, at, ACCOUNT, &json!(rules), &subjects).await;
    }
}

pub(crate) async fn namespace(client: &kube::Client, name: &str) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let object = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    match namespaces.create(&PostParams::default(), &object).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        Err(error) => panic!("{error}"),
    }
}

/// Gives somebody rights, in a namespace or everywhere.
pub(crate) async fn bind(
    client: &kube::Client,
    at: Option<&str>,
    name: &str,
    rules: &Value,
    subjects: &Value,
) {
    let api = "rbac.authorization.k8s.io/v1";
    let (role, binding) =
        if at.is_some() { ("Role", "RoleBinding") } else { ("ClusterRole", "ClusterRoleBinding") };
    let mut metadata = json!({ "name": name });
    if let Some(at) = at {
        metadata["namespace"] = json!(at);
    }
    put(client, &json!({ "apiVersion": api, "kind": role, "metadata": metadata, "rules": rules })).await;
    let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name });
    let object = json!({
        "apiVersion": api, "kind": binding, "metadata": metadata, "roleRef": reference, "subjects": subjects,
    });
    put(client, &object).await;
}

/// Our tenant namespace at each provider.
pub(crate) const PLACE: &str = "liqo-tenant-us";

/// Makes a provider of this cluster: our place, and what we may do there. Returns our certificate.
pub(crate) async fn host(client: &kube::Client) -> Certified {
    install(client).await;
    namespace(client, PLACE).await;
    let rules =
        json!([{ "apiGroups": ["discovery.liqo.io"], "resources": ["resourcerequests"], "verbs": ["list"] }]);
    bind(client, Some(PLACE), "us", &rules, &us()).await;
    certify(client, ME).await
}

/// Us, for a provider.
pub(crate) fn us() -> Value {
    json!([{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": ME }])
}

/// The address of this machine as a cluster sees it.
pub(crate) async fn address_for(cluster: &TestCluster<'_>) -> SocketAddr {
    let url = cluster.config().await.cluster_url;
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((url.host().unwrap(), url.port_u16().unwrap())).unwrap();
    SocketAddr::new(socket.local_addr().unwrap().ip(), 0)
}

/// The room, in a process of its own as far as it can tell; dropping it kills it.
pub(crate) struct Process {
    runtime: Option<tokio::runtime::Runtime>,
    pub(crate) room: Room,
    pub(crate) address: SocketAddr,
}

impl Process {
    /// Starts the room and leads.
    pub(crate) async fn start(cluster: &TestCluster<'_>, change: impl FnOnce(&mut Settings)) -> Self {
        Self::start_with(cluster, change, |config| client(config, &ClientConfig::default()).unwrap()).await
    }

    /// The same, with a client of the test's own.
    pub(crate) async fn start_with(
        cluster: &TestCluster<'_>,
        change: impl FnOnce(&mut Settings),
        connect: impl FnOnce(&kube::Config) -> kube::Client + Send + 'static,
    ) -> Self {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_ansi(false)
            .try_init();
        let mut config = cluster.config().await;
        config.auth_info.impersonate = Some(ROOM.to_owned());
        let elector = cluster.client().await;
        let address = address_for(cluster).await;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut settings = Settings { address: Some(address.ip()), ..Settings::new("manager-0", "0.1.0") };
        change(&mut settings);
        runtime.spawn(async move {
            let listener = TcpListener::bind(address).await.unwrap();
            let bound = listener.local_addr().unwrap();
            settings.port = bound.port();
            let client = connect(&config);
            let own = Identity { id: ME.parse().unwrap(), name: "us".parse().unwrap() };
            let (_keep, own) = watch::channel(Some(own));
            let clusters = Arc::new(Clusters::new(ClientConfig::default()));
            let providers =
                Providers::new(client.clone(), clusters, liqo_providers::Settings::default(), own.clone());
            let room = Room::new(client, settings, providers.clone(), own);
            let (supervisor, watches) = (Supervisor::new(), WatchMetrics::default());
            providers.start(&supervisor, &watches);
            room.start(&supervisor, &watches);
            room.serve(&supervisor, listener);
            let (queue, worker) = room.queue(&WriteMetrics::default());
            let _ = sender.send((room.clone(), bound));
            let stop = supervisor.stop().clone();
            let leading = async {
                let identity = format!("manager-0_{}", jiff::Timestamp::now().as_nanosecond());
                let mut config = LeaseConfig::new(NAMESPACE, "liqo-test", identity);
                config.earlier_lives = Some("manager-0_".to_owned());
                while !stop.is_cancelled() {
                    let campaign = Campaign::new(elector.clone(), config.clone());
                    let lead = |leadership: liqo_kit::lease::Leadership| async {
                        let ended = leadership.ended().clone();
                        tokio::join!(providers.measure(&ended), room.lead(&queue, leadership));
                    };
                    campaign.run(stop.clone(), lead).await;
                }
            };
            tokio::join!(leading, worker.run(stop.clone()));
        });
        let (room, address) = receiver.await.unwrap();
        Self { runtime: Some(runtime), room, address }
    }

    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// All of its metrics.
    pub(crate) fn metrics(&self) -> String {
        let mut registry = prometheus_client::registry::Registry::default();
        self.room.metrics().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    /// A number of its metrics.
    pub(crate) fn metric(&self, line: &str) -> f64 {
        let text = self.metrics();
        let found = text.lines().find(|found| found.starts_with(line));
        found.and_then(|found| found.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// A node as JSON.
pub(crate) async fn node(client: &kube::Client, name: &str) -> Option<Value> {
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.get_opt(name).await.unwrap().map(|node| json!(node))
}

/// The status and reason of a node's readiness.
pub(crate) fn ready(node: &Value) -> (String, String) {
    let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|it| it["type"] == "Ready").cloned().unwrap_or_default();
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

/// Waits for a node to be ready, or not, for this reason.
pub(crate) async fn wait_ready(client: &kube::Client, name: &str, status: &str, reason: &str) -> Value {
    eventually(&format!("{name} {status} {reason}"), || async {
        let node = node(client, name).await.ok_or_else(|| format!("there is no {name}"))?;
        let found = ready(&node);
        if found == (status.to_owned(), reason.to_owned()) {
            Ok(node)
        } else {
            Err(format!("{found:?} {node}"))
        }
    })
    .await
}

/// The taints of a node.
pub(crate) fn taints(node: &Value) -> BTreeMap<String, String> {
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let text = |it: &Value, field: &str| it[field].as_str().unwrap_or_default().to_owned();
    taints.iter().map(|it| (text(it, "key"), text(it, "effect"))).collect()
}

/// Waits until these are the virtual nodes, and no others.
pub(crate) async fn the_nodes_are(here: &kube::Client, expected: &[&str]) {
    let nodes: Api<Node> = Api::all(here.clone());
    let virtual_nodes = ListParams::default().labels("liqo.io/type=virtual-node");
    eventually(&format!("the nodes are {expected:?}"), || async {
        let found = nodes.list(&virtual_nodes).await.map_err(|error| error.to_string())?.items;
        let names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
        if names == expected { Ok(()) } else { Err(format!("{names:?} {}", json!(found))) }
    })
    .await;
}
