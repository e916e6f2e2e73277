//! What becomes of ShadowPods.

use serde_json::json;

use super::*;
use crate::index::testing::{World, sized};

fn world() -> World {
    let agreed = &[("cpu", "2"), ("memory", "4Gi"), ("pods", "3")];
    let mut world = World::new().consumer("milan", agreed).map(
        "milan",
        "map",
        &[("shop", "shop-milan"), ("blog", "blog-milan")],
    );
    world.build("shop-milan");
    world.build("blog-milan");
    world
}

fn deed(world: &World, key: &Key) -> Option<Deed> {
    plan(&world.index, key, world.now)
}

fn refusal(world: &World, key: &Key) -> Refusal {
    match deed(world, key) {
        Some(Deed::Refuse(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_shadow_becomes_a_pod_that_is_owned_by_it() {
    let mut world = world();
    let key = world.shadow("shop-milan/web", &sized("100m"), &json!({}));
    let Some(Deed::Create { pod, beyond: None, .. }) = deed(&world, &key) else { panic!() };
    let owner = &pod.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.uid.as_str(), owner.controller),
        ("ShadowPod", "shadow-web", Some(true))
    );
    assert_eq!(pod.metadata.labels.as_ref().unwrap()["liqo.io/managed-by"], "shadowpod");
    world.pod(&key, "100m", "Running", false);
    assert_eq!(deed(&world, &key), None);
}

#[test]
fn outside_the_namespaces_of_consumers_nothing_is_made() {
    let mut world = world().namespace("payroll");
    let key = world.shadow("payroll/web", &sized("1m"), &json!({}));
    assert_eq!(deed(&world, &key), None);
    let key = world.shadow("nowhere/web", &sized("1m"), &json!({}));
    assert_eq!(deed(&world, &key), None);
}

#[test]
fn a_pod_without_its_shadow_goes() {
    let mut world = world();
    let key = World::key("shop-milan/web");
    world.pod(&key, "1m", "Running", false);
    assert_eq!(deed(&world, &key), Some(Deed::Delete { uid: "pod-web".to_owned() }));
    world.pod(&key, "1m", "Running", true);
    assert_eq!(deed(&world, &key), None);
}

#[test]
fn a_pod_of_an_earlier_shadow_goes_first() {
    let mut world = world();
    let key = world.shadow("shop-milan/web", &sized("1m"), &json!({}));
    world.pod(&key, "1m", "Running", false);
    let mut other = world.index.shadows.get(&key).unwrap().clone();
    other.uid = "another".into();
    liqo_kit::Index::apply(&mut world.index, &key, other);
    assert_eq!(deed(&world, &key), Some(Deed::Delete { uid: "pod-web".to_owned() }));
}

#[test]
fn what_came_to_its_end_is_noted_and_not_made_again() {
    for (restarts, phase, deleting, ends) in [
        ("Never", "Succeeded", false, true),
        ("Never", "Failed", true, true),
        ("OnFailure", "Succeeded", true, true),
        ("Always", "Failed", false, true),
        // Its node was drained.
        ("Always", "Failed", true, false),
        ("Always", "Succeeded", true, false),
        ("Never", "Running", true, false),
    ] {
        let mut world = world();
        let mut spec = sized("1m");
        spec["restartPolicy"] = json!(restarts);
        let key = world.shadow("shop-milan/job", &spec, &json!({}));
        world.pod(&key, "1m", phase, deleting);
        let noted = matches!(deed(&world, &key), Some(Deed::Finish { .. }));
        assert_eq!(noted, ends, "{restarts} {phase} {deleting}");
        // It vanishes before that could be noted.
        liqo_kit::Index::<PodFacts>::delete(&mut world.index, &key);
        let noted = matches!(deed(&world, &key), Some(Deed::Finish { .. }));
        assert_eq!(noted, ends, "{restarts} {phase} {deleting}");
        let key = world.shadow("shop-milan/job", &spec, &json!({ "phase": "Succeeded" }));
        assert_eq!(deed(&world, &key), None);
    }
}

#[test]
fn the_contract_counts_over_all_namespaces_and_what_is_being_made() {
    let mut world = world();
    let one = world.shadow("shop-milan/one", &sized("1500m"), &json!({}));
    let two = world.shadow("blog-milan/two", &sized("1500m"), &json!({}));
    assert!(matches!(deed(&world, &two), Some(Deed::Create { .. })));
    let requests = std::sync::Arc::clone(&world.index.shadows.get(&one).unwrap().requests);
    world.index.ledger.reserve(&one, World::peer("milan"), requests, world.now);
    assert_eq!(deed(&world, &one), None, "it is being made");
    let refused = refusal(&world, &two);
    assert_eq!(refused.reason, QUOTA_EXCEEDED);
    // Seen, it counts once.
    world.pod(&one, "1500m", "Pending", false);
    let used = world.index.ledger.used(&World::peer("milan")).clone();
    assert_eq!(
        (used.amount("cpu").to_string(), used.amount("pods").to_string()),
        ("1500m".into(), "1".into())
    );
    assert_eq!(refusal(&world, &two), refused, "the words stay the same");
    // What has ended takes nothing.
    world.pod(&one, "1500m", "Succeeded", false);
    assert!(matches!(deed(&world, &two), Some(Deed::Create { .. })));
    assert!(world.index.ledger.used(&World::peer("milan")).is_zero());
}

#[test]
fn what_a_pod_takes_is_what_the_pod_says_and_not_its_shadow() {
    let mut world = world();
    let one = world.shadow("shop-milan/one", &sized("1500m"), &json!({}));
    world.pod(&one, "1500m", "Running", false);
    // The consumer makes its wish smaller; what runs is as large as before.
    world.shadow("shop-milan/one", &sized("1m"), &json!({}));
    let two = world.shadow("blog-milan/two", &sized("1500m"), &json!({}));
    assert_eq!(refusal(&world, &two).reason, QUOTA_EXCEEDED);
}

#[test]
fn a_limit_alone_is_a_request_and_negative_amounts_make_no_room() {
    let mut world = world();
    let limit = json!({ "containers": [{ "name": "main", "resources": { "limits": { "cpu": "3" } } }] });
    let key = world.shadow("shop-milan/limit", &limit, &json!({}));
    assert_eq!(refusal(&world, &key).reason, QUOTA_EXCEEDED);
    let minus = json!({ "containers": [
        { "name": "a", "resources": { "requests": { "cpu": "-5" } } },
        { "name": "b", "resources": { "requests": { "cpu": "3" } } },
    ] });
    let key = world.shadow("shop-milan/minus", &minus, &json!({}));
    assert_eq!(refusal(&world, &key).reason, QUOTA_EXCEEDED);
}

#[test]
fn a_soft_contract_lets_more_in_and_says_so() {
    let mut world = world();
    world.contract("milan", &[("cpu", "1")], Enforcement::Soft);
    let key = world.shadow("shop-milan/large", &sized("2"), &json!({}));
    let Some(Deed::Create { beyond: Some(beyond), .. }) = deed(&world, &key) else { panic!() };
    assert_eq!(beyond.reason, QUOTA_EXCEEDED);
}

#[test]
fn what_was_told_is_not_told_again() {
    let mut world = world();
    let bad = json!({ "containers": [{ "name": "main" }], "hostNetwork": true });
    let key = world.shadow("shop-milan/bad", &bad, &json!({}));
    let refused = refusal(&world, &key);
    assert_eq!(refused.reason, FORBIDDEN);
    let condition = json!({ "conditions": [{
        "type": "Created", "status": "False", "reason": refused.reason, "message": refused.message,
        "lastTransitionTime": "2026-01-02T03:04:05Z" }] });
    let key = world.shadow("shop-milan/bad", &bad, &condition);
    assert_eq!(deed(&world, &key), None);
    // Once there is a pod, what was told is taken back.
    world.shadow("shop-milan/bad", &sized("1m"), &condition);
    world.pod(&key, "1m", "Pending", false);
    assert_eq!(deed(&world, &key), Some(Deed::Admit));
}

#[test]
fn what_makes_no_sense_is_told() {
    for nonsense in [
        json!({ "containers": [{ "name": "main", "ports": "all" }] }),
        json!({ "containers": [{ "name": "main" }], "volumes": "many" }),
        json!({ "containers": [{ "name": "main" }], "terminationGracePeriodSeconds": "soon" }),
    ] {
        let mut world = world();
        let key = world.shadow("shop-milan/odd", &nonsense, &json!({}));
        assert_eq!(refusal(&world, &key).reason, INVALID, "{nonsense}");
    }
}

#[test]
fn a_pod_that_was_refused_waits_before_it_is_tried_again() {
    let mut world = world();
    let key = world.shadow("shop-milan/web", &sized("1m"), &json!({}));
    let said = Refusal::new(FORBIDDEN, "violates PodSecurity");
    world.index.memory.fail(&key, said.clone(), world.now);
    assert_eq!(refusal(&world, &key), said);
    let next = world.index.memory.next().unwrap();
    assert!(world.index.memory.take_due(world.now).is_empty());
    world.now = next;
    assert_eq!(world.index.memory.take_due(world.now), std::slice::from_ref(&key));
    assert!(world.index.memory.take_due(world.now).is_empty());
    assert!(matches!(deed(&world, &key), Some(Deed::Create { .. })));
    // The second time it waits longer; another wish begins anew.
    world.index.memory.fail(&key, said, world.now);
    let wait = |world: &World| world.index.memory.next().unwrap().duration_since(world.now);
    let second = wait(&world);
    assert!(second > next.duration_since(Timestamp::from_second(1_000_000).unwrap()));
    world.shadow("shop-milan/web", &sized("2m"), &json!({}));
    assert!(matches!(deed(&world, &key), Some(Deed::Create { .. })));
}
