//! Whether the room is ready, and if not, why.

use std::time::Duration;

use liqo_kit::health::Checks;

use super::Room;

/// A watch that heard nothing for so long has lost its server: twice the time after which a living one is heard of.
const STALE_AFTER: Duration = Duration::from_secs(90);

impl Room {
    /// Adds checks: that the watches of this cluster live. Providers that do not answer are no reason not to be ready. Call
    /// it after [`Room::start`].
    pub fn add_checks(&self, checks: &Checks) {
        for status in self.0.watches.lock().iter() {
            checks.add_watch(status, STALE_AFTER);
        }
    }
}
