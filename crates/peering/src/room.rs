//! Makes it happen: watches fill the index, here and at peers, and the leader writes what the plans miss.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use liqo_api::cluster_config::CLUSTER_CONFIG;
use liqo_api::{
    ClusterConfig, Contract, ForeignCluster, ResourceOffer, ResourceRequest, SearchDomain, SharingPolicy,
    labels,
};
use liqo_identity::Identity;
use liqo_kit::clusters::{ClientConfig, Clusters};
use liqo_kit::lease::Leadership;
use liqo_kit::watch::{MetaOnly, Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::write::WriteMetrics;
use liqo_kit::{Seldom, Shared, Sink, Supervisor, Watch};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Settings;
use crate::index::{Bid, Deal, Held, Index, Tenant};
use crate::log;
use crate::metrics::PeeringMetrics;
use crate::stock::{
    ClassFacts, ClassOnWire, Lodging, NodeFacts, NodeOnWire, PodFacts, PodOnWire, PolicyOnWire, ServiceFacts,
    is_lodging_selector, read_policy,
};

mod check;
mod lead;
mod links;

/// How often it is looked at what pods take.
const PODS_PAUSE: Duration = Duration::from_millis(100);
/// Watches on one peer: requests, offers, contracts, each with room for its successor.
const WATCHES_AT_PEER: usize = 8;
/// Requests to one peer at once.
const REQUESTS_AT_PEER: usize = 8;
/// How long a connection to a peer may take to come about: TCP and TLS from the other end of the world, and a lost packet.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// After so much silence a peer is asked whether it is still there, and must answer within that: what is agreed on waits for
/// a link that was cut and is whole again until the old connections are known to be dead.
const ASK_AFTER: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(4);

/// The room. Clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    identity: watch::Receiver<Option<Arc<Identity>>>,
    index: Shared<Index>,
    clusters: Arc<Clusters>,
    metrics: PeeringMetrics,
    watches: Mutex<Vec<WatchStatus>>,
    leading: Mutex<Option<Leadership>>,
    links: Mutex<links::Links>,
    watch_metrics: Mutex<WatchMetrics>,
    write_metrics: Mutex<WriteMetrics>,
}

impl Room {
    /// A room for the cluster of `client`, which is who `identity` says.
    pub fn new(
        client: kube::Client,
        settings: Settings,
        identity: watch::Receiver<Option<Arc<Identity>>>,
    ) -> Self {
        Self::with_clusters(client, settings, identity, Clusters::new(Self::clients_at_peers()))
    }

    /// The limits of the clients at peers.
    pub fn clients_at_peers() -> ClientConfig {
        ClientConfig {
            max_watches: WATCHES_AT_PEER,
            max_requests: REQUESTS_AT_PEER,
            connect_timeout: CONNECT_WITHIN,
            keep_alive: (ASK_AFTER, ANSWER_WITHIN),
            ..ClientConfig::default()
        }
    }

    /// The same, with these clients at peers, which whoever keeps our identities there may share; nothing is removed from
    /// them here.
    pub fn with_clusters(
        client: kube::Client,
        settings: Settings,
        identity: watch::Receiver<Option<Arc<Identity>>>,
        clusters: impl Into<Arc<Clusters>>,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            settings,
            identity,
            index: Shared::default(),
            clusters: clusters.into(),
            metrics: PeeringMetrics::default(),
            watches: Mutex::default(),
            leading: Mutex::new(None),
            links: Mutex::default(),
            watch_metrics: Mutex::default(),
            write_metrics: Mutex::default(),
        }))
    }

    /// The room's numbers.
    pub fn metrics(&self) -> &PeeringMetrics {
        &self.0.metrics
    }

    /// Starts to watch this cluster, in every process; peers are watched by the leader alone.
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        *self.0.watch_metrics.lock() = metrics.clone();
        let watching = Watching { room: self, supervisor, metrics };
        watching.peers();
        watching.papers();
        watching.stock();
        let namespace = self.0.settings.namespace.as_str();
        let scope = Scope::namespaced::<ConfigMap>(namespace).labels(log::PAGE_LABEL);
        watching.start("configmaps", Watch::<ConfigMap>::new(watching.client(), scope));
    }
}

/// Starts watches that all feed the same index.
struct Watching<'a> {
    room: &'a Room,
    supervisor: &'a Supervisor,
    metrics: &'a WatchMetrics,
}

impl Watching<'_> {
    fn client(&self) -> kube::Client {
        self.room.0.client.clone()
    }

    fn peers(&self) {
        let of_peers = format!("{}={}", labels::TENANT_NAMESPACE, labels::TRUE);
        let identities = format!("{}={}", labels::LOCAL_IDENTITY, labels::TRUE);
        let client = || self.client();
        self.start("foreignclusters", Watch::<ForeignCluster>::new(client(), Scope::all::<ForeignCluster>()));
        self.start("searchdomains", Watch::<SearchDomain>::new(client(), Scope::all::<SearchDomain>()));
        let own = Scope::all::<ClusterConfig>().fields(format!("metadata.name={CLUSTER_CONFIG}"));
        self.start("clusterconfigs", Watch::<ClusterConfig>::new(client(), own));
        let tenants = Scope::all::<Namespace>().labels(of_peers);
        self.start("namespaces", Watch::projected(client(), tenants, |it: Namespace| Tenant::read(&it)));
        let identities = Scope::all::<Secret>().labels(identities);
        self.start("secrets", Watch::projected(client(), identities, |it: Secret| Held::read(&it)));
    }

    fn papers(&self) {
        let client = || self.client();
        self.start(
            "resourcerequests",
            Watch::<ResourceRequest>::new(client(), Scope::all::<ResourceRequest>()),
        );
        let offers = Scope::all::<ResourceOffer>();
        self.start("resourceoffers", Watch::projected(client(), offers, |it| Some(Bid::read(it))));
        let contracts = Scope::all::<Contract>();
        self.start("contracts", Watch::projected(client(), contracts, |it| Some(Deal::read(it))));
    }

    fn stock(&self) {
        let client = || self.client();
        let policies = Scope::all::<SharingPolicy>();
        self.start(
            "policies",
            Watch::projected(client(), policies.clone(), |it: PolicyOnWire| read_policy(it)),
        );
        self.start("sharingpolicies", Watch::<SharingPolicy>::new(client(), policies));
        let nodes = Scope::all::<Node>();
        self.start("nodes", Watch::projected(client(), nodes, |it: NodeOnWire| NodeFacts::read(it)));
        let pods = Scope::all::<Pod>();
        let pods = Watch::projected(client(), pods, |it: PodOnWire| PodFacts::read(it));
        // In a busy cluster there are more of them than of everything else together.
        let (sink, waking) = Seldom::new(self.room.0.index.clone(), PODS_PAUSE);
        self.start_into("pods", pods, sink);
        self.supervisor.critical("news of pods", |stop| async move {
            stop.run_until_cancelled(waking).await;
            Ok::<_, Infallible>(())
        });
        let lodgings = Scope::all::<Namespace>().labels(is_lodging_selector()).metadata_only();
        self.start("lodgings", Watch::projected(client(), lodgings, |it: MetaOnly| Lodging::read(&it)));
        let classes = Scope::all::<StorageClass>();
        self.start(
            "storageclasses",
            Watch::projected(client(), classes, |it: ClassOnWire| ClassFacts::read(&it)),
        );
        let services = Scope::all::<Service>().metadata_only();
        self.start("services", Watch::projected(client(), services, |it: MetaOnly| ServiceFacts::read(&it)));
    }

    fn start<W: Wire, T: Send + 'static>(&self, name: &str, watch: Watch<W, T>)
    where
        Shared<Index>: Sink<T>,
    {
        self.start_into(name, watch, self.room.0.index.clone());
    }

    fn start_into<W: Wire, T: Send + 'static>(
        &self,
        name: &str,
        watch: Watch<W, T>,
        sink: impl Sink<T> + 'static,
    ) {
        // Other rooms watch the same kinds.
        let name = format!("peering-{name}");
        let watch = watch.named(name.clone()).metrics(self.metrics).feed(sink);
        self.room.0.watches.lock().push(watch.status());
        self.supervisor.critical(format!("watch of {name}"), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
    }
}
