//! Two clusters that get to know each other, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/world.rs"]
mod world;

use liqo_sandbox::{ClusterSpec, TestSandbox};
use tokio::time::Instant;
use world::{House, NAMESPACE, value, wait_root_ca};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_an_identity_at_another_and_no_more_rights_than_a_peer_has() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1), ClusterSpec::api_only("a")]).await;
    let (a, b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    wait_root_ca(&b.client).await;
    let _b = b.start().await;
    let _a = a.start().await;
    let fingerprint = b.fingerprint(&_b).await;
    let token = b.own_token().await;
    let started = Instant::now();
    a.add("provider", &b, fingerprint, Some(&token)).await;
    let condition = a.wait_condition("provider", "Established Authenticated").await;
    println!("full exchange: {:?}: {}", started.elapsed(), condition.message);
    let secret = a.identity_secret(&b).await.unwrap();
    println!("{}", value(&secret, "namespace"));
    let _ = NAMESPACE;
}
