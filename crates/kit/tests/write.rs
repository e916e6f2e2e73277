//! The queue on a real API server: conflicts, silence, and nothing written without need.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/recorder.rs"]
mod recorder;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use liqo_kit::clusters::{ClientConfig, client};
use liqo_kit::watch::{Scope, Watch, WatchConfig};
use liqo_kit::write::{Enqueued, Outcome, QueueConfig, Target, Write, WriteMetrics};
use liqo_kit::{BackoffPolicy, Key, Queue, Shared, Store};
use liqo_sandbox::{ClusterSpec, Component, TestCluster, TestSandbox};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use recorder::{Entry, config_map, ok, wait_for};

struct World {
    api: Api<ConfigMap>,
    queue: Queue,
    store: Shared<Store<Entry>>,
    outcomes: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
}

impl World {
    async fn start(cluster: &TestCluster<'_>) -> Self {
        let shared = client(&cluster.config().await, &ClientConfig::default()).unwrap();
        let store = Shared::new(Store::default());
        let outcomes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&outcomes);
        let config = QueueConfig {
            // A busy server takes its time; attempts are counted below.
            timeout: Duration::from_secs(5),
            max_attempts: 4,
            backoff: BackoffPolicy { max: Duration::from_secs(1), ..BackoffPolicy::default() },
            field_manager: "kit-test".into(),
            observer: Some(Arc::new(move |target, outcome| {
                let word = match outcome {
                    Outcome::Written { .. } => "written".to_owned(),
                    Outcome::Unneeded => "unneeded".to_owned(),
                    Outcome::Failed(failed) => format!("{} after {}", failed.reason, failed.attempts),
                };
                seen.lock().push(format!("{} {word}", target.key().name()));
            })),
            ..QueueConfig::default()
        };
        let (queue, worker) = Queue::new("test", shared.clone(), config, &WriteMetrics::default());
        let watch = Watch::<Entry>::new(shared.clone(), Scope::namespaced::<ConfigMap>("default"))
            .config(WatchConfig::default())
            .feed(store.clone());
        let mut tasks = JoinSet::new();
        let status = watch.status();
        tasks.spawn(watch.run(CancellationToken::new()));
        tasks.spawn(worker.run(CancellationToken::new()));
        status.ready().await;
        Self { api: Api::namespaced(cluster.client().await, "default"), queue, store, outcomes, tasks }
    }

    /// What makes `name` hold `value`, judged by the index.
    fn plan(&self, name: &str, value: &str) -> impl Fn() -> Option<Write> + Send + Sync + use<> {
        let (store, key, value) = (self.store.clone(), Key::namespaced("default", name), value.to_owned());
        move || {
            let store = store.read();
            let entry = store.get(&key)?;
            let patch = json!({"data": {"value": value}});
            let differs = entry.data.get("value") != Some(&value);
            differs
                .then(|| Write::merge(target(key.name()), &entry.metadata.resource_version, &patch).unwrap())
        }
    }

    async fn in_index(&self, name: &str, value: &str) {
        let key = Key::namespaced("default", name);
        wait_for("the index shows the object", Duration::from_secs(60), || {
            let store = self.store.read();
            let found = store.get(&key).and_then(|entry| entry.data.get("value")).cloned();
            if found.as_deref() == Some(value) { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    async fn outcome(&self, expected: &str, within: Duration) {
        wait_for(expected, within, || {
            let mut outcomes = self.outcomes.lock();
            match outcomes.iter().position(|outcome| outcome == expected) {
                Some(found) => Ok(outcomes.remove(found)),
                None => Err(format!("{outcomes:?}, depth {}", self.queue.depth())),
            }
        })
        .await;
    }

    async fn on_server(&self, name: &str) -> ConfigMap {
        self.api.get(name).await.unwrap()
    }
}

fn target(name: &str) -> Target {
    Target::of::<ConfigMap>(Key::namespaced("default", name))
}

fn value(object: &ConfigMap) -> Option<&str> {
    object.data.as_ref()?.get("value").map(String::as_str)
}

/// How many changes to config maps the API server has been asked for.
fn changes_asked(cluster: &TestCluster<'_>) -> u64 {
    let metrics = ok(&cluster.kubectl(["get", "--raw", "/metrics"]));
    let counts = metrics.lines().filter(|line| {
        let is = |part: &str| line.contains(part);
        is("apiserver_request_total{")
            && is("resource=\"configmaps\"")
            && !is("verb=\"GET\"")
            && !is("verb=\"LIST\"")
            && !is("verb=\"WATCH\"")
    });
    counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>() as u64
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_queue_writes_what_is_needed_once_and_survives_conflicts_and_silence() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let cluster = sandbox.cluster("a");
    let world = World::start(&cluster).await;
    let soon = Duration::from_secs(60);

    // Create, then a change; what we wrote is known to be unseen until the watch has it.
    let create = Write::create(target("a"), &config_map("a", "1")).unwrap();
    assert_eq!(world.queue.write(&create), Enqueued::Queued);
    world.outcome("a written", soon).await;
    world.in_index("a", "1").await;
    assert_eq!(world.queue.enqueue(world.plan("a", "2")), Enqueued::Queued);
    world.outcome("a written", soon).await;
    assert_eq!(value(&world.on_server("a").await), Some("2"));
    world.in_index("a", "2").await;

    // Nothing is sent when the object is as it should be: neither the version nor the server's count moves.
    let (before, version) = (changes_asked(&cluster), world.on_server("a").await.metadata.resource_version);
    for _ in 0..50 {
        assert_eq!(world.queue.enqueue(world.plan("a", "2")), Enqueued::Equal);
    }
    assert_eq!(world.on_server("a").await.metadata.resource_version, version);
    assert_eq!(changes_asked(&cluster), before);
    assert!(before >= 2, "the server's count is not read right: {before}");

    // Somebody else writes while our plan is based on what was: the conflict leads to a plan on what is.
    let foreign = json!({"data": {"other": "theirs"}});
    let stale = world.on_server("a").await.metadata.resource_version.unwrap();
    world.api.patch("a", &PatchParams::default(), &Patch::Merge(&foreign)).await.unwrap();
    let attempts = Arc::new(Mutex::new(0));
    let (fresh, count) = (world.plan("a", "3"), Arc::clone(&attempts));
    let plan = move || {
        let mut count = count.lock();
        *count += 1;
        // As if the watch had not told us yet: at the first attempt the plan still sees the old version.
        if *count <= 2 {
            return Some(Write::merge(target("a"), &stale, &json!({"data": {"value": "3"}})).unwrap());
        }
        fresh()
    };
    assert_eq!(world.queue.enqueue(plan), Enqueued::Queued);
    world.outcome("a written", soon).await;
    assert!(*attempts.lock() >= 3, "no conflict happened");
    let object = world.on_server("a").await;
    assert_eq!(
        (value(&object), object.data.as_ref().unwrap().get("other").map(String::as_str)),
        (Some("3"), Some("theirs"))
    );

    // Server-side apply owns what it names under the queue's name; status goes to the status.
    let applied =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"mine": "yes"}});
    assert_eq!(world.queue.write(&Write::apply(target("a"), &applied).unwrap()), Enqueued::Queued);
    world.outcome("a written", soon).await;
    let managers = world.on_server("a").await.metadata.managed_fields.unwrap();
    assert!(
        managers.iter().any(|entry| entry.manager.as_deref() == Some("kit-test")
            && entry.operation.as_deref() == Some("Apply")),
        "{managers:?}"
    );
    let nodes: Api<Node> = Api::all(cluster.client().await);
    let node: Node = serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap();
    let node = nodes.create(&PostParams::default(), &node).await.unwrap();
    let node_target = Target::of::<Node>(Key::cluster("n"));
    let status = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    let version = node.metadata.resource_version.unwrap();
    let write = Write::merge_status(node_target, &version, &status).unwrap();
    assert_eq!(world.queue.write(&write), Enqueued::Queued);
    world.outcome("n written", soon).await;
    assert!(nodes.get("n").await.unwrap().status.unwrap().conditions.is_some());

    // A delete meant for an object that is gone does not hit the one that took its name.
    let old = world.on_server("a").await.metadata.uid.unwrap();
    world.api.delete("a", &DeleteParams::default()).await.unwrap();
    world.api.create(&PostParams::default(), &config_map("a", "new")).await.unwrap();
    assert_eq!(world.queue.write(&Write::delete(target("a"), &old)), Enqueued::Queued);
    world.outcome("a conflict after 4", soon).await;
    assert_eq!(value(&world.on_server("a").await), Some("new"));
    let uid = world.on_server("a").await.metadata.uid.unwrap();
    assert_eq!(world.queue.write(&Write::delete(target("a"), &uid)), Enqueued::Queued);
    world.outcome("a written", soon).await;
    assert!(world.api.get_opt("a").await.unwrap().is_none());

    // The server refuses for good: one attempt, and an end.
    let nonsense = json!({"data": {"not a key!": "x"}});
    world.api.create(&PostParams::default(), &config_map("b", "1")).await.unwrap();
    world.in_index("b", "1").await;
    let version = world.on_server("b").await.metadata.resource_version.unwrap();
    assert_eq!(world.queue.write(&Write::merge(target("b"), &version, &nonsense).unwrap()), Enqueued::Queued);
    world.outcome("b refused after 1", soon).await;

    // The server says nothing: attempts time out, end, and a later request works again.
    world.api.create(&PostParams::default(), &config_map("c", "1")).await.unwrap();
    world.in_index("c", "1").await;
    cluster.pause(Component::Apiserver).await;
    assert_eq!(world.queue.enqueue(world.plan("c", "2")), Enqueued::Queued);
    world.outcome("c timeout after 4", Duration::from_secs(60)).await;
    cluster.resume(Component::Apiserver).await;
    cluster.wait_ready().await;
    // A timed-out write may have been made all the same; then there is nothing left to do.
    wait_for("the write is made in the end", Duration::from_secs(60), || {
        let enqueued = world.queue.enqueue(world.plan("c", "2"));
        if enqueued == Enqueued::Equal {
            Ok(())
        } else {
            Err(format!("{enqueued:?} {:?}", world.outcomes.lock()))
        }
    })
    .await;
    assert_eq!(value(&world.on_server("c").await), Some("2"));
    assert_eq!(world.tasks.len(), 2, "a task has ended");
}
