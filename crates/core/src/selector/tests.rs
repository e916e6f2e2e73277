use serde_json::{Value, json};

use super::{Labels, Selector, SelectorSpec};
use crate::field::Problems;

fn read(spec: Value) -> (Selector, Vec<String>) {
    let spec: SelectorSpec = serde_json::from_value(spec).unwrap();
    let mut problems = Problems::default();
    let selector = Selector::read(&spec, "spec.peers", &mut problems);
    (selector, problems.into_vec().iter().map(ToString::to_string).collect())
}

fn selector(spec: Value) -> Selector {
    let (selector, problems) = read(spec);
    assert!(problems.is_empty(), "{problems:?}");
    selector
}

fn labels<const N: usize>(entries: [(&str, &str); N]) -> Labels {
    entries.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

#[test]
fn requirements_mean_what_they_mean_in_kubernetes() {
    let gold = || labels([("tier", "gold")]);
    for (spec, labels, matches) in [
        (json!({}), labels([]), true),
        (json!({"matchLabels": {"tier": "gold"}}), gold(), true),
        (json!({"matchLabels": {"tier": "gold"}}), labels([("tier", "silver")]), false),
        (json!({"matchLabels": {"tier": "gold"}}), labels([]), false),
        (json!({"matchLabels": {"tier": ""}}), labels([("tier", "")]), true),
        (
            json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["silver", "gold"]}]}),
            gold(),
            true,
        ),
        (
            json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]}),
            gold(),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["gold"]}]}),
            labels([]),
            true,
        ),
        (json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), gold(), true),
        (json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}), labels([]), false),
        (json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}), gold(), false),
        (
            json!({"matchLabels": {"tier": "gold"}, "matchExpressions": [{"key": "eu", "operator": "Exists"}]}),
            gold(),
            false,
        ),
    ] {
        assert_eq!(selector(spec.clone()).matches(&labels), matches, "{spec} on {labels:?}");
    }
}

#[test]
fn a_requirement_reads_like_kubectl_writes_it() {
    let many: Vec<String> = (0..9).map(|index| format!("v{index}")).collect();
    let selector = selector(json!({
        "matchLabels": {"tier": "gold"},
        "matchExpressions": [
            {"key": "zone", "operator": "In", "values": ["b", "a"]},
            {"key": "zone", "operator": "NotIn", "values": many},
            {"key": "gpu", "operator": "Exists"},
            {"key": "spot", "operator": "DoesNotExist"},
        ],
    }));
    assert_eq!(
        selector.to_string(),
        "tier=gold, zone in (a, b), zone not in (v0, v1, v2, v3, v4 and 4 more), gpu, !spot"
    );
}

#[test]
fn nonsense_is_refused_at_its_place() {
    for (spec, problem) in [
        (json!({"matchLabels": {"a b": "x"}}), "spec.peers.matchLabels[a b]: \"a b\" is not a label key"),
        (json!({"matchLabels": {"a": "x y"}}), "spec.peers.matchLabels[a]: \"x y\" is not a label value"),
        (json!({"matchLabels": {"a": "x".repeat(64)}}), "is not a label value"),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "spec.peers.matchExpressions[0].values: the operators In and NotIn need at least one value",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
            "spec.peers.matchExpressions[0].values: the operators Exists and DoesNotExist take no values",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
            "spec.peers.matchExpressions[0].operator: \"Gt\" is not one of",
        ),
        (json!({"matchExpressions": [{"key": "", "operator": "Exists"}]}), "matchExpressions[0].key"),
    ] {
        let (_, problems) = read(spec);
        assert!(problems.len() == 1 && problems[0].contains(problem), "{problems:?}");
    }
}

#[test]
fn a_flood_of_requirements_is_one_problem() {
    let flood: Labels = (0..10_000).map(|index| (format!("k{index}"), String::new())).collect();
    let (_, problems) = read(json!({"matchLabels": flood}));
    assert_eq!(problems, ["spec.peers: has 10000 entries, at most 32 are allowed"]);
}
