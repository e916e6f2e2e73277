//! What watches count.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    watch: String,
}

/// Counters of all watches of a process; clone it into each, register it once.
#[derive(Clone, Debug, Default)]
pub struct WatchMetrics {
    applied: Family<Labels, Counter>,
    deleted: Family<Labels, Counter>,
    unreadable: Family<Labels, Counter>,
    lists: Family<Labels, Counter>,
    connections: Family<Labels, Counter>,
    failures: Family<Labels, Counter>,
    objects: Family<Labels, Gauge>,
}

impl WatchMetrics {
    /// Registers the counters under the prefix `watch`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_watch");
        registry.register("applied", "Objects new or changed", self.applied.clone());
        registry.register(
            "deleted",
            "Objects gone, including those found missing in a list",
            self.deleted.clone(),
        );
        registry.register("unreadable", "Times an object could not be read", self.unreadable.clone());
        registry.register("lists", "Full lists taken over", self.lists.clone());
        registry.register("connections", "Watch connections opened", self.connections.clone());
        registry.register("failures", "Failed attempts to list or watch", self.failures.clone());
        registry.register("objects", "Objects known", self.objects.clone());
    }

    pub(super) fn of(&self, watch: &str) -> Counters {
        let labels = Labels { watch: watch.to_owned() };
        Counters {
            applied: self.applied.get_or_create_owned(&labels),
            deleted: self.deleted.get_or_create_owned(&labels),
            unreadable: self.unreadable.get_or_create_owned(&labels),
            lists: self.lists.get_or_create_owned(&labels),
            connections: self.connections.get_or_create_owned(&labels),
            failures: self.failures.get_or_create_owned(&labels),
            objects: self.objects.get_or_create_owned(&labels),
        }
    }
}

/// The counters of one watch, looked up once.
#[derive(Debug)]
pub(super) struct Counters {
    pub(super) applied: Counter,
    pub(super) deleted: Counter,
    pub(super) unreadable: Counter,
    pub(super) lists: Counter,
    pub(super) connections: Counter,
    pub(super) failures: Counter,
    pub(super) objects: Gauge,
}
