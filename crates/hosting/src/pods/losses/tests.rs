//! When pods that vanished are made again.

use super::*;

#[test]
fn a_pod_that_vanishes_again_and_again_waits_longer_each_time_up_to_an_end() {
    let moment = SignedDuration::from_secs(3);
    let waits: Vec<i64> = (1..=13).map(|times| pause(times, moment).as_secs()).collect();
    assert_eq!(waits, [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    assert_eq!(pause(u32::MAX, moment), LONGEST_PAUSE);
}

#[test]
fn one_that_lived_long_is_made_again_at_once() {
    assert_eq!(pause(9, GOOD_LIFE), SignedDuration::ZERO);
    // A clock that was set back is no long life.
    assert!(pause(9, SignedDuration::from_hours(-1)).is_positive());
}
