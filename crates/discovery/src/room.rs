//! Makes it happen: sources fill the book, clusters are asked who they are, and what the plan misses is written.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use liqo_api::names::Identity;
use liqo_api::{ForeignCluster, SearchDomain};
use liqo_kit::health::Checks;
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::write::Gate;
use liqo_kit::{Queue, Shared, Sink, Supervisor, Watch};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::domains::Domain;
use crate::events::Told;
use crate::lan::{Engine, Lan};
use crate::metrics::DiscoveryMetrics;
use crate::peers::Peer;
use crate::probe::Identify;
use crate::state::State;
use crate::wan::{self, Wan};

mod ask;
mod keep;

/// A watch that heard nothing for so long has lost its server: twice the time after which a living one is heard of.
const STALE_AFTER: Duration = Duration::from_secs(90);

/// What this room must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What to do on the local network, if anything.
    pub lan: Option<Lan>,
    /// How to search domains, if they are searched by this process.
    pub wan: Option<Wan>,
    /// The name under which this process writes and reports.
    pub controller: String,
    /// The pod that this is.
    pub pod: String,
}

/// The room. Clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    own: watch::Receiver<Option<Identity>>,
    identify: Arc<dyn Identify>,
    state: Shared<State>,
    metrics: DiscoveryMetrics,
    watches: Mutex<Vec<WatchStatus>>,
    /// Says whether this process may write; nothing while the room does not run.
    gate: Mutex<Option<Gate>>,
    told: Mutex<Told>,
    /// What was logged about strangers; bounded in the same way.
    logged: Mutex<Told>,
    /// What the writes that wait or are under way are for.
    writing: Mutex<BTreeMap<String, keep::Writing>>,
}

impl Room {
    /// A room for the cluster of `client`, which has the identity that `own` tells, and that asks others through
    /// `identify`.
    pub fn new(
        client: kube::Client,
        settings: Settings,
        own: watch::Receiver<Option<Identity>>,
        identify: Arc<dyn Identify>,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            settings,
            own,
            identify,
            state: Shared::new(State::new()),
            metrics: DiscoveryMetrics::default(),
            watches: Mutex::default(),
            gate: Mutex::default(),
            told: Mutex::new(Told::new(Instant::now())),
            logged: Mutex::new(Told::new(Instant::now())),
            writing: Mutex::default(),
        }))
    }

    /// The room's numbers.
    pub fn metrics(&self) -> &DiscoveryMetrics {
        &self.0.metrics
    }

    /// Starts to watch, in every process; what is found is for [`Room::run`].
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        let client = &self.0.client;
        let peers =
            Watch::projected(client.clone(), Scope::all::<ForeignCluster>(), |object: ForeignCluster| {
                Some(Peer::read(&object))
            });
        self.watch(supervisor, metrics, peers.named("discovery/foreignclusters"));
        if self.0.settings.wan.is_some() {
            let domains =
                Watch::projected(client.clone(), Scope::all::<SearchDomain>(), |object: SearchDomain| {
                    Some(Domain::read(object))
                });
            self.watch(supervisor, metrics, domains.named("discovery/searchdomains"));
        }
    }

    fn watch<W: Wire, T: Send + 'static>(
        &self,
        supervisor: &Supervisor,
        metrics: &WatchMetrics,
        watch: Watch<W, T>,
    ) where
        Shared<State>: Sink<T>,
    {
        let watch = watch.metrics(metrics).feed(self.0.state.clone());
        let status = watch.status();
        supervisor.critical(format!("watch of {}", status.name()), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
        self.0.watches.lock().push(status);
    }

    /// Adds checks: that the watches live, and that there is a network to speak on.
    pub fn add_checks(&self, checks: &Checks) {
        for status in self.0.watches.lock().iter() {
            checks.add_watch(status, STALE_AFTER);
        }
        if self.0.settings.lan.is_some() {
            let metrics = self.0.metrics.clone();
            checks.add("multicast DNS", move || match metrics.interfaces() {
                0 => Err("no network interface can be spoken on; see the choice of interfaces, and the log"
                    .to_owned()),
                _ => Ok(()),
            });
        }
    }

    /// Finds clusters and writes through `queue` while `gate` allows it, until `stop` is cancelled: for as long as this
    /// process leads, or where it is alone, for ever.
    pub async fn run(&self, queue: &Queue, gate: Gate, stop: CancellationToken) {
        let settings = &self.0.settings;
        let browses = settings.lan.as_ref().is_some_and(|lan| lan.browse);
        self.0.state.write().begin(browses, settings.wan.is_some());
        *self.0.gate.lock() = Some(gate);
        let mut tasks = JoinSet::new();
        if let Some(lan) = settings.lan.clone() {
            let engine = Engine::new(lan, self.0.state.clone(), self.0.metrics.clone());
            tasks.spawn(engine.run(stop.clone()));
        }
        if let Some(settings) = settings.wan.clone() {
            tasks.spawn(wan::run(settings, self.0.state.clone(), self.0.metrics.clone(), stop.clone()));
        }
        tasks.spawn(self.clone().ask_for_ever(stop.clone()));
        tasks.spawn(self.clone().keep_for_ever(queue.clone(), stop.clone()));
        tasks.spawn(self.clone().learn_who_we_are(stop.clone()));
        while let Some(ended) = tasks.join_next().await {
            if let Err(error) = ended {
                wan::propagate(error);
            }
            // Half a room is worse than none.
            if !stop.is_cancelled() {
                tracing::error!("a task of discovery has ended although nobody asked it to");
                break;
            }
        }
        *self.0.gate.lock() = None;
    }

    async fn learn_who_we_are(self, stop: CancellationToken) {
        let mut own = self.0.own.clone();
        loop {
            let id = own.borrow_and_update().as_ref().map(|identity| identity.id.clone());
            self.0.state.write().own = id;
            self.0.state.notify();
            tokio::select! {
                () = stop.cancelled() => return,
                // Who told it may be gone; what it told stays true.
                changed = own.changed() => if changed.is_err() {
                    return stop.cancelled().await;
                },
            }
        }
    }
}
