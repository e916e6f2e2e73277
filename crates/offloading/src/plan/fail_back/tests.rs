use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use liqo_api::outage::Outage;
use serde_json::{Value, json};

use super::*;
use crate::index::Subject;
use crate::plan::plan;
use crate::testing::World;

const FAIL_BACK: &str = "liqo.io/fail-back";

/// A namespace at milan, which was away for 40 seconds and is back.
fn back(said: &str) -> (World, Outage) {
    let mut world = World::new().with_provider("milan", &[("tier", "gold")]);
    world.offload("shop", &json!({}));
    world.annotate("shop", FAIL_BACK, said);
    world.settle();
    world.unreachable("milan");
    world.settle();
    let outage = world.back_after("milan", 40);
    world.settle();
    (world, outage)
}

fn the_return(world: &World) -> Return {
    let all = returns(&world.view());
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap()
}

fn wake(world: &World) -> Option<Timestamp> {
    plan(&world.view(), &Subject::Namespace("shop".into())).wake
}

#[test]
fn a_provider_must_be_steady_first() {
    let (mut world, outage) = back("true");
    assert!(returns(&world.view()).is_empty());
    assert_eq!(wake(&world), Some(later(outage.until, SignedDuration::from_secs(60))));
    world.pass(59);
    assert!(returns(&world.view()).is_empty());
    world.pass(1);
    let back = the_return(&world);
    assert_eq!((back.namespace.as_ref(), back.called.as_str(), back.since), ("shop", "milan", outage.until));
    // Pods wait 12 s for a provider if nothing else is said.
    assert_eq!(back.made, (outage.from, later(outage.until, SignedDuration::from_secs(12))));
    assert_eq!(wake(&world), None);
}

#[test]
fn nothing_goes_back_unasked_or_to_one_that_is_away_not_chosen_or_not_to_be_used() {
    for said in ["false", "soon"] {
        let (mut world, _) = back(said);
        world.pass(3600);
        assert!(returns(&world.view()).is_empty(), "{said}");
    }
    let (mut world, _) = back("20");
    world.pass(20);
    the_return(&world);
    world.cordon("milan", true);
    assert!(returns(&world.view()).is_empty());
    world.cordon("milan", false);
    the_return(&world);
    world.change(
        "shop",
        &json!({ "clusterSelector": { "nodeSelectorTerms": [{ "matchExpressions": [
        { "key": "tier", "operator": "NotIn", "values": ["gold"] }] }] } }),
    );
    assert!(returns(&world.view()).is_empty());
    world.change("shop", &json!({ "clusterSelector": null }));
    the_return(&world);
    world.unreachable("milan");
    assert!(returns(&world.view()).is_empty());
}

#[test]
fn one_that_was_never_away_gets_nobody_back() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    world.annotate("shop", FAIL_BACK, "true");
    world.settle();
    world.pass(3600);
    assert!(returns(&world.view()).is_empty());
    assert_eq!(wake(&world), None);
}

#[test]
fn a_value_that_makes_no_sense_is_told() {
    let (world, _) = back("soon");
    let valid = world.valid("shop");
    assert_eq!((valid.status.as_str(), valid.reason.as_str()), ("False", "InvalidFailBack"));
    assert!(valid.message.contains("\"soon\""), "{}", valid.message);
    assert!(world.events().iter().any(|it| it.contains("InvalidFailBack")), "{:?}", world.events());
}

#[test]
fn what_is_made_when_the_first_leaves_is_outside_whatever_was_said() {
    // Pods that wait for long, and a provider that need not be steady for long.
    let (mut world, outage) = back("10");
    world.annotate("shop", "liqo.io/failover", "3600");
    world.settle();
    world.pass(10);
    assert_eq!(the_return(&world).made.1, later(outage.until, SignedDuration::from_secs(5)));
}

/// A pod at home, made so many seconds after the outage began, with something changed.
fn pod(outage: Outage, name: &str, seconds: i64, change: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {
            "name": name, "labels": { "liqo.io/shadowPod": "true" },
            "creationTimestamp": Time(later(outage.from, SignedDuration::from_secs(seconds))),
            "ownerReferences": [{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "shop", "uid": "1", "controller": true }],
        },
        "spec": { "nodeName": "home-1", "containers": [] },
        "status": { "phase": "Running" },
    });
    for (path, value) in change.as_object().unwrap() {
        let (parent, key) = path.rsplit_once('.').unwrap();
        pod[parent][key] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

#[test]
fn pods_made_elsewhere_meanwhile_go_back_the_oldest_first() {
    let (mut world, outage) = back("true");
    world.pass(60);
    let back = the_return(&world);
    let nothing = json!({});
    let pods = [("late", 51), ("b", 20), ("a", 20), ("oldest", 0), ("before", -1), ("after", 52)];
    let pods = pods.map(|(name, second)| pod(outage, name, second, &nothing));
    let names: Vec<_> = going_back(&back, pods.to_vec()).iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["oldest", "a", "b", "late"]);
}

#[test]
fn who_would_not_be_made_anew_or_not_there_stays() {
    let (mut world, outage) = back("true");
    world.pass(60);
    let back = the_return(&world);
    let owner = |kind: &str| json!([{ "apiVersion": "v1", "kind": kind, "name": "x", "uid": "1", "controller": true }]);
    let claim = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    let ssd = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "disk", "operator": "Exists" }] }] } } });
    for (what, change) in [
        ("nobody's", json!({ "metadata.ownerReferences": [] })),
        ("a DaemonSet's", json!({ "metadata.ownerReferences": owner("DaemonSet") })),
        ("a Job's", json!({ "metadata.ownerReferences": owner("Job") })),
        (
            "a StatefulSet's with a claim",
            json!({ "metadata.ownerReferences": owner("StatefulSet"), "spec.volumes": claim }),
        ),
        ("a Deployment's with a claim", json!({ "spec.volumes": claim })),
        ("one that must stay at home", json!({ "metadata.labels": {} })),
        ("one that runs there", json!({ "spec.nodeName": "liqo-milan" })),
        ("one that has no node", json!({ "spec.nodeName": null })),
        ("one that leaves", json!({ "metadata.deletionTimestamp": Time(outage.until) })),
        ("one that has ended", json!({ "status.phase": "Failed" })),
        ("one that wants other nodes", json!({ "spec.nodeSelector": { "tier": "silver" } })),
        ("one that needs other nodes", json!({ "spec.affinity": ssd })),
    ] {
        assert!(going_back(&back, vec![pod(outage, "p", 5, &change)]).is_empty(), "{what}");
    }
    for (what, change) in [
        ("a StatefulSet's", json!({ "metadata.ownerReferences": owner("StatefulSet") })),
        ("one at another provider", json!({ "spec.nodeName": "liqo-rome" })),
        ("one that wants such nodes", json!({ "spec.nodeSelector": { "tier": "gold" } })),
    ] {
        assert_eq!(going_back(&back, vec![pod(outage, "p", 5, &change)]).len(), 1, "{what}");
    }
}
