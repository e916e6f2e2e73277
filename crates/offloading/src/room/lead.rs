//! What only the leader does: look at providers, plan, and write what is missing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_api::names::Identity;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::WatchStatus;
use liqo_kit::write::{Enqueued, Outcome, QueueConfig, Target, Worker, Write, WriteMetrics, Written};
use liqo_kit::{BackoffPolicy, Queue};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Room;
use super::drain::Drains;
use super::fail_back::Returns;
use crate::index::Subject;
use crate::plan::{View, drain, fail_back, plan};
use crate::steps::{Step, Where};

/// The name under which this room owns fields.
pub(super) const FIELD_MANAGER: &str = "liqo-offloading";
/// How often everything is looked at though nobody told of a change: what was given up is asked for again this way.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long it waits at least before it looks again: many changes come together.
const PAUSE: Duration = Duration::from_millis(2);
/// How many times as long as it looked the leader rests before it looks again.
const RESTS: u32 = 2;
/// Events that are remembered.
const REPORTED: usize = 512;
/// The plural of events.
const EVENTS: &str = "events";

/// Where a write goes.
#[derive(Clone, Debug)]
struct Slot {
    subject: Subject,
    at: Where,
    target: Target,
    status: bool,
}

/// What the leader remembers between two looks.
struct Round {
    wakes: BTreeMap<Subject, Timestamp>,
    drains: Drains,
    returns: Returns,
    looked_at_all: Instant,
}

impl Room {
    /// The queue that the leader writes to this cluster through, and the worker that drains it, to be run in every process.
    pub fn queue(&self, metrics: &WriteMetrics) -> (Queue, Worker) {
        *self.0.write_metrics.lock() = metrics.clone();
        let (gate, observer) = (self.clone(), self.clone());
        let config = QueueConfig {
            // Somebody waits for a namespace.
            backoff: BackoffPolicy { min: Duration::from_millis(50), ..BackoffPolicy::default() },
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target, outcome| observer.note(target, outcome))),
            ..QueueConfig::default()
        };
        Queue::new("offloading", self.0.client.clone(), config, metrics)
    }

    /// Looks at providers and writes what is missing, here through `queue`, until the leadership ends. Call it when the list
    /// of providers is complete: one that is not in it gets nothing, and is forgotten.
    pub async fn lead(&self, queue: &Queue, leadership: Leadership) {
        *self.0.leading.lock() = Some(leadership.clone());
        let watches = self.0.watches.lock().clone();
        let ready = async {
            for watch in &watches {
                watch.ready().await;
            }
        };
        if leadership.ended().run_until_cancelled(ready).await.is_some() {
            let stop = leadership.ended().child_token();
            leadership.ended().run_until_cancelled(self.work(queue, &stop)).await;
            stop.cancel();
        }
        self.unlink_all();
        self.0.metrics.clear();
        // What a later leadership remembers must be its own.
        self.0.index.write().drained.clear();
        *self.0.leading.lock() = None;
    }

    pub(super) fn leads(&self) -> bool {
        self.0.leading.lock().as_ref().is_some_and(Leadership::is_valid)
    }

    async fn work(&self, queue: &Queue, stop: &CancellationToken) {
        let mut changes = self.0.index.subscribe();
        let (mut own, mut providers) = (self.0.own.clone(), self.0.providers.clone());
        let mut clock = self.0.settings.clock.clone();
        let mut round = Round {
            wakes: BTreeMap::new(),
            drains: Drains::default(),
            returns: Returns::default(),
            looked_at_all: Instant::now(),
        };
        self.0.index.write().touch_all();
        loop {
            let looked = Instant::now();
            changes.borrow_and_update();
            let me = own.borrow_and_update().clone();
            let list = providers.borrow_and_update().clone();
            self.0.index.write().set_peers(&list);
            let wait = match &me {
                Some(me) => {
                    self.keep_links(me, stop);
                    self.look(queue, me, &mut round)
                }
                None => LOOK_AGAIN,
            };
            tokio::time::sleep((looked.elapsed() * RESTS).max(PAUSE)).await;
            tokio::select! {
                _ = changes.changed() => {}
                told = providers.changed() => if told.is_err() {
                    // Nobody tells of providers any more; those that are known stay.
                    stop.cancelled().await;
                },
                told = own.changed() => match told {
                    Ok(()) => self.0.index.write().touch_all(),
                    Err(_) => stop.cancelled().await,
                },
                () = clock.changed() => self.0.index.write().touch_all(),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Plans what changed or is due, hands in the writes, and returns for how long nothing else is due.
    fn look(&self, queue: &Queue, me: &Identity, round: &mut Round) -> Duration {
        let now = self.0.settings.clock.now();
        let mut subjects = {
            let mut index = self.0.index.write();
            if round.looked_at_all.elapsed() >= LOOK_AGAIN {
                round.looked_at_all = Instant::now();
                index.touch_all();
            }
            index.take_dirty()
        };
        let due: Vec<_> = round
            .wakes
            .iter()
            .filter(|(_, wake)| **wake <= now)
            .map(|(subject, _)| subject.clone())
            .collect();
        if !due.is_empty() {
            // What a namespace's time is over for is in the maps.
            subjects.extend(self.0.index.read().clusters().into_iter().map(Subject::Peer));
        }
        subjects.extend(due);
        for subject in &subjects {
            let planned = plan(&self.view(&self.0.index.read(), me, now), subject);
            match planned.wake {
                Some(wake) => drop(round.wakes.insert(subject.clone(), wake)),
                None => drop(round.wakes.remove(subject)),
            }
            self.hand_in(queue, subject, planned.steps);
        }
        if !subjects.is_empty() {
            let drains = drain::drains(&self.view(&self.0.index.read(), me, now));
            round.drains.keep(self, drains);
            let returns = fail_back::returns(&self.view(&self.0.index.read(), me, now));
            round.returns.keep(self, queue, returns);
            self.0.metrics.show(&self.0.index.read());
        }
        let due = round.wakes.values().min().map(|wake| until(*wake, now));
        let all = LOOK_AGAIN.saturating_sub(round.looked_at_all.elapsed());
        due.map_or(all, |due| due.min(all))
    }

    fn view<'a>(&'a self, index: &'a crate::index::Index, me: &'a Identity, now: Timestamp) -> View<'a> {
        View { index, me, settings: &self.0.settings, now }
    }

    fn hand_in(&self, queue: &Queue, subject: &Subject, steps: Vec<Step>) {
        for step in steps {
            let there = match (step.at, subject) {
                (Where::There, Subject::Peer(peer)) => self.0.links.lock().queue(peer).cloned(),
                _ => None,
            };
            let queue = match (step.at, &there) {
                (Where::Here, _) => queue,
                (Where::There, Some(queue)) => queue,
                (Where::There, None) => continue,
            };
            tracing::debug!(object = %step.target, step = step.what, at = ?step.at, "missing");
            if plural(&step.target) == EVENTS {
                self.report(queue, &step);
                continue;
            }
            let status = step.is_status();
            let slot = Slot { subject: subject.clone(), at: step.at, target: step.target, status };
            let (room, written) = (self.clone(), queue.written().clone());
            match queue.enqueue(move || room.missing(&slot, &written)) {
                Enqueued::Full => tracing::warn!("too many writes wait; this one is asked for again"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {}
            }
        }
    }

    /// Tells something. What it tells of may be true before it is told, so that it is not planned again; and while it is being
    /// told, it may be planned again, and must not be told twice.
    pub(super) fn report(&self, queue: &Queue, step: &Step) {
        if self.0.reported.lock().contains(&step.target) {
            return;
        }
        match step.write(&self.0.settings, self.0.settings.clock.now()) {
            Ok(write) => match queue.write(&write) {
                Enqueued::Full => tracing::warn!("too many writes wait; this event is lost"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {
                    let mut reported = self.0.reported.lock();
                    if reported.len() >= REPORTED {
                        reported.pop_front();
                    }
                    reported.push_back(step.target.clone());
                }
            },
            Err(error) => tracing::error!(object = %step.target, %error, "this event cannot be made"),
        }
    }

    /// What is still missing of this object, once the watch has shown what we wrote to it last.
    fn missing(&self, slot: &Slot, written: &Written) -> Option<Write> {
        if !written.has_seen(&slot.target, self.position(slot)) {
            return None;
        }
        let me = self.0.own.borrow().clone()?;
        let now = self.0.settings.clock.now();
        let planned = plan(&self.view(&self.0.index.read(), &me, now), &slot.subject);
        let meant =
            |step: &Step| step.at == slot.at && step.target == slot.target && step.is_status() == slot.status;
        let step = planned.steps.into_iter().find(meant)?;
        step.write(&self.0.settings, now)
            .inspect_err(|error| tracing::error!(object = %slot.target, %error, "this object cannot be made"))
            .ok()
    }

    /// How far the watch of this object has come.
    fn position(&self, slot: &Slot) -> u64 {
        match (slot.at, &slot.subject) {
            (Where::There, Subject::Peer(peer)) => self.0.links.lock().position(peer),
            _ => {
                let name = format!("offloading-{}", plural(&slot.target));
                let watches = self.0.watches.lock();
                watches.iter().find(|watch| watch.name() == name).map_or(u64::MAX, WatchStatus::position)
            }
        }
    }

    /// Remembers what became of a write.
    pub(super) fn note(&self, target: &Target, outcome: &Outcome) {
        match outcome {
            // The queue has told of it; what was not told to others may be told again.
            Outcome::Failed(_) => self.0.reported.lock().retain(|event| event != target),
            Outcome::Written { .. } | Outcome::Unneeded => {}
        }
    }
}

/// The kind of a target, in the plural.
fn plural(target: &Target) -> String {
    target.to_string().rsplit('/').nth(1).unwrap_or_default().to_owned()
}

fn until(wake: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(wake.duration_since(now)).unwrap_or(Duration::ZERO)
}
