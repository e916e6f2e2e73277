use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{Alarm, Change, Delays, Findings, findings};
use crate::testing::{list, time};

const START: &str = "2026-07-01T00:00:00Z";

fn at(seconds: i64) -> Timestamp {
    time(START) + SignedDuration::from_secs(seconds)
}

#[test]
fn each_party_owes_its_part() {
    let agreed = || list("cpu=4, memory=8Gi");
    for (backed, used, missing, overuse) in [
        ("cpu=4, memory=8Gi", "cpu=4, memory=8Gi", "", ""),
        ("cpu=9, memory=9Gi, nvidia.com/gpu=1", "", "", ""),
        ("cpu=3, memory=8Gi", "cpu=1", "cpu=1", ""),
        ("", "", "cpu=4, memory=8Gi", ""),
        ("cpu=-50, memory=8Gi", "", "cpu=4", ""),
        ("cpu=4, memory=8Gi", "cpu=4500m, memory=1Gi", "", "cpu=500m"),
        ("cpu=4, memory=8Gi", "nvidia.com/gpu=1", "", "nvidia.com/gpu=1"),
        ("cpu=1, memory=8Gi", "cpu=5", "cpu=3", "cpu=1"),
    ] {
        let expected = Findings { missing: list(missing), overuse: list(overuse) };
        assert_eq!(findings(&agreed(), &list(backed), &list(used)), expected, "{backed} used {used}");
    }
}

#[test]
fn a_short_blip_is_no_breach() {
    let delays = Delays::default();
    let (alarm, change) = Alarm::default().observe(true, delays, at(0));
    assert_eq!((alarm.raised, change, alarm.settles(delays)), (false, None, Some(at(120))));
    let (alarm, change) = alarm.observe(false, delays, at(119));
    assert_eq!((alarm, change), (Alarm::default(), None));
    // It begins anew, and lasts.
    let (alarm, _) = alarm.observe(true, delays, at(120));
    let (alarm, change) = alarm.observe(true, delays, at(239));
    assert_eq!((alarm.raised, change), (false, None));
    let (alarm, change) = alarm.observe(true, delays, at(240));
    assert_eq!((alarm, change), (Alarm { raised: true, doubted_since: None }, Some(Change::Raised)));
    assert_eq!(alarm.observe(true, delays, at(999)), (alarm, None), "told once");
}

#[test]
fn the_all_clear_waits_too() {
    let delays = Delays::default();
    let raised = Alarm { raised: true, doubted_since: None };
    let (alarm, change) = raised.observe(false, delays, at(0));
    assert_eq!((alarm.raised, change), (true, None));
    assert_eq!(alarm.observe(true, delays, at(59)), (raised, None));
    assert_eq!(alarm.observe(false, delays, at(60)), (Alarm::default(), Some(Change::Cleared)));
}

#[test]
fn a_clock_that_was_put_back_makes_nobody_wait() {
    let delays = Delays::default();
    let (alarm, _) = Alarm::default().observe(true, delays, at(1_000_000));
    let (alarm, _) = alarm.observe(true, delays, at(0));
    assert_eq!(alarm.observe(true, delays, at(120)).1, Some(Change::Raised));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// However often something flickers, it is told at most once per pause.
    #[test]
    fn flicker_is_told_rarely(steps in prop::collection::vec((any::<bool>(), 1_i64..100), 1..100)) {
        let delays = Delays::default();
        let (mut alarm, mut now, mut told, mut last) = (Alarm::default(), at(0), Vec::new(), None);
        for (broken, seconds) in steps {
            now += SignedDuration::from_secs(seconds);
            let (next, change) = alarm.observe(broken, delays, now);
            alarm = next;
            if let Some(change) = change {
                prop_assert_ne!(last, Some(change), "raised and cleared take turns");
                last = Some(change);
                told.push(now);
            }
        }
        prop_assert!(told.windows(2).all(|pair| pair[1].duration_since(pair[0]).as_secs() >= 60));
    }
}
