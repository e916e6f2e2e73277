//! What monitoring sees of the room.

use std::collections::BTreeMap;
use std::time::Duration;

use liqo_api::namespace_offloading::OffloadingPhase;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::index::Index;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: &'static str,
}

/// All phases, so that each is shown from the start.
const PHASES: [(OffloadingPhase, &str); 6] = [
    (OffloadingPhase::Ready, "Ready"),
    (OffloadingPhase::NoClusterSelected, "NoClusterSelected"),
    (OffloadingPhase::InProgress, "InProgress"),
    (OffloadingPhase::SomeFailed, "SomeFailed"),
    (OffloadingPhase::AllFailed, "AllFailed"),
    (OffloadingPhase::Terminating, "Terminating"),
];

/// What the room counts. Clones share it.
#[derive(Clone, Debug)]
pub struct OffloadingMetrics {
    answers: Family<Outcome, Counter>,
    answer_duration: Histogram,
    namespaces: Family<PhaseLabel, Gauge>,
    mapped: Gauge,
    departures: Family<Outcome, Counter>,
    registered: Gauge,
}

impl Default for OffloadingMetrics {
    fn default() -> Self {
        let metrics = Self {
            answers: Family::default(),
            // 50 µs to 1.6 s.
            answer_duration: Histogram::new(exponential_buckets(0.000_05, 2.0, 16)),
            namespaces: Family::default(),
            mapped: Gauge::default(),
            departures: Family::default(),
            registered: Gauge::default(),
        };
        // From the start at zero, so that the first one is a change.
        for outcome in ["placed", "untouched", "refused"] {
            drop(metrics.answers.get_or_create(&Outcome { outcome }));
        }
        for outcome in ["evicted", "deleted", "abandoned", "returned"] {
            drop(metrics.departures.get_or_create(&Outcome { outcome }));
        }
        metrics
    }
}

impl OffloadingMetrics {
    /// Registers the numbers under the prefix `liqo_offloading`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_offloading");
        let answers = "Pods of offloaded namespaces that the API server asked about, by what became of them";
        registry.register("pods", answers, self.answers.clone());
        let duration = "How long the API server waited for an answer about a pod";
        registry.register("answer_duration_seconds", duration, self.answer_duration.clone());
        let namespaces = "Offloaded namespaces by phase; only the leader counts";
        registry.register("namespaces", namespaces, self.namespaces.clone());
        let mapped = "Namespaces at providers, over all providers; only the leader counts";
        registry.register("mapped_namespaces", mapped, self.mapped.clone());
        let departures = "Pods that had to leave a provider because their namespace did, and pods that were sent back to one, by how they left";
        registry.register("departed_pods", departures, self.departures.clone());
        let registered =
            "1 if the API server is told to ask about pods and whom to trust, else 0; only the leader knows";
        registry.register("webhook_registered", registered, self.registered.clone());
    }

    pub(crate) fn answered(&self, outcome: &'static str, took: Duration) {
        self.answers.get_or_create(&Outcome { outcome }).inc();
        self.answer_duration.observe(took.as_secs_f64());
    }

    pub(crate) fn departed(&self, outcome: &'static str) {
        self.departures.get_or_create(&Outcome { outcome }).inc();
    }

    /// Shows the state of all namespaces.
    pub(crate) fn show(&self, index: &Index) {
        let mut counts: BTreeMap<&'static str, i64> = PHASES.iter().map(|(_, name)| (*name, 0)).collect();
        for offloading in index.offloadings.values() {
            let phase = offloading.status.as_ref().and_then(|status| status.offloading_phase);
            let name =
                PHASES.iter().find(|(it, _)| Some(*it) == phase).map_or("InProgress", |(_, name)| name);
            *counts.entry(name).or_default() += 1;
        }
        for (phase, count) in counts {
            self.namespaces.get_or_create(&PhaseLabel { phase }).set(count);
        }
        let mapped = index
            .clusters()
            .into_iter()
            .filter_map(|cluster| index.original(&cluster))
            .map(|map| map.spec.desired_mapping.len());
        self.mapped.set(i64::try_from(mapped.sum::<usize>()).unwrap_or(i64::MAX));
        let trusted = index.kept.as_ref().zip(index.configured.as_ref());
        let trusted = trusted.is_some_and(|(kept, configured)| configured.trusts(&kept.authorities));
        self.registered.set(trusted.into());
    }

    /// Shows nothing that only a leader knows.
    pub(crate) fn clear(&self) {
        self.namespaces.clear();
        self.mapped.set(0);
        self.registered.set(0);
    }
}
