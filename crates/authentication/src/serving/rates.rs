//! How often somebody may do something.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// Those that are remembered; who did it longest ago is forgotten first.
const MAX_REMEMBERED: usize = 4096;

/// So many at once, and one more after each of these times.
type Rate = (u32, Duration);

/// A store of permissions, which fills again with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn full((size, _): Rate, now: Instant) -> Self {
        Self { left: f64::from(size), at: now }
    }

    fn fill(&mut self, (size, each): Rate, now: Instant) {
        let gained = now.duration_since(self.at).as_secs_f64() / each.as_secs_f64().max(f64::EPSILON);
        *self = Self { left: (self.left + gained).min(f64::from(size)), at: now };
    }

    fn take(&mut self) {
        self.left = (self.left - 1.0).max(0.0);
    }

    /// How long until there is one.
    fn wait(&self, (_, each): Rate) -> Option<Duration> {
        (self.left < 1.0).then(|| each.mul_f64(1.0 - self.left.max(0.0)))
    }
}

/// How often each of many does something, and all together.
#[derive(Debug)]
pub(crate) struct Rates<K> {
    each: Rate,
    all: Option<(Rate, Bucket)>,
    buckets: HashMap<K, Bucket>,
}

impl<K: Eq + Hash + Clone> Rates<K> {
    pub(crate) fn new(each: Rate, all: Option<Rate>, now: Instant) -> Self {
        Self { each, all: all.map(|rate| (rate, Bucket::full(rate, now))), buckets: HashMap::new() }
    }

    /// How long this one must wait, if it must. Who never did it waits for nobody.
    pub(crate) fn wait(&mut self, who: &K, now: Instant) -> Option<Duration> {
        let bucket = self.buckets.get_mut(who)?;
        bucket.fill(self.each, now);
        let all = self.all.as_mut().and_then(|(rate, bucket)| {
            bucket.fill(*rate, now);
            bucket.wait(*rate)
        });
        bucket.wait(self.each).max(all)
    }

    /// Counts that it did it.
    pub(crate) fn count(&mut self, who: K, now: Instant) {
        self.make_room(now);
        let each = self.each;
        let bucket = self.buckets.entry(who).or_insert_with(|| Bucket::full(each, now));
        bucket.fill(each, now);
        bucket.take();
        if let Some((rate, bucket)) = &mut self.all {
            bucket.fill(*rate, now);
            bucket.take();
        }
    }

    /// Counts it if it may be done now; else how long it must wait.
    pub(crate) fn take(&mut self, who: &K, now: Instant) -> Option<Duration> {
        let wait = self.wait(who, now);
        if wait.is_none() {
            self.count(who.clone(), now);
        }
        wait
    }

    fn make_room(&mut self, now: Instant) {
        if self.buckets.len() < MAX_REMEMBERED {
            return;
        }
        let (size, each) = self.each;
        let filled_after = each.saturating_mul(size);
        self.buckets.retain(|_, bucket| now.duration_since(bucket.at) < filled_after);
        if self.buckets.len() < MAX_REMEMBERED {
            return;
        }
        // Many at once, so that this is seldom done.
        let mut times: Vec<_> = self.buckets.values().map(|bucket| bucket.at).collect();
        times.sort_unstable();
        if let Some(cut) = times.get(MAX_REMEMBERED / 4) {
            self.buckets.retain(|_, bucket| bucket.at > *cut);
        }
    }
}
