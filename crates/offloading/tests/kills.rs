//! The room killed after each single write: whoever comes after it finishes the same work, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "../../reflection/tests/support/fuse.rs"]
mod fuse;
#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use fuse::Fuse;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use liqo_api::NamespaceMap;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use parking_lot::Mutex;
use serde_json::{Value, json};
use world::{World, eventually};

/// More writes than any of this takes; a test that reaches it never ends by itself.
const TOO_MANY: isize = 60;
const PROVIDERS: [&str; 2] = ["milan", "rome"];

/// How far a namespace has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    AtHome,
    Everywhere,
    Peopled,
    Narrowed,
    Back,
}

/// A namespace that is offloaded, narrowed to one cluster, and brought home.
struct Life {
    name: String,
    stage: Mutex<Stage>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_killed_after_each_write_comes_to_the_same_end() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("home", 1), ClusterSpec::api_only("there")]).await;
    let mut world = World::new(&sandbox).await;
    world.add_provider("milan", json!({ "tier": "gold" })).await;
    world.add_provider("rome", json!({ "tier": "tin" })).await;
    // One that stays throughout: what becomes of others is none of its business.
    world.namespace("stays", json!({})).await;
    world.offload("stays", json!({})).await;
    let first = world.start().await;
    world.wait_phase("stays", "Ready").await;
    drop(first);
    for writes in 1..TOO_MANY {
        let life = Life { name: format!("k-{writes}"), stage: Mutex::new(Stage::AtHome) };
        world.namespace(&life.name, json!({})).await;
        let fuse = Fuse::after(writes);
        let process = world.start_with(fuse.clone()).await;
        tokio::select! {
            () = fuse.blown() => {}
            () = live(&world, &life) => {}
        }
        let (last, stage) = (fuse.last(), *life.stage.lock());
        drop(process);
        let process = world.start_with(Fuse::never()).await;
        live(&world, &life).await;
        nothing_is_left(&world, &life.name).await;
        drop(process);
        match last {
            Some(last) => println!("killed after write {writes}, {stage:?}: {last}"),
            None => {
                println!("a life takes {} writes", writes - 1);
                assert!(writes > 10, "{writes}");
                return;
            }
        }
    }
    panic!("it never came to an end");
}

/// Lives as far as it did not yet.
async fn live(world: &World<'_>, life: &Life) {
    let name = life.name.as_str();
    let at = || *life.stage.lock();
    if at() < Stage::Everywhere {
        world.offload(name, json!({ "podOffloadingStrategy": "Remote" })).await;
        world.wait_phase(name, "Ready").await;
        world.wait_marked(name, Some("Remote")).await;
        mapped(world, name, &PROVIDERS).await;
        *life.stage.lock() = Stage::Everywhere;
    }
    if at() < Stage::Peopled {
        pod_in_rome(world, name).await;
        *life.stage.lock() = Stage::Peopled;
    }
    if at() < Stage::Narrowed {
        world.offload(name, json!({ "podOffloadingStrategy": "Remote", "clusterSelector": gold() })).await;
        mapped(world, name, &["milan"]).await;
        world.wait_phase(name, "Ready").await;
        let left = world.places(name).await;
        assert!(left.is_empty(), "the namespace left before its pods did: {left:?}");
        *life.stage.lock() = Stage::Narrowed;
    }
    // It may be gone since the last time.
    let _ = world.offloadings(name).delete("offloading", &DeleteParams::default()).await;
    eventually("the NamespaceOffloading is gone", || async {
        match world.offloadings(name).get_opt("offloading").await.map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(it) => Err(format!("{:#?}", it.status)),
        }
    })
    .await;
    *life.stage.lock() = Stage::Back;
}

fn gold() -> Value {
    json!({ "nodeSelectorTerms": [{ "matchExpressions": [{ "key": "tier", "operator": "In", "values": ["gold"] }] }] })
}

/// A pod that has to leave when the namespace leaves rome.
async fn pod_in_rome(world: &World<'_>, namespace: &str) {
    eventually("a pod in rome", || async {
        let made = world.create_pod(namespace, "p", json!({ "spec": { "nodeName": "liqo-rome" } })).await;
        match made {
            Ok(_) => Ok(()),
            // Made by a request whose answer nobody waited for.
            Err(error) if error.contains("already exists") => Ok(()),
            Err(error) => Err(error),
        }
    })
    .await;
}

/// Waits until the namespace is mapped to these providers and to no others, here and there.
async fn mapped(world: &World<'_>, namespace: &str, to: &[&str]) {
    eventually(&format!("{namespace} is mapped to {to:?}"), || async {
        let mut found = Vec::new();
        for name in PROVIDERS {
            let ours: Api<NamespaceMap> =
                Api::namespaced(world.client.clone(), &format!("liqo-tenant-{name}"));
            let sides = [ours, world.maps_at(name).await];
            for maps in sides {
                let maps = maps.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
                if maps.len() > 1 {
                    return Err(format!("{name} has {} maps", maps.len()));
                }
                if maps.iter().any(|map| map.spec.desired_mapping.contains_key(namespace)) {
                    found.push(name);
                }
            }
        }
        let wanted: Vec<_> = to.iter().flat_map(|name| [*name, *name]).collect();
        if found == wanted { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
}

async fn nothing_is_left(world: &World<'_>, namespace: &str) {
    mapped(world, namespace, &[]).await;
    mapped(world, "stays", &PROVIDERS).await;
    world.wait_marked(namespace, None).await;
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let found = namespaces.get(namespace).await.unwrap();
    assert!(found.labels().keys().all(|label| !label.contains("liqo.io")), "{:?}", found.labels());
}
