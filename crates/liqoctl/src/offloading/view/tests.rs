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
    let view = view("shop", Some(&offloading("AllFailed")), &away, 0);
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
    let view = view("shop", None, &BTreeMap::new(), 0);
    assert!(text(&view, false).contains("liqoctl offload namespace shop"));
    assert!(is_well(&view));
}

#[test]
fn pods_that_were_there_before_are_counted_and_it_is_said_what_to_do() {
    let offloading = offloading("Ready");
    let told = text(&view("shop", Some(&offloading), &BTreeMap::new(), 3), false);
    assert!(told.contains("3 pods that were made before"), "{told}");
    assert!(told.contains("kubectl -n shop rollout restart"), "{told}");
    assert!(!text(&view("shop", Some(&offloading), &BTreeMap::new(), 0), false).contains("Stay here"));
}

#[test]
fn custom_resources_that_do_not_get_somewhere_are_told() {
    let mut offloading = offloading("Ready");
    let status = offloading.status.as_mut().unwrap();
    status.remote_namespaces_conditions.remove("rome-1");
    let kind = json!({ "group": "example.com", "kind": "Widget", "version": "v1", "plural": "widgets",
        "status": "False", "reason": "NotEverywhere", "message": "1 of 2 clusters do not get it",
        "failing": { "milan-1": { "reason": "Forbidden", "message": "the provider does not permit it" } } });
    status.reflected = vec![serde_json::from_value(kind).unwrap()];
    let seen = view("shop", Some(&offloading), &BTreeMap::new(), 0);
    assert!(!is_well(&seen));
    let said = text(&seen, false);
    assert!(said.contains("CUSTOM RESOURCES") && said.contains("example.com/Widget   False"), "{said}");
    assert!(said.contains("not reflected to milan-1: the provider does not permit it"), "{said}");
    offloading.status.as_mut().unwrap().reflected[0].reason = "Withdrawing".to_owned();
    assert!(is_well(&view("shop", Some(&offloading), &BTreeMap::new(), 0)));
}
