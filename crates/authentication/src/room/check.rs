//! Whether the room is ready, and if not, why.

use std::time::Duration;

use liqo_kit::health::Checks;

use super::Room;

/// A watch that heard nothing for so long has lost its server: twice the time after which a living one is heard of.
const STALE_AFTER: Duration = Duration::from_secs(90);

impl Room {
    /// Adds checks: that the watches live, and that the service has a certificate to show. Call it after [`Room::start`].
    pub fn add_checks(&self, checks: &Checks) {
        for status in self.0.watches.lock().iter() {
            checks.add_watch(status, STALE_AFTER);
        }
        let room = self.clone();
        checks.add("authentication", move || {
            if room.0.fingerprint.borrow().is_some() {
                return Ok(());
            }
            let exists = room.0.index.read().serving_exists;
            Err(if exists {
                "the Secret liqo-auth-tls has no certificate that can be shown; delete it, and a new one is made".to_owned()
            } else {
                "the authentication service has no certificate yet; the leader makes one".to_owned()
            })
        });
    }
}
