//! What only the leader does: write what is missing.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::WatchStatus;
use liqo_kit::write::{Enqueued, Outcome, QueueConfig, Target, Worker, Write, WriteMetrics, Written};
use liqo_kit::{BackoffPolicy, Queue};

use super::{Leading, Room, writes};
use crate::objects::CONTROLLER;
use crate::plan::{Verdict, plan};

/// How often the leader looks whether something is missing though nobody told of a change: what was given up is asked
/// for again this way.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Attempts before a write is given up until the next look: few, as only then the readiness probe says why.
const ATTEMPTS: u32 = 4;

/// Three objects, a status and some events.
const QUEUE_CAPACITY: usize = 16;

impl Room {
    /// The queue that the leader writes through, and the worker that drains it, to be run in every process.
    pub fn queue(&self, metrics: &WriteMetrics) -> (Queue, Worker) {
        let (gate, observer) = (self.clone(), self.clone());
        let config = QueueConfig {
            capacity: QUEUE_CAPACITY,
            // Each write needs the one before it.
            concurrency: 1,
            max_attempts: ATTEMPTS,
            // Somebody waits for the first start.
            backoff: BackoffPolicy { min: Duration::from_millis(50), ..BackoffPolicy::default() },
            field_manager: CONTROLLER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target, outcome| observer.note(target, outcome))),
            ..QueueConfig::default()
        };
        Queue::new("identity", self.0.client.clone(), config, metrics)
    }

    /// Writes what is missing through `queue`, until the leadership ends.
    pub async fn lead(&self, queue: &Queue, leadership: Leadership) {
        *self.0.leading.lock() = Some(Leading { leadership: leadership.clone(), settled: false });
        let mut changes = self.0.index.subscribe();
        while !leadership.ended().is_cancelled() {
            changes.borrow_and_update();
            self.enqueue_missing(queue);
            let late = self.0.index.read().late(Timestamp::now());
            tokio::select! {
                () = leadership.ended().cancelled() => {}
                _ = changes.changed() => {}
                () = tokio::time::sleep(late.unwrap_or(LOOK_AGAIN)) => {}
            }
        }
        *self.0.leading.lock() = None;
    }

    /// Whether [`Room::lead`] runs.
    pub fn is_leading(&self) -> bool {
        self.0.leading.lock().is_some()
    }

    fn leads(&self) -> bool {
        self.0.leading.lock().as_ref().is_some_and(|leading| leading.leadership.is_valid())
    }

    fn enqueue_missing(&self, queue: &Queue) {
        let steps = plan(&self.0.index.read(), &self.0.settings, Timestamp::now());
        if steps.is_empty() {
            self.settle();
        }
        for step in &steps {
            let target = writes::target(step, &self.0.settings);
            let (room, written) = (self.clone(), queue.written().clone());
            match queue.enqueue(move || room.missing(&target, &written)) {
                Enqueued::Full => tracing::warn!("too many writes wait; this one is asked for again"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {}
            }
        }
    }

    fn settle(&self) {
        let complete = self.0.index.read().cluster_config.synced;
        let established = matches!(self.judge(), Verdict::Established(_));
        if let Some(leading) = self.0.leading.lock().as_mut() {
            leading.settled |= complete && established;
        }
    }

    /// What is missing of this object, once the watch has shown what we wrote to it last.
    fn missing(&self, target: &Target, written: &Written) -> Option<Write> {
        if !written.has_seen(target, self.position(target)) {
            return None;
        }
        let (settings, now) = (&self.0.settings, Timestamp::now());
        let steps = plan(&self.0.index.read(), settings, now);
        let step = steps.iter().find(|step| writes::target(step, settings) == *target)?;
        writes::write(step, settings, now)
            .inspect_err(|error| {
                tracing::error!(object = %target, %error, "this object cannot be made");
                self.0.index.write().failures.insert(target.to_string(), error.to_string());
            })
            .ok()
    }

    /// How far the watch of this object has come; events are not watched.
    fn position(&self, target: &Target) -> u64 {
        let plural = writes::plural(target);
        let watches = self.0.watches.lock();
        watches.iter().find(|watch| watch.name() == plural).map_or(u64::MAX, WatchStatus::position)
    }

    fn note(&self, target: &Target, outcome: &Outcome) {
        let mut index = self.0.index.write();
        match outcome {
            Outcome::Failed(failed) => {
                index.failures.insert(target.to_string(), failed.message.clone());
                return;
            }
            Outcome::Written { .. } | Outcome::Unneeded => {
                index.failures.remove(&target.to_string());
            }
        }
        if writes::plural(target) == writes::EVENTS && matches!(outcome, Outcome::Written { .. }) {
            index.reported.insert(target.key().name().to_owned());
            drop(index);
            // No watch tells that it was made.
            self.0.index.notify();
        }
    }
}
