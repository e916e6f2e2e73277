//! Parts of the nodes that are lent apart from each other.

use serde_json::{Value, json};

use super::*;
use crate::policy::spec::Spec;

fn pools() -> Value {
    json!([
        {"name": "gpu", "nodeSelector": {"matchLabels": {"kind": "gpu"}}, "labels": {"accelerator": "yes"}},
        {"name": "rest", "nodeSelector": {"matchExpressions": [{"key": "kind", "operator": "Exists"}]}},
    ])
}

/// Two nodes in pools, and one in none.
fn world(spec: Value) -> World {
    let mut spec = spec;
    spec["pools"] = pools();
    World::new()
        .labelled_node("cpu=8, memory=32Gi, nvidia.com/gpu=2, pods=10", &[("kind", "gpu")])
        .labelled_node("cpu=4, memory=32Gi, pods=10", &[("kind", "plain")])
        .node("cpu=100, memory=100Gi, pods=100")
        .policy("p", spec)
}

fn pool(offer: &Offer, name: &str) -> String {
    let mut resources =
        offer.pools.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", offer.pools)).resources.clone();
    resources.remove("pods");
    resources.to_string()
}

#[test]
fn each_pool_has_its_part_and_a_node_in_none_is_not_offered() {
    let offer = world(json!({})).offer("x");
    assert_eq!(offer.resources, list("cpu=12, memory=64Gi, nvidia.com/gpu=2, pods=20"));
    assert_eq!(pool(&offer, "gpu"), "cpu=8, memory=32Gi, nvidia.com/gpu=2");
    assert_eq!(pool(&offer, "rest"), "cpu=4, memory=32Gi", "the node of both counts in the first");
    assert_eq!(offer.pools["gpu"].labels, [("accelerator".to_owned(), "yes".to_owned())].into());
    assert_eq!(offer.largest_pod.on_one_node, list("cpu=8, memory=32Gi, nvidia.com/gpu=2"));
    let largest: Vec<_> =
        offer.largest_pods.iter().map(|(name, it)| (name.as_str(), &it.on_one_node)).collect();
    let expected = [list("cpu=8, memory=32Gi, nvidia.com/gpu=2"), list("cpu=4, memory=32Gi")];
    assert_eq!(largest, [("gpu", &expected[0]), ("rest", &expected[1])]);
}

#[test]
fn what_one_cluster_has_of_a_pool_is_not_there_for_the_next() {
    let world = world(json!({"shares": {"cpu": {"perPeerCap": 6}}}));
    let first = world.offer("x");
    assert_eq!(
        (pool(&first, "gpu").as_str(), pool(&first, "rest").as_str()),
        ("cpu=4, memory=32Gi, nvidia.com/gpu=2", "cpu=2, memory=32Gi")
    );
    let world = world.sell("x", &first);
    assert_eq!(world.offer("x"), first, "what it has is part of what it is offered");
    let refused = world.offer("y");
    assert_eq!((pool(&refused, "gpu").as_str(), pool(&refused, "rest").as_str()), ("cpu=4", "cpu=2"));
}

#[test]
fn who_asks_for_less_gets_some_of_each_pool() {
    let asker = Peer { wants: list("cpu=3, memory=8Gi"), ..peer("x") };
    let offer = super::offer(world(json!({})).ask_as(&asker));
    assert_eq!(
        (pool(&offer, "gpu").as_str(), pool(&offer, "rest").as_str()),
        ("cpu=2, memory=4Gi, nvidia.com/gpu=2", "cpu=1, memory=4Gi")
    );
}

#[test]
fn a_pool_without_anything_left_is_not_offered() {
    let mut world = world(json!({}));
    world.nodes[1].0.ready = false;
    let offer = world.offer("x");
    assert_eq!(offer.pools.keys().map(crate::names::PoolName::as_str).collect::<Vec<_>>(), ["gpu"]);
    assert_eq!(crate::pools::sum(&offer.pools), offer.resources);
}

#[test]
fn the_explanation_says_what_each_pool_gets() {
    let lines: Vec<String> = world(json!({})).ask("x").lines.iter().map(ToString::to_string).collect();
    assert!(
        lines.iter().any(|line| line == "2 nodes count; not counted: 1 not selected by the policy"),
        "{lines:#?}"
    );
    assert!(lines.iter().any(|line| line.starts_with("pool gpu: cpu=8, memory=32Gi")), "{lines:#?}");
    let largest = "largest single pod that fits into pool rest now: cpu=4, memory=32Gi";
    assert!(lines.iter().any(|line| line == largest), "{lines:#?}");
}

#[test]
fn the_nodes_of_a_pool_are_told_apart_from_those_of_the_pools_before() {
    let policy = policy("p", &json!({"nodeSelector": {"matchLabels": {"lend": "yes"}}, "pools": pools()}));
    let told: Vec<(String, Vec<String>)> = policy
        .pool_nodes()
        .map(|(name, terms)| {
            let term = |term: &Vec<crate::selector::Requirement>| {
                term.iter().map(ToString::to_string).collect::<Vec<_>>().join(" & ")
            };
            (name.to_string(), terms.iter().map(term).collect())
        })
        .collect();
    let expected = [
        ("gpu".to_owned(), vec!["lend=yes & kind=gpu".to_owned()]),
        ("rest".to_owned(), vec!["lend=yes & kind & kind not in (gpu)".to_owned()]),
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_makes_no_sense_is_told() {
    let problems = |spec: Value| {
        let spec: Spec = serde_json::from_value(spec).unwrap();
        Policy::read("p", &spec).problems().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let many: Vec<Value> = (0..17).map(|index| json!({"name": format!("p{index}")})).collect();
    let wide = |name: &str| {
        let keys = (0..9).map(|key| (format!("{name}{key}"), json!("x")));
        json!({"name": name, "nodeSelector": {"matchLabels": keys.collect::<serde_json::Map<_, _>>()}})
    };
    for (spec, expected) in [
        (json!({"pools": many}), "spec.pools: has 17 entries, at most 16 are allowed"),
        (json!({"pools": [{"name": "A"}]}), "spec.pools[0].name: \"A\" is not a pool name"),
        (
            json!({"pools": [{"name": "a", "nodeSelector": {"matchLabels": {"k": "v"}}}, {"name": "a"}]}),
            "spec.pools[1].name: there is another pool a",
        ),
        (
            json!({"pools": [{"name": "a"}, {"name": "b"}]}),
            "spec.pools[1]: has no nodes: all that are left belong to pool a",
        ),
        (json!({"pools": [{"name": "a", "labels": {"k": "no spaces"}}]}), "spec.pools[0].labels[k]: "),
        (
            json!({"pools": [{"name": "a"}], "shares": {"cpu": {"autoscaled": 1}}}),
            "spec.shares[cpu].autoscaled: nobody knows",
        ),
        (
            json!({"pools": [wide("a"), wide("b"), wide("c")]}),
            "spec.pools[2].nodeSelector: its nodes are told apart",
        ),
    ] {
        let told = problems(spec);
        assert!(told.starts_with(expected), "{told}");
    }
}
