//! What a pod costs: requests and processor time of the room, for a hundred and a thousand.
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

use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use tokio::time::Instant;
use world::{StandIn, World, eventually, is_ready};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_costs_two_requests() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("home", 1), ClusterSpec::hollow("away", 12)]).await;
    let world = World::new(&sandbox, "home", "home").await;
    world.map(&[("shop", "shop-home")]).await;
    let _stand_in = StandIn::start(&world);
    let fuse = fuse::Fuse::never();
    let process = world.start_with(fuse.clone()).await;
    burst(&world, &fuse, 1).await;
    for pods in [100, 1000] {
        burst(&world, &fuse, pods).await;
    }
    let metrics = process.metrics();
    for line in metrics.lines().filter(|line| line.contains("_counter_total")) {
        println!("{line}");
    }
    process.kill();
}

/// Starts so many pods and takes them away again.
async fn burst(world: &World<'_>, fuse: &fuse::Fuse, pods: usize) {
    let here: Api<Pod> = world.at_home("shop");
    let (before, processor, begun) = (fuse.counts(), processor_time(), Instant::now());
    stream::iter(0..pods)
        .for_each_concurrent(16, |number| {
            let here = here.clone();
            let pod = serde_json::from_value(world.pod("shop", &format!("p-{number}"))).unwrap();
            async move { drop(here.create(&PostParams::default(), &pod).await.unwrap()) }
        })
        .await;
    eventually("all are ready", || async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let found = here.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let ready = found.iter().filter(|pod| is_ready(pod)).count();
        if ready == pods { Ok(()) } else { Err(format!("{ready} of {pods}")) }
    })
    .await;
    let (took, used) = (begun.elapsed(), processor_time().saturating_sub(processor));
    let mut counts = fuse.counts();
    counts.retain(|key, count| {
        *count -= before.get(key).copied().unwrap_or_default();
        !key.starts_with("GET") && *count > 0
    });
    let requests: usize = counts.values().sum();
    println!(
        "{pods} pods ready after {took:?}; {requests} requests of the room {counts:?}, {:.2} a pod; {used:?} of processor \
         time (without optimisation), {:.2} ms a pod; {} kB resident, tests and stand-in included",
        requests as f64 / pods as f64,
        used.as_secs_f64() * 1000.0 / pods as f64,
        resident()
    );
    assert_eq!(counts["POST shadowpods"], pods, "{counts:?}");
    // A machine that is busy with other things lets the provider's scheduler fail now and then, which is told.
    assert!(counts["PATCH pods/status"] <= pods + pods / 4, "{counts:?}");
    here.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    eventually("all are gone", || async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let left = here.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        if left == 0 { Ok(()) } else { Err(format!("{left} left")) }
    })
    .await;
}

/// What the room's threads have used.
fn processor_time() -> Duration {
    let mut ticks = 0;
    for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        if name.trim() != "room" {
            continue;
        }
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let field = |at: usize| fields.get(at).and_then(|it| it.parse::<u64>().ok()).unwrap_or_default();
        ticks += field(11) + field(12);
    }
    // The kernel counts in hundredths of a second wherever this runs.
    Duration::from_millis(ticks * 10)
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or_default()
}
