//! Pools, from a policy to where containers run: liqo in pods on both sides, and a provider with two nodes that it lends apart
//! from each other.
//!
//! Needs `make image`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/pair.rs"]
mod pair;

use std::time::Duration;

use liqo_sandbox::{ClusterSpec, TestSandbox, testing};
use pair::{CONSUMER, PROVIDER, Pair};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A machine may be ten times busier than ours. Capacity that is only away is missed after twice as long.
const SOON: Duration = Duration::from_secs(60);
/// The pools: name, virtual node, and the provider's node in it.
const FAST: (&str, &str, &str) = ("fast", "liqo-provider-fast", "provider-1");
const PLAIN: (&str, &str, &str) = ("plain", "liqo-provider-plain", "provider-2");

#[tokio::test(flavor = "multi_thread")]
async fn pools_are_nodes_at_home_and_their_pods_run_on_the_nodes_of_the_pool() {
    // Fails here rather than in the middle.
    testing::product_image();
    let sandbox = TestSandbox::start([ClusterSpec::real(CONSUMER, 1), ClusterSpec::real(PROVIDER, 2)]).await;
    let pair = Pair { sandbox };
    for cluster in [CONSUMER, PROVIDER] {
        pair.ok(cluster, &["install", "sandbox"]);
    }
    for (name, _, node) in [FAST, PLAIN] {
        pair.kubectl(PROVIDER, &["label", "node", node, &format!("tier={name}")]);
    }
    share(&pair, &[FAST.0, PLAIN.0]);
    let command = pair.ok(PROVIDER, &["generate-add-command", "--only-command"]).out;
    pair.ok(CONSUMER, &command.split_whitespace().skip(1).collect::<Vec<_>>());
    each_pool_is_a_node(&pair);
    people_see_the_pools(&pair);
    let remote = offload(&pair).await;
    pods_run_where_their_pool_is(&pair, &remote).await;
    pods_leave_a_pool_that_is_not_selected_any_more(&pair, &remote).await;
    a_pool_that_is_removed_is_emptied(&pair, &remote).await;
}

/// Has the provider lend these pools, whole.
fn share(pair: &Pair, pools: &[&str]) {
    let pool = |name: &&str| json!({ "name": name, "nodeSelector": { "matchLabels": { "tier": name } } });
    let pools: Vec<Value> = pools.iter().map(pool).collect();
    let policy = json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "SharingPolicy", "metadata": { "name": "pools" },
        "spec": { "share": { "percentage": 100 }, "pools": pools },
    });
    pair.apply(PROVIDER, &policy.to_string());
}

fn each_pool_is_a_node(pair: &Pair) {
    for (pool, node, _) in [FAST, PLAIN] {
        pair.kubectl(CONSUMER, &["wait", "--for=create", "node", node, "--timeout=60s"]);
        pair.kubectl(CONSUMER, &["wait", "--for=condition=Ready", "node", node, "--timeout=60s"]);
        let found = read(pair, CONSUMER, &["get", "node", node]);
        assert_eq!(found["metadata"]["labels"]["liqo.io/pool"], pool, "{found:#}");
    }
}

/// On both sides, by name and by amount.
fn people_see_the_pools(pair: &Pair) {
    let contract = pair.json(CONSUMER, &["contract", "list"])[0]["name"].as_str().unwrap().to_owned();
    for (side, peer) in [(CONSUMER, PROVIDER), (PROVIDER, CONSUMER)] {
        for words in [&["offer", "list"][..], &["contract", "list"]] {
            let said = pair.ok(side, words);
            assert!(said.out.contains("fast,plain"), "{words:?}: {said}");
        }
        for words in [
            &["offer", "show", peer][..],
            &["contract", "show", &contract],
            &["contract", "verify", &contract],
        ] {
            let said = pair.ok(side, words);
            assert!(said.out.contains("fast: cpu ") && said.out.contains("plain: cpu "), "{words:?}: {said}");
        }
    }
    let said = pair.ok(PROVIDER, &["policy", "explain", "--peer", CONSUMER]);
    assert!(said.out.contains("\npool fast: cpu="), "{said}");
    assert!(said.out.contains("largest single pod that fits into pool plain now: cpu="), "{said}");
}

/// The application's namespace, for which only providers will do; its name at the provider.
async fn offload(pair: &Pair) -> String {
    pair.kubectl(CONSUMER, &["create", "namespace", "shop"]);
    pair.ok(CONSUMER, &["offload", "namespace", "shop", "--pod-offloading-strategy", "Remote"]);
    eventually("the namespace is there", || {
        let found = read(pair, CONSUMER, &["-n", "shop", "get", "namespaceoffloading", "offloading"]);
        let status = &found["status"];
        match (status["offloadingPhase"].as_str(), status["remoteNamespaceName"].as_str()) {
            (Some("Ready"), Some(name)) => Ok(name.to_owned()),
            _ => Err(format!("{found:#}")),
        }
    })
    .await
}

/// Two applications that insist on a pool, and one that only likes it better.
async fn pods_run_where_their_pool_is(pair: &Pair, remote: &str) {
    for (pool, ..) in [FAST, PLAIN] {
        deploy(pair, pool, &json!({ "nodeSelector": { "liqo.io/pool": pool } }));
    }
    let prefers = json!({ "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 100,
        "preference": { "matchExpressions": [{ "key": "liqo.io/pool", "operator": "In", "values": [FAST.0] }] },
    }] } } });
    deploy(pair, "any", &prefers);
    for (name, (_, node, there)) in [(FAST.0, FAST), (PLAIN.0, PLAIN), ("any", FAST)] {
        pair.kubectl(
            CONSUMER,
            &["-n", "shop", "rollout", "status", &format!("deployment/{name}"), "--timeout=90s"],
        );
        assert_eq!(places(pair, CONSUMER, "shop", name), [node, node], "{name}");
        assert_eq!(places(pair, PROVIDER, remote, name), [there, there], "{name}");
    }
}

/// The provider stays, so only the selected pool tells where they may run.
async fn pods_leave_a_pool_that_is_not_selected_any_more(pair: &Pair, remote: &str) {
    let select = async |terms: Value| {
        let patch = json!({ "spec": { "clusterSelector": terms } }).to_string();
        let words =
            ["-n", "shop", "patch", "namespaceoffloading", "offloading", "--type=merge", "-p", &patch];
        pair.kubectl(CONSUMER, &words);
        // Pods that are made before that are placed by the old selection, and stay.
        eventually("the manager knows the selection", || {
            let found = read(pair, CONSUMER, &["-n", "shop", "get", "namespaceoffloading", "offloading"]);
            let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let told = conditions.iter().filter_map(|it| it["observedGeneration"].as_i64()).max();
            if told == found["metadata"]["generation"].as_i64() { Ok(()) } else { Err(format!("{found:#}")) }
        })
        .await;
    };
    let runs_at = async |(_, node, there): (&str, &str, &str)| {
        eventually("its pods run in the pool that is selected", || {
            let found = (places(pair, CONSUMER, "shop", "any"), places(pair, PROVIDER, remote, "any"));
            let both = |node: &str| vec![node.to_owned(); 2];
            if found == (both(node), both(there)) { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
        pair.kubectl(CONSUMER, &["-n", "shop", "rollout", "status", "deployment/any", "--timeout=60s"]);
    };
    let narrowed = Instant::now();
    let plain = json!([{ "key": "liqo.io/pool", "operator": "In", "values": [PLAIN.0] }]);
    select(json!({ "nodeSelectorTerms": [{ "matchExpressions": plain }] })).await;
    runs_at(PLAIN).await;
    println!("its pods ran in the other pool after {:?}", narrowed.elapsed());
    // Who insists on the other pool waits; who is in this one was not touched, and people are told.
    waits(pair, FAST.0).await;
    assert_eq!(places(pair, PROVIDER, remote, PLAIN.0), [PLAIN.2, PLAIN.2]);
    let said = pair.ok(CONSUMER, &["status", "namespace", "shop", "-o", "wide"]);
    assert!(said.out.contains("liqo-provider-fast does not match"), "{said}");
    // Nobody moves because there is more to choose from, but whoever is made from now on may choose it.
    select(Value::Null).await;
    pair.kubectl(CONSUMER, &["-n", "shop", "delete", "pods", "--all"]);
    runs_at(FAST).await;
    for name in ["fast", "plain"] {
        let name = format!("deployment/{name}");
        pair.kubectl(CONSUMER, &["-n", "shop", "rollout", "status", &name, "--timeout=60s"]);
    }
}

/// The pods of an application are made anew, and no node takes them.
async fn waits(pair: &Pair, app: &str) {
    eventually("its pods wait", || {
        let found = places(pair, CONSUMER, "shop", app);
        if found == ["", ""] { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

async fn a_pool_that_is_removed_is_emptied(pair: &Pair, remote: &str) {
    let removed = Instant::now();
    share(pair, &[PLAIN.0]);
    let nodes = ["get", "nodes", "-l", "liqo.io/type=virtual-node"];
    eventually("the node of the pool is gone, and so are its pods", || {
        let left = names(&read(pair, CONSUMER, &nodes));
        let there = places(pair, PROVIDER, remote, FAST.0);
        if left == [PLAIN.1] && there.is_empty() { Ok(()) } else { Err(format!("{left:?} {there:?}")) }
    })
    .await;
    println!("the pool was gone after {:?}", removed.elapsed());
    eventually("who only liked it better runs in the other", || {
        let found = (places(pair, CONSUMER, "shop", "any"), places(pair, PROVIDER, remote, "any"));
        let both = |node: &str| vec![node.to_owned(); 2];
        if found == (both(PLAIN.1), both(PLAIN.2)) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    pair.kubectl(CONSUMER, &["-n", "shop", "rollout", "status", "deployment/any", "--timeout=60s"]);
    println!("its pods ran elsewhere after {:?}", removed.elapsed());
    // Who insists on it waits, and nobody else was touched.
    waits(pair, FAST.0).await;
    assert_eq!(places(pair, PROVIDER, remote, PLAIN.0), [PLAIN.2, PLAIN.2]);
    for side in [CONSUMER, PROVIDER] {
        // One is in force, and it is about the other pool alone; either side may note that a moment later.
        pair.json_until(side, &["contract", "list"], |contracts| {
            let in_force: Vec<&Value> =
                contracts.as_array().unwrap().iter().filter(|it| it["phase"] == "Active").collect();
            let [contract] = in_force[..] else { return false };
            let pools = contract["pools"].as_array().into_iter().flatten();
            pools.map(|it| &it["name"]).eq([PLAIN.0])
        });
    }
}

fn deploy(pair: &Pair, name: &str, placement: &Value) {
    let mut spec = json!({
        "terminationGracePeriodSeconds": 1,
        "containers": [{
            "name": "app", "image": "localhost/liqo/sandbox-app:1", "imagePullPolicy": "Never",
            "securityContext": {
                "allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": { "drop": ["ALL"] },
            },
        }],
    });
    placement.as_object().unwrap().iter().for_each(|(field, value)| spec[field] = value.clone());
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name, "namespace": "shop" },
        "spec": {
            "replicas": 2, "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": spec },
        },
    });
    pair.apply(CONSUMER, &deployment.to_string());
}

/// The nodes of an application's pods that are not about to go.
fn places(pair: &Pair, cluster: &str, namespace: &str, app: &str) -> Vec<String> {
    let pods = read(pair, cluster, &["-n", namespace, "get", "pods", "-l", &format!("app={app}")]);
    let stay = items(&pods).iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    stay.map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or_default().to_owned()).collect()
}

fn read(pair: &Pair, cluster: &str, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["-o", "json"]).collect();
    serde_json::from_str(&pair.kubectl(cluster, &words)).unwrap()
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().unwrap()
}

fn names(list: &Value) -> Vec<String> {
    items(list).iter().map(|it| it["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

async fn eventually<T>(what: &str, look: impl Fn() -> Result<T, String>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        match look() {
            Ok(found) => return found,
            Err(state) if Instant::now() > deadline => panic!("not within {SOON:?}: {what}; now: {state}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}
