//! The one retry policy: exponential, with jitter, an upper bound, and a reset after success.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// How long to wait before the n-th retry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BackoffPolicy {
    /// Upper end of the first wait.
    pub min: Duration,
    /// Upper end of any wait.
    pub max: Duration,
    /// Growth from one wait to the next.
    pub factor: f64,
}

impl Default for BackoffPolicy {
    /// 200 ms up to 10 s: a restarted API server is found soon, a dead one is asked six times a minute.
    fn default() -> Self {
        Self { min: Duration::from_millis(200), max: Duration::from_secs(10), factor: 2.0 }
    }
}

impl BackoffPolicy {
    /// The wait before retry number `attempt` (from 0), where `random` in `0.0..1.0` is the jitter.
    ///
    /// The wait lies in the upper half of the exponential step, so that a thousand clients of one restarted
    /// server do not come back in the same instant and none of them comes back at once.
    pub fn delay(&self, attempt: u32, random: f64) -> Duration {
        let exponent = i32::try_from(attempt).unwrap_or(i32::MAX);
        let step = self.min.as_secs_f64() * self.factor.max(1.0).powi(exponent);
        let step = step.min(self.max.as_secs_f64());
        Duration::from_secs_f64(step * (0.5 + 0.5 * random.clamp(0.0, 1.0)))
    }
}

/// A running sequence of waits.
#[derive(Clone, Debug, Default)]
pub struct Backoff {
    policy: BackoffPolicy,
    attempt: u32,
}

impl Backoff {
    /// Starts at the policy's shortest wait.
    pub fn new(policy: BackoffPolicy) -> Self {
        Self { policy, attempt: 0 }
    }

    /// The next, longer wait.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.policy.delay(self.attempt, jitter());
        self.attempt = self.attempt.saturating_add(1);
        delay
    }

    /// Starts again at the shortest wait, after something worked.
    pub fn reset(&mut self) {
        self.attempt = 0;
    }

    /// How many waits were handed out since the last reset.
    pub fn attempts(&self) -> u32 {
        self.attempt
    }
}

/// A number in `0.0..1.0` that differs from call to call; good enough to spread load, not for secrets.
pub(crate) fn jitter() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1u64 << 53) as f64
}
