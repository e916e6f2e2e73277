//! Which writes of ours the watches have not seen yet.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::request::Target;

/// How long a write is remembered that no watch has reached. A watch that lags further is broken (and says so);
/// a server restored from a backup may never reach the version again, and planning must go on.
const REMEMBERED: Duration = Duration::from_secs(60);

/// The versions our writes produced, per object.
///
/// A planner that acts on an index which has not seen the planner's own last write repeats itself: it creates
/// twice, or undoes. So ask [`Written::has_seen`] with the watch's
/// [`position`](crate::watch::WatchStatus::position) and skip the object until it says yes. Deletions leave no
/// version behind and are not recorded; they carry the uid, so repeating one is harmless.
#[derive(Clone)]
pub struct Written {
    latest: Arc<Mutex<HashMap<Target, (u64, Instant)>>>,
    capacity: usize,
}

impl Written {
    pub(super) fn new(capacity: usize) -> Self {
        Self { latest: Arc::default(), capacity }
    }

    /// Whether a watch at `position` has seen our latest write to this object.
    pub fn has_seen(&self, target: &Target, position: u64) -> bool {
        let mut latest = self.latest.lock();
        match latest.get(target) {
            Some((version, at)) if *version > position && at.elapsed() < REMEMBERED => false,
            Some(_) => {
                latest.remove(target);
                true
            }
            None => true,
        }
    }

    pub(super) fn note(&self, target: &Target, version: u64) {
        let mut latest = self.latest.lock();
        // Nobody asks about some objects; forget the oldest first when there are too many.
        let mut remembered = REMEMBERED;
        while latest.len() >= self.capacity && !remembered.is_zero() {
            latest.retain(|_, (_, at)| at.elapsed() < remembered);
            remembered /= 2;
        }
        let entry = latest.entry(target.clone()).or_insert((version, Instant::now()));
        *entry = (entry.0.max(version), Instant::now());
    }
}
