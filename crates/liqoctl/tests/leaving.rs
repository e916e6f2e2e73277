//! Leaving with pods running elsewhere: a namespace is deleted, a peering ends, and Liqo itself is uninstalled. Pods come home or
//! are gone within a minute, the provider keeps nothing of them, and peering again works at once.
//!
//! Needs `make image`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]
#![allow(clippy::duplicate_mod, reason = "both helpers below bring along how a command's answer is read")]

#[path = "support/certificate.rs"]
mod certificate;
#[path = "support/pair.rs"]
mod pair;
#[path = "../../reflection/tests/support/provisioner.rs"]
mod provisioner;
#[path = "support/install.rs"]
mod support;

use std::time::Duration;

use liqo_sandbox::{ClusterSpec, TestSandbox, testing};
use pair::{CONSUMER, PROVIDER, Pair};
use provisioner::Provisioner;
use serde_json::Value;
use support::{settled, until_as_before};
use tokio::time::Instant;

/// What is promised.
const BOUND: Duration = Duration::from_secs(60);
/// Within seconds, on a machine that does something else, too.
const OUT: Duration = Duration::from_secs(10);
/// A machine may be busier than ours.
const SOON: Duration = Duration::from_secs(120);
const NODE: &str = "liqo-provider";
/// Pods of a Deployment, and of a StatefulSet, each with a claim.
const STATELESS: usize = 24;
const STATEFUL: usize = 6;
const MANY: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_run_elsewhere_hold_nothing_up() {
    // Fails here rather than in the middle.
    testing::product_image();
    let cluster = |name| ClusterSpec { hollow_nodes: 2, ..ClusterSpec::real(name, 1) };
    let sandbox = TestSandbox::start([cluster(CONSUMER), cluster(PROVIDER)]).await;
    let pair = Pair { sandbox };
    let there = pair.sandbox.cluster(PROVIDER).client().await;
    let _storage = Provisioner::start(&there, "disks").await;
    for cluster in [CONSUMER, PROVIDER] {
        pair.ok(cluster, &["install", "sandbox"]);
        // Only what is hollow runs so many.
        pair.kubectl(cluster, &["cordon", &format!("{cluster}-1")]);
        pair.kubectl(cluster, &["taint", "nodes", "-l", "type=kwok", "kwok.x-k8s.io/node-"]);
    }
    peer(&pair);
    a_namespace_is_deleted_with_all_that_it_has_elsewhere(&pair).await;
    a_peering_ends_with_many_pods_running(&pair).await;
    peering_again_works_at_once(&pair).await;
    a_peer_whose_token_is_revoked_is_out_everywhere(&pair).await;
}

/// Uninstalling in the middle of everything: each cluster is then what it was before liqo came, nodes included.
#[tokio::test(flavor = "multi_thread")]
async fn a_purge_leaves_nothing_here_and_nothing_at_the_peer() {
    testing::product_image();
    let provider = ClusterSpec { hollow_nodes: 1, ..ClusterSpec::real(PROVIDER, 1) };
    let sandbox = TestSandbox::start([ClusterSpec::real(CONSUMER, 1), provider]).await;
    let pair = Pair { sandbox };
    let (here, there) =
        (pair.sandbox.cluster(CONSUMER).client().await, pair.sandbox.cluster(PROVIDER).client().await);
    let (home, away) = (settled(&here).await, settled(&there).await);
    pair.ok(PROVIDER, &["install", "sandbox"]);
    pair.kubectl(PROVIDER, &["cordon", "provider-1"]);
    pair.kubectl(PROVIDER, &["taint", "nodes", "-l", "type=kwok", "kwok.x-k8s.io/node-"]);

    borrow(&pair).await;
    let begun = Instant::now();
    purge(&pair, CONSUMER);
    eventually("the provider has nothing left", || {
        let kinds = ["namespaces", "pods", "shadowpods"];
        let left: Vec<String> = kinds.into_iter().flat_map(|kind| of_consumer(&pair, kind)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    println!("a consumer with pods elsewhere was purged, and the provider free, after {:?}", begun.elapsed());
    pair.kubectl(CONSUMER, &["delete", "namespace", "shop", "--timeout=60s"]);
    until_as_before(&here, &home).await;

    // The provider's manager is dead, and so will be the consumer's: nobody parts in order.
    borrow(&pair).await;
    stop_manager(&pair, PROVIDER);
    purge(&pair, PROVIDER);
    until_as_before(&there, &away).await;
    stop_manager(&pair, CONSUMER);
    purge(&pair, CONSUMER);
    pair.kubectl(CONSUMER, &["delete", "namespace", "shop", "--wait=false"]);
    // No kubelet is left that would end them.
    pair.kubectl(CONSUMER, &["-n", "shop", "delete", "pods", "--all", "--force", "--grace-period=0"]);
    until_as_before(&here, &home).await;
}

/// A consumer whose pods run at the provider.
async fn borrow(pair: &Pair) {
    pair.ok(CONSUMER, &["install", "sandbox"]);
    peer(pair);
    pair.kubectl(CONSUMER, &["create", "namespace", "shop"]);
    pair.ok(CONSUMER, &["offload", "namespace", "shop", "--pod-offloading-strategy", "Remote"]);
    pair.apply(CONSUMER, &deployment("shop", 3));
    running(pair, "shop", 3, |node| node == NODE).await;
    assert_eq!(of_consumer(pair, "namespaces").len(), 1);
}

fn purge(pair: &Pair, cluster: &str) {
    pair.ok(cluster, &["uninstall", "--purge", "--yes"]).tells(&["liqo is gone, with everything of it"]);
}

fn stop_manager(pair: &Pair, cluster: &str) {
    let manager = "deployment/liqo-controller-manager";
    pair.kubectl(cluster, &["-n", "liqo", "scale", manager, "--replicas=0"]);
    let pods = ["-n", "liqo", "wait", "--for=delete", "pods", "--all", "--timeout=60s"];
    pair.kubectl(cluster, &pods);
}

fn peer(pair: &Pair) {
    let command = pair.ok(PROVIDER, &["generate-add-command", "--only-command", "--expires", "24h"]).out;
    pair.ok(CONSUMER, &command.split_whitespace().skip(1).collect::<Vec<_>>());
    pair.kubectl(CONSUMER, &["wait", "--for=create", "node", NODE, "--timeout=60s"]);
    pair.kubectl(CONSUMER, &["wait", "--for=condition=Ready", "node", NODE, "--timeout=60s"]);
}

async fn a_namespace_is_deleted_with_all_that_it_has_elsewhere(pair: &Pair) {
    pair.kubectl(CONSUMER, &["create", "namespace", "store"]);
    pair.ok(CONSUMER, &["offload", "namespace", "store", "--pod-offloading-strategy", "Remote"]);
    for number in 0..10 {
        let map = format!("config-{number}");
        pair.kubectl(CONSUMER, &["-n", "store", "create", "configmap", &map, "--from-literal=a=b"]);
    }
    pair.apply(CONSUMER, &deployment("store", STATELESS));
    pair.apply(CONSUMER, &STATEFUL_SET.replace("COUNT", &STATEFUL.to_string()));
    running(pair, "store", STATELESS + STATEFUL, |node| node == NODE).await;
    assert_eq!(of_consumer(pair, "shadowpods").len(), STATELESS + STATEFUL);

    let begun = Instant::now();
    pair.kubectl(CONSUMER, &["delete", "namespace", "store", "--timeout=90s"]);
    println!(
        "a namespace with {} pods at the provider was gone after {:?}",
        STATELESS + STATEFUL,
        begun.elapsed()
    );
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    nothing_is_left(pair, begun).await;
}

async fn a_peering_ends_with_many_pods_running(pair: &Pair) {
    pair.kubectl(CONSUMER, &["create", "namespace", "shop"]);
    pair.ok(CONSUMER, &["offload", "namespace", "shop"]);
    // All of them begin at the provider.
    pair.kubectl(CONSUMER, &["cordon", "-l", "type=kwok"]);
    pair.apply(CONSUMER, &deployment("shop", MANY));
    running(pair, "shop", MANY, |node| node == NODE).await;
    pair.kubectl(CONSUMER, &["uncordon", "-l", "type=kwok"]);

    let begun = Instant::now();
    pair.ok(CONSUMER, &["unpeer", "provider"]);
    println!("liqoctl unpeer with {MANY} pods running ended after {:?}", begun.elapsed());
    running(pair, "shop", MANY, |node| node != NODE).await;
    println!("all of them ran at home {:?} after it was begun", begun.elapsed());
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
    pair.kubectl(CONSUMER, &["wait", "--for=delete", "node", NODE, "--timeout=60s"]);
    nothing_is_left(pair, begun).await;
    eventually("no namespace map is left", || {
        let left = items(pair, CONSUMER, &["namespacemaps", "-A"]);
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
}

async fn peering_again_works_at_once(pair: &Pair) {
    let begun = Instant::now();
    peer(pair);
    pair.kubectl(CONSUMER, &["cordon", "-l", "type=kwok"]);
    pair.kubectl(CONSUMER, &["-n", "shop", "scale", "deployment/web", "--replicas=0"]);
    pair.ok(CONSUMER, &["offload", "namespace", "shop"]);
    pair.kubectl(CONSUMER, &["-n", "shop", "scale", "deployment/web", "--replicas=3"]);
    running(pair, "shop", 3, |node| node == NODE).await;
    println!("pods ran there again {:?} after peering was asked for", begun.elapsed());
}

/// By the certificate that the consumer really has: in the tenant namespace, and where its pods run.
async fn a_peer_whose_token_is_revoked_is_out_everywhere(pair: &Pair) {
    let there = certificate::client_at_the_provider(&pair.sandbox.cluster(CONSUMER).client().await).await;
    let of_peers = "discovery.liqo.io/tenant-namespace=true";
    let mut places = items(pair, PROVIDER, &["namespaces", "-l", of_peers]);
    assert_eq!(places.len(), 1, "{places:?}");
    places.extend(of_consumer(pair, "namespaces"));
    let places: Vec<&str> = places.iter().map(|place| place.trim_start_matches('/')).collect();
    for place in &places {
        assert!(!certificate::rights(&there, place).await.unwrap().is_empty(), "{place}");
    }
    let tokens = pair.json(PROVIDER, &["token", "list"]);
    // It came in again by another one.
    let last = tokens.as_array().unwrap().iter().max_by_key(|token| token["usedAt"].as_str());
    let last = last.and_then(|token| token["id"].as_str()).unwrap_or_else(|| panic!("{tokens:#}"));

    let begun = Instant::now();
    pair.ok(PROVIDER, &["token", "revoke", last]);
    for place in &places {
        loop {
            let left = certificate::rights(&there, place).await.unwrap();
            if left.is_empty() {
                break;
            }
            assert!(begun.elapsed() < OUT, "in {place} it may still: {left:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    println!("a peer was out {:?} after its token was revoked", begun.elapsed());
    let everywhere = certificate::may_list_pods_anywhere(&there, &places).await;
    assert!(everywhere.is_empty(), "{everywhere:?}");
    nothing_is_left_of(pair, &["namespaces", "pods", "shadowpods"], begun).await;
    eventually("the contract has ended", || {
        let all = list(pair, PROVIDER, &["contracts", "-A"]);
        let phases: Vec<_> = all.iter().map(|it| it["status"]["phase"].clone()).collect();
        if phases.iter().all(|phase| phase != "Active") { Ok(()) } else { Err(format!("{phases:?}")) }
    })
    .await;
}

/// The provider has nothing of the consumer any more.
async fn nothing_is_left(pair: &Pair, begun: Instant) {
    let kinds = ["namespaces", "pods", "shadowpods", "persistentvolumeclaims", "namespacemaps"];
    nothing_is_left_of(pair, &kinds, begun).await;
}

async fn nothing_is_left_of(pair: &Pair, kinds: &[&str], begun: Instant) {
    eventually("the provider has nothing left", || {
        let named =
            |kind: &str| of_consumer(pair, kind).iter().map(|name| format!("{kind} {name}")).collect();
        let left: Vec<String> = kinds.iter().flat_map(|kind| -> Vec<String> { named(kind) }).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;
    println!("the provider had nothing left after {:?}", begun.elapsed());
    assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
}

/// What the provider has for the consumer's namespaces; of namespace maps, those that ask for something.
fn of_consumer(pair: &Pair, kind: &str) -> Vec<String> {
    match kind {
        "namespaces" => items(pair, PROVIDER, &[kind, "-l", "liqo.io/remote-cluster-id"]),
        "pods" => items(pair, PROVIDER, &[kind, "-A", "-l", "liqo.io/managed-by=shadowpod"]),
        "namespacemaps" => {
            let all = list(pair, PROVIDER, &[kind, "-A"]);
            let asks =
                |it: &&Value| it["spec"]["desiredMapping"].as_object().is_some_and(|it| !it.is_empty());
            all.iter().filter(asks).map(name).collect()
        }
        _ => items(pair, PROVIDER, &[kind, "-A"]),
    }
}

/// Waits until so many pods run, all of them on nodes that are right.
async fn running(pair: &Pair, namespace: &str, count: usize, right: impl Fn(&str) -> bool) {
    eventually(&format!("{count} pods of {namespace} run where they should"), || {
        let all = list(pair, CONSUMER, &["pods", "-n", namespace]);
        let fine = all.iter().filter(|pod| {
            pod["metadata"]["deletionTimestamp"].is_null()
                && pod["status"]["phase"] == "Running"
                && pod["spec"]["nodeName"].as_str().is_some_and(&right)
        });
        let fine = fine.count();
        if fine == count && all.len() == count { Ok(()) } else { Err(summary(&all)) }
    })
    .await;
}

/// How many pods are in which state, for messages.
fn summary(pods: &[Value]) -> String {
    let mut states = std::collections::BTreeMap::<String, usize>::new();
    for pod in pods {
        let leaving = !pod["metadata"]["deletionTimestamp"].is_null();
        let state = format!(
            "{} on {} {} leaving: {leaving}",
            pod["status"]["phase"], pod["spec"]["nodeName"], pod["status"]["reason"]
        );
        *states.entry(state).or_default() += 1;
    }
    format!("{states:#?}")
}

fn list(pair: &Pair, cluster: &str, words: &[&str]) -> Vec<Value> {
    let words: Vec<&str> = ["get"].iter().chain(words).copied().chain(["-o", "json"]).collect();
    let found: Value = serde_json::from_str(&pair.kubectl(cluster, &words)).unwrap();
    found["items"].as_array().unwrap().clone()
}

fn items(pair: &Pair, cluster: &str, words: &[&str]) -> Vec<String> {
    list(pair, cluster, words).iter().map(name).collect()
}

fn name(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

async fn eventually<T>(what: &str, look: impl Fn() -> Result<T, String>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        match look() {
            Ok(found) => return found,
            Err(state) if Instant::now() > deadline => panic!("not within {SOON:?}: {what}; now: {state}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(300)).await,
        }
    }
}

fn deployment(namespace: &str, replicas: usize) -> String {
    DEPLOYMENT.replace("NAMESPACE", namespace).replace("COUNT", &replicas.to_string())
}

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NAMESPACE}
spec:
  replicas: COUNT
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: app, image: nothing, resources: {requests: {cpu: 10m, memory: 8Mi}}}
";

const STATEFUL_SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: data, namespace: store}
spec:
  replicas: COUNT
  serviceName: data
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: data}}
  template:
    metadata: {labels: {app: data}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: nothing
        resources: {requests: {cpu: 10m, memory: 8Mi}}
        volumeMounts: [{name: disk, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: disk}
    spec: {storageClassName: liqo, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
";

/// What the provisioner makes its class with.
mod install {
    use k8s_openapi::api::storage::v1::StorageClass;
    use kube::Api;
    use kube::api::PostParams;
    use serde_json::Value;

    pub(crate) async fn put(client: &kube::Client, object: &Value) {
        let classes: Api<StorageClass> = Api::all(client.clone());
        let object = serde_json::from_value(object.clone()).unwrap();
        classes.create(&PostParams::default(), &object).await.unwrap();
    }
}
