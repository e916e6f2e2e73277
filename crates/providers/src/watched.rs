//! The watches, the clients, and the one list that all rooms see.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use k8s_openapi::api::core::v1::Secret;
use liqo_api::names::Identity;
use liqo_api::{Contract, ResourceOffer, labels};
use liqo_core::names::ClusterId;
use liqo_kit::clusters::Clusters;
use liqo_kit::health::Checks;
use liqo_kit::rbac::Rule;
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::{Clock, Shared, Sink, Supervisor, Watch};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::health::Patience;
use crate::index::{Deal, Extras, Index, Kept};
use crate::turns::Turns;
use crate::{ByCluster, Link, pulse};

/// What this must be allowed to do.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        &["sharing.liqo.io"],
        &["contracts", "resourceoffers"],
        &["list", "watch"],
        "know who lends to this cluster",
    ),
    Rule::cluster(
        &[""],
        &["secrets"],
        &["list", "watch"],
        "our identities at providers, in the tenant namespaces",
    ),
];

/// A watch that heard nothing for so long has lost its server.
const STALE_AFTER: Duration = Duration::from_secs(90);
/// Providers that are asked at the same time: more connections that begin together than this keep each other from being ready in
/// time.
const ASKED_AT_ONCE: usize = 64;
/// How long it waits at least before it looks whose turn it is, so that many answers are one look.
const PAUSE: Duration = Duration::from_millis(20);

/// How patient we are with providers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a provider may be silent before it counts as gone.
    pub down_after: Duration,
    /// How long one that was gone must answer before it counts as back.
    pub up_after: Duration,
    /// Tells the time.
    pub clock: Clock,
}

impl Default for Settings {
    fn default() -> Self {
        Self { down_after: Duration::from_secs(8), up_after: Duration::from_secs(4), clock: Clock::system() }
    }
}

impl Settings {
    const fn patience(&self) -> Patience {
        Patience { down_after: self.down_after, up_after: self.up_after }
    }
}

/// The providers of this cluster. Clones share them.
#[derive(Clone)]
pub struct Providers(Arc<Inner>);

struct Inner {
    client: kube::Client,
    clusters: Arc<Clusters>,
    settings: Settings,
    own: watch::Receiver<Option<Identity>>,
    index: Shared<Index>,
    list: watch::Sender<Arc<ByCluster>>,
    watches: Mutex<Vec<WatchStatus>>,
}

impl Providers {
    /// The providers of the cluster of `client`, which is who `own` says, reached through `clusters`.
    pub fn new(
        client: kube::Client,
        clusters: Arc<Clusters>,
        settings: Settings,
        own: watch::Receiver<Option<Identity>>,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            clusters,
            settings,
            own,
            index: Shared::default(),
            list: watch::Sender::new(Arc::default()),
            watches: Mutex::default(),
        }))
    }

    /// The list, and news of it: a new list is sent only if something in it changed.
    pub fn subscribe(&self) -> watch::Receiver<Arc<ByCluster>> {
        self.0.list.subscribe()
    }

    /// The list as it is now.
    pub fn current(&self) -> Arc<ByCluster> {
        self.0.list.borrow().clone()
    }

    /// Resolves when all there is has been seen once, so that whoever is not in the list does not lend.
    pub async fn complete(&self) {
        let watches = self.0.watches.lock().clone();
        for watch in &watches {
            watch.ready().await;
        }
        self.publish();
    }

    /// Starts to watch, in every process.
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        let client = || self.0.client.clone();
        let identities = format!("{}={}", labels::LOCAL_IDENTITY, labels::TRUE);
        let contracts = Watch::projected(client(), Scope::all::<Contract>(), |it| Deal::read(&it));
        self.watch("contracts", contracts, supervisor, metrics);
        let offers = Scope::all::<ResourceOffer>();
        let offers = Watch::projected(client(), offers, |it| Some(Extras::read(it)));
        self.watch("resourceoffers", offers, supervisor, metrics);
        let secrets = Scope::all::<Secret>().labels(identities);
        let secrets = Watch::projected(client(), secrets, |it: Secret| Kept::read(&it));
        self.watch("secrets", secrets, supervisor, metrics);
        let providers = self.clone();
        supervisor.critical("list of providers", |stop| async move {
            providers.keep_list(&stop).await;
            Ok::<_, Infallible>(())
        });
    }

    /// Adds what there is to say about being ready; call it after [`Providers::start`].
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
        let name = format!("providers-{name}");
        let watch = watch.named(name.clone()).metrics(metrics).feed(self.0.index.clone());
        self.0.watches.lock().push(watch.status());
        supervisor.critical(format!("watch of {name}"), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
    }

    async fn keep_list(&self, stop: &CancellationToken) {
        let mut changes = self.0.index.subscribe();
        let mut own = self.0.own.clone();
        loop {
            changes.borrow_and_update();
            own.borrow_and_update();
            self.publish();
            tokio::select! {
                _ = changes.changed() => {}
                _ = own.changed() => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Brings clients and list up to date.
    fn publish(&self) {
        let mut index = self.0.index.write();
        if std::mem::take(&mut index.reconnect) {
            self.connect(&mut index);
        }
        let own = self.0.own.borrow().as_ref().and_then(|own| own.id.as_str().parse().ok());
        let list = own.map(|own| index.providers(&own)).unwrap_or_default();
        drop(index);
        self.0.list.send_if_modified(|current| {
            let changed = !is_same(current, &list);
            if changed {
                *current = Arc::new(list);
            }
            changed
        });
    }

    /// Gives each identity its client, and forgets those that are gone.
    fn connect(&self, index: &mut Index) {
        let held = index.held();
        let ids: BTreeSet<_> = held.iter().map(|(id, _)| id.clone()).collect();
        index.links.retain(|id, _| {
            let stays = ids.contains(id);
            if !stays {
                self.0.clusters.remove(id.as_str());
            }
            stays
        });
        index.records.retain(|id, _| ids.contains(id));
        for (id, access) in held {
            let link = access.map_err(|why| format!("our identity there cannot be used: {why}"));
            let link = link.and_then(|access| {
                let set = self.0.clusters.set(id.as_str(), access.credentials);
                let (cluster, _) = set.map_err(|error| error.to_string())?;
                Ok(Link { place: access.namespace, cluster })
            });
            index.links.insert(id, link.map_err(Arc::from));
        }
    }

    /// Asks all who lend whether they answer, until `stop`. The leader does this: others have nothing to decide.
    ///
    /// Each has its own turn: one that does not answer keeps nobody from being asked.
    pub async fn measure(&self, stop: &CancellationToken) {
        let mut news = self.subscribe();
        let mut turns = Turns::default();
        let mut asking = FuturesUnordered::new();
        while !stop.is_cancelled() {
            news.borrow_and_update();
            let (asked, next) = self.due(&mut turns, Instant::now());
            asking.extend(asked.into_iter().map(|(id, link)| self.clone().ask(id, link).boxed()));
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                Some(id) = asking.next() => turns.end(&id, Instant::now()),
                // Somebody may be new.
                _ = news.changed() => {}
                () = stop.cancelled() => {}
            }
            while let Some(Some(id)) = asking.next().now_or_never() {
                turns.end(&id, Instant::now());
            }
        }
        // Whoever leads next judges for itself.
        self.0.index.write().records.clear();
    }

    /// Those who lend and whose turn it is, and when to look again.
    fn due(&self, turns: &mut Turns, now: Instant) -> (Vec<(ClusterId, Link)>, Instant) {
        let (list, clock) = (self.current(), self.0.settings.clock.now());
        let index = self.0.index.read();
        let lending = list.values().filter(|it| it.lent.is_some());
        let lending: Vec<_> = lending.filter_map(|it| Some((&it.id, it.link.as_ref().ok()?))).collect();
        turns.keep(|id| list.contains_key(id));
        let round = pulse::interval(lending.len());
        let (mut waiting, mut next) = (vec![], now + round);
        for (id, link) in lending {
            let in_doubt = index.records.get(id).is_none_or(|record| record.is_in_doubt(clock));
            match turns.due(id, in_doubt, round, now) {
                Some(due) if due > now => next = next.min(due),
                Some(_) => waiting.push((turns.last(id), id, link)),
                // Whoever answers has it looked at again.
                None => {}
            }
        }
        // Who has waited longest comes first: those that do not answer keep nobody from being asked at all.
        waiting.sort_by_key(|(last, _, _)| *last);
        waiting.truncate(ASKED_AT_ONCE.saturating_sub(turns.busy()));
        for (_, id, _) in &waiting {
            turns.begin(id, now);
        }
        (waiting.into_iter().map(|(_, id, link)| (id.clone(), link.clone())).collect(), next)
    }

    async fn ask(self, id: ClusterId, link: Link) -> ClusterId {
        let answer = pulse::ask(&link).await;
        self.observe(&id, answer);
        id
    }

    fn observe(&self, id: &ClusterId, answer: Result<(), String>) {
        let now = self.0.settings.clock.now();
        let news = self.0.index.write().observe(id, answer, now, self.0.settings.patience());
        if news {
            let provider = self.0.index.read().records.get(id).map(|record| record.health().clone());
            tracing::info!(provider = %id, health = ?provider, "what is thought of a provider changed");
            // Many at once make one new list.
            self.0.index.notify();
        }
    }
}

/// Whether two lists say the same.
fn is_same(one: &ByCluster, other: &ByCluster) -> bool {
    let link = |provider: &crate::Provider| {
        provider.link.as_ref().map(|link| link.place.clone()).map_err(Arc::clone)
    };
    one.len() == other.len()
        && one.iter().zip(other).all(|((a, one), (b, other))| {
            a == b
                && one.name == other.name
                && one.local_namespace == other.local_namespace
                && one.lent == other.lent
                && one.health == other.health
                && link(one) == link(other)
        })
}
