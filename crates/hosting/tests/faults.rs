//! A burst of pods while the API server stops, hangs and forgets; two consumers that name all things alike; names at the limit.

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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use liqo_api::ShadowPod;
use liqo_api::namespace_map::MappingPhase::Accepted;
use liqo_core::contract::Enforcement;
use liqo_sandbox::{ClusterSpec, Component, TestSandbox};
use parking_lot::Mutex;
use world::{Consumer, Provider, eventually, pod};

const BURST: usize = 100;
const SPACE: &str = "shop-milan";

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_survives_faults_and_neighbours() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 2)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    let _process = provider.start().await;
    let (milan, turin) = (provider.consumer("milan").await, provider.consumer("turin").await);
    for consumer in [&milan, &turin] {
        consumer.sign(&[("cpu", "100"), ("memory", "100Gi"), ("pods", "150")], Enforcement::Hard).await;
    }
    names_at_the_limit_work(&milan).await;
    milan.ask("map", &[("shop", SPACE)]).await;
    milan.wait_told("map", "shop", Accepted, "").await;
    consumers_that_name_all_things_alike_do_not_meet(&milan, &turin).await;
    each_pod_of_a_burst_is_made_once(&provider, &milan).await;
}

async fn names_at_the_limit_work(milan: &Consumer<'_>) {
    let (local, remote) = ("l".repeat(63), "r".repeat(63));
    milan.ask("map", &[(&local, &remote)]).await;
    milan.wait_told("map", &local, Accepted, "").await;
    // Names of pods may have dots, and 253 characters.
    let label = "p".repeat(62);
    let name = format!("{label}.{label}.{label}.{label}.x");
    assert_eq!(name.len(), 253);
    let small = pod("1m");
    eventually("it is wanted", || milan.want(&remote, &name, &small)).await;
    let is_running = |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
    milan.wait_pod(&remote, &name, is_running).await;
    milan.drop_pod(&remote, &name).await;
    milan.wait_no_pod(&remote, &name).await;
    // What is told about one with such a name has a shorter one.
    milan.want(&remote, &name, &pod("1000")).await.unwrap();
    milan.wait_refused(&remote, &name, "QuotaExceeded").await;
    let events: Api<k8s_openapi::api::events::v1::Event> = milan.api(&remote);
    eventually("it is told in an event", || async {
        let found = events.list(&ListParams::default()).await.unwrap().items;
        let told = found.iter().any(|it| it.reason.as_deref() == Some("QuotaExceeded"));
        if told { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    milan.drop_pod(&remote, &name).await;
}

async fn consumers_that_name_all_things_alike_do_not_meet(milan: &Consumer<'_>, turin: &Consumer<'_>) {
    turin.ask("map", &[("shop", "shop-turin")]).await;
    turin.wait_told("map", "shop", Accepted, "").await;
    let (small, spaces) = (pod("1m"), [(milan, SPACE), (turin, "shop-turin")]);
    for (consumer, space) in spaces {
        eventually("it is wanted", || consumer.want(space, "same", &small)).await;
    }
    let mut uids = BTreeSet::new();
    for (consumer, space) in spaces {
        let pod = consumer.wait_pod(space, "same", |_| true).await;
        assert_eq!(pod.labels()["virtualkubelet.liqo.io/origin"], consumer.id);
        uids.insert(pod.uid());
    }
    assert_eq!(uids.len(), 2);
    // Neither sees, nor gets, what is the other's.
    assert!(turin.api::<Pod>(SPACE).list(&ListParams::default()).await.is_err());
    assert!(turin.want(SPACE, "theirs", &small).await.unwrap_err().starts_with("403"));
    milan.drop_pod(SPACE, "same").await;
    milan.wait_no_pod(SPACE, "same").await;
    let stays = turin.wait_pod("shop-turin", "same", |_| true).await;
    assert!(uids.contains(&stays.uid()), "the pod of the other one was touched");
}

/// All pods that were ever seen, by name.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<BTreeMap<String, BTreeSet<String>>>>);

impl Seen {
    /// Notes each pod of a namespace, whatever happens to the API server.
    async fn watch(self, pods: Api<Pod>) {
        let stream = watcher(pods, watcher::Config::default()).default_backoff().applied_objects();
        let mut stream = std::pin::pin!(stream);
        while let Some(found) = stream.next().await {
            let Ok(pod) = found else { continue };
            self.0.lock().entry(pod.name_any()).or_default().extend(pod.uid());
        }
    }
}

async fn each_pod_of_a_burst_is_made_once(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let seen = Seen::default();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(seen.clone().watch(provider.api(SPACE)));
    let shadows: Api<ShadowPod> = milan.api(SPACE);
    let names: Vec<String> = (0..BURST).map(|number| format!("burst-{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        let shadow = world::shadow("milan", name, &pod("1m"));
        eventually(&format!("{name} is wanted"), || async {
            match shadows.create(&PostParams::default(), &shadow).await {
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                said => said.map(drop).map_err(|error| error.to_string()),
            }
        })
        .await;
        disturb(provider, number).await;
    }
    let pods: Api<Pod> = provider.api(SPACE);
    eventually("all run", || async {
        let found = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let running = found
            .iter()
            .filter(|pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running"));
        let running = running.count();
        if running == BURST { Ok(()) } else { Err(format!("{running} of {BURST} run")) }
    })
    .await;
    // Who notes them lost its watches as well, and may be late.
    let made = eventually("all were noted", || async {
        let noted = seen.0.lock().clone();
        let made: Vec<_> = noted.into_iter().filter(|(name, _)| names.contains(name)).collect();
        if made.len() == BURST { Ok(made) } else { Err(format!("{} of {BURST}", made.len())) }
    })
    .await;
    let twice: Vec<_> = made.iter().filter(|(_, uids)| uids.len() != 1).collect();
    assert!(twice.is_empty(), "made twice: {twice:?}");
    for shadow in shadows.list(&ListParams::default()).await.unwrap() {
        let status = shadow.status.clone().unwrap_or_default();
        assert_eq!((status.recreations, status.phase), (None, None), "{}", shadow.name_any());
    }
    // The end of all is disturbed as well.
    shadows.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    provider.cluster.kill(Component::Apiserver).await;
    provider.cluster.start(Component::Apiserver).await;
    provider.cluster.wait_ready().await;
    eventually("nothing is left", || async {
        let pods = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        let left = shadows.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items.len();
        if pods + left == 0 { Ok(()) } else { Err(format!("{pods} pods of {left} ShadowPods")) }
    })
    .await;
}

/// What happens after so many pods of the burst.
async fn disturb(provider: &Provider<'_>, number: usize) {
    let cluster = &provider.cluster;
    match number {
        20 => {
            // Every watch is cut, and writes that are under way get no answer.
            cluster.kill(Component::Apiserver).await;
            cluster.start(Component::Apiserver).await;
            cluster.wait_ready().await;
        }
        50 => {
            // Longer than a write may take.
            cluster.pause(Component::Apiserver).await;
            tokio::time::sleep(Duration::from_secs(6)).await;
            cluster.resume(Component::Apiserver).await;
            cluster.wait_ready().await;
        }
        80 => {
            // Watches that begin where they ended are told 410.
            cluster.stop(Component::Apiserver).await;
            cluster.start(Component::Apiserver).await;
            cluster.wait_ready().await;
            cluster.compact_etcd().await;
        }
        _ => {}
    }
}
