//! The pods of a StatefulSet are never run twice, on real kubelets: the link to their provider breaks, and comes back.
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
#[path = "support/wire.rs"]
mod wire;
#[path = "support/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt};
use lender::Lender;
use liqo_api::ShadowPod;
use liqo_api::names::UNREACHABLE_TAINT;
use liqo_providers::Health;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use marks::{beat, mark};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::Wire;
use world::{World, eventually, is_ready};

const PODS: [&str; 2] = ["db-0", "db-1"];
/// The node at home that is one.
const HOME_NODE: &str = "home-1";
/// How long after the link broke pods run elsewhere: what is promised is 30 s, and this machine may be busy.
const MOVED_WITHIN: Duration = Duration::from_secs(75);

#[tokio::test(flavor = "multi_thread")]
async fn what_must_never_run_twice_is_fenced() {
    let sandbox = TestSandbox::start([ClusterSpec::real("home", 1), ClusterSpec::real("away", 1)]).await;
    let mut world = World::new(&sandbox, "home", "home").await;
    let host = world.away.config().await.cluster_url;
    let server = format!("{}:{}", host.host().unwrap(), host.port_u16().unwrap()).parse().unwrap();
    let wire = Wire::to(server).await;
    world.through = Some(wire.address);
    let world = Arc::new(world);
    let _lender = Lender::start(&world).await;
    let metadata = json!({ "name": "shop" });
    install::put(&world.here, &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }))
        .await;
    lender::ask(&world, "shop", "shop-home").await;
    let process = world.start().await;
    world.accept(&[("shop", "shop-home")]).await;
    let mut judge = JoinSet::new();
    let twice = Twice::default();
    judge.spawn(twice.clone().watch(world.here.clone(), world.there.clone()));
    let probe = world.way().await;
    let measuring = measure(&world, Client::try_from(probe).unwrap());
    let story = async {
        a_set_runs_at_the_provider_at_once(&world).await;
        a_blip_moves_nothing(&world, &wire).await;
        it_moves_when_it_was_stopped_and_not_before(&world, &wire).await;
        nothing_comes_back_to_life(&world, &wire).await;
        process.kill();
        let process = world.start().await;
        back_to_the_provider(&world).await;
        wire.cut();
        // In the middle of it, the manager at home is killed, and another one begins.
        process.kill();
        let process = world.start().await;
        it_moves(&world, Instant::now()).await;
        wire.mend();
        nothing_comes_back_to_life(&world, &wire).await;
        process.kill();
    };
    tokio::select! {
        () = story => {}
        () = measuring => {}
    }
    twice.assert_never();
}

async fn a_set_runs_at_the_provider_at_once(world: &World<'_>) {
    let begun = Instant::now();
    install::put(&world.here, &stateful_set()).await;
    for name in PODS {
        world.wait_pod("shop", name, |pod| is_ready(pod).then_some(())).await;
        assert_eq!(node_of(world, name).await, world.node);
        let pod = world.at_provider::<Pod>("shop-home").get(name).await.unwrap();
        assert_eq!(pod.labels()["liqo.io/fenced"], "true");
    }
    println!("ready at the provider after {:.1} s", begun.elapsed().as_secs_f64());
    let lease = world.at_provider::<Lease>("place").get("liqo-home").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity.as_deref(), Some("home"));
}

async fn a_blip_moves_nothing(world: &World<'_>, wire: &Wire) {
    let (here, there) = (uids(&world.here, "shop").await, uids(&world.there, "shop-home").await);
    wire.cut();
    // Nearly as long as an outage may be that moves nothing. The provider counts as gone in the middle of it.
    tokio::time::sleep(Duration::from_millis(9_500)).await;
    wire.mend();
    let mended = jiff::Timestamp::now();
    let leases: Api<Lease> = world.at_provider("place");
    eventually("the Lease is renewed", || async {
        let lease = leases.get("liqo-home").await.map_err(|error| error.to_string())?;
        let renewed = lease.spec.and_then(|spec| spec.renew_time).map(|time| time.0);
        renewed.filter(|renewed| *renewed > mended).map(|_| ()).ok_or_else(|| format!("{renewed:?}"))
    })
    .await;
    for name in PODS {
        world.wait_ready("shop", name).await;
    }
    assert_eq!(uids(&world.here, "shop").await, here);
    assert_eq!(uids(&world.there, "shop-home").await, there);
}

async fn it_moves_when_it_was_stopped_and_not_before(world: &World<'_>, wire: &Wire) {
    let cut = Instant::now();
    wire.cut();
    let there: Api<Pod> = world.at_provider("shop-home");
    for name in PODS {
        world.wait_gone(&there, name).await;
        assert_eq!(node_of(world, name).await, world.node, "it is not elsewhere yet");
    }
    println!("stopped at the provider {:.1} s after the link broke", cut.elapsed().as_secs_f64());
    let shadows: Api<ShadowPod> = world.at_provider("shop-home");
    eventually("the provider says why", || async {
        let shadow = shadows.get("db-0").await.map_err(|error| error.to_string())?;
        let said = shadow.status.map(|status| status.conditions).unwrap_or_default();
        let fenced = said.iter().any(|it| it.type_ == "Created" && it.reason == "Fenced");
        fenced.then_some(()).ok_or_else(|| format!("{said:?}"))
    })
    .await;
    it_moves(world, cut).await;
}

async fn it_moves(world: &World<'_>, cut: Instant) {
    for name in PODS {
        world.wait_pod("shop", name, |pod| (node(pod) == HOME_NODE && is_ready(pod)).then_some(())).await;
    }
    println!("elsewhere {:.1} s after the link broke", cut.elapsed().as_secs_f64());
    assert!(cut.elapsed() < MOVED_WITHIN, "{:?}", cut.elapsed());
}

/// Who comes back finds out first what is wanted no longer.
async fn nothing_comes_back_to_life(world: &World<'_>, wire: &Wire) {
    wire.mend();
    let shadows: Api<ShadowPod> = world.at_provider("shop-home");
    for name in PODS {
        world.wait_gone(&shadows, name).await;
    }
    let there: Api<Pod> = world.at_provider("shop-home");
    eventually("nothing is left there", || async {
        let found = there.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let staying = found.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        let staying: Vec<_> = staying.map(ResourceExt::name_any).collect();
        assert!(staying.is_empty(), "they came back to life: {staying:?}");
        // What ended may be seen to be gone a little later.
        if found.is_empty() { Ok(()) } else { Err(format!("{:?}", found[0].metadata)) }
    })
    .await;
}

async fn back_to_the_provider(world: &World<'_>) {
    let nodes: Api<Node> = Api::all(world.here.clone());
    eventually("the node may be used again", || async {
        let node = nodes.get(&world.node).await.map_err(|error| error.to_string())?;
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        if taints.is_empty() { Ok(()) } else { Err(format!("{taints:?}")) }
    })
    .await;
    let here: Api<Pod> = world.at_home("shop");
    for name in PODS {
        let before = here.get(name).await.unwrap().uid();
        here.delete(name, &DeleteParams::default()).await.unwrap();
        world.wait_pod("shop", name, |pod| (pod.uid() != before && is_ready(pod)).then_some(())).await;
        assert_eq!(node_of(world, name).await, world.node);
    }
}

async fn uids(client: &Client, namespace: &str) -> BTreeMap<String, Option<String>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pods = pods.list(&ListParams::default()).await.unwrap();
    pods.iter().map(|pod| (pod.name_any(), pod.uid())).collect()
}

async fn node_of(world: &World<'_>, name: &str) -> String {
    node(&world.at_home::<Pod>("shop").get(name).await.unwrap()).to_owned()
}

fn node(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default()
}

/// Does what other rooms do: asks the provider whether it answers, and has the node say what follows from that.
async fn measure(world: &World<'_>, client: Client) {
    let (mut answered, mut steady, mut gone) = (Instant::now(), Instant::now(), false);
    let namespaces: Api<Namespace> = Api::all(client);
    loop {
        let asked = tokio::time::timeout(Duration::from_secs(1), namespaces.get("place")).await;
        if matches!(asked, Ok(Ok(_))) {
            answered = Instant::now();
        } else {
            steady = Instant::now();
        }
        let silent = answered.elapsed() >= Duration::from_secs(8);
        let back = gone && steady.elapsed() >= Duration::from_secs(4);
        if silent && !gone {
            println!("the provider counts as gone");
            let since = jiff::Timestamp::now();
            world.set_health(&Health::Unreachable { since, why: "no answer".into() });
            mark(world, false).await;
            gone = true;
        } else if back {
            println!("the provider counts as back");
            world.set_health(&Health::Reachable);
            mark(world, true).await;
            gone = false;
        }
        beat(world).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Looks whether anything runs at both ends.
#[derive(Clone, Default)]
struct Twice(Arc<Mutex<Vec<String>>>);

impl Twice {
    async fn watch(self, here: Client, there: Client) {
        let here: Api<Pod> = Api::namespaced(here, "shop");
        let there: Api<Pod> = Api::namespaced(there, "shop-home");
        loop {
            // What runs at home first: who is at the provider afterwards runs beside it.
            if let Ok(home) = here.list(&ListParams::default()).await
                && let Ok(away) = there.list(&ListParams::default()).await
            {
                let at_home = |name: &str| {
                    home.iter().any(|it| it.name_any() == name && node(it) == HOME_NODE && runs(it))
                };
                let both = away.iter().filter(|it| runs(it) && at_home(&it.name_any()));
                let both: Vec<_> =
                    both.map(|it| format!("{} at {}", it.name_any(), jiff::Timestamp::now())).collect();
                self.0.lock().extend(both);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn assert_never(&self) {
        assert!(self.0.lock().is_empty(), "{:?}", self.0.lock());
    }
}

/// Whether a container of it runs, as its kubelet says.
fn runs(pod: &Pod) -> bool {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let mut states = statuses.into_iter().flatten().filter_map(|it| it.state.as_ref());
    states.any(|state| state.running.is_some())
}

fn stateful_set() -> Value {
    let virtual_nodes = json!([{ "weight": 100, "preference": { "matchExpressions": [
        { "key": "liqo.io/type", "operator": "In", "values": ["virtual-node"] }] } }]);
    let tolerations = json!([{ "key": UNREACHABLE_TAINT, "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": 12 }]);
    let labels = json!({ "app": "db", "liqo.io/shadowPod": "true" });
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": { "name": "db", "namespace": "shop" },
        "spec": {
            "replicas": 2, "serviceName": "db", "podManagementPolicy": "Parallel",
            "selector": { "matchLabels": { "app": "db" } },
            "template": { "metadata": { "labels": labels }, "spec": {
                "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": virtual_nodes } },
                "tolerations": tolerations, "terminationGracePeriodSeconds": 5,
                "containers": [{ "name": "main", "image": "localhost/liqo/sandbox-app:1", "imagePullPolicy": "Never",
                    "resources": { "requests": { "cpu": "1m" } } }],
            } },
        },
    })
}
