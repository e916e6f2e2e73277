//! A provider with the room in it, and consumers that ask it for namespaces and pods.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fmt::Debug;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use liqo_api::contract::{Agreed, ContractPhase, ContractSpec, ContractStatus};
use liqo_api::names::Identity;
use liqo_api::namespace_map::{MappingPhase, RemoteNamespace};
use liqo_api::{Contract, NamespaceMap, NamespaceMapSpec, ShadowPod};
use liqo_authentication::PEER_RULES;
use liqo_core::Resources;
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, Enforcement, Party, PublicKey, ServiceLevel, Terms};
use liqo_core::pools::{Pool, Pools};
use liqo_hosting::{Limits, Room, Settings};
use liqo_kit::Supervisor;
use liqo_kit::lease::{Campaign, LeaseConfig};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_sandbox::TestCluster;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::install::{NAMESPACE, ROOM, create_namespace, install, put, rule};

const DEADLINE: Duration = Duration::from_secs(90);
pub(crate) const US: &str = "provider-id";
/// How long a consumer keeps what it has when its contract ends, in these tests. Longer than it may take until one that is put
/// out has lost its rights, which is looked at before it is let in again.
pub(crate) const GRACE: SignedDuration = SignedDuration::from_secs(10);
/// Namespaces of one consumer, in these tests.
pub(crate) const MOST: usize = 8;
/// ConfigMaps of one namespace, in these tests.
pub(crate) const MOST_CONFIG_MAPS: u32 = 20;

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

/// A provider.
pub(crate) struct Provider<'a> {
    pub(crate) cluster: TestCluster<'a>,
    pub(crate) client: kube::Client,
    pub(crate) settings: Settings,
}

impl<'a> Provider<'a> {
    pub(crate) async fn new(cluster: TestCluster<'a>) -> Self {
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_ansi(false)
            .try_init();
        let client = cluster.client().await;
        install(&client).await;
        let settings = Settings {
            grace: GRACE,
            namespaces: MOST,
            limits: Limits::default().with("count/configmaps", MOST_CONFIG_MAPS),
            ..Settings::new(NAMESPACE.parse().unwrap(), "manager-0")
        };
        Self { cluster, client, settings }
    }

    /// Starts the room, which may do what it asks for and nothing else, and leads.
    pub(crate) async fn start(&self) -> Process {
        self.start_with(kube::Client::try_from(self.room_config().await).unwrap()).await
    }

    /// How the room reaches the API server, with its rights.
    pub(crate) async fn room_config(&self) -> kube::Config {
        let mut config = self.cluster.config().await;
        config.auth_info.impersonate = Some(ROOM.to_owned());
        config
    }

    /// Starts a room that writes through this client.
    pub(crate) async fn start_with(&self, client: kube::Client) -> Process {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (settings, elector) = (self.settings.clone(), self.client.clone());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        runtime.spawn(run(client, elector, settings, sender));
        Process { runtime: Some(runtime), room: receiver.await.unwrap() }
    }

    /// A consumer with a place here.
    pub(crate) async fn consumer(&self, id: &str) -> Consumer<'_> {
        let place = format!("liqo-tenant-{id}");
        let labels =
            json!({ "discovery.liqo.io/tenant-namespace": "true", "discovery.liqo.io/cluster-id": id });
        create_namespace(&self.client, &place, &labels).await;
        let rules: Vec<Value> = PEER_RULES.iter().map(rule).collect();
        let api = "rbac.authorization.k8s.io/v1";
        let metadata = json!({ "name": "liqo-peer", "namespace": place });
        put(
            &self.client,
            &json!({ "apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules }),
        )
        .await;
        let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "liqo-peer" });
        let user = json!([{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": id }]);
        put(
            &self.client,
            &json!({ "apiVersion": api, "kind": "RoleBinding", "metadata": metadata, "roleRef": role,
                     "subjects": user }),
        )
        .await;
        let mut config = self.cluster.config().await;
        config.auth_info.impersonate = Some(id.to_owned());
        config.auth_info.impersonate_groups = Some(vec!["liqo.io".into(), "system:authenticated".into()]);
        let client = kube::Client::try_from(config).unwrap();
        Consumer { provider: self, id: id.to_owned(), place, client }
    }

    pub(crate) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

async fn run(
    client: kube::Client,
    elector: kube::Client,
    settings: Settings,
    started: tokio::sync::oneshot::Sender<Room>,
) {
    let me = Identity { id: US.parse().unwrap(), name: "provider".parse().unwrap() };
    let (_keep, identity) = watch::channel(Some(me));
    let room = Room::new(client, settings, identity);
    let supervisor = Supervisor::new();
    room.start(&supervisor, &WatchMetrics::default());
    let (queue, worker) = room.queue(&WriteMetrics::default());
    let stop = supervisor.stop().clone();
    let holder = format!("manager-0_{}", Timestamp::now().as_nanosecond());
    let config = LeaseConfig {
        earlier_lives: Some("manager-0_".to_owned()),
        ..LeaseConfig::new(NAMESPACE, "liqo-test", holder)
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
}

impl Process {
    /// A line of its metrics.
    pub(crate) fn metric(&self, line: &str) -> Option<f64> {
        let mut registry = prometheus_client::registry::Registry::default();
        self.room.metrics().register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let found = text.lines().find(|found| found.starts_with(line))?;
        found.rsplit(' ').next()?.parse().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A consumer, with exactly the rights that it gets.
pub(crate) struct Consumer<'a> {
    provider: &'a Provider<'a>,
    pub(crate) id: String,
    pub(crate) place: String,
    pub(crate) client: kube::Client,
}

impl Consumer<'_> {
    /// Has a contract in force.
    pub(crate) async fn sign(&self, resources: &[(&str, &str)], enforcement: Enforcement) {
        self.agree(&terms(&self.id, resources, Pools::new(), enforcement)).await;
    }

    /// Has a contract in force by pools, each with so many millicores and ten pods.
    pub(crate) async fn sign_pools(&self, pools: &[(&str, u32)]) {
        let pool = |(name, millis): &(&str, u32)| {
            let parsed = Resources::parse([("cpu", format!("{millis}m").as_str()), ("pods", "10")]);
            (name.parse().unwrap(), Pool { resources: parsed.resources, ..Pool::default() })
        };
        let pools: Pools = pools.iter().map(pool).collect();
        let sum = liqo_core::pools::sum(&pools);
        let texts: Vec<(String, String)> =
            sum.iter().map(|(name, amount)| (name.to_string(), amount.to_string())).collect();
        let texts: Vec<_> = texts.iter().map(|(name, amount)| (name.as_str(), amount.as_str())).collect();
        self.agree(&terms(&self.id, &texts, pools, Enforcement::Hard)).await;
    }

    async fn agree(&self, terms: &Terms) {
        let text = String::from_utf8(terms.canonical().to_vec()).unwrap();
        let contracts: Api<Contract> = self.provider.api(&self.place);
        let spec = ContractSpec {
            provider_id: US.to_owned(),
            consumer_id: self.id.clone(),
            terms: text.clone(),
            consumer_signature: signature(),
            ended: None,
        };
        let params = PatchParams::apply("test").force();
        let contract = Contract::new("c-one", spec);
        // A definition may be established and not served yet.
        eventually("the contract", || async {
            let put = contracts.patch("c-one", &params, &Patch::Apply(&contract)).await;
            put.map(drop).map_err(|error| error.to_string())
        })
        .await;
        let agreed = Agreed {
            terms: text,
            consumer_signature: signature(),
            provider_signature: signature(),
            time: now(),
        };
        let status = ContractStatus {
            phase: ContractPhase::Active,
            agreed: Some(agreed),
            ..ContractStatus::default()
        };
        self.set_contract(&json!(status)).await;
    }

    /// The contract is over.
    pub(crate) async fn end(&self) {
        self.set_contract(&json!({ "phase": "Ended" })).await;
    }

    async fn set_contract(&self, status: &Value) {
        let contracts: Api<Contract> = self.provider.api(&self.place);
        let patch = Patch::Merge(json!({ "status": status }));
        contracts.patch_status("c-one", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Asks for namespaces, in the map of this name.
    pub(crate) async fn ask(&self, map: &str, namespaces: &[(&str, &str)]) {
        let desired_mapping =
            namespaces.iter().map(|(local, remote)| ((*local).to_owned(), (*remote).to_owned())).collect();
        let mut object = NamespaceMap::new(map, NamespaceMapSpec { desired_mapping });
        let labels = [("liqo.io/replicated", "true"), ("liqo.io/originID", self.id.as_str())];
        object.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        let maps: Api<NamespaceMap> = self.api(&self.place);
        let params = PatchParams::apply("consumer").force();
        eventually("ask for namespaces", || async {
            let said = maps.patch(map, &params, &Patch::Apply(&object)).await;
            said.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    /// What the map says of a namespace.
    pub(crate) async fn told(&self, map: &str, local: &str) -> Option<RemoteNamespace> {
        let maps: Api<NamespaceMap> = self.api(&self.place);
        let map = maps.get_opt(map).await.unwrap()?;
        map.status?.current_mapping.get(local).cloned()
    }

    pub(crate) async fn wait_told(&self, map: &str, local: &str, phase: MappingPhase, reason: &str) {
        eventually(&format!("{} is told of {local}: {phase:?} {reason}", self.id), || async {
            let told = self.told(map, local).await;
            let fine = told.as_ref().is_some_and(|told| {
                told.phase == phase && told.reason.as_deref().unwrap_or_default() == reason
            });
            if fine { Ok(()) } else { Err(format!("{told:?}")) }
        })
        .await;
    }

    pub(crate) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// What an attempt to create something ends in.
    pub(crate) async fn create<K>(&self, namespace: &str, object: &K) -> Result<(), String>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Serialize
            + DeserializeOwned
            + Clone
            + Debug,
    {
        let said = self.api::<K>(namespace).create(&PostParams::default(), object).await;
        said.map(drop).map_err(|error| match error {
            kube::Error::Api(status) => format!("{} {}", status.code, status.message),
            error => error.to_string(),
        })
    }

    /// Wants a pod, and gets what the API server says to that.
    pub(crate) async fn want(&self, namespace: &str, name: &str, pod: &Value) -> Result<(), String> {
        self.create(namespace, &shadow(&self.id, name, pod)).await
    }

    /// The same with fields that the types of this client do not know.
    pub(crate) async fn try_shadow(&self, namespace: &str, name: &str, pod: &Value) -> Result<(), String> {
        let kind = kube::api::ApiResource::erase::<ShadowPod>(&());
        let api: Api<kube::api::DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        let object = json!({
            "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "ShadowPod",
            "metadata": { "name": name }, "spec": { "pod": pod },
        });
        let said = api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await;
        said.map(drop).map_err(|error| error.to_string())
    }

    /// Wants a pod no longer.
    pub(crate) async fn drop_pod(&self, namespace: &str, name: &str) {
        self.api::<ShadowPod>(namespace).delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits for a pod, as the consumer sees it.
    pub(crate) async fn wait_pod(&self, namespace: &str, name: &str, fine: impl Fn(&Pod) -> bool) -> Pod {
        eventually(&format!("{namespace}/{name}"), || async {
            let pod = self.api::<Pod>(namespace).get_opt(name).await.map_err(|error| error.to_string())?;
            let shadow = self.api::<ShadowPod>(namespace).get_opt(name).await;
            match pod {
                Some(pod) if fine(&pod) => Ok(pod),
                pod => Err(format!("{:?} {shadow:?}", pod.map(|pod| (pod.metadata, pod.status)))),
            }
        })
        .await
    }

    pub(crate) async fn wait_no_pod(&self, namespace: &str, name: &str) {
        eventually(&format!("{namespace}/{name} goes"), || async {
            match self.api::<Pod>(namespace).get_opt(name).await.map_err(|error| error.to_string())? {
                None => Ok(()),
                Some(pod) => Err(format!("{:?}", pod.metadata)),
            }
        })
        .await;
    }

    /// Waits until it is told why there is no pod; returns the words.
    pub(crate) async fn wait_refused(&self, namespace: &str, name: &str, reason: &str) -> String {
        eventually(&format!("{namespace}/{name} is refused: {reason}"), || async {
            let shadow =
                self.api::<ShadowPod>(namespace).get(name).await.map_err(|error| error.to_string())?;
            let conditions = shadow.status.map(|status| status.conditions).unwrap_or_default();
            match conditions.iter().find(|it| it.type_ == "Created") {
                Some(it) if it.status == "False" && it.reason == reason => Ok(it.message.clone()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    }
}

/// A ShadowPod, as a consumer makes it.
pub(crate) fn shadow(consumer: &str, name: &str, pod: &Value) -> ShadowPod {
    serde_json::from_value(json!({
        "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "ShadowPod",
        "metadata": { "name": name, "labels": { "app": "test", "virtualkubelet.liqo.io/origin": consumer },
                      "annotations": { "virtualkubelet.liqo.io/pod-uid": "u-1", "note": "kept" } },
        "spec": { "pod": pod },
    }))
    .unwrap()
}

/// A pod that requests this much.
pub(crate) fn pod(cpu: &str) -> Value {
    json!({ "containers": [{
        "name": "main", "image": "example.com/app:1", "resources": { "requests": { "cpu": cpu } },
    }] })
}

pub(crate) fn is_of<'a>(uid: Option<&'a str>) -> impl Fn(&Pod) -> bool + 'a {
    move |pod| pod.uid().as_deref() != uid
}

fn terms(consumer: &str, resources: &[(&str, &str)], pools: Pools, enforcement: Enforcement) -> Terms {
    let party = |id: &str| Party {
        id: id.parse().unwrap(),
        name: id.parse().unwrap(),
        // Another one for each; nobody here signs anything.
        key: format!("ed25519:{:064x}", id.len()).parse::<PublicKey>().unwrap(),
    };
    let begin = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    let parsed = Resources::parse(resources.iter().copied());
    Terms::new(Clauses {
        contract: "c-one".parse().unwrap(),
        sequence: 0,
        predecessor: None,
        provider: party(US),
        consumer: party(consumer),
        resources: parsed.resources,
        pools,
        prices: None,
        not_before: begin,
        not_after: begin.checked_add(SignedDuration::from_hours(24)).unwrap(),
        renewal: None,
        enforcement,
        service_level: ServiceLevel::default(),
        offer: Digest::of("test", b"offer"),
    })
    .unwrap()
}

fn signature() -> String {
    format!("ed25519:{}", "0".repeat(128))
}

fn now() -> k8s_openapi::apimachinery::pkg::apis::meta::v1::Time {
    let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
    k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now)
}
