//! What monitoring sees of the identity.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::plan::{Reason, Verdict};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// Whether the identity is established, and if not, why.
#[derive(Clone, Debug, Default)]
pub struct IdentityMetrics {
    ready: Gauge,
    refused: Family<ReasonLabel, Gauge>,
}

impl IdentityMetrics {
    /// Registers the numbers under the prefix `liqo_identity`.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_identity");
        registry.register(
            "ready",
            "1 when the cluster has an identity and its key, else 0",
            self.ready.clone(),
        );
        registry.register("refused", "1 for the reason why the identity is refused", self.refused.clone());
    }

    pub(crate) fn show(&self, verdict: &Verdict) {
        self.ready.set(i64::from(matches!(verdict, Verdict::Established(_))));
        let refused = match verdict {
            Verdict::Refused(refusal) => Some(refusal.reason),
            _ => None,
        };
        for reason in Reason::ALL {
            let label = ReasonLabel { reason: reason.as_str() };
            self.refused.get_or_create(&label).set(i64::from(refused == Some(reason)));
        }
    }
}
