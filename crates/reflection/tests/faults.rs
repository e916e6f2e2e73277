//! API servers that stop in the middle of a burst, and two consumers that call their namespaces alike.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/fuse.rs"]
mod fuse;
#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use liqo_api::ShadowPod;
use liqo_sandbox::{ClusterSpec, Component, TestSandbox};
use world::{StandIn, World, create, eventually, is_ready};

const BURST: usize = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_and_neighbours() {
    let sandbox = TestSandbox::start([
        ClusterSpec::hollow("home", 1),
        ClusterSpec::hollow("other", 1),
        ClusterSpec::hollow("away", 3),
    ])
    .await;
    let world = World::new(&sandbox, "home", "home").await;
    world.map(&[("shop", "shop-home")]).await;
    let other = World::new(&sandbox, "other", "other").await;
    other.map(&[("shop", "shop-other")]).await;
    let _stand_in = StandIn::start(&world);
    let (process, another) = (world.start().await, other.start().await);
    two_consumers_with_the_same_namespace_do_not_meet(&world, &other).await;
    another.kill();
    api_servers_stop_in_the_middle_of_a_burst(&world).await;
    process.kill();
}

async fn two_consumers_with_the_same_namespace_do_not_meet(world: &World<'_>, other: &World<'_>) {
    for consumer in [world, other] {
        create(&consumer.at_home::<Pod>("shop"), &consumer.pod("shop", "one")).await;
    }
    world.wait_ready("shop", "one").await;
    other.wait_ready("shop", "one").await;
    let here: Api<Pod> = world.at_home("shop");
    here.delete("one", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&here, "one").await;
    assert!(is_ready(&other.at_home::<Pod>("shop").get("one").await.unwrap()));
    assert!(other.at_provider::<Pod>("shop-other").get_opt("one").await.unwrap().is_some());
    assert!(world.at_provider::<Pod>("shop-home").get_opt("one").await.unwrap().is_none());
}

async fn api_servers_stop_in_the_middle_of_a_burst(world: &World<'_>) {
    let here: Api<Pod> = world.at_home("shop");
    for number in 0..BURST {
        create(&here, &world.pod("shop", &format!("burst-{number}"))).await;
    }
    for cluster in [&world.away, &world.home] {
        cluster.kill(Component::Apiserver).await;
        cluster.start(Component::Apiserver).await;
        cluster.wait_ready().await;
    }
    let mut first = BTreeMap::new();
    eventually("all are ready", || {
        let here = here.clone();
        async move {
            let pods = here.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let ready = pods.iter().filter(|pod| is_ready(pod)).count();
            if ready == BURST { Ok(()) } else { Err(format!("{ready} of {BURST}")) }
        }
    })
    .await;
    let there: Api<Pod> = world.at_provider("shop-home");
    for pod in there.list(&ListParams::default()).await.unwrap() {
        first.insert(pod.name_any(), pod.uid());
    }
    assert_eq!(first.len(), BURST, "one each");
    world.away.compact_etcd().await;
    here.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    eventually("all are gone", || async {
        let pods = here.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        let remote = there.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        let shadows: Api<ShadowPod> = world.at_provider("shop-home");
        let shadows =
            shadows.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        if pods + remote + shadows == 0 { Ok(()) } else { Err(format!("{pods} {remote} {shadows}")) }
    })
    .await;
}
