//! A provider is stopped, its pods run at home, it is started again, and those pods go back whose owner asked for it: two
//! clusters, all rooms that take part. The provider's node is a real one, which outlives its API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/stack.rs"]
mod stack;

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_sandbox::{ClusterSpec, Component, TestSandbox};
use serde_json::{Value, json};
use stack::{AWAY, HOME, NODE, Stack, eventually, put};
use tokio::time::Instant;

const PODS: usize = 6;
/// How long the provider must answer in this test.
const STEADY: u64 = 15;
/// For so long nothing must move when all is done.
const QUIET: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_go_back_where_their_owner_asked_for_it() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow(HOME, 1), ClusterSpec::real(AWAY, 1)]).await;
    let stack = Stack::new(&sandbox, &[("cpu", "64"), ("memory", "128Gi"), ("pods", "100")]).await;
    let _running = stack.start().await;
    stack.offload("shop", json!({ "liqo.io/fail-back": STEADY.to_string() }), json!({})).await;
    stack.offload("calm", json!({}), json!({})).await;
    stack.wait_offloaded("shop").await;
    stack.wait_offloaded("calm").await;
    deploy(&stack, "shop", PODS, &json!({})).await;
    // Without fail-back nothing is preferred but by the pods themselves.
    deploy(&stack, "calm", 2, &prefer()).await;
    all_run_on(&stack, "shop", NODE, PODS).await;
    all_run_on(&stack, "calm", NODE, 2).await;
    let budget = json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": { "app": "web" } } } });
    put(&stack.here, &budget).await;

    let stopped = Instant::now();
    stack.away.stop(Component::Apiserver).await;
    let home = at_home(&stack, "shop", PODS).await;
    at_home(&stack, "calm", 2).await;
    println!("all pods ran at home after {:?}", stopped.elapsed());
    let bare = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "bare", "namespace": "shop" },
        "spec": spec(&json!({})) });
    put(&stack.here, &bare).await;
    eventually("a pod without controller runs at home", || async {
        let pod = pods(&stack, "shop").get("bare").await.map_err(|error| error.to_string())?;
        let node = pod.spec.and_then(|spec| spec.node_name).ok_or("no node")?;
        if node == NODE { Err(node) } else { Ok(()) }
    })
    .await;

    let started = Instant::now();
    stack.away.start(Component::Apiserver).await;
    stack.away.wait_ready().await;
    let back = all_run_on(&stack, "shop", NODE, PODS).await;
    let took = started.elapsed();
    println!(
        "all pods were back {took:?} after the provider was started, of which {STEADY} s had to be steady"
    );
    let pace = Duration::from_secs(STEADY + PODS as u64 - 1);
    assert!(took >= pace, "one a second, after {STEADY} s: {took:?}");
    assert!(back.keys().all(|uid| !home.contains_key(uid)), "{home:?} {back:?}");
    nobody_else_was_moved(&stack).await;
    it_is_told(&stack).await;
    // And it is over.
    tokio::time::sleep(QUIET).await;
    assert_eq!(places(&stack, "shop").await, back);
}

/// Those who did not ask for it, and those whom nobody would make anew, are where they were.
async fn nobody_else_was_moved(stack: &Stack<'_>) {
    let calm = places(stack, "calm").await;
    assert!(calm.len() == 2 && calm.values().all(|node| node != NODE), "{calm:?}");
    let bare = pods(stack, "shop").get("bare").await.unwrap();
    assert_ne!(bare.spec.unwrap().node_name.as_deref(), Some(NODE));
    assert_eq!(bare.metadata.deletion_timestamp, None);
}

async fn it_is_told(stack: &Stack<'_>) {
    let api: Api<Event> = Api::namespaced(stack.here.clone(), "shop");
    eventually("events tell of it", || async {
        let all = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let about = |kind: &str, reason: &str| {
            let of_kind =
                |event: &&Event| event.regarding.as_ref().and_then(|it| it.kind.as_deref()) == Some(kind);
            all.iter().filter(of_kind).filter(|event| event.reason.as_deref() == Some(reason)).count()
        };
        let found = (
            about("Pod", "FailBack"),
            about("NamespaceOffloading", "FailBack"),
            about("NamespaceOffloading", "FailBackDone"),
        );
        if found == (PODS, 1, 1) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

fn prefer() -> Value {
    json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100, "preference": {
        "matchExpressions": [{ "key": "liqo.io/type", "operator": "In", "values": ["virtual-node"] }] } }] } })
}

fn spec(affinity: &Value) -> Value {
    let app = json!({ "name": "main", "image": "localhost/liqo/sandbox-app:1", "imagePullPolicy": "Never" });
    json!({ "terminationGracePeriodSeconds": 1, "affinity": affinity, "containers": [app] })
}

async fn deploy(stack: &Stack<'_>, namespace: &str, replicas: usize, affinity: &Value) {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": namespace },
        "spec": { "replicas": replicas, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": spec(affinity) } },
    });
    put(&stack.here, &deployment).await;
}

fn pods(stack: &Stack<'_>, namespace: &str) -> Api<Pod> {
    Api::namespaced(stack.here.clone(), namespace)
}

/// The ready pods of the Deployment that stay, by uid, and where they are.
async fn places(stack: &Stack<'_>, namespace: &str) -> BTreeMap<String, String> {
    let all = pods(stack, namespace).list(&ListParams::default().labels("app=web")).await.unwrap();
    let ready = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        pod.metadata.deletion_timestamp.is_none()
            && conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
    };
    let ready = all.items.into_iter().filter(ready);
    ready
        .map(|pod| (pod.uid().unwrap(), pod.spec.and_then(|spec| spec.node_name).unwrap_or_default()))
        .collect()
}

async fn all_run_on(
    stack: &Stack<'_>,
    namespace: &str,
    node: &str,
    count: usize,
) -> BTreeMap<String, String> {
    eventually(&format!("{count} pods of {namespace} on {node}"), || async {
        let found = places(stack, namespace).await;
        let fine = found.len() == count && found.values().all(|it| it == node);
        if fine { Ok(found) } else { Err(format!("{found:?}")) }
    })
    .await
}

async fn at_home(stack: &Stack<'_>, namespace: &str, count: usize) -> BTreeMap<String, String> {
    eventually(&format!("{count} pods of {namespace} at home"), || async {
        let found = places(stack, namespace).await;
        let fine = found.len() == count && found.values().all(|it| it != NODE);
        if fine { Ok(found) } else { Err(format!("{found:?}")) }
    })
    .await
}
