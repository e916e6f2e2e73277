//! What monitoring sees of finding clusters.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::advert::{Refusal, Source};

/// Upper ends of the buckets for asking a cluster or a domain, in seconds: from the next rack to the limit.
const SECONDS: [f64; 9] = [0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    source: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusedLabel {
    source: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct DirectionLabel {
    direction: &'static str,
}

/// The room's numbers. Their labels have fixed values: what strangers send makes no new series.
#[derive(Clone, Debug)]
pub struct DiscoveryMetrics {
    records: Family<SourceLabel, Counter>,
    refused: Family<RefusedLabel, Counter>,
    packets: Family<DirectionLabel, Counter>,
    ignored_packets: Counter,
    kept: Gauge,
    interfaces: Gauge,
    candidates: Family<SourceLabel, Gauge>,
    clusters: Family<SourceLabel, Gauge>,
    asked: Family<OutcomeLabel, Counter>,
    ask_duration: Histogram,
    searches: Family<OutcomeLabel, Counter>,
    search_duration: Histogram,
    created: Family<SourceLabel, Counter>,
    expired: Family<SourceLabel, Counter>,
    unadvertised: Gauge,
    events_withheld: Counter,
}

impl Default for DiscoveryMetrics {
    fn default() -> Self {
        Self {
            records: Family::default(),
            refused: Family::default(),
            packets: Family::default(),
            ignored_packets: Counter::default(),
            kept: Gauge::default(),
            interfaces: Gauge::default(),
            candidates: Family::default(),
            clusters: Family::default(),
            asked: Family::default(),
            ask_duration: Histogram::new(SECONDS),
            searches: Family::default(),
            search_duration: Histogram::new(SECONDS),
            created: Family::default(),
            expired: Family::default(),
            unadvertised: Gauge::default(),
            events_withheld: Counter::default(),
        }
    }
}

fn source(source: &Source) -> &'static str {
    match source {
        Source::Lan => LAN,
        Source::Wan(_) => WAN,
    }
}

const LAN: &str = "lan";
const WAN: &str = "wan";

impl DiscoveryMetrics {
    /// Registers the numbers under the prefix `liqo_discovery`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_discovery");
        registry.register("records", "Records that advertise clusters", self.records.clone());
        registry.register(
            "refused",
            "Records and claims that were refused, by the reason",
            self.refused.clone(),
        );
        registry.register("mdns_packets", "Packets of multicast DNS", self.packets.clone());
        registry.register(
            "mdns_ignored_packets",
            "Packets of multicast DNS that were not looked at, as their sender or all senders sent too many",
            self.ignored_packets.clone(),
        );
        registry.register("mdns_kept_records", "Records kept of the local network", self.kept.clone());
        registry.register("mdns_interfaces", "Network interfaces spoken on", self.interfaces.clone());
        registry.register("candidates", "Advertised clusters, verified or not", self.candidates.clone());
        registry.register("clusters", "Advertised clusters that said who they are", self.clusters.clone());
        registry.register("identifications", "Clusters asked who they are, by outcome", self.asked.clone());
        registry.register_with_unit(
            "identification_duration",
            "How long asking a cluster took",
            Unit::Seconds,
            self.ask_duration.clone(),
        );
        registry.register("searches", "Searches of domains, by outcome", self.searches.clone());
        registry.register_with_unit(
            "search_duration",
            "How long searching a domain took",
            Unit::Seconds,
            self.search_duration.clone(),
        );
        registry.register("foreignclusters_created", "ForeignClusters made", self.created.clone());
        registry.register(
            "foreignclusters_expired",
            "ForeignClusters deleted as they were not advertised any more",
            self.expired.clone(),
        );
        registry.register(
            "foreignclusters_unadvertised",
            "ForeignClusters that stay though they are not advertised, because a peering is active",
            self.unadvertised.clone(),
        );
        registry.register(
            "withheld_events",
            "Events that were not made, as there were too many",
            self.events_withheld.clone(),
        );
    }

    pub(crate) fn record(&self, from: &Source) {
        self.records.get_or_create(&SourceLabel { source: source(from) }).inc();
    }

    pub(crate) fn refuse(&self, from: &Source, why: Refusal) {
        let label = RefusedLabel { source: source(from), reason: why.as_str() };
        self.refused.get_or_create(&label).inc();
    }

    pub(crate) fn received(&self) {
        self.packets.get_or_create(&DirectionLabel { direction: "received" }).inc();
    }

    pub(crate) fn sent(&self) {
        self.packets.get_or_create(&DirectionLabel { direction: "sent" }).inc();
    }

    pub(crate) fn ignored(&self) {
        self.ignored_packets.inc();
    }

    pub(crate) fn keeps(&self, records: usize) {
        self.kept.set(count(records));
    }

    pub(crate) fn speaks_on(&self, interfaces: usize) {
        self.interfaces.set(count(interfaces));
    }

    /// The interfaces spoken on.
    pub(crate) fn interfaces(&self) -> i64 {
        self.interfaces.get()
    }

    /// Candidates and the verified ones among them, of the local network and of DNS.
    pub(crate) fn show(&self, counts: [(usize, usize); 2], unadvertised: usize) {
        for ((all, verified), source) in counts.into_iter().zip([LAN, WAN]) {
            self.candidates.get_or_create(&SourceLabel { source }).set(count(all));
            self.clusters.get_or_create(&SourceLabel { source }).set(count(verified));
        }
        self.unadvertised.set(count(unadvertised));
    }

    pub(crate) fn asked(&self, outcome: Option<Refusal>, seconds: f64) {
        let outcome = outcome.map_or("identified", Refusal::as_str);
        self.asked.get_or_create(&OutcomeLabel { outcome }).inc();
        self.ask_duration.observe(seconds);
    }

    pub(crate) fn searched(&self, outcome: &'static str, seconds: f64) {
        self.searches.get_or_create(&OutcomeLabel { outcome }).inc();
        self.search_duration.observe(seconds);
    }

    pub(crate) fn created(&self, from: &Source) {
        self.created.get_or_create(&SourceLabel { source: source(from) }).inc();
    }

    pub(crate) fn expired(&self, is_lan: bool) {
        self.expired.get_or_create(&SourceLabel { source: if is_lan { LAN } else { WAN } }).inc();
    }

    pub(crate) fn withheld(&self) {
        self.events_withheld.inc();
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
