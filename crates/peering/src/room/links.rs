//! Our places at peers: three watches and a queue each, over one client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use liqo_api::names::NamespaceName;
use liqo_api::{Contract, ResourceOffer, ResourceRequest};
use liqo_core::names::ClusterId;
use liqo_kit::clusters::Cluster;
use liqo_kit::watch::{Scope, WatchConfig, WatchStatus, Wire};
use liqo_kit::write::{Outcome, QueueConfig, Target};
use liqo_kit::{BackoffPolicy, Key, Queue, Shared, Sink, Watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Room;
use super::lead::{FIELD_MANAGER, WRITE_TIMEOUT};
use crate::index::{Access, Bid, Deal, Index, Link, Papers};
use crate::parting::Purpose;

#[cfg(test)]
mod tests;

/// Writes that may wait for one peer: a handful each of requests, offers and contracts.
const WAITING_WRITES: usize = 64;

/// How long a peer that did not answer is left alone at most. Who waits for a connection that another has begun may wait
/// for it and then for one of its own: with these two it is within ten seconds that a peer is found again.
const LOOK_AGAIN_WITHIN: Duration = Duration::from_secs(3);

/// The places that we look at.
#[derive(Default)]
pub(super) struct Links(BTreeMap<ClusterId, Live>);

/// One place.
struct Live {
    namespace: NamespaceName,
    purpose: Purpose,
    queue: Queue,
    watches: Vec<WatchStatus>,
    stop: CancellationToken,
    /// The watches and the worker of the queue; they end with it.
    _tasks: JoinSet<()>,
}

impl Links {
    /// The queue of writes to this peer.
    pub(super) fn queue(&self, peer: &ClusterId) -> Option<&Queue> {
        self.0.get(peer).map(|live| &live.queue)
    }

    /// How far the watch of this kind at this peer has come.
    pub(super) fn position(&self, peer: &ClusterId, plural: &str) -> u64 {
        let watches = self.0.get(peer).map(|live| &live.watches);
        let mut watches = watches.into_iter().flatten();
        watches.find(|watch| watch.name().ends_with(plural)).map_or(0, WatchStatus::position)
    }

    /// The peers that we look at.
    pub(super) fn peers(&self) -> Vec<ClusterId> {
        self.0.keys().cloned().collect()
    }

    /// Why each peer does not answer, while it does not, and whether that is because we may not look there.
    pub(super) fn troubles(&self) -> Vec<(ClusterId, Option<String>, bool)> {
        let trouble = |live: &Live| live.watches.iter().find_map(WatchStatus::failure);
        // One is enough: a watch that was open before we were put out is not told of it, and is silent until it is dead.
        let forbidden = |live: &Live| live.watches.iter().any(WatchStatus::is_forbidden);
        self.0.iter().map(|(peer, live)| (peer.clone(), trouble(live), forbidden(live))).collect()
    }
}

impl Room {
    /// Looks at our place at this peer, or goes on looking with these credentials. Runs under `leading`.
    pub(super) fn link(
        &self,
        peer: &ClusterId,
        access: &Access,
        purpose: Purpose,
        leading: &CancellationToken,
    ) {
        let cluster = match self.0.clusters.set(peer.as_str(), access.credentials.clone()) {
            Ok((cluster, _)) => cluster,
            Err(error) => {
                tracing::warn!(%peer, %error, "cannot connect");
                return;
            }
        };
        let mut links = self.0.links.lock();
        if let Some(live) = links.0.get_mut(peer)
            && live.namespace == access.namespace
            && !live.purpose.ends(purpose)
        {
            live.purpose = purpose;
            return;
        }
        if let Some(former) = links.0.remove(peer) {
            former.stop.cancel();
        }
        {
            let mut index = self.0.index.write();
            let link = Link { namespace: access.namespace.to_string(), ..Link::default() };
            index.links.insert(peer.clone(), link);
            index.touch(peer);
        }
        let live = self.begin(peer, access, purpose, &cluster, leading.child_token());
        links.0.insert(peer.clone(), live);
        self.0.index.notify();
    }

    /// Looks there no more.
    pub(super) fn unlink(&self, peer: &ClusterId) {
        let former = self.0.links.lock().0.remove(peer);
        if let Some(former) = former {
            former.stop.cancel();
            let mut index = self.0.index.write();
            index.links.remove(peer);
            index.memory.booked();
            index.touch(peer);
        }
    }

    /// Looks nowhere any more.
    pub(super) fn unlink_all(&self) {
        let peers = self.0.links.lock().peers();
        peers.iter().for_each(|peer| self.unlink(peer));
    }

    fn begin(
        &self,
        peer: &ClusterId,
        access: &Access,
        purpose: Purpose,
        cluster: &Cluster,
        stop: CancellationToken,
    ) -> Live {
        let namespace = access.namespace.as_str();
        let at =
            |bit: u8| AtPeer { index: self.0.index.clone(), peer: peer.clone(), bit, stop: stop.clone() };
        let requests = Scope::namespaced::<ResourceRequest>(namespace);
        let offers = Scope::namespaced::<ResourceOffer>(namespace);
        let contracts = Scope::namespaced::<Contract>(namespace);
        let mut tasks = JoinSet::new();
        let watches = vec![
            self.watch_there(
                "resourcerequests",
                Watch::<ResourceRequest>::new(cluster.clone(), requests),
                at(1),
                &mut tasks,
            ),
            self.watch_there(
                "resourceoffers",
                Watch::projected(cluster.clone(), offers, |it| Some(Bid::read(it))),
                at(2),
                &mut tasks,
            ),
            self.watch_there(
                "contracts",
                Watch::projected(cluster.clone(), contracts, |it| Some(Deal::read(it))),
                at(4),
                &mut tasks,
            ),
        ];
        let queue = self.queue_there(peer, cluster, stop.clone(), &mut tasks);
        Live { namespace: access.namespace.clone(), purpose, queue, watches, stop, _tasks: tasks }
    }

    fn watch_there<W: Wire, T: Send + 'static>(
        &self,
        plural: &str,
        watch: Watch<W, T>,
        sink: AtPeer,
        tasks: &mut JoinSet<()>,
    ) -> WatchStatus
    where
        AtPeer: Sink<T>,
    {
        let stop = sink.stop.clone();
        let config = WatchConfig {
            backoff: BackoffPolicy { max: LOOK_AGAIN_WITHIN, ..BackoffPolicy::default() },
            ..WatchConfig::default()
        };
        // One name for all peers: what they say is told by other numbers.
        let watch = watch
            .named(format!("peering-at-peers-{plural}"))
            .config(config)
            .metrics(&self.0.watch_metrics.lock())
            .feed(sink);
        let status = watch.status();
        tasks.spawn(watch.run(stop));
        status
    }

    fn queue_there(
        &self,
        peer: &ClusterId,
        cluster: &Cluster,
        stop: CancellationToken,
        tasks: &mut JoinSet<()>,
    ) -> Queue {
        let (gate, observer) = (self.clone(), self.clone());
        let noted = peer.clone();
        let config = QueueConfig {
            capacity: WAITING_WRITES,
            concurrency: self.0.settings.writes,
            timeout: WRITE_TIMEOUT,
            backoff: BackoffPolicy {
                min: Duration::from_millis(50),
                max: LOOK_AGAIN_WITHIN,
                ..BackoffPolicy::default()
            },
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target: &Target, outcome: &Outcome| {
                observer.note(Some(&noted), target, outcome);
            })),
            ..QueueConfig::default()
        };
        let (queue, worker) =
            Queue::new("peering-at-peers", cluster.clone(), config, &self.0.write_metrics.lock());
        tasks.spawn(worker.run(stop));
        queue
    }
}

/// Where the watches at a peer put what they see.
struct AtPeer {
    index: Shared<Index>,
    peer: ClusterId,
    /// Which kind this is for.
    bit: u8,
    stop: CancellationToken,
}

impl AtPeer {
    fn change(&self, change: impl FnOnce(&mut Papers)) {
        // What a watch says that was stopped is about a place that we do not look at any more.
        if !self.stop.is_cancelled() {
            self.index.write().at_peer(&self.peer, change);
        }
    }
}

impl<T> Sink<T> for AtPeer
where
    Papers: liqo_kit::Index<T>,
{
    fn apply(&self, key: &Key, object: T) {
        self.change(|papers| liqo_kit::Index::apply(papers, key, object));
    }

    fn delete(&self, key: &Key) {
        self.change(|papers| liqo_kit::Index::<T>::delete(papers, key));
    }

    fn synced(&self) {
        if self.stop.is_cancelled() {
            return;
        }
        let mut index = self.index.write();
        if let Some(link) = index.links.get_mut(&self.peer) {
            link.synced |= self.bit;
        }
        index.touch(&self.peer);
    }

    fn changed(&self) {
        self.index.notify();
    }
}
