//! How often a caller may fail.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// Addresses that are remembered; those that failed longest ago are forgotten first.
const MAX_SOURCES: usize = 4096;

/// A store of permissions to fail, which fills again with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn full(size: u32, now: Instant) -> Self {
        Self { left: f64::from(size), at: now }
    }

    fn fill(&mut self, (size, each): (u32, Duration), now: Instant) {
        let gained = now.duration_since(self.at).as_secs_f64() / each.as_secs_f64().max(f64::EPSILON);
        *self = Self { left: (self.left + gained).min(f64::from(size)), at: now };
    }
}

/// The failed attempts of all callers.
#[derive(Debug)]
pub(crate) struct Attempts {
    per_source: (u32, Duration),
    all: (u32, Duration),
    sources: HashMap<IpAddr, Bucket>,
    total: Bucket,
}

impl Attempts {
    pub(crate) fn new(per_source: (u32, Duration), all: (u32, Duration), now: Instant) -> Self {
        Self { per_source, all, sources: HashMap::new(), total: Bucket::full(all.0, now) }
    }

    /// How long this address must wait, if it must. Who never failed waits for nobody.
    pub(crate) fn wait(&mut self, source: IpAddr, now: Instant) -> Option<Duration> {
        let bucket = self.sources.get_mut(&source)?;
        bucket.fill(self.per_source, now);
        self.total.fill(self.all, now);
        let missing = |left: f64, each: Duration| (left < 1.0).then(|| each.mul_f64(1.0 - left.max(0.0)));
        let own = missing(bucket.left, self.per_source.1);
        own.max(missing(self.total.left, self.all.1))
    }

    /// Counts a failure.
    pub(crate) fn failed(&mut self, source: IpAddr, now: Instant) {
        self.make_room(now);
        let per_source = self.per_source;
        let bucket = self.sources.entry(source).or_insert_with(|| Bucket::full(per_source.0, now));
        bucket.fill(per_source, now);
        bucket.left = (bucket.left - 1.0).max(0.0);
        self.total.fill(self.all, now);
        self.total.left = (self.total.left - 1.0).max(0.0);
    }

    fn make_room(&mut self, now: Instant) {
        if self.sources.len() < MAX_SOURCES {
            return;
        }
        let (size, each) = self.per_source;
        let filled_after = each.saturating_mul(size);
        self.sources.retain(|_, bucket| now.duration_since(bucket.at) < filled_after);
        if self.sources.len() < MAX_SOURCES {
            return;
        }
        // Many at once, so that this is seldom done.
        let mut times: Vec<_> = self.sources.values().map(|bucket| bucket.at).collect();
        times.sort_unstable();
        if let Some(cut) = times.get(MAX_SOURCES / 4) {
            self.sources.retain(|_, bucket| bucket.at > *cut);
        }
    }
}
