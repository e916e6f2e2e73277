//! What only the leader does: look at providers, plan, and write what is missing.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::poll_fn;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use liqo_kit::lease::Leadership;
use liqo_kit::write::{Outcome, QueueConfig, Target, Worker, WriteMetrics};
use liqo_kit::{BackoffPolicy, Key, Queue};
use liqo_providers::Health;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Room;
use crate::fence::Ties;
use crate::mirror::kinds::Kind;
use crate::pods::facts::Home;
use crate::pods::plan::{Planned, Standing, View, plan, until};

/// The name under which this room owns fields.
pub(super) const FIELD_MANAGER: &str = "liqo-reflection";
/// How long a write may take. Shorter than a successor waits before it leads (15 s − 10 s), so that nothing that this
/// process sends arrives after another one began to send.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(4);
/// Writes that may wait: a Deployment of ten thousand, and what else happens meanwhile.
pub(super) const WAITING_WRITES: usize = 16_384;

/// The waits between attempts: somebody waits for a pod.
pub(super) const WAITS: BackoffPolicy =
    BackoffPolicy { min: Duration::from_millis(50), max: Duration::from_secs(2), factor: 2.0 };

/// How often all pods are looked at though nobody told of a change: what was given up is asked for again this way.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long it waits at least before it looks again, so that what comes together is planned together.
const PAUSE: Duration = Duration::from_millis(2);
/// How long it waits when a queue is full.
const FULL: Duration = Duration::from_millis(20);
/// Pods that wait to be read again, and how many are read at once.
const RECALLS: usize = 1024;
const RECALLS_AT_ONCE: usize = 8;

/// What the leader remembers between two looks.
pub(super) struct Round {
    wakes: BTreeSet<(Timestamp, Key)>,
    looked_at_all: Instant,
    topology: Option<u64>,
    recalls: mpsc::Sender<Key>,
    /// Whether a queue was full.
    pub(super) full: bool,
}

impl Round {
    /// Reads this pod again.
    pub(super) fn recall(&self, key: &Key) {
        // A full channel is looked at again later, as everything is.
        let _ = self.recalls.try_send(key.clone());
    }
}

impl Room {
    /// The queue that the leader writes to this cluster through, and the worker that drains it, to be run in every process.
    pub fn queue(&self, metrics: &WriteMetrics) -> (Queue, Worker) {
        *self.0.write_metrics.lock() = metrics.clone();
        let (gate, observer) = (self.clone(), self.clone());
        let config = QueueConfig {
            capacity: WAITING_WRITES,
            concurrency: self.0.settings.writes,
            timeout: WRITE_TIMEOUT,
            backoff: WAITS,
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target, outcome| observer.note(None, target, outcome))),
            ..QueueConfig::default()
        };
        Queue::new("reflection", self.0.client.clone(), config, metrics)
    }

    /// Reflects until the leadership ends; what is written here goes through `queue`.
    pub async fn lead(&self, queue: &Queue, leadership: Leadership) {
        *self.0.leading.lock() = Some(leadership.clone());
        self.0.pods.write().sending = true;
        *self.0.ties.lock() = Ties::new(Instant::now());
        let watches = self.0.watches.lock().clone();
        let ready = async {
            for watch in &watches {
                watch.ready().await;
            }
        };
        if leadership.ended().run_until_cancelled(ready).await.is_some() {
            let stop = leadership.ended().child_token();
            leadership.ended().run_until_cancelled(Box::pin(self.work(queue, &stop))).await;
            stop.cancel();
        }
        self.leave_customs();
        self.leave_places();
        self.leave_nodes();
        self.0.pods.write().sending = false;
        self.0.standings.write().clear();
        *self.0.leading.lock() = None;
    }

    pub(super) fn leads(&self) -> bool {
        self.0.leading.lock().as_ref().is_some_and(Leadership::is_valid)
    }

    /// Takes in what became of a write.
    pub(super) fn note(&self, provider: Option<&str>, target: &Target, outcome: &Outcome) {
        self.0.metrics.end(provider, target, outcome);
        if let (Some(provider), Outcome::Failed(failed)) = (provider, outcome) {
            self.not_taken(provider, target, failed);
        }
    }

    async fn work(&self, queue: &Queue, stop: &CancellationToken) {
        let (recalls, mut recalled) = mpsc::channel(RECALLS);
        let round = Round {
            wakes: BTreeSet::new(),
            looked_at_all: Instant::now(),
            topology: None,
            recalls,
            full: false,
        };
        let room = self.clone();
        let recalling = poll_fn(move |context| recalled.poll_recv(context)).for_each_concurrent(
            RECALLS_AT_ONCE,
            move |key| {
                let room = room.clone();
                async move { room.recall(&key).await }
            },
        );
        tokio::join!(
            self.keep_looking(queue, stop, round),
            recalling,
            self.keep_tokens(),
            self.keep_claims(queue),
            self.keep_customs(queue, stop),
            self.keep_fences(),
            self.keep_nodes(),
            self.keep_strays(queue)
        );
    }

    async fn keep_looking(&self, queue: &Queue, stop: &CancellationToken, mut round: Round) {
        let mut changes = self.0.pods.subscribe();
        let mut copies = self.0.mirror.subscribe();
        let mut own = self.0.own.clone();
        let mut providers = self.0.providers.clone();
        self.0.pods.write().touch_all();
        providers.mark_changed();
        loop {
            changes.borrow_and_update();
            copies.borrow_and_update();
            let me: Option<Arc<str>> = own.borrow_and_update().as_ref().map(|own| Arc::from(own.id.as_str()));
            if providers.has_changed().unwrap_or(false) {
                providers.borrow_and_update();
                self.learn_standings();
                round.topology = None;
            }
            let wait = match &me {
                Some(me) => self.look(queue, me, stop, &mut round),
                None => LOOK_AGAIN,
            };
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                _ = changes.changed() => {}
                _ = copies.changed() => {}
                _ = own.changed() => self.0.pods.write().touch_all(),
                _ = providers.changed() => providers.mark_changed(),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks at everything that changed or is due, hands in the writes, and returns for how long nothing else is due.
    fn look(&self, queue: &Queue, me: &str, stop: &CancellationToken, round: &mut Round) -> Duration {
        let topology = self.0.pods.read().topology;
        if round.topology != Some(topology) {
            round.topology = Some(topology);
            self.keep_places(me, stop);
            self.0.mirror.write().touch_kind(Kind::EndpointSlice);
            self.touch_claims(None);
        }
        let now = self.0.settings.clock.now();
        if round.looked_at_all.elapsed() >= LOOK_AGAIN {
            round.looked_at_all = Instant::now();
            self.0.tries.lock().clear();
            self.0.pods.write().try_refused_again();
            self.0.pods.write().touch_all();
            self.0.mirror.write().touch_all();
        }
        let mut due = self.0.pods.write().take_dirty();
        while let Some((_, key)) = round.wakes.first().filter(|(at, _)| *at <= now).cloned() {
            round.wakes.pop_first();
            due.insert(key);
        }
        round.full = false;
        for key in due {
            let planned = self.planned(me, &key, now);
            if planned.sent {
                self.0.pods.write().drop_draft(&key);
            }
            if let Some(wake) = planned.wake {
                round.wakes.insert((wake, key.clone()));
            }
            self.hand_in(queue, me, &key, planned, round);
        }
        self.look_at_copies(queue, me, round);
        let heard = self.pass_events(queue, now);
        let wakes = round.wakes.first().map(|(at, _)| *at).into_iter().chain(heard);
        let next = wakes.min().map_or(LOOK_AGAIN, |at| until(at, now));
        if round.full { FULL } else { next.min(LOOK_AGAIN) }
    }

    /// What should happen about this pod.
    pub(super) fn planned(&self, me: &str, key: &Key, now: Timestamp) -> Planned {
        let standings = self.0.standings.read();
        let standing = |provider: &str| standings.get(provider).cloned();
        let pods = self.0.pods.read();
        let translate = &*self.0.settings.translate;
        let silence = |provider: &str| self.0.ties.lock().silence(provider, Instant::now());
        let nodes = &*self.0.nodes.read();
        let own = self.0.settings.namespace.as_deref();
        let view = View {
            home: me,
            own,
            pods: &pods,
            standing: &standing,
            translate,
            nodes,
            silence: &silence,
            now,
        };
        plan(&view, key)
    }

    /// Takes in what is known of the providers now; whoever is concerned is looked at.
    fn learn_standings(&self) {
        let list = self.0.providers.borrow().clone();
        let found: HashMap<Arc<str>, Standing> = list
            .values()
            .filter(|provider| provider.link.is_ok())
            .map(|provider| {
                let gone = match &provider.health {
                    Health::Unreachable { why, .. } => Some(Arc::clone(why)),
                    Health::Unknown | Health::Reachable => None,
                };
                let lent = provider.lent.as_ref();
                let storage_class = lent.and_then(|lent| lent.storage_classes.first().cloned());
                (Arc::from(provider.id.as_str()), Standing { gone, storage_class })
            })
            .collect();
        let mut standings = self.0.standings.write();
        let ids: BTreeSet<&Arc<str>> = standings.keys().chain(found.keys()).collect();
        let changed: Vec<_> =
            ids.into_iter().filter(|id| standings.get(*id) != found.get(*id)).cloned().collect();
        *standings = found;
        drop(standings);
        if !changed.is_empty() {
            self.0.mirror.write().touch_all();
        }
        let mut pods = self.0.pods.write();
        changed.iter().for_each(|id| pods.touch_provider(id));
    }

    /// Reads a pod again whose specification was dropped.
    async fn recall(&self, key: &Key) {
        let api: Api<Pod> = Api::namespaced(self.0.client.clone(), key.namespace().unwrap_or_default());
        match tokio::time::timeout(WRITE_TIMEOUT, api.get_opt(key.name())).await {
            Ok(Ok(Some(pod))) => {
                if let Some(home) = Home::read(pod, self.0.settings.clock.now()) {
                    self.0.pods.write().recall(key, home);
                    self.0.pods.notify();
                }
            }
            // The watch tells that it is gone.
            Ok(Ok(None)) => {}
            Ok(Err(error)) => {
                tracing::warn!(pod = %key, %error, "cannot read a pod again; it is tried again");
            }
            Err(_) => tracing::warn!(pod = %key, "no answer when reading a pod again; it is tried again"),
        }
    }
}
