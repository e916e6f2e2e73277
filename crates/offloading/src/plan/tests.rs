use liqo_api::namespace_map::{MappingPhase, RemoteNamespace};
use liqo_api::namespace_offloading::{ConditionStatus, OffloadingPhase, RemoteNamespaceConditionType};
use serde_json::json;

use super::drain::drains;
use crate::steps::Where;
use crate::testing::World;

#[test]
fn a_label_is_enough_to_be_everywhere() {
    let mut world = World::new().with_provider("milan", &[]).with_provider("rome", &[]);
    world.label("shop", "liqo.io/enabled", Some("true"));
    world.settle();
    assert_eq!(world.mapping(Where::Here, "milan")["shop"], "shop-home-940a95");
    assert_eq!(world.mapping(Where::There, "milan")["shop"], "shop-home-940a95");
    assert!(world.mapping(Where::There, "rome").contains_key("shop"));
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::Ready));
    assert_eq!(world.labels("shop").get("liqo.io/scheduling-enabled").map(String::as_str), Some("true"));
    assert_eq!(
        world.labels("shop").get("offloading.liqo.io/strategy").map(String::as_str),
        Some("LocalAndRemote")
    );
    // And without the label it is gone everywhere.
    world.label("shop", "liqo.io/enabled", None);
    world.settle();
    for cluster in ["milan", "rome"] {
        world.drained("shop", cluster);
    }
    world.settle();
    assert!(world.offloading("shop").is_none());
    assert_eq!(world.maps(), 0, "{world:?}");
    assert!(!world.labels("shop").contains_key("liqo.io/scheduling-enabled"));
    assert!(!world.labels("shop").contains_key("offloading.liqo.io/strategy"));
}

#[test]
fn what_was_written_by_hand_does_not_depend_on_a_label() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.label("shop", "some/label", Some("x"));
    assert_eq!(world.settle(), 0);
    assert!(world.offloading("shop").is_some());
}

#[test]
fn nothing_is_written_while_nothing_changes_also_after_a_restart() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    assert!(world.settle() > 0);
    assert_eq!(world.settle(), 0);
    world.restart();
    assert_eq!(world.settle(), 0, "{world:?}");
}

#[test]
fn only_those_who_are_selected_get_it_and_the_others_are_told_why() {
    let mut world = World::new().with_provider("milan", &[("tier", "gold")]).with_provider("rome", &[]);
    world.offload("shop", &selector("tier", "In", &["gold"]));
    world.settle();
    assert!(world.mapping(Where::There, "milan").contains_key("shop"));
    assert!(world.mapping(Where::Here, "rome").is_empty());
    let chosen = world.condition("shop", "milan", RemoteNamespaceConditionType::OffloadingRequired);
    assert_eq!((chosen.status, chosen.reason.as_str()), (ConditionStatus::True, "ClusterSelected"));
    let other = world.condition("shop", "rome", RemoteNamespaceConditionType::OffloadingRequired);
    assert_eq!((other.status, other.reason.as_str()), (ConditionStatus::False, "NotSelected"));
    assert!(other.message.contains("liqo-rome does not match: tier=gold"), "{}", other.message);
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::Ready));
}

#[test]
fn a_narrower_selector_withdraws_after_the_pods_have_left() {
    let mut world = World::new().with_provider("milan", &[("tier", "gold")]).with_provider("rome", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.change("shop", &selector("tier", "In", &["gold"]));
    world.settle();
    // Its pods are asked to leave, and until then the namespace stays.
    let leaving = drains(&world.view());
    assert_eq!(leaving.len(), 1, "{leaving:?}");
    assert_eq!(
        (leaving[0].namespace.as_ref(), leaving[0].nodes.as_slice()),
        ("shop", &["liqo-rome".to_owned()][..])
    );
    assert!(world.mapping(Where::There, "rome").contains_key("shop"));
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::InProgress));
    world.drained("shop", "rome");
    world.settle();
    assert!(world.mapping(Where::There, "rome").is_empty(), "{world:?}");
    assert!(world.mapping(Where::There, "milan").contains_key("shop"));
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::Ready));
    assert!(drains(&world.view()).is_empty());
    // And wider again.
    world.change("shop", &json!({ "clusterSelector": null }));
    world.settle();
    assert!(world.mapping(Where::There, "rome").contains_key("shop"));
}

#[test]
fn pods_leave_the_pools_that_are_not_selected_any_more_and_the_namespace_stays() {
    let mut world =
        World::new().with_provider("milan", &[]).with_pool("milan", "fast").with_pool("milan", "plain");
    let left = |world: &World| drains(&world.view()).into_iter().map(|it| it.nodes).collect::<Vec<_>>();
    world.offload("shop", &json!({}));
    world.settle();
    assert!(left(&world).is_empty(), "all are selected");
    world.change("shop", &selector("liqo.io/pool", "Exists", &[]));
    world.settle();
    assert_eq!(left(&world), [["liqo-milan"]]);
    world.change("shop", &selector("liqo.io/pool", "In", &["fast"]));
    world.settle();
    assert_eq!(left(&world), [["liqo-milan", "liqo-milan-plain"]]);
    let told = world.condition("shop", "milan", RemoteNamespaceConditionType::OffloadingRequired);
    assert_eq!((told.status, told.reason.as_str()), (ConditionStatus::True, "ClusterSelected"));
    let says = "node liqo-milan-fast is selected, but liqo-milan does not match: liqo.io/pool=fast, \
                liqo-milan-plain does not match: liqo.io/pool=fast";
    assert!(told.message.ends_with(says), "{}", told.message);
    // Nothing waits for it: the namespace is where it has to be.
    assert!(world.mapping(Where::There, "milan").contains_key("shop"));
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::Ready));
    world.change("shop", &json!({ "clusterSelector": null }));
    world.settle();
    assert!(left(&world).is_empty());
}

#[test]
fn pools_that_were_left_do_not_count_as_the_whole_cluster() {
    let mut world = World::new().with_provider("milan", &[]).with_pool("milan", "fast");
    world.offload("shop", &selector("liqo.io/pool", "In", &["fast"]));
    world.settle();
    world.left("shop", "milan", &["liqo-milan"]);
    world.change("shop", &selector("liqo.io/pool", "In", &["none"]));
    world.settle();
    assert_eq!(drains(&world.view())[0].nodes, ["liqo-milan", "liqo-milan-fast"]);
    assert!(
        world.mapping(Where::There, "milan").contains_key("shop"),
        "its pods are still at the other node"
    );
    world.left("shop", "milan", &["liqo-milan", "liqo-milan-fast"]);
    world.settle();
    assert!(world.mapping(Where::There, "milan").is_empty(), "{world:?}");
}

#[test]
fn pods_that_do_not_leave_do_not_keep_the_namespace_for_ever() {
    let mut world = World::new().with_provider("milan", &[("tier", "gold")]).with_provider("rome", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.change("shop", &selector("tier", "In", &["gold"]));
    world.settle();
    let end = drains(&world.view())[0].end;
    world.pass(60);
    // A restart does not begin anew: since when is in the status.
    world.restart();
    world.settle();
    assert_eq!(drains(&world.view())[0].end, end);
    assert!(world.mapping(Where::There, "rome").contains_key("shop"));
    world.pass(31);
    world.settle();
    assert!(world.mapping(Where::There, "rome").is_empty(), "{world:?}");
}

#[test]
fn a_namespace_is_told_to_be_gone_when_the_provider_says_so() {
    let mut world = World::new().with_provider("milan", &[("tier", "gold")]).with_provider("rome", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.slow("rome");
    world.change("shop", &selector("tier", "In", &["gold"]));
    world.settle();
    world.drained("shop", "rome");
    world.settle();
    let told = |world: &World| world.condition("shop", "rome", RemoteNamespaceConditionType::Ready).reason;
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::InProgress), "{world:?}");
    assert_eq!(told(&world), "Withdrawing");
    world.quick("rome");
    world.settle();
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::Ready), "{world:?}");
    assert_eq!(told(&world), "NotRequired");
}

#[test]
fn deletion_waits_for_pods_then_for_the_providers_and_then_ends() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.slow("milan");
    world.delete("shop");
    world.settle();
    // Pods that are made now come home, at once.
    assert!(!world.labels("shop").contains_key("liqo.io/scheduling-enabled"));
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::Terminating));
    world.drained("shop", "milan");
    world.settle();
    assert!(world.mapping(Where::There, "milan").is_empty());
    assert!(world.offloading("shop").is_some(), "the provider has not removed it yet");
    world.quick("milan");
    world.settle();
    assert!(world.offloading("shop").is_none());
    assert_eq!(world.maps(), 0);
}

#[test]
fn deletion_ends_though_the_provider_never_answers() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.slow("milan");
    world.delete("shop");
    world.settle();
    assert!(world.offloading("shop").is_some());
    world.pass(91);
    world.settle();
    assert!(world.offloading("shop").is_none(), "{world:?}");
}

#[test]
fn a_provider_that_refuses_is_quoted() {
    let mut world = World::new().with_provider("milan", &[]).with_provider("rome", &[]);
    world.answer("milan", |name| RemoteNamespace {
        remote_namespace: name.to_owned(),
        phase: MappingPhase::CreationLoopBackOff,
        reason: Some("NameTaken".to_owned()),
        message: Some("another tenant has it".to_owned()),
    });
    world.offload("shop", &json!({ "namespaceMappingStrategy": "EnforceSameName" }));
    world.settle();
    assert_eq!(world.mapping(Where::There, "milan")["shop"], "shop");
    let told = world.condition("shop", "milan", RemoteNamespaceConditionType::Ready);
    assert_eq!((told.reason.as_str(), told.message.as_str()), ("NameTaken", "another tenant has it"));
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::SomeFailed));
    assert!(
        world
            .events()
            .iter()
            .any(|event| event.contains("NameTaken") && event.contains("another tenant has it"))
    );
    // A word that the API server would not take as a reason does not keep it from being told.
    world.answer("milan", |name| RemoteNamespace {
        remote_namespace: name.to_owned(),
        phase: MappingPhase::CreationLoopBackOff,
        reason: Some("not a word!".to_owned()),
        message: None,
    });
    world.settle();
    let told = world.condition("shop", "milan", RemoteNamespaceConditionType::Ready);
    assert_eq!(told.reason, "CreationFailed");
}

#[test]
fn protected_namespaces_are_refused_with_the_reason() {
    for (name, says) in
        [("kube-system", "Kubernetes itself"), ("liqo", "Liqo itself"), ("liqo-tenant-x", "peer")]
    {
        let mut world = World::new().with_provider("milan", &[]);
        if name == "liqo-tenant-x" {
            world.label(name, "discovery.liqo.io/tenant-namespace", Some("true"));
        }
        world.label(name, "liqo.io/enabled", Some("true"));
        world.settle();
        assert!(world.offloading(name).is_none(), "{name}");
        assert!(world.events().iter().any(|event| event.contains(says)), "{name}: {:?}", world.events());
        world.offload(name, &json!({}));
        world.settle();
        assert_eq!(world.maps(), 0, "{name}");
        assert_eq!(world.phase(name), Some(OffloadingPhase::NoClusterSelected));
        let valid = world.valid(name);
        assert!(valid.status == "False" && valid.message.contains(says), "{valid:?}");
        assert!(!world.labels(name).contains_key("liqo.io/scheduling-enabled"), "{name}");
    }
}

#[test]
fn where_liqo_runs_is_shown_elsewhere_and_its_pods_stay() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("liqo", &json!({ "podOffloadingStrategy": "Local" }));
    world.settle();
    assert_eq!(world.valid("liqo").status, "True", "{}", world.valid("liqo").message);
    assert_eq!(world.phase("liqo"), Some(OffloadingPhase::Ready));
    assert_eq!(world.mapping(Where::There, "milan")["liqo"], "liqo-home-940a95");
    // Nobody is asked about pods of the manager: it would have to be there to let them be made.
    assert!(!world.labels("liqo").contains_key("liqo.io/scheduling-enabled"));
    world.change("liqo", &json!({ "podOffloadingStrategy": "LocalAndRemote" }));
    world.settle();
    assert_eq!(world.valid("liqo").reason, "ProtectedNamespace");
    assert!(world.valid("liqo").message.contains("podOffloadingStrategy Local"));
    world.drained("liqo", "milan");
    world.settle();
    assert_eq!(world.maps(), 0, "{world:?}");
    // Others are not even shown.
    world.offload("kube-system", &json!({ "podOffloadingStrategy": "Local" }));
    world.settle();
    assert_eq!(world.maps(), 0, "{world:?}");
}

#[test]
fn an_invalid_selector_selects_nobody_and_says_so() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &selector("tier", "In", &[]));
    world.settle();
    assert_eq!(world.maps(), 0);
    assert_eq!(world.valid("shop").reason, "InvalidSelector");
    // Its pods are still asked about, and refused.
    assert!(world.labels("shop").contains_key("liqo.io/scheduling-enabled"));
}

#[test]
fn without_a_cluster_the_namespace_is_still_marked() {
    let mut world = World::new();
    world.offload("shop", &json!({ "podOffloadingStrategy": "Remote" }));
    world.settle();
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::NoClusterSelected));
    assert_eq!(world.labels("shop").get("offloading.liqo.io/strategy").map(String::as_str), Some("Remote"));
    // Whoever comes later is taken at once.
    world = world.with_provider("milan", &[]);
    world.settle();
    assert_eq!(world.phase("shop"), Some(OffloadingPhase::Ready));
}

#[test]
fn an_unreachable_provider_is_told_and_keeps_its_namespaces() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.unreachable("milan");
    world.settle();
    let told = world.condition("shop", "milan", RemoteNamespaceConditionType::Ready);
    assert_eq!((told.status, told.reason.as_str()), (ConditionStatus::Unknown, "ProviderUnreachable"));
    assert!(world.mapping(Where::Here, "milan").contains_key("shop"));
}

#[test]
fn a_node_that_goes_takes_the_namespace_along() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.remove_node("milan");
    world.settle();
    let leaving = drains(&world.view());
    assert!(leaving.iter().all(|drain| drain.nodes.is_empty()), "{leaving:?}");
    world.drained("shop", "milan");
    world.settle();
    assert_eq!(world.maps(), 0, "{world:?}");
    // And a provider that is not known any more leaves no note of ours.
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    world.settle();
    world.remove_node("milan");
    world.forget("milan");
    world.drained("shop", "milan");
    world.settle();
    assert!(world.mapping(Where::Here, "milan").is_empty(), "{world:?}");
}

#[test]
fn two_namespaces_of_one_provider_do_not_disturb_each_other() {
    let mut world = World::new().with_provider("milan", &[]);
    world.offload("shop", &json!({}));
    world.offload("bank", &json!({ "namespaceMappingStrategy": "EnforceSameName" }));
    world.settle();
    assert_eq!(world.mapping(Where::There, "milan").len(), 2);
    world.delete("shop");
    world.settle();
    world.drained("shop", "milan");
    world.settle();
    assert_eq!(world.mapping(Where::There, "milan").keys().collect::<Vec<_>>(), ["bank"]);
    assert_eq!(world.phase("bank"), Some(OffloadingPhase::Ready));
}

fn selector(key: &str, operator: &str, values: &[&str]) -> serde_json::Value {
    json!({ "clusterSelector": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": key, "operator": operator, "values": values }] }
    ] } })
}
