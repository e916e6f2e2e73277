//! The room killed after each single write: whoever comes after it finishes the same work, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "../../reflection/tests/support/fuse.rs"]
mod fuse;
#[path = "support/lender.rs"]
mod lender;
#[path = "support/world.rs"]
mod world;

use fuse::Fuse;
use jiff::SignedDuration;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use lender::{Lender, Reached};
use liqo_api::Contract;
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use world::{Process, eventually, host, install, namespace, the_nodes_are, wait_ready};

/// More writes than any of this takes; a test that reaches it never ends by itself.
const TOO_MANY: isize = 40;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_killed_after_each_write_comes_to_the_same_end() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("a", 1), ClusterSpec::hollow("b", 1)]).await;
    let (consumer, provider) = (sandbox.cluster("a"), sandbox.cluster("b"));
    let (here, there) = (consumer.client().await, provider.client().await);
    install(&here).await;
    let certificate = host(&there).await;
    let lender = Lender::new(1, "milan");
    namespace(&here, &lender.namespace).await;
    lender.know(&here, &Reached::of(&provider).await, &certificate).await;
    for writes in 1..TOO_MANY {
        let fuse = Fuse::after(writes);
        let process = start(&consumer, fuse.clone()).await;
        tokio::select! {
            () = fuse.blown() => {}
            () = live(&here, &lender) => {}
        }
        let last = fuse.last();
        process.kill();
        let process = start(&consumer, Fuse::never()).await;
        live(&here, &lender).await;
        process.kill();
        match last {
            Some(last) => println!("killed after write {writes}: {last}"),
            None => {
                println!("a life takes {} writes", writes - 1);
                assert!(writes > 6, "{writes}");
                return;
            }
        }
    }
    panic!("it never came to an end");
}

async fn start(consumer: &TestCluster<'_>, fuse: Fuse) -> Process {
    let soon = |settings: &mut liqo_virtual_node::Settings| {
        settings.eviction = SignedDuration::from_secs(2);
        settings.absence = SignedDuration::from_secs(1);
    };
    Process::start_with(consumer, soon, move |config| fuse.client(config).unwrap()).await
}

/// From a contract to two nodes, to one, to none; and over again from wherever it was left.
async fn live(here: &kube::Client, lender: &Lender) {
    lender.lend_pools(here, &[("gpu", 2), ("plain", 4)]).await;
    for pool in ["gpu", "plain"] {
        let name = format!("liqo-milan-{pool}");
        let node = wait_ready(here, &name, "True", "ProviderReachable").await;
        eventually("its lease", || async {
            let leases: Api<Lease> = Api::namespaced(here.clone(), "kube-node-lease");
            let lease = leases.get_opt(&name).await.unwrap().ok_or_else(|| "none".to_owned())?;
            let owner = lease.owner_references().first().map(|owner| owner.uid.clone());
            let uid = node["metadata"]["uid"].as_str().map(str::to_owned);
            if owner == uid { Ok(()) } else { Err(format!("of {owner:?}, the node is {uid:?}")) }
        })
        .await;
    }
    lender.lend_pools(here, &[("plain", 4)]).await;
    the_nodes_are(here, &["liqo-milan-plain"]).await;
    let contracts: Api<Contract> = Api::namespaced(here.clone(), &lender.namespace);
    let _ = contracts.delete("contract-milan", &DeleteParams::default()).await;
    the_nodes_are(here, &[]).await;
}
