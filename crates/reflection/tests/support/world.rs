//! Two clusters, one of which lends to the other: the room runs at home, and a stand-in makes pods of ShadowPods.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, ServiceAccount};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use liqo_api::ShadowPod;
use liqo_kit::Supervisor;
use liqo_kit::clusters::{Clusters, Credentials};
use liqo_kit::lease::{Campaign, LeaseConfig};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_providers::nodes::Survey;
use liqo_providers::{ByCluster, Health, Lent, Link, Provider};
use liqo_reflection::{Room, Settings};
use liqo_sandbox::{TestCluster, TestSandbox};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::fuse::Fuse;
use crate::install::{install, put, rights};

pub(crate) const NAMESPACE: &str = "liqo";
/// The namespace at home for everything about the provider.
pub(crate) const TENANT: &str = "liqo-tenant-away";
const ACCOUNT: &str = "liqo-controller-manager";
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

/// A consumer and a provider.
pub(crate) struct World<'a> {
    pub(crate) home: TestCluster<'a>,
    pub(crate) away: TestCluster<'a>,
    pub(crate) here: kube::Client,
    pub(crate) there: kube::Client,
    /// The ID of the consumer, and that of the provider.
    pub(crate) id: String,
    pub(crate) provider: String,
    pub(crate) node: String,
    pub(crate) list: watch::Sender<Arc<ByCluster>>,
    /// What the room tells of the nodes behind virtual nodes.
    pub(crate) survey: watch::Sender<Arc<Survey>>,
    /// The way to the provider, where it is not the straight one.
    pub(crate) through: Option<std::net::SocketAddr>,
    ca: String,
}

impl<'a> World<'a> {
    /// A world in which `id` borrows from the cluster `away`.
    pub(crate) async fn new(sandbox: &'a TestSandbox, home: &str, id: &str) -> Self {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_ansi(false)
            .try_init();
        let (home, away) = (sandbox.cluster(home), sandbox.cluster("away"));
        let (here, there) = (home.client().await, away.client().await);
        install(&here).await;
        install(&there).await;
        let maps: Api<ConfigMap> = Api::namespaced(there.clone(), NAMESPACE);
        let ca = eventually("kube-root-ca.crt", || async {
            let found = maps.get_opt("kube-root-ca.crt").await.map_err(|error| error.to_string())?;
            let data = found.and_then(|map| map.data).ok_or_else(|| "missing".to_owned())?;
            data.get("ca.crt").cloned().ok_or_else(|| "empty".to_owned())
        })
        .await;
        let world = Self {
            home,
            away,
            here,
            there,
            id: id.to_owned(),
            provider: "away".to_owned(),
            node: "liqo-away".to_owned(),
            list: watch::Sender::new(Arc::default()),
            survey: watch::Sender::default(),
            through: None,
            ca,
        };
        world.rights().await;
        world.node().await;
        put(&world.here, &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": TENANT } }))
            .await;
        world
    }

    /// The room's rights here, and a tenant's there.
    async fn rights(&self) {
        for object in rights(ACCOUNT) {
            put(&self.here, &object).await;
        }
        let all = ["get", "list", "watch", "create", "update", "patch", "delete"];
        let see = ["get", "list", "watch"];
        put(
            &self.there,
            &json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": { "name": "liqo-remote-tenant" },
                "rules": [
                    { "apiGroups": [""], "resources": ["configmaps", "secrets", "services", "persistentvolumeclaims"],
                      "verbs": all },
                    { "apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": all },
                    { "apiGroups": ["networking.k8s.io"], "resources": ["ingresses"], "verbs": all },
                    { "apiGroups": ["virtualkubelet.liqo.io"], "resources": ["shadowpods"], "verbs": all },
                    { "apiGroups": [""], "resources": ["pods", "events"], "verbs": see },
                    { "apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"] },
                ],
            }),
        )
        .await;
    }

    /// The node that stands for the provider, kept alive as its kubelet would.
    async fn node(&self) {
        let ready = json!([{ "type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Test", "message": "" }]);
        let amounts = json!({ "cpu": "10000", "memory": "10000Gi", "pods": "20000" });
        let metadata = json!({ "name": self.node, "labels": {
            "liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": self.provider } });
        put(&self.here, &json!({ "apiVersion": "v1", "kind": "Node", "metadata": metadata })).await;
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.here.clone());
        let status = json!({ "status": { "conditions": ready, "capacity": amounts, "allocatable": amounts,
            "addresses": [{ "type": "InternalIP", "address": "10.9.8.7" }] } });
        nodes.patch_status(&self.node, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
        let leases: Api<k8s_openapi::api::coordination::v1::Lease> =
            Api::namespaced(self.here.clone(), "kube-node-lease");
        // Far ahead, so that the node lives through the test without anybody renewing it.
        let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": self.node }, "spec": { "holderIdentity": self.node,
            "leaseDurationSeconds": 40, "renewTime": "2096-01-01T00:00:00.000000Z" } });
        leases.patch(&self.node, &PatchParams::apply("test"), &Patch::Apply(&lease)).await.unwrap();
        // Each new node has a taint until Kubernetes has seen that it is ready. Pods that may run elsewhere would, and stay.
        eventually("Kubernetes takes its own taint away", || async {
            let node = nodes.get(&self.node).await.map_err(|error| error.to_string())?;
            let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
            if taints.is_empty() { Ok(()) } else { Err(format!("{taints:?}")) }
        })
        .await;
    }

    /// Maps namespaces, as the provider accepts them, and makes them on both sides.
    pub(crate) async fn map(&self, namespaces: &[(&str, &str)]) {
        for (local, remote) in namespaces {
            let here = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": local } });
            put(&self.here, &here).await;
            put(
                &self.there,
                &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": remote } }),
            )
            .await;
            put(
                &self.there,
                &json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                    "metadata": { "name": "liqo-tenant", "namespace": remote },
                    "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                                 "name": "liqo-remote-tenant" },
                    "subjects": [{ "kind": "User", "name": self.id, "apiGroup": "rbac.authorization.k8s.io" }],
                }),
            )
            .await;
            for (client, namespace) in [(&self.here, local), (&self.there, remote)] {
                let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
                eventually("the account that pods need", || async {
                    let found = accounts.get_opt("default").await.map_err(|error| error.to_string())?;
                    found.map(|_| ()).ok_or_else(|| "missing".to_owned())
                })
                .await;
            }
        }
        self.accept(namespaces).await;
    }

    /// Says that these namespaces are mapped.
    pub(crate) async fn accept(&self, namespaces: &[(&str, &str)]) {
        let maps: Api<liqo_api::NamespaceMap> = Api::namespaced(self.here.clone(), TENANT);
        let desired: Value = namespaces.iter().map(|(a, b)| ((*a).to_owned(), json!(b))).collect();
        let current: Value = namespaces
            .iter()
            .map(|(a, b)| ((*a).to_owned(), json!({ "remoteNamespace": b, "phase": "Accepted" })))
            .collect();
        let map = json!({ "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "NamespaceMap",
            "metadata": { "name": "away", "labels": { "liqo.io/remote-cluster-id": self.provider } },
            "spec": { "desiredMapping": desired } });
        let params = PatchParams::apply("test").force();
        maps.patch("away", &params, &Patch::Apply(&map)).await.unwrap();
        let status = json!({ "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "NamespaceMap",
            "status": { "currentMapping": current } });
        maps.patch_status("away", &params, &Patch::Apply(&status)).await.unwrap();
    }

    pub(crate) fn at_home<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.here.clone(), namespace)
    }

    pub(crate) fn at_provider<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.there.clone(), namespace)
    }

    /// Starts the room.
    pub(crate) async fn start(&self) -> Process {
        self.start_with(Fuse::never()).await
    }

    /// Starts the room, whose requests go through `fuse`.
    pub(crate) async fn start_with(&self, fuse: Fuse) -> Process {
        let mut home = self.home.config().await;
        home.auth_info.impersonate = Some(format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}"));
        let mut away = self.way().await;
        away.auth_info.impersonate = Some(self.id.clone());
        let url = away.cluster_url.to_string();
        let client = fuse.client(&home).unwrap();
        let there = fuse.clone();
        let clusters = Clusters::connecting(move |_| there.client(&away));
        let credentials = Credentials::token(&url, self.ca.as_bytes(), "unused").unwrap();
        let (cluster, _) = clusters.set(&self.provider, credentials).unwrap();
        let provider = Provider {
            id: self.provider.parse().unwrap(),
            name: Some(self.provider.parse().unwrap()),
            local_namespace: TENANT.into(),
            link: Ok(Link { place: "place".parse().unwrap(), cluster }),
            lent: Some(Arc::new(Lent {
                contract: "c".to_owned(),
                resources: Default::default(),
                pools: [].into(),
                labels: Default::default(),
                storage_classes: vec!["fast".to_owned()],
                until: jiff::Timestamp::MAX,
                ending: false,
            })),
            health: Health::Reachable,
        };
        self.list.send_replace(Arc::new([(provider.id.clone(), provider)].into()));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("room")
            .enable_all()
            .build()
            .unwrap();
        let own = liqo_api::names::Identity { id: self.id.parse().unwrap(), name: self.id.parse().unwrap() };
        let (list, elector) = (self.list.subscribe(), self.here.clone());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let settings = Settings { survey: self.survey.clone(), ..Settings::new("manager-0") };
        runtime.spawn(run(client, settings, own, list, elector, sender));
        let room = receiver.await.unwrap();
        Process { runtime: Some(runtime), room, _clusters: clusters }
    }

    /// How the provider is reached.
    pub(crate) async fn way(&self) -> kube::Config {
        let mut config = self.away.config().await;
        if let Some(address) = self.through {
            config.tls_server_name = config.cluster_url.host().map(str::to_owned);
            config.cluster_url = format!("https://{address}").parse().unwrap();
        }
        config
    }

    /// Sets what is thought of the provider.
    pub(crate) fn set_health(&self, health: &Health) {
        self.list.send_modify(|list| {
            let mut changed = (**list).clone();
            changed.values_mut().for_each(|provider| provider.health = health.clone());
            *list = Arc::new(changed);
        });
    }

    /// A pod that is bound to the virtual node.
    pub(crate) fn pod(&self, namespace: &str, name: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": namespace, "labels": { "liqo.io/shadowPod": "true", "app": "a" } },
            "spec": { "nodeName": self.node, "terminationGracePeriodSeconds": 1,
                "containers": [{ "name": "main", "image": "nothing" }] },
        })
    }

    /// Waits for a pod at home, until `check` finds nothing to say against it.
    pub(crate) async fn wait_pod<T>(
        &self,
        namespace: &str,
        name: &str,
        check: impl Fn(&Pod) -> Option<T>,
    ) -> T {
        let pods: Api<Pod> = self.at_home(namespace);
        eventually(&format!("pod {namespace}/{name}"), || async {
            let pod = pods.get_opt(name).await.map_err(|error| error.to_string())?.ok_or("no pod")?;
            check(&pod).ok_or_else(|| format!("{} {:?}", pod.name_any(), pod.status))
        })
        .await
    }

    pub(crate) async fn wait_ready(&self, namespace: &str, name: &str) {
        self.wait_pod(namespace, name, |pod| is_ready(pod).then_some(())).await;
    }

    pub(crate) async fn wait_gone<K>(&self, api: &Api<K>, name: &str)
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        eventually(&format!("{name} goes"), || async {
            match api.get_opt(name).await.map_err(|error| error.to_string())? {
                None => Ok(()),
                Some(object) => Err(format!("{object:?}")),
            }
        })
        .await;
    }
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
}

async fn run(
    client: kube::Client,
    settings: Settings,
    own: liqo_api::names::Identity,
    list: watch::Receiver<Arc<ByCluster>>,
    elector: kube::Client,
    started: tokio::sync::oneshot::Sender<Room>,
) {
    let (_keep, own) = watch::channel(Some(own));
    let room = Room::new(client, settings, own, list);
    let supervisor = Supervisor::new();
    room.start(&supervisor, &WatchMetrics::default());
    let (queue, worker) = room.queue(&WriteMetrics::default());
    let stop = supervisor.stop().clone();
    let identity = format!("manager-0_{}", jiff::Timestamp::now().as_nanosecond());
    let config = LeaseConfig {
        earlier_lives: Some("manager-0_".to_owned()),
        ..LeaseConfig::new(NAMESPACE, "liqo-test", identity)
    };
    let _ = started.send(room.clone());
    let leading = async {
        while !stop.is_cancelled() {
            let campaign = Campaign::new(elector.clone(), config.clone());
            campaign.run(stop.clone(), |leadership| room.lead(&queue, leadership)).await;
        }
    };
    tokio::join!(leading, worker.run(stop.clone()));
}

/// A room that runs; dropping it kills it.
pub(crate) struct Process {
    runtime: Option<tokio::runtime::Runtime>,
    pub(crate) room: Room,
    _clusters: Clusters,
}

impl Process {
    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Its metrics.
    pub(crate) fn metrics(&self) -> String {
        let mut registry = prometheus_client::registry::Registry::default();
        self.room.metrics().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Makes pods of ShadowPods, as the provider's manager does, without its care.
pub(crate) struct StandIn {
    runtime: Option<tokio::runtime::Runtime>,
}

impl StandIn {
    pub(crate) fn start(world: &World<'_>) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let client = world.there.clone();
        runtime.spawn(async move {
            let shadows: Api<ShadowPod> = Api::all(client.clone());
            let stream = watcher(shadows, watcher::Config::default()).default_backoff().applied_objects();
            stream
                .for_each_concurrent(16, |shadow| async {
                    if let Ok(shadow) = shadow
                        && shadow.metadata.deletion_timestamp.is_none()
                    {
                        make_pod(&client, &shadow).await;
                    }
                })
                .await;
        });
        Self { runtime: Some(runtime) }
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn make_pod(client: &kube::Client, shadow: &ShadowPod) {
    if shadow.annotations().contains_key("test/refuse") {
        return;
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &shadow.namespace().unwrap());
    let mut labels = shadow.labels().clone();
    labels.insert("liqo.io/managed-by".to_owned(), "shadowpod".to_owned());
    let mut owner = shadow.controller_owner_ref(&()).unwrap();
    owner.block_owner_deletion = None;
    let mut pod = Pod { spec: Some(shadow.spec.pod.clone()), ..Pod::default() };
    pod.metadata.name = Some(shadow.name_any());
    pod.metadata.labels = Some(labels);
    pod.metadata.owner_references = Some(vec![owner]);
    // An API server that is started again may take long, and refuses what it cannot judge yet.
    let deadline = Instant::now() + DEADLINE;
    while Instant::now() < deadline {
        match pods.create(&PostParams::default(), &pod).await {
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                let found = pods.get_opt(&shadow.name_any()).await.ok().flatten();
                let owners = found.and_then(|pod| pod.metadata.owner_references).unwrap_or_default();
                if owners.iter().any(|owner| Some(&owner.uid) == shadow.metadata.uid.as_ref()) {
                    return;
                }
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => {
                return eprintln!("stand-in: {status:?}");
            }
            Err(error) => eprintln!("stand-in, tried again: {error}"),
            Ok(_) => return,
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Creates an object.
pub(crate) async fn create<K>(api: &Api<K>, object: &Value) -> K
where
    K: Resource + Clone + DeserializeOwned + Serialize + Debug,
{
    let object: K = serde_json::from_value(object.clone()).unwrap();
    eventually("create", || async {
        api.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())
    })
    .await
}

/// All objects of a kind in a namespace.
pub(crate) async fn all<K>(api: &Api<K>) -> Vec<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    api.list(&ListParams::default()).await.unwrap().items
}
