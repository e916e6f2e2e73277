//! The tasks of the manager and what they share.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context;
use axum::Router;
use liqo_identity::{Room, Settings, Wanted};
use liqo_kit::Supervisor;
use liqo_kit::admin::Admin;
use liqo_kit::serve::{ServeConfig, serve};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use prometheus_client::metrics::info::Info;
use tokio::net::TcpListener;

use super::election::Election;
use super::{Arguments, client};
use crate::VERSION;
use crate::values::Listen;

/// How long the tasks have to end; well within the 30 s that Kubernetes gives.
const SHUTDOWN: Duration = Duration::from_secs(5);

/// Probes and metrics are small and quick.
const DRAIN: Duration = Duration::from_millis(500);

/// More connections than a kubelet and some monitoring systems need, and few enough to cost nothing.
const ADMIN_CONNECTIONS: usize = 64;

/// What this version can do, as other clusters are told.
const CAPABILITIES: [&str; 1] = ["identity"];

/// Runs until a signal or a failure.
pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let pod = pod_name(arguments)?;
    let client = client::connect(arguments.process.kubeconfig.0.as_deref()).await?;
    let room = Room::new(client.clone(), settings(arguments, &pod));
    let election = Election::new(client, arguments, &pod)?;
    let supervisor = Supervisor::new();

    let (watches, writes) = (WatchMetrics::default(), WriteMetrics::default());
    let admin = admin(&room, &election, &watches, &writes);
    // Before anything else: whoever asks is told what is waited for.
    let process = &arguments.process;
    serve_on(&supervisor, "probes", "--health-probe-address", process.health_probe_address, admin.probes())
        .await?;
    serve_on(&supervisor, "metrics", "--metrics-address", process.metrics_address, admin.metrics()).await?;

    room.start(&supervisor, &watches);
    room.add_checks(&admin.ready);
    election.add_check(&admin.ready, &room);
    let (queue, worker) = room.queue(&writes);
    supervisor.critical("writes", |stop| async move {
        worker.run(stop).await;
        Ok::<_, Infallible>(())
    });
    supervisor.critical("leader election", |stop| async move {
        election.run(room, queue, stop).await;
        Ok::<_, Infallible>(())
    });
    supervisor.run(SHUTDOWN).await?;
    tracing::info!("the manager has ended");
    Ok(())
}

fn settings(arguments: &Arguments, pod: &str) -> Settings {
    let identity = &arguments.identity;
    Settings {
        namespace: identity.liqo_namespace.clone(),
        wanted: Wanted { id: identity.cluster_id.0.clone(), name: identity.cluster_name.0.clone() },
        version: VERSION.to_owned(),
        capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
        pod: pod.to_owned(),
    }
}

fn admin(room: &Room, election: &Election, watches: &WatchMetrics, writes: &WriteMetrics) -> Admin {
    let mut registry = liqo_kit::metrics::registry();
    let build = Info::new(vec![("version", VERSION), ("arch", std::env::consts::ARCH)]);
    registry.register("liqo_build", "What runs here", build);
    registry.register("liqo_manager_leader", "1 while this process leads, else 0", election.leader.clone());
    room.metrics().register(&mut registry);
    watches.register(&mut registry);
    writes.register(&mut registry);
    let admin = Admin::new(registry);
    // Replaced once the checks are there.
    admin.ready.add("leader-election", || Err("starting".to_owned()));
    admin
}

async fn serve_on(
    supervisor: &Supervisor,
    what: &'static str,
    flag: &str,
    listen: Listen,
    router: Router,
) -> anyhow::Result<()> {
    let listener =
        bind(listen).await.with_context(|| format!("cannot listen for {what}; choose another {flag}"))?;
    let address = listener.local_addr().context("a listener without address")?;
    tracing::info!(%address, "serving {what}");
    let config = ServeConfig { max_connections: ADMIN_CONNECTIONS, drain: DRAIN, ..ServeConfig::default() };
    supervisor.late(what, move |stop| async move {
        serve(listener, None, router, config, stop).await;
        Ok::<_, Infallible>(())
    });
    Ok(())
}

async fn bind(listen: Listen) -> anyhow::Result<TcpListener> {
    let mut failure = None;
    for address in listen.candidates() {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => failure = Some(anyhow::Error::new(error).context(format!("{address}"))),
        }
    }
    Err(failure.unwrap_or_else(|| anyhow::anyhow!("no address")))
}

/// The pod's name, or outside of a cluster something like it.
fn pod_name(arguments: &Arguments) -> anyhow::Result<String> {
    if let Some(name) = &arguments.process.pod_name.0 {
        return Ok(name.0.clone());
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").context("cannot read the host name")?;
    let legal = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    let name: String = host.trim().to_lowercase().chars().map(legal).collect();
    let name = name.trim_matches('-').to_owned();
    Ok(if name.is_empty() { "manager".to_owned() } else { name })
}
