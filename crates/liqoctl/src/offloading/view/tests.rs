use serde_json::json;

use super::*;

fn offloading(phase: &str) -> NamespaceOffloading {
    let condition = |type_: &str, status: &str, reason: &str, message: &str| json!({ "type": type_, "status": status, "reason": reason, "message": message });
    let object = json!({
        "apiVersion": "offloading.liqo.io/v1alpha1", "kind": "NamespaceOffloading",
        "metadata": { "name": "offloading", "namespace": "shop" },
        "spec": { "podOffloadingStrategy": "Remote" },
        "status": {
            "remoteNamespaceName": "shop-home-1", "offloadingPhase": phase,
            "remoteNamespacesConditions": {
                "milan-1": [
                    condition("OffloadingRequired", "False", "NotSelected", "its virtual node does not match: tier=gold"),
                    condition("Ready", "False", "NotRequired", "the namespace does not extend to this cluster"),
                ],
                "rome-1": [
                    condition("OffloadingRequired", "True", "ClusterSelected", "its virtual node is selected"),
                    condition("Ready", "False", "NameTaken", "another tenant has it"),
                ],
            },
        },
    });
    serde_json::from_value(object).unwrap()
}

#[test]
fn people_see_where_it_is_and_why_not_elsewhere() {
    let away = [("rome-1".to_owned(), 3)].into();
    let view = view("shop", Some(&offloading("AllFailed")), &away);
    let text = text(&view, false);
    for says in [
        "AllFailed",
        "only in other clusters",
        "NameTaken",
        "another tenant has it",
        "does not match: tier=gold",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    // Those that are meant first.
    assert!(text.find("rome-1") < text.find("milan-1"), "{text}");
    assert_eq!(view.clusters[0].pods, 3);
    assert!(!is_well(&view));
}

#[test]
fn what_is_not_offloaded_says_how_to() {
    let view = view("shop", None, &BTreeMap::new());
    assert!(text(&view, false).contains("liqoctl offload namespace shop"));
    assert!(is_well(&view));
}
