use liqo_kit::Index as _;
use serde_json::{Value, json};

use super::*;

fn stray(node: &str, deleting: bool, status: &Value) -> Option<Stray> {
    let gone = deleting.then_some("2026-01-01T00:00:00Z");
    let pod = json!({
        "metadata": { "namespace": "kube-system", "name": "proxy", "uid": "u", "deletionTimestamp": gone },
        "spec": { "nodeName": node },
        "status": status,
    });
    Stray::read(serde_json::from_value(pod).unwrap())
}

#[test]
fn who_waits_is_told_once_and_who_is_deleted_goes() {
    let told = json!({ "phase": "Pending", "reason": "OffloadingBackoff" });
    for (deleting, status, expected) in [
        (false, json!({}), Some(Deed::Tell)),
        (false, json!({ "phase": "Pending" }), Some(Deed::Tell)),
        (false, told.clone(), None),
        (false, json!({ "phase": "Failed" }), None),
        (false, json!({ "phase": "Running" }), None),
        (true, json!({}), Some(Deed::Finish)),
        (true, told, Some(Deed::Finish)),
        (true, json!({ "phase": "Failed" }), Some(Deed::Finish)),
        // Its label was taken away: it may run at the provider, and nobody knows when it has ended.
        (true, json!({ "phase": "Running" }), None),
    ] {
        let found = stray("liqo-away", deleting, &status).unwrap().plan();
        assert_eq!(found, expected, "{deleting} {status}");
    }
    assert_eq!(stray("", false, &json!({})), None, "not bound yet");
}

#[test]
fn when_a_node_turns_out_to_stand_for_a_provider_its_pods_are_looked_at_again() {
    let mut strays = Strays::default();
    for node in ["liqo-away", "home-1"] {
        strays.apply(&Key::namespaced("kube-system", node), stray(node, false, &json!({})).unwrap());
    }
    assert_eq!(strays.take_dirty().len(), 2);
    strays.touch(|node| node == "liqo-away");
    assert_eq!(strays.take_dirty(), [Key::namespaced("kube-system", "liqo-away")].into());
    strays.touch(|_| true);
    strays.delete(&Key::namespaced("kube-system", "home-1"));
    assert_eq!(strays.take_dirty().len(), 1);
}

#[test]
fn the_reason_says_what_to_do() {
    let why = stray("liqo-away", false, &json!({})).unwrap().why();
    for word in ["liqo-away", "DaemonSet", "node affinity", "liqo.io/type=virtual-node"] {
        assert!(why.contains(word), "{why}");
    }
}
