//! Time.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{World, policy};
use crate::policy::{Cause, Policy, next_change};
use crate::testing::time;

#[expect(clippy::needless_pass_by_value, reason = "reads like the document")]
fn windows(windows: Value) -> Policy {
    policy("p", &json!({"windows": windows}))
}

fn window(days: &[&str], from: &str, to: &str, zone: &str) -> Policy {
    windows(json!([{"days": days, "from": from, "to": to, "timeZone": zone}]))
}

#[test]
fn windows_open_and_close_by_the_clock_on_the_wall() {
    for (policy, at, open) in [
        // 2026-07-01 is a Wednesday.
        (window(&[], "08:00", "18:00", "UTC"), "2026-07-01T07:59:59.999Z", false),
        (window(&[], "08:00", "18:00", "UTC"), "2026-07-01T08:00:00Z", true),
        (window(&[], "08:00", "18:00", "UTC"), "2026-07-01T17:59:59Z", true),
        (window(&[], "08:00", "18:00", "UTC"), "2026-07-01T18:00:00Z", false),
        (window(&["Wed"], "08:00", "18:00", "UTC"), "2026-07-01T09:00:00Z", true),
        (window(&["Thu", "Fri"], "08:00", "18:00", "UTC"), "2026-07-01T09:00:00Z", false),
        // Over midnight, the window belongs to the day on which it opens.
        (window(&["Wed"], "20:00", "06:00", "UTC"), "2026-07-02T05:00:00Z", true),
        (window(&["Thu"], "20:00", "06:00", "UTC"), "2026-07-02T05:00:00Z", false),
        (window(&["Sun"], "20:00", "06:00", "UTC"), "2026-07-06T05:59:00Z", true),
        (window(&[], "00:00", "24:00", "UTC"), "2026-07-01T00:00:00Z", true),
        (window(&["Wed"], "12:00", "24:00", "UTC"), "2026-07-02T00:00:00Z", false),
        // Rome is two hours ahead in summer and one in winter.
        (window(&[], "08:00", "18:00", "Europe/Rome"), "2026-07-01T06:00:00Z", true),
        (window(&[], "08:00", "18:00", "Europe/Rome"), "2026-01-01T06:00:00Z", false),
        (window(&[], "08:00", "18:00", "Europe/Rome"), "2026-01-01T07:00:00Z", true),
        // Kiribati is a day ahead of Greenwich's evening.
        (window(&["Thu"], "00:00", "02:00", "Pacific/Kiritimati"), "2026-07-01T10:30:00Z", true),
        // On 2026-03-29 the clocks in Rome skip 02:00 to 03:00.
        (window(&["Sun"], "02:30", "04:00", "Europe/Rome"), "2026-03-29T01:15:00Z", false),
        (window(&["Sun"], "02:30", "04:00", "Europe/Rome"), "2026-03-29T01:30:00Z", true),
        // On 2026-10-25 they show 02:00 to 03:00 twice; the first time counts.
        (window(&["Sun"], "01:00", "02:30", "Europe/Rome"), "2026-10-25T00:29:00Z", true),
        (window(&["Sun"], "01:00", "02:30", "Europe/Rome"), "2026-10-25T00:30:00Z", false),
        (window(&["Sun"], "01:00", "02:30", "Europe/Rome"), "2026-10-25T01:15:00Z", false),
    ] {
        assert_eq!(policy.in_time(time(at)), open, "{} at {at}", policy.windows[0]);
    }
}

#[test]
fn the_end_of_an_offer_is_where_all_windows_close() {
    let ends = |policy: &Policy, now: &str| policy.ends(time(now)).map(|end| end.to_string());
    let two = windows(
        json!([{"from": "08:00", "to": "12:00"}, {"from": "12:00", "to": "18:00"}, {"from": "11:00", "to": "13:00"}]),
    );
    assert_eq!(ends(&two, "2026-07-01T09:00:00Z").as_deref(), Some("2026-07-01T18:00:00Z"));
    assert_eq!(ends(&windows(json!([{"from": "00:00", "to": "24:00"}])), "2026-07-01T09:00:00Z"), None);
    let halves = windows(json!([{"from": "06:00", "to": "18:00"}, {"from": "18:00", "to": "06:00"}]));
    assert_eq!(ends(&halves, "2026-07-01T09:00:00Z"), None, "day and night are always");
    let week =
        windows(json!([{"days": ["Mon", "Tue", "Wed", "Thu", "Fri"], "from": "00:00", "to": "24:00"}]));
    assert_eq!(ends(&week, "2026-07-01T09:00:00Z").as_deref(), Some("2026-07-04T00:00:00Z"));
    let until = policy(
        "p",
        &json!({"windows": [{"from": "08:00", "to": "18:00"}], "notAfter": "2026-07-01T10:00:00Z"}),
    );
    assert_eq!(ends(&until, "2026-07-01T09:00:00Z").as_deref(), Some("2026-07-01T10:00:00Z"));
}

#[test]
fn the_next_change_is_the_next_moment_anything_opens_closes_begins_or_ends() {
    let next =
        |policies: &[Policy], now: &str| next_change(policies, time(now)).map(|change| change.to_string());
    assert_eq!(next(&[], "2026-07-01T00:00:00Z"), None);
    assert_eq!(next(&[policy("p", &json!({}))], "2026-07-01T00:00:00Z"), None);
    let office = window(&["Mon"], "08:00", "18:00", "Europe/Rome");
    assert_eq!(
        next(std::slice::from_ref(&office), "2026-07-01T00:00:00Z").as_deref(),
        Some("2026-07-06T06:00:00Z")
    );
    assert_eq!(
        next(std::slice::from_ref(&office), "2026-07-06T06:00:00Z").as_deref(),
        Some("2026-07-06T16:00:00Z")
    );
    let year = policy("y", &json!({"notBefore": "2026-07-03T00:00:00Z", "notAfter": "2026-12-31T00:00:00Z"}));
    let both = [office, year];
    assert_eq!(next(&both, "2026-07-01T00:00:00Z").as_deref(), Some("2026-07-03T00:00:00Z"));
    assert_eq!(next(&both[1..], "2026-07-03T00:00:00Z").as_deref(), Some("2026-12-31T00:00:00Z"));
    assert_eq!(next(&both[1..], "2026-12-31T00:00:00Z"), None);
}

#[test]
fn a_policy_whose_windows_never_come_again_says_so() {
    let spec = json!({"windows": [{"days": ["Mon"], "from": "08:00", "to": "18:00"}], "notAfter": "2026-07-03T00:00:00Z"});
    let refusal = World::with_node("cpu=1").policy("p", spec).refusal("x");
    assert_eq!(refusal.cause, Cause::OutsideTime);
    assert_eq!(refusal.message, "policy p shares only Mon 08:00-18:00 UTC; next never again");
}

#[test]
fn the_ends_of_the_calendar_do_no_harm() {
    let office = window(&[], "08:00", "18:00", "Pacific/Kiritimati");
    for now in [Timestamp::MIN, Timestamp::MAX] {
        let _ = (office.in_time(now), office.ends(now), office.begins(now), next_change([&office], now));
    }
}

fn any_window() -> impl Strategy<Value = Value> {
    let days = prop::sample::subsequence(vec!["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], 0..=7);
    let zone = prop::sample::select(vec![
        "UTC",
        "Europe/Rome",
        "America/New_York",
        "Asia/Kathmandu",
        "Australia/Lord_Howe",
        "Pacific/Apia",
    ]);
    (days, 0_u32..24, 0_u32..60, 1_u32..1440, zone).prop_map(|(days, hour, minute, length, zone)| {
        let end = (hour * 60 + minute + length) % 1440;
        json!({"days": days, "from": format!("{hour:02}:{minute:02}"), "to": format!("{:02}:{:02}", end / 60, end % 60), "timeZone": zone})
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// What a planner relies on: between now and the next change nothing changes.
    #[test]
    fn nothing_changes_before_the_next_change(
        specs in prop::collection::vec(any_window(), 1..4),
        second in 1_700_000_000_i64..1_900_000_000,
        fraction in 0_u32..100,
    ) {
        let policy = windows(json!(specs));
        let now = Timestamp::from_second(second).unwrap();
        let next = next_change([&policy], now).expect("a window opens or closes every week");
        prop_assert!(next > now && next <= now + SignedDuration::from_hours(24 * 9));
        let between = now + SignedDuration::from_secs(now.duration_until(next).as_secs() * i64::from(fraction) / 100);
        prop_assert_eq!(policy.in_time(now), policy.in_time(between), "at {} and {}", now, between);
        if !policy.in_time(now) {
            let begins = policy.begins(now).expect("it opens every week");
            prop_assert!(policy.in_time(begins) && begins >= next);
        } else if let Some(ends) = policy.ends(now) {
            prop_assert!(!policy.in_time(ends) && ends >= next);
        }
    }
}
