//! Pods that do not run, and why.

use serde_json::{Value, json};

use super::super::worlds::{Cluster, healthy};
use super::expect;
use liqo_install::finding::Outcome::{Failed, Warning};

pub(super) fn waiting(reason: &str, message: &str) -> Cluster {
    healthy().change("Pod", |pod| {
        pod["status"]["containerStatuses"][0]["ready"] = json!(false);
        pod["status"]["containerStatuses"][0]["state"] =
            json!({"waiting": {"reason": reason, "message": message}});
    })
}

#[test]
fn a_pod_that_does_not_run_says_why_and_what_to_do() {
    for (reason, message, hint) in [
        ("ImagePullBackOff", "Back-off pulling image \"liqo:0.1.0\"", "cannot get the image liqo:0.1.0"),
        ("ErrImageNeverPull", "", "load it into the node"),
        ("CreateContainerConfigError", "secret \"x\" not found", "describe pod"),
        ("ContainerCreating", "", "describe pod"),
    ] {
        expect(
            &waiting(reason, message),
            Failed,
            &["pod liqo-controller-manager-7d9f8-x2k4q", reason, message],
            hint,
        );
    }
}

#[test]
fn a_crashing_pod_shows_its_last_words_and_an_end_for_lack_of_memory() {
    let ended = |end: Value| {
        waiting("CrashLoopBackOff", "back-off 5m0s").change("Pod", |pod| {
            pod["status"]["containerStatuses"][0]["lastState"] = json!({"terminated": end});
        })
    };
    let words = ended(
        json!({"exitCode": 3, "message": "cannot read\nthe key", "finishedAt": "2030-06-01T01:00:00Z"}),
    );
    expect(
        &words,
        Failed,
        &["CrashLoopBackOff"],
        "ended with code 3 and its last words were: cannot read the key",
    );
    let memory = ended(json!({"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2030-06-01T01:00:00Z"}));
    expect(&memory, Failed, &["CrashLoopBackOff"], "limits.memory");
    expect(&memory, Failed, &[], "liqoctl logs --previous");
}

#[test]
fn a_pod_without_a_node_shows_the_scheduler_s_words() {
    let pending = healthy().change("Pod", |pod| {
        pod["status"] = json!({"phase": "Pending", "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient cpu."}
        ]});
    });
    expect(&pending, Failed, &["Pending: 0/1 nodes are available"], "taints");
}

#[test]
fn a_pod_that_runs_but_is_not_ready_shows_the_latest_warning_about_it() {
    let event = |message: &str, time: &str, about: &str| {
        json!({"kind": "Event", "apiVersion": "v1", "metadata": {"name": time, "namespace": "liqo"}, "type": "Warning",
               "involvedObject": {"kind": "Pod", "name": about}, "message": message, "lastTimestamp": time})
    };
    let pod = "liqo-controller-manager-7d9f8-x2k4q";
    let unready = healthy()
        .change("Pod", |pod| pod["status"]["containerStatuses"][0]["ready"] = json!(false))
        .with(event("Readiness probe failed: 503", "2030-06-01T11:59:00Z", pod))
        .with(event("Older", "2030-06-01T11:00:00Z", pod))
        .with(event("About another", "2030-06-01T11:59:30Z", "other"));
    expect(&unready, Failed, &["Running: Readiness probe failed: 503"], "liqoctl logs");
}

#[test]
fn pods_that_are_going_or_were_evicted_do_not_count() {
    let mut more = healthy();
    let pod = more.objects.iter().find(|object| object["kind"] == "Pod").unwrap().clone();
    for (name, change) in [
        ("going", json!({"metadata": {"deletionTimestamp": "2030-06-01T11:00:00Z"}})),
        ("evicted", json!({"status": {"phase": "Failed", "reason": "Evicted", "containerStatuses": null}})),
    ] {
        let mut other = pod.clone();
        merge(&mut other, &change);
        other["metadata"]["name"] = json!(name);
        more = more.with(other);
    }
    assert!(more.report().problems().is_empty(), "{:#?}", more.report().problems());
}

fn merge(into: &mut Value, from: &Value) {
    match from {
        Value::Object(from) => from.iter().for_each(|(key, value)| merge(&mut into[key], value)),
        other => *into = other.clone(),
    }
}

#[test]
fn no_pod_at_all_is_explained_by_what_refused_it() {
    let none = healthy().without("Pod", "liqo-controller-manager-7d9f8-x2k4q").with(json!({
        "kind": "Event", "apiVersion": "v1", "metadata": {"name": "e"}, "type": "Warning",
        "involvedObject": {"kind": "ReplicaSet", "name": "liqo-controller-manager-7d9f8"},
        "message": "pods is forbidden: violates PodSecurity"
    }));
    expect(&none, Failed, &["there is no pod: pods is forbidden: violates PodSecurity"], "get events");
}

#[test]
fn a_recent_restart_is_worth_a_look_and_an_old_one_is_not() {
    let restarted = |at: &str| {
        healthy().change("Pod", |pod| {
            let container = &mut pod["status"]["containerStatuses"][0];
            container["restartCount"] = json!(4);
            container["lastState"] =
                json!({"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": at}});
        })
    };
    expect(
        &restarted("2030-06-01T11:57:00Z"),
        Warning,
        &["3m ago (Error, exit code 1, 4 in all)"],
        "--previous",
    );
    assert!(restarted("2030-06-01T11:00:00Z").report().problems().is_empty());
}
