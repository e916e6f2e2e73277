//! Which policy applies.

use serde_json::json;

use super::{World, labelled, offer, peer, policy, refusal};
use crate::policy::{Cause, Policy, Verdict};
use crate::testing::list;

fn world() -> World {
    World::with_node("cpu=100, memory=100Gi, pods=100")
}

#[test]
fn without_any_policy_the_clusters_own_percentage_applies() {
    let offer = world().percentage(90).offer("x");
    assert_eq!((offer.policy, offer.resources), (None, list("cpu=90, memory=90Gi, pods=90")));
}

#[test]
fn the_most_specific_policy_wins() {
    let share = |percentage: i64| json!({"percentage": percentage});
    let world = world()
        .policy("any", json!({"share": share(10)}))
        .policy("gold", json!({"peers": {"matchLabels": {"tier": "gold"}}, "share": share(20)}))
        .policy(
            "gold-eu",
            json!({"peers": {"matchLabels": {"tier": "gold", "zone": "eu"}}, "share": share(30)}),
        )
        .policy("named", json!({"peers": {"clusterIDs": ["friend"]}, "share": share(40)}))
        .policy(
            "named-gold",
            json!({"peers": {"clusterIDs": ["friend"], "matchLabels": {"tier": "gold"}}, "share": share(50)}),
        );
    for (peer, expected) in [
        (peer("x"), "any"),
        (labelled("x", &[("tier", "silver")]), "any"),
        (labelled("x", &[("tier", "gold")]), "gold"),
        (labelled("x", &[("tier", "gold"), ("zone", "eu")]), "gold-eu"),
        (peer("friend"), "named"),
        (labelled("friend", &[("tier", "gold"), ("zone", "eu")]), "named-gold"),
    ] {
        assert_eq!(offer(world.ask_as(&peer)).policy.as_deref(), Some(expected), "{peer:?}");
    }
}

#[test]
fn among_equals_a_denial_wins_then_the_first_name() {
    let world = world().policy("b", json!({})).policy("a", json!({}));
    assert_eq!(world.offer("x").policy.as_deref(), Some("a"));
    let refusal = world.policy("z", json!({"action": "Deny"})).refusal("x");
    assert_eq!((refusal.cause, refusal.message.as_str()), (Cause::Denied, "policy z denies this cluster"));
}

#[test]
fn a_specific_permission_beats_a_general_denial_and_the_other_way_round() {
    let world = world()
        .policy("nobody", json!({"action": "Deny"}))
        .policy("gold", json!({"peers": {"matchLabels": {"tier": "gold"}}}))
        .policy("not-evil", json!({"action": "Deny", "peers": {"clusterIDs": ["evil"]}}));
    assert_eq!(world.refusal("x").cause, Cause::Denied);
    assert_eq!(offer(world.ask_as(&labelled("x", &[("tier", "gold")]))).policy.as_deref(), Some("gold"));
    let evil = refusal(world.ask_as(&labelled("evil", &[("tier", "gold")])));
    assert_eq!(evil.message, "policy not-evil denies this cluster");
}

#[test]
fn who_is_in_no_policy_is_told_what_is_lacking() {
    let gold = || world().policy("gold-only", json!({"peers": {"matchLabels": {"tier": "gold"}}}));
    let refusal = gold().refusal("x");
    assert_eq!(
        (refusal.cause, refusal.message.as_str()),
        (Cause::NotSelected, "policy gold-only needs label tier=gold")
    );

    let many = (0..5).fold(gold(), |world, index| {
        world.policy(&format!("p{index}"), json!({"peers": {"clusterIDs": ["secret-friend"]}}))
    });
    let message = many.refusal("x").message;
    assert_eq!(
        message,
        "policy gold-only needs label tier=gold; policy p0 is for other clusters; policy p1 is for other clusters; and 3 more"
    );
    assert!(!message.contains("secret-friend"));
}

#[test]
fn denials_alone_leave_the_others_to_the_clusters_own_percentage() {
    let world = world()
        .percentage(50)
        .policy("not-evil", json!({"action": "Deny", "peers": {"clusterIDs": ["evil"]}}));
    assert_eq!(world.offered("x"), list("cpu=50, memory=50Gi"));
    assert_eq!(world.refusal("evil").cause, Cause::Denied);
}

#[test]
fn approval_is_asked_for_once() {
    let world = world().policy("careful", json!({"approval": "Required"}));
    match world.ask("x").verdict {
        Verdict::NeedsApproval(reason) => {
            assert_eq!(reason, "policy careful needs somebody's approval for this cluster");
        }
        other => panic!("{other:?}"),
    }
    let mut approved = peer("x");
    approved.approved = true;
    assert_eq!(offer(world.ask_as(&approved)).policy.as_deref(), Some("careful"));
}

#[test]
fn a_policy_with_a_mistake_refuses_instead_of_opening_what_was_closed() {
    let broken = |spec: serde_json::Value| Policy::read("broken", &serde_json::from_value(spec).unwrap());
    let mut world = world().percentage(90);
    world.policies.push(broken(json!({"share": {"percentage": 900}})));
    let refusal = world.refusal("x");
    assert_eq!(refusal.cause, Cause::InvalidPolicy);
    assert_eq!(
        refusal.message,
        "policy broken is not valid: spec.share.percentage: is 900; must be 0 to 100"
    );

    // Whom it is about can be read: others are refused as well, because their permission is what is missing.
    world.policies = vec![broken(json!({"peers": {"clusterIDs": ["y"]}, "share": {"percentage": -1}}))];
    assert_eq!(world.refusal("x").cause, Cause::NotSelected);
    assert_eq!(world.refusal("y").cause, Cause::InvalidPolicy);

    // Whom it is about cannot be read: it steps back behind every other policy.
    world.policies = vec![
        broken(json!({"peers": {"clusterIDs": ["NO!"]}})),
        policy("named", &json!({"peers": {"clusterIDs": ["x"]}})),
    ];
    assert_eq!(world.offer("x").policy.as_deref(), Some("named"));
    assert_eq!(world.refusal("y").cause, Cause::InvalidPolicy);

    // A broken denial does not open the cluster's own percentage either.
    world.policies =
        vec![broken(json!({"action": "Deny", "peers": {"clusterIDs": ["y"]}, "enforcement": "Kind"}))];
    assert_eq!(world.refusal("x").cause, Cause::NotSelected);
}

#[test]
fn outside_its_time_a_policy_gives_way_to_another_policy_only() {
    let night = json!([{"from": "20:00", "to": "06:00"}]);
    let (noon, midnight) = ("2026-07-01T12:00:00Z", "2026-07-01T00:00:00Z");
    let alone =
        world().percentage(90).policy("night", json!({"windows": night, "share": {"percentage": 80}}));
    assert_eq!(alone.clone().at(midnight).offered("x"), list("cpu=80, memory=80Gi"));
    let refusal = alone.clone().at(noon).refusal("x");
    assert_eq!(refusal.cause, Cause::OutsideTime);
    assert_eq!(refusal.message, "policy night shares only 20:00-06:00 UTC; next from 2026-07-01T20:00:00Z");

    let day = json!([{"from": "06:00", "to": "20:00"}]);
    let both = alone.policy("day", json!({"windows": day, "share": {"percentage": 20}}));
    assert_eq!(both.clone().at(noon).offered("x"), list("cpu=20, memory=20Gi"));
    assert_eq!(both.at(midnight).offered("x"), list("cpu=80, memory=80Gi"));

    let gold =
        json!({"peers": {"matchLabels": {"tier": "gold"}}, "windows": night, "share": {"percentage": 80}});
    let general = world().policy("gold-night", gold).policy("any", json!({"share": {"percentage": 20}}));
    let gold = labelled("x", &[("tier", "gold")]);
    let evaluation = general.clone().at(noon).ask_as(&gold);
    let said: Vec<String> = evaluation.lines.iter().map(ToString::to_string).collect();
    assert!(said[0].starts_with("policy gold-night shares only 20:00-06:00 UTC; next from"), "{said:#?}");
    assert_eq!(offer(evaluation).policy.as_deref(), Some("any"));
    assert_eq!(offer(general.at(midnight).ask_as(&gold)).policy.as_deref(), Some("gold-night"));
}

#[test]
fn a_denial_outside_its_time_denies_nothing() {
    let office = json!({"action": "Deny", "windows": [{"from": "08:00", "to": "18:00"}]});
    let world = world().percentage(30).policy("office", office);
    assert_eq!(world.clone().at("2026-07-01T12:00:00Z").refusal("x").cause, Cause::Denied);
    assert_eq!(world.at("2026-07-01T19:00:00Z").offered("x"), list("cpu=30, memory=30Gi"));
}

#[test]
fn a_policy_that_ended_does_not_open_the_clusters_own_percentage() {
    let world = world().percentage(90).policy("this-year", json!({"notAfter": "2027-01-01T00:00:00Z"}));
    assert_eq!(world.offer("x").ends, Some(crate::testing::time("2027-01-01T00:00:00Z")));
    let refusal = world.clone().at("2027-01-01T00:00:00Z").refusal("x");
    assert_eq!(
        (refusal.cause, refusal.message.as_str()),
        (Cause::OutsideTime, "policy this-year ended at 2027-01-01T00:00:00Z")
    );

    let later = super::World { policies: Vec::new(), ..world }
        .policy("soon", json!({"notBefore": "2026-08-01T00:00:00Z"}));
    assert_eq!(later.refusal("x").message, "policy soon shares from 2026-08-01T00:00:00Z");
    assert_eq!(later.at("2026-08-01T00:00:00Z").offer("x").policy.as_deref(), Some("soon"));
}
