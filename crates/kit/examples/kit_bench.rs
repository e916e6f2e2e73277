//! What the kit costs on a real API server: memory of an index of many pods, CPU of a stream of events.
//!
//! Starts an API-server-only cluster, fills it with pods, and measures in child processes that do nothing but watch,
//! so that filling and changing the pods is not counted. Prints one JSON document to stdout.
//!
//! `kit_bench [--pods 10000] [--rate 1000] [--seconds 20] [--watches 4]`; needs root, like everything that starts a sandbox.

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Parser;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use liqo_kit::clusters::{ClientConfig, ClientSource, Clusters, Credentials, client};
use liqo_kit::metrics::ProcessUsage;
use liqo_kit::watch::{Identity, Meta, Pairs, Scope, Watch, WatchConfig, Wire};
use liqo_kit::{Key, Shared, Sink, Store};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser)]
struct Arguments {
    /// Pods in the cluster.
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Events a second to aim for, over all watches.
    #[arg(long, default_value_t = 1000)]
    rate: u64,
    /// How long to keep changing pods.
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Watches in the measured process; each sees every change, so fewer changes are needed for a rate of events.
    #[arg(long, default_value_t = 4)]
    watches: u64,
    /// Used between the bench and its children.
    #[arg(long, hide = true)]
    watch: Option<String>,
    /// Used between the bench and its children.
    #[arg(long, hide = true)]
    kubeconfig: Option<std::path::PathBuf>,
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

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match (&arguments.watch, &arguments.kubeconfig) {
        (Some(variant), Some(kubeconfig)) => {
            let text = std::fs::read(kubeconfig)?;
            let paged = WatchConfig { streaming: false, ..WatchConfig::default() };
            match variant.as_str() {
                "trimmed" => {
                    runtime.block_on(child::<TrimmedPod>(&text, WatchConfig::default(), arguments.watches))
                }
                "trimmed-paged" => runtime.block_on(child::<TrimmedPod>(&text, paged, arguments.watches)),
                _ => runtime.block_on(child::<Pod>(&text, WatchConfig::default(), arguments.watches)),
            }
        }
        _ => runtime.block_on(bench(&arguments)),
    }
}

// ---- the child: watches, and answers each line on stdin with its usage on stdout -------------------------------

async fn child<W: Wire + Sync>(kubeconfig: &[u8], config: WatchConfig, watches: u64) -> Result<(), Failure> {
    let clusters = Clusters::new(ClientConfig::default());
    let (cluster, _) = clusters.set("bench", Credentials::kubeconfig(kubeconfig)?)?;
    // TLS, runtime and client are not the index: have them before the first measurement.
    cluster.client().apiserver_version().await?;
    let before = ProcessUsage::now();
    let applied = Arc::<AtomicU64>::default();
    let (stop, started) = (CancellationToken::new(), Instant::now());
    let mut tasks = tokio::task::JoinSet::new();
    let mut stores = Vec::new();
    for _ in 0..watches {
        let store = Shared::new(Store::<W>::default());
        let counted = Counted { store: store.clone(), applied: Arc::clone(&applied) };
        let scope = Scope::all::<Pod>();
        let watch = Watch::<W>::new(cluster.clone(), scope).config(config.clone()).feed(counted);
        let status = watch.status();
        tasks.spawn(watch.run(stop.clone()));
        status.ready().await;
        stores.push(store);
    }
    let listed = started.elapsed();
    let answer = || {
        let usage = ProcessUsage::now();
        json!({
            "pods": stores[0].read().len(),
            "applied": applied.load(Ordering::Relaxed),
            "cpu_seconds": usage.cpu_seconds,
            "list_seconds": listed.as_secs_f64(),
            "before_bytes": before.resident_bytes,
            "before_heap_bytes": before.anonymous_bytes,
            "heap_bytes": usage.anonymous_bytes,
            "resident_bytes": usage.resident_bytes,
            "peak_bytes": usage.peak_resident_bytes,
        })
    };
    for line in std::io::stdin().lines() {
        line?;
        println!("{}", answer());
    }
    stop.cancel();
    Ok(())
}

// ---- the parent: cluster, pods, changes ------------------------------------------------------------------------

struct Watcher {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Watcher {
    fn start(variant: &str, watches: u64, kubeconfig: &std::path::Path) -> Result<Self, Failure> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--watch", variant, "--watches", &watches.to_string(), "--kubeconfig"])
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Self { child, input, output })
    }

    fn ask(&mut self) -> Result<Value, Failure> {
        self.input.write_all(b"\n")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    fn end(mut self) -> Result<(), Failure> {
        drop(self.input);
        self.child.wait()?;
        Ok(())
    }
}

async fn bench(arguments: &Arguments) -> Result<(), Failure> {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("bench")]).await;
    let cluster = sandbox.cluster("bench");
    let limits = ClientConfig { max_requests: 90, ..ClientConfig::default() };
    let client = client(&cluster.config().await, &limits)?;
    let bytes = fill(&client, arguments.pods).await?;
    eprintln!("{} pods created, {bytes} bytes of JSON each", arguments.pods);
    let kubeconfig = cluster.kubeconfig();
    let mut memory = Vec::new();
    for variant in ["trimmed", "trimmed-paged", "full"] {
        let mut watcher = Watcher::start(variant, 1, &kubeconfig)?;
        memory.push(index_result(variant, &watcher.ask()?));
        watcher.end()?;
    }
    let events =
        events_result(&client, arguments, Watcher::start("trimmed", arguments.watches, &kubeconfig)?).await?;
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let result = json!({
        "bench": "kit", "build": build, "pods": arguments.pods, "pod_json_bytes": bytes,
        "index": memory, "events": events,
        "targets": { "index_mib": 30, "core_at_1000_events_per_second": 0.3 },
    });
    println!("{}", serde_json::to_string_pretty(&result)?);
    Ok(())
}

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or(0.0)
}

fn mib(bytes: f64) -> f64 {
    (bytes / 1024.0 / 1024.0 * 10.0).round() / 10.0
}

fn index_result(variant: &str, answer: &Value) -> Value {
    let growth = number(answer, "resident_bytes") - number(answer, "before_bytes");
    let heap = number(answer, "heap_bytes") - number(answer, "before_heap_bytes");
    json!({
        "variant": variant,
        "pods": answer["pods"],
        "process_mib": mib(number(answer, "resident_bytes")),
        "index_mib": mib(growth),
        "peak_mib": mib(number(answer, "peak_bytes")),
        "heap_mib": mib(heap),
        "heap_bytes_per_pod": (heap / number(answer, "pods").max(1.0)).round(),
        "list_seconds": number(answer, "list_seconds"),
    })
}

async fn events_result(
    client: &kube::Client,
    arguments: &Arguments,
    mut watcher: Watcher,
) -> Result<Value, Failure> {
    let before = watcher.ask()?;
    let started = Instant::now();
    let sent = change(client, arguments).await?;
    let seconds = started.elapsed().as_secs_f64();
    // The last events may still be on their way.
    let deadline = Instant::now() + Duration::from_secs(10);
    let after = loop {
        let answer = watcher.ask()?;
        let seen = number(&answer, "applied") - number(&before, "applied");
        if seen >= (sent * arguments.watches) as f64 || Instant::now() > deadline {
            break answer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    watcher.end()?;
    let seen = number(&after, "applied") - number(&before, "applied");
    let cpu = number(&after, "cpu_seconds") - number(&before, "cpu_seconds");
    Ok(json!({
        "changes": sent,
        "watches": arguments.watches,
        "seen": seen,
        "seconds": seconds,
        "events_per_second": (seen / seconds).round(),
        "core": cpu / seconds,
        "cpu_microseconds_per_event": (cpu / seen.max(1.0) * 1e6).round(),
        "core_at_1000_events_per_second": cpu / seen.max(1.0) * 1000.0,
    }))
}

/// Creates the pods; returns the size of one as the server sends it.
async fn fill(client: &kube::Client, count: usize) -> Result<usize, Failure> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let account: ServiceAccount = serde_json::from_value(json!({"metadata": {"name": "default"}}))?;
    if let Err(error) = accounts.create(&PostParams::default(), &account).await {
        eprintln!("service account: {error}");
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let params = PostParams::default();
    let created =
        futures::stream::iter(0..count)
            .map(|number| {
                let (pods, params) = (&pods, &params);
                async move {
                    pods.create(params, &serde_json::from_value(pod(number))?).await.map_err(Failure::from)
                }
            })
            .buffer_unordered(64)
            .fold(Ok(0), |bytes: Result<usize, Failure>, pod| async move {
                Ok(bytes?.max(serde_json::to_vec(&pod?)?.len()))
            })
            .await?;
    Ok(created)
}

/// A pod of ordinary size: two containers with environment, probes and volumes.
fn pod(number: usize) -> Value {
    let container = |name: &str| {
        let env: Vec<_> = (0..20)
            .map(|n| json!({"name": format!("SETTING_{n}"), "value": format!("value-of-{n}")}))
            .collect();
        json!({
            "name": name, "image": format!("registry.example/team/{name}:1.{}", number % 10),
            "env": env, "ports": [{"containerPort": 8080}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
            "livenessProbe": {"httpGet": {"path": "/live", "port": 8080}},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        })
    };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("pod-{number:05}"),
            "labels": {"app": format!("app-{}", number % 50), "tier": "backend", "pod-template-hash": "5d4f8c7b9"},
            "annotations": {"example.com/config-hash": "0123456789abcdef0123456789abcdef"},
        },
        "spec": {
            "nodeName": format!("node-{}", number % 100),
            "automountServiceAccountToken": false,
            "containers": [container("app"), container("sidecar")],
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    })
}

/// Changes pods at the wanted rate, or as fast as the server can; returns how many changes were made.
async fn change(client: &kube::Client, arguments: &Arguments) -> Result<u64, Failure> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let rate = (arguments.rate / arguments.watches.max(1)).max(1);
    let interval = Duration::from_secs(1) / u32::try_from(rate)?;
    let total = rate * arguments.seconds;
    let deadline = Instant::now() + Duration::from_secs(arguments.seconds);
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    let pace = futures::stream::unfold((ticks, 0), |(mut ticks, number)| async move {
        ticks.tick().await;
        Some((number, (ticks, number + 1)))
    });
    let params = PatchParams::default();
    let made = pace
        .take(usize::try_from(total)?)
        .take_while(|_| std::future::ready(Instant::now() < deadline))
        .map(|number: u64| {
            let (pods, params) = (&pods, &params);
            let name = format!("pod-{:05}", number as usize % arguments.pods);
            let patch = json!({"metadata": {"labels": {"changed": number.to_string()}}});
            async move { pods.patch_metadata(&name, params, &Patch::Merge(&patch)).await.is_ok() }
        })
        .buffer_unordered(64)
        .filter(|made| std::future::ready(*made))
        .count()
        .await;
    Ok(made as u64)
}
