//! What monitoring sees of the room.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::index::Index;

/// Billionths in one.
const NANOS: f64 = 1e9;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

/// What the room counts. Clones share it.
#[derive(Clone)]
pub struct HostingMetrics {
    consumers: Gauge,
    namespaces: Gauge,
    shadow_pods: Gauge,
    pods: Gauge,
    waiting: Gauge,
    refused: Family<Reason, Counter>,
    creation: Histogram,
    used: Family<ResourceLabel, Gauge<f64, AtomicU64>>,
    shown: Arc<Mutex<Option<Instant>>>,
}

impl Default for HostingMetrics {
    fn default() -> Self {
        Self {
            consumers: Gauge::default(),
            namespaces: Gauge::default(),
            shadow_pods: Gauge::default(),
            pods: Gauge::default(),
            waiting: Gauge::default(),
            refused: Family::default(),
            // 1 ms to 16 s, and what takes longer.
            creation: Histogram::new(exponential_buckets(0.001, 2.0, 15)),
            used: Family::default(),
            shown: Arc::default(),
        }
    }
}

impl HostingMetrics {
    /// Registers the numbers under the prefix `liqo_hosting`. Only the leader's are other than zero.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_hosting");
        let consumers = "Clusters that have a contract in force with this one as provider";
        registry.register("consumers", consumers, self.consumers.clone());
        registry.register("namespaces", "Namespaces hosted for other clusters", self.namespaces.clone());
        let shadow_pods = "Pods that other clusters want to run here";
        registry.register("shadow_pods", shadow_pods, self.shadow_pods.clone());
        registry.register("pods", "Pods that were made for other clusters and are there", self.pods.clone());
        let waiting = "Pods that wait for room in the contract of their cluster";
        registry.register("pods_waiting", waiting, self.waiting.clone());
        let refused = "Times that a pod was refused, by reason";
        registry.register("pods_refused", refused, self.refused.clone());
        let creation = "From when a ShadowPod was first looked at until its pod was made";
        registry.register("pod_creation_seconds", creation, self.creation.clone());
        let used = "What pods of other clusters request here, by resource";
        registry.register("used", used, self.used.clone());
    }

    pub(crate) fn refused(&self, reason: &'static str) {
        self.refused.get_or_create(&Reason { reason }).inc();
    }

    pub(crate) fn created(&self, since: Instant) {
        self.creation.observe(since.elapsed().as_secs_f64());
    }

    /// Shows what is known, once a second at most: the sums are over all consumers.
    pub(crate) fn show(&self, index: &Index) {
        let mut shown = self.shown.lock();
        if shown.is_some_and(|at| at.elapsed().as_millis() < 1000) {
            return;
        }
        *shown = Some(Instant::now());
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.consumers.set(count(index.guests()));
        self.namespaces.set(count(index.claims.wanted.len()));
        self.shadow_pods.set(count(index.shadows.len()));
        self.pods.set(count(index.pods.len()));
        self.waiting.set(count(index.memory.waiters()));
        let mut sum = liqo_core::Resources::new();
        index.ledger.users().for_each(|(_, used)| sum.accumulate(used));
        self.used.clear();
        for (name, amount) in sum.iter() {
            #[expect(clippy::cast_precision_loss, reason = "monitoring needs no more than 52 bits")]
            let units = amount.nanos() as f64 / NANOS;
            self.used.get_or_create(&ResourceLabel { resource: name.to_string() }).set(units);
        }
    }

    /// Shows that nobody looks any more.
    pub(crate) fn clear(&self) {
        for gauge in [&self.consumers, &self.namespaces, &self.shadow_pods, &self.pods, &self.waiting] {
            gauge.set(0);
        }
        self.used.clear();
        *self.shown.lock() = None;
    }
}
