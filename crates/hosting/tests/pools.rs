//! Pools at a real provider: pods run on the nodes of their pool, as many as the contract has of it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::namespace_map::MappingPhase::Accepted;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::json;
use world::{Consumer, Provider, US, eventually, pod, shadow};

#[tokio::test(flavor = "multi_thread")]
async fn pods_run_on_the_nodes_of_their_pool() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 3)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    let _process = provider.start().await;
    let nodes: Api<Node> = Api::all(provider.client.clone());
    let all = nodes.list(&ListParams::default()).await.unwrap().items;
    let first = all.first().unwrap().name_any();
    let label = json!({ "metadata": { "labels": { "kind": "gpu" } } });
    nodes.patch(&first, &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    let milan = provider.consumer("milan").await;
    a_policy_with_pools(&provider, &milan).await;
    milan.sign_pools(&[("gpu", 1000), ("plain", 2000)]).await;
    milan.ask("map", &[("shop", "shop-milan")]).await;
    milan.wait_told("map", "shop", Accepted, "").await;

    for number in 0..3 {
        for pool in ["gpu", "plain"] {
            want(&milan, &format!("{pool}-{number}"), Some(pool), "300m").await;
        }
    }
    for number in 0..3 {
        for (pool, is_there) in [("gpu", true), ("plain", false)] {
            let name = format!("{pool}-{number}");
            let placed = |pod: &k8s_openapi::api::core::v1::Pod| {
                pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some())
            };
            let pod = milan.wait_pod("shop-milan", &name, placed).await;
            let node = pod.spec.as_ref().unwrap().node_name.clone().unwrap();
            assert_eq!(node == first, is_there, "{name} is on {node}, the node of the pool gpu is {first}");
            assert_eq!(pod.labels()["liqo.io/pool"], pool);
        }
    }
    // There is room in the contract, and none of it in this pool.
    want(&milan, "gpu-3", Some("gpu"), "300m").await;
    let said = milan.wait_refused("shop-milan", "gpu-3", "QuotaExceeded").await;
    assert!(said.contains("in pool gpu"), "{said}");
    want(&milan, "other", Some("other"), "1m").await;
    milan.wait_refused("shop-milan", "other", "UnknownPool").await;
    want(&milan, "none", None, "1m").await;
    milan.wait_refused("shop-milan", "none", "UnknownPool").await;
    // Who leaves makes room.
    milan.drop_pod("shop-milan", "gpu-0").await;
    milan.wait_pod("shop-milan", "gpu-3", |_| true).await;
}

async fn want(milan: &Consumer<'_>, name: &str, pool: Option<&str>, cpu: &str) {
    let mut wanted = shadow(&milan.id, name, &pod(cpu));
    if let Some(pool) = pool {
        wanted.labels_mut().insert("liqo.io/pool".to_owned(), pool.to_owned());
    }
    eventually(name, || milan.create("shop-milan", &wanted)).await;
}

async fn a_policy_with_pools(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let policy = json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "SharingPolicy", "metadata": { "name": "parts" },
        "spec": { "pools": [
            { "name": "gpu", "nodeSelector": { "matchLabels": { "kind": "gpu" } }, "labels": { "fast": "yes" } },
            { "name": "plain" },
        ] },
    });
    install::put(&provider.client, &policy).await;
    let offer = json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "ResourceOffer",
        "metadata": { "name": "provider", "namespace": milan.place },
        "spec": { "clusterId": US, "policy": "parts", "pools": [
            { "name": "gpu", "resources": { "cpu": "1" }, "labels": { "fast": "yes" } },
        ] },
    });
    install::put(&provider.client, &offer).await;
}
