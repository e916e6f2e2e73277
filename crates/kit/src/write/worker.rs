//! Drains the queue.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::queue::Shared;
use super::request::{Refusal, Slot, Write};
use super::slots::{Job, Verdict};
use super::{Failed, Outcome, Reason};
use crate::clusters::ClientSource;

/// The side of a [`Queue`](super::Queue) that writes.
pub struct Worker {
    shared: Arc<Shared>,
    source: Arc<dyn ClientSource>,
}

/// An attempt that has ended.
struct Attempt {
    slot: Slot,
    number: u32,
    queued: Instant,
    result: Result<Option<Option<String>>, Refusal>,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, source: Arc<dyn ClientSource>) -> Self {
        Self { shared, source }
    }

    /// Writes until `stop` is cancelled, then finishes what is under way (each within its time limit).
    pub async fn run(self, stop: CancellationToken) {
        let mut flying = FuturesUnordered::new();
        loop {
            while flying.len() < self.shared.config.concurrency
                && let Some(job) = self.next()
            {
                flying.push(self.attempt(job));
            }
            let wait = self.shared.slots.lock().next_wait();
            let has_room = flying.len() < self.shared.config.concurrency;
            tokio::select! {
                () = stop.cancelled() => break,
                Some(attempt) = flying.next(), if !flying.is_empty() => self.finish(attempt),
                () = self.shared.wake.notified(), if has_room => {}
                () = sleep_until(wait), if has_room && wait.is_some() => {}
            }
        }
        while let Some(attempt) = flying.next().await {
            self.finish(attempt);
        }
    }

    fn next(&self) -> Option<Job> {
        self.shared.slots.lock().next(Instant::now())
    }

    async fn attempt(&self, job: Job) -> Attempt {
        let result = self.perform(&job).await;
        Attempt { slot: job.slot, number: job.attempt, queued: job.queued, result }
    }

    async fn perform(&self, job: &Job) -> Result<Option<Option<String>>, Refusal> {
        let config = &self.shared.config;
        // Asked again now: since it was queued, the object may have become as it should be.
        let Some(write) = job.plan.plan() else { return Ok(None) };
        if config.gate.as_ref().is_some_and(|gate| !gate()) {
            let message = "this process may not write now (it does not lead)".to_owned();
            return Err(Refusal { reason: Reason::Gate, message, retry_after: None });
        }
        let started = Instant::now();
        let client = self.source.client();
        let answer = write.send(&client, &config.field_manager, config.timeout).await;
        self.shared.counters.duration.observe(started.elapsed().as_secs_f64());
        let version = answer?.metadata.resource_version;
        self.note(&write, version.as_deref());
        Ok(Some(version))
    }

    fn note(&self, write: &Write, version: Option<&str>) {
        if let Some(version) = version.and_then(|version| version.parse().ok()) {
            self.shared.written.note(write.target(), version);
        }
    }

    fn finish(&self, attempt: Attempt) {
        let Attempt { slot, number, queued, result } = attempt;
        let config = &self.shared.config;
        let counters = &self.shared.counters;
        let (verdict, outcome) = match result {
            Ok(Some(resource_version)) => {
                counters.written.inc();
                counters.latency.observe(queued.elapsed().as_secs_f64());
                (Verdict::Done, Some(Outcome::Written { resource_version }))
            }
            Ok(None) => {
                counters.equal.inc();
                (Verdict::Done, Some(Outcome::Unneeded))
            }
            Err(refusal) => {
                counters.attempt_failed(refusal.reason);
                let last =
                    number >= config.max_attempts || matches!(refusal.reason, Reason::Refused | Reason::Gate);
                if last {
                    self.give_up(&slot, number, refusal)
                } else {
                    (Verdict::Retry(refusal.retry_after), None)
                }
            }
        };
        let depth = {
            let mut slots = self.shared.slots.lock();
            slots.finish(&slot, &verdict, config, Instant::now());
            slots.len()
        };
        counters.depth.set(depth as i64);
        if let (Some(observer), Some(outcome)) = (&config.observer, &outcome) {
            observer(&slot.target, outcome);
        }
    }

    fn give_up(&self, slot: &Slot, attempts: u32, refusal: Refusal) -> (Verdict, Option<Outcome>) {
        self.shared.counters.gave_up(refusal.reason);
        tracing::warn!(
            queue = self.shared.name, object = %slot.target, attempts,
            reason = %refusal.reason, failure = refusal.message, "gave up writing"
        );
        let failed = Failed { reason: refusal.reason, attempts, message: refusal.message };
        (Verdict::GiveUp, Some(Outcome::Failed(failed)))
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
