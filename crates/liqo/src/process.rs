//! What all roles share: how a process is told about its surroundings, connects, serves, and ends.

use std::convert::Infallible;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use clap::Args;
use liqo_kit::Supervisor;
use liqo_kit::admin::Admin;
use liqo_kit::serve::{ServeConfig, serve};
use liqo_kit::telemetry::LogFormat;
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::{Worker, WriteMetrics};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use crate::VERSION;
use crate::values::{Listen, Maybe, ObjectName, Workers};

mod client;

pub(crate) use client::connect;

/// How long the tasks have to end; well within the 30 s that Kubernetes gives.
pub(crate) const SHUTDOWN: Duration = Duration::from_secs(5);

/// Probes and metrics are small and quick.
const DRAIN: Duration = Duration::from_millis(500);

/// More connections than a kubelet and some monitoring systems need, and few enough to cost nothing.
const ADMIN_CONNECTIONS: usize = 64;

/// DNS is asked in threads of its own; a few are plenty.
const BLOCKING_THREADS: usize = 4;

/// How the process runs.
#[derive(Debug, Args)]
#[command(next_help_heading = "Process")]
pub(crate) struct Process {
    /// Where to serve metrics
    #[arg(long, env = "LIQO_METRICS_ADDRESS", default_value = ":8080", value_name = "ADDRESS")]
    pub(crate) metrics_address: Listen,

    /// Where to answer probes: /healthz and /readyz
    #[arg(long, env = "LIQO_HEALTH_PROBE_ADDRESS", default_value = ":8081", value_name = "ADDRESS")]
    pub(crate) health_probe_address: Listen,

    /// How log lines look: plain for people, json for machines
    #[arg(long, env = "LIQO_LOG_FORMAT", default_value = "plain", value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,

    /// What is logged, such as info or info,liqo_kit=debug
    #[arg(long, env = "LIQO_LOG_FILTER", default_value = "info", value_name = "FILTER")]
    pub(crate) log_filter: String,

    /// Where the cluster is, for running outside of it
    #[arg(long, env = "LIQO_KUBECONFIG", default_value = "", hide_default_value = true, value_name = "FILE")]
    pub(crate) kubeconfig: Maybe<PathBuf>,

    /// The pod that this is [default: the host name]
    #[arg(long, env = "POD_NAME", default_value = "", hide_default_value = true, value_name = "NAME")]
    pub(crate) pod_name: Maybe<ObjectName>,

    /// Threads that do the work
    #[arg(long, env = "LIQO_WORKER_THREADS", default_value = "2", value_name = "NUMBER")]
    pub(crate) worker_threads: Workers,
}

impl Process {
    /// Sets up logging, unless its filter is nonsense.
    pub(crate) fn start_logging(&self) -> Result<(), String> {
        liqo_kit::telemetry::init(self.log_format, &self.log_filter).map_err(|error| error.to_string())
    }

    /// The threads.
    pub(crate) fn runtime(&self) -> anyhow::Result<tokio::runtime::Runtime> {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(self.worker_threads.0.into())
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("liqo")
            .enable_all()
            .build()
            .context("cannot start threads")
    }

    /// The pod's name, or outside of a cluster something like it.
    pub(crate) fn pod_name(&self) -> anyhow::Result<String> {
        if let Some(name) = &self.pod_name.0 {
            return Ok(name.0.clone());
        }
        let host =
            std::fs::read_to_string("/proc/sys/kernel/hostname").context("cannot read the host name")?;
        let legal = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
        let name: String = host.trim().to_lowercase().chars().map(legal).collect();
        let name = name.trim_matches('-').to_owned();
        Ok(if name.is_empty() { "liqo".to_owned() } else { name })
    }

    /// Serves probes and metrics; whoever asks from now on is told what is waited for.
    pub(crate) async fn serve(&self, supervisor: &Supervisor, admin: &Admin) -> anyhow::Result<()> {
        let probes = ("probes", "--health-probe-address", self.health_probe_address, admin.probes());
        let metrics = ("metrics", "--metrics-address", self.metrics_address, admin.metrics());
        for (what, flag, listen, router) in [probes, metrics] {
            serve_admin(supervisor, what, bind(what, flag, listen).await?, router);
        }
        Ok(())
    }
}

fn serve_admin(supervisor: &Supervisor, what: &'static str, listener: TcpListener, router: Router) {
    let config = ServeConfig { max_connections: ADMIN_CONNECTIONS, drain: DRAIN, ..ServeConfig::default() };
    supervisor.late(what, move |stop| async move {
        serve(listener, None, router, config, stop).await;
        Ok::<_, Infallible>(())
    });
}

/// Listens where `flag` says.
pub(crate) async fn bind(what: &str, flag: &str, listen: Listen) -> anyhow::Result<TcpListener> {
    let listener =
        first_of(listen).await.with_context(|| format!("cannot listen for {what}; choose another {flag}"))?;
    let address = listener.local_addr().context("a listener without address")?;
    tracing::info!(%address, "serving {what}");
    Ok(listener)
}

async fn first_of(listen: Listen) -> anyhow::Result<TcpListener> {
    let mut failure = None;
    for address in listen.candidates() {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = Some(anyhow::Error::new(error).context(format!("{address}"))),
        }
    }
    Err(failure.unwrap_or_else(|| anyhow::anyhow!("no address")))
}

/// What every process tells about itself, its watches and its writes.
pub(crate) fn registry(watches: &WatchMetrics, writes: &WriteMetrics) -> Registry {
    let mut registry = liqo_kit::metrics::registry();
    let build = Info::new(vec![("version", VERSION), ("arch", std::env::consts::ARCH)]);
    registry.register("liqo_build", "What runs here", build);
    watches.register(&mut registry);
    writes.register(&mut registry);
    registry
}

/// Runs what drains a queue.
pub(crate) fn drain(supervisor: &Supervisor, name: &str, worker: Worker) {
    supervisor.critical(format!("writes of {name}"), |stop| async move {
        worker.run(stop).await;
        Ok::<_, Infallible>(())
    });
}
