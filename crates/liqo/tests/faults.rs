//! Leaders that go, API servers that go, and clusters that are not ready for us.
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

use std::time::Duration;

use liqo_sandbox::{ClusterSpec, Component, TestSandbox};
use process::Manager;
use serde_json::json;
use tokio::time::Instant;
use world::{World, eventually, ok};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manager_outlives_what_happens_around_it() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let world = World::new(&sandbox, "a").await;

    a_cluster_without_our_kinds_is_told_how_to_get_them(&world).await;
    when_the_leader_goes_another_takes_over(&world).await;
    an_api_server_that_restarts_costs_nothing(&world).await;
    an_api_server_that_is_gone_is_waited_for(&world).await;
}

async fn a_cluster_without_our_kinds_is_told_how_to_get_them(world: &World<'_>) {
    ok(&world.cluster.kubectl(["delete", "crd", "clusterconfigs.config.liqo.io"]));
    let manager = world.manager("early", &[]);
    let told = manager.wait_unready("the kinds of Liqo are not defined in this cluster").await;
    assert!(told.contains("liqo crds | kubectl apply --server-side -f -"), "{told}");
    world.install_definitions();
    manager.wait_ready().await;
    manager.stop().await;
}

/// The one that leads, and the others.
async fn leader_of(mut managers: Vec<Manager>) -> (Manager, Vec<Manager>) {
    let position = eventually("one of them leads", || async {
        let leads = |manager: &Manager| manager.metric("liqo_manager_leader") == Some(1.0);
        managers.iter().position(leads).ok_or_else(|| "none".to_owned())
    })
    .await;
    (managers.swap_remove(position), managers)
}

async fn when_the_leader_goes_another_takes_over(world: &World<'_>) {
    let mut managers: Vec<_> = ["one", "two"].map(|pod| world.manager(pod, &[])).into();
    for manager in &managers {
        manager.wait_ready().await;
    }
    let who = world.identity().await;
    for politely in [false, true, false] {
        let (leader, mut others) = leader_of(managers).await;
        others[0].wait_metric("liqo_manager_leader", 0.0).await;
        others[0].wait_log("standing by").await;
        let gone = Instant::now();
        if politely {
            leader.stop().await;
        } else {
            leader.murder().await;
        }
        let heir = others.remove(0);
        heir.wait_metric("liqo_manager_leader", 1.0).await;
        println!(
            "taken over {:?} after the leader {}",
            gone.elapsed(),
            if politely { "left" } else { "died" }
        );
        heir.wait_ready().await;
        world.wait_condition("Ready", "True Operating").await;
        // The heir works: it repairs what somebody breaks.
        let spoiled = json!({ "status": { "version": "0.0.0" } });
        let api = world.cluster_configs();
        let patch = kube::api::Patch::Merge(spoiled);
        api.patch_status("liqo", &kube::api::PatchParams::default(), &patch).await.unwrap();
        eventually("the heir repairs the status", || async {
            let status = world.cluster_config().await.unwrap().status.unwrap();
            if status.version.as_deref() == Some(liqo::VERSION) { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
        let next = world.manager(if heir.log().contains("pod-name=one") { "two" } else { "one" }, &[]);
        next.wait_ready().await;
        managers = vec![heir, next];
    }
    assert_eq!(world.identity().await, who);
    for manager in managers {
        manager.stop().await;
    }
}

/// Kills the API server, and waits until the kernel has taken its port back: threads that still end hold it for a moment.
async fn kill_api_server(world: &World<'_>) {
    world.cluster.kill(Component::Apiserver).await;
    let url = world.cluster.config().await.cluster_url;
    let address = (url.host().unwrap().to_owned(), url.port_u16().unwrap());
    eventually("nobody listens on the API server's port", || async {
        match tokio::net::TcpStream::connect((address.0.as_str(), address.1)).await {
            Ok(_) => Err("somebody does".to_owned()),
            Err(_) => Ok(()),
        }
    })
    .await;
}

async fn an_api_server_that_restarts_costs_nothing(world: &World<'_>) {
    let who = world.identity().await;
    let manager = world.manager("steady", &[]);
    manager.wait_ready().await;
    // Its last write of a start, after another one led.
    eventually("the new leader is told", || async {
        let status = world.cluster_config().await.and_then(|config| config.status).unwrap_or_default();
        if status.leader.as_deref() == Some("steady") { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    let before = world.versions().await;
    kill_api_server(world).await;
    world.cluster.start(Component::Apiserver).await;
    world.cluster.wait_ready().await;
    manager.wait_ready().await;
    manager.wait_metric("liqo_manager_leader", 1.0).await;
    assert_eq!(world.versions().await, before);
    assert_eq!(world.identity().await, who);
    // It hears again what happens.
    world.config_maps().delete("clusterid-configmap", &kube::api::DeleteParams::default()).await.unwrap();
    eventually("the ConfigMap is made again", || async {
        world.config_map().await.ok_or_else(|| manager.log())
    })
    .await;
    manager.stop().await;
}

async fn an_api_server_that_is_gone_is_waited_for(world: &World<'_>) {
    let who = world.identity().await;
    let leading = world.manager("leading", &[]);
    leading.wait_ready().await;
    kill_api_server(world).await;
    let starting = world.manager("starting", &[]);
    let told = starting.wait_unready("cannot reach the API server").await;
    assert!(told.contains("leader-election"), "{told}");
    // Longer than the lease: the leader must not believe that it leads.
    leading.wait_metric("liqo_manager_leader", 0.0).await;
    assert_eq!(leading.get("probes", "/healthz").unwrap().0, 200);
    // Nor does anything hinder its end.
    let asked = Instant::now();
    let third = world.manager("third", &[]);
    third.wait_log("serving metrics").await;
    third.stop().await;
    assert!(asked.elapsed() < Duration::from_secs(10));
    world.cluster.start(Component::Apiserver).await;
    world.cluster.wait_ready().await;
    for manager in [&leading, &starting] {
        manager.wait_ready().await;
    }
    world.wait_condition("Ready", "True Operating").await;
    assert_eq!(world.identity().await, who);
    leading.stop().await;
    starting.stop().await;
}
