//! Many namespaces are offloaded to one provider: what is in each of them arrives, what that costs is printed, and what must
//! stay at home does.
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

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, ResourceExt};
use liqo::limits::{WATCHES_AT_PEER, WATCHES_HERE};
use liqo_api::ShadowPod;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::json;
use stack::{AWAY, HOME, NODE, Stack, eventually, put};
use tokio::time::Instant;

const NAMESPACES: usize = 160;
/// Watches of one namespace at home, and at the provider; as docs/offloading.md says.
const HERE: usize = 5;
const THERE: usize = 9;
/// How many namespaces must find room.
const PROMISED: usize = 500;
/// Watches of the rooms that are there anyway.
const OTHERS: usize = 100;
const AT_ONCE: usize = 8;
/// When at the latest somebody is told; a few seconds on a machine that does nothing else.
const AT_LAST: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_each_of_many_namespaces_arrives() {
    const { assert!(WATCHES_HERE >= PROMISED * HERE + OTHERS) };
    const { assert!(WATCHES_AT_PEER >= PROMISED * THERE + OTHERS) };
    let sandbox = TestSandbox::start([ClusterSpec::hollow(HOME, 1), ClusterSpec::hollow(AWAY, 4)]).await;
    let mut stack = Stack::new(&sandbox, &[("cpu", "1000"), ("memory", "1000Gi"), ("pods", "1000")]).await;
    let running = stack.start().await;
    let idle = (resident(), sockets());
    let begun = Instant::now();
    stream::iter(0..NAMESPACES).for_each_concurrent(AT_ONCE, |number| offload(&stack, name(number))).await;
    let remotes: BTreeMap<String, String> = stream::iter(0..NAMESPACES)
        .map(|number| offloaded(&stack, number))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    println!("{NAMESPACES} namespaces at the provider after {:?}", begun.elapsed());
    pods_run_there(&stack).await;
    let copies = |found: &ConfigMap| (found.namespace().unwrap_or_default(), text(found));
    eventually("each has its config map at the provider", || async {
        let found = listed::<ConfigMap>(&stack.there, "test=one").await?;
        let found: BTreeMap<String, String> = found.iter().map(copies).collect();
        let wanted =
            |(name, remote): (&String, &String)| (found.get(remote) != Some(name)).then(|| name.clone());
        let missing: Vec<String> = remotes.iter().filter_map(wanted).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{} missing: {missing:?}", missing.len())) }
    })
    .await;
    println!(
        "a pod and a config map of each after {:?}; {} kB resident and {} sockets of the process, tests included; before, {} \
         kB and {} sockets",
        begun.elapsed(),
        resident(),
        sockets(),
        idle.0,
        idle.1
    );
    // Sixty-four watches share a connection; others may be opened before it is known that one can be shared.
    let most = idle.1 + NAMESPACES * (HERE + THERE) / 10;
    assert!(sockets() <= most, "{} sockets, expected at most {most}", sockets());
    a_change_in_the_last_one_arrives(&stack, &remotes).await;
    a_pod_that_the_provider_cannot_place_says_why_at_home(&stack).await;
    of_where_liqo_runs_only_services_go(&stack).await;
    drop(running);
    what_finds_no_room_is_told(&stack).await;
    stack.reflection = "configmap=AllowList,secret=AllowList,service=Never";
    let _running = stack.start().await;
    only_what_is_allowed_goes(&stack, &remotes[&name(0)]).await;
}

/// The scheduler there finds no node for it.
async fn a_pod_that_the_provider_cannot_place_says_why_at_home(stack: &Stack<'_>) {
    // The virtual node has what the pod asks for, and the provider's nodes have not.
    let node = json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": NODE, "labels": { "example.com/rack": "one" } } });
    put(&stack.here, &node).await;
    let spread = json!([{ "maxSkew": 1, "topologyKey": "example.com/rack", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": { "matchLabels": { "test": "nowhere" } } }]);
    let pod = json!({ "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "nowhere", "namespace": name(0), "labels": { "test": "nowhere" } },
        "spec": { "terminationGracePeriodSeconds": 1, "topologySpreadConstraints": spread,
            "containers": [{ "name": "main", "image": "nothing" }] } });
    let begun = Instant::now();
    put(&stack.here, &pod).await;
    let pods: Api<Pod> = Api::namespaced(stack.here.clone(), &name(0));
    eventually("it says why", || async {
        let pod = pods.get("nowhere").await.map_err(|error| error.to_string())?;
        let status = pod.status.unwrap_or_default();
        let says = status.message.as_deref().is_some_and(|it| it.contains("topology spread constraints"));
        let fine = says && status.reason.as_deref() == Some("Unschedulable");
        if fine { Ok(()) } else { Err(format!("{:?} {status:?}", pod.spec.and_then(|it| it.node_name))) }
    })
    .await;
    println!("a pod said why it cannot be placed after {:?}", begun.elapsed());
    assert!(begun.elapsed() < AT_LAST, "{:?}", begun.elapsed());
    pods.delete("nowhere", &DeleteParams::default()).await.unwrap();
}

/// As those do who let other clusters reach something that runs beside liqo. Its keys are there, too.
async fn of_where_liqo_runs_only_services_go(stack: &Stack<'_>) {
    let object = |api: &str, kind: &str, name: &str, more: serde_json::Value| {
        let mut object =
            json!({ "apiVersion": api, "kind": kind, "metadata": { "name": name, "namespace": "liqo" } });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let ports = json!([{ "name": "main", "port": 6000 }]);
    let service = |name: &str| object("v1", "Service", name, json!({ "spec": { "ports": ports } }));
    let mut slice = object(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "door-1",
        json!({ "addressType": "IPv4", "ports": ports, "endpoints": [{ "addresses": ["10.1.2.3"] }] }),
    );
    slice["metadata"]["labels"] = json!({ "kubernetes.io/service-name": "door" });
    // Whoever is bound to the node by hand does not go either, nor its tokens.
    let mut pod = object(
        "v1",
        "Pod",
        "astray",
        json!({ "spec": { "nodeName": NODE, "tolerations": [{ "operator": "Exists" }],
            "containers": [{ "name": "main", "image": "nothing" }] } }),
    );
    pod["metadata"]["labels"] = json!({ "liqo.io/shadowPod": "true" });
    for it in [
        object("v1", "Secret", "key", json!({ "stringData": { "a": "b" } })),
        object("v1", "ConfigMap", "settings", json!({ "data": { "a": "b" } })),
        pod,
        slice,
        service("door"),
    ] {
        put(&stack.here, &it).await;
    }
    let virtual_nodes = json!([{ "matchExpressions": [
        { "key": "liqo.io/type", "operator": "In", "values": ["virtual-node"] }] }]);
    let spec = json!({ "namespaceMappingStrategy": "DefaultName", "podOffloadingStrategy": "Local",
        "clusterSelector": { "nodeSelectorTerms": virtual_nodes } });
    stack.offload("liqo", json!({}), spec).await;
    let remote = stack.wait_offloaded("liqo").await;
    copied::<Service>(stack, &remote, &["door"]).await;
    copied::<EndpointSlice>(stack, &remote, &["door-1"]).await;
    let pods: Api<Pod> = Api::namespaced(stack.here.clone(), "liqo");
    eventually("the pod is not sent", || async {
        let pod = pods.get("astray").await.map_err(|error| error.to_string())?;
        let reason = pod.status.and_then(|status| status.reason);
        if reason.as_deref() == Some("OffloadingBackoff") { Ok(()) } else { Err(format!("{reason:?}")) }
    })
    .await;
    // What is made after all of that goes; what was there before does not.
    put(&stack.here, &service("later")).await;
    copied::<Service>(stack, &remote, &["door", "later"]).await;
    copied::<Secret>(stack, &remote, &[]).await;
    copied::<ConfigMap>(stack, &remote, &[]).await;
    copied::<ShadowPod>(stack, &remote, &[]).await;
}

/// Without an annotation nothing of these kinds goes, and Services do not with one. What went before is taken back.
async fn only_what_is_allowed_goes(stack: &Stack<'_>, remote: &str) {
    let made = |kind: &str, name: &str, allowed: bool, more: serde_json::Value| {
        let notes = json!({ "liqo.io/allow-reflection": allowed.to_string() });
        let mut object = json!({ "apiVersion": "v1", "kind": kind,
            "metadata": { "name": name, "namespace": self::name(0), "annotations": notes } });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    };
    let data = || json!({ "stringData": { "a": "b" } });
    for it in [
        made("Secret", "stays", false, data()),
        made("Service", "stays", true, json!({ "spec": { "ports": [{ "port": 80 }] } })),
        made("Secret", "goes", true, data()),
        made("ConfigMap", "goes", true, json!({ "data": { "a": "b" } })),
    ] {
        put(&stack.here, &it).await;
    }
    copied::<ConfigMap>(stack, remote, &["goes", "kube-root-ca.crt.11111"]).await;
    copied::<Secret>(stack, remote, &["goes"]).await;
    copied::<Service>(stack, remote, &[]).await;
}

/// Waits until exactly these are copied, beside tokens.
async fn copied<K>(stack: &Stack<'_>, remote: &str, expected: &[&str])
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + serde::de::DeserializeOwned
        + std::fmt::Debug,
{
    let api: Api<K> = Api::namespaced(stack.there.clone(), remote);
    let ours = ListParams::default().labels("virtualkubelet.liqo.io/origin");
    eventually(&format!("{} {expected:?} in {remote}", K::kind(&())), || async {
        let found = api.list(&ours).await.map_err(|error| error.to_string())?;
        let mut names: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
        names.retain(|name| !name.starts_with("liqo-token-") || remote.starts_with("liqo-"));
        names.sort();
        if names == expected { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
}

/// With room for half of them at the provider, the owners of others are told that they are not looked at.
async fn what_finds_no_room_is_told(stack: &Stack<'_>) {
    let _running = stack.start_with(NAMESPACES * THERE / 2).await;
    let events: Api<Event> = Api::all(stack.here.clone());
    let told = eventually("somebody is told", || async {
        let all = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let told = |event: &Event| event.reason.as_deref() == Some("NotWatched");
        all.into_iter().find(told).ok_or_else(|| "nobody".to_owned())
    })
    .await;
    let about = told.regarding.unwrap();
    assert_eq!(
        (about.kind.as_deref(), about.name.as_deref()),
        (Some("NamespaceOffloading"), Some("offloading"))
    );
    let note = told.note.unwrap();
    assert!(
        note.contains("cannot be watched at the provider") && note.contains("watches on this cluster"),
        "{note}"
    );
    println!("{}: {note}", about.namespace.unwrap());
}

fn name(number: usize) -> String {
    format!("many-{number}")
}

fn text(map: &ConfigMap) -> String {
    map.data.as_ref().and_then(|data| data.get("of")).cloned().unwrap_or_default()
}

async fn offload(stack: &Stack<'_>, name: String) {
    stack.offload(&name, json!({}), json!({ "podOffloadingStrategy": "Remote" })).await;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "of": name },
        "metadata": { "name": "one", "namespace": name, "labels": { "test": "one" } } });
    put(&stack.here, &map).await;
}

async fn offloaded(stack: &Stack<'_>, number: usize) -> (String, String) {
    (name(number), stack.wait_offloaded(&name(number)).await)
}

async fn listed<K>(client: &kube::Client, labels: &str) -> Result<Vec<K>, String>
where
    K: kube::Resource<DynamicType = ()> + Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let list = Api::all(client.clone()).list(&ListParams::default().labels(labels)).await;
    list.map(|list| list.items).map_err(|error| error.to_string())
}

async fn pods_run_there(stack: &Stack<'_>) {
    let put_pod = |number: usize| async move {
        let pod = json!({ "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "one", "namespace": name(number), "labels": { "test": "one" } },
            "spec": { "terminationGracePeriodSeconds": 1, "containers": [{ "name": "main", "image": "nothing" }] } });
        put(&stack.here, &pod).await;
    };
    stream::iter(0..NAMESPACES).for_each_concurrent(AT_ONCE, put_pod).await;
    eventually("each has its pod at the provider", || async {
        let pods = listed::<Pod>(&stack.here, "test=one").await?;
        let runs = |pod: &&Pod| {
            let there = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(NODE);
            there && pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
        };
        let running = pods.iter().filter(runs).count();
        if running == NAMESPACES { Ok(()) } else { Err(format!("{running} of {NAMESPACES}")) }
    })
    .await;
}

async fn a_change_in_the_last_one_arrives(stack: &Stack<'_>, remotes: &BTreeMap<String, String>) {
    let last = name(NAMESPACES - 1);
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "of": "changed" },
        "metadata": { "name": "one", "namespace": last, "labels": { "test": "one" } } });
    let begun = Instant::now();
    put(&stack.here, &map).await;
    let there: Api<ConfigMap> = Api::namespaced(stack.there.clone(), &remotes[&last]);
    eventually("a change arrives", || async {
        let found = there.get("one").await.map_err(|error| error.to_string())?;
        if text(&found) == "changed" { Ok(()) } else { Err(text(&found)) }
    })
    .await;
    println!("a change in the last namespace was there after {:?}", begun.elapsed());
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or_default()
}

fn sockets() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let is_socket = |path: &std::path::Path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    all.filter(|entry| is_socket(&entry.path())).count()
}
