//! The tasks of the manager and what they share.

use std::convert::Infallible;

use liqo_kit::Supervisor;
use liqo_kit::admin::Admin;
use liqo_kit::supervise::Signals;
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;

use super::Arguments;
use super::election::Election;
use super::rooms::Rooms;
use crate::process::{self, SHUTDOWN, bind, connect};

/// How the manager calls itself to the API server.
const AGENT: &str = "liqo-manager";

/// Runs until a signal or a failure.
pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let signals = Signals::listen()?;
    let pod = arguments.process.pod_name()?;
    let client = connect(AGENT, arguments.process.kubeconfig.0.as_deref()).await?;
    let rooms = Rooms::new(&client, arguments, &pod);
    let election = Election::new(client, arguments, &pod)?;
    let supervisor = Supervisor::new();

    let (watches, writes) = (WatchMetrics::default(), WriteMetrics::default());
    let mut registry = process::registry(&watches, &writes);
    registry.register("liqo_manager_leader", "1 while this process leads, else 0", election.leader.clone());
    rooms.register(&mut registry);
    let admin = Admin::new(registry);
    // Replaced once the checks are there.
    admin.ready.add("leader-election", || Err("starting".to_owned()));
    arguments.process.serve(&supervisor, &admin).await?;
    let listener = bind("other clusters", "--auth-address", arguments.peering.auth_address).await?;
    let webhook = bind("the API server", "--webhook-address", arguments.offloading.webhook_address).await?;

    rooms.start(&supervisor, &watches);
    rooms.authentication.serve(&supervisor, listener);
    rooms.offloading.serve(&supervisor, webhook);
    // Outside of a cluster nobody could ask.
    let nodes = &arguments.virtual_nodes;
    if nodes.pod_ip.0.is_some() {
        let doors = bind("logs of pods on virtual nodes", "--kubelet-address", nodes.kubelet_address).await?;
        rooms.virtual_node.serve(&supervisor, doors);
    }
    rooms.add_checks(&admin.ready);
    election.add_check(&admin.ready, &rooms);
    let leaders = rooms.leaders(&supervisor, &writes);
    supervisor.critical("leader election", |stop| async move {
        election.run(leaders, stop).await;
        Ok::<_, Infallible>(())
    });
    supervisor.run(signals, SHUTDOWN).await?;
    tracing::info!("the manager has ended");
    Ok(())
}
