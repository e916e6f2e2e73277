use super::*;
use proptest::prelude::*;

#[test]
fn waits_grow_to_the_upper_bound_and_start_again_after_a_reset() {
    let policy = BackoffPolicy { min: Duration::from_millis(100), max: Duration::from_secs(1), factor: 2.0 };
    let longest: Vec<_> = (0..6).map(|n| policy.delay(n, 1.0).as_millis()).collect();
    assert_eq!(longest, [100, 200, 400, 800, 1000, 1000]);

    let mut backoff = Backoff::new(policy);
    for _ in 0..10 {
        backoff.next_delay();
    }
    backoff.reset();
    assert!(backoff.next_delay() <= Duration::from_millis(100));
}

#[test]
fn jitter_spreads_the_waits() {
    let policy = BackoffPolicy::default();
    let mut backoffs: Vec<_> = (0..50).map(|_| Backoff::new(policy).next_delay()).collect();
    backoffs.sort();
    backoffs.dedup();
    assert!(backoffs.len() > 10, "50 clients chose only {} different waits", backoffs.len());
}

proptest! {
    #[test]
    fn no_wait_is_zero_or_longer_than_the_bound(attempt in 0u32.., random in 0.0f64..1.0) {
        let policy = BackoffPolicy::default();
        let delay = policy.delay(attempt, random);
        prop_assert!(delay >= policy.min / 2 && delay <= policy.max);
    }
}
