//! Makes it happen: watches fill the index, here and at providers, and the leader writes what the plans miss.

use std::collections::{BTreeSet, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use liqo_api::names::Identity;
use liqo_api::{NamespaceMap, NamespaceOffloading, labels};
use liqo_kit::health::Checks;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::write::WriteMetrics;
use liqo_kit::{Shared, Sink, Supervisor, Watch};
use liqo_providers::ByCluster;
use liqo_providers::nodes::Nodes;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::Settings;
use crate::claims::index::Claims;
use crate::custom::wishes::{Wish, Wishes};
use crate::events::Events;
use crate::fence::Ties;
use crate::metrics::ReflectionMetrics;
use crate::mirror::index::Mirror;
use crate::pods::facts::{Home, Mapping, VirtualNode};
use crate::pods::index::Pods;
use crate::pods::plan::Standing;
use crate::pods::wire::HomeOnWire;

mod claims;
mod copies;
mod custom;
mod events;
mod fence;
mod hand_in;
mod lead;
mod links;
mod nodes;
mod strays;
mod tokens;

/// A watch that heard nothing for so long has lost its server.
const STALE_AFTER: Duration = Duration::from_secs(90);

/// What was told is remembered for so many; then it is told again, which makes no second event.
const MOST_TOLD: usize = 16_384;

/// The room. Clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    own: watch::Receiver<Option<Identity>>,
    providers: watch::Receiver<Arc<ByCluster>>,
    pods: Shared<Pods>,
    mirror: Shared<Mirror>,
    claims: Shared<Claims>,
    wishes: Shared<Wishes>,
    /// What is known of the providers.
    standings: RwLock<HashMap<Arc<str>, Standing>>,
    watches: Mutex<Vec<WatchStatus>>,
    /// How far the watch of pods has come, to know which of our writes it has seen.
    pods_here: Mutex<Option<WatchStatus>>,
    leading: Mutex<Option<Leadership>>,
    links: Mutex<links::Links>,
    customs: Mutex<custom::Customs>,
    /// The providers' nodes.
    nodes: RwLock<Nodes>,
    /// Our Leases at providers.
    ties: Mutex<Ties>,
    tries: Mutex<hand_in::Tries>,
    told: Mutex<BTreeSet<String>>,
    events: Mutex<Events>,
    metrics: ReflectionMetrics,
    watch_metrics: Mutex<WatchMetrics>,
    write_metrics: Mutex<WriteMetrics>,
}

impl Room {
    /// A room for the cluster of `client`, which is who `own` says and borrows from `providers`.
    pub fn new(
        client: kube::Client,
        settings: Settings,
        own: watch::Receiver<Option<Identity>>,
        providers: watch::Receiver<Arc<ByCluster>>,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            settings,
            own,
            providers,
            pods: Shared::default(),
            mirror: Shared::default(),
            claims: Shared::default(),
            wishes: Shared::default(),
            standings: RwLock::default(),
            watches: Mutex::default(),
            pods_here: Mutex::new(None),
            leading: Mutex::new(None),
            links: Mutex::default(),
            customs: Mutex::default(),
            nodes: RwLock::default(),
            ties: Mutex::new(Ties::new(Instant::now())),
            tries: Mutex::default(),
            told: Mutex::default(),
            events: Mutex::default(),
            metrics: ReflectionMetrics::default(),
            watch_metrics: Mutex::default(),
            write_metrics: Mutex::default(),
        }))
    }

    /// The room's numbers.
    pub fn metrics(&self) -> &ReflectionMetrics {
        &self.0.metrics
    }

    /// Starts to watch this cluster, in every process; providers are watched by the leader alone.
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        *self.0.watch_metrics.lock() = metrics.clone();
        let client = || self.0.client.clone();
        let clock = self.0.settings.clock.clone();
        // The webhook labels what may go elsewhere; where it went is told by its node.
        let pods = Scope::all::<Pod>().labels(format!("{}={}", labels::SHADOW_POD, labels::TRUE));
        let pods = Watch::projected(client(), pods, move |it: HomeOnWire| Home::read(it.into(), clock.now()));
        let status = self.watch("pods", pods, self.0.pods.clone(), supervisor, metrics);
        *self.0.pods_here.lock() = Some(status);
        let nodes =
            Scope::all::<Node>().labels(format!("{}={}", labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL));
        let nodes = Watch::projected(client(), nodes, |it: Node| VirtualNode::read(&it));
        self.watch("nodes", nodes, self.0.pods.clone(), supervisor, metrics);
        let maps = Watch::projected(client(), Scope::all::<NamespaceMap>(), Mapping::read);
        self.watch("namespacemaps", maps, self.0.pods.clone(), supervisor, metrics);
        let wishes = Watch::projected(client(), Scope::all::<NamespaceOffloading>(), Wish::read);
        self.watch("namespaceoffloadings", wishes, self.0.wishes.clone(), supervisor, metrics);
        if let Some(storage) = &self.0.settings.storage {
            self.watch_claims(storage, supervisor, metrics);
        }
    }

    /// Whether this process has not told this about the object of this uid, or long ago. It is told from now on.
    fn is_news(&self, uid: &str, message: &str) -> bool {
        let mut told = self.0.told.lock();
        if told.len() >= MOST_TOLD {
            told.clear();
        }
        told.insert(format!("{uid} {message}"))
    }

    /// Adds what there is to say about being ready; call it after [`Room::start`].
    pub fn add_checks(&self, checks: &Checks) {
        for status in self.0.watches.lock().iter() {
            checks.add_watch(status, STALE_AFTER);
        }
    }

    fn watch<W: Wire, T: Send + 'static>(
        &self,
        name: &str,
        watch: Watch<W, T>,
        sink: impl Sink<T> + 'static,
        supervisor: &Supervisor,
        metrics: &WatchMetrics,
    ) -> WatchStatus {
        // Other rooms watch the same kinds.
        let name = format!("reflection-{name}");
        let watch = watch.named(name.clone()).metrics(metrics).feed(sink);
        let status = watch.status();
        self.0.watches.lock().push(status.clone());
        supervisor.critical(format!("watch of {name}"), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
        status
    }
}
