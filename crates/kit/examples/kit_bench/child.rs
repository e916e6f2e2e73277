//! The measured process: watches and does nothing else, and answers each line on stdin with its usage on stdout.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Client};
use liqo_kit::clusters::{ClientConfig, ClientSource, Clusters, Credentials};
use liqo_kit::metrics::ProcessUsage;
use liqo_kit::watch::{Identity, Meta, Pairs, Scope, Watch, WatchConfig, Wire};
use liqo_kit::{Key, Shared, Sink, Store};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Failure;

/// What a child watches with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Variant {
    /// The kit, keeping the fields that a scheduler's view needs.
    Trimmed,
    /// The same, where the server has no streaming lists.
    TrimmedPaged,
    /// The kit, keeping whole pods without their managed fields.
    Full,
    /// kube-rs alone: its default watcher into its reflector's store.
    Reflector,
}

/// What a child says about itself.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Answer {
    pub(crate) pods: usize,
    pub(crate) applied: u64,
    pub(crate) list_seconds: f64,
    /// With runtime, TLS and client, before the first object.
    pub(crate) before: Usage,
    pub(crate) now: Usage,
}

#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Usage {
    pub(crate) cpu_seconds: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) peak_bytes: u64,
    pub(crate) heap_bytes: u64,
}

impl Usage {
    fn now() -> Self {
        let usage = ProcessUsage::now();
        Self {
            cpu_seconds: usage.cpu_seconds,
            resident_bytes: usage.resident_bytes,
            peak_bytes: usage.peak_resident_bytes,
            heap_bytes: usage.anonymous_bytes,
        }
    }
}

/// What a virtual node or a scheduler's view would keep of a pod.
#[derive(Deserialize)]
#[expect(dead_code, reason = "kept, to be counted")]
struct TrimmedPod {
    metadata: Meta,
    spec: TrimmedSpec,
    status: Option<TrimmedStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "kept, to be counted")]
struct TrimmedSpec {
    node_name: Option<Box<str>>,
    containers: Box<[TrimmedContainer]>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "kept, to be counted")]
struct TrimmedContainer {
    name: Box<str>,
    image: Option<Box<str>>,
    #[serde(default)]
    resources: TrimmedResources,
}

#[derive(Default, Deserialize)]
#[expect(dead_code, reason = "kept, to be counted")]
struct TrimmedResources {
    #[serde(default)]
    requests: Pairs,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "kept, to be counted")]
struct TrimmedStatus {
    phase: Option<Box<str>>,
    #[serde(rename = "podIP")]
    pod_ip: Option<Box<str>>,
}

impl Wire for TrimmedPod {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// A store that counts what it is told.
struct Counted<T> {
    store: Shared<Store<T>>,
    applied: Arc<AtomicU64>,
}

impl<T: Send + Sync> Sink<T> for Counted<T> {
    fn apply(&self, key: &Key, object: T) {
        self.applied.fetch_add(1, Ordering::Relaxed);
        Sink::apply(&self.store, key, object);
    }

    fn delete(&self, key: &Key) {
        Sink::<T>::delete(&self.store, key);
    }

    fn synced(&self) {
        Sink::<T>::synced(&self.store);
    }

    fn changed(&self) {
        self.store.notify();
    }
}

/// What to watch, and how often.
#[derive(Clone)]
pub(crate) struct Watches {
    pub(crate) count: usize,
    pub(crate) labels: String,
}

/// Runs until stdin ends.
pub(crate) async fn run(variant: Variant, kubeconfig: &[u8], watches: Watches) -> Result<(), Failure> {
    let streaming = WatchConfig::default();
    let paged = WatchConfig { streaming: false, ..WatchConfig::default() };
    match variant {
        Variant::Trimmed => kit::<TrimmedPod>(kubeconfig, streaming, watches).await,
        Variant::TrimmedPaged => kit::<TrimmedPod>(kubeconfig, paged, watches).await,
        Variant::Full => kit::<Pod>(kubeconfig, streaming, watches).await,
        Variant::Reflector => reflectors(kubeconfig, watches).await,
    }
}

async fn kit<W: Wire + Sync>(
    kubeconfig: &[u8],
    config: WatchConfig,
    watches: Watches,
) -> Result<(), Failure> {
    let clusters = Clusters::new(ClientConfig::default());
    let (cluster, _) = clusters.set("bench", Credentials::kubeconfig(kubeconfig)?)?;
    // TLS, runtime and client are not the index: have them before the first measurement.
    cluster.client().apiserver_version().await?;
    let (before, started) = (Usage::now(), Instant::now());
    let applied = Arc::<AtomicU64>::default();
    let stop = CancellationToken::new();
    let mut tasks = tokio::task::JoinSet::new();
    let mut stores = Vec::new();
    for _ in 0..watches.count {
        let store = Shared::new(Store::<W>::default());
        let counted = Counted { store: store.clone(), applied: Arc::clone(&applied) };
        let scope = Scope::all::<Pod>().labels(watches.labels.as_str());
        let watch = Watch::<W>::new(cluster.clone(), scope).config(config.clone()).feed(counted);
        let status = watch.status();
        tasks.spawn(watch.run(stop.clone()));
        status.ready().await;
        stores.push(store);
    }
    answer(before, started, &applied, || stores.iter().map(|store| store.read().len()).sum())
}

async fn reflectors(kubeconfig: &[u8], watches: Watches) -> Result<(), Failure> {
    let kubeconfig = Kubeconfig::from_yaml(std::str::from_utf8(kubeconfig)?)?;
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    let client = Client::try_from(config)?;
    client.apiserver_version().await?;
    let (before, started) = (Usage::now(), Instant::now());
    let applied = Arc::<AtomicU64>::default();
    let mut tasks = tokio::task::JoinSet::new();
    let mut stores = Vec::new();
    for _ in 0..watches.count {
        let (store, writer) = reflector::store::<Pod>();
        let counter = Arc::clone(&applied);
        let stream = watcher(Api::all(client.clone()), watcher::Config::default().labels(&watches.labels))
            .default_backoff()
            .reflect(writer)
            .applied_objects();
        tasks.spawn(stream.for_each(move |pod| {
            counter.fetch_add(u64::from(pod.is_ok()), Ordering::Relaxed);
            std::future::ready(())
        }));
        store.wait_until_ready().await?;
        stores.push(store);
    }
    answer(before, started, &applied, || stores.iter().map(reflector::Store::len).sum())
}

/// Answers until stdin ends; the watches go on meanwhile on the runtime's threads.
fn answer(
    before: Usage,
    started: Instant,
    applied: &AtomicU64,
    pods: impl Fn() -> usize,
) -> Result<(), Failure> {
    let list_seconds = started.elapsed().as_secs_f64();
    let mut answer = Answer { pods: 0, applied: 0, list_seconds, before, now: Usage::now() };
    for line in std::io::stdin().lines() {
        line?;
        (answer.pods, answer.applied) = (pods(), applied.load(Ordering::Relaxed));
        answer.now = Usage::now();
        println!("{}", serde_json::to_string(&answer)?);
    }
    Ok(())
}
