//! Makes it happen: watches fill the index, every process answers the API server, and the leader writes.

use std::convert::Infallible;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use liqo_api::names::Identity;
use liqo_api::{NamespaceMap, NamespaceOffloading, labels};
use liqo_kit::lease::Leadership;
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::write::{Target, WriteMetrics};
use liqo_kit::{Shared, Sink, Supervisor, Watch};
use liqo_providers::ByCluster;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::index::{Index, NodeFacts};
use crate::metrics::OffloadingMetrics;
use crate::settings::Settings;
use crate::webhook::server::Service;
use crate::webhook::{CONFIGURATION, Configured, Kept, SERVICE};

mod check;
mod drain;
mod fail_back;
mod lead;
mod links;

/// The room. Clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    /// Who we are.
    own: watch::Receiver<Option<Identity>>,
    providers: watch::Receiver<Arc<ByCluster>>,
    index: Shared<Index>,
    metrics: OffloadingMetrics,
    watches: Mutex<Vec<WatchStatus>>,
    leading: Mutex<Option<Leadership>>,
    links: Mutex<links::Links>,
    /// Events that were made lately, as no watch tells of them.
    reported: Mutex<std::collections::VecDeque<Target>>,
    watch_metrics: Mutex<WatchMetrics>,
    write_metrics: Mutex<WriteMetrics>,
}

/// The watches that answers about pods depend on.
const ADMISSION: [&str; 2] = ["offloading-namespaceoffloadings", "offloading-namespaces"];

impl Room {
    /// A room for the cluster of `client`, which is who `own` says, and borrows from `providers`.
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
            index: Shared::default(),
            metrics: OffloadingMetrics::default(),
            watches: Mutex::default(),
            leading: Mutex::new(None),
            links: Mutex::default(),
            reported: Mutex::default(),
            watch_metrics: Mutex::default(),
            write_metrics: Mutex::default(),
        }))
    }

    /// The room's numbers.
    pub fn metrics(&self) -> &OffloadingMetrics {
        &self.0.metrics
    }

    /// Starts to watch this cluster, in every process; providers are watched by the leader alone.
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        *self.0.watch_metrics.lock() = metrics.clone();
        let watching = Watching { room: self, supervisor, metrics };
        let client = || self.0.client.clone();
        let namespaces = Scope::all::<Namespace>();
        watching.start("namespaces", Watch::<Namespace>::new(client(), namespaces));
        let offloadings = Scope::all::<NamespaceOffloading>();
        watching.start("namespaceoffloadings", Watch::<NamespaceOffloading>::new(client(), offloadings));
        let originals = format!("{}={}", labels::REPLICATION, labels::TRUE);
        let maps = Scope::all::<NamespaceMap>().labels(originals);
        watching.start("namespacemaps", Watch::<NamespaceMap>::new(client(), maps));
        let virtual_nodes = format!("{}={}", labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL);
        let nodes = Scope::all::<Node>().labels(virtual_nodes);
        watching.start("nodes", Watch::projected(client(), nodes, |it: Node| NodeFacts::read(&it)));
        let secret = Scope::namespaced::<Secret>(self.0.settings.namespace.as_str())
            .fields(format!("metadata.name={SERVICE}"));
        watching.start("secrets", Watch::projected(client(), secret, |it: Secret| Some(Kept::read(&it))));
        let own =
            Scope::all::<MutatingWebhookConfiguration>().fields(format!("metadata.name={CONFIGURATION}"));
        let configured = |it: MutatingWebhookConfiguration| Some(Configured::read(&it));
        watching.start("mutatingwebhookconfigurations", Watch::projected(client(), own, configured));
    }

    /// Answers the API server on `listener`, in every process, from when there is a certificate to show. Call it after
    /// [`Room::start`].
    pub fn serve(&self, supervisor: &Supervisor, listener: TcpListener) {
        let watches = self.0.watches.lock();
        let needed = watches.iter().filter(|watch| ADMISSION.contains(&watch.name())).cloned();
        let service = Service {
            index: self.0.index.clone(),
            watches: needed.collect(),
            metrics: self.0.metrics.clone(),
        };
        supervisor.critical("webhook", |stop| service.run(listener, stop));
    }
}

/// Starts watches that all feed the same index.
struct Watching<'a> {
    room: &'a Room,
    supervisor: &'a Supervisor,
    metrics: &'a WatchMetrics,
}

impl Watching<'_> {
    fn start<W: Wire, T: Send + 'static>(&self, name: &str, watch: Watch<W, T>)
    where
        Shared<Index>: Sink<T>,
    {
        // Other rooms watch the same kinds.
        let name = format!("offloading-{name}");
        let watch = watch.named(name.clone()).metrics(self.metrics).feed(self.room.0.index.clone());
        self.room.0.watches.lock().push(watch.status());
        self.supervisor.critical(format!("watch of {name}"), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
    }
}
