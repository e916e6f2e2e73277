use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T01:00:00Z";

fn around() -> Surroundings {
    let lender = Lender { id: "id-milan".into(), name: "milan".into(), trouble: None };
    Surroundings {
        strategies: [("shop".to_owned(), PodOffloadingStrategy::LocalAndRemote)].into(),
        lenders: [("liqo-milan".to_owned(), lender)].into(),
        namespaces: [(("id-milan".to_owned(), "shop".to_owned()), "shop-home-1".to_owned())].into(),
    }
}

fn pod(node: Option<&str>, status: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": {
            "namespace": "shop", "name": "web", "creationTimestamp": "2026-01-01T00:55:00Z",
            "labels": { "liqo.io/shadowPod": "true" },
        },
        "spec": { "nodeName": node, "containers": [{ "name": "app" }] },
        "status": status,
    }))
    .unwrap()
}

fn container(state: &Value) -> Value {
    json!({ "name": "app", "image": "i", "imageID": "", "ready": false, "restartCount": 2, "state": state })
}

fn running() -> Value {
    let mut app = container(&json!({ "running": {} }));
    app["ready"] = json!(true);
    json!({
        "phase": "Running", "podIP": "10.1.2.3", "containerStatuses": [app],
        "conditions": [
            { "type": "Ready", "status": "True" },
            { "type": PLACED, "status": "True", "reason": "Placed", "message": "worker-3" },
        ],
    })
}

#[test]
fn a_pod_that_runs_elsewhere_says_where_down_to_the_node() {
    let view = of(&pod(Some("liqo-milan"), &running()), &around());
    assert_eq!(view.provider.as_deref(), Some("milan"));
    assert_eq!(view.remote_namespace.as_deref(), Some("shop-home-1"));
    assert_eq!(view.node.as_deref(), Some("worker-3"));
    assert_eq!((view.status.as_str(), view.ready.as_str(), view.why.as_deref()), ("Running", "1/1", None));
    assert!(view.is_at(Some("id-milan")) && !view.is_at(Some("id-rome")));
    let lines = text(&[view], false, false, NOW.parse().unwrap());
    let row: Vec<&str> = lines.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(row, ["web", "1/1", "Running", "milan", "shop-home-1", "worker-3", "5m", "-"]);
}

#[test]
fn a_pod_at_home_is_on_its_node() {
    let view = of(&pod(Some("home-1"), &running()), &around());
    assert_eq!((view.provider, view.node.as_deref()), (None, Some("home-1")));
    let view = of(&pod(Some("home-1"), &running()), &around());
    let lines = text(&[view], true, true, NOW.parse().unwrap());
    assert!(lines.contains("shop   ") && lines.contains("(home)") && lines.contains("10.1.2.3"), "{lines}");
}

#[test]
fn each_way_not_to_run_is_told() {
    let unplaced = json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/3 nodes are available" }] });
    let refused = json!({ "phase": "Pending", "reason": "QuotaExceeded", "message": "refused by the provider: 2 CPUs" });
    let unmapped = json!({ "phase": "Pending", "reason": "OffloadingBackoff", "message": "not offloaded" });
    let pulling = json!({ "phase": "Pending", "containerStatuses":
        [container(&json!({ "waiting": { "reason": "ImagePullBackOff", "message": "no such image" } }))] });
    let mut crashing = container(&json!({ "waiting": { "reason": "CrashLoopBackOff" } }));
    crashing["lastState"] = json!({ "terminated": { "exitCode": 7 } });
    let crashing = json!({ "phase": "Running", "containerStatuses": [crashing],
        "conditions": [{ "type": "Ready", "status": "False", "reason": "ContainersNotReady" }] });
    let ended = json!({ "phase": "Failed", "containerStatuses":
        [container(&json!({ "terminated": { "exitCode": 3, "reason": "Error" } }))] });
    let silent = json!({ "phase": "Pending" });
    let lost = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "False",
        "reason": "ProviderUnreachable", "message": "the provider does not answer" }] });
    let cases = [
        (None, unplaced, "Pending", "Unschedulable: 0/3 nodes are available"),
        (Some("liqo-milan"), refused, "QuotaExceeded", "QuotaExceeded: refused by the provider: 2 CPUs"),
        (Some("liqo-milan"), unmapped, "OffloadingBackoff", "OffloadingBackoff: not offloaded"),
        (Some("liqo-milan"), pulling, "ImagePullBackOff", "container app: ImagePullBackOff: no such image"),
        (
            Some("liqo-milan"),
            crashing,
            "CrashLoopBackOff",
            "container app: CrashLoopBackOff (it ended with 7)",
        ),
        (Some("liqo-milan"), ended, "Error", "container app: Error (it ended with 3)"),
        (Some("liqo-milan"), silent, "Pending", "milan has not said anything about it yet"),
        (Some("liqo-milan"), lost, "Running", "ProviderUnreachable: the provider does not answer"),
    ];
    for (node, status, word, reason) in cases {
        let view = of(&pod(node, &status), &around());
        assert_eq!((view.status.as_str(), view.why.as_deref()), (word, Some(reason)), "{status:#}");
    }
}

#[test]
fn a_pod_that_ended_well_needs_no_reason() {
    let done = json!({ "phase": "Succeeded", "conditions": [{ "type": "Ready", "status": "False", "reason": "PodCompleted" }] });
    assert_eq!(of(&pod(Some("liqo-milan"), &done), &around()).why, None);
}

#[test]
fn a_virtual_node_that_is_not_ready_says_why_its_pods_are_not() {
    let mut around = around();
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": "liqo-milan" }, "status": { "conditions": [
        { "type": "Ready", "status": "False", "reason": "ProviderUnreachable", "message": "since noon" }] } }))
    .unwrap();
    let lender = Lender::read(&node, "id-milan", "milan".into());
    around.lenders.insert("liqo-milan".into(), lender);
    let view = of(&pod(Some("liqo-milan"), &running()), &around);
    assert_eq!(view.why.as_deref(), Some("ProviderUnreachable: since noon"));
}

#[test]
fn a_pod_from_before_says_why_it_stays() {
    let mut pod = pod(Some("home-1"), &running());
    pod.metadata.labels = None;
    assert!(of(&pod, &around()).why.unwrap().contains("before its namespace was offloaded"));
    let mut local = around();
    local.strategies.insert("shop".into(), PodOffloadingStrategy::Local);
    assert_eq!(of(&pod, &local).why, None);
}

#[test]
fn long_reasons_are_cut_in_the_table_only() {
    let long = "ö".repeat(SHORT * 2);
    let view = of(
        &pod(Some("liqo-milan"), &json!({ "phase": "Pending", "message": format!("a\n{long}") })),
        &around(),
    );
    let now = NOW.parse().unwrap();
    let (short, wide) =
        (text(std::slice::from_ref(&view), false, false, now), text(&[view], false, true, now));
    assert!(!short.contains(&long) && short.contains('…') && short.lines().count() == 2, "{short}");
    assert!(wide.contains(&long), "{wide}");
}
