//! What the room must be told.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use liqo_providers::nodes::Survey;
use tokio::sync::watch;

use crate::Clock;

/// How long Kubernetes believes a node without hearing of it, as kubelets say.
const LEASE: Duration = Duration::from_secs(40);
/// How long pods are asked to leave, budgets honoured; then they must.
const EVICTION: SignedDuration = SignedDuration::from_secs(60);
/// How long a provider must have been gone from the contracts before its node is emptied: one contract may follow another.
const ABSENCE: SignedDuration = SignedDuration::from_secs(5);
/// Writes under way at once.
const WRITES: usize = 16;
/// Where kubelets are asked.
const PORT: u16 = 10250;

/// What the room must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The pod that this is.
    pub pod: String,
    /// Where this process is reached from within the cluster; without it, the nodes have no doors.
    pub address: Option<IpAddr>,
    /// The port of the doors.
    pub port: u16,
    /// The version of this program.
    pub version: String,
    /// More labels for all nodes.
    pub labels: BTreeMap<String, String>,
    /// More annotations for all nodes.
    pub annotations: BTreeMap<String, String>,
    /// How long Kubernetes believes a node without hearing of it; it hears of it four times as often.
    pub lease: Duration,
    /// How long pods are asked to leave before they must.
    pub eviction: SignedDuration,
    /// How long a provider must be without contract before its node is emptied.
    pub absence: SignedDuration,
    /// Writes under way at once.
    pub writes: usize,
    /// Where is told what is left behind the nodes; the room that sends pods there tells it.
    pub survey: watch::Sender<Arc<Survey>>,
    /// The clock.
    pub clock: Clock,
}

impl Settings {
    /// The usual settings.
    pub fn new(pod: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            pod: pod.into(),
            address: None,
            port: PORT,
            version: version.into(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            lease: LEASE,
            eviction: EVICTION,
            absence: ABSENCE,
            writes: WRITES,
            survey: watch::Sender::default(),
            clock: Clock::system(),
        }
    }
}
