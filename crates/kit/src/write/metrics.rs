//! What queues count.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use super::Reason;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    queue: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabels {
    queue: String,
    reason: &'static str,
}

/// Counters of all queues of a process; clone it into each, register it once.
#[derive(Clone, Debug)]
pub struct WriteMetrics {
    enqueued: Family<Labels, Counter>,
    coalesced: Family<Labels, Counter>,
    equal: Family<Labels, Counter>,
    full: Family<Labels, Counter>,
    written: Family<Labels, Counter>,
    attempts_failed: Family<ReasonLabels, Counter>,
    failed: Family<ReasonLabels, Counter>,
    depth: Family<Labels, Gauge>,
    duration: Family<Labels, Histogram, fn() -> Histogram>,
    latency: Family<Labels, Histogram, fn() -> Histogram>,
}

fn seconds() -> Histogram {
    // 2 ms to 65 s.
    Histogram::new(exponential_buckets(0.002, 2.0, 16))
}

impl Default for WriteMetrics {
    fn default() -> Self {
        Self {
            enqueued: Family::default(),
            coalesced: Family::default(),
            equal: Family::default(),
            full: Family::default(),
            written: Family::default(),
            attempts_failed: Family::default(),
            failed: Family::default(),
            depth: Family::default(),
            duration: Family::new_with_constructor(seconds),
            latency: Family::new_with_constructor(seconds),
        }
    }
}

impl WriteMetrics {
    /// Registers the counters under the prefix `write`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_write");
        registry.register("enqueued", "Plans queued", self.enqueued.clone());
        registry.register("coalesced", "Plans that replaced an earlier one", self.coalesced.clone());
        registry.register("skipped_equal", "Plans with nothing to write", self.equal.clone());
        registry.register("rejected_full", "Plans dropped because the queue was full", self.full.clone());
        registry.register("written", "Writes made", self.written.clone());
        registry.register("attempts_failed", "Failed attempts", self.attempts_failed.clone());
        registry.register("failed", "Writes given up", self.failed.clone());
        registry.register("depth", "Objects waiting or under way", self.depth.clone());
        registry.register("request_duration_seconds", "Time of one attempt", self.duration.clone());
        registry.register("latency_seconds", "Time from queued to written", self.latency.clone());
    }

    pub(super) fn of(&self, queue: &str) -> Counters {
        let labels = Labels { queue: queue.to_owned() };
        Counters {
            queue: queue.to_owned(),
            enqueued: self.enqueued.get_or_create_owned(&labels),
            coalesced: self.coalesced.get_or_create_owned(&labels),
            equal: self.equal.get_or_create_owned(&labels),
            full: self.full.get_or_create_owned(&labels),
            written: self.written.get_or_create_owned(&labels),
            attempts_failed: self.attempts_failed.clone(),
            failed: self.failed.clone(),
            depth: self.depth.get_or_create_owned(&labels),
            duration: self.duration.get_or_create_owned(&labels),
            latency: self.latency.get_or_create_owned(&labels),
        }
    }
}

/// The counters of one queue.
pub(super) struct Counters {
    queue: String,
    pub(super) enqueued: Counter,
    pub(super) coalesced: Counter,
    pub(super) equal: Counter,
    pub(super) full: Counter,
    pub(super) written: Counter,
    attempts_failed: Family<ReasonLabels, Counter>,
    failed: Family<ReasonLabels, Counter>,
    pub(super) depth: Gauge,
    pub(super) duration: Histogram,
    pub(super) latency: Histogram,
}

impl Counters {
    pub(super) fn attempt_failed(&self, reason: Reason) {
        self.attempts_failed.get_or_create(&self.labels(reason)).inc();
    }

    pub(super) fn gave_up(&self, reason: Reason) {
        self.failed.get_or_create(&self.labels(reason)).inc();
    }

    fn labels(&self, reason: Reason) -> ReasonLabels {
        ReasonLabels { queue: self.queue.clone(), reason: reason.as_str() }
    }
}
