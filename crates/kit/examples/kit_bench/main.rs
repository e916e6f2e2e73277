//! What the kit costs on a real API server: memory of an index of many pods, CPU of a stream of events.
//!
//! Starts an API-server-only cluster, fills it with pods, and measures child processes that do nothing but watch,
//! so that filling and changing the pods is not counted. Each number is taken for the kit and, in the same run and on
//! the same objects, for kube-rs alone. Prints one JSON document to stdout, progress to stderr.
//!
//! An API server on two cores does not make 1,000 changes a second. The events are real all the same: the measured
//! process holds several watches, each of which is told every change. Each watches its share of the pods (the same
//! ones), so that all together keep as many as there are.
//!
//! `kit_bench [--pods 10000] [--rate 1000] [--seconds 15] [--watches 8]`; needs root, like everything that starts a
//! sandbox.

mod child;
mod pods;

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use clap::Parser;
use liqo_kit::clusters::{ClientConfig, client};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

use child::{Answer, Variant, Watches};
use pods::{CHANGING, Changes};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How long the last events may be on their way.
const LATECOMERS: Duration = Duration::from_secs(30);

#[derive(Parser)]
struct Arguments {
    /// Pods in the cluster
    #[arg(long, default_value_t = 10_000)]
    pods: usize,
    /// Events a second to aim for, over all watches
    #[arg(long, default_value_t = 1000)]
    rate: usize,
    /// How long to keep changing pods
    #[arg(long, default_value_t = 15)]
    seconds: u64,
    /// Watches in the measured process; each sees every change, so fewer changes are needed for a rate of events
    #[arg(long, default_value_t = 8, value_parser = at_least_one)]
    watches: usize,
    /// Used between the bench and its children
    #[arg(long, hide = true, requires = "kubeconfig")]
    watch: Option<Variant>,
    /// Used between the bench and its children
    #[arg(long, hide = true, default_value = "")]
    labels: String,
    /// Used between the bench and its children
    #[arg(long, hide = true)]
    kubeconfig: Option<PathBuf>,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a number of at least 1".into())
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match (&arguments.watch, &arguments.kubeconfig) {
        (Some(variant), Some(kubeconfig)) => {
            let watches = Watches { count: arguments.watches, labels: arguments.labels.clone() };
            runtime.block_on(child::run(*variant, &std::fs::read(kubeconfig)?, watches))
        }
        _ => runtime.block_on(bench(&arguments)),
    }
}

async fn bench(arguments: &Arguments) -> Result<(), Failure> {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("bench")]).await;
    let cluster = sandbox.cluster("bench");
    let limits = ClientConfig { max_requests: 90, ..ClientConfig::default() };
    let client = client(&cluster.config().await, &limits)?;
    let bytes = pods::fill(&client, arguments.pods, arguments.watches).await?;
    let kubeconfig = cluster.kubeconfig();
    let mut index = Vec::new();
    for variant in [Variant::Trimmed, Variant::TrimmedPaged, Variant::Full, Variant::Reflector] {
        let mut watcher = Watcher::start(variant, &Watches { count: 1, labels: String::new() }, &kubeconfig)?;
        let answer = watcher.ask()?;
        watcher.end()?;
        eprintln!("  index, {variant:?}: {:.1} MB", answer.now.resident_bytes as f64 / 1e6);
        if answer.pods != arguments.pods {
            return Err(format!("{variant:?} has {} pods of {}", answer.pods, arguments.pods).into());
        }
        index.push(json!({"variant": variant, "answer": answer}));
    }
    let mut events = Vec::new();
    for variant in [Variant::Trimmed, Variant::Reflector] {
        let result = measure_events(&client, arguments, variant, &kubeconfig).await?;
        eprintln!("  events, {variant:?}: {result}");
        events.push(result);
    }
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let result = json!({
        "build": build, "pods": arguments.pods, "pod_json_bytes": bytes, "index": index, "events": events,
    });
    println!("{}", serde_json::to_string_pretty(&result)?);
    Ok(())
}

async fn measure_events(
    client: &kube::Client,
    arguments: &Arguments,
    variant: Variant,
    kubeconfig: &Path,
) -> Result<Value, Failure> {
    let watches = Watches { count: arguments.watches, labels: CHANGING.into() };
    let mut watcher = Watcher::start(variant, &watches, kubeconfig)?;
    let before = watcher.ask()?;
    let started = Instant::now();
    let changes = Changes {
        pods: arguments.pods,
        share: arguments.watches,
        rate: (arguments.rate / arguments.watches).max(1),
        lasting: Duration::from_secs(arguments.seconds),
        mark: &format!("{variant:?}"),
    };
    let changes = changes.make(client).await?;
    let expected = changes * arguments.watches as u64;
    let after = wait_for(&mut watcher, before.applied + expected).await?;
    let seconds = started.elapsed().as_secs_f64();
    watcher.end()?;
    let seen = (after.applied - before.applied) as f64;
    let cpu = after.now.cpu_seconds - before.now.cpu_seconds;
    Ok(json!({
        "variant": variant,
        "changes": changes,
        "watches": arguments.watches,
        "pods": after.pods,
        "seen": seen,
        "seconds": seconds,
        "events_per_second": (seen / seconds).round(),
        "cpu_microseconds_per_event": (cpu / seen * 1e6).round(),
        "core": cpu / seconds,
        "core_at_1000_events_per_second": cpu / seen * 1000.0,
    }))
}

/// Waits until the watches have seen this many events.
async fn wait_for(watcher: &mut Watcher, applied: u64) -> Result<Answer, Failure> {
    let deadline = Instant::now() + LATECOMERS;
    loop {
        let answer = watcher.ask()?;
        if answer.applied >= applied {
            return Ok(answer);
        }
        if Instant::now() > deadline {
            return Err(format!("only {} of {applied} events arrived", answer.applied).into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A child that watches.
struct Watcher {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Watcher {
    fn start(variant: Variant, watches: &Watches, kubeconfig: &Path) -> Result<Self, Failure> {
        let variant = serde_json::to_value(variant)?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(["--watch", variant.as_str().unwrap_or_default(), "--labels", &watches.labels])
            .args(["--watches", &watches.count.to_string()])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Self { child, input, output })
    }

    fn ask(&mut self) -> Result<Answer, Failure> {
        self.input.write_all(b"\n")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        if line.is_empty() {
            return Err("the measured process ended; what it said is above".into());
        }
        Ok(serde_json::from_str(&line)?)
    }

    fn end(mut self) -> Result<(), Failure> {
        drop(self.input);
        self.child.wait()?;
        Ok(())
    }
}
