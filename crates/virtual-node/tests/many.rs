//! A thousand virtual nodes in one process: what they take.
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

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use lender::{Lender, Reached, administrator};
use liqo_kit::metrics::ProcessUsage;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::json;
use tokio::time::Instant;
use world::{PLACE, Process, eventually, install, namespace, ready};

const NODES: usize = 1000;
/// A lease is first renewed half an interval to one and a half after it was made, so that all are spread; then at each interval. Who
/// counts sooner counts too few.
const FIRST_RENEWAL: Duration = Duration::from_secs(15);
/// For so long they are watched doing nothing.
const IDLE: Duration = Duration::from_secs(20);
/// Objects made at once.
const AT_ONCE: usize = 32;
/// What one more idle node may take: this is a build without optimisation, and the clients of the test are in it too.
const MOST_BYTES: f64 = 1e6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_nodes_live_in_one_process() {
    // Without Kubernetes' own controllers, which would be busy with a thousand nodes as well.
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let cluster = sandbox.cluster("a");
    let client = cluster.client().await;
    install(&client).await;
    // All providers are this very API server, which knows us by one certificate.
    let certificate = administrator(&cluster).await;
    namespace(&client, PLACE).await;
    let reached = Reached::of(&cluster).await;
    let lenders: Vec<_> =
        (0..NODES).map(|number| Lender::at(number, &format!("p{number}"), "liqo-tenant-many")).collect();
    namespace(&client, "liqo-tenant-many").await;
    let making = stream::iter(&lenders).for_each_concurrent(AT_ONCE, |lender| {
        let (client, reached, certificate) = (&client, &reached, &certificate);
        async move {
            lender.know(client, reached, certificate).await;
            lender.lend(client, &[("cpu", "4"), ("memory", "8Gi"), ("pods", "50")]).await;
        }
    });
    making.await;

    let before = ProcessUsage::now();
    let started = Instant::now();
    let process = Process::start(&cluster, |_| {}).await;
    eventually("all are ready", || async {
        let ready = process.metric("liqo_virtual_node_nodes{state=\"ready\"}");
        if ready == NODES as f64 { Ok(()) } else { Err(format!("{ready} are")) }
    })
    .await;
    println!("{NODES} nodes ready after {:?}", started.elapsed());
    eventually("all have leases", || async {
        // Not as many as were counted: one whose making got no answer in time was made all the same.
        let leases: Api<Lease> = Api::namespaced(client.clone(), "kube-node-lease");
        let found = leases.list_metadata(&ListParams::default()).await.map_err(|error| error.to_string())?;
        if found.items.len() == NODES { Ok(()) } else { Err(format!("{} have", found.items.len())) }
    })
    .await;
    tokio::time::sleep(FIRST_RENEWAL).await;
    they_cost_little(&client, &process, &before).await;
}

async fn versions(client: &kube::Client) -> BTreeMap<String, String> {
    let nodes: Api<Node> = Api::all(client.clone());
    let virtual_nodes = ListParams::default().labels("liqo.io/type=virtual-node");
    let found = nodes.list(&virtual_nodes).await.unwrap().items;
    let all_ready = found.iter().all(|node| ready(&json!(node)).0 == "True");
    assert!(all_ready);
    found.iter().map(|node| (node.name_any(), node.resource_version().unwrap())).collect()
}

async fn they_cost_little(client: &kube::Client, process: &Process, before: &ProcessUsage) {
    let quiet = versions(client).await;
    assert_eq!(quiet.len(), NODES);
    let renewed = || process.metric("liqo_virtual_node_lease_renewals_total{outcome=\"renewed\"}");
    let (from, leases, started) = (ProcessUsage::now(), renewed(), Instant::now());
    tokio::time::sleep(IDLE).await;
    let (to, leases, took) = (ProcessUsage::now(), renewed() - leases, started.elapsed().as_secs_f64());
    assert_eq!(versions(client).await, quiet, "nothing is written while nothing changes");
    let per_node = to.anonymous_bytes.saturating_sub(before.anonymous_bytes) as f64 / NODES as f64;
    println!("memory: {:.0} kB for each node", per_node / 1e3);
    println!("leases: {:.0} renewals a second", leases / took);
    println!("CPU of the process: {:.0} millicores", (to.cpu_seconds - from.cpu_seconds) / took * 1e3);
    let expected = NODES as f64 * took / 10.0;
    assert!((leases - expected).abs() < expected * 0.2, "{leases} renewals in {took} s");
    let failed = process.metric("liqo_virtual_node_lease_renewals_total{outcome=\"failed\"}");
    assert!(failed < 10.0, "{failed} renewals failed");
    assert!(per_node < MOST_BYTES, "{per_node} bytes for each node");
}
