//! What the room must be told.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use liqo_api::names::NamespaceName;
use liqo_core::Span;
use liqo_core::contract::Delays;
use liqo_core::policy::Percent;
use liqo_core::threshold::Pace;

use crate::Clock;

/// How long parting may take. Authentication waits a minute for us and then goes on; we end shortly before.
const PARTING: SignedDuration = SignedDuration::from_secs(55);
/// For how long a peer must say that we may not look at our place before that is believed: an API server that starts says
/// so too, until it has read who may what.
const FORBIDDEN: SignedDuration = SignedDuration::from_secs(5);
/// What is shared where nobody says how much, as in Liqo.
const SHARED: i64 = 90;
/// By how much an amount changes before it is told, as in Liqo.
const THRESHOLD: i64 = 5;
/// How often an offer may change: some times at once, as when several nodes come; in the long run every ten seconds.
const OFFERS: Pace = Pace { burst: 5, every: Span::clamped(10) };
/// How often a peer's proposals are answered, and how often we propose: some more than offers change.
const PROPOSALS: Pace = Pace { burst: 10, every: Span::clamped(5) };
/// How long changes of nodes and pods are collected before offers are reckoned anew.
const STOCK_PAUSE: Duration = Duration::from_millis(300);
/// Writes under way at once, here and at each peer.
const WRITES: usize = 16;

/// What the room must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace that Liqo is installed in.
    pub namespace: NamespaceName,
    /// The pod that this is.
    pub pod: String,
    /// Whether clusters that are found are borrowed from without being told to.
    pub autojoin: bool,
    /// Whether clusters that ask are lent to without being told to.
    pub incoming: bool,
    /// Whether offers are accepted without a person, where neither ForeignCluster nor ClusterConfig says so.
    pub automatic: bool,
    /// How much is shared where there is no policy.
    pub percentage: Percent,
    /// By how much an amount must change for an offer to change.
    pub threshold: Percent,
    /// Labels of this cluster, for the virtual nodes that stand for it.
    pub labels: BTreeMap<String, String>,
    /// How often an offer may change.
    pub offers: Pace,
    /// How often a contract may be proposed.
    pub proposals: Pace,
    /// How long changes of nodes and pods are collected before offers are reckoned anew.
    pub stock_pause: Duration,
    /// How long something must be wrong before it is told as broken.
    pub delays: Delays,
    /// How long parting may take before one side goes alone.
    pub parting: SignedDuration,
    /// For how long a peer must say that we may not look at our place there before that is believed.
    pub forbidden: SignedDuration,
    /// Writes under way at once, here and at each peer.
    pub writes: usize,
    /// The clock.
    pub clock: Clock,
}

impl Settings {
    /// The usual settings.
    pub fn new(namespace: NamespaceName, pod: impl Into<String>) -> Self {
        Self {
            namespace,
            pod: pod.into(),
            autojoin: true,
            incoming: true,
            automatic: true,
            percentage: Percent::new(SHARED).unwrap_or(Percent::ALL),
            threshold: Percent::new(THRESHOLD).unwrap_or(Percent::ZERO),
            labels: BTreeMap::new(),
            offers: OFFERS,
            proposals: PROPOSALS,
            stock_pause: STOCK_PAUSE,
            delays: Delays::default(),
            parting: PARTING,
            forbidden: FORBIDDEN,
            writes: WRITES,
            clock: Clock::system(),
        }
    }
}
