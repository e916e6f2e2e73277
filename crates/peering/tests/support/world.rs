//! Clusters with the rooms of authentication and peering in them, each in a process of its own as far as they can tell.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Resource, ResourceExt};
use liqo_api::foreign_cluster::{PeeringCondition, PeeringConditionType, PeeringEnabled};
use liqo_api::{
    Contract, Fingerprint, ForeignCluster, ForeignClusterSpec, ResourceOffer, ResourceRequest, SharingPolicy,
};
use liqo_authentication::tokens::{self, NewToken};
use liqo_identity::{Identity, Wanted};
use liqo_kit::clusters::{ClientConfig, Clusters, Credentials, client};
use liqo_kit::lease::{Campaign, Leadership, LeaseConfig};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_kit::{ClientSource, Supervisor};
use liqo_peering::{Clock, Room, Settings};
use liqo_sandbox::{TestCluster, TestSandbox};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::install::{NAMESPACE, ROOM, install};

/// After a restart of the API server, Kubernetes' own controllers sign certificates again only once their watches are back,
/// which they try up to a minute apart.
const DEADLINE: Duration = Duration::from_secs(120);

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

/// A cluster with an identity, where rooms may be started.
pub(crate) struct House<'a> {
    pub(crate) name: String,
    pub(crate) cluster: TestCluster<'a>,
    pub(crate) client: kube::Client,
    pub(crate) identity: Arc<Identity>,
    pub(crate) address: SocketAddr,
    /// Keeps the address for us also while nobody listens there.
    _reserved: TcpSocket,
    pub(crate) authentication: liqo_authentication::Settings,
    pub(crate) settings: Settings,
    pub(crate) shift: watch::Sender<SignedDuration>,
}

impl<'a> House<'a> {
    pub(crate) async fn new(sandbox: &'a TestSandbox, name: &str) -> Self {
        // Shown with RUST_LOG; the second house finds it started.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
            .with_ansi(false)
            .try_init();
        let cluster = sandbox.cluster(name);
        let client = cluster.client().await;
        install(&client).await;
        let wanted = Wanted { id: None, name: Some(name.parse().unwrap()) };
        let identity = Arc::new(Identity::generate(&wanted).unwrap());
        // Nobody else is given this address while the socket is there, which does not listen: those who listen share it.
        let reserved = TcpSocket::new_v4().unwrap();
        reserved.set_reuseaddr(true).unwrap();
        reserved.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = reserved.local_addr().unwrap();
        let (shift, clock) = Clock::shifted();
        let authentication = liqo_authentication::Settings {
            api_server: Some(cluster.config().await.cluster_url.to_string()),
            ..liqo_authentication::Settings::new(NAMESPACE.parse().unwrap(), "manager-0")
        };
        let settings = Settings { clock, ..Settings::new(NAMESPACE.parse().unwrap(), "manager-0") };
        let name = name.to_owned();
        Self {
            name,
            cluster,
            client,
            identity,
            address,
            _reserved: reserved,
            authentication,
            settings,
            shift,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(crate) fn id(&self) -> &str {
        self.identity.id.as_str()
    }

    /// Starts the rooms and leads.
    pub(crate) async fn start(&self) -> Process {
        self.start_with(self.room_client().await, None).await
    }

    pub(crate) async fn room_client(&self) -> kube::Client {
        client(&self.room_config().await, &ClientConfig::default()).unwrap()
    }

    /// The rooms may do what they ask for and nothing else.
    pub(crate) async fn room_config(&self) -> kube::Config {
        let mut config = self.cluster.config().await;
        config.auth_info.impersonate = Some(ROOM.to_owned());
        config
    }

    /// Starts the rooms, of which this one has other clients, here and at peers.
    pub(crate) async fn start_with(&self, client: kube::Client, at_peers: Option<Clusters>) -> Process {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let start = Start {
            client,
            at_peers,
            usual: self.room_client().await,
            elector: self.client.clone(),
            authentication: self.authentication.clone(),
            settings: self.settings.clone(),
            identity: Arc::clone(&self.identity),
            address: self.address,
        };
        let (sender, receiver) = tokio::sync::oneshot::channel();
        runtime.spawn(start.run(sender));
        let (authentication, room) = receiver.await.unwrap();
        Process { runtime: Some(runtime), authentication, room }
    }

    /// The fingerprint of its service, once it answers.
    pub(crate) async fn fingerprint(&self, process: &Process) -> Fingerprint {
        let mut fingerprint = process.authentication.fingerprint();
        let found = tokio::time::timeout(DEADLINE, fingerprint.wait_for(Option::is_some)).await;
        let found = found.expect("the service has no certificate").unwrap().unwrap();
        eventually("the service answers", || async {
            let trust = liqo_authentication::client::Trust::Fingerprint(found);
            let answer = liqo_authentication::client::identify(&self.url(), &trust).await;
            answer.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
        found
    }

    pub(crate) fn clusters(&self) -> Api<ForeignCluster> {
        Api::all(self.client.clone())
    }

    /// Adds a peer, as `liqoctl add` does, with this much said about it.
    pub(crate) async fn add(&self, peer: &House<'_>, at_peer: &Process, outgoing: PeeringEnabled) {
        self.add_with(peer, at_peer, |spec| spec.outgoing_peering_enabled = outgoing).await;
    }

    pub(crate) async fn add_with(
        &self,
        peer: &House<'_>,
        at_peer: &Process,
        change: impl FnOnce(&mut ForeignClusterSpec),
    ) {
        let fingerprint = peer.fingerprint(at_peer).await;
        // One for each time: who was removed does not come back with the same.
        let (_, token) = tokens::create(&peer.client, NAMESPACE, &NewToken::default()).await.unwrap();
        tokens::keep_remote(&self.client, NAMESPACE, &peer.identity.id, &token).await.unwrap();
        let mut spec = ForeignClusterSpec::new(peer.url());
        spec.auth_fingerprint = Some(fingerprint.to_string());
        spec.cluster_identity = Some(liqo_api::foreign_cluster::ForeignIdentity {
            cluster_id: Some(peer.id().to_owned()),
            cluster_name: None,
        });
        change(&mut spec);
        let cluster = ForeignCluster::new(&peer.name, spec);
        eventually("add", || async {
            let created = self.clusters().create(&PostParams::default(), &cluster).await;
            created.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
    }

    /// Changes a ForeignCluster.
    pub(crate) async fn change(&self, name: &str, patch: Value) {
        self.clusters().patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    pub(crate) async fn condition(&self, name: &str, part: PeeringConditionType) -> Option<PeeringCondition> {
        let cluster = self.clusters().get_opt(name).await.unwrap()?;
        let conditions = cluster.status?.peering_conditions;
        conditions.into_iter().find(|condition| condition.type_ == part)
    }

    /// Waits for a state: status and reason.
    pub(crate) async fn wait_part(
        &self,
        name: &str,
        part: PeeringConditionType,
        expected: &str,
    ) -> PeeringCondition {
        eventually(&format!("{}: {name} {part:?} {expected}", self.name), || async move {
            let condition = self.condition(name, part).await;
            let condition = match condition {
                Some(condition) => condition,
                None => return Err(format!("no condition: {:?}", self.clusters().get_opt(name).await)),
            };
            let found = format!("{:?} {}", condition.status, condition.reason);
            if found == expected { Ok(condition) } else { Err(format!("{found}: {}", condition.message)) }
        })
        .await
    }

    pub(crate) async fn wait_outgoing(&self, name: &str, expected: &str) -> PeeringCondition {
        self.wait_part(name, PeeringConditionType::OutgoingPeering, expected).await
    }

    pub(crate) async fn wait_incoming(&self, name: &str, expected: &str) -> PeeringCondition {
        self.wait_part(name, PeeringConditionType::IncomingPeering, expected).await
    }

    /// Waits until the ForeignCluster is gone.
    pub(crate) async fn wait_gone(&self, name: &str) {
        eventually(&format!("{}: {name} goes", self.name), || async {
            match self.clusters().get_opt(name).await.unwrap() {
                None => Ok(()),
                Some(cluster) => Err(format!("{:?} {:?}", cluster.metadata, cluster.status)),
            }
        })
        .await;
    }

    /// The tenant namespace of a peer.
    pub(crate) async fn tenant(&self, peer: &House<'_>) -> Option<Namespace> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let selector =
            format!("discovery.liqo.io/tenant-namespace=true,discovery.liqo.io/cluster-id={}", peer.id());
        let found = namespaces.list(&ListParams::default().labels(&selector)).await.unwrap().items;
        found.into_iter().find(|tenant| tenant.metadata.deletion_timestamp.is_none())
    }

    /// A client with the certificate that a peer gave us.
    pub(crate) async fn client_at(&self, peer: &House<'_>) -> kube::Client {
        let secrets: Api<Secret> = Api::all(self.client.clone());
        let of = format!("discovery.liqo.io/local-identity=true,discovery.liqo.io/cluster-id={}", peer.id());
        let found = secrets.list(&ListParams::default().labels(&of)).await.unwrap().items;
        let kept = found.first().and_then(|secret| secret.data.as_ref()).expect("an identity there");
        let credentials = Credentials::certificate(
            std::str::from_utf8(&kept["apiServerUrl"].0).unwrap(),
            &kept["apiServerCa"].0,
            &kept["certificate"].0,
            &kept["private-key"].0,
        );
        let (cluster, _) = Clusters::new(ClientConfig::default()).set("peer", credentials.unwrap()).unwrap();
        cluster.client()
    }

    /// All objects of a kind.
    pub(crate) async fn all<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let api: Api<K> = Api::all(self.client.clone());
        api.list(&ListParams::default()).await.unwrap().items
    }

    pub(crate) fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// The contracts of these parties.
    pub(crate) async fn contracts(&self, provider: &House<'_>, consumer: &House<'_>) -> Vec<Contract> {
        let all = self.all::<Contract>().await.into_iter();
        all.filter(|it| it.spec.provider_id == provider.id() && it.spec.consumer_id == consumer.id())
            .collect()
    }

    /// Makes a policy.
    pub(crate) async fn put_policy(&self, name: &str, spec: Value) {
        let policies: Api<SharingPolicy> = Api::all(self.client.clone());
        let object = json!({
            "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "SharingPolicy",
            "metadata": { "name": name }, "spec": spec,
        });
        let params = PatchParams::apply("test").force();
        policies.patch(name, &params, &Patch::Apply(&object)).await.unwrap();
    }

    /// Sets the clock of peering.
    pub(crate) fn set_clock(&self, shift: SignedDuration) {
        self.shift.send_replace(shift);
    }

    /// The versions of everything that the rooms write, by kind and name.
    pub(crate) async fn versions(&self) -> Vec<String> {
        let mut all = Vec::new();
        all.extend(self.all::<ForeignCluster>().await.iter().map(version));
        all.extend(self.all::<ResourceRequest>().await.iter().map(version));
        all.extend(self.all::<ResourceOffer>().await.iter().map(version));
        all.extend(self.all::<Contract>().await.iter().map(version));
        all.extend(self.all::<SharingPolicy>().await.iter().map(version));
        // Kubernetes writes some of these by itself, whenever it likes.
        let ours = |map: &&ConfigMap| map.name_any() != "kube-root-ca.crt";
        all.extend(self.all::<ConfigMap>().await.iter().filter(ours).map(version));
        let ours = |event: &&Event| {
            event.reporting_controller.as_deref().is_some_and(|it| it.starts_with("liqo.io/"))
        };
        all.extend(self.all::<Event>().await.iter().filter(ours).map(version));
        all.sort();
        all
    }
}

fn version<K: Resource<DynamicType = ()>>(object: &K) -> String {
    let version = object.resource_version().unwrap_or_default();
    format!("{} {:?}/{} {version}", K::kind(&()), object.namespace(), object.name_any())
}

/// What a process is started with.
struct Start {
    /// Of the room of peering.
    client: kube::Client,
    at_peers: Option<Clusters>,
    usual: kube::Client,
    elector: kube::Client,
    authentication: liqo_authentication::Settings,
    settings: Settings,
    identity: Arc<Identity>,
    address: SocketAddr,
}

impl Start {
    async fn run(self, started: tokio::sync::oneshot::Sender<(liqo_authentication::Room, Room)>) {
        let (_keep, identity) = watch::channel(Some(self.identity));
        let authentication =
            liqo_authentication::Room::new(self.usual, self.authentication, identity.clone());
        let room = match self.at_peers {
            Some(clusters) => Room::with_clusters(self.client, self.settings, identity, clusters),
            None => Room::new(self.client, self.settings, identity),
        };
        let supervisor = Supervisor::new();
        let watches = WatchMetrics::default();
        authentication.start(&supervisor, &watches);
        room.start(&supervisor, &watches);
        let listener = eventually("listen", || async {
            TcpListener::bind(self.address).await.map_err(|error| error.to_string())
        })
        .await;
        authentication.serve(&supervisor, listener);
        let writes = WriteMetrics::default();
        let (their_queue, their_worker) = authentication.queue(&writes);
        let (queue, worker) = room.queue(&writes);
        let stop = supervisor.stop().clone();
        let config = LeaseConfig {
            earlier_lives: Some("manager-0_".to_owned()),
            ..LeaseConfig::new(
                NAMESPACE,
                "liqo-test",
                format!("manager-0_{}", jiff::Timestamp::now().as_nanosecond()),
            )
        };
        let _ = started.send((authentication.clone(), room.clone()));
        let leading = async {
            // Who lost the lease, as when the API server was away, stands for election again.
            while !stop.is_cancelled() {
                let campaign = Campaign::new(self.elector.clone(), config.clone());
                let lead = |leadership: Leadership| async {
                    tokio::join!(
                        authentication.lead(&their_queue, leadership.clone()),
                        room.lead(&queue, leadership)
                    );
                };
                campaign.run(stop.clone(), lead).await;
            }
        };
        let (stop, stop_too) = (stop.clone(), stop.clone());
        tokio::join!(leading, their_worker.run(stop), worker.run(stop_too));
    }
}

/// Rooms that run; dropping them kills them.
pub(crate) struct Process {
    runtime: Option<tokio::runtime::Runtime>,
    pub(crate) authentication: liqo_authentication::Room,
    pub(crate) room: Room,
}

impl Process {
    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    /// The same, for who keeps its place.
    pub(crate) fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

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
        self.end();
    }
}
