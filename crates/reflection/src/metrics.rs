//! What the room counts, under the names that Liqo's dashboards know.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use liqo_kit::write::{Outcome, Target};
use parking_lot::Mutex;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// How many writes are timed at once; beyond that, they are counted only.
const TIMED: usize = 16_384;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    cluster_id: String,
    reflector_resource: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ProviderLabels {
    cluster_id: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    reflector_resource: &'static str,
}

/// A counter under the very name that dashboards ask for: one of the usual type would get `_total` appended.
#[derive(Clone, Debug, Default)]
struct Tally(Counter);

impl EncodeMetric for Tally {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> std::fmt::Result {
        encoder.encode_gauge(&i64::try_from(self.0.get()).unwrap_or(i64::MAX))
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}

impl TypedMetric for Tally {
    const TYPE: MetricType = MetricType::Unknown;
}

/// What the room counts. Clones share it.
#[derive(Clone)]
pub struct ReflectionMetrics {
    items: Family<Labels, Tally>,
    errors: Family<Labels, Tally>,
    latency: Family<KindLabels, Histogram>,
    silent_nodes: Family<ProviderLabels, Gauge>,
    shown: Arc<Mutex<BTreeMap<Arc<str>, usize>>>,
    begun: Arc<Mutex<HashMap<Target, Instant>>>,
}

impl Default for ReflectionMetrics {
    fn default() -> Self {
        Self {
            items: Family::default(),
            errors: Family::default(),
            // 1 ms to 30 s, and what takes longer.
            latency: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 16))),
            silent_nodes: Family::default(),
            shown: Arc::default(),
            begun: Arc::default(),
        }
    }
}

impl ReflectionMetrics {
    /// Registers the numbers under the prefix `liqo_virtual_kubelet_reflection`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_virtual_kubelet_reflection");
        let items = "What was written because something was reflected, by provider (none: at home) and kind";
        registry.register("item_counter", items, self.items.clone());
        let errors = "Writes that were given up, by provider (none: at home) and kind";
        registry.register("error_counter", errors, self.errors.clone());
        let latency = "From when it was seen that something should be written until it was, by kind";
        registry.register("latency_seconds", latency, self.latency.clone());
        let nodes = "Nodes of a provider with pods of ours that do not answer, as the leader measures it";
        registry.register("unreachable_nodes", nodes, self.silent_nodes.clone());
    }

    /// So many nodes of each provider do not answer.
    pub(crate) fn show_nodes<'a>(&self, counts: impl Iterator<Item = (&'a Arc<str>, usize)>) {
        let counts: BTreeMap<Arc<str>, usize> =
            counts.map(|(provider, count)| (Arc::clone(provider), count)).collect();
        let mut shown = self.shown.lock();
        if *shown == counts {
            return;
        }
        // Of providers without pods of ours nothing is said.
        self.silent_nodes.clear();
        for (provider, count) in &counts {
            let labels = ProviderLabels { cluster_id: provider.to_string() };
            self.silent_nodes.get_or_create(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        *shown = counts;
    }

    /// It was seen that this should be written.
    pub(crate) fn begin(&self, target: &Target) {
        let mut begun = self.begun.lock();
        if begun.len() < TIMED && !begun.contains_key(target) {
            begun.insert(target.clone(), Instant::now());
        }
    }

    /// A write ended.
    pub(crate) fn end(&self, provider: Option<&str>, target: &Target, outcome: &Outcome) {
        let kind = kind_of(target);
        let begun = self.begun.lock().remove(target);
        let labels = Labels { cluster_id: provider.unwrap_or_default().to_owned(), reflector_resource: kind };
        match outcome {
            Outcome::Written { .. } => {
                self.items.get_or_create(&labels).0.inc();
                if let Some(begun) = begun {
                    let labels = KindLabels { reflector_resource: kind };
                    self.latency.get_or_create(&labels).observe(begun.elapsed().as_secs_f64());
                }
            }
            Outcome::Unneeded => {}
            Outcome::Failed(_) => drop(self.errors.get_or_create(&labels).0.inc()),
        }
    }
}

/// The kind that a write is about, as Liqo calls it.
fn kind_of(target: &Target) -> &'static str {
    const KINDS: [&str; 10] = [
        "shadowpods",
        "pods",
        "configmaps",
        "secrets",
        "services",
        "endpointslices",
        "ingresses",
        "persistentvolumeclaims",
        "persistentvolumes",
        "events",
    ];
    let path = target.to_string();
    let plural = path.rsplit('/').nth(1).unwrap_or_default();
    KINDS.into_iter().find(|kind| *kind == plural).unwrap_or("other")
}
