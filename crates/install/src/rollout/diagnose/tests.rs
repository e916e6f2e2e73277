use k8s_openapi::api::core::v1::{Event, Node, Pod};
use liqo_api::ClusterConfig;
use serde_json::{Value, json};

use super::super::{Told, Workload};
use super::{Step, Trouble, step, troubles};

fn pod(status: &Value) -> Pod {
    serde_json::from_value(json!({"metadata": {"name": "m-1"}, "status": status})).unwrap()
}

fn workload(pods: Vec<Pod>) -> Workload {
    Workload {
        what: "Deployment liqo/m".into(),
        observed: true,
        noticed: true,
        wanted: 1,
        updated: i32::try_from(pods.len()).unwrap(),
        pods,
        ..Workload::default()
    }
}

fn container(state: &Value) -> Value {
    json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
        "containerStatuses": [{"name": "m", "image": "liqo:0.1.0", "imageID": "", "ready": false, "restartCount": 3,
            "state": state["state"], "lastState": state["lastState"]}]})
}

fn event(reason: &str, message: &str) -> Event {
    serde_json::from_value(
        json!({"metadata": {}, "involvedObject": {"name": "m-1"}, "reason": reason, "message": message}),
    )
    .unwrap()
}

/// The only trouble.
fn only(workload: Workload) -> Trouble {
    let mut found = troubles(&[workload], None);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn says(trouble: &Trouble, words: &[&str]) {
    let text = trouble.to_string();
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn an_image_that_cannot_be_pulled_is_named_with_the_registrys_words() {
    let waiting =
        json!({"state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}});
    let mut workload = workload(vec![pod(&container(&waiting))]);
    workload.events = vec![
        event("Failed", "Failed to pull image \"liqo:0.1.0\": not found"),
        event("Failed", "Error: ErrImagePull"),
    ];
    workload.events.swap(0, 1);
    let trouble = only(workload);
    says(&trouble, &["pod m-1", "liqo:0.1.0", "ImagePullBackOff", "not found", "image.name"]);
    assert!(trouble.lasting);
}

#[test]
fn a_full_disk_is_called_so() {
    let message = "failed to pull: write /var/lib/containerd: no space left on device";
    let waiting = json!({"state": {"waiting": {"reason": "ErrImagePull", "message": message}}});
    says(&only(workload(vec![pod(&container(&waiting))])), &["no space left", "disk is full", "crictl rmi"]);
    let evicted = json!({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: ephemeral-storage."});
    says(&only(workload(vec![pod(&evicted)])), &["Evicted", "disk is full"]);
}

#[test]
fn a_crash_comes_with_its_last_words() {
    let crash = json!({"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": {"exitCode": 1, "reason": "Error"}}});
    let mut workload = workload(vec![pod(&container(&crash))]);
    workload.logs = vec![("m-1".into(), "cannot read the identity\nbye".into())];
    let trouble = only(workload);
    says(&trouble, &["ended with code 1, 3 times before", "    cannot read the identity", "    bye"]);
    assert!(trouble.lasting);
}

#[test]
fn too_little_memory_is_called_so() {
    let crash = json!({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}, "lastState": {}});
    says(&only(workload(vec![pod(&container(&crash))])), &["more memory than it may", "limits.memory"]);
}

#[test]
fn a_pod_that_no_node_takes_says_why_and_is_waited_for() {
    let pending = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/1 nodes are available: 1 Insufficient memory."}]});
    let trouble = only(workload(vec![pod(&pending)]));
    says(&trouble, &["no node takes it", "Insufficient memory"]);
    assert!(!trouble.lasting);
}

#[test]
fn a_pod_that_nobody_schedules_asks_for_the_scheduler() {
    says(&only(workload(vec![pod(&json!({"phase": "Pending"}))])), &["no scheduler has looked at it"]);
}

#[test]
fn a_pod_that_runs_and_is_not_ready_shows_the_probe() {
    let running = json!({"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": "False"}],
        "containerStatuses": [{"name": "m", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": {"running": {}}}]});
    let mut workload = workload(vec![pod(&running)]);
    workload.events = vec![event("Unhealthy", "Readiness probe failed: 503")];
    says(&only(workload), &["runs but is not ready", "503"]);
}

#[test]
fn a_pod_without_a_network_shows_the_kubelets_words() {
    let pending = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]});
    let mut workload = workload(vec![pod(&pending)]);
    workload.events = vec![event("FailedCreatePodSandBox", "plugin type=\"bridge\" failed")];
    says(&only(workload), &["cannot be started", "bridge"]);
}

#[test]
fn quota_and_policies_that_refuse_pods_are_told_once() {
    for (message, hint) in [
        (
            "pods \"m-1\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0",
            "ResourceQuota",
        ),
        ("pods \"m-1\" is forbidden: violates PodSecurity \"restricted:latest\"", "Pod Security level"),
        ("Internal error occurred: failed calling webhook \"x\"", "admission webhook"),
    ] {
        let mut workload = workload(vec![]);
        workload.failures = vec![message.into()];
        workload.replica_sets = vec![
            serde_json::from_value(json!({"metadata": {}, "status": {"replicas": 0, "conditions":
                [{"type": "ReplicaFailure", "status": "True", "message": message}]}}))
            .unwrap(),
        ];
        let trouble = only(workload);
        says(&trouble, &["no pod can be made", message, hint]);
        assert!(trouble.lasting);
    }
}

#[test]
fn a_cluster_without_controllers_is_called_so() {
    let workload = Workload { noticed: false, ..workload(vec![]) };
    says(&only(workload), &["controller manager has not looked at it"]);
}

#[test]
fn steps_go_from_controllers_over_pods_to_the_managers_word() {
    let waits = |workload: &Workload, told: Option<&Told>, word: &str| match step(
        std::slice::from_ref(workload),
        told,
    ) {
        Step::Waiting(text) => assert!(text.contains(word), "{word}: {text}"),
        Step::Ready => panic!("ready instead of {word}"),
    };
    let mut world = Workload { noticed: false, ..workload(vec![pod(&json!({"phase": "Pending"}))]) };
    waits(&world, None, "not noticed it");
    world.noticed = true;
    waits(&world, None, "0 of 1 pods ready (Pending)");
    (world.available, world.old) = (1, 1);
    waits(&world, None, "1 of 1 pods ready");
    world.old = 0;
    assert_eq!(step(std::slice::from_ref(&world), None), Step::Ready);
    let mut told = Told { config: None, version: Some("0.1.0".into()) };
    waits(&world, Some(&told), "ClusterConfig liqo");
    let config = |version: &str, ready: &str| -> Option<ClusterConfig> {
        let condition = json!({"type": "Ready", "status": ready, "reason": "NoKey", "message": "the Secret is lost",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({"apiVersion": "config.liqo.io/v1alpha1", "kind": "ClusterConfig", "metadata": {"name": "liqo"},
            "spec": {}, "status": {"version": version, "conditions": [condition]}}))
        .ok()
    };
    told.config = config("0.0.9", "True");
    waits(&world, Some(&told), "still told by version \"0.0.9\"");
    told.config = config("0.1.0", "False");
    waits(&world, Some(&told), "the Secret is lost");
    world.pods.clear();
    world.wanted = 0;
    says(&troubles(&[world.clone()], Some(&told))[0], &["ClusterConfig liqo, Ready", "the Secret is lost"]);
    told.config = config("v0.1.0+build", "True");
    assert_eq!(step(std::slice::from_ref(&world), Some(&told)), Step::Ready);
    told.version = None;
    told.config = config("anything", "True");
    assert_eq!(step(std::slice::from_ref(&world), Some(&told)), Step::Ready);
}

#[test]
fn an_image_that_takes_its_time_is_waited_for() {
    let pending = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]});
    let mut workload = workload(vec![pod(&pending)]);
    workload.events = vec![event("Pulling", "Pulling image \"far.example.com/liqo:0.1.0\"")];
    let trouble = only(workload.clone());
    says(&trouble, &["its image is not there yet", "far.example.com/liqo:0.1.0"]);
    assert!(!trouble.lasting);
    workload.events.push(event("Pulled", "Successfully pulled image"));
    assert_eq!(troubles(&[workload], None), []);
}

#[test]
fn taints_and_full_disks_are_named_where_the_scheduler_only_counts_them() {
    let status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
        "message": "0/1 nodes are available: 1 node(s) had untolerated taint(s)."}]});
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n-1"},
        "spec": {"taints": [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]},
        "status": {"conditions": [{"type": "DiskPressure", "status": "True", "message": "kubelet has disk pressure"},
            {"type": "MemoryPressure", "status": "False", "message": "enough"}]}}))
    .unwrap();
    let trouble = only(Workload { nodes: vec![node], ..workload(vec![pod(&status)]) });
    says(
        &trouble,
        &[
            "node n-1 has taint node.kubernetes.io/disk-pressure:NoSchedule",
            "DiskPressure: kubelet has disk pressure",
        ],
    );
    assert!(!trouble.to_string().contains("enough"), "{trouble}");
}
