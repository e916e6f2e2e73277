//! Both sides of a peering, with the rooms that offloading needs in the test's process: a consumer `home` that borrows from a
//! provider `away`, as if they had peered.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo::limits::{REQUESTS_AT_PEER, WATCHES_AT_PEER, WATCHES_HERE};
use liqo_api::names::Identity;
use liqo_api::namespace_offloading::PodOffloadingStrategy;
use liqo_authentication::PEER_RULES;
use liqo_core::Resources;
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, Enforcement, Party, PublicKey, ServiceLevel, Terms};
use liqo_kit::Supervisor;
use liqo_kit::clusters::{ClientConfig, Clusters, client};
use liqo_kit::lease::{Campaign, Leadership, LeaseConfig};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_providers::Providers;
use liqo_sandbox::{TestCluster, TestSandbox};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) const HOME: &str = "home";
pub(crate) const AWAY: &str = "away";
pub(crate) const NODE: &str = "liqo-away";
const HOME_ID: &str = "11111111-0000-4000-8000-000000000001";
const AWAY_ID: &str = "22222222-0000-4000-8000-000000000002";
const NAMESPACE: &str = "liqo";
/// The consumer's namespace for the provider.
pub(crate) const TENANT: &str = "liqo-tenant-away";
/// The consumer's place at the provider.
pub(crate) const PLACE: &str = "liqo-tenant-home";
/// A machine may be ten times busier than ours.
const SOON: Duration = Duration::from_secs(120);

/// Waits until `check` returns something, and shows what it last said if it does not in time.
pub(crate) async fn eventually<T, F, Fut>(what: &str, mut check: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let deadline = Instant::now() + SOON;
    loop {
        match check().await {
            Ok(found) => return found,
            Err(state) => assert!(Instant::now() < deadline, "{what}: {state}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Applies an object of any kind, and its status if it has one.
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
    eventually(&format!("put {object}"), || async {
        api.patch(name, &params, &Patch::Apply(object)).await.map_err(|error| error.to_string())
    })
    .await;
    if !object["status"].is_null() {
        api.patch_status(name, &params, &Patch::Apply(object)).await.unwrap();
    }
}

pub(crate) fn namespace(name: &str, labels: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

/// The two clusters.
pub(crate) struct Stack<'a> {
    pub(crate) home: TestCluster<'a>,
    pub(crate) away: TestCluster<'a>,
    pub(crate) here: kube::Client,
    pub(crate) there: kube::Client,
    /// Which objects the consumer reflects, as its flag says it.
    pub(crate) reflection: &'static str,
    address: IpAddr,
}

impl<'a> Stack<'a> {
    /// Prepares the clusters, and has a contract over so much in force.
    pub(crate) async fn new(sandbox: &'a TestSandbox, lent: &[(&str, &str)]) -> Self {
        // Shown with RUST_LOG.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_ansi(false)
            .try_init();
        let (home, away) = (sandbox.cluster(HOME), sandbox.cluster(AWAY));
        let (here, there) = (home.client().await, away.client().await);
        for (cluster, client) in [(&home, &here), (&away, &there)] {
            let crds: Vec<_> =
                liqo_api::crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
            let list = json!({ "apiVersion": "v1", "kind": "List", "items": crds });
            assert!(cluster.kubectl_apply(&list.to_string()).status.success());
            let wait = ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"];
            assert!(cluster.kubectl(wait).status.success());
            put(client, &namespace(NAMESPACE, &json!({}))).await;
        }
        let address = address_towards(&home).await;
        let stack = Self { home, away, here, there, reflection: "", address };
        stack.peer(lent).await;
        stack
    }

    /// What peering leaves behind on both sides.
    async fn peer(&self, lent: &[(&str, &str)]) {
        put(&self.here, &namespace(TENANT, &json!({ "discovery.liqo.io/tenant-namespace": "true" }))).await;
        let labels =
            json!({ "discovery.liqo.io/tenant-namespace": "true", "discovery.liqo.io/cluster-id": HOME_ID });
        put(&self.there, &namespace(PLACE, &labels)).await;
        for object in chart(&["ClusterRole"]) {
            put(&self.there, &object).await;
        }
        let rule = |rule: &liqo_kit::rbac::Rule| {
            json!({ "apiGroups": rule.groups, "resources": rule.resources,
            "resourceNames": rule.names, "verbs": rule.verbs })
        };
        let rules: Vec<Value> = PEER_RULES.iter().map(rule).collect();
        let group = "rbac.authorization.k8s.io";
        let metadata = json!({ "name": "liqo-peer", "namespace": PLACE });
        let api = format!("{group}/v1");
        put(&self.there, &json!({ "apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules }))
            .await;
        let role = json!({ "apiGroup": group, "kind": "Role", "name": "liqo-peer" });
        let user = json!([{ "apiGroup": group, "kind": "User", "name": HOME_ID }]);
        let binding = json!({ "apiVersion": api, "kind": "RoleBinding", "metadata": metadata, "roleRef": role,
            "subjects": user });
        put(&self.there, &binding).await;
        self.keep_identity().await;
        for (client, at) in [(&self.there, PLACE), (&self.here, TENANT)] {
            put(client, &contract(at, lent)).await;
        }
    }

    /// The consumer's certificate at the provider, as the consumer keeps it.
    async fn keep_identity(&self) {
        let (certificate, key) = certify(&self.there, HOME_ID).await;
        let config = self.away.config().await;
        let ca = config.root_cert.unwrap_or_default();
        let ca: String = ca.iter().map(|der| pem(der)).collect();
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "liqo-identity-away", "namespace": TENANT, "labels": {
                "discovery.liqo.io/cluster-id": AWAY_ID, "discovery.liqo.io/local-identity": "true" } },
            "stringData": { "private-key": key, "certificate": certificate, "namespace": PLACE,
                "apiServerUrl": config.cluster_url.to_string(), "apiServerCa": ca },
        });
        put(&self.here, &secret).await;
    }

    /// Starts the rooms of both sides, and has the consumer's API server ask about pods.
    pub(crate) async fn start(&self) -> Running {
        self.start_with(WATCHES_AT_PEER).await
    }

    /// The same, with so many watches at the provider at most.
    pub(crate) async fn start_with(&self, watches: usize) -> Running {
        let there = runtime("provider");
        there.spawn(host(self.there.clone()));
        let listener = TcpListener::bind((self.address, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let limits = ClientConfig { max_watches: WATCHES_HERE, ..ClientConfig::default() };
        let own = client(&self.home.config().await, &limits).unwrap();
        let here = runtime("consumer");
        let settings = liqo_reflection::Settings {
            namespace: Some(NAMESPACE.into()),
            policies: self.reflection.parse().unwrap(),
            ..liqo_reflection::Settings::new("manager-0")
        };
        let listener = listener.into_std().unwrap();
        here.spawn(borrow(own, self.here.clone(), watches, settings, self.address, listener));
        self.ask_at(port).await;
        let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(self.here.clone());
        eventually("the provider is a node", || async {
            let node = nodes.get_opt(NODE).await.map_err(|error| error.to_string())?.ok_or("no node")?;
            let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
            let ready = conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True");
            // Kubernetes takes its own mark off a moment later; pods that it keeps away would stay at home.
            let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
            let marked = taints.iter().any(|taint| taint.key.starts_with("node.kubernetes.io/"));
            (ready && !marked).then_some(()).ok_or_else(|| format!("{conditions:?} {taints:?}"))
        })
        .await;
        Running(Some((here, there)))
    }

    /// The chart's configuration, with a URL: Services lead nowhere in a hollow cluster.
    async fn ask_at(&self, port: u16) {
        for mut object in chart(&["MutatingWebhookConfiguration"]) {
            for webhook in object["webhooks"].as_array_mut().unwrap() {
                let config = webhook["clientConfig"].as_object_mut().unwrap();
                config.remove("service");
                let url = format!("https://{}:{port}{}", self.address, liqo_offloading::PATH);
                config.insert("url".to_owned(), json!(url));
            }
            put(&self.here, &object).await;
        }
    }

    /// Makes a namespace and offloads it.
    pub(crate) async fn offload(&self, name: &str, notes: Value, spec: Value) {
        put(&self.here, &namespace(name, &json!({}))).await;
        let object = json!({
            "apiVersion": "offloading.liqo.io/v1alpha1", "kind": "NamespaceOffloading",
            "metadata": { "name": "offloading", "namespace": name, "annotations": notes }, "spec": spec,
        });
        put(&self.here, &object).await;
    }

    /// Waits until the namespace is at the provider; its name there.
    pub(crate) async fn wait_offloaded(&self, name: &str) -> String {
        let api: Api<liqo_api::NamespaceOffloading> = Api::namespaced(self.here.clone(), name);
        let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> =
            Api::namespaced(self.here.clone(), name);
        let (remote, strategy) = eventually(&format!("{name} is offloaded"), || async {
            let found = api.get("offloading").await.map_err(|error| error.to_string())?;
            let status = found.status.unwrap_or_default();
            let ready =
                status.offloading_phase == Some(liqo_api::namespace_offloading::OffloadingPhase::Ready);
            let account = accounts.get_opt("default").await.map_err(|error| error.to_string())?;
            match (&status.remote_namespace_name, ready && account.is_some()) {
                (Some(remote), true) => Ok((remote.clone(), found.spec.pod_offloading_strategy)),
                _ => Err(format!("{status:?}")),
            }
        })
        .await;
        if strategy != PodOffloadingStrategy::Local {
            self.wait_asked(name).await;
        }
        remote
    }

    /// Waits until the webhook is asked about pods of the namespace: the API server learns a moment later how it is marked.
    async fn wait_asked(&self, namespace: &str) {
        let pods: Api<Pod> = Api::namespaced(self.here.clone(), namespace);
        let probe = json!({ "metadata": { "name": "probe" }, "spec": { "containers": [
            { "name": "main", "image": "localhost/liqo/sandbox-app:1" }] } });
        let probe: Pod = serde_json::from_value(probe).unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        eventually(&format!("the webhook is asked about pods of {namespace}"), || async {
            let made = pods.create(&dry_run, &probe).await.map_err(|error| error.to_string())?;
            let asked = made.labels().contains_key("liqo.io/shadowPod");
            if asked { Ok(()) } else { Err(format!("{:?}", made.metadata)) }
        })
        .await;
    }
}

/// The rooms, which run; dropping it kills them.
pub(crate) struct Running(Option<(tokio::runtime::Runtime, tokio::runtime::Runtime)>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((here, there)) = self.0.take() {
            here.shutdown_background();
            there.shutdown_background();
        }
    }
}

fn runtime(name: &str) -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).thread_name(name).enable_all().build().unwrap()
}

fn lease() -> LeaseConfig {
    let identity = format!("manager-0_{}", Timestamp::now().as_nanosecond());
    LeaseConfig {
        earlier_lives: Some("manager-0_".to_owned()),
        ..LeaseConfig::new(NAMESPACE, "liqo-test", identity)
    }
}

/// The consumer's rooms, as the manager has them.
async fn borrow(
    client: kube::Client,
    elector: kube::Client,
    watches: usize,
    reflection: liqo_reflection::Settings,
    address: IpAddr,
    listener: std::net::TcpListener,
) {
    let me = Identity { id: HOME_ID.parse().unwrap(), name: HOME.parse().unwrap() };
    let (_keep, own) = watch::channel(Some(me));
    let limits =
        ClientConfig { max_watches: watches, max_requests: REQUESTS_AT_PEER, ..ClientConfig::default() };
    let clusters = Arc::new(Clusters::new(limits));
    let providers =
        Providers::new(client.clone(), clusters, liqo_providers::Settings::default(), own.clone());
    let survey = watch::Sender::default();
    let settings = liqo_virtual_node::Settings {
        survey: survey.clone(),
        ..liqo_virtual_node::Settings::new("manager-0", "0.1.0")
    };
    let nodes = liqo_virtual_node::Room::new(client.clone(), settings, providers.clone(), own.clone());
    let settings = liqo_offloading::Settings {
        webhook_names: vec![address.to_string()],
        ..liqo_offloading::Settings::new(NAMESPACE.parse().unwrap(), "manager-0")
    };
    let offloading = liqo_offloading::Room::new(client.clone(), settings, own.clone(), providers.subscribe());
    let settings = liqo_reflection::Settings { survey, ..reflection };
    let reflection = liqo_reflection::Room::new(client, settings, own, providers.subscribe());
    let (supervisor, watches, writes) = (Supervisor::new(), WatchMetrics::default(), WriteMetrics::default());
    providers.start(&supervisor, &watches);
    nodes.start(&supervisor, &watches);
    offloading.start(&supervisor, &watches);
    reflection.start(&supervisor, &watches);
    offloading.serve(&supervisor, TcpListener::from_std(listener).unwrap());
    let stop = supervisor.stop().clone();
    let (of_nodes, nodes_worker) = nodes.queue(&writes);
    let (of_namespaces, namespaces_worker) = offloading.queue(&writes);
    let (of_pods, pods_worker) = reflection.queue(&writes);
    let (providers, nodes, offloading, reflection) = (&providers, &nodes, &offloading, &reflection);
    let (of_nodes, of_namespaces, of_pods) = (&of_nodes, &of_namespaces, &of_pods);
    let lead = |leadership: Leadership| async move {
        let complete = async {
            providers.complete().await;
            tokio::join!(
                offloading.lead(of_namespaces, leadership.clone()),
                Box::pin(reflection.lead(of_pods, leadership.clone())),
            );
        };
        let nodes = Box::pin(nodes.lead(of_nodes, leadership.clone()));
        tokio::join!(providers.measure(leadership.ended()), nodes, complete);
    };
    let leading = async {
        // On a machine that stands still for a while its lease runs out.
        while !stop.is_cancelled() {
            Campaign::new(elector.clone(), lease()).run(stop.clone(), lead).await;
        }
    };
    let workers = async {
        tokio::join!(
            nodes_worker.run(stop.clone()),
            namespaces_worker.run(stop.clone()),
            pods_worker.run(stop.clone())
        )
    };
    tokio::join!(leading, workers);
}

/// The provider's room.
async fn host(client: kube::Client) {
    let me = Identity { id: AWAY_ID.parse().unwrap(), name: AWAY.parse().unwrap() };
    let (_keep, own) = watch::channel(Some(me));
    let settings = liqo_hosting::Settings::new(NAMESPACE.parse().unwrap(), "manager-0");
    let room = liqo_hosting::Room::new(client.clone(), settings, own);
    let supervisor = Supervisor::new();
    room.start(&supervisor, &WatchMetrics::default());
    let (queue, worker) = room.queue(&WriteMetrics::default());
    let stop = supervisor.stop().clone();
    let leading = async {
        // Its leadership ends when its API server is stopped.
        while !stop.is_cancelled() {
            let campaign = Campaign::new(client.clone(), lease());
            campaign.run(stop.clone(), |leadership| Box::pin(room.lead(&queue, leadership))).await;
        }
    };
    tokio::join!(leading, worker.run(stop.clone()));
}

/// What the chart has of these kinds.
fn chart(kinds: &[&str]) -> Vec<Value> {
    let release = liqo_chart::Release {
        name: NAMESPACE.into(),
        namespace: NAMESPACE.into(),
        service: "liqoctl".into(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: String::new(),
        api_versions: vec![],
    };
    let rendered = liqo_chart::Chart::embedded().render(&release, &json!({})).unwrap();
    rendered.into_iter().filter(|object| kinds.iter().any(|kind| object["kind"] == *kind)).collect()
}

/// A contract in force, in the namespace `at`.
fn contract(at: &str, lent: &[(&str, &str)]) -> Value {
    let party = |id: &str, name: &str, key| Party {
        id: id.parse().unwrap(),
        name: name.parse().unwrap(),
        key: PublicKey::new([key; 32]),
    };
    let terms = Terms::new(Clauses {
        contract: "c-1".parse().unwrap(),
        sequence: 0,
        predecessor: None,
        provider: party(AWAY_ID, AWAY, 1),
        consumer: party(HOME_ID, HOME, 2),
        resources: Resources::parse(lent.iter().copied()).resources,
        pools: [].into(),
        prices: None,
        not_before: "2026-01-01T00:00:00Z".parse().unwrap(),
        not_after: "2126-01-01T00:00:00Z".parse().unwrap(),
        renewal: None,
        enforcement: Enforcement::Hard,
        service_level: ServiceLevel::default(),
        offer: Digest::of("test", b"offer"),
    })
    .unwrap();
    let text = String::from_utf8(terms.canonical().to_vec()).unwrap();
    let signature = format!("ed25519:{}", "ab".repeat(64));
    json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "Contract",
        "metadata": { "name": "c-1", "namespace": at },
        "spec": { "providerID": AWAY_ID, "consumerID": HOME_ID, "terms": text, "consumerSignature": signature },
        "status": { "phase": "Active", "agreed": { "terms": text, "consumerSignature": signature,
            "providerSignature": signature, "time": "2026-01-01T00:00:00Z" } },
    })
}

/// A client certificate and its key, signed by the cluster.
async fn certify(client: &kube::Client, user: &str) -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, user);
    let text = parameters.serialize_request(&key).unwrap().pem().unwrap();
    let request = json!({ "metadata": { "generateName": "test-" }, "spec": {
        "request": ByteString(text.into_bytes()), "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["digital signature", "client auth"] } });
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let request = serde_json::from_value(request).unwrap();
    let name = requests.create(&PostParams::default(), &request).await.unwrap().name_any();
    let approval =
        json!({ "status": { "conditions": [{ "type": "Approved", "status": "True", "reason": "Test" }] } });
    requests.patch_approval(&name, &PatchParams::default(), &Patch::Merge(approval)).await.unwrap();
    let certificate = eventually("a certificate", || async {
        let status = requests.get(&name).await.map_err(|error| error.to_string())?.status.unwrap_or_default();
        status.certificate.ok_or_else(|| format!("{:?}", status.conditions))
    })
    .await;
    (String::from_utf8(certificate.0).unwrap(), key.serialize_pem())
}

fn pem(der: &[u8]) -> String {
    let text = serde_json::to_value(ByteString(der.to_vec())).unwrap();
    let lines: Vec<_> = text.as_str().unwrap().as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

/// The address of this machine as a cluster sees it.
async fn address_towards(cluster: &TestCluster<'_>) -> IpAddr {
    let url = cluster.config().await.cluster_url;
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((url.host().unwrap(), url.port_u16().unwrap_or(6443))).unwrap();
    socket.local_addr().unwrap().ip()
}
