use serde_json::json;

use super::*;

fn node(labels: &[(&str, &str)]) -> NodeFacts {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    NodeFacts { cluster: "milan".parse().unwrap(), labels, outage: None, usable: true }
}

#[test]
fn a_node_that_says_the_same_again_wakes_nobody() {
    let mut index = Index::default();
    let key = Key::cluster("liqo-milan");
    index.apply(&key, node(&[("tier", "gold")]));
    assert!(!index.take_dirty().is_empty());
    index.apply(&key, node(&[("tier", "gold")]));
    assert!(index.take_dirty().is_empty());
    index.apply(&key, node(&[]));
    assert!(!index.take_dirty().is_empty());
    Indexed::<NodeFacts>::delete(&mut index, &key);
    assert!(!index.take_dirty().is_empty());
    assert_eq!(index.nodes_of(&"milan".parse().unwrap()).count(), 0);
}

#[test]
fn copies_that_others_left_here_are_not_ours() {
    let mut index = Index::default();
    let map = |labels| {
        let map = json!({
            "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "NamespaceMap",
            "metadata": { "name": "m", "namespace": "liqo-tenant-milan", "labels": labels }, "spec": {},
        });
        serde_json::from_value::<NamespaceMap>(map).unwrap()
    };
    let key = Key::namespaced("liqo-tenant-milan", "m");
    index.apply(&key, map(json!({ "liqo.io/replicated": "true", "liqo.io/remote-cluster-id": "milan" })));
    assert!(index.original(&"milan".parse().unwrap()).is_none());
    index.apply(&key, map(json!({ "liqo.io/remote-cluster-id": "milan" })));
    assert!(index.original(&"milan".parse().unwrap()).is_some());
}
