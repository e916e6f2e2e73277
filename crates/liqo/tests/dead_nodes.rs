//! The nodes of a provider die while its API server answers: two clusters, all rooms that take part, with what the webhook
//! gives pods. One node of two, then the other; then they come back.
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

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::names::UNREACHABLE_TAINT;
use liqo_api::shadow_pod::{PLACED, ShadowPod};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::json;
use stack::{AWAY, HOME, NODE, Stack, eventually, put};
use tokio::time::Instant;

const PODS: usize = 4;
/// What is promised is 30 s, and this machine may be busy.
const MOVED_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_leave_nodes_that_die_behind_an_api_server_that_answers() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow(HOME, 1), ClusterSpec::real(AWAY, 2)]).await;
    let stack = Stack::new(&sandbox, &[("cpu", "64"), ("memory", "128Gi"), ("pods", "100")]).await;
    let _running = stack.start().await;
    stack.offload("shop", json!({}), json!({})).await;
    let remote = stack.wait_offloaded("shop").await;
    deploy(&stack).await;
    wait(&stack, "both nodes have some", |all| {
        let both = ["away-1", "away-2"];
        let some_on_each = both.iter().all(|node| all.values().any(|at| at == node));
        all.len() == PODS && some_on_each && all.values().all(|at| both.contains(&at.as_str()))
    })
    .await;
    for node in ["away-1", "away-2"] {
        wait_heard(&stack, node).await;
    }

    let dead = Instant::now();
    kill(&stack, 2);
    wait(&stack, "all on the other node", |all| all.len() == PODS && all.values().all(|at| at == "away-1"))
        .await;
    println!("elsewhere {:.1} s after one node died", dead.elapsed().as_secs_f64());
    assert!(dead.elapsed() < MOVED_WITHIN, "{:?}", dead.elapsed());
    assert_eq!(ready_reason(&stack).await, "ProviderReachable");

    let dead = Instant::now();
    kill(&stack, 1);
    eventually("the virtual node says so", || async {
        let reason = ready_reason(&stack).await;
        if reason == "ProviderNodesUnreachable" { Ok(()) } else { Err(reason) }
    })
    .await;
    println!("noticed {:.1} s after the last node died", dead.elapsed().as_secs_f64());
    wait(&stack, "all at home", |all| all.len() == PODS && all.values().all(|at| at.starts_with("home")))
        .await;
    println!("at home {:.1} s after the last node died", dead.elapsed().as_secs_f64());
    assert!(dead.elapsed() < MOVED_WITHIN, "{:?}", dead.elapsed());

    let nodes = stack.away.parts(Some("node")).unwrap();
    (*stack.away).start(&nodes, &|_, _| {}).await.unwrap();
    nothing_is_left(&stack, &remote).await;
    let after = places(&stack).await;
    assert!(after.len() == PODS && after.values().all(|at| at.starts_with("home")), "{after:?}");
}

/// Nothing is at the provider any more, and it can be used again.
async fn nothing_is_left(stack: &Stack<'_>, remote: &str) {
    eventually("nothing is left over", || async {
        let pods: Api<Pod> = Api::namespaced(stack.there.clone(), remote);
        let shadows: Api<ShadowPod> = Api::namespaced(stack.there.clone(), remote);
        let pods = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        let shadows =
            shadows.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        let here: Api<Pod> = Api::namespaced(stack.here.clone(), "shop");
        let here = here.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        let (reason, tainted) = (ready_reason(stack).await, is_tainted(stack).await);
        let fine = (pods, shadows, here) == (0, 0, PODS) && reason == "ProviderReachable" && !tainted;
        fine.then_some(())
            .ok_or_else(|| format!("{pods} pods, {shadows} shadows, {here} here, {reason}, {tainted}"))
    })
    .await;
}

/// Waits until a node has answered the consumer, which does not take one for dead that it never heard: by the kubelet's own
/// count of who asked for a log.
async fn wait_heard(stack: &Stack<'_>, node: &str) {
    let path = format!("/api/v1/nodes/{node}/proxy/metrics");
    eventually(&format!("{node} is heard"), || async {
        let request = http::Request::get(&path).body(Vec::new()).unwrap();
        let metrics = stack.there.request_text(request).await.map_err(|error| error.to_string())?;
        let asked =
            |line: &&str| line.starts_with("kubelet_http_requests_total") && line.contains("containerLogs");
        let lines: Vec<&str> = metrics.lines().filter(asked).collect();
        let asked: f64 = lines.iter().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        // The second time, the first answer has arrived.
        if asked >= 2.0 { Ok(()) } else { Err(format!("{lines:?}")) }
    })
    .await;
}

fn kill(stack: &Stack<'_>, node: u32) {
    let parts = stack.away.parts(Some(&format!("node-{node}"))).unwrap();
    (*stack.away).kill(&parts).unwrap();
}

async fn deploy(stack: &Stack<'_>) {
    let prefer = json!({ "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 100,
        "preference": { "matchExpressions": [
            { "key": "liqo.io/type", "operator": "In", "values": ["virtual-node"] }] } }] } });
    let app = json!({ "name": "main", "image": "localhost/liqo/sandbox-app:1", "imagePullPolicy": "Never",
        "resources": { "requests": { "cpu": "50m" } } });
    let spec = json!({ "terminationGracePeriodSeconds": 1, "affinity": prefer, "containers": [app] });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "replicas": PODS, "selector": { "matchLabels": { "app": "web" } },
            "template": { "metadata": { "labels": { "app": "web" } }, "spec": spec } },
    });
    put(&stack.here, &deployment).await;
}

async fn wait(stack: &Stack<'_>, what: &str, check: impl Fn(&BTreeMap<String, String>) -> bool) {
    eventually(what, || async {
        let found = places(stack).await;
        if check(&found) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

/// The ready pods that stay, and where they really are: the node of the provider, or the node at home.
async fn places(stack: &Stack<'_>) -> BTreeMap<String, String> {
    let pods: Api<Pod> = Api::namespaced(stack.here.clone(), "shop");
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    let place = |pod: &Pod| {
        let conditions = pod.status.as_ref()?.conditions.as_ref()?;
        let find = |type_: &str| conditions.iter().find(|it| it.type_ == type_);
        find("Ready").filter(|it| it.status == "True" && pod.metadata.deletion_timestamp.is_none())?;
        let node = pod.spec.as_ref()?.node_name.clone()?;
        if node == NODE { find(PLACED)?.message.clone() } else { Some(node) }
    };
    pods.iter().filter_map(|pod| Some((pod.name_any(), place(pod)?))).collect()
}

async fn node(stack: &Stack<'_>) -> Node {
    let nodes: Api<Node> = Api::all(stack.here.clone());
    nodes.get(NODE).await.unwrap()
}

async fn ready_reason(stack: &Stack<'_>) -> String {
    let conditions = node(stack).await.status.and_then(|status| status.conditions).unwrap_or_default();
    let ready = conditions.into_iter().find(|it| it.type_ == "Ready");
    ready.and_then(|it| it.reason).unwrap_or_default()
}

async fn is_tainted(stack: &Stack<'_>) -> bool {
    let taints = node(stack).await.spec.and_then(|spec| spec.taints).unwrap_or_default();
    taints.iter().any(|taint| taint.key == UNREACHABLE_TAINT)
}
