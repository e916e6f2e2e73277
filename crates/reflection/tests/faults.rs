//! API servers that stop in the middle of a burst, a minute without the provider, objects as large as they may be, and two
//! consumers that call their namespaces alike.
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
use std::sync::Arc;
use std::time::Duration;

use fuse::Fuse;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::ShadowPod;
use liqo_providers::Health;
use liqo_sandbox::{ClusterSpec, Component, TestSandbox};
use serde_json::json;
use world::{StandIn, World, create, eventually, is_ready};

const BURST: usize = 60;
/// As long as an outage of a link may well take.
const PARTITION: Duration = Duration::from_secs(60);
/// The most that the values of a ConfigMap or Secret, and annotations, may have.
const MOST_DATA: usize = 1 << 20;
const MOST_ANNOTATIONS: usize = 256 << 10;

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
    let fuse = Fuse::never();
    let (process, another) = (world.start_with(fuse.clone()).await, other.start().await);
    two_consumers_with_the_same_namespace_do_not_meet(&world, &other).await;
    another.kill();
    large_objects_go_and_what_is_too_large_is_told(&world, &fuse).await;
    api_servers_stop_in_the_middle_of_a_burst(&world).await;
    a_minute_without_the_provider(&sandbox, &world).await;
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

async fn large_objects_go_and_what_is_too_large_is_told(world: &World<'_>, fuse: &Fuse) {
    let maps: (Api<ConfigMap>, Api<ConfigMap>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let secrets: (Api<Secret>, Api<Secret>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let map: ConfigMap = serde_json::from_value(
        json!({ "metadata": { "name": "large" }, "data": { "k": "x".repeat(MOST_DATA) } }),
    )
    .unwrap();
    maps.0.create(&PostParams::default(), &map).await.unwrap();
    let mut secret = Secret::default();
    secret.metadata.name = Some("large".to_owned());
    secret.data = Some([("k".to_owned(), k8s_openapi::ByteString(vec![7; MOST_DATA]))].into());
    secrets.0.create(&PostParams::default(), &secret).await.unwrap();
    eventually("the large ones arrive", || async {
        let map = maps.1.get_opt("large").await.map_err(|error| error.to_string())?;
        let secret = secrets.1.get_opt("large").await.map_err(|error| error.to_string())?;
        let found =
            (map.map(|it| it.data.unwrap()["k"].len()), secret.map(|it| it.data.unwrap()["k"].0.len()));
        if found == (Some(MOST_DATA), Some(MOST_DATA)) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    // As large as it may be here; what we add is too much there.
    let full = json!({ "note": "x".repeat(MOST_ANNOTATIONS - "note".len()) });
    let map = json!({ "metadata": { "name": "full", "annotations": full }, "data": { "k": "v" } });
    let before = fuse.counts().get("POST configmaps").copied().unwrap_or_default();
    let begun = tokio::time::Instant::now();
    maps.0.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let events: Api<Event> = world.at_home("shop");
    eventually("it is told", || async {
        let found = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let told = found.iter().find(|event| {
            event.reason.as_deref() == Some("NotReflected")
                && event.regarding.as_ref().is_some_and(|it| it.name.as_deref() == Some("full"))
        });
        match told.and_then(|event| event.note.clone()) {
            Some(note) if note.contains("Too long") => Ok(()),
            other => Err(format!("{other:?}, {} events", found.len())),
        }
    })
    .await;
    // Others go on, and it is not tried again and again meanwhile.
    for number in 0..20 {
        let name = format!("small-{number}");
        let map = json!({ "metadata": { "name": name }, "data": { "k": "v" } });
        maps.0.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
        eventually(&name, || async {
            let found = maps.1.get_opt(&name).await.map_err(|error| error.to_string())?;
            found.map(|_| ()).ok_or_else(|| "missing".to_owned())
        })
        .await;
    }
    let tries = fuse.counts()["POST configmaps"] - before - 20;
    // What was given up is tried again with everything else, each half a minute.
    let looks = usize::try_from(begun.elapsed().as_secs() / 30).unwrap();
    assert!((1..=(2 + looks).max(3)).contains(&tries), "tried {tries} times in {:?}", begun.elapsed());
    assert!(maps.1.get_opt("full").await.unwrap().is_none());
}

/// Nothing gets through for a minute; the watches hang, and what happens meanwhile is made up for.
async fn a_minute_without_the_provider(sandbox: &TestSandbox, world: &World<'_>) {
    let (here, there): (Api<Pod>, Api<Pod>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let maps: (Api<ConfigMap>, Api<ConfigMap>) = (world.at_home("shop"), world.at_provider("shop-home"));
    for name in ["stays", "goes", "again"] {
        create(&here, &world.pod("shop", name)).await;
        world.wait_ready("shop", name).await;
    }
    let uid = |pod: Pod| pod.uid().unwrap();
    let stays = uid(there.get("stays").await.unwrap());
    sandbox.cut("host", "away").await;
    let begun = tokio::time::Instant::now();
    // As the measuring of providers does after some seconds of silence.
    world.set_health(&Health::Unreachable { since: jiff::Timestamp::now(), why: Arc::from("no answer") });
    world.wait_pod("shop", "stays", |pod| (!is_ready(pod)).then_some(())).await;
    here.delete("goes", &DeleteParams::default()).await.unwrap();
    create(&here, &world.pod("shop", "new")).await;
    create(&maps.0, &json!({ "metadata": { "name": "meanwhile" }, "data": { "k": "v" } })).await;
    maps.0.delete("small-0", &DeleteParams::default()).await.unwrap();
    // The pod that was there is forgotten by force, and another has its name.
    here.delete("again", &DeleteParams::default().grace_period(0)).await.unwrap();
    world.wait_gone(&here, "again").await;
    create(&here, &world.pod("shop", "again")).await;
    assert!(here.get_opt("goes").await.unwrap().is_some(), "nobody can say that it ended");
    tokio::time::sleep_until(begun + PARTITION).await;
    sandbox.heal().await;
    let healed = tokio::time::Instant::now();
    world.set_health(&Health::Reachable);
    for name in ["stays", "new", "again"] {
        world.wait_ready("shop", name).await;
    }
    world.wait_gone(&here, "goes").await;
    world.wait_gone(&maps.1, "small-0").await;
    eventually("meanwhile", || async {
        let found = maps.1.get_opt("meanwhile").await.map_err(|error| error.to_string())?;
        found.map(|_| ()).ok_or_else(|| "missing".to_owned())
    })
    .await;
    println!("all made up for {:?} after the partition", healed.elapsed());
    assert_eq!(uid(there.get("stays").await.unwrap()), stays, "it went on running");
    let shadows: Api<ShadowPod> = world.at_provider("shop-home");
    let mut names: Vec<_> = world::all(&shadows).await.iter().map(ResourceExt::name_any).collect();
    names.sort();
    assert_eq!(names, ["again", "new", "stays"], "nothing is orphaned");
}
