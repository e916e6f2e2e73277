//! What is changed of pods that run.

use serde_json::json;

use super::*;
use crate::index::testing::{World, sized};
use crate::pods::{FORBIDDEN, QUOTA_EXCEEDED, plan};

const KEY: &str = "shop-milan/web";

fn world() -> World {
    let agreed = &[("cpu", "2"), ("memory", "4Gi"), ("pods", "3")];
    let mut world = World::new().consumer("milan", agreed).map("milan", "map", &[("shop", "shop-milan")]);
    world.build("shop-milan");
    world
}

/// A world with a pod that was made from this specification.
fn hosting(spec: &Value) -> (World, Key) {
    let mut world = world();
    let key = world.shadow(KEY, spec, &json!({}));
    let Some(Deed::Create { pod, .. }) = deed(&world, &key) else { panic!() };
    world.make(&key, &pod);
    assert_eq!(deed(&world, &key), None);
    (world, key)
}

fn deed(world: &World, key: &Key) -> Option<Deed> {
    plan(&world.index, key, world.now)
}

fn change(world: &World, key: &Key) -> Change {
    match deed(world, key) {
        Some(Deed::Change(change)) => *change,
        other => panic!("{other:?}"),
    }
}

fn denied(world: &World, key: &Key) -> Refusal {
    match deed(world, key) {
        Some(Deed::Deny { refusal, pod }) if pod == "pod-web" => refusal,
        other => panic!("{other:?}"),
    }
}

/// The ShadowPod with other labels and annotations.
fn relabel(world: &mut World, key: &Key, labels: &[(&str, &str)], annotations: &[(&str, &str)]) {
    let mut shadow = world.index.shadows.get(key).unwrap().clone();
    shadow.labels = labels.iter().copied().collect();
    shadow.annotations = annotations.iter().copied().collect();
    liqo_kit::Index::apply(&mut world.index, key, shadow);
}

#[test]
fn labels_and_annotations_come_and_go_as_at_home() {
    let (mut world, key) = hosting(&sized("100m"));
    relabel(&mut world, &key, &[("tier", "front")], &[("note", "new")]);
    let change = change(&world, &key);
    assert_eq!((change.part, change.uid.as_str()), (Part::Object, "pod-web"));
    let metadata = &change.patch["metadata"];
    assert_eq!(metadata["labels"]["tier"], "front");
    // That of the shadow as it was goes; those of ours, and of others, stay.
    assert_eq!(metadata["labels"].get("app"), Some(&Value::Null));
    assert_eq!(metadata["labels"]["liqo.io/managed-by"], "shadowpod");
    assert_eq!(metadata["annotations"]["note"], "new");
    assert!(metadata["annotations"][PASSED_METADATA].as_str().unwrap().contains("note"));
    assert_eq!(change.patch.get("spec"), None);
}

#[test]
fn a_digest_of_what_the_consumer_wants_is_not_passed_on() {
    let (mut world, key) = hosting(&sized("100m"));
    let content = liqo_api::annotations::CONTENT;
    relabel(&mut world, &key, &[("app", "web")], &[(content, "abc"), (PASSED_SPEC, "forged")]);
    assert_eq!(deed(&world, &key), None);
}

#[test]
fn an_ephemeral_container_is_put_into_the_pod_and_only_that() {
    let (mut world, key) = hosting(&sized("100m"));
    let mut spec = sized("100m");
    spec["ephemeralContainers"] = json!([{ "name": "debugger", "image": "busybox", "stdin": true, "tty": true,
        "targetContainerName": "main", "resources": { "requests": { "cpu": "64" } } }]);
    world.shadow(KEY, &spec, &json!({}));
    let change = change(&world, &key);
    assert_eq!(change.part, EPHEMERAL);
    let containers = change.patch["spec"]["ephemeralContainers"].as_array().unwrap();
    let expected = json!({ "name": "debugger", "image": "busybox", "stdin": true, "tty": true,
        "targetContainerName": "main" });
    assert_eq!(containers, &[expected]);
}

#[test]
fn a_hostile_ephemeral_container_is_refused_and_the_pod_goes_on() {
    for (field, value) in [
        ("securityContext", json!({ "privileged": true })),
        ("securityContext", json!({ "windowsOptions": { "hostProcess": true } })),
        ("ports", json!([{ "containerPort": 1, "hostPort": 1 }])),
    ] {
        let (mut world, key) = hosting(&sized("100m"));
        let mut spec = sized("100m");
        spec["ephemeralContainers"] = json!([{ "name": "debugger", "image": "busybox", field: value }]);
        world.shadow(KEY, &spec, &json!({}));
        assert_eq!(denied(&world, &key).reason, FORBIDDEN, "{field}");
    }
}

#[test]
fn images_deadline_and_further_tolerations_are_changed() {
    let (mut world, key) = hosting(&sized("100m"));
    let mut spec = sized("100m");
    spec["containers"][0]["image"] = json!("app:2");
    spec["activeDeadlineSeconds"] = json!(30);
    spec["tolerations"] = json!([
        { "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5 },
        { "key": "control-plane", "operator": "Exists" },
    ]);
    world.shadow(KEY, &spec, &json!({}));
    let change = change(&world, &key);
    assert_eq!(change.part, Part::Object);
    let patch = &change.patch["spec"];
    assert_eq!(patch["containers"], json!([{ "name": "main", "image": "app:2" }]));
    assert_eq!(patch["activeDeadlineSeconds"], 30);
    // Nothing that a consumer may not say, and nothing is taken away.
    assert_eq!(patch["tolerations"].as_array().unwrap().len(), 1);
    assert_eq!(patch["tolerations"][0]["tolerationSeconds"], 5);
    let passed = &change.patch["metadata"]["annotations"][PASSED_SPEC];
    assert_eq!(passed, &json!(world.index.shadows.get(&key).unwrap().changeable));
}

#[test]
fn a_pod_grows_as_far_as_the_contract_allows() {
    let (mut world, key) = hosting(&sized("500m"));
    world.shadow(KEY, &sized("2"), &json!({}));
    let change = change(&world, &key);
    assert_eq!(change.part, RESIZE);
    let (peer, growth) = change.growth.unwrap();
    assert_eq!(growth.amount("cpu").to_string(), "1500m");
    // Counted before it is done: nobody else gets the same.
    world.index.ledger.grow(&key, peer, growth, world.now);
    assert_eq!(deed(&world, &key), None);
    let other = world.shadow("shop-milan/other", &sized("100m"), &json!({}));
    assert!(matches!(deed(&world, &other), Some(Deed::Refuse(it)) if it.reason == QUOTA_EXCEEDED));
    // What the kubelet says meanwhile changes nothing about it.
    let mut seen = world.index.pods.get(&key).unwrap().clone();
    liqo_kit::Index::apply(&mut world.index, &key, seen.clone());
    assert!(world.index.ledger.is_growing(&key));
    let shadow = world.index.shadows.get(&key).unwrap();
    (seen.requests, seen.sizes) = (std::sync::Arc::clone(&shadow.requests), shadow.sizes.clone());
    liqo_kit::Index::apply(&mut world.index, &key, seen);
    assert!(!world.index.ledger.is_growing(&key));
    let used = world.index.ledger.used(&World::peer("milan")).amount("cpu").to_string();
    assert_eq!((deed(&world, &key), used.as_str()), (None, "2"));
}

#[test]
fn a_pod_that_would_exceed_the_contract_stays_as_it_is_and_that_is_told_once() {
    let (mut world, key) = hosting(&sized("500m"));
    world.shadow(KEY, &sized("2500m"), &json!({}));
    let refusal = denied(&world, &key);
    assert_eq!(refusal.reason, QUOTA_EXCEEDED);
    assert!(refusal.message.starts_with("the pod stays as it is: "), "{}", refusal.message);
    let told = json!({ "conditions": [{ "type": "UpToDate", "status": "False", "reason": refusal.reason,
        "message": refusal.message, "lastTransitionTime": "2026-01-02T03:04:05Z" }] });
    world.shadow(KEY, &sized("2500m"), &told);
    assert_eq!(deed(&world, &key), None);
    // It is taken back once nothing is wrong any more.
    world.shadow(KEY, &sized("500m"), &told);
    assert_eq!(deed(&world, &key), Some(Deed::Reconcile));
    world.contract("milan", &[("cpu", "3")], Enforcement::Hard);
    world.shadow(KEY, &sized("2500m"), &told);
    assert_eq!(change(&world, &key).part, RESIZE);
}

#[test]
fn a_pod_becomes_smaller_whatever_the_contract_says() {
    let (mut world, key) = hosting(&sized("1"));
    world.contract("milan", &[("cpu", "100m")], Enforcement::Hard);
    world.shadow(KEY, &sized("500m"), &json!({}));
    let change = change(&world, &key);
    assert_eq!((change.part, change.growth), (RESIZE, None));
}

#[test]
fn under_a_soft_contract_it_grows_and_that_is_told() {
    let (mut world, key) = hosting(&sized("1"));
    world.contract("milan", &[("cpu", "1")], Enforcement::Soft);
    world.shadow(KEY, &sized("2"), &json!({}));
    let change = change(&world, &key);
    assert_eq!(change.beyond.unwrap().reason, QUOTA_EXCEEDED);
}

#[test]
fn what_the_api_server_refused_is_told_and_tried_again_later_or_when_something_else_is_wanted() {
    let (mut world, key) = hosting(&sized("100m"));
    let mut spec = sized("100m");
    spec["containers"][0]["image"] = json!("app:2");
    world.shadow(KEY, &spec, &json!({}));
    world.index.memory.fail(&key, Refusal::new(FORBIDDEN, "no such images here"), world.now);
    assert!(denied(&world, &key).message.ends_with("no such images here"));
    spec["containers"][0]["image"] = json!("app:3");
    world.shadow(KEY, &spec, &json!({}));
    assert_eq!(change(&world, &key).patch["spec"]["containers"][0]["image"], "app:3");
}

#[test]
fn a_pod_that_ends_is_not_changed() {
    let (mut world, key) = hosting(&sized("100m"));
    world.pod(&key, "100m", "Running", true);
    world.shadow(KEY, &sized("200m"), &json!({}));
    assert_eq!(deed(&world, &key), None);
}

#[test]
fn a_pod_that_vanished_is_counted_before_it_is_made_again() {
    let (mut world, key) = hosting(&sized("100m"));
    liqo_kit::Index::<PodFacts>::delete(&mut world.index, &key);
    let Some(Deed::Count { pod, recreations: 1, pause }) = deed(&world, &key) else { panic!() };
    assert_eq!((pod.as_str(), pause.is_zero()), ("pod-web", true));
    let counted = json!({ "recreations": 1, "podUID": "pod-web" });
    world.shadow(KEY, &sized("100m"), &counted);
    assert!(matches!(deed(&world, &key), Some(Deed::Create { .. })));
    // Whoever leads next finds the count, and does not count again.
    world.index.memory = crate::index::Memory::default();
    assert!(matches!(deed(&world, &key), Some(Deed::Create { .. })));
}

#[test]
fn a_pod_that_vanishes_again_and_again_waits() {
    let (mut world, key) = hosting(&sized("100m"));
    world.shadow(KEY, &sized("100m"), &json!({ "recreations": 4, "podUID": "an-earlier-one" }));
    liqo_kit::Index::<PodFacts>::delete(&mut world.index, &key);
    let Some(Deed::Count { recreations: 5, pause, .. }) = deed(&world, &key) else { panic!() };
    assert_eq!(pause.as_secs(), 8);
    world.index.memory.hold(&key, world.now + pause);
    world.shadow(KEY, &sized("100m"), &json!({ "recreations": 5, "podUID": "pod-web" }));
    assert_eq!(deed(&world, &key), None);
    world.now = world.index.memory.next().unwrap();
    assert_eq!(world.index.memory.take_due(world.now), std::slice::from_ref(&key));
    assert!(matches!(deed(&world, &key), Some(Deed::Create { .. })));
}
