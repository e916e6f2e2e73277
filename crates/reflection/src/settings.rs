//! What the room must be told.

use std::fmt;
use std::sync::Arc;

use liqo_kit::Clock;

use crate::translate::{Translate, Unchanged};

/// Writes under way at once, here and at each provider: what a busy API server answers in parallel.
const WRITES: usize = 32;

/// What the room must be told.
#[derive(Clone)]
pub struct Settings {
    /// The pod that this is.
    pub pod: String,
    /// Writes under way at once, here and at each provider.
    pub writes: usize,
    /// How addresses of one side are seen from the other.
    pub translate: Arc<dyn Translate>,
    /// Tells the time.
    pub clock: Clock,
}

impl Settings {
    /// The usual, for this pod.
    pub fn new(pod: impl Into<String>) -> Self {
        Self { pod: pod.into(), writes: WRITES, translate: Arc::new(Unchanged), clock: Clock::system() }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("pod", &self.pod)
            .field("writes", &self.writes)
            .finish_non_exhaustive()
    }
}
