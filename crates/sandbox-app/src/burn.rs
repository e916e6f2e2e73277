//! Using up CPU on request, so that tests can watch limits, quotas and metrics work.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Work between two looks at the clock: some tens of microseconds.
const STEPS: u64 = 50_000;

/// Keeps `cores` threads busy until `duration` has passed.
pub(crate) fn burn(cores: usize, duration: Duration) {
    let end = Instant::now() + duration;
    std::thread::scope(|scope| {
        for _ in 1..cores {
            // A thread that the system refuses (a pids limit) is a core less; the others still burn.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || spin(end));
        }
        spin(end);
    });
}

fn spin(end: Instant) {
    let mut value = 1_u64;
    while Instant::now() < end {
        for step in 0..STEPS {
            value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
        }
    }
}
