use std::collections::BTreeMap;

use kube::api::DynamicObject;
use liqo_api::NamespaceOffloading;
use liqo_api::namespace_offloading::{ConditionStatus, KindName};
use serde_json::{Value, json};

use super::report::{Side, State, told};
use super::wishes::Wish;
use super::*;

const ROUTE: Route<'static> =
    Route { home: "home", provider: "away", namespace: "shop", remote: "shop-home-1", storage_class: None };

fn widgets() -> KindName {
    KindName { group: "example.com".into(), kind: "Widget".into() }
}

fn kind() -> CustomKind {
    CustomKind::noted(&widgets(), "v1", "widgets")
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

fn widget() -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {
            "name": "w", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": 3,
            "labels": { "app": "shop", "virtualkubelet.liqo.io/origin": "somebody" },
            "annotations": { "note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
            "finalizers": ["example.com/keep"],
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-2" }],
        },
        "spec": { "size": 3 }, "status": { "ready": true },
    })
}

#[test]
fn a_copy_has_what_its_owner_said_and_nothing_of_this_cluster() {
    let here = read_here(object(widget())).unwrap();
    let copy = forge(kind(), &here, &ROUTE).unwrap();
    assert_eq!((&copy["apiVersion"], &copy["kind"]), (&json!("example.com/v1"), &json!("Widget")));
    assert_eq!(copy["spec"], json!({ "size": 3 }));
    assert_eq!(copy.get("status"), None, "each side tells its own");
    let meta = &copy["metadata"];
    assert_eq!((&meta["name"], &meta["namespace"]), (&json!("w"), &json!("shop-home-1")));
    assert_eq!(meta["labels"]["virtualkubelet.liqo.io/origin"], "home");
    assert_eq!(meta["annotations"]["note"], "n");
    for field in ["uid", "resourceVersion", "generation", "finalizers", "ownerReferences"] {
        assert_eq!(meta.get(field), None, "{field}");
    }
    // What was written is recognised: nothing is written again.
    let there = read_there(object(copy));
    assert_eq!(*there.content, *content(&here.digest, &ROUTE));
    assert_eq!(there.origin.as_deref(), Some("home"));
}

#[test]
fn a_change_of_the_status_alone_is_no_change() {
    let before = read_here(object(widget())).unwrap();
    let mut changed = widget();
    changed["status"] = json!({ "ready": false });
    changed["metadata"]["resourceVersion"] = json!("8");
    assert_eq!(read_here(object(changed.clone())).unwrap(), before);
    changed["spec"]["size"] = json!(4);
    assert_ne!(read_here(object(changed)).unwrap().digest, before.digest);
}

#[test]
fn what_should_stay_at_home_does() {
    let mut kept = widget();
    kept["metadata"]["annotations"]["liqo.io/skip-reflection"] = json!("true");
    assert_eq!(read_here(object(kept)), None);
}

#[test]
fn kinds_are_the_same_if_all_of_them_is() {
    assert_eq!(kind(), kind());
    assert_ne!(kind(), CustomKind::noted(&widgets(), "v2", "widgets"));
    assert_eq!(kind().title(), "widgets.example.com");
    let mut both = [CustomKind::noted(&widgets(), "v2", "widgets"), kind()];
    both.sort();
    assert_eq!(both[0], kind());
}

fn offloading(value: &Value) -> NamespaceOffloading {
    let mut all = json!({ "apiVersion": "offloading.liqo.io/v1alpha1", "kind": "NamespaceOffloading",
        "metadata": { "name": "offloading", "namespace": "shop", "resourceVersion": "5" } });
    all.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

#[test]
fn kinds_that_were_wanted_once_are_remembered_until_they_are_gone() {
    assert_eq!(Wish::read(offloading(&json!({ "spec": {} }))), None);
    let left = told(&widgets(), Some(kind()), State::Leaving);
    let wish = Wish::read(offloading(&json!({
        "spec": { "reflect": [{ "group": "example.com", "kind": "Gadget" }] }, "status": { "reflected": [left] },
    })));
    let wish = wish.unwrap();
    let kinds: Vec<_> = wish.kinds().iter().map(ToString::to_string).collect();
    assert_eq!(kinds, ["example.com/Gadget", "example.com/Widget"]);
    assert!(!wish.wanted.contains(&widgets()));
    assert_eq!(wish.said(&widgets()).unwrap().plural.as_deref(), Some("widgets"));
}

#[test]
fn the_owner_is_told_where_a_kind_is_and_why_not_elsewhere() {
    let state = |here: Side, there: &[(&str, Side)]| {
        let there: BTreeMap<_, _> = there.iter().map(|(of, side)| ((*of).to_owned(), side.clone())).collect();
        told(&widgets(), Some(kind()), State::Wanted { here, there })
    };
    let well = state(Side::Seen, &[("milan", Side::Seen)]);
    assert_eq!((well.status, well.reason.as_str()), (ConditionStatus::True, "Reflected"));
    let soon = state(Side::Seen, &[("milan", Side::Waiting)]);
    assert_eq!((soon.status, soon.reason.as_str()), (ConditionStatus::Unknown, "Waiting"));
    assert_eq!(state(Side::Seen, &[]).reason, "NoCluster");
    let partly = state(Side::Seen, &[("milan", Side::Seen), ("rome", Side::forbidden_there(kind()))]);
    assert_eq!((partly.status, partly.reason.as_str()), (ConditionStatus::False, "NotEverywhere"));
    assert_eq!(partly.failing.keys().collect::<Vec<_>>(), ["rome"]);
    assert!(partly.failing["rome"].message.contains("customKinds.hosted"));
    let nowhere = state(Side::forbidden_here(kind()), &[("milan", Side::Seen)]);
    assert_eq!((nowhere.status, nowhere.reason.as_str()), (ConditionStatus::False, "Forbidden"));
    assert!(nowhere.message.contains("customKinds.reflected"), "{}", nowhere.message);
}
