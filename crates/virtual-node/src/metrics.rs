//! What monitoring sees of the room.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::index::Index;
use crate::plan::is_ready;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DoorLabels {
    door: &'static str,
    code: u16,
}

/// What the room counts. Clones share it.
#[derive(Clone)]
pub struct VirtualNodeMetrics {
    nodes: Family<StateLabel, Gauge>,
    leases: Family<OutcomeLabel, Counter>,
    evictions: Family<OutcomeLabel, Counter>,
    pub(crate) lease_seconds: Histogram,
    requests: Family<DoorLabels, Counter>,
    pub(crate) streams: Gauge,
    pub(crate) certificate: Gauge,
}

impl Default for VirtualNodeMetrics {
    fn default() -> Self {
        Self {
            nodes: Family::default(),
            leases: Family::default(),
            evictions: Family::default(),
            // 1 ms to 8 s, and what takes longer.
            lease_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
            requests: Family::default(),
            streams: Gauge::default(),
            certificate: Gauge::default(),
        }
    }
}

impl VirtualNodeMetrics {
    /// Registers the numbers under the prefix `liqo_virtual_node`. Those of nodes are zero but for the leader's.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_virtual_node");
        let nodes = "Nodes that stand for providers, by state: ready, not_ready, draining";
        registry.register("nodes", nodes, self.nodes.clone());
        let leases = "Renewals of the leases of these nodes, by outcome";
        registry.register("lease_renewals", leases, self.leases.clone());
        let seconds = "How long renewing a lease took";
        registry.register("lease_renewal_duration_seconds", seconds, self.lease_seconds.clone());
        let evictions = "Pods asked to leave, by outcome: evicted, blocked, deleted, failed";
        registry.register("evictions", evictions, self.evictions.clone());
        let requests = "Requests to the nodes' doors (logs, exec, ...), by door and by answer";
        registry.register("door_requests", requests, self.requests.clone());
        registry.register("door_streams", "Logs, terminals and tunnels that are open", self.streams.clone());
        let certificate = "When the certificate of the doors expires, in seconds since 1970";
        registry.register("certificate_expiry_timestamp_seconds", certificate, self.certificate.clone());
    }

    pub(crate) fn renewed(&self, outcome: &'static str) {
        self.leases.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn evicted(&self, outcome: &'static str) {
        self.evictions.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn asked(&self, door: &'static str, code: u16) {
        self.requests.get_or_create(&DoorLabels { door, code }).inc();
    }

    pub(crate) fn show(&self, index: &Index) {
        let mut counts = [("ready", 0), ("not_ready", 0), ("draining", 0)];
        for (_, _, facts) in index.ours() {
            let draining = facts.annotations.contains_key(liqo_api::annotations::DRAINING_SINCE);
            let place = if draining { 2 } else { usize::from(!is_ready(facts)) };
            if let Some((_, count)) = counts.get_mut(place) {
                *count += 1;
            }
        }
        for (state, count) in counts {
            self.nodes.get_or_create(&StateLabel { state }).set(count);
        }
    }

    pub(crate) fn clear(&self) {
        self.nodes.clear();
    }
}
