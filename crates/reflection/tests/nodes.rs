//! Nodes of a provider die while its API server answers, on real kubelets: first one of two, then the other, and they come
//! back.
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
#[path = "support/lender.rs"]
mod lender;
#[path = "support/marks.rs"]
mod marks;
#[path = "support/world.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, ResourceExt};
use lender::Lender;
use liqo_api::ShadowPod;
use liqo_api::names::UNREACHABLE_TAINT;
use liqo_api::shadow_pod::PLACED;
use liqo_providers::Health;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use marks::{beat, mark};
use serde_json::{Value, json};
use tokio::time::Instant;
use world::{World, all, eventually, is_ready};

const REPLICAS: usize = 4;
const HOME_NODE: &str = "home-1";
/// What is promised is 10 s and 30 s, and this machine may be busy.
const NOTICED_WITHIN: Duration = Duration::from_secs(20);
const MOVED_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn nodes_die_while_their_api_server_answers() {
    let sandbox = TestSandbox::start([ClusterSpec::real("home", 1), ClusterSpec::real("away", 2)]).await;
    let world = World::new(&sandbox, "home", "home").await;
    let _lender = Lender::start(&world).await;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "shop" } });
    install::put(&world.here, &namespace).await;
    lender::ask(&world, "shop", "shop-home").await;
    let process = world.start().await;
    world.accept(&[("shop", "shop-home")]).await;
    let story = async {
        pods_run_on_both_nodes(&world).await;
        a_blip_moves_nothing(&world).await;
        pods_of_a_dead_node_go_to_the_other(&world).await;
        assert!(
            process.metrics().contains("unreachable_nodes{cluster_id=\"away\"} 1"),
            "{}",
            process.metrics()
        );
        pods_come_home_when_no_node_is_left(&world).await;
        process.kill();
        // What it knew went with it.
        world.survey.send_replace(Arc::default());
        let process = world.start().await;
        who_leads_anew_finds_the_same(&world).await;
        what_must_not_run_twice_waits(&world).await;
        nothing_is_doubled_when_nodes_are_back(&world).await;
        process.kill();
    };
    tokio::select! {
        () = story => {}
        () = keep_node(&world) => {}
    }
}

async fn pods_run_on_both_nodes(world: &World<'_>) {
    for object in [deployment(), service(), stateful_set()] {
        install::put(&world.here, &object).await;
    }
    eventually("pods on both nodes", || async {
        let ready: Vec<Seen> = look(world).await.into_values().filter(|it| it.ready).collect();
        let nodes: BTreeSet<&str> = ready.iter().map(|it| it.there.as_str()).collect();
        let both = ready.len() == REPLICAS + 1 && nodes == BTreeSet::from(["away-1", "away-2"]);
        both.then_some(()).ok_or_else(|| format!("{ready:?}"))
    })
    .await;
}

/// A kubelet that is frozen is connected to, and says nothing.
async fn a_blip_moves_nothing(world: &World<'_>) {
    let before = look(world).await;
    let kubelet = world.away.parts(Some("node-2/kubelet")).unwrap();
    (*world.away).pause(&kubelet).unwrap();
    let frozen = Instant::now();
    // Not longer because looking takes long.
    let thaw = async {
        tokio::time::sleep_until(frozen + Duration::from_secs(5)).await;
        (*world.away).resume(&kubelet).unwrap();
    };
    let nothing_moves = async {
        // As long as it would take to be noticed, had it gone on.
        while frozen.elapsed() < Duration::from_secs(12) {
            assert_eq!(look(world).await, before);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::join!(thaw, nothing_moves);
}

async fn pods_of_a_dead_node_go_to_the_other(world: &World<'_>) {
    let before = look(world).await;
    let lost: BTreeSet<&String> =
        before.iter().filter(|(_, it)| it.there == "away-2").map(|(name, _)| name).collect();
    let dead = Instant::now();
    kill(world, 2);
    eventually("pods of the dead node are not ready", || async {
        let now = look(world).await;
        let told = |name: &&&String| now.get(**name).is_none_or(|it| it.reason == "ProviderNodeUnreachable");
        let missing: Vec<_> = lost.iter().filter(|name| !told(name)).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{missing:?} of {now:?}")) }
    })
    .await;
    println!("not ready {:.1} s after the node died", dead.elapsed().as_secs_f64());
    assert!(dead.elapsed() < NOTICED_WITHIN, "{:?}", dead.elapsed());
    eventually("their endpoints leave", || async {
        let ready = endpoints(world).await;
        let left = ready.iter().any(|pod| lost.contains(pod));
        if left { Err(format!("{ready:?}")) } else { Ok(()) }
    })
    .await;
    moved(world, dead, |it| it.there == "away-1").await;
    assert!(!marked(world).await, "the other node answers");
    let fresh =
        look(world).await.into_iter().filter(|(name, it)| it.app == "web" && !before.contains_key(name));
    for (name, _) in fresh {
        let shadow = world.at_provider::<ShadowPod>("shop-home").get(&name).await.unwrap();
        let affinity = serde_json::to_string(&shadow.spec.pod.affinity).unwrap();
        assert!(affinity.contains("away-2"), "{affinity}");
    }
    eventually("it is told", || async {
        let events = all(&world.at_home::<Event>("shop")).await;
        let told = |event: &&Event| event.reason.as_deref() == Some("ProviderNodeUnreachable");
        let notes: Vec<_> = events.iter().filter(told).filter_map(|event| event.note.clone()).collect();
        let found = notes.iter().any(|note| note.contains("the node away-2 of the provider away"));
        if found { Ok(()) } else { Err(format!("{notes:?}")) }
    })
    .await;
}

/// The last node is silent: its kubelet is frozen, and its containers run on.
async fn pods_come_home_when_no_node_is_left(world: &World<'_>) {
    let dead = Instant::now();
    let kubelet = world.away.parts(Some("node-1/kubelet")).unwrap();
    (*world.away).pause(&kubelet).unwrap();
    eventually("the virtual node is marked", || async {
        let survey = world.survey.borrow().of(&world.node);
        if marked(world).await { Ok(()) } else { Err(format!("{survey:?}")) }
    })
    .await;
    println!("noticed {:.1} s after the last node died", dead.elapsed().as_secs_f64());
    assert!(dead.elapsed() < NOTICED_WITHIN, "{:?}", dead.elapsed());
    moved(world, dead, |it| it.node == HOME_NODE).await;
}

/// What the provider last heard of the dead nodes says that all is well there.
async fn who_leads_anew_finds_the_same(world: &World<'_>) {
    eventually("the nodes are found dead again", || async {
        let db = look(world).await.remove("db-0");
        assert!(db.as_ref().is_some_and(|db| !db.ready), "{db:?}");
        assert!(marked(world).await);
        let now = world.survey.borrow().of(&world.node);
        if now.is_gone() { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
}

/// Nobody can tell whether it has ended.
async fn what_must_not_run_twice_waits(world: &World<'_>) {
    let pod = world.at_home::<Pod>("shop").get("db-0").await.unwrap();
    assert!(!is_ready(&pod));
    assert_eq!(pod.spec.and_then(|spec| spec.node_name).as_deref(), Some(world.node.as_str()));
    assert_eq!(world.at_provider::<Pod>("shop-home").get("db-0").await.unwrap().name_any(), "db-0");
}

async fn nothing_is_doubled_when_nodes_are_back(world: &World<'_>) {
    let dead = world.away.parts(Some("node-2")).unwrap();
    (*world.away).start(&dead, &|_, _| {}).await.unwrap();
    let frozen = world.away.parts(Some("node-1/kubelet")).unwrap();
    (*world.away).resume(&frozen).unwrap();
    let began = Instant::now();
    eventually("nothing is left over", || async {
        let here = look(world).await;
        let web: Vec<&Seen> = here.values().filter(|it| it.app == "web").collect();
        let there: Vec<String> =
            all(&world.at_provider::<Pod>("shop-home")).await.iter().map(ResourceExt::name_any).collect();
        let shadows = all(&world.at_provider::<ShadowPod>("shop-home")).await;
        let wanted =
            shadows.iter().all(|it| here.get(&it.name_any()).is_some_and(|it| it.node == world.node));
        let once = web.len() == REPLICAS && web.iter().all(|it| it.ready && it.node == HOME_NODE);
        let db = here.get("db-0").is_some_and(|it| it.ready);
        let tidy = there.iter().all(|name| here.get(name).is_some_and(|it| it.node == world.node));
        let fine = once && db && tidy && wanted && !marked(world).await;
        fine.then_some(()).ok_or_else(|| format!("{here:?}\n{there:?}\n{} shadows", shadows.len()))
    })
    .await;
    println!("all is well {:.1} s after the nodes were started", began.elapsed().as_secs_f64());
}

/// Waits until all replicas run where they should.
async fn moved(world: &World<'_>, since: Instant, place: impl Fn(&Seen) -> bool) {
    eventually("pods run elsewhere", || async {
        let now = look(world).await;
        let there =
            now.values().filter(|it| it.app == "web" && it.ready && !it.deleting && place(it)).count();
        if there == REPLICAS { Ok(()) } else { Err(format!("{there} of {now:?}")) }
    })
    .await;
    println!("running elsewhere {:.1} s after the node died", since.elapsed().as_secs_f64());
    assert!(since.elapsed() < MOVED_WITHIN, "{:?}", since.elapsed());
}

fn kill(world: &World<'_>, node: u32) {
    let parts = world.away.parts(Some(&format!("node-{node}"))).unwrap();
    (*world.away).kill(&parts).unwrap();
}

/// A pod as home shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    uid: String,
    app: String,
    node: String,
    /// The node of the provider.
    there: String,
    ready: bool,
    reason: String,
    deleting: bool,
}

async fn look(world: &World<'_>) -> BTreeMap<String, Seen> {
    let pods = all(&world.at_home::<Pod>("shop")).await;
    let seen = |pod: &Pod| {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let find = |type_: &str| conditions.iter().find(|it| it.type_ == type_);
        Seen {
            uid: pod.uid().unwrap_or_default(),
            app: pod.labels().get("app").cloned().unwrap_or_default(),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            there: find(PLACED).and_then(|it| it.message.clone()).unwrap_or_default(),
            ready: is_ready(pod),
            reason: find("Ready").and_then(|it| it.reason.clone()).unwrap_or_default(),
            deleting: pod.metadata.deletion_timestamp.is_some(),
        }
    };
    pods.iter().map(|pod| (pod.name_any(), seen(pod))).collect()
}

/// The pods that the Service leads to.
async fn endpoints(world: &World<'_>) -> Vec<String> {
    let slices = all(&world.at_home::<EndpointSlice>("shop")).await;
    let endpoints = slices.into_iter().flat_map(|slice| slice.endpoints.into_iter());
    let ready = endpoints.filter(|it| it.conditions.as_ref().and_then(|it| it.ready) == Some(true));
    ready.filter_map(|it| it.target_ref?.name).collect()
}

async fn marked(world: &World<'_>) -> bool {
    let nodes: Api<Node> = Api::all(world.here.clone());
    let spec = nodes.get(&world.node).await.unwrap().spec.unwrap_or_default();
    spec.taints.into_iter().flatten().any(|taint| taint.key == UNREACHABLE_TAINT)
}

/// Does what the room of virtual nodes does with what it is told.
async fn keep_node(world: &World<'_>) {
    let mut survey = world.survey.subscribe();
    let mut ready = true;
    loop {
        let health = survey.borrow_and_update().of(&world.node);
        let wanted = match &health {
            Health::Unreachable { .. } => false,
            Health::Reachable => true,
            Health::Unknown => ready,
        };
        if wanted != ready {
            println!("behind the virtual node: {health:?}");
            mark(world, wanted).await;
            ready = wanted;
        }
        beat(world).await;
        let _ = tokio::time::timeout(Duration::from_secs(5), survey.changed()).await;
    }
}

fn pod_template(app: &str) -> Value {
    let virtual_nodes = json!([{ "weight": 100, "preference": { "matchExpressions": [
        { "key": "liqo.io/type", "operator": "In", "values": ["virtual-node"] }] } }]);
    let tolerations = json!([{ "key": UNREACHABLE_TAINT, "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": 12 }]);
    json!({ "metadata": { "labels": { "app": app, "liqo.io/shadowPod": "true" } }, "spec": {
        "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": virtual_nodes } },
        "tolerations": tolerations, "terminationGracePeriodSeconds": 2,
        "containers": [{ "name": "main", "image": "localhost/liqo/sandbox-app:1", "imagePullPolicy": "Never",
            "resources": { "requests": { "cpu": "50m" } } }],
    } })
}

fn deployment() -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "replicas": REPLICAS, "selector": { "matchLabels": { "app": "web" } },
            "template": pod_template("web") } })
}

fn stateful_set() -> Value {
    json!({ "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db", "namespace": "shop" },
        "spec": { "replicas": 1, "serviceName": "db", "selector": { "matchLabels": { "app": "db" } },
            "template": pod_template("db") } })
}

fn service() -> Value {
    json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "shop" },
        "spec": { "selector": { "app": "web" }, "ports": [{ "port": 80 }] } })
}
