//! What monitoring sees of the room.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::Clock;
use crate::serving::judge::Reason;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PeerLabel {
    peer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StatusLabel {
    status: &'static str,
}

/// What the room counts. Clones share it.
#[derive(Clone, Debug)]
pub struct AuthenticationMetrics {
    answers: Family<Outcome, Counter>,
    answer_duration: Histogram,
    calls: Family<Outcome, Counter>,
    call_duration: Histogram,
    claims: Counter,
    peers: Family<StatusLabel, Gauge>,
    expiries: Expiries,
}

impl AuthenticationMetrics {
    pub(crate) fn new(clock: Clock) -> Self {
        // 5 ms to 80 s.
        let seconds = || Histogram::new(exponential_buckets(0.005, 2.0, 15));
        let metrics = Self {
            answers: Family::default(),
            answer_duration: seconds(),
            calls: Family::default(),
            call_duration: seconds(),
            claims: Counter::default(),
            peers: Family::default(),
            expiries: Expiries { clock, times: Arc::default() },
        };
        // From the start at zero, so that the first one is a change.
        for outcome in Reason::ALL.map(Reason::as_str).into_iter().chain([GRANTED]) {
            drop(metrics.answers.get_or_create(&Outcome { outcome }));
        }
        metrics
    }

    /// Registers the numbers under the prefix `liqo_authentication`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_authentication");
        let answers = "Requests of other clusters for a certificate, by what became of them";
        registry.register("requests", answers, self.answers.clone());
        let duration = "How long other clusters waited for a certificate or a refusal";
        registry.register("request_duration_seconds", duration, self.answer_duration.clone());
        let calls = "Calls to other clusters for a certificate, by what became of them";
        registry.register("calls", calls, self.calls.clone());
        let duration = "How long calls to other clusters for a certificate took";
        registry.register("call_duration_seconds", duration, self.call_duration.clone());
        let claims = "Clusters that were refused because they said to be another one";
        registry.register("claims_refused", claims, self.claims.clone());
        let peers = "Other clusters by the state of our identity there; only the leader counts";
        registry.register("peers", peers, self.peers.clone());
        registry.register_collector(Box::new(self.expiries.clone()));
    }

    pub(crate) fn answered(&self, result: Result<(), Reason>, took: Duration) {
        let outcome = result.map_or_else(Reason::as_str, |()| GRANTED);
        self.answers.get_or_create(&Outcome { outcome }).inc();
        self.answer_duration.observe(took.as_secs_f64());
    }

    pub(crate) fn called(&self, outcome: &'static str, took: Duration) {
        self.calls.get_or_create(&Outcome { outcome }).inc();
        self.call_duration.observe(took.as_secs_f64());
    }

    pub(crate) fn claim_refused(&self) {
        self.claims.inc();
    }

    /// Shows when our certificates end, by the name of the ForeignCluster.
    pub(crate) fn show_expiries(&self, times: BTreeMap<String, Timestamp>) {
        *self.expiries.times.lock() = times;
    }

    /// Shows how many peers are in which state.
    pub(crate) fn show_peers(&self, counts: &BTreeMap<&'static str, i64>) {
        for (status, count) in counts {
            self.peers.get_or_create(&StatusLabel { status }).set(*count);
        }
    }
}

const GRANTED: &str = "granted";

/// Seconds until certificates end, reckoned when somebody asks.
#[derive(Clone, Debug)]
struct Expiries {
    clock: Clock,
    times: Arc<Mutex<BTreeMap<String, Timestamp>>>,
}

impl Collector for Expiries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let now = self.clock.now();
        let help = "Seconds until our certificate at another cluster ends; negative when it has";
        let mut descriptor =
            encoder.encode_descriptor("certificate_expiry_seconds", help, None, MetricType::Gauge)?;
        for (peer, time) in self.times.lock().iter() {
            let left = time.duration_since(now).as_secs_f64();
            let label = PeerLabel { peer: peer.clone() };
            ConstGauge::new(left).encode(descriptor.encode_family(&label)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
