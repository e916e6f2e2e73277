//! The identity in the life of a manager: first start, restarts, and what users do to its objects.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/process.rs"]
mod process;
#[path = "support/world.rs"]
mod world;

use kube::ResourceExt;
use kube::api::{DeleteParams, Patch, PatchParams};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use world::{NAMESPACE, World, eventually, ok};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_one_identity_and_keeps_it() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a").audited()]).await;
    let world = World::new(&sandbox, "a").await;

    the_first_start_makes_everything_in_order(&world).await;
    a_restart_writes_nothing_but_the_lease(&world).await;
    what_users_delete_or_edit_is_made_good(&world).await;
    wishes_are_granted_on_the_first_start_only(&world).await;
    no_key_is_ever_logged(&world).await;
    every_right_is_used_and_none_is_missing(&world);
}

async fn the_first_start_makes_everything_in_order(world: &World<'_>) {
    let manager = world.manager("first", &[]);
    let after = manager.wait_ready().await;
    println!("ready {after:?} after its start");
    let who = world.identity().await;
    assert_eq!(who.id.len(), 36, "{who:?}");
    assert_eq!(who.name, format!("cluster-{}", &who.id[..6]));
    assert!(who.key.starts_with("-----BEGIN PRIVATE KEY-----\n"));

    let (secret, config_map) = (world.secret().await.unwrap(), world.config_map().await.unwrap());
    let config = world.cluster_config().await.unwrap();
    assert_eq!(secret.type_.as_deref(), Some("liqo.io/identity"));
    assert_eq!(config_map.labels()["app.kubernetes.io/name"], "clusterid-configmap");
    for labels in [secret.labels(), config_map.labels(), config.labels()] {
        assert_eq!(labels["app.kubernetes.io/part-of"], "liqo-rs");
    }
    let keys: Vec<_> = config_map.data.as_ref().unwrap().keys().collect();
    assert_eq!(keys, ["CLUSTER_ID", "CLUSTER_NAME"]);
    let version = |object: Option<String>| object.unwrap().parse::<u64>().unwrap();
    let versions =
        [secret.resource_version(), config_map.resource_version(), config.resource_version()].map(version);
    assert!(versions.is_sorted(), "Secret, ConfigMap, ClusterConfig: {versions:?}");

    let status = config.status.unwrap();
    assert_eq!(status.version.as_deref(), Some(liqo::VERSION));
    assert_eq!(status.leader.as_deref(), Some("first"));
    assert_eq!(status.capabilities, ["identity", "authentication", "discovery", "peering", "offloading"]);
    world.wait_condition("IdentityReady", "True Established").await;
    world.wait_condition("Ready", "True Operating").await;
    let shown = ok(&world.cluster.kubectl(["get", "lcc"]));
    assert!(shown.contains(&who.name) && shown.contains("Autonomous") && shown.contains("True"), "{shown}");

    manager.wait_metric("liqo_identity_ready", 1.0).await;
    manager.wait_metric("liqo_manager_leader", 1.0).await;
    let (_, metrics) = manager.get("metrics", "/metrics").unwrap();
    let build = format!("liqo_build_info{{version=\"{}\"", liqo::VERSION);
    assert!(metrics.contains(&build), "{metrics}");
    assert!(
        manager.get("probes", "/metrics").unwrap().0 == 404
            && manager.get("metrics", "/readyz").unwrap().0 == 404
    );
    assert_eq!(manager.get("probes", "/healthz").unwrap().0, 200);
    manager.stop().await;
    let lease = ok(&world.cluster.kubectl([
        "get",
        "lease",
        "-n",
        NAMESPACE,
        "liqo-controller-manager",
        "-o",
        "json",
    ]));
    let lease: Value = serde_json::from_str(&lease).unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "", "the lease was given back");
}

async fn a_restart_writes_nothing_but_the_lease(world: &World<'_>) {
    let before = world.versions().await;
    let asked_before = writes(world).len();
    let manager = world.manager("first", &[]);
    manager.wait_ready().await;
    manager.stop().await;
    assert_eq!(world.versions().await, before);
    let asked: Vec<_> = writes(world).split_off(asked_before);
    assert!(asked.iter().all(|(_, resource)| resource == "leases"), "{asked:?}");
}

async fn what_users_delete_or_edit_is_made_good(world: &World<'_>) {
    let who = world.identity().await;
    let manager = world.manager("first", &[]);
    manager.wait_ready().await;

    world.cluster_configs().delete("liqo", &DeleteParams::default()).await.unwrap();
    world.wait_condition("Ready", "True Operating").await;
    assert_eq!(world.identity().await, who);

    let nonsense = json!({ "status": { "version": "9.9.9", "fingerprint": "0".repeat(64), "leader": "nobody",
        "clusterIdentity": { "clusterID": "x", "clusterName": "y" }, "capabilities": ["flying"], "conditions": [] } });
    world
        .cluster_configs()
        .patch_status("liqo", &PatchParams::default(), &Patch::Merge(nonsense))
        .await
        .unwrap();
    world.wait_condition("Ready", "True Operating").await;
    eventually("the status is as it was", || async {
        let status = world.cluster_config().await.unwrap().status.unwrap();
        let good =
            status.version.as_deref() == Some(liqo::VERSION) && status.leader.as_deref() == Some("first");
        if good { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    assert_eq!(world.identity().await, who);

    world.config_maps().delete("clusterid-configmap", &DeleteParams::default()).await.unwrap();
    eventually("the ConfigMap is made again", || async { world.config_map().await.ok_or_else(String::new) })
        .await;
    assert_eq!(world.identity().await, who);

    let bare = json!({ "metadata": { "labels": { "app.kubernetes.io/name": null }, "annotations": null } });
    world.patch_config_map(bare).await;
    eventually("labels and fingerprint are there again", || async {
        let found = world.config_map().await.unwrap();
        let good = found.labels().contains_key("app.kubernetes.io/name") && !found.annotations().is_empty();
        if good { Ok(()) } else { Err(format!("{:?}", found.metadata)) }
    })
    .await;
    assert_eq!(manager.readyz().unwrap().0, 200);
    manager.stop().await;
}

async fn wishes_are_granted_on_the_first_start_only(world: &World<'_>) {
    world.forget().await;
    let wishes = ["--cluster-id=my-id", "--cluster-name=milan"];
    let manager = world.manager("wishes", &wishes);
    manager.wait_ready().await;
    let who = world.identity().await;
    assert_eq!((who.id.as_str(), who.name.as_str()), ("my-id", "milan"));
    manager.stop().await;
    // The same wishes again, or none at all, are no contradiction.
    for wishes in [&wishes[..], &[]] {
        let manager = world.manager("wishes", wishes);
        manager.wait_ready().await;
        manager.stop().await;
        assert_eq!(world.identity().await, who);
    }
}

async fn no_key_is_ever_logged(world: &World<'_>) {
    world.forget().await;
    let loud = ["--log-filter=trace", "--log-format=json"];
    let manager = world.manager("loud", &loud);
    manager.wait_log("the cluster's identity is established").await;
    world.wait_condition("Ready", "True Operating").await;
    let key = world.identity().await.key;
    let mut log = manager.stop().await;
    // Once more, now that the Secret comes from a list.
    let manager = world.manager("loud", &loud);
    manager.wait_log("the cluster's identity is established").await;
    log += &manager.stop().await;
    let secret = key.lines().nth(1).unwrap();
    assert!(log.len() > 10_000, "trace should say more: {log}");
    let encoded = serde_json::to_value(k8s_openapi::ByteString(key.as_bytes().to_vec())).unwrap();
    for text in [secret, encoded.as_str().unwrap(), "PRIVATE KEY"] {
        assert!(!log.contains(text), "the log has the private key");
    }
}

/// Verb and resource of the manager's requests that change something, in order.
fn writes(world: &World<'_>) -> Vec<(String, String)> {
    let changes = |verb: &str| !["get", "list", "watch"].contains(&verb);
    requests(world)
        .into_iter()
        .map(|request| (request.verb, request.resource))
        .filter(|it| changes(&it.0))
        .collect()
}

#[derive(Debug)]
struct Request {
    verb: String,
    resource: String,
    code: u64,
    agent: String,
}

/// What the manager asked the API server for.
fn requests(world: &World<'_>) -> Vec<Request> {
    let log = std::fs::read_to_string(world.cluster.audit_log()).unwrap();
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours = events.filter(|event| {
        event["user"]["username"] == "system:serviceaccount:liqo:liqo-controller-manager"
            && event["stage"] == "ResponseComplete"
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ours.map(|event| {
        let reference = &event["objectRef"];
        let subresource =
            reference["subresource"].as_str().map(|name| format!("/{name}")).unwrap_or_default();
        Request {
            verb: text(&event["verb"]),
            resource: format!("{}{subresource}", text(&reference["resource"])),
            code: event["responseStatus"]["code"].as_u64().unwrap_or_default(),
            agent: text(&event["userAgent"]),
        }
    })
    .collect()
}

fn every_right_is_used_and_none_is_missing(world: &World<'_>) {
    let requests = requests(world);
    let refused: Vec<_> = requests.iter().filter(|request| request.code == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");
    let agent = format!("liqo-manager/{}", liqo::VERSION);
    assert!(requests.iter().all(|request| request.agent == agent), "{:?}", requests.first());
    let of_peers = [
        liqo_authentication::RULES,
        liqo_discovery::RULES,
        liqo_discovery::WAN_RULES,
        liqo_peering::RULES,
        liqo_providers::RULES,
        liqo_virtual_node::RULES,
        liqo_offloading::RULES,
        liqo_hosting::RULES,
    ]
    .concat();
    for rule in liqo::manager::rules() {
        for verb in rule.verbs {
            // A cluster without peers looks for them, and has nothing to write about them.
            let for_peers = *verb != "watch" && of_peers.contains(&rule)
                // It looks only into namespaces that are offloaded, and there are none.
                || liqo_reflection::RULES.contains(&rule);
            // Lists are streamed where the server can do that; events are for refusals.
            let elsewhere = *verb == "list" || rule.resources == ["events"] || for_peers;
            let used = requests
                .iter()
                .any(|request| request.verb == *verb && rule.resources.contains(&request.resource.as_str()));
            assert!(used || elsewhere, "nobody asked to {verb} {:?}: {}", rule.resources, rule.why);
        }
    }
}
