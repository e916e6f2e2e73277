//! The room killed after each single write: whoever comes after it finishes the same work, on real API servers.
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

use fuse::Fuse;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use liqo_api::ShadowPod;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use world::{StandIn, World, all, eventually};

/// More writes than any of this takes; a test that reaches it never ends by itself.
const TOO_MANY: isize = 40;

/// A pod with what it needs, from its beginning to its end.
struct Life {
    name: String,
    /// The uid of the pod at the provider, once it was seen.
    remote: Mutex<Option<String>>,
    deleted: Mutex<bool>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_killed_after_each_write_comes_to_the_same_end() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("home", 1), ClusterSpec::hollow("away", 1)]).await;
    let world = World::new(&sandbox, "home", "home").await;
    world.map(&[("shop", "shop-home")]).await;
    let _stand_in = StandIn::start(&world);
    // What the namespace has anyway is there, so that the writes are those of one life.
    let first = world.start().await;
    eventually("the authority of home", || async {
        let maps: Api<ConfigMap> = world.at_provider("shop-home");
        maps.get_opt("kube-root-ca.crt.home").await.unwrap().map(|_| ()).ok_or_else(|| "missing".to_owned())
    })
    .await;
    first.kill();
    for writes in 1..TOO_MANY {
        let life = Life { name: format!("k-{writes}"), remote: Mutex::new(None), deleted: Mutex::new(false) };
        let fuse = Fuse::after(writes);
        let process = world.start_with(fuse.clone()).await;
        tokio::select! {
            () = fuse.blown() => {}
            () = live(&world, &life) => {}
        }
        let last = fuse.last();
        process.kill();
        let process = world.start().await;
        live(&world, &life).await;
        nothing_is_left(&world, writes).await;
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

/// Lives as far as it did not yet.
async fn live(world: &World<'_>, life: &Life) {
    let (pods, remote_pods): (Api<Pod>, Api<Pod>) = (world.at_home("shop"), world.at_provider("shop-home"));
    if !*life.deleted.lock() {
        let pod = serde_json::from_value(world.pod("shop", &life.name)).unwrap();
        let _ = pods.create(&PostParams::default(), &pod).await;
        need::<ConfigMap>(world, life, json!({ "data": { "key": "value" } })).await;
        let ports = json!([{ "port": 80 }]);
        need::<Service>(world, life, json!({ "spec": { "selector": { "app": "a" }, "ports": ports } })).await;
        need::<PersistentVolumeClaim>(world, life, claim(&world.node)).await;
        world.wait_ready("shop", &life.name).await;
        let uid = remote_pods.get(&life.name).await.unwrap().uid();
        let known = life.remote.lock().clone();
        assert!(known.is_none() || known == uid, "{}: the pod was started twice", life.name);
        *life.remote.lock() = uid;
        *life.deleted.lock() = true;
    }
    let _ = pods.delete(&life.name, &DeleteParams::default()).await;
    world.wait_gone(&pods, &life.name).await;
    assert!(remote_pods.get_opt(&life.name).await.unwrap().is_none(), "{} still runs there", life.name);
    need_no_more::<ConfigMap>(world, life).await;
    need_no_more::<Service>(world, life).await;
    need_no_more::<PersistentVolumeClaim>(world, life).await;
}

/// A claim whose first consumer was placed there.
fn claim(node: &str) -> Value {
    let (access, size) = (json!(["ReadWriteOnce"]), json!({ "requests": { "storage": "1Gi" } }));
    json!({
        "metadata": { "annotations": { "volume.kubernetes.io/selected-node": node } },
        "spec": { "storageClassName": "liqo", "accessModes": access, "resources": size },
    })
}

/// Makes what the pod needs, and waits for its copy.
async fn need<K>(world: &World<'_>, life: &Life, mut object: Value)
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + std::fmt::Debug,
{
    object["metadata"]["name"] = json!(life.name);
    let object: K = serde_json::from_value(object).unwrap();
    let (here, there): (Api<K>, Api<K>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let _ = here.create(&PostParams::default(), &object).await;
    eventually(&format!("the copy of a {}", K::kind(&())), || async {
        there.get_opt(&life.name).await.unwrap().map(|_| ()).ok_or_else(|| "missing".to_owned())
    })
    .await;
}

/// Removes it, and waits until its copy is gone.
async fn need_no_more<K>(world: &World<'_>, life: &Life)
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let (here, there): (Api<K>, Api<K>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let _ = here.delete(&life.name, &DeleteParams::default()).await;
    world.wait_gone(&here, &life.name).await;
    world.wait_gone(&there, &life.name).await;
}

async fn nothing_is_left(world: &World<'_>, writes: isize) {
    eventually(&format!("nothing is left after {writes}"), || async {
        let shadows = all(&world.at_provider::<ShadowPod>("shop-home")).await;
        let pods = all(&world.at_provider::<Pod>("shop-home")).await;
        let secrets: Api<Secret> = world.at_provider("shop-home");
        let ours = ListParams::default().labels("virtualkubelet.liqo.io/origin");
        let secrets = secrets.list(&ours).await.unwrap().items;
        let names: Vec<_> = shadows
            .iter()
            .map(ResourceExt::name_any)
            .chain(pods.iter().map(ResourceExt::name_any))
            .chain(secrets.iter().map(ResourceExt::name_any))
            .collect();
        if names.is_empty() { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
}
