//! The namespaces at providers: two watches each, and a queue of writes for each provider.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use liqo_api::{ShadowPod, labels};
use liqo_kit::clusters::Cluster;
use liqo_kit::watch::{Scope, WatchStatus, Wire};
use liqo_kit::write::{Outcome, QueueConfig, Target};
use liqo_kit::{Key, Queue, Shared, Sink, Watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Room;
use super::lead::{FIELD_MANAGER, WAITING_WRITES, WAITS, WRITE_TIMEOUT};
use crate::mirror::index::Mirror;
use crate::mirror::kinds::Kind;
use crate::pods::facts::{Remote, RemoteOnWire, Shadow, ShadowOnWire};
use crate::pods::index::{PODS, Place, Pods, SHADOWS};

mod blind;

use blind::Blind;

/// Attempts of one write at a provider before it counts as failed.
const ATTEMPTS: u32 = 4;

/// What is looked at.
#[derive(Default)]
pub(super) struct Links {
    providers: BTreeMap<Arc<str>, Provider>,
    /// By namespace at home and provider.
    places: BTreeMap<(Arc<str>, Arc<str>), Live>,
    /// What is copied from, by namespace at home.
    pub(super) homes: BTreeMap<Arc<str>, Originals>,
    /// What cannot be looked at, as it was last told.
    blind: Blind,
}

/// A provider that is written to.
struct Provider {
    cluster: Cluster,
    queue: Queue,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

/// A namespace that is looked at.
struct Live {
    remote: Arc<str>,
    open: bool,
    shadows: WatchStatus,
    pods: WatchStatus,
    copies: BTreeMap<Kind, WatchStatus>,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

/// A namespace at home that is copied from.
pub(super) struct Originals {
    pub(super) watches: Vec<WatchStatus>,
    pub(super) stop: CancellationToken,
    pub(super) _tasks: JoinSet<()>,
}

/// Where the things of a namespace should be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    remote: Arc<str>,
    open: bool,
}

impl Links {
    /// The queue of writes to this provider.
    pub(super) fn queue(&self, provider: &str) -> Option<&Queue> {
        self.providers.get(provider).map(|provider| &provider.queue)
    }

    /// The watches of each namespace: where they are, none for home, and how they are doing.
    fn watches(&self) -> impl Iterator<Item = (&Arc<str>, Option<&Arc<str>>, &WatchStatus)> {
        let there = self.places.iter().flat_map(|((namespace, provider), live)| {
            let all = live.copies.values().chain([&live.shadows, &live.pods]);
            all.map(move |watch| (namespace, Some(provider), watch))
        });
        let here = self.homes.iter();
        here.flat_map(|(namespace, home)| home.watches.iter().map(move |watch| (namespace, None, watch)))
            .chain(there)
    }

    /// How far the watch of ShadowPods has come.
    pub(super) fn position(&self, namespace: &str, provider: &str) -> u64 {
        let live = self.places.get(&(Arc::from(namespace), Arc::from(provider)));
        live.map_or(0, |live| live.shadows.position())
    }

    /// How far the watch of copies of this kind has come.
    pub(super) fn copies_position(&self, kind: Kind, namespace: &str, provider: &str) -> u64 {
        let live = self.places.get(&(Arc::from(namespace), Arc::from(provider)));
        live.and_then(|live| live.copies.get(&kind)).map_or(0, WatchStatus::position)
    }
}

impl Room {
    /// Looks at all namespaces that there should be at providers, and at no others.
    pub(super) fn keep_places(&self, me: &str, leading: &CancellationToken) {
        let list = self.0.providers.borrow().clone();
        let clusters: BTreeMap<Arc<str>, Cluster> = list
            .values()
            .filter_map(|provider| {
                Some((Arc::from(provider.id.as_str()), provider.link.as_ref().ok()?.cluster.clone()))
            })
            .collect();
        let home_of = |provider: &str| {
            let id: liqo_core::names::ClusterId = provider.parse().ok()?;
            list.get(&id).map(|provider| Arc::clone(&provider.local_namespace))
        };
        let mut wanted: BTreeMap<(Arc<str>, Arc<str>), Wanted> = BTreeMap::new();
        for (key, map) in self.0.pods.read().maps() {
            let provider: Arc<str> = Arc::from(&*map.provider);
            // A map in another namespace than the one for this provider is nobody's.
            let is_there = home_of(&provider).as_deref() == key.namespace();
            if !is_there || !clusters.contains_key(&provider) {
                continue;
            }
            for (namespace, (remote, open)) in &map.namespaces {
                let place = Wanted { remote: Arc::clone(remote), open: *open };
                wanted.insert((Arc::clone(namespace), Arc::clone(&provider)), place);
            }
        }
        let mut links = self.0.links.lock();
        self.end_others(&mut links, &wanted, &clusters);
        for ((namespace, provider), place) in wanted {
            if let Some(cluster) = clusters.get(&provider) {
                self.begin(&mut links, &namespace, &provider, &place, cluster, leading);
            }
        }
        self.keep_originals(&mut links, me, leading);
    }

    /// Looks nowhere any more.
    pub(super) fn leave_places(&self) {
        let mut links = self.0.links.lock();
        links.places.values().for_each(|live| live.stop.cancel());
        links.providers.values().for_each(|provider| provider.stop.cancel());
        links.homes.values().for_each(|home| home.stop.cancel());
        *links = Links::default();
        self.0.pods.write().forget_places();
        *self.0.mirror.write() = Mirror::default();
    }

    fn end_others(
        &self,
        links: &mut Links,
        wanted: &BTreeMap<(Arc<str>, Arc<str>), Wanted>,
        clusters: &BTreeMap<Arc<str>, Cluster>,
    ) {
        let lost: BTreeSet<Arc<str>> = links
            .providers
            .iter()
            .filter(|(id, live)| live.cluster.removed().is_cancelled() || !clusters.contains_key(*id))
            .map(|(id, _)| Arc::clone(id))
            .collect();
        links.places.retain(|(namespace, provider), live| {
            let is_same = wanted.get(&(Arc::clone(namespace), Arc::clone(provider)));
            let stays = is_same.is_some_and(|it| it.remote == live.remote) && !lost.contains(provider);
            if !stays {
                live.stop.cancel();
                self.0.pods.write().close(namespace, provider);
                self.0.mirror.write().close(namespace, provider);
            }
            stays
        });
        for id in lost {
            if let Some(provider) = links.providers.remove(&id) {
                provider.stop.cancel();
            }
        }
    }

    fn begin(
        &self,
        links: &mut Links,
        namespace: &Arc<str>,
        provider: &Arc<str>,
        wanted: &Wanted,
        cluster: &Cluster,
        leading: &CancellationToken,
    ) {
        let queue = links.providers.entry(Arc::clone(provider));
        queue.or_insert_with(|| self.write_to(provider, cluster, leading.child_token()));
        let key = (Arc::clone(namespace), Arc::clone(provider));
        match links.places.get_mut(&key) {
            Some(live) if live.open == wanted.open => return,
            Some(live) => live.open = wanted.open,
            None => {
                let live = self.look_at(namespace, provider, wanted, cluster, leading);
                links.places.insert(key, live);
            }
        }
        self.0.pods.write().open(namespace, provider, &wanted.remote, wanted.open);
        self.0.mirror.write().open(namespace, provider, &wanted.remote, wanted.open);
        self.0.pods.notify();
    }

    fn look_at(
        &self,
        namespace: &Arc<str>,
        provider: &Arc<str>,
        wanted: &Wanted,
        cluster: &Cluster,
        leading: &CancellationToken,
    ) -> Live {
        // Known to the index before anything is told about it.
        self.0.pods.write().open(namespace, provider, &wanted.remote, wanted.open);
        self.0.mirror.write().open(namespace, provider, &wanted.remote, wanted.open);
        let stop = leading.child_token();
        let at = |bit: u8| AtPlace {
            pods: self.0.pods.clone(),
            namespace: Arc::clone(namespace),
            provider: Arc::clone(provider),
            bit,
            stop: stop.clone(),
        };
        let clock = self.0.settings.clock.clone();
        let mut tasks = JoinSet::new();
        let shadows = Watch::projected(
            cluster.clone(),
            Scope::namespaced::<ShadowPod>(&wanted.remote),
            |it: ShadowOnWire| Some(Shadow::read(it)),
        );
        let shadows = self.watch_there("shadowpods", shadows, at(SHADOWS), &mut tasks);
        let made = format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_SHADOW_POD);
        let pods = Watch::projected(
            cluster.clone(),
            Scope::namespaced::<Pod>(&wanted.remote).labels(made),
            move |it: RemoteOnWire| Some(Remote::read(it, clock.now())),
        );
        let pods = self.watch_there("pods", pods, at(PODS), &mut tasks);
        self.watch_events(namespace, provider, &wanted.remote, cluster, &stop, &mut tasks);
        let copies = self.watch_copies(namespace, provider, &wanted.remote, cluster, &stop, &mut tasks);
        let remote = Arc::clone(&wanted.remote);
        Live { remote, open: wanted.open, shadows, pods, copies, stop, _tasks: tasks }
    }

    fn watch_there<W: Wire, T: Send + 'static>(
        &self,
        plural: &str,
        watch: Watch<W, T>,
        sink: AtPlace,
        tasks: &mut JoinSet<()>,
    ) -> WatchStatus
    where
        AtPlace: Sink<T>,
    {
        let stop = sink.stop.clone();
        // One name for all providers: which one it is, is told by other numbers.
        let name = format!("reflection-at-providers-{plural}");
        let watch = watch.named(name).metrics(&self.0.watch_metrics.lock()).feed(sink);
        let status = watch.status();
        tasks.spawn(watch.run(stop));
        status
    }

    fn write_to(&self, provider: &Arc<str>, cluster: &Cluster, stop: CancellationToken) -> Provider {
        let (gate, observer) = (self.clone(), self.clone());
        let noted = Arc::clone(provider);
        let config = QueueConfig {
            capacity: WAITING_WRITES,
            concurrency: self.0.settings.writes,
            timeout: WRITE_TIMEOUT,
            // What is refused is told within a second; what fails otherwise is asked for again.
            max_attempts: ATTEMPTS,
            backoff: WAITS,
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target: &Target, outcome: &Outcome| {
                observer.note(Some(&noted), target, outcome);
            })),
        };
        let metrics = self.0.write_metrics.lock().clone();
        let (queue, worker) = Queue::new("reflection-at-providers", cluster.clone(), config, &metrics);
        let mut tasks = JoinSet::new();
        tasks.spawn(worker.run(stop.clone()));
        Provider { cluster: cluster.clone(), queue, stop, _tasks: tasks }
    }
}

/// Where the watches at a provider put what they see.
struct AtPlace {
    pods: Shared<Pods>,
    namespace: Arc<str>,
    provider: Arc<str>,
    /// Which kind this is for.
    bit: u8,
    stop: CancellationToken,
}

impl AtPlace {
    fn change(&self, key: &Key, change: impl FnOnce(&mut Place, &str)) {
        // What a watch says that was stopped is about a place that is not looked at any more.
        if !self.stop.is_cancelled() {
            let mut pods = self.pods.write();
            pods.at(&self.namespace, &self.provider, |place| change(place, key.name()));
            pods.touch(Key::namespaced(&self.namespace, key.name()));
        }
    }

    fn seen_all(&self) {
        if !self.stop.is_cancelled() {
            self.pods.write().seen_all(&self.namespace, &self.provider, self.bit);
        }
    }
}

impl Sink<Shadow> for AtPlace {
    fn apply(&self, key: &Key, shadow: Shadow) {
        self.change(key, |place, name| drop(place.shadows.insert(name.into(), shadow)));
    }

    fn delete(&self, key: &Key) {
        self.change(key, |place, name| drop(place.shadows.remove(name)));
    }

    fn synced(&self) {
        self.seen_all();
    }

    fn changed(&self) {
        self.pods.notify();
    }
}

impl Sink<Remote> for AtPlace {
    fn apply(&self, key: &Key, mut remote: Remote) {
        self.change(key, |place, name| {
            if let Some(before) = place.pods.get(name).filter(|before| before.owner == remote.owner) {
                remote.since = before.since;
            }
            place.pods.insert(name.into(), remote);
        });
    }

    fn delete(&self, key: &Key) {
        self.change(key, |place, name| drop(place.pods.remove(name)));
    }

    fn synced(&self) {
        self.seen_all();
    }

    fn changed(&self) {
        self.pods.notify();
    }
}
