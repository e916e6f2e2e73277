use proptest::prelude::*;

use super::pod::InitContainer;
use super::{Capacity, Load, Node, NodeCount, Owner, PodRequests};
use crate::names::ClusterId;
use crate::resources::Resources;
use crate::selector::Selector;
use crate::testing::{id, list, selector};

fn node(name: &str, allocatable: &str) -> Node {
    let allocatable = list(allocatable);
    Node { name: name.to_owned(), allocatable, ready: true, schedulable: true, ..Node::default() }
}

fn load<const N: usize>(pods: [(&str, &str); N]) -> Load {
    let owner = |owner: &str| if owner == "local" { Owner::Local } else { Owner::Peer(id(owner)) };
    pods.into_iter().map(|(whose, requests)| (owner(whose), list(requests))).collect()
}

fn capacity<const N: usize>(nodes: [(Node, Load); N]) -> Capacity {
    let mut capacity = Capacity::default();
    for (node, load) in nodes {
        capacity.insert(node, load);
    }
    capacity
}

fn free(capacity: &Capacity, peer: &str) -> Resources {
    let mut free = capacity.free_for(&id(peer), &Selector::everything());
    free.remove("pods");
    free
}

#[test]
fn only_ready_schedulable_physical_selected_nodes_count() {
    let mut broken = node("b", "cpu=4");
    broken.ready = false;
    let mut cordoned = node("c", "cpu=4");
    cordoned.schedulable = false;
    let mut foreign = node("d", "cpu=4");
    foreign.virtual_node = true;
    let mut lent = node("e", "cpu=4");
    lent.labels.insert("lend".to_owned(), "yes".to_owned());
    let all = [node("a", "cpu=1"), broken, cordoned, foreign, lent];
    let capacity = capacity(all.map(|node| (node, Load::default())));

    assert_eq!(free(&capacity, "x"), list("cpu=5"));
    let lend = selector("lend=yes");
    assert_eq!(capacity.free_for(&id("x"), &lend), list("cpu=4"));
    let expected =
        NodeCount { counted: 1, not_ready: 1, unschedulable: 1, virtual_nodes: 1, not_selected: 1 };
    assert_eq!(capacity.count(&lend), expected);
}

#[test]
fn what_the_asker_uses_counts_as_free_and_what_others_use_does_not() {
    let capacity = capacity([
        (
            node("a", "cpu=8, memory=16Gi"),
            load([("local", "cpu=1, memory=1Gi"), ("x", "cpu=2"), ("y", "cpu=3")]),
        ),
        (node("b", "cpu=4"), load([("x", "cpu=1")])),
    ]);
    assert_eq!(free(&capacity, "x"), list("cpu=8, memory=15Gi"));
    assert_eq!(free(&capacity, "y"), list("cpu=8, memory=15Gi"));
    assert_eq!(free(&capacity, "z"), list("cpu=5, memory=15Gi"));
    assert_eq!(capacity.used_anywhere_by("x"), list("cpu=3, pods=2"));
    let used = capacity.used_by_peers(&Selector::everything());
    assert_eq!(used, [(id("x"), list("cpu=3, pods=2")), (id("y"), list("cpu=3, pods=1"))].into());
}

#[test]
fn an_overdrawn_resource_spoils_neither_the_others_nor_other_nodes() {
    let capacity = capacity([
        (node("a", "cpu=2, memory=4Gi, nvidia.com/gpu=1"), load([("local", "cpu=3, memory=1Gi, other=5")])),
        (node("b", "cpu=2, memory=4Gi"), Load::default()),
    ]);
    assert_eq!(free(&capacity, "x"), list("cpu=2, memory=7Gi, nvidia.com/gpu=1"));
}

#[test]
fn each_pod_takes_a_place_whether_it_says_so_or_not() {
    let capacity =
        capacity([(node("a", "pods=10"), load([("local", ""), ("local", "pods=1"), ("x", "cpu=1")]))]);
    assert_eq!(capacity.free_for(&id("y"), &Selector::everything()), list("pods=7"));
    assert_eq!(capacity.free_for(&id("x"), &Selector::everything()), list("pods=8"));
}

#[test]
fn a_node_that_is_replaced_or_gone_leaves_nothing_behind() {
    let mut capacity = capacity([(node("a", "cpu=8"), load([("x", "cpu=8")]))]);
    capacity.insert(node("a", "cpu=2"), Load::default());
    assert_eq!(free(&capacity, "y"), list("cpu=2"));
    capacity.remove("a");
    assert_eq!(capacity, Capacity::default());
}

#[test]
fn a_pod_that_went_leaves_no_more_than_one_that_never_came() {
    let mut with =
        load([("local", "cpu=1, memory=0"), ("x", "cpu=2"), ("y", "cpu=3, pods=1"), ("x", "memory=1Gi")]);
    assert!(with.remove(&Owner::Peer(id("y")), &list("cpu=3, pods=1")));
    assert!(with.remove(&Owner::Peer(id("x")), &list("cpu=2")));
    assert_eq!(with, load([("local", "cpu=1"), ("x", "memory=1Gi")]));
    assert!(!with.remove(&Owner::Peer(id("z")), &list("cpu=1")), "nobody's pod was counted");
    let mut beyond = load([("local", "cpu=1"), ("local", "cpu=1e40")]);
    assert!(!beyond.remove(&Owner::Local, &list("cpu=1e40")), "what was capped cannot be taken back");
}

/// The cases of the scheduler's own rules.
#[test]
fn a_pod_needs_its_largest_moment() {
    let containers = |lists: &[&str]| lists.iter().map(|text| list(text)).collect::<Vec<_>>();
    let inits = |lists: &[(&str, bool)]| {
        lists
            .iter()
            .map(|(text, sidecar)| InitContainer { requests: list(text), sidecar: *sidecar })
            .collect()
    };
    let pod = |c: &[&str], i: &[(&str, bool)], pod_level: &str, overhead: &str| PodRequests {
        containers: containers(c),
        init_containers: inits(i),
        pod_level: list(pod_level),
        overhead: list(overhead),
    };
    for (pod, expected) in [
        (pod(&[], &[], "", ""), ""),
        (pod(&["cpu=1", "cpu=2, memory=1Gi"], &[], "", ""), "cpu=3, memory=1Gi"),
        (pod(&["cpu=1"], &[("cpu=2", false), ("cpu=3", false)], "", ""), "cpu=3"),
        (pod(&["cpu=4"], &[("cpu=2", false), ("cpu=3", false)], "", ""), "cpu=4"),
        (pod(&["cpu=1"], &[("cpu=2", false), ("memory=1Gi", false)], "", ""), "cpu=2, memory=1Gi"),
        // A sidecar runs beside the containers and beside the init containers after it.
        (pod(&["cpu=1"], &[("cpu=2", true)], "", ""), "cpu=3"),
        (pod(&["cpu=1"], &[("cpu=2", true), ("cpu=4", false)], "", ""), "cpu=6"),
        (pod(&["cpu=1"], &[("cpu=4", false), ("cpu=2", true)], "", ""), "cpu=4"),
        (pod(&["cpu=1"], &[("cpu=1", true), ("cpu=5", false), ("cpu=2", true)], "", ""), "cpu=6"),
        (pod(&["cpu=1"], &[], "", "cpu=250m, memory=64Mi"), "cpu=1250m, memory=64Mi"),
        // What the pod says as a whole replaces the sum, resource by resource.
        (pod(&["cpu=1, memory=1Gi"], &[("cpu=9", false)], "cpu=2", "cpu=100m"), "cpu=2100m, memory=1Gi"),
    ] {
        assert_eq!(pod.effective(), list(expected), "{pod:?}");
    }
}

#[test]
fn ten_small_rooms_are_no_large_one() {
    let nodes: [(Node, Load); 10] = std::array::from_fn(|index| {
        (node(&format!("n{index}"), "cpu=2, memory=4Gi, pods=10"), load([("local", "cpu=1")]))
    });
    let capacity = capacity(nodes);
    let offered = list("cpu=10, memory=40Gi, pods=90");
    let largest = capacity.largest_pod(&Selector::everything(), &offered);
    assert_eq!(largest.on_one_node, list("cpu=1, memory=4Gi"));
    assert_eq!(largest.of_each, list("cpu=1, memory=4Gi"));
}

#[test]
fn the_roomiest_node_is_the_one_whose_scarcest_resource_is_the_most() {
    let capacity = capacity([
        (node("a-cpu", "cpu=30, memory=1Gi, pods=10"), Load::default()),
        (node("b-even", "cpu=8, memory=16Gi, pods=10"), Load::default()),
        (node("c-memory", "cpu=1, memory=100Gi, pods=10"), Load::default()),
        (node("d-gpu", "cpu=2, memory=4Gi, pods=10, nvidia.com/gpu=8"), Load::default()),
    ]);
    let offered = list("cpu=41, memory=121Gi, pods=40, nvidia.com/gpu=8");
    let largest = capacity.largest_pod(&Selector::everything(), &offered);
    assert_eq!(largest.on_one_node, list("cpu=8, memory=16Gi"));
    assert_eq!(largest.of_each, list("cpu=30, memory=100Gi, nvidia.com/gpu=8"));
}

#[test]
fn the_largest_pod_is_never_more_than_the_offer_and_needs_a_place() {
    let capacity = capacity([
        (node("a", "cpu=64, memory=256Gi, pods=2"), load([("local", ""), ("x", "")])),
        (node("b", "cpu=8, memory=8Gi, pods=10"), load([("x", "cpu=1")])),
    ]);
    let everything = Selector::everything();
    let largest = capacity.largest_pod(&everything, &list("cpu=4, memory=64Gi"));
    assert_eq!(
        largest.on_one_node,
        list("cpu=4, memory=8Gi"),
        "node a is full, b has 7 cores, 4 are offered"
    );
    assert_eq!(capacity.largest_pod(&everything, &list("")), super::LargestPod::default());
    assert_eq!(capacity.largest_pod(&everything, &list("nvidia.com/gpu=1")), super::LargestPod::default());
}

fn any_capacity() -> impl Strategy<Value = Capacity> {
    let amounts = || (-5_i64..20, -5_i64..20, 0_i64..4);
    let resources = |(cpu, memory, gpu): (i64, i64, i64)| {
        list(&format!("cpu={cpu}, memory={memory}Gi, nvidia.com/gpu={gpu}"))
    };
    let pod = (0_usize..4, amounts()).prop_map(move |(owner, amounts)| {
        let owner = if owner == 0 { Owner::Local } else { Owner::Peer(id(["x", "y", "z"][owner - 1])) };
        (owner, resources(amounts))
    });
    let node = (amounts(), any::<(bool, bool, bool)>(), prop::collection::vec(pod, 0..5));
    prop::collection::vec(node, 0..6).prop_map(move |nodes| {
        let mut capacity = Capacity::default();
        for (index, (amounts, (ready, schedulable, virtual_node), pods)) in nodes.into_iter().enumerate() {
            let name = index.to_string();
            let node = Node {
                name,
                allocatable: resources(amounts),
                ready,
                schedulable,
                virtual_node,
                ..Node::default()
            };
            capacity.insert(node, pods.into_iter().collect());
        }
        capacity
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn free_capacity_is_never_negative_whatever_the_world(capacity in any_capacity()) {
        for peer in ["x", "y", "stranger"] {
            let free = capacity.free_for(&id(peer), &Selector::everything());
            prop_assert!(free.iter().all(|(_, amount)| !amount.is_negative()), "{free}");
        }
    }

    #[test]
    fn the_largest_pod_fits_into_what_is_free_and_into_the_offer(capacity in any_capacity()) {
        let nobody = |_: &ClusterId| false;
        let free = capacity.pool(&Selector::everything(), nobody).free;
        let offered = list("cpu=7, memory=9Gi, nvidia.com/gpu=1");
        let largest = capacity.largest_pod(&Selector::everything(), &offered);
        for pod in [&largest.on_one_node, &largest.of_each] {
            prop_assert!(pod.fits_in(&free) && pod.fits_in(&offered), "{pod} in {free}");
        }
        prop_assert!(largest.on_one_node.fits_in(&largest.of_each));
    }
}
