//! What the room must be told.

use std::time::Duration;

use jiff::SignedDuration;
use liqo_api::names::NamespaceName;
use liqo_kit::Clock;

/// How long pods may take to leave a cluster that their namespace withdraws from, before they are deleted.
const EVICTION: SignedDuration = SignedDuration::from_secs(60);
/// How long they may take to be gone after that, before the namespace there goes with whatever is in it.
const DELETION: SignedDuration = SignedDuration::from_secs(30);
/// How often it is looked whether pods have left.
const LOOK: Duration = Duration::from_secs(1);

/// What the room must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace that Liqo is installed in.
    pub namespace: NamespaceName,
    /// The pod that this is.
    pub pod: String,
    /// How long pods may take to leave a cluster that their namespace withdraws from, before they are deleted.
    pub eviction: SignedDuration,
    /// How long they may take to be gone after that.
    pub deletion: SignedDuration,
    /// How often it is looked whether pods have left.
    pub look: Duration,
    /// Names and addresses of the webhook besides those of its Service, for the certificate.
    pub webhook_names: Vec<String>,
    /// The clock.
    pub clock: Clock,
}

impl Settings {
    /// The usual settings.
    pub fn new(namespace: NamespaceName, pod: impl Into<String>) -> Self {
        Self {
            namespace,
            pod: pod.into(),
            eviction: EVICTION,
            deletion: DELETION,
            look: LOOK,
            webhook_names: Vec::new(),
            clock: Clock::system(),
        }
    }
}
