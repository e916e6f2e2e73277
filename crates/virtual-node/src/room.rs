//! Makes it happen: watches fill the index, the leader keeps nodes and leases, and every process opens the doors.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use liqo_api::NamespaceMap;
use liqo_api::names::Identity;
use liqo_kit::health::Checks;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::{Shared, Sink, Supervisor, Watch};
use liqo_providers::Providers;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::Settings;
use crate::doors::Doors;
use crate::index::{Index, Mapping};
use crate::metrics::VirtualNodeMetrics;
use crate::node::{Known, NodeOnWire};

mod lead;

/// A watch that heard nothing for so long has lost its server.
const STALE_AFTER: Duration = Duration::from_secs(90);
/// The watch of nodes.
const NODES: &str = "virtual-node-nodes";

/// The room. Clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    providers: Providers,
    own: watch::Receiver<Option<Identity>>,
    index: Shared<Index>,
    metrics: VirtualNodeMetrics,
    watches: Mutex<Vec<WatchStatus>>,
    leading: Mutex<Option<Leadership>>,
}

impl Room {
    /// A room for the cluster of `client`, which is who `own` says, and to which `providers` lend.
    pub fn new(
        client: kube::Client,
        settings: Settings,
        providers: Providers,
        own: watch::Receiver<Option<Identity>>,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            settings,
            providers,
            own,
            index: Shared::default(),
            metrics: VirtualNodeMetrics::default(),
            watches: Mutex::default(),
            leading: Mutex::new(None),
        }))
    }

    /// The room's numbers.
    pub fn metrics(&self) -> &VirtualNodeMetrics {
        &self.0.metrics
    }

    /// Starts to watch, in every process.
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        let client = || self.0.client.clone();
        let nodes = Watch::projected(client(), Scope::all::<Node>(), |it: NodeOnWire| Some(Known::read(it)));
        self.watch(NODES, nodes, supervisor, metrics);
        let maps = Scope::all::<NamespaceMap>();
        let maps = Watch::projected(client(), maps, |it: NamespaceMap| Some(Mapping::read(it)));
        self.watch("virtual-node-namespacemaps", maps, supervisor, metrics);
    }

    /// Answers who asks for logs and terminals of pods on virtual nodes, in every process.
    pub fn serve(&self, supervisor: &Supervisor, listener: TcpListener) {
        let doors = Doors::new(
            self.0.client.clone(),
            self.0.settings.clone(),
            self.0.providers.clone(),
            self.0.index.clone(),
            self.0.metrics.clone(),
        );
        supervisor.critical("kubelet doors", |stop| async move {
            doors.serve(listener, stop).await;
            Ok::<_, Infallible>(())
        });
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
        supervisor: &Supervisor,
        metrics: &WatchMetrics,
    ) where
        Shared<Index>: Sink<T>,
    {
        let watch = watch.named(name).metrics(metrics).feed(self.0.index.clone());
        self.0.watches.lock().push(watch.status());
        supervisor.critical(format!("watch of {name}"), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
    }
}
