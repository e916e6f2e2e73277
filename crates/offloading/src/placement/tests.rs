use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NodeAffinity;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{collection, option, prop_assert, prop_assert_eq};

use super::*;
use crate::selector::{NodeView, selects, term_matches};

fn requirement(key: &str, operator: &str, values: &[&str]) -> NodeSelectorRequirement {
    let values: Vec<_> = values.iter().map(|value| (*value).to_owned()).collect();
    NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: (!values.is_empty()).then_some(values),
    }
}

fn term(requirements: Vec<NodeSelectorRequirement>) -> NodeSelectorTerm {
    NodeSelectorTerm { match_expressions: Some(requirements), match_fields: None }
}

fn selector(terms: Vec<NodeSelectorTerm>) -> NodeSelector {
    NodeSelector { node_selector_terms: terms }
}

fn pod(value: Value) -> PodView {
    serde_json::from_value(value).unwrap()
}

fn with_terms(terms: Option<Vec<NodeSelectorTerm>>) -> PodView {
    let required = terms.map(selector);
    let node_affinity = NodeAffinity {
        required_during_scheduling_ignored_during_execution: required,
        ..NodeAffinity::default()
    };
    let affinity = Affinity { node_affinity: Some(node_affinity), ..Affinity::default() };
    PodView { spec: PodSpecView { affinity: Some(affinity), ..PodSpecView::default() }, ..PodView::default() }
}

fn placement(strategy: PodOffloadingStrategy) -> Placement {
    Placement { strategy, ..Placement::default() }
}

/// Applies the few operations that patches here have.
fn patched(mut pod: Value, patch: &[Value]) -> Value {
    for operation in patch {
        assert_eq!(operation["op"], "add", "{operation}");
        let path = operation["path"].as_str().unwrap();
        let (parent, last) = path.rsplit_once('/').unwrap();
        let last = last.replace("~1", "/").replace("~0", "~");
        let value = operation["value"].clone();
        match pod.pointer_mut(parent).unwrap_or_else(|| panic!("nothing at {parent}")) {
            Value::Array(list) if last == "-" => list.push(value),
            Value::Object(map) => drop(map.insert(last, value)),
            other => panic!("{path}: {other}"),
        }
    }
    pod
}

fn place(placement: &Placement, value: &Value) -> Value {
    let patch = placement.patch(&pod(value.clone())).unwrap();
    let mut value = value.clone();
    // Every pod has metadata, be it only its name.
    value.as_object_mut().unwrap().entry("metadata").or_insert(json!({}));
    patched(value, &patch)
}

#[test]
fn a_local_namespace_touches_nothing() {
    let patch = placement(PodOffloadingStrategy::Local).patch(&pod(json!({ "spec": { "containers": [] } })));
    assert_eq!(patch, Ok(Vec::new()));
}

#[test]
fn a_pod_without_wishes_gets_all_in_three_operations() {
    let bare = json!({ "metadata": {}, "spec": { "containers": [] } });
    let patch = placement(PodOffloadingStrategy::Remote).patch(&pod(bare.clone())).unwrap();
    assert_eq!(patch.len(), 3, "{patch:?}");
    let placed = patched(bare, &patch);
    assert_eq!(placed["metadata"]["labels"][labels::SHADOW_POD], "true");
    let terms = json!([{ "matchExpressions": [
        { "key": "liqo.io/type", "operator": "In", "values": ["virtual-node"] }
    ] }]);
    let required =
        &placed["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(required["nodeSelectorTerms"], terms);
    let tolerations = json!([
        { "key": "virtual-node.liqo.io/not-allowed", "operator": "Exists", "effect": "NoExecute" },
        { "key": "virtual-node.liqo.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 12 },
    ]);
    assert_eq!(placed["spec"]["tolerations"], tolerations);
}

#[test]
fn what_the_pod_has_otherwise_stays() {
    let own = json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": {
            "affinity": { "podAntiAffinity": {}, "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": {} }],
            } },
            "tolerations": [{ "key": "gpu", "operator": "Exists" }],
        },
    });
    let placed = place(&placement(PodOffloadingStrategy::LocalAndRemote), &own);
    assert_eq!(placed["metadata"]["labels"]["app"], "web");
    assert_eq!(placed["spec"]["affinity"]["podAntiAffinity"], json!({}));
    let node_affinity = placed["spec"]["affinity"]["nodeAffinity"].as_object().unwrap();
    assert_eq!(node_affinity.len(), 2, "{node_affinity:?}");
    assert_eq!(placed["spec"]["tolerations"].as_array().unwrap().len(), 3);
    assert_eq!(placed["spec"]["tolerations"][0]["key"], "gpu");
}

#[test]
fn a_pod_that_says_how_long_it_waits_is_believed() {
    let own = json!({ "spec": { "tolerations": [
        { "key": "virtual-node.liqo.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 900 },
    ] } });
    let placed = place(&placement(PodOffloadingStrategy::Remote), &own);
    let all = placed["spec"]["tolerations"].as_array().unwrap();
    assert_eq!(all.len(), 2, "{all:?}");
    // One that tolerates everything for ever must not be given an end.
    let own = json!({ "spec": { "tolerations": [{ "operator": "Exists" }] } });
    assert_eq!(
        place(&placement(PodOffloadingStrategy::Remote), &own)["spec"]["tolerations"],
        own["spec"]["tolerations"]
    );
    // Tolerating that nothing is scheduled there is not tolerating to be evicted.
    let own = json!({ "spec": { "tolerations": [
        { "key": "virtual-node.liqo.io/not-allowed", "operator": "Exists", "effect": "NoSchedule" },
    ] } });
    assert_eq!(
        place(&placement(PodOffloadingStrategy::Remote), &own)["spec"]["tolerations"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn pods_that_never_move_tolerate_what_kubernetes_would_move_them_for() {
    let keys = |strategy| {
        let placement = Placement { failover: Failover::Never, ..placement(strategy) };
        let placed = place(&placement, &json!({ "metadata": {}, "spec": {} }));
        let all = placed["spec"]["tolerations"].as_array().unwrap().clone();
        assert!(all.iter().all(|toleration| toleration.get("tolerationSeconds").is_none()), "{all:?}");
        all.len()
    };
    assert_eq!(keys(PodOffloadingStrategy::Remote), 4);
    assert_eq!(keys(PodOffloadingStrategy::LocalAndRemote), 2);
}

#[test]
fn a_pod_that_wants_to_stay_at_home_is_not_marked_as_one_that_may_leave() {
    let own = with_terms(Some(vec![term(vec![requirement("liqo.io/type", "NotIn", &["virtual-node"])])]));
    assert_eq!(placement(PodOffloadingStrategy::LocalAndRemote).patch(&own), Ok(Vec::new()));
}

#[test]
fn a_wish_that_contradicts_the_namespace_keeps_the_pod_waiting() {
    let own = with_terms(Some(vec![term(vec![requirement("liqo.io/type", "NotIn", &["virtual-node"])])]));
    let patch = placement(PodOffloadingStrategy::Remote).patch(&own).unwrap();
    let terms = &patch[0]["value"]["nodeSelectorTerms"];
    assert_eq!(terms.as_array().unwrap().len(), 1);
    assert_eq!(terms[0]["matchExpressions"].as_array().unwrap().len(), 2, "{terms}");
}

#[test]
fn more_terms_than_a_scheduler_should_look_at_are_refused() {
    let many = |count: usize| {
        (0..count)
            .map(|number| term(vec![requirement("n", "In", &[&number.to_string()])]))
            .collect::<Vec<_>>()
    };
    let placement =
        Placement { selector: Some(selector(many(40))), ..placement(PodOffloadingStrategy::Remote) };
    assert!(placement.patch(&with_terms(Some(many(12)))).is_ok());
    let error = placement.patch(&with_terms(Some(many(13)))).unwrap_err();
    assert!(error.to_string().contains("13 terms"), "{error}");
}

fn requirements() -> impl Strategy<Value = NodeSelectorRequirement> {
    let values = || collection::vec(prop_oneof![Just("a"), Just("b"), Just("3"), Just("virtual-node")], 1..3);
    let key = || prop_oneof![Just("x"), Just("y"), Just(labels::NODE_TYPE)];
    prop_oneof![
        (key(), prop_oneof![Just("In"), Just("NotIn")], values())
            .prop_map(|(key, operator, values)| requirement(key, operator, &values)),
        (key(), prop_oneof![Just("Exists"), Just("DoesNotExist")]).prop_map(|(key, operator)| requirement(
            key,
            operator,
            &[]
        )),
        (key(), prop_oneof![Just("Gt"), Just("Lt")], 0..6_u8).prop_map(|(key, operator, bound)| requirement(
            key,
            operator,
            &[&bound.to_string()]
        )),
    ]
}

fn terms(least: usize) -> impl Strategy<Value = Vec<NodeSelectorTerm>> {
    let fields = option::weighted(0.2, prop_oneof![Just("In"), Just("NotIn")]);
    let one = (collection::vec(requirements(), least..3), fields).prop_map(|(requirements, field)| {
        let field = field.map(|operator| vec![requirement("metadata.name", operator, &["n1"])]);
        NodeSelectorTerm {
            match_expressions: (!requirements.is_empty()).then_some(requirements),
            match_fields: field,
        }
    });
    collection::vec(one, 1..4)
}

fn nodes() -> impl Strategy<Value = (bool, BTreeMap<String, String>)> {
    let value = || option::of(prop_oneof![Just("a"), Just("b"), Just("2"), Just("4")]);
    (any::<bool>(), any::<bool>(), value(), value()).prop_map(|(first, is_virtual, x, y)| {
        let mut all = BTreeMap::new();
        all.extend(x.map(|x| ("x".to_owned(), x.to_owned())));
        all.extend(y.map(|y| ("y".to_owned(), y.to_owned())));
        all.extend(is_virtual.then(|| (labels::NODE_TYPE.to_owned(), labels::NODE_TYPE_VIRTUAL.to_owned())));
        (first, all)
    })
}

fn strategies() -> impl Strategy<Value = PodOffloadingStrategy> {
    prop_oneof![Just(PodOffloadingStrategy::Remote), Just(PodOffloadingStrategy::LocalAndRemote)]
}

proptest! {
    /// The terms that come out hold exactly on the nodes on which the pod's own terms hold and which the namespace allows.
    #[test]
    fn a_placed_pod_lands_exactly_where_it_and_its_namespace_allow(
        strategy in strategies(),
        own in option::of(terms(0)),
        chosen in option::of(terms(1)),
        (first, node) in nodes(),
    ) {
        let placement = Placement { strategy, selector: chosen.clone().map(selector), ..Placement::default() };
        let before = with_terms(own.clone());
        let patch = placement.patch(&before).unwrap();
        let value = json!({ "metadata": {}, "spec": { "affinity": before.spec.affinity } });
        let after = pod(patched(value, &patch));

        let view = NodeView { name: if first { "n1" } else { "n2" }, labels: &node };
        let is_virtual = node.contains_key(labels::NODE_TYPE);
        let wished = own.is_none_or(|own| own.iter().any(|term| term_matches(term, view)));
        let chosen = selects(chosen.map(selector).as_ref(), view);
        let allowed = match strategy {
            PodOffloadingStrategy::Remote => is_virtual && chosen,
            _ => !is_virtual || chosen,
        };
        let landed = own_terms(&after).iter().any(|term| term_matches(term, view));
        prop_assert_eq!(landed, wished && allowed, "{:?}", own_terms(&after));
        // A pod that may land on a virtual node tolerates it and can be found.
        if landed && is_virtual {
            let tolerated = after.spec.tolerations.iter().flatten().any(|toleration| {
                toleration.key.as_deref() == Some(names::VIRTUAL_NODE_TAINT)
            });
            prop_assert!(tolerated && after.metadata.labels.is_some());
        }
    }

    /// The API server may ask twice.
    #[test]
    fn what_was_placed_is_not_changed_again(
        strategy in strategies(),
        own in option::of(terms(0)),
        chosen in option::of(terms(1)),
    ) {
        let placement = Placement { strategy, selector: chosen.map(selector), ..Placement::default() };
        let before = with_terms(own);
        let value = json!({ "metadata": {}, "spec": { "affinity": before.spec.affinity } });
        let once = patched(value, &placement.patch(&before).unwrap());
        prop_assert_eq!(placement.patch(&pod(once)).unwrap(), Vec::<Value>::new());
    }
}

#[test]
fn where_pods_go_back_chosen_clusters_are_preferred() {
    let chosen = selector(vec![term(vec![requirement("tier", "In", &["gold"])])]);
    let prefer = |strategy| Placement {
        strategy,
        selector: Some(chosen.clone()),
        prefer_remote: true,
        ..Placement::default()
    };
    let wanted = json!({ "weight": 100, "preference": { "matchExpressions": [
        { "key": "liqo.io/type", "operator": "In", "values": ["virtual-node"] },
        { "key": "tier", "operator": "In", "values": ["gold"] },
    ] } });
    let own = json!({ "weight": 1, "preference": { "matchExpressions": [{ "key": "disk", "operator": "Exists" }] } });
    let pointer = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
    let with_own = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [own] } });
    for (affinity, expected) in [
        (json!(null), json!([wanted])),
        (json!({}), json!([wanted])),
        (json!({ "nodeAffinity": {} }), json!([wanted])),
        (with_own, json!([own, wanted])),
    ] {
        let bare = json!({ "metadata": {}, "spec": { "containers": [], "affinity": affinity } });
        let placed = place(&prefer(PodOffloadingStrategy::LocalAndRemote), &bare);
        assert_eq!(placed.pointer(pointer), Some(&expected), "{bare}");
        // Asked again, nothing is added.
        assert_eq!(place(&prefer(PodOffloadingStrategy::LocalAndRemote), &placed), placed);
    }
    // Where they may run nowhere else, or only here, there is nothing to prefer.
    for strategy in [PodOffloadingStrategy::Remote, PodOffloadingStrategy::Local] {
        let placed = place(&prefer(strategy), &json!({ "spec": { "containers": [] } }));
        assert_eq!(placed.pointer(pointer), None);
    }
}
