use k8s_openapi::api::core::v1::Pod;
use liqo_kit::{Index, Key};
use liqo_providers::nodes::Answer;
use serde_json::json;

use super::*;
use crate::pods::facts::{Home, Remote, RemoteOnWire, VirtualNode};
use crate::pods::index::{PODS, SHADOWS};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

/// A virtual node `liqo-away`, and a namespace that is there.
fn world() -> Pods {
    let mut pods = Pods::default();
    pods.synced = true;
    let node = VirtualNode { provider: "away".into(), pool: None, address: None };
    pods.apply(&Key::cluster("liqo-away"), node);
    pods.open(&"shop".into(), &"away".into(), &"shop-home".into(), true);
    pods.seen_all("shop", "away", SHADOWS | PODS);
    pods
}

fn add(pods: &mut Pods, name: &str, node: Option<&str>, phase: &str) {
    let home = json!({ "metadata": { "name": name, "namespace": "shop", "uid": name },
        "spec": { "nodeName": "liqo-away", "containers": [] } });
    let home: Pod = serde_json::from_value(home).unwrap();
    pods.apply(&Key::namespaced("shop", name), Home::read(home, at(0)).unwrap());
    let remote =
        json!({ "metadata": { "name": name }, "spec": { "nodeName": node }, "status": { "phase": phase } });
    let remote: RemoteOnWire = serde_json::from_value(remote).unwrap();
    pods.at("shop", "away", |place| drop(place.pods.insert(name.into(), Remote::read(remote, at(0)))));
}

#[test]
fn nodes_are_asked_by_pods_that_run_one_after_the_other() {
    let mut pods = world();
    add(&mut pods, "a", Some("n1"), "Running");
    add(&mut pods, "b", Some("n1"), "Running");
    add(&mut pods, "c", Some("n1"), "Pending");
    add(&mut pods, "d", Some("n2"), "Pending");
    let footprint = Footprint::of(&pods, at(0));
    let key = |node: &str| ("away".into(), node.into());
    assert_eq!(footprint.used(), [(key("n1"), false), (key("n2"), false)].into());
    let asked: BTreeSet<_> = (0..4).filter_map(|attempt| footprint.pod(&key("n1"), attempt)).collect();
    assert_eq!(asked, [("shop", "a"), ("shop", "b")].into());
    assert_eq!(footprint.pod(&key("n2"), 0), None);
}

#[test]
fn what_is_behind_a_virtual_node_is_where_its_pods_are() {
    let mut pods = world();
    let nothing = Footprint::of(&pods, at(0)).behind(&Nodes::default());
    assert_eq!(nothing, [("liqo-away".into(), Behind::default())].into());
    add(&mut pods, "a", Some("n1"), "Running");
    add(&mut pods, "b", None, "Pending");
    let mut nodes = Nodes::default();
    nodes.use_only(&Footprint::of(&pods, at(0)).used(), at(0));
    nodes.observe(&("away".into(), "n1".into()), Answer::Lives, at(0));
    let behind = |second| Footprint::of(&pods, at(second)).behind(&nodes).remove("liqo-away").unwrap();
    assert_eq!(behind(9), Behind { nodes: vec![Health::Reachable], unplaced: false });
    assert_eq!(behind(10), Behind { nodes: vec![Health::Reachable], unplaced: true });
}

#[test]
fn nothing_is_said_of_what_was_not_looked_at() {
    let mut pods = world();
    pods.open(&"other".into(), &"away".into(), &"other-home".into(), true);
    let behind = Footprint::of(&pods, at(0)).behind(&Nodes::default()).remove("liqo-away").unwrap();
    assert_eq!(behind.nodes, [Health::Unknown]);
}
