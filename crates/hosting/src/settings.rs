//! What the room must be told.

use jiff::SignedDuration;
use liqo_api::names::NamespaceName;
use liqo_kit::Clock;

use crate::limits::Limits;

/// How long a consumer keeps what runs after its contract ended: long enough for another contract to follow, or for the
/// consumer to clean up by itself.
const GRACE: SignedDuration = SignedDuration::from_secs(15);
/// Namespaces of one consumer; as many as fit into its map.
const NAMESPACES: usize = 4096;
/// Writes under way at once.
const WRITES: usize = 16;

/// What the room must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace that Liqo is installed in.
    pub namespace: NamespaceName,
    /// The pod that this is.
    pub pod: String,
    /// How long a consumer keeps what runs after its contract ended.
    pub grace: SignedDuration,
    /// How many namespaces one consumer may have.
    pub namespaces: usize,
    /// How many objects one of them may have.
    pub limits: Limits,
    /// Writes under way at once.
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
            grace: GRACE,
            namespaces: NAMESPACES,
            limits: Limits::default(),
            writes: WRITES,
            clock: Clock::system(),
        }
    }
}
