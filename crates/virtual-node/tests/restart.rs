//! The API server is restarted while a hundred virtual nodes live: they go on, and nothing is written to them for it.
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

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use lender::{Lender, Reached, administrator};
use liqo_sandbox::{ClusterSpec, Component, TestSandbox};
use serde_json::json;
use world::{PLACE, Process, eventually, install, namespace, ready};

const NODES: usize = 100;
/// Objects made at once.
const AT_ONCE: usize = 16;
/// For so long nobody answers; shorter than a leader waits before it gives up.
const AWAY: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_nodes_live_on_when_the_api_server_is_restarted() {
    // Without Kubernetes' own controllers, which would mark nodes on their own account.
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a"), ClusterSpec::api_only("b")]).await;
    let (consumer, provider) = (sandbox.cluster("a"), sandbox.cluster("b"));
    let client = consumer.client().await;
    install(&client).await;
    let there = provider.client().await;
    install(&there).await;
    namespace(&there, PLACE).await;
    let (certificate, reached) = (administrator(&provider).await, Reached::of(&provider).await);
    namespace(&client, "liqo-tenant-many").await;
    let lenders = (0..NODES).map(|number| Lender::at(number, &format!("p{number}"), "liqo-tenant-many"));
    let making = stream::iter(lenders).for_each_concurrent(AT_ONCE, |lender| {
        let (client, reached, certificate) = (&client, &reached, &certificate);
        async move {
            lender.know(client, reached, certificate).await;
            lender.lend(client, &[("cpu", "4"), ("memory", "8Gi"), ("pods", "50")]).await;
        }
    });
    making.await;
    let _process = Process::start(&consumer, |_| {}).await;
    let before = eventually("all are ready and have leases", || async {
        let nodes = nodes(&client).await?;
        let leases = renewed_since(&client, Timestamp::MIN).await?;
        if nodes.len() == NODES && leases == NODES {
            Ok(nodes)
        } else {
            Err(format!("{} {leases}", nodes.len()))
        }
    })
    .await;

    consumer.kill(Component::Apiserver).await;
    tokio::time::sleep(AWAY).await;
    consumer.start(Component::Apiserver).await;
    let back = Timestamp::now();
    eventually("all leases are renewed again", || async {
        let renewed = renewed_since(&client, back).await?;
        if renewed == NODES { Ok(()) } else { Err(format!("{renewed} of {NODES} are")) }
    })
    .await;
    assert_eq!(nodes(&client).await.unwrap(), before, "they are the same, and nothing was written");
}

/// The nodes that are ready, with their versions.
async fn nodes(client: &kube::Client) -> Result<BTreeMap<String, Option<String>>, String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let virtual_nodes = ListParams::default().labels("liqo.io/type=virtual-node");
    let found = nodes.list(&virtual_nodes).await.map_err(|error| error.to_string())?.items;
    let ready = found.iter().filter(|node| ready(&json!(node)).0 == "True");
    Ok(ready.map(|node| (node.name_any(), node.resource_version())).collect())
}

/// How many leases were renewed since then.
async fn renewed_since(client: &kube::Client, since: Timestamp) -> Result<usize, String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
    let found = leases.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
    let renewed = found.iter().filter_map(|lease| Some(lease.spec.as_ref()?.renew_time.as_ref()?.0));
    Ok(renewed.filter(|at| *at > since).count())
}
