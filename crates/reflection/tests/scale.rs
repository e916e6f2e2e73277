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

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::stream;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
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
    five_thousand_config_maps(&world, &fuse).await;
    let metrics = process.metrics();
    for line in metrics.lines().filter(|line| line.contains("_counter_total")) {
        println!("{line}");
    }
    process.kill();
}

/// What is told about pods before they run, by what it says: each is a request more than a pod should cost.
struct Words {
    said: Arc<Mutex<BTreeMap<String, usize>>>,
    /// Ends with this.
    _task: JoinSet<()>,
}

impl Words {
    fn listen(here: Api<Pod>) -> Self {
        let said: Arc<Mutex<BTreeMap<String, usize>>> = Arc::default();
        let heard = Arc::clone(&said);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let stream = watcher(here, watcher::Config::default()).default_backoff().applied_objects();
            let each = stream.try_for_each(|pod| {
                let status = pod.status.clone().unwrap_or_default();
                let told = status.reason.is_some() || status.start_time.is_some();
                if told && status.phase.as_deref() == Some("Pending") {
                    let text = format!("{:?} {:?}", status.reason, status.message);
                    *heard.lock().entry(text).or_default() += 1;
                } else if told && !is_ready(&pod) && pod.metadata.deletion_timestamp.is_none() {
                    *heard.lock().entry(format!("{:?}, not ready", status.phase)).or_default() += 1;
                }
                async { Ok(()) }
            });
            // What is not heard is not printed.
            let _ = each.await;
        });
        Self { said, _task: task }
    }
}

/// A namespace with very many objects: each is sent once.
async fn five_thousand_config_maps(world: &World<'_>, fuse: &fuse::Fuse) {
    const MAPS: usize = 5000;
    let (here, there): (Api<ConfigMap>, Api<ConfigMap>) =
        (world.at_home("shop"), world.at_provider("shop-home"));
    let ours = ListParams::default().labels("test=many");
    let (before, processor, begun) = (fuse.counts(), processor_time(), Instant::now());
    stream::iter(0..MAPS)
        .for_each_concurrent(16, |number| {
            let here = here.clone();
            let map = json!({ "metadata": { "name": format!("m-{number}"), "labels": { "test": "many" } },
                "data": { "key": "value ".repeat(20) } });
            let map = serde_json::from_value(map).unwrap();
            async move { drop(here.create(&PostParams::default(), &map).await.unwrap()) }
        })
        .await;
    let made = begun.elapsed();
    wait_for(&there, &ours, MAPS).await;
    let (took, used) = (begun.elapsed(), processor_time().saturating_sub(processor));
    let sent = |counts: &BTreeMap<String, usize>, key: &str| counts.get(key).copied().unwrap_or_default();
    let count = |key: &str| sent(&fuse.counts(), key) - sent(&before, key);
    let (posts, puts) = (count("POST configmaps"), count("PUT configmaps"));
    println!(
        "{MAPS} config maps made after {made:?}, at the provider after {took:?}; {posts} POST, {puts} PUT; {used:?} of \
         processor time (without optimisation); {} kB resident, tests included",
        resident()
    );
    assert_eq!((posts, puts), (MAPS, 0));
}

async fn wait_for(api: &Api<ConfigMap>, which: &ListParams, wanted: usize) {
    eventually("all config maps", || async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let found = api.list_metadata(which).await.map_err(|error| error.to_string())?.items.len();
        if found == wanted { Ok(()) } else { Err(format!("{found} of {wanted}")) }
    })
    .await;
}

/// Starts so many pods and takes them away again.
async fn burst(world: &World<'_>, fuse: &fuse::Fuse, pods: usize) {
    let here: Api<Pod> = world.at_home("shop");
    let words = Words::listen(here.clone());
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
    println!("told before they were ready: {:?}", words.said.lock());
    assert!(
        counts["PATCH pods/status"] <= pods + pods / 10,
        "{counts:?}, told before they were ready: {:?}",
        words.said.lock()
    );
    // What goes well is not told in events, unless it takes long; on a busy machine it may.
    let slow = took >= Duration::from_secs(10);
    let most = if slow { pods.div_ceil(10) } else { pods / 10 };
    assert!(counts.get("PATCH events").is_none_or(|events| *events <= most), "{took:?} {counts:?}");
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
