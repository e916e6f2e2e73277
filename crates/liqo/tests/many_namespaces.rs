//! Many namespaces are offloaded to one provider: what is in each of them arrives, and what that costs is printed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/stack.rs"]
mod stack;

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo::limits::{WATCHES_AT_PEER, WATCHES_HERE};
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_each_of_many_namespaces_arrives() {
    const { assert!(WATCHES_HERE >= PROMISED * HERE + OTHERS) };
    const { assert!(WATCHES_AT_PEER >= PROMISED * THERE + OTHERS) };
    let sandbox = TestSandbox::start([ClusterSpec::hollow(HOME, 1), ClusterSpec::hollow(AWAY, 4)]).await;
    let stack = Stack::new(&sandbox, &[("cpu", "1000"), ("memory", "1000Gi"), ("pods", "1000")]).await;
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
    drop(running);
    what_finds_no_room_is_told(&stack).await;
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
