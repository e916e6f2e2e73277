use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{Difference, Limiter, Pace, amount_differences, differences, differs_enough};
use crate::capacity::LargestPod;
use crate::ledger::Limits;
use crate::policy::{Conditions, Extras, Offer, Percent};
use crate::span::Span;
use crate::testing::{clauses, list, time};

/// Something done to an offer.
type Edit<'a> = &'a dyn Fn(&mut Offer);

fn percent(percent: i64) -> Percent {
    Percent::new(percent).unwrap()
}

fn offer() -> Offer {
    Offer {
        policy: None,
        resources: list("cpu=10, memory=100Gi"),
        pools: [].into(),
        largest_pod: LargestPod { on_one_node: list("cpu=2"), of_each: list("cpu=4") },
        largest_pods: [].into(),
        prices: None,
        extras: Extras::default(),
        conditions: Conditions::default(),
        ends: None,
        limits: Limits::default(),
    }
}

#[test]
fn small_changes_are_kept_to_oneself() {
    for (old, new, threshold, differs) in [
        ("cpu=10", "cpu=10", 0, false),
        ("cpu=10", "cpu=9999m", 0, true),
        ("cpu=10", "cpu=9500m", 5, false),
        ("cpu=10", "cpu=9499m", 5, true),
        ("cpu=10", "cpu=10500m", 5, false),
        ("cpu=10", "cpu=10501m", 5, true),
        ("cpu=10, memory=1Gi", "cpu=10", 100, true),
        ("cpu=10", "cpu=10, nvidia.com/gpu=1", 100, true),
        ("cpu=10, nvidia.com/gpu=0", "cpu=10", 0, false),
        ("cpu=1", "cpu=2", 100, false),
        ("cpu=1", "cpu=2001m", 100, true),
        ("nvidia.com/gpu=1", "nvidia.com/gpu=0", 100, true),
        ("cpu=1e29", "cpu=1", 99, true),
    ] {
        let found = amount_differences(&list(old), &list(new), percent(threshold));
        assert_eq!(!found.is_empty(), differs, "{old} to {new} at {threshold} %: {found:?}");
    }
}

#[test]
fn whatever_else_changes_is_told() {
    assert!(!differs_enough(&offer(), &offer(), Percent::ZERO));
    let cases: [(Edit<'_>, Difference); 7] = [
        (&|offer| offer.policy = Some("p".to_owned()), Difference::Policy),
        (&|offer| offer.ends = Some(time("2026-07-01T00:00:00Z")), Difference::Policy),
        (&|offer| offer.prices = clauses().prices, Difference::Prices),
        (&|offer| offer.extras.default_storage_class = Some("fast".to_owned()), Difference::Extras),
        (&|offer| offer.conditions.duration = Span::clamped(1), Difference::Conditions),
        (&|offer| offer.largest_pod.on_one_node = list("cpu=1"), Difference::LargestPod),
        (&|offer| offer.largest_pod.of_each = list("cpu=4, memory=1Gi"), Difference::LargestPod),
    ];
    for (change, expected) in cases {
        let mut new = offer();
        change(&mut new);
        assert_eq!(differences(&offer(), &new, percent(5)), [expected]);
    }
    let mut unimportant = offer();
    unimportant.limits.pot = list("cpu=99");
    unimportant.resources = list("cpu=10100m, memory=99Gi");
    assert_eq!(differences(&offer(), &unimportant, percent(5)), [], "the limits are our own business");
    let shrunk = Offer { resources: list("cpu=5, memory=100Gi"), ..offer() };
    assert_eq!(differences(&offer(), &shrunk, percent(5))[0].to_string(), "cpu 10 → 5");
}

fn at(seconds: i64) -> Timestamp {
    time("2026-07-01T00:00:00Z") + SignedDuration::from_secs(seconds)
}

#[test]
fn a_burst_is_allowed_then_a_pace_is_kept() {
    let pace = Pace { burst: 3, every: Span::clamped(10) };
    let mut limiter = Limiter::default();
    for _ in 0..3 {
        assert_eq!(limiter.next_allowed(pace, at(0)), at(0));
        limiter = limiter.taken(pace, at(0));
    }
    assert_eq!(limiter.next_allowed(pace, at(0)), at(10));
    assert_eq!(limiter.next_allowed(pace, at(4)), at(10));
    limiter = limiter.taken(pace, at(10));
    assert_eq!(limiter.next_allowed(pace, at(11)), at(20));
    assert_eq!(limiter.next_allowed(pace, at(500)), at(500));
    let single = Pace { burst: 1, every: Span::clamped(10) };
    assert_eq!(Limiter::default().taken(single, at(0)).next_allowed(single, at(3)), at(10));
    let none = Pace { burst: 0, every: Span::clamped(10) };
    assert_eq!(Limiter::default().next_allowed(none, at(0)), at(0), "no burst is a burst of one");
}

#[test]
fn a_clock_that_was_put_back_locks_nobody_out() {
    let pace = Pace { burst: 2, every: Span::clamped(10) };
    let limiter = Limiter::default().taken(pace, at(1_000_000)).taken(pace, at(1_000_000));
    assert!(limiter.next_allowed(pace, at(0)) <= at(10));
    assert_eq!(
        Limiter::default().taken(pace, Timestamp::MAX).next_allowed(pace, Timestamp::MAX),
        Timestamp::MAX
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn there_is_never_a_storm(burst in 1_u32..5, every in 1_u64..30, gaps in prop::collection::vec(0_i64..20, 1..200)) {
        let pace = Pace { burst, every: Span::clamped(every) };
        let (mut limiter, mut now, mut taken) = (Limiter::default(), at(0), Vec::new());
        for gap in gaps {
            now += SignedDuration::from_secs(gap);
            if limiter.next_allowed(pace, now) <= now {
                limiter = limiter.taken(pace, now);
                taken.push(now);
            }
        }
        for (first, from) in taken.iter().enumerate() {
            for (count, until) in taken[first..].iter().enumerate() {
                let seconds = u64::try_from(until.duration_since(*from).as_secs()).unwrap();
                prop_assert!(count as u64 <= u64::from(burst) - 1 + seconds / every, "{count} in {seconds} s");
            }
        }
    }

    #[test]
    fn a_difference_is_told_in_both_directions(old in 1_i64..1_000_000, new in 1_i64..1_000_000, threshold in 0_i64..=100) {
        let (a, b) = (list(&format!("cpu={old}m")), list(&format!("cpu={new}m")));
        let expected = (old - new).abs() * 100 > old * threshold;
        prop_assert_eq!(!amount_differences(&a, &b, percent(threshold)).is_empty(), expected);
    }
}
