use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;

const PROVIDERS_CLOCK: &str = "2026-01-01T00:00:00Z";

fn noted() -> Timestamp {
    PROVIDERS_CLOCK.parse().unwrap()
}

fn after(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A Lease that was renewed just now.
fn renewed(now: Instant) -> Tie {
    let mut tie = Tie::new(now);
    tie.look(true, now);
    tie.greet(Some(noted()), now);
    tie.try_now(now);
    tie.renew(Some(noted()), now);
    tie
}

#[test]
fn the_pods_of_stateful_sets_those_with_claims_and_those_that_say_so_are_fenced() {
    let owner = |kind: &str, version: &str, controller: bool| json!([{ "apiVersion": version, "kind": kind, "name": "o", "uid": "u", "controller": controller }]);
    let set = || owner("StatefulSet", "apps/v1", true);
    let claim = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
    for (owners, said, volumes, expected) in [
        (set(), Value::Null, json!([]), Guard::Fenced),
        (owner("StatefulSet", "apps/v1", false), Value::Null, json!([]), Guard::None),
        (owner("StatefulSet", "example.com/v1", true), Value::Null, json!([]), Guard::None),
        (owner("ReplicaSet", "apps/v1", true), Value::Null, json!([]), Guard::None),
        (owner("ReplicaSet", "apps/v1", true), Value::Null, claim, Guard::Fenced),
        (json!([]), json!("true"), json!([]), Guard::Fenced),
        (json!([]), json!("false"), json!([]), Guard::None),
        // Who has an identity cannot do without.
        (set(), json!("false"), json!([]), Guard::Fenced),
    ] {
        let notes = if said.is_null() { json!({}) } else { json!({ "liqo.io/fenced": said }) };
        let meta = json!({ "ownerReferences": owners, "annotations": notes });
        let found = guard(&meta, &json!({ "containers": [], "volumes": volumes }));
        assert_eq!(found, expected, "{meta} {volumes}");
    }
}

fn guard(meta: &Value, spec: &Value) -> Guard {
    let meta = serde_json::from_value(meta.clone()).unwrap();
    Guard::of(&meta, &serde_json::from_value(spec.clone()).unwrap())
}

#[test]
fn who_waits_for_its_provider_for_ever_need_not_be_stopped() {
    let unreachable = "virtual-node.liqo.io/unreachable";
    for (tolerations, expected) in [
        (json!([]), Guard::Fenced),
        (json!([{ "key": unreachable, "operator": "Exists", "effect": "NoExecute" }]), Guard::Waits),
        (json!([{ "operator": "Exists" }]), Guard::Waits),
        (json!([{ "key": unreachable, "operator": "Exists", "tolerationSeconds": 12 }]), Guard::Fenced),
        (
            json!([{ "operator": "Exists" }, { "key": unreachable, "operator": "Exists", "tolerationSeconds": 12 }]),
            Guard::Fenced,
        ),
        (json!([{ "key": "other", "operator": "Exists" }]), Guard::Fenced),
        (json!([{ "key": unreachable, "operator": "Exists", "effect": "NoSchedule" }]), Guard::Fenced),
    ] {
        let meta = json!({ "annotations": { "liqo.io/fenced": "true" } });
        let spec = json!({ "containers": [], "tolerations": tolerations });
        assert_eq!(guard(&meta, &spec), expected, "{spec}");
    }
}

#[test]
fn a_lease_is_renewed_for_the_first_time_when_what_lies_there_is_wanted() {
    let now = Instant::now();
    let mut tie = Tie::new(now);
    assert_eq!(tie.next(now), Next::Look);
    tie.look(false, now);
    assert_eq!(tie.next(now), Next::Wait(now + AGAIN));
    assert_eq!(tie.next(now + AGAIN), Next::Look);
    tie.look(true, now + AGAIN);
    let now = now + AGAIN;
    assert_eq!(tie.next(now), Next::Greet);
    tie.greet(Some(noted()), now);
    assert_eq!(tie.next(now), Next::Renew(noted()));
    tie.try_now(now);
    tie.renew(Some(noted()), now);
    assert_eq!(tie.next(now), Next::Wait(now + EVERY));
}

#[test]
fn a_renewal_says_what_time_it_is_at_the_provider_whatever_our_clock_says() {
    // The provider's clock is five minutes ahead of ours, or behind: ours is not asked.
    for apart in [SignedDuration::from_mins(5), SignedDuration::from_mins(-5)] {
        let (now, there) = (Instant::now(), noted() + apart);
        let mut tie = Tie::new(now);
        tie.look(true, now);
        tie.greet(Some(there), now);
        tie.try_now(now);
        tie.renew(Some(there), now);
        let later = now + EVERY;
        assert_eq!(tie.next(later), Next::Renew(there + SignedDuration::from_secs(2)));
    }
}

#[test]
fn after_a_failure_nothing_is_tried_before_the_provider_has_answered() {
    let now = Instant::now();
    let mut tie = renewed(now);
    let tried = now + EVERY;
    tie.try_now(tried);
    assert!(tie.fail(tried + after(2)));
    assert_eq!(tie.next(tried + after(2)), Next::Wait(tried + after(2) + AGAIN));
    for seconds in 3..60 {
        assert_eq!(tie.next(tried + after(seconds)), Next::Ask);
        assert!(!tie.fail(tried + after(seconds) - LATER), "it is told once");
    }
    // Nobody is in a hurry when the Lease has run out.
    tie.fail(tried + after(60));
    assert_eq!(tie.next(tried + after(60)), Next::Wait(tried + after(60) + LATER));
    // What counts is the last attempt, whatever was asked since.
    let mut ties = Ties::new(now);
    *ties.at(&"away".into()) = tie;
    assert_eq!(ties.silence("away", tried + after(60)), after(60));
}

#[test]
fn a_blip_needs_no_look_and_a_lapse_does() {
    let now = Instant::now();
    let mut tie = renewed(now);
    tie.try_now(now + EVERY);
    tie.fail(now + after(11));
    tie.answer();
    assert!(matches!(tie.next(now + after(12)), Next::Renew(_)));
    // The Lease has run out: the pods there were stopped, and may run elsewhere by now.
    assert_eq!(tie.next(now + after(16)), Next::Look);
    tie.look(true, now + after(16));
    assert!(matches!(tie.next(now + after(16)), Next::Renew(_)));
    // What was seen before something failed is not known any more.
    tie.fail(now + after(17));
    tie.answer();
    assert_eq!(tie.next(now + after(19)), Next::Look);
}

#[test]
fn whoever_was_never_renewed_by_us_may_have_been_by_somebody_before() {
    let now = Instant::now();
    let ties = Ties::new(now);
    assert_eq!(ties.silence("away", now + after(5)), after(5));
}

#[test]
fn the_wait_covers_the_lease_and_the_grace() {
    assert_eq!(SILENCE, after(25));
    assert!(SILENCE > fence::DURATION + fence::GRACE);
    // An attempt that fails is made up to a while after the link broke; then somebody must start them.
    assert!(EVERY + SILENCE <= after(27), "they run elsewhere within 30 s");
}

/// The link breaks for 10 s at any moment between two renewals, and whoever is asked meanwhile refuses or is silent: the Lease
/// is renewed before it has run out by the provider's clock, and nothing has to be looked at.
#[test]
fn an_outage_of_ten_seconds_outlasts_no_lease() {
    const ROUNDED: Duration = Duration::from_secs(1);
    for silent in [Duration::from_millis(5), Duration::from_secs(2)] {
        for cut in (1..200).map(|it| Duration::from_millis(10 * it)) {
            let begun = Instant::now();
            let mut tie = renewed(begun);
            let (cut, mended) = (begun + cut, begun + cut + after(10));
            let mut now = begun;
            let again = loop {
                match tie.next(now) {
                    Next::Wait(until) => now = until,
                    next if now >= cut && now < mended => {
                        if matches!(next, Next::Renew(_)) {
                            tie.try_now(now);
                        }
                        now += silent;
                        tie.fail(now);
                    }
                    Next::Ask => {
                        now += Duration::from_millis(5);
                        tie.answer();
                    }
                    Next::Renew(_) => break now,
                    next => panic!("{next:?} after {:?}", now - begun),
                }
            };
            assert!(again - begun < fence::DURATION - ROUNDED, "renewed after {:?}", again - begun);
        }
    }
}
