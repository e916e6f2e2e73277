//! From objects to facts.

use serde_json::{Value, json};

use super::list;
use crate::stock::{ClassFacts, NodeFacts, PodFacts, read_policy};

fn node(object: Value) -> NodeFacts {
    NodeFacts::read(serde_json::from_value(object).unwrap()).unwrap()
}

fn ready() -> Value {
    json!([{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True", "reason": "KubeletReady"}])
}

#[test]
fn a_node_counts_only_if_anybody_may_come() {
    let meta = json!({"name": "n"});
    for (spec, conditions, expected) in [
        (json!({}), ready(), (true, true)),
        (json!({"unschedulable": true}), ready(), (true, false)),
        (json!({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}), ready(), (true, false)),
        (json!({"taints": [{"key": "gpu", "value": "x", "effect": "NoExecute"}]}), ready(), (true, false)),
        (json!({"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}), ready(), (true, true)),
        (json!({"taints": null}), ready(), (true, true)),
        (json!({}), json!([{"type": "Ready", "status": "Unknown"}]), (false, true)),
        (json!({}), json!([]), (false, true)),
        (json!({}), Value::Null, (false, true)),
    ] {
        let facts = node(json!({"metadata": meta, "spec": spec, "status": {"conditions": conditions}}));
        assert_eq!((facts.node.ready, facts.node.schedulable), expected, "{spec} {conditions}");
    }
    let going = json!({"metadata": {"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert!(!node(going).node.schedulable);
}

#[test]
fn a_node_has_what_pods_can_ask_for() {
    let facts = node(json!({
        "metadata": {"name": "n", "labels": {"zone": "a", "liqo.io/type": "virtual-node"}},
        "status": {
            "allocatable": {
                "cpu": "3920m", "memory": "7Gi", "hugepages-2Mi": "0", "nvidia.com/gpu": "1", "odd/": "1", "odd": "many",
                "attachable-volumes-csi-disk": "25",
            },
            "conditions": ready(),
            "images": [{"names": ["a:1", "a@sha256:0"], "sizeBytes": 7}, {"sizeBytes": -1}],
        },
    }));
    assert_eq!(facts.node.allocatable, list("cpu=3920m, memory=7Gi, hugepages-2Mi=0, nvidia.com/gpu=1"));
    assert_eq!(facts.node.labels.get("zone").map(String::as_str), Some("a"));
    assert!(facts.node.virtual_node);
    let images: Vec<_> = facts.images.iter().map(|image| (image.names.len(), image.size)).collect();
    assert_eq!(images, [(2, 7), (0, 0)]);
}

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn pod(metadata: Value, spec: Value, status: Value) -> Option<PodFacts> {
    let object = json!({"metadata": metadata, "spec": spec, "status": status});
    PodFacts::read(serde_json::from_value(object).unwrap())
}

#[test]
fn a_pod_takes_room_from_when_it_is_placed_until_it_has_finished() {
    let meta = || json!({"name": "p", "namespace": "ns"});
    let placed = json!({"nodeName": "n", "containers": []});
    for (spec, status, takes) in [
        (placed.clone(), json!({"phase": "Running"}), true),
        (placed.clone(), json!({"phase": "Pending"}), true),
        (placed.clone(), json!({"phase": "Unknown"}), true),
        (placed.clone(), json!({}), true),
        (placed.clone(), json!({"phase": "Succeeded"}), false),
        (placed, json!({"phase": "Failed"}), false),
        (json!({"containers": []}), json!({"phase": "Pending"}), false),
        (json!({"nodeName": "", "containers": []}), json!({"phase": "Pending"}), false),
    ] {
        assert_eq!(pod(meta(), spec.clone(), status.clone()).is_some(), takes, "{spec} {status}");
    }
}

#[test]
fn a_pods_requests_are_those_of_its_largest_moment() {
    let requests = |requests: Value| json!({"requests": requests, "limits": {"cpu": "99"}});
    let facts = pod(
        json!({"name": "p"}),
        json!({
            "nodeName": "n",
            "initContainers": [
                {"name": "side", "restartPolicy": "Always", "resources": requests(json!({"cpu": "1"}))},
                {"name": "setup", "resources": requests(json!({"cpu": "4", "memory": "1Gi"}))},
            ],
            "containers": [
                {"name": "web", "resources": requests(json!({"cpu": "1", "memory": "512Mi"}))},
                {"name": "log"},
            ],
            "overhead": {"memory": "64Mi"},
        }),
        json!({}),
    );
    assert_eq!(*facts.unwrap().requests, list("cpu=5, memory=1088Mi"));

    let as_a_whole = json!({
        "nodeName": "n", "resources": {"requests": {"cpu": "3"}},
        "containers": [{"name": "web", "resources": requests(json!({"cpu": "1", "memory": "1Gi"}))}],
    });
    let facts = pod(json!({"name": "p"}), as_a_whole, json!({})).unwrap();
    assert_eq!(*facts.requests, list("cpu=3, memory=1Gi"));
}

#[test]
fn a_container_that_shrinks_keeps_its_room_until_the_kubelet_is_done() {
    let spec = json!({"nodeName": "n", "containers": [
        {"name": "web", "resources": {"requests": {"cpu": "1"}}}, {"name": "log", "resources": {"requests": {"cpu": "1"}}},
    ]});
    let status = json!({"containerStatuses": [
        {"name": "web", "allocatedResources": {"cpu": "2"}}, {"name": "log", "allocatedResources": {"cpu": "500m"}},
    ]});
    assert_eq!(*pod(json!({"name": "p"}), spec, status).unwrap().requests, list("cpu=3"));
}

#[test]
fn a_pod_says_whose_it_is_by_its_labels() {
    let spec = || json!({"nodeName": "n", "containers": []});
    let peer = |labels: Value| {
        let facts = pod(json!({"name": "p", "labels": labels}), spec(), json!({})).unwrap();
        facts.peer.map(|peer| peer.to_string())
    };
    assert_eq!(peer(json!({"app": "web"})), None);
    assert_eq!(peer(json!({"liqo.io/remote-cluster-id": "milan"})).as_deref(), Some("milan"));
    assert_eq!(peer(json!({"virtualkubelet.liqo.io/origin": "rome"})).as_deref(), Some("rome"));
    assert_eq!(peer(json!({"liqo.io/remote-cluster-id": "Not An ID"})), None);
}

#[test]
fn a_storage_class_is_ours_unless_it_stands_for_others() {
    let class = |provisioner: &str, annotations: Value| {
        let object =
            json!({"metadata": {"name": "c", "annotations": annotations}, "provisioner": provisioner});
        ClassFacts::read(&serde_json::from_value(object).unwrap())
    };
    let default = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    assert_eq!(class("disk.csi", default), Some(ClassFacts { default: true }));
    assert_eq!(class("disk.csi", json!({})), Some(ClassFacts { default: false }));
    assert_eq!(class("liqo.io/storage", json!({})), None);
}

#[test]
fn a_policy_that_makes_no_sense_is_one_that_refuses() {
    let read = |object: Value| read_policy(serde_json::from_value(object).unwrap()).unwrap();
    let fine = read(json!({"metadata": {"name": "p"}, "spec": {"share": {"percentage": 50}}}));
    assert_eq!(fine.problems(), []);
    assert_eq!(read(json!({"metadata": {"name": "p"}})).problems(), []);
    for (spec, expected) in [
        (json!({"share": {"percentage": 500}}), "spec.share.percentage: is 500; must be 0 to 100"),
        (json!({"share": "half"}), "spec: invalid type: string \"half\""),
        (json!({"shares": {"cpu": {"max": 1}}}), "spec: unknown field `max`"),
    ] {
        let policy = read(json!({"metadata": {"name": "p"}, "spec": spec}));
        let problem = policy.problems().first().map(ToString::to_string).unwrap_or_default();
        assert!(problem.starts_with(expected), "{problem}");
    }
}
