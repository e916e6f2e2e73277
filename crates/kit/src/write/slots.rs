//! Which object waits for what. Pure: time is an argument.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::queue::Enqueued;
use super::request::Slot;
use super::{Plan, QueueConfig};
use crate::backoff::jitter;

/// A slot whose turn has come.
pub(super) struct Job {
    pub(super) slot: Slot,
    pub(super) plan: Arc<dyn Plan>,
    /// How many attempts this will have been, this one included.
    pub(super) attempt: u32,
    pub(super) queued: Instant,
}

/// What to do with a slot after an attempt.
pub(super) enum Verdict {
    /// Finished, well or not needed.
    Done,
    /// Try again after the policy's wait, or after this if the server asked for more.
    Retry(Option<Duration>),
    /// Given up. When asked again soon, wait first.
    GiveUp,
}

struct Entry {
    plan: Arc<dyn Plan>,
    attempts: u32,
    queued: Instant,
    phase: Phase,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Ready,
    Waiting,
    /// Under way; `again` when something newer was asked for meanwhile.
    Flying {
        again: bool,
    },
}

/// The slots of a queue.
pub(super) struct Slots {
    entries: HashMap<Slot, Entry>,
    ready: VecDeque<Slot>,
    waiting: BinaryHeap<Reverse<(Instant, Slot)>>,
    cooling: HashMap<Slot, Instant>,
}

impl Slots {
    pub(super) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            ready: VecDeque::new(),
            waiting: BinaryHeap::new(),
            cooling: HashMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Something should be written to this slot; replaces what was asked for before.
    pub(super) fn put(
        &mut self,
        slot: Slot,
        plan: Arc<dyn Plan>,
        config: &QueueConfig,
        now: Instant,
    ) -> Enqueued {
        if let Some(entry) = self.entries.get_mut(&slot) {
            entry.plan = plan;
            if matches!(entry.phase, Phase::Flying { .. }) {
                entry.phase = Phase::Flying { again: true };
            }
            return Enqueued::Coalesced;
        }
        if self.entries.len() >= config.capacity {
            return Enqueued::Full;
        }
        let cool = self.cooling.remove(&slot).filter(|until| *until > now);
        let phase = if cool.is_some() { Phase::Waiting } else { Phase::Ready };
        self.entries.insert(slot.clone(), Entry { plan, attempts: 0, queued: now, phase });
        match cool {
            Some(until) => self.waiting.push(Reverse((until, slot))),
            None => self.ready.push_back(slot),
        }
        Enqueued::Queued
    }

    /// The next slot whose turn it is.
    pub(super) fn next(&mut self, now: Instant) -> Option<Job> {
        while let Some(Reverse((at, _))) = self.waiting.peek()
            && *at <= now
            && let Some(Reverse((_, slot))) = self.waiting.pop()
        {
            if let Some(entry) = self.entries.get_mut(&slot)
                && entry.phase == Phase::Waiting
            {
                entry.phase = Phase::Ready;
                self.ready.push_back(slot);
            }
        }
        while let Some(slot) = self.ready.pop_front() {
            if let Some(entry) = self.entries.get_mut(&slot)
                && entry.phase == Phase::Ready
            {
                entry.phase = Phase::Flying { again: false };
                entry.attempts += 1;
                let (plan, attempt, queued) = (Arc::clone(&entry.plan), entry.attempts, entry.queued);
                return Some(Job { slot, plan, attempt, queued });
            }
        }
        None
    }

    /// When `next` may have something new, if nothing is put before.
    pub(super) fn next_wait(&self) -> Option<Instant> {
        self.waiting.peek().map(|Reverse((at, _))| *at)
    }

    /// An attempt has ended.
    pub(super) fn finish(&mut self, slot: &Slot, verdict: &Verdict, config: &QueueConfig, now: Instant) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let again = entry.phase == Phase::Flying { again: true };
        match verdict {
            Verdict::Done if again => {
                entry.attempts = 0;
                entry.queued = now;
                entry.phase = Phase::Ready;
                self.ready.push_back(slot.clone());
            }
            Verdict::Done => {
                self.entries.remove(slot);
            }
            Verdict::Retry(at_least) => {
                let wait = config.backoff.delay(entry.attempts.saturating_sub(1), jitter());
                // A server may ask for patience, but not for ever.
                let wait = wait.max(at_least.unwrap_or_default().min(config.backoff.max));
                entry.phase = Phase::Waiting;
                self.waiting.push(Reverse((now + wait, slot.clone())));
            }
            Verdict::GiveUp => {
                let until = now + config.backoff.delay(u32::MAX, jitter());
                if again {
                    entry.attempts = 0;
                    entry.queued = now;
                    entry.phase = Phase::Waiting;
                    self.waiting.push(Reverse((until, slot.clone())));
                } else {
                    self.entries.remove(slot);
                    self.cool(slot.clone(), until, config, now);
                }
            }
        }
    }

    /// Remembers a failed slot, so that a planner that asks again at once does not hammer the server.
    fn cool(&mut self, slot: Slot, until: Instant, config: &QueueConfig, now: Instant) {
        if self.cooling.len() >= config.capacity {
            self.cooling.retain(|_, until| *until > now);
        }
        if self.cooling.len() < config.capacity {
            self.cooling.insert(slot, until);
        }
    }
}
