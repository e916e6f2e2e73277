//! Nodes on real API servers: they come, follow their providers, and go.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/lender.rs"]
mod lender;
#[path = "support/world.rs"]
mod world;

use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use lender::{Lender, Reached};
use liqo_sandbox::{ClusterSpec, Component, TestCluster, TestSandbox};
use serde_json::{Value, json};
use tokio::time::Instant;
use world::{DEADLINE, Process, eventually, host, install, namespace, node, put, ready, taints, wait_ready};

const UNREACHABLE: &str = "virtual-node.liqo.io/unreachable";
/// For so long nothing must be written when nothing changes.
const QUIET: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_a_node_for_as_long_as_it_lends_and_answers() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("a", 1), ClusterSpec::hollow("b", 1)]).await;
    let (consumer, provider) = (sandbox.cluster("a"), sandbox.cluster("b"));
    let (here, there) = (consumer.client().await, provider.client().await);
    install(&here).await;
    let certificate = host(&there).await;
    let lender = Lender::new(1, "milan");
    namespace(&here, &lender.namespace).await;
    lender.know(&here, &Reached::of(&provider).await, &certificate).await;
    let mut process = start(&consumer).await;

    it_appears_with_what_the_contract_says(&here, &lender).await;
    its_lease_is_renewed(&here, &lender).await;
    process.kill();
    process = a_restart_writes_nothing(&here, &consumer, &lender).await;
    another_amount_is_shown(&here, &lender).await;
    a_blip_moves_nothing(&here, &provider, &lender).await;
    a_long_blip_moves_no_pod(&here, &provider, &lender).await;
    a_provider_that_is_gone_is_noticed_and_one_that_is_back_too(&here, &provider, &lender).await;
    a_node_is_emptied_by_hand_and_used_again(&here, &lender).await;
    a_contract_that_ends_empties_the_node_as_budgets_allow_and_the_node_goes(&here, &lender, &process).await;
    drop(process);
}

async fn start(consumer: &TestCluster<'_>) -> Process {
    Process::start(consumer, |settings| settings.eviction = SignedDuration::from_secs(8)).await
}

async fn it_appears_with_what_the_contract_says(here: &kube::Client, lender: &Lender) {
    let started = Instant::now();
    lender.lend(here, &[("cpu", "4"), ("memory", "8Gi"), ("pods", "50")]).await;
    let node = wait_ready(here, &lender.node(), "True", "ProviderReachable").await;
    println!("contract to ready node: {:?}", started.elapsed());
    for list in ["capacity", "allocatable"] {
        assert_eq!(node["status"][list], json!({ "cpu": "4", "memory": "8Gi", "pods": "50" }));
    }
    assert_eq!(node["spec"]["providerID"], format!("liqo://{}", lender.id));
    assert_eq!(node["metadata"]["labels"]["liqo.io/remote-cluster-id"], lender.id.as_str());
    eventually("Kubernetes takes its own taint away", || async {
        let node = world::node(here, &lender.node()).await.unwrap();
        let taints = taints(&node);
        let fine = taints.len() == 1 && taints.contains_key("virtual-node.liqo.io/not-allowed");
        if fine { Ok(()) } else { Err(format!("{taints:?}")) }
    })
    .await;
}

async fn its_lease_is_renewed(here: &kube::Client, lender: &Lender) {
    let leases: Api<Lease> = Api::namespaced(here.clone(), "kube-node-lease");
    let renewed = || async { leases.get_opt(&lender.node()).await.unwrap()?.spec?.renew_time };
    let first = eventually("a lease", || async { renewed().await.ok_or_else(|| "none".to_owned()) }).await;
    eventually("a renewal", || async {
        let now = renewed().await;
        if now.as_ref() > Some(&first) { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
}

async fn version(here: &kube::Client, lender: &Lender) -> String {
    let node = node(here, &lender.node()).await.unwrap();
    node["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

async fn a_restart_writes_nothing(
    here: &kube::Client,
    consumer: &TestCluster<'_>,
    lender: &Lender,
) -> Process {
    let before = node(here, &lender.node()).await.unwrap();
    let process = start(consumer).await;
    // Its port is another one, which is told; then nothing more is.
    eventually("it leads again", || async {
        let node = node(here, &lender.node()).await.unwrap();
        let port = &node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"];
        if *port == json!(process.address.port()) { Ok(()) } else { Err(port.to_string()) }
    })
    .await;
    let after = version(here, lender).await;
    let deadline = Instant::now() + QUIET;
    while Instant::now() < deadline {
        assert_eq!(version(here, lender).await, after);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let now = node(here, &lender.node()).await.unwrap();
    assert_eq!(now["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(
        now["status"]["conditions"][0]["lastTransitionTime"],
        before["status"]["conditions"][0]["lastTransitionTime"]
    );
    process
}

async fn another_amount_is_shown(here: &kube::Client, lender: &Lender) {
    lender.lend(here, &[("cpu", "2"), ("memory", "8Gi"), ("nvidia.com/gpu", "1")]).await;
    eventually("the new amounts", || async {
        let node = node(here, &lender.node()).await.unwrap();
        let expected = json!({ "cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1", "pods": "1M" });
        let fine = node["status"]["capacity"] == expected && node["status"]["allocatable"] == expected;
        if fine { Ok(()) } else { Err(node["status"].to_string()) }
    })
    .await;
    lender.lend(here, &[("cpu", "4"), ("memory", "8Gi"), ("pods", "50")]).await;
    eventually("what is lent no more is gone", || async {
        let node = node(here, &lender.node()).await.unwrap();
        let expected = json!({ "cpu": "4", "memory": "8Gi", "pods": "50" });
        if node["status"]["capacity"] == expected { Ok(()) } else { Err(node["status"].to_string()) }
    })
    .await;
}

async fn a_blip_moves_nothing(here: &kube::Client, provider: &TestCluster<'_>, lender: &Lender) {
    let before = version(here, lender).await;
    provider.pause(Component::Apiserver).await;
    // Less than 6 s change nothing: who answered up to 2 s before is missed after 8 s.
    tokio::time::sleep(Duration::from_secs(5)).await;
    provider.resume(Component::Apiserver).await;
    let deadline = Instant::now() + QUIET;
    while Instant::now() < deadline {
        assert_eq!(version(here, lender).await, before);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Nearly as long as an outage may be that moves nothing. The node may say that its provider was away; its pods stay.
async fn a_long_blip_moves_no_pod(here: &kube::Client, provider: &TestCluster<'_>, lender: &Lender) {
    let mut waits = pod("waits", &json!({}));
    let spec = waits.spec.as_mut().unwrap();
    let twelve =
        json!({ "key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 12 });
    spec.tolerations.as_mut().unwrap().push(serde_json::from_value(twelve).unwrap());
    let pods: Api<Pod> = Api::namespaced(here.clone(), "default");
    eventually("a pod", || async {
        pods.create(&PostParams::default(), &waits).await.map_err(|error| error.to_string())
    })
    .await;
    provider.pause(Component::Apiserver).await;
    tokio::time::sleep(Duration::from_millis(9_500)).await;
    provider.resume(Component::Apiserver).await;
    let resumed = Instant::now();
    wait_ready(here, &lender.node(), "True", "ProviderReachable").await;
    eventually("no taint", || async {
        let node = world::node(here, &lender.node()).await.unwrap();
        if taints(&node).contains_key(UNREACHABLE) { Err(format!("{:?}", taints(&node))) } else { Ok(()) }
    })
    .await;
    println!("fine {:?} after a blip of 9.5 s", resumed.elapsed());
    let waits = pods.get("waits").await.unwrap();
    assert_eq!(waits.metadata.deletion_timestamp, None);
    pods.delete("waits", &DeleteParams::default().grace_period(0)).await.unwrap();
}

async fn a_provider_that_is_gone_is_noticed_and_one_that_is_back_too(
    here: &kube::Client,
    provider: &TestCluster<'_>,
    lender: &Lender,
) {
    let started = Instant::now();
    provider.kill(Component::Apiserver).await;
    let node = wait_ready(here, &lender.node(), "False", "ProviderUnreachable").await;
    let took = started.elapsed();
    println!("gone to not ready: {took:?}; {}", node["status"]["conditions"][0]["message"]);
    assert!(took < Duration::from_secs(10), "{took:?}");
    eventually("the taint", || async {
        let node = world::node(here, &lender.node()).await.unwrap();
        if taints(&node).contains_key(UNREACHABLE) { Ok(()) } else { Err(format!("{:?}", taints(&node))) }
    })
    .await;
    provider.start(Component::Apiserver).await;
    let started = Instant::now();
    wait_ready(here, &lender.node(), "True", "ProviderReachable").await;
    println!("back to ready: {:?}", started.elapsed());
    eventually("no taint", || async {
        let node = world::node(here, &lender.node()).await.unwrap();
        if taints(&node).contains_key(UNREACHABLE) { Err(format!("{:?}", taints(&node))) } else { Ok(()) }
    })
    .await;
}

fn pod(name: &str, labels: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": labels },
        "spec": {
            "nodeName": "liqo-milan",
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{ "name": "main", "image": "none" }],
        },
    }))
    .unwrap()
}

async fn run(here: &kube::Client, name: &str, labels: &Value) {
    let pods: Api<Pod> = Api::namespaced(here.clone(), "default");
    eventually(name, || async {
        let created = pods.create(&PostParams::default(), &pod(name, labels)).await;
        created.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    let status =
        json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } });
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// Ends pods whose time has come, as the room of reflection would.
async fn bury(here: &kube::Client) -> Vec<String> {
    let pods: Api<Pod> = Api::namespaced(here.clone(), "default");
    let mut left = Vec::new();
    for pod in pods.list(&kube::api::ListParams::default()).await.unwrap() {
        let name = pod.metadata.name.unwrap();
        if pod.metadata.deletion_timestamp.is_some() {
            let _ = pods.delete(&name, &DeleteParams::default().grace_period(0)).await;
        }
        left.push(name);
    }
    left
}

async fn a_node_is_emptied_by_hand_and_used_again(here: &kube::Client, lender: &Lender) {
    run(here, "one", &json!({ "app": "one" })).await;
    let nodes: Api<Node> = Api::all(here.clone());
    let mark =
        |value: Value| json!({ "metadata": { "annotations": { "virtual-node.liqo.io/drain": value } } });
    let change = |patch: Value| {
        let nodes = nodes.clone();
        async move { nodes.patch(&lender.node(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap() }
    };
    change(mark(json!("true"))).await;
    eventually("the pod leaves", || async {
        let left = bury(here).await;
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    let found = node(here, &lender.node()).await.unwrap();
    assert_eq!(found["spec"]["unschedulable"], true);
    assert_eq!(ready(&found).0, "True");
    change(mark(Value::Null)).await;
    eventually("it is used again", || async {
        let node = node(here, &lender.node()).await.unwrap();
        if node["spec"]["unschedulable"].is_null() { Ok(()) } else { Err(node["spec"].to_string()) }
    })
    .await;
}

async fn a_contract_that_ends_empties_the_node_as_budgets_allow_and_the_node_goes(
    here: &kube::Client,
    lender: &Lender,
    process: &Process,
) {
    run(here, "kept", &json!({ "app": "kept" })).await;
    run(here, "free", &json!({ "app": "free" })).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "kept", "namespace": "default" },
        "spec": { "minAvailable": 1, "selector": { "matchLabels": { "app": "kept" } } },
    });
    put(here, &budget).await;
    eventually("the budget is known", || async {
        let pods: Api<k8s_openapi::api::policy::v1::PodDisruptionBudget> =
            Api::namespaced(here.clone(), "default");
        let status = pods.get("kept").await.unwrap().status.unwrap_or_default();
        if status.current_healthy == 1 { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    let started = Instant::now();
    lender.end(here).await;
    let (mut free, mut kept) = (None, None);
    loop {
        let left = bury(here).await;
        let gone = |name: &str| !left.iter().any(|it| it == name);
        if gone("free") {
            free.get_or_insert_with(|| started.elapsed());
        }
        if gone("kept") {
            kept.get_or_insert_with(|| started.elapsed());
        }
        let Some(node) = node(here, &lender.node()).await else { break };
        assert!(started.elapsed() < DEADLINE, "the node does not go: {left:?} {node}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("ended: free left after {free:?}, kept after {kept:?}, node after {:?}", started.elapsed());
    assert!(free.unwrap() < Duration::from_secs(8), "{free:?}");
    assert!(kept.unwrap() >= Duration::from_secs(8), "its budget was honoured: {kept:?}");
    let metrics = process.metrics();
    for outcome in ["evicted", "blocked", "deleted"] {
        let line = format!("liqo_virtual_node_evictions_total{{outcome=\"{outcome}\"}}");
        assert!(process.metric(&line) >= 1.0, "{outcome}: {metrics}");
    }
    let leases: Api<Lease> = Api::namespaced(here.clone(), "kube-node-lease");
    eventually("its lease goes", || async {
        match leases.get_opt(&lender.node()).await.unwrap() {
            None => Ok(()),
            Some(lease) => Err(format!("{lease:?}")),
        }
    })
    .await;
    // It is not made again.
    let deadline = Instant::now() + QUIET;
    while Instant::now() < deadline {
        assert!(node(here, &lender.node()).await.is_none());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
