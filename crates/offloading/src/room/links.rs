//! Our places at providers: a watch of our maps there and a queue, over the client that all rooms share.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use liqo_api::names::Identity;
use liqo_api::{NamespaceMap, labels};
use liqo_core::names::ClusterId;
use liqo_kit::watch::{Scope, WatchStatus};
use liqo_kit::write::{Outcome, QueueConfig, Target};
use liqo_kit::{BackoffPolicy, Key, Queue, Shared, Sink, Watch};
use liqo_providers::Link;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Room;
use super::lead::FIELD_MANAGER;
use crate::index::{Index, Place};

/// Writes that may wait for one provider: there is one map.
const WAITING_WRITES: usize = 8;

/// The places that we look at.
#[derive(Default)]
pub(super) struct Links(BTreeMap<ClusterId, Live>);

/// One place.
struct Live {
    place: String,
    queue: Queue,
    watch: WatchStatus,
    stop: CancellationToken,
    /// The watch and the worker of the queue; they end with it.
    _tasks: JoinSet<()>,
}

impl Links {
    /// The queue of writes to this provider.
    pub(super) fn queue(&self, peer: &ClusterId) -> Option<&Queue> {
        self.0.get(peer).map(|live| &live.queue)
    }

    /// How far the watch at this provider has come.
    pub(super) fn position(&self, peer: &ClusterId) -> u64 {
        self.0.get(peer).map_or(0, |live| live.watch.position())
    }
}

impl Room {
    /// Looks at our places at all providers, and nowhere else.
    pub(super) fn keep_links(&self, me: &Identity, leading: &CancellationToken) {
        let providers = self.0.providers.borrow().clone();
        let mut links = self.0.links.lock();
        let gone: Vec<_> = links
            .0
            .iter()
            .filter(|(id, live)| {
                let link = providers.get(*id).and_then(|provider| provider.link.as_ref().ok());
                link.is_none_or(|link| link.place.as_str() != live.place)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            self.unlink(&mut links, &id);
        }
        for (id, provider) in providers.iter() {
            let Ok(link) = &provider.link else { continue };
            if !links.0.contains_key(id) {
                let mut index = self.0.index.write();
                index.places.insert(id.clone(), Place::default());
                index.touch_peer(id);
                drop(index);
                links.0.insert(id.clone(), self.link(me, id, link, leading.child_token()));
            }
        }
    }

    /// Looks nowhere any more.
    pub(super) fn unlink_all(&self) {
        let mut links = self.0.links.lock();
        let all: Vec<_> = links.0.keys().cloned().collect();
        all.iter().for_each(|id| self.unlink(&mut links, id));
    }

    fn unlink(&self, links: &mut Links, id: &ClusterId) {
        if let Some(former) = links.0.remove(id) {
            former.stop.cancel();
            let mut index = self.0.index.write();
            index.places.remove(id);
            index.touch_peer(id);
        }
    }

    fn link(&self, me: &Identity, id: &ClusterId, link: &Link, stop: CancellationToken) -> Live {
        let mut tasks = JoinSet::new();
        let ours = format!("{}={}", labels::REPLICATION_ORIGIN, me.id);
        let scope = Scope::namespaced::<NamespaceMap>(link.place.as_str()).labels(ours);
        let sink = AtProvider { index: self.0.index.clone(), provider: id.clone(), stop: stop.clone() };
        let watch = Watch::<NamespaceMap>::new(link.cluster.clone(), scope)
            .named("offloading-at-providers-namespacemaps")
            .metrics(&self.0.watch_metrics.lock())
            .feed(sink);
        let status = watch.status();
        tasks.spawn(watch.run(stop.clone()));

        let (gate, observer) = (self.clone(), self.clone());
        let config = QueueConfig {
            capacity: WAITING_WRITES,
            backoff: BackoffPolicy { min: Duration::from_millis(50), ..BackoffPolicy::default() },
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target: &Target, outcome: &Outcome| {
                observer.note(target, outcome);
            })),
            ..QueueConfig::default()
        };
        let metrics = self.0.write_metrics.lock();
        let (queue, worker) = Queue::new("offloading-at-providers", link.cluster.clone(), config, &metrics);
        tasks.spawn(worker.run(stop.clone()));
        Live { place: link.place.to_string(), queue, watch: status, stop, _tasks: tasks }
    }
}

/// Where the watch at a provider puts what it sees.
struct AtProvider {
    index: Shared<Index>,
    provider: ClusterId,
    stop: CancellationToken,
}

impl AtProvider {
    fn change(&self, change: impl FnOnce(&mut Place)) {
        // What a watch says that was stopped is about a place that we do not look at any more.
        if self.stop.is_cancelled() {
            return;
        }
        let mut index = self.index.write();
        if let Some(place) = index.places.get_mut(&self.provider) {
            change(place);
        }
        index.touch_peer(&self.provider);
    }
}

impl Sink<NamespaceMap> for AtProvider {
    fn apply(&self, _: &Key, object: NamespaceMap) {
        self.change(|place| drop(place.maps.insert(object.name_any(), object)));
    }

    fn delete(&self, key: &Key) {
        self.change(|place| drop(place.maps.remove(key.name())));
    }

    fn synced(&self) {
        self.change(|place| place.synced = true);
    }

    fn changed(&self) {
        self.index.notify();
    }
}
