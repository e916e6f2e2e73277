//! Several nodes for one provider, on real API servers: they come, change and go with the pools of the contract.
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

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use lender::{Lender, Reached};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::json;
use world::{Process, eventually, host, install, namespace, node, the_nodes_are, wait_ready};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_pool_of_a_provider_is_a_node_for_as_long_as_it_is_lent() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("a", 1), ClusterSpec::hollow("b", 1)]).await;
    let (consumer, provider) = (sandbox.cluster("a"), sandbox.cluster("b"));
    let (here, there) = (consumer.client().await, provider.client().await);
    install(&here).await;
    let certificate = host(&there).await;
    let lender = Lender::new(1, "milan");
    namespace(&here, &lender.namespace).await;
    lender.know(&here, &Reached::of(&provider).await, &certificate).await;
    let _process =
        Process::start(&consumer, |settings| settings.eviction = SignedDuration::from_secs(4)).await;

    lender.lend_pools(&here, &[("gpu", 2), ("plain", 4)]).await;
    for (pool, cores) in [("gpu", "2"), ("plain", "4")] {
        let name = format!("liqo-milan-{pool}");
        let node = wait_ready(&here, &name, "True", "ProviderReachable").await;
        assert_eq!(node["status"]["capacity"]["cpu"], cores);
        assert_eq!(node["metadata"]["labels"]["liqo.io/pool"], pool);
        assert_eq!(node["metadata"]["labels"]["tier"], format!("of-{pool}"));
        assert_eq!(node["spec"]["providerID"], format!("liqo://{}/{pool}", lender.id));
    }
    the_scheduler_finds_a_pool_by_its_label(&here).await;

    lender.lend_pools(&here, &[("gpu", 3), ("plain", 4)]).await;
    eventually("another amount", || async {
        let cores = node(&here, "liqo-milan-gpu").await.unwrap()["status"]["capacity"]["cpu"].clone();
        if cores == "3" { Ok(()) } else { Err(cores.to_string()) }
    })
    .await;

    // One goes, and what runs there must leave, as when a contract ends.
    lender.lend_pools(&here, &[("plain", 4)]).await;
    the_nodes_are(&here, &["liqo-milan-plain"]).await;
    let pods: Api<Pod> = Api::namespaced(here.clone(), "default");
    eventually("the pod of the pool that went is gone", || async {
        let left = pods.get_opt("picky").await.unwrap().map(|pod| pod.spec.unwrap().node_name);
        if left.is_none() { Ok(()) } else { Err(format!("{left:?}")) }
    })
    .await;

    // The provider lends as one again.
    lender.lend(&here, &[("cpu", "4"), ("memory", "1Gi"), ("pods", "10")]).await;
    the_nodes_are(&here, &["liqo-milan"]).await;
    lender.end(&here).await;
    the_nodes_are(&here, &[]).await;
}

async fn the_scheduler_finds_a_pool_by_its_label(here: &kube::Client) {
    let pods: Api<Pod> = Api::namespaced(here.clone(), "default");
    let pod = json!({
        "metadata": { "name": "picky" },
        "spec": {
            "containers": [{ "name": "main", "image": "none" }],
            "nodeSelector": { "liqo.io/pool": "gpu" },
            "tolerations": [{ "key": "virtual-node.liqo.io/not-allowed", "operator": "Exists" }],
            // Nobody tells here that it ended: that is another room's.
            "terminationGracePeriodSeconds": 0,
        },
    });
    let pod = serde_json::from_value(pod).unwrap();
    eventually("the pod is taken", || async {
        pods.create(&PostParams::default(), &pod).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    eventually("the pod is placed", || async {
        let placed = pods.get("picky").await.unwrap().spec.unwrap().node_name;
        if placed.as_deref() == Some("liqo-milan-gpu") { Ok(()) } else { Err(format!("{placed:?}")) }
    })
    .await;
}
