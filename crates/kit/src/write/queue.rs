//! The caller's side of the queue.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::metrics::{Counters, WriteMetrics};
use super::request::{Part, Slot, Target};
use super::slots::Slots;
use super::worker::Worker;
use super::written::Written;
use super::{Plan, QueueConfig, Write};
use crate::clusters::ClientSource;

/// What became of a plan that was handed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a full queue has dropped the plan; ask again later"]
pub enum Enqueued {
    /// It waits for its turn.
    Queued,
    /// It replaced an earlier plan for the same object.
    Coalesced,
    /// Nothing to write: the object is as it should be.
    Equal,
    /// The queue is full. Nothing was kept: plan again when there is room.
    Full,
}

/// A bounded queue of writes to one cluster. Clones share it.
#[derive(Clone)]
pub struct Queue(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) name: String,
    pub(super) config: QueueConfig,
    pub(super) slots: Mutex<Slots>,
    pub(super) wake: Notify,
    pub(super) counters: Counters,
    pub(super) written: Written,
}

impl Queue {
    /// A queue named `name` (in logs and metrics) that writes through the client of `source`, and the worker
    /// that drains it: run the worker.
    pub fn new(
        name: impl Into<String>,
        source: impl ClientSource,
        config: QueueConfig,
        metrics: &WriteMetrics,
    ) -> (Self, Worker) {
        let name = name.into();
        let shared = Arc::new(Shared {
            counters: metrics.of(&name),
            name,
            // Writes outnumber what waits: they are remembered until the watch has them.
            written: Written::new(config.capacity.saturating_mul(16)),
            config,
            slots: Mutex::new(Slots::new()),
            wake: Notify::new(),
        });
        (Self(Arc::clone(&shared)), Worker::new(shared, Arc::new(source)))
    }

    /// Hands in a plan. Never waits.
    pub fn enqueue(&self, plan: impl Plan + 'static) -> Enqueued {
        let Some(write) = plan.plan() else {
            self.0.counters.equal.inc();
            return Enqueued::Equal;
        };
        self.put(write.slot(), Arc::new(plan))
    }

    /// Hands in a plan for this part of an object that is asked only when its turn comes: for plans that cost more than a
    /// place in the queue.
    pub fn ask(&self, target: Target, part: Part, plan: impl Plan + 'static) -> Enqueued {
        self.put(Slot { target, part }, Arc::new(plan))
    }

    /// Hands in a write that needs no comparison.
    pub fn write(&self, write: &Write) -> Enqueued {
        let plan = write.clone();
        self.put(write.slot(), Arc::new(move || Some(plan.clone())))
    }

    /// The writes made, for asking whether a watch has seen them.
    pub fn written(&self) -> &Written {
        &self.0.written
    }

    /// How many objects wait or are under way.
    pub fn depth(&self) -> usize {
        self.0.slots.lock().len()
    }

    fn put(&self, slot: Slot, plan: Arc<dyn Plan>) -> Enqueued {
        let counters = &self.0.counters;
        let mut slots = self.0.slots.lock();
        let enqueued = slots.put(slot, plan, &self.0.config, Instant::now());
        counters.depth.set(slots.len() as i64);
        drop(slots);
        match enqueued {
            Enqueued::Queued => counters.enqueued.inc(),
            Enqueued::Coalesced => counters.coalesced.inc(),
            Enqueued::Full => counters.full.inc(),
            Enqueued::Equal => counters.equal.inc(),
        };
        if enqueued != Enqueued::Full {
            self.0.wake.notify_one();
        }
        enqueued
    }
}
