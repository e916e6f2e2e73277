//! The watch on real API servers that restart, forget and fall silent.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/recorder.rs"]
mod recorder;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::client::ClientBuilder;
use liqo_kit::clusters::{ClientConfig, ClientSource, client};
use liqo_kit::watch::{Scope, Watch, WatchConfig, WatchMetrics, WatchStatus};
use liqo_sandbox::{ClusterSpec, Component, TestCluster, TestSandbox};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use recorder::{Entry, Recorder, config_map, ok, wait_for, wait_for_names};

/// A client that can be made to reach nobody, so that a test decides when a watch comes back.
#[derive(Clone)]
struct Switch {
    real: kube::Client,
    nobody: kube::Client,
    open: Arc<AtomicBool>,
}

impl Switch {
    fn new(real: kube::Client) -> Self {
        // Port 9 of this machine: refused at once.
        let config = kube::Config::new("https://127.0.0.1:9".parse().unwrap());
        let nobody = client(&config, &ClientConfig::default()).unwrap();
        Self { real, nobody, open: Arc::new(AtomicBool::new(true)) }
    }

    fn set(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }
}

impl ClientSource for Switch {
    fn client(&self) -> kube::Client {
        if self.open.load(Ordering::SeqCst) { self.real.clone() } else { self.nobody.clone() }
    }
}

struct Watched {
    name: &'static str,
    recorder: Recorder,
    status: WatchStatus,
}

struct Watches {
    all: Vec<Watched>,
    metrics: WatchMetrics,
    switch: Switch,
    _tasks: JoinSet<()>,
}

/// A client to a server that does not know streaming lists: the question never reaches it whole, and the real
/// server then answers as those of old did.
async fn client_of_old(cluster: &TestCluster<'_>) -> kube::Client {
    let config = cluster.config().await;
    let layer = tower::util::MapRequestLayer::new(|mut request: http::Request<kube::client::Body>| {
        let uri = request.uri().to_string().replace("&sendInitialEvents=true", "");
        *request.uri_mut() = uri.parse().unwrap();
        request
    });
    ClientBuilder::try_from(config).unwrap().with_layer(&layer).build()
}

impl Watches {
    /// One watch that streams its lists, one that pages them, and one that finds out it has to.
    async fn start(cluster: &TestCluster<'_>) -> Self {
        let limits = ClientConfig::default();
        let switch = Switch::new(client(&cluster.config().await, &limits).unwrap());
        let old = Switch { real: client_of_old(cluster).await, ..switch.clone() };
        let metrics = WatchMetrics::default();
        let mut watches = Self { all: Vec::new(), metrics, switch: switch.clone(), _tasks: JoinSet::new() };
        watches.add("streamed", switch.clone(), WatchConfig::default());
        let paged = WatchConfig { streaming: false, page_size: 7, ..WatchConfig::default() };
        watches.add("paged", switch, paged);
        watches.add("fallback", old, WatchConfig { page_size: 7, ..WatchConfig::default() });
        for watched in &watches.all {
            tokio::time::timeout(Duration::from_secs(20), watched.status.ready()).await.expect(watched.name);
        }
        watches
    }

    fn add(&mut self, name: &'static str, source: Switch, config: WatchConfig) {
        let recorder = Recorder::default();
        let watch = Watch::<Entry>::new(source, Scope::namespaced::<ConfigMap>("default"))
            .named(name)
            .config(config)
            .metrics(&self.metrics)
            .feed(recorder.clone());
        self.all.push(Watched { name, recorder, status: watch.status() });
        self._tasks.spawn(watch.run(CancellationToken::new()));
    }

    async fn all_hold(&self, expected: &[String], within: Duration) {
        let deadline = Instant::now() + within;
        for watched in &self.all {
            wait_for_names(&watched.recorder, expected, deadline - Instant::now()).await;
        }
    }

    fn assert_each_deleted_once(&self, uids: &[String]) {
        for Watched { name, recorder, .. } in &self.all {
            assert_eq!(recorder.mistakes(), Vec::<String>::new(), "{name}");
            for uid in uids {
                assert_eq!(recorder.deletes(uid), 1, "{name}: deletes of {uid}");
            }
            assert_eq!(recorder.total_deletes() as usize, uids.len(), "{name}");
        }
    }

    fn lists(&self, name: &str) -> u64 {
        let mut registry = prometheus_client::registry::Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        let line = format!("liqo_watch_lists_total{{watch=\"{name}\"}} ");
        text.lines().find_map(|found| found.strip_prefix(&line)).map_or(0, |count| count.parse().unwrap())
    }

    fn uid(&self, name: &str) -> String {
        self.all[0].recorder.uid(name).unwrap_or_else(|| panic!("{name} is not in the index"))
    }
}

async fn create(api: &Api<ConfigMap>, names: &[String]) {
    for name in names {
        api.create(&PostParams::default(), &config_map(name, "1")).await.unwrap();
    }
}

async fn delete(api: &Api<ConfigMap>, name: &str) {
    api.delete(name, &DeleteParams::default()).await.unwrap();
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    // The cluster puts its CA there once a controller manager runs; this one has none.
    range.map(|number| format!("m{number:02}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_deletion_is_missed_over_restarts_of_the_api_server_and_a_compaction() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let cluster = sandbox.cluster("a");
    let api: Api<ConfigMap> = Api::namespaced(cluster.client().await, "default");
    let mut expected = names(0..20);
    create(&api, &expected).await;
    let watches = Watches::start(&cluster).await;
    watches.all_hold(&expected, Duration::from_secs(10)).await;
    let mut gone = Vec::new();

    // A live watch: a deletion arrives at once, and the position passes what was written.
    gone.push(watches.uid("m00"));
    delete(&api, "m00").await;
    expected.retain(|name| name != "m00");
    watches.all_hold(&expected, Duration::from_secs(5)).await;
    let written = api.create(&PostParams::default(), &config_map("m00", "2")).await.unwrap();
    expected.insert(0, "m00".into());
    let version: u64 = written.metadata.resource_version.unwrap().parse().unwrap();
    for watched in &watches.all {
        wait_for("the position passes our write", Duration::from_secs(5), || {
            let position = watched.status.position();
            if position >= version {
                Ok(())
            } else {
                Err(format!("{}: {position} of {version}", watched.name))
            }
        })
        .await;
    }

    // The API server restarts; what is deleted right afterwards is seen without help.
    cluster.stop(Component::Apiserver).await;
    wait_for("the watches notice", Duration::from_secs(20), || match watches.all[0].status.failure() {
        Some(_) => Ok(()),
        None => Err("no failure".into()),
    })
    .await;
    cluster.start(Component::Apiserver).await;
    cluster.wait_ready().await;
    gone.push(watches.uid("m01"));
    delete(&api, "m01").await;
    expected.retain(|name| name != "m01");
    watches.all_hold(&expected, Duration::from_secs(20)).await;
    watches.assert_each_deleted_once(&gone);

    // The API server is killed; while the watches cannot come back, objects go, one comes back as another, and
    // etcd forgets all of it. A second restart makes the API server forget too: resuming is 410 Gone.
    let lists_before: Vec<_> = watches.all.iter().map(|watched| watches.lists(watched.name)).collect();
    watches.switch.set(false);
    cluster.kill(Component::Apiserver).await;
    cluster.start(Component::Apiserver).await;
    cluster.wait_ready().await;
    for name in ["m02", "m03", "m04"] {
        gone.push(watches.uid(name));
        delete(&api, name).await;
    }
    create(&api, &["m04".to_owned(), "m99".to_owned()]).await;
    cluster.compact_etcd().await;
    cluster.stop(Component::Apiserver).await;
    cluster.start(Component::Apiserver).await;
    cluster.wait_ready().await;
    expected.retain(|name| name != "m02" && name != "m03");
    expected.push("m99".into());
    assert!(watches.all[0].recorder.uid("m02").is_some(), "the watch was not cut off");
    watches.switch.set(true);
    let healed = Instant::now();
    watches.all_hold(&expected, Duration::from_secs(20)).await;
    println!("all watches right {:?} after the server was reachable again", healed.elapsed());
    watches.assert_each_deleted_once(&gone);
    for (watched, before) in watches.all.iter().zip(lists_before) {
        assert!(watches.lists(watched.name) > before, "{} did not list again", watched.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_of_a_minute_hides_no_deletion_and_ends_soon_after_it_heals() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let cluster = sandbox.cluster("a");
    let api: Api<ConfigMap> = Api::namespaced(cluster.client().await, "default");
    let mut expected = names(0..20);
    create(&api, &expected).await;
    let watches = Watches::start(&cluster).await;
    watches.all_hold(&expected, Duration::from_secs(10)).await;

    sandbox.cut("a", "host").await;
    let started = Instant::now();
    let gone: Vec<_> = ["m02", "m03", "m04"].iter().map(|name| watches.uid(name)).collect();
    ok(&cluster.kubectl_inside(["delete", "configmap", "m02", "m03", "m04"]));
    ok(&cluster.kubectl_inside(["create", "configmap", "m04"]));
    ok(&cluster.kubectl_inside(["create", "configmap", "m50"]));
    let failure = wait_for("a dead connection is noticed", Duration::from_secs(50), || {
        match watches.all[0].status.failure() {
            Some(failure) => Ok(failure),
            None => Err(format!("stale for {:?}", watches.all[0].status.staleness())),
        }
    })
    .await;
    println!("noticed after {:?}: {failure}", started.elapsed());
    tokio::time::sleep_until(started + Duration::from_secs(60)).await;
    for watched in &watches.all {
        assert_eq!(watched.recorder.total_deletes(), 0, "{}: not cut off", watched.name);
        assert!(watched.status.staleness() > Duration::from_secs(50), "{}", watched.name);
    }
    sandbox.heal().await;
    let healed = Instant::now();
    expected.retain(|name| name != "m02" && name != "m03");
    expected.push("m50".into());
    watches.all_hold(&expected, Duration::from_secs(20)).await;
    println!("all watches right {:?} after the cut healed", healed.elapsed());
    watches.assert_each_deleted_once(&gone);
}
