//! What only the leader does: plan, and write what is missing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_core::names::ClusterId;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::WatchStatus;
use liqo_kit::write::{Enqueued, Outcome, QueueConfig, Reason, Target, Worker, Write, WriteMetrics, Written};
use liqo_kit::{BackoffPolicy, Key, Queue};
use tokio::time::Instant;

use super::Room;
use super::pods::note_failed_pod;
use crate::claims::claims;
use crate::index::{Changed, Index};
use crate::namespaces::{self, Step};
use crate::objects::FIELD_MANAGER;

/// How long a write may take. Shorter than a successor waits before it leads (15 s − 10 s), so that no pod that this
/// process makes arrives after another one began to count.
const WRITE_TIMEOUT: Duration = Duration::from_secs(4);
/// How often all is looked at though nobody told of a change: what was given up is asked for again this way.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long it waits at least before it looks again: changes come in bursts.
const PAUSE: Duration = Duration::from_millis(2);
/// Attempts at one write: whoever waits for a pod is told soon why there is none.
const ATTEMPTS: u32 = 3;
/// The waits between them, and after the last.
const BACKOFF: BackoffPolicy =
    BackoffPolicy { min: Duration::from_millis(50), max: Duration::from_secs(2), factor: 2.0 };

/// What a plan is about.
#[derive(Clone, Debug)]
enum Subject {
    /// A namespace and what must be in it.
    Space(String),
    Map(Key),
}

/// What the leader remembers between two looks.
struct Round {
    looked_at_all: Instant,
    /// Pods that are to be looked at, when the queue has room for them.
    pods: BTreeSet<Key>,
}

impl Room {
    /// The queue that the leader writes through, and the worker that drains it, to be run in every process.
    pub fn queue(&self, metrics: &WriteMetrics) -> (Queue, Worker) {
        let (gate, observer) = (self.clone(), self.clone());
        let config = QueueConfig {
            concurrency: self.0.settings.writes,
            timeout: WRITE_TIMEOUT,
            max_attempts: ATTEMPTS,
            backoff: BACKOFF,
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target, outcome| observer.note(target, outcome))),
            ..QueueConfig::default()
        };
        Queue::new("hosting", self.0.client.clone(), config, metrics)
    }

    /// Writes what is missing through `queue`, until the leadership ends.
    pub async fn lead(&self, queue: &Queue, leadership: Leadership) {
        *self.0.leading.lock() = Some(leadership.clone());
        let watches = self.0.watches.lock().clone();
        let ready = async {
            for watch in &watches {
                watch.ready().await;
            }
        };
        if leadership.ended().run_until_cancelled(ready).await.is_some() {
            leadership.ended().run_until_cancelled(self.work(queue)).await;
        }
        self.0.metrics.clear();
        let mut index = self.0.index.write();
        // What a later leadership remembers must be its own.
        index.memory = crate::index::Memory::default();
        index.ledger.release_all();
        drop(index);
        *self.0.leading.lock() = None;
    }

    fn leads(&self) -> bool {
        self.0.leading.lock().as_ref().is_some_and(Leadership::is_valid)
    }

    async fn work(&self, queue: &Queue) {
        let mut changes = self.0.index.subscribe();
        let mut identity = self.0.identity.clone();
        let mut clock = self.0.settings.clock.clone();
        let mut round = Round { looked_at_all: Instant::now(), pods: BTreeSet::new() };
        self.0.index.write().touch_all();
        loop {
            changes.borrow_and_update();
            // Cluster IDs are the same in both crates that know them.
            let me = identity.borrow_and_update().as_ref().and_then(|me| me.id.as_str().parse().ok());
            let wait = self.look(queue, me, &mut round);
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                _ = changes.changed() => {}
                _ = identity.changed() => self.0.index.write().touch_all(),
                () = clock.changed() => self.0.index.write().touch_all(),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Plans for what changed, hands in the writes, and returns for how long nothing else is due.
    fn look(&self, queue: &Queue, me: Option<ClusterId>, round: &mut Round) -> Duration {
        if me.is_none() {
            return LOOK_AGAIN;
        }
        let now = self.0.settings.clock.now();
        let again = round.looked_at_all.elapsed() >= LOOK_AGAIN;
        if again {
            round.looked_at_all = Instant::now();
        }
        let (changed, wake) = self.prepare(me, again, now);
        for name in &changed.spaces {
            let steps = namespaces::plan(&self.0.index.read(), name);
            self.hand_in(queue, &Subject::Space(name.clone()), steps);
        }
        for key in &changed.maps {
            let step = namespaces::answer(&self.0.index.read(), key);
            self.hand_in(queue, &Subject::Map(key.clone()), step.into_iter().collect());
        }
        round.pods.extend(changed.pods);
        self.hand_in_pods(queue, &mut round.pods, now);
        self.0.metrics.show(&self.0.index.read());
        let due = |at: Timestamp| Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO);
        let fence = self.0.index.read().fence.next(now, Instant::now());
        let next = wake.map(due).into_iter().chain(fence).min();
        next.map_or(LOOK_AGAIN, |next| next.min(LOOK_AGAIN)).max(PAUSE)
    }

    /// Brings up to date what plans depend on, and says what to look at, and when to do this again at the latest.
    fn prepare(&self, me: Option<ClusterId>, again: bool, now: Timestamp) -> (Changed, Option<Timestamp>) {
        let mut index = self.0.index.write();
        if index.me != me {
            index.me = me;
            index.touch_all();
        }
        if again {
            index.touch_all();
        }
        if index.changed.papers || index.claims.wake.is_some_and(|wake| wake <= now) {
            self.reckon(&mut index, now);
        }
        for key in index.ledger.overdue(now) {
            index.ledger.release(&key);
            index.ledger.release_growth(&key);
            index.changed.pods.insert(key);
        }
        index.listen(now, Instant::now());
        let due = index.memory.take_due(now);
        index.changed.pods.extend(due);
        let mut changed = std::mem::take(&mut index.changed);
        if changed.all {
            changed.maps.extend(index.maps.iter().map(|(key, _)| key.clone()));
            changed.spaces.extend(index.claims.wanted.keys().cloned());
            let peers = index.spaces.store().iter().filter(|(_, space)| space.peer.is_some());
            changed.spaces.extend(peers.map(|(key, _)| key.name().to_owned()));
            changed.pods.extend(index.shadows.iter().map(|(key, _)| key.clone()));
            changed.pods.extend(index.pods.iter().map(|(key, _)| key.clone()));
        }
        let wake = [index.claims.wake, index.memory.next()].into_iter().flatten().min();
        (changed, wake)
    }

    /// Who may use what, and who gets which namespace.
    fn reckon(&self, index: &mut Index, now: Timestamp) {
        let peers = index.reckon_grants();
        index.note_lapses(now);
        let new = claims(index, &self.0.settings, now);
        let spaces: BTreeSet<String> = {
            let differ = |name: &&String| index.claims.wanted.get(*name) != new.wanted.get(*name);
            let both = index.claims.wanted.keys().chain(new.wanted.keys());
            let of_changed = index.spaces.store().iter().filter(|(_, space)| {
                let peer = space.peer.as_ref();
                peer.is_some_and(|peer| {
                    peers.contains(peer)
                        || index.is_put_out(peer)
                        || index.claims.spared.contains(peer) != new.spared.contains(peer)
                        || index.tenant_of(peer).is_none()
                })
            });
            let of_changed = of_changed.map(|(key, _)| key.name().to_owned());
            both.filter(differ).cloned().chain(of_changed).collect()
        };
        for name in &spaces {
            index.touch_pods(name);
        }
        index.changed.spaces.extend(spaces);
        let maps: Vec<Key> = index.maps.iter().map(|(key, _)| key.clone()).collect();
        index.changed.maps.extend(maps);
        index.claims = new;
        index.changed.papers = false;
    }

    fn hand_in(&self, queue: &Queue, subject: &Subject, steps: Vec<Step>) {
        for step in steps {
            let target = step.write.target().clone();
            tracing::debug!(object = %target, step = step.what, "missing");
            let (room, written, subject) = (self.clone(), queue.written().clone(), subject.clone());
            match queue.enqueue(move || room.missing(&subject, &target, &written)) {
                Enqueued::Full => tracing::warn!("too many writes wait; this one is asked for again"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {}
            }
        }
    }

    /// What is still missing of this object, once the watch has shown what we wrote to it last.
    fn missing(&self, subject: &Subject, target: &Target, written: &Written) -> Option<Write> {
        if !written.has_seen(target, self.position(target)) {
            return None;
        }
        let index = self.0.index.read();
        let steps = match subject {
            Subject::Space(name) => namespaces::plan(&index, name),
            Subject::Map(key) => namespaces::answer(&index, key).into_iter().collect(),
        };
        steps.into_iter().map(|step| step.write).find(|write| write.target() == target)
    }

    /// How far the watch of this object has come; events are not watched.
    pub(super) fn position(&self, target: &Target) -> u64 {
        let name = format!("hosting-{}", plural(target));
        let watches = self.0.watches.lock();
        watches.iter().find(|watch| watch.name() == name).map_or(u64::MAX, WatchStatus::position)
    }

    /// Remembers what became of a write.
    fn note(&self, target: &Target, outcome: &Outcome) {
        let key = target.key();
        let now = self.0.settings.clock.now();
        let mut index = self.0.index.write();
        match plural(target) {
            "pods" => match outcome {
                Outcome::Failed(failed) => note_failed_pod(&mut index, key, failed, now),
                Outcome::Written { .. } => drop(index.memory.succeed(key)),
                Outcome::Unneeded => {}
            },
            "events" => return,
            "shadowpods" => {
                if matches!(outcome, Outcome::Failed(_)) {
                    index.changed.pods.insert(key.clone());
                }
            }
            kind => {
                match outcome {
                    Outcome::Failed(failed) if failed.reason != Reason::Gate => {
                        index.memory.troubles.insert(target.clone(), failed.message.clone());
                    }
                    _ => drop(index.memory.troubles.remove(target)),
                }
                // What comes after it can be looked at, and what the map says of it.
                let name = if kind == "namespaces" { Some(key.name()) } else { key.namespace() };
                let claim =
                    name.and_then(|name| index.claims.wanted.get(name)).map(|claim| claim.map.clone());
                index.changed.maps.extend(claim);
            }
        }
        drop(index);
        self.0.index.notify();
    }
}

/// The kind of a target, in the plural.
fn plural(target: &Target) -> &'static str {
    const KINDS: [&str; 7] =
        ["pods", "shadowpods", "events", "namespaces", "resourcequotas", "rolebindings", "namespacemaps"];
    let text = target.to_string();
    let kind = text.rsplit('/').nth(1).unwrap_or_default();
    KINDS.into_iter().find(|known| *known == kind).unwrap_or_default()
}
