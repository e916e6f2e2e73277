//! A consumer with this room in it, and providers whose side of it the test plays.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::names::Identity;
use liqo_api::{NamespaceMap, NamespaceOffloading};
use liqo_core::Resources;
use liqo_kit::Supervisor;
use liqo_kit::clusters::{ClientConfig, Clusters, Credentials, client};
use liqo_kit::lease::{Campaign, Leadership, LeaseConfig};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_offloading::{Room, Settings};
use liqo_providers::{ByCluster, Health, Lent, Link, Provider};
use liqo_sandbox::{TestCluster, TestSandbox};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::fuse::Fuse;
use crate::install::{ACCOUNT, NAMESPACE, chart, install, install_kinds, namespace, put};

const DEADLINE: Duration = Duration::from_secs(90);

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

/// The consumer, and what it believes about its providers.
pub(crate) struct World<'a> {
    pub(crate) home: TestCluster<'a>,
    pub(crate) client: kube::Client,
    there: TestCluster<'a>,
    clusters: Clusters,
    own: watch::Sender<Option<Identity>>,
    pub(crate) providers: watch::Sender<Arc<ByCluster>>,
    address: IpAddr,
    /// What providers do.
    tasks: JoinSet<()>,
}

impl<'a> World<'a> {
    pub(crate) async fn new(sandbox: &'a TestSandbox) -> Self {
        // Shown with RUST_LOG.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_ansi(false)
            .try_init();
        let (home, there) = (sandbox.cluster("home"), sandbox.cluster("there"));
        let client = home.client().await;
        install(&client).await;
        let their = there.client().await;
        install_kinds(&their).await;
        let id = Identity { id: "home-id".parse().unwrap(), name: "home".parse().unwrap() };
        let address = address_towards(&home).await;
        Self {
            home,
            client,
            there,
            clusters: Clusters::new(ClientConfig::default()),
            own: watch::Sender::new(Some(id)),
            providers: watch::Sender::new(Arc::default()),
            address,
            tasks: JoinSet::new(),
        }
    }

    /// Starts the room, and has the API server ask it about pods.
    pub(crate) async fn start(&self) -> Process {
        self.run(|config| client(config, &ClientConfig::default()).unwrap()).await
    }

    /// Starts the room, whose requests go through `fuse`, here and at providers.
    pub(crate) async fn start_with(&self, fuse: Fuse) -> Process {
        self.reach_through(&fuse).await;
        self.run(|config| fuse.client(config).unwrap()).await
    }

    async fn run(&self, connect: impl FnOnce(&kube::Config) -> kube::Client) -> Process {
        let mut config = self.home.config().await;
        config.auth_info.impersonate = Some(format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}"));
        let listener = TcpListener::bind((self.address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let settings = Settings {
            webhook_names: vec![self.address.to_string()],
            eviction: SignedDuration::from_secs(4),
            deletion: SignedDuration::from_secs(4),
            look: Duration::from_millis(100),
            ..Settings::new(NAMESPACE.parse().unwrap(), "manager-0")
        };
        let room = Room::new(connect(&config), settings, self.own.subscribe(), self.providers.subscribe());
        runtime.spawn(run(room, self.client.clone(), listener.into_std().unwrap()));
        self.ask_at(port).await;
        Process(Some(runtime))
    }

    /// Gives the room clients of its own for its providers: one that was killed says nothing more.
    async fn reach_through(&self, fuse: &Fuse) {
        let (config, fuse) = (self.there.config().await, fuse.clone());
        let clusters = Clusters::connecting(move |_| fuse.client(&config));
        self.providers.send_modify(|list| {
            let mut all = ByCluster::clone(list);
            for (id, provider) in &mut all {
                let (cluster, _) = clusters.set(id.as_str(), self.credentials()).unwrap();
                provider.link = provider.link.clone().map(|link| Link { cluster, ..link });
            }
            *list = Arc::new(all);
        });
    }

    fn credentials(&self) -> Credentials {
        Credentials::kubeconfig(&std::fs::read(self.there.kubeconfig()).unwrap()).unwrap()
    }

    /// The chart's configuration, with a URL: Services lead nowhere in a hollow cluster.
    pub(crate) async fn ask_at(&self, port: u16) {
        for mut object in chart(&["MutatingWebhookConfiguration"]) {
            for webhook in object["webhooks"].as_array_mut().unwrap() {
                let config = webhook["clientConfig"].as_object_mut().unwrap();
                config.remove("service");
                let url = format!("https://{}:{port}{}", self.address, liqo_offloading::PATH);
                config.insert("url".to_owned(), json!(url));
            }
            put(&self.client, &object).await;
        }
    }

    /// A provider: a node here, a place there, and somebody who does what is asked for.
    pub(crate) async fn add_provider(&mut self, name: &str, labels: Value) {
        let (local, place) = (format!("liqo-tenant-{name}"), format!("liqo-tenant-home-at-{name}"));
        let tenant = json!({ "discovery.liqo.io/tenant-namespace": "true" });
        put(&self.client, &namespace(&local, &tenant)).await;
        let their = self.there.client().await;
        put(&their, &namespace(&place, &tenant)).await;
        put(&self.client, &node(name, &labels)).await;
        let maps: Api<NamespaceMap> = Api::namespaced(their, &place);
        self.tasks.spawn(host(maps));

        let (cluster, _) = self.clusters.set(name, self.credentials()).unwrap();
        let provider = Provider {
            id: format!("{name}-id").parse().unwrap(),
            name: Some(name.parse().unwrap()),
            local_namespace: local.into(),
            link: Ok(Link { place: place.parse().unwrap(), cluster }),
            lent: Some(Arc::new(Lent {
                contract: "c".to_owned(),
                resources: Resources::default(),
                pools: [].into(),
                labels: BTreeMap::new(),
                storage_classes: Vec::new(),
                until: Timestamp::MAX,
                ending: false,
            })),
            health: Health::Reachable,
        };
        self.providers.send_modify(|list| {
            let mut all = ByCluster::clone(list);
            all.insert(provider.id.clone(), provider.clone());
            *list = Arc::new(all);
        });
    }

    /// One more node of a provider.
    pub(crate) async fn add_pool(&self, provider: &str, pool: &str) {
        let labels = json!({ "liqo.io/remote-cluster-id": format!("{provider}-id"), "liqo.io/pool": pool });
        put(&self.client, &node(&format!("{provider}-{pool}"), &labels)).await;
    }

    pub(crate) async fn maps_at(&self, name: &str) -> Api<NamespaceMap> {
        Api::namespaced(self.there.client().await, &format!("liqo-tenant-home-at-{name}"))
    }

    pub(crate) async fn namespace(&self, name: &str, labels: Value) {
        put(&self.client, &namespace(name, &labels)).await;
        // Pods need it.
        let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
            Api::namespaced(self.client.clone(), name);
        eventually("the account of pods", || async {
            let found = accounts.get_opt("default").await.map_err(|error| error.to_string())?;
            found.map(|_| ()).ok_or_else(|| "missing".to_owned())
        })
        .await;
    }

    pub(crate) fn offloadings(&self, namespace: &str) -> Api<NamespaceOffloading> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub(crate) async fn offload(&self, namespace: &str, spec: Value) {
        let object = json!({
            "apiVersion": "offloading.liqo.io/v1alpha1", "kind": "NamespaceOffloading",
            "metadata": { "name": "offloading", "namespace": namespace }, "spec": spec,
        });
        put(&self.client, &object).await;
    }

    /// Waits for a phase that the owner was told after the latest change.
    pub(crate) async fn wait_phase(&self, namespace: &str, phase: &str) -> NamespaceOffloading {
        eventually(&format!("{namespace} is {phase}"), || async {
            let found =
                self.offloadings(namespace).get_opt("offloading").await.map_err(|error| error.to_string())?;
            let found = found.ok_or_else(|| "no NamespaceOffloading".to_owned())?;
            let status = found.status.clone().unwrap_or_default();
            let told = status.conditions.iter().filter_map(|it| it.observed_generation).max();
            let is = status.offloading_phase.map(|phase| format!("{phase:?}"));
            if told == found.metadata.generation && is.as_deref() == Some(phase) {
                Ok(found)
            } else {
                Err(format!("{is:?} {status:#?}"))
            }
        })
        .await
    }

    /// Waits until the namespace is marked like this.
    pub(crate) async fn wait_marked(&self, namespace: &str, strategy: Option<&str>) {
        let api: Api<Namespace> = Api::all(self.client.clone());
        eventually(&format!("{namespace} is marked {strategy:?}"), || async {
            let found = api.get(namespace).await.map_err(|error| error.to_string())?;
            let is = found.labels().get("offloading.liqo.io/strategy").map(String::as_str);
            let enabled = found.labels().contains_key("liqo.io/scheduling-enabled");
            if is == strategy && enabled == strategy.is_some() {
                Ok(())
            } else {
                Err(format!("{:?}", found.labels()))
            }
        })
        .await;
        if strategy.is_some_and(|strategy| strategy != "Local") {
            self.wait_asked(namespace).await;
        }
    }

    /// Waits until the room is asked about pods of the namespace: the API server learns a moment later how it is marked.
    async fn wait_asked(&self, namespace: &str) {
        let pod: Pod = serde_json::from_value(pod("probe")).unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        eventually(&format!("the room is asked about pods of {namespace}"), || async {
            let made =
                self.pods(namespace).create(&dry_run, &pod).await.map_err(|error| error.to_string())?;
            let asked = made.labels().contains_key("liqo.io/shadowPod");
            if asked { Ok(()) } else { Err(format!("{:?}", made.metadata)) }
        })
        .await;
    }

    pub(crate) fn pods(&self, namespace: &str) -> Api<Pod> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Tries to create a pod until something other than "try again" is the answer.
    pub(crate) async fn create_pod(&self, namespace: &str, name: &str, more: Value) -> Result<Pod, String> {
        let mut pod = pod(name);
        merge(&mut pod, &more);
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let created = self.pods(namespace).create(&PostParams::default(), &pod).await;
        created.map_err(|error| error.to_string())
    }

    /// Where the pods of a namespace are that are not leaving, by name.
    pub(crate) async fn places(&self, namespace: &str) -> BTreeMap<String, String> {
        let all = self.pods(namespace).list(&ListParams::default()).await.unwrap();
        let staying = all.items.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        staying
            .map(|pod| (pod.name_any(), pod.spec.and_then(|spec| spec.node_name).unwrap_or_default()))
            .collect()
    }

    /// Waits until so many pods are, and all of them on nodes that begin so.
    pub(crate) async fn wait_places(&self, namespace: &str, count: usize, prefixes: &[&str]) {
        eventually(&format!("{count} pods of {namespace} on {prefixes:?}"), || async {
            let places = self.places(namespace).await;
            let fine = places.values().all(|node| prefixes.iter().any(|prefix| node.starts_with(prefix)));
            if places.len() == count && fine { Ok(()) } else { Err(format!("{places:?}")) }
        })
        .await;
    }

    /// Waits for an event with this reason: it is written beside what it tells of.
    pub(crate) async fn wait_reason(&self, namespace: &str, reason: &str) {
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        eventually(&format!("{reason} is told in {namespace}"), || async {
            let all = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let reasons: Vec<_> = all.items.into_iter().filter_map(|event| event.reason).collect();
            if reasons.iter().any(|it| it == reason) { Ok(()) } else { Err(format!("{reasons:?}")) }
        })
        .await;
    }
}

/// The room, which runs; dropping it kills it.
pub(crate) struct Process(Option<tokio::runtime::Runtime>);

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

async fn run(room: Room, elector: kube::Client, listener: std::net::TcpListener) {
    let supervisor = Supervisor::new();
    room.start(&supervisor, &WatchMetrics::default());
    room.serve(&supervisor, TcpListener::from_std(listener).unwrap());
    let (queue, worker) = room.queue(&WriteMetrics::default());
    let stop = supervisor.stop().clone();
    let name = format!("manager-0_{}", Timestamp::now().as_nanosecond());
    let config = LeaseConfig {
        earlier_lives: Some("manager-0_".to_owned()),
        ..LeaseConfig::new(NAMESPACE, "liqo-test", name)
    };
    let leading = async {
        while !stop.is_cancelled() {
            let campaign = Campaign::new(elector.clone(), config.clone());
            campaign.run(stop.clone(), |leadership: Leadership| room.lead(&queue, leadership)).await;
        }
    };
    tokio::join!(leading, worker.run(stop.clone()));
}

/// What a provider does: all that is asked for is there.
async fn host(maps: Api<NamespaceMap>) {
    loop {
        let all = maps.list(&ListParams::default()).await.map(|all| all.items).unwrap_or_default();
        for map in all {
            let current: BTreeMap<_, _> = map
                .spec
                .desired_mapping
                .iter()
                .map(|(local, remote)| {
                    let refused = remote == "taken";
                    let phase = if refused { "CreationLoopBackOff" } else { "Accepted" };
                    let mut said = json!({ "remoteNamespace": remote, "phase": phase });
                    if refused {
                        said["reason"] = json!("NameTaken");
                        said["message"] = json!("another tenant has it");
                    }
                    (local.clone(), said)
                })
                .collect();
            let now =
                map.status.as_ref().map(|status| serde_json::to_value(&status.current_mapping).unwrap());
            if now.unwrap_or(json!({})) != json!(current) {
                let mut patch = json!({ "status": { "currentMapping": current } });
                let before = map.status.iter().flat_map(|status| status.current_mapping.keys());
                for gone in before.filter(|key| !current.contains_key(*key)) {
                    patch["status"]["currentMapping"][gone] = Value::Null;
                }
                let params = PatchParams::default();
                // Another look follows.
                let _ = maps.patch_status(&map.name_any(), &params, &Patch::Merge(&patch)).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn address_towards(cluster: &TestCluster<'_>) -> IpAddr {
    let url = cluster.config().await.cluster_url;
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((url.host().unwrap(), url.port_u16().unwrap_or(6443))).unwrap();
    socket.local_addr().unwrap().ip()
}

/// A virtual node that runs what it is given: nothing is behind it but kwok.
fn node(name: &str, labels: &Value) -> Value {
    let mut all = json!({
        "liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": format!("{name}-id"),
        "kubernetes.io/hostname": format!("liqo-{name}"), "kubernetes.io/os": "linux",
    });
    merge(&mut all, labels);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": format!("liqo-{name}"), "labels": all, "annotations": { "kwok.x-k8s.io/node": "fake" },
        },
        "spec": { "taints": [
            { "key": "virtual-node.liqo.io/not-allowed", "value": "true", "effect": "NoExecute" }
        ] },
        "status": { "capacity": { "cpu": "32", "memory": "64Gi", "pods": "110" } },
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name },
        "spec": { "containers": [{ "name": "main", "image": "nothing" }], "terminationGracePeriodSeconds": 1 },
    })
}

pub(crate) fn deployment(name: &str, replicas: u32) -> Value {
    let mut template = pod("unused");
    template["metadata"] = json!({ "labels": { "app": name } });
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name },
        "spec": {
            "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": template["metadata"], "spec": template["spec"] },
        },
    })
}

fn merge(object: &mut Value, more: &Value) {
    match more {
        Value::Object(more) => {
            for (key, value) in more {
                merge(&mut object[key], value);
            }
        }
        other => *object = other.clone(),
    }
}
