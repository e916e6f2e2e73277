//! `liqoctl drain`: moves pods away from another cluster, without ending what was agreed on.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::{annotations, labels};
use liqo_inspect::age;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::access::{Access, Connection};
use crate::duration::parse_span;
use crate::peering::follow::Patience;
use crate::peering::{id_of, known};
use crate::progress::Progress;
use crate::{Door, OnCluster};

/// How often it is looked whether it is over.
const INTERVAL: Duration = Duration::from_millis(500);
/// Pods of these stay: they belong to the node.
const DAEMON_SET: &str = "DaemonSet";

/// Arguments of `drain`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Move all pods away from a cluster that this one borrows from, and place no new ones there
    #[command(visible_alias = "cluster", after_help = EXAMPLES)]
    Peer(OnCluster<Peer>),
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl drain peer milan           # before milan is worked on
  liqoctl drain peer milan --undo    # pods may go there again

Pods are asked to leave, as their disruption budgets allow, and after a minute they are deleted; their controllers start them
elsewhere, where their namespace allows it. The contract stays. Ends with 0 when no pod is there any more.";

/// Arguments of `drain peer`.
#[derive(Debug, Args)]
struct Peer {
    /// The cluster: its name here, its ID, or its own name
    #[arg(value_name = "CLUSTER")]
    name: String,
    /// Let pods go there again
    #[arg(long)]
    undo: bool,
    /// Do not wait until it is done
    #[arg(long)]
    no_wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = parse_span)]
    timeout: Duration,
}

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        match self.command {
            Command::Peer(it) => it.command.run(&door.open(it.flags)?).await,
        }
    }
}

impl Peer {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let mut progress = Progress::new(access.stderr());
        let name = &self.name;
        let clusters = known::list(&connection).await?;
        let id = id_of(known::find(&clusters, name)?).unwrap_or_default().to_owned();
        let nodes = nodes(&connection, &id).await?;
        if nodes.is_empty() {
            bail!(
                "no node stands for {name}: nothing is borrowed from it. liqoctl status peer {name} tells more"
            );
        }
        for node in &nodes {
            mark(&connection, &node.name_any(), !self.undo).await?;
        }
        if self.undo {
            progress.done(&format!("pods may go to {name} again"));
        } else if !self.no_wait {
            self.wait(&connection, &mut progress, &nodes).await?;
            progress.done(&format!(
                "no pod is at {name}, and none goes there until liqoctl drain peer {name} --undo"
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn wait(&self, connection: &Connection, progress: &mut Progress, nodes: &[Node]) -> Result<()> {
        let (began, mut patience) = (Instant::now(), Patience::default());
        loop {
            if let Some(left) = patience.forgive(left(connection, nodes).await)? {
                if left.is_empty() {
                    return Ok(());
                }
                let waiting = format!("{} pods are still there, such as {}", left.len(), left[0]);
                if began.elapsed() >= self.timeout {
                    bail!(
                        "not done within {}: {waiting}. It goes on by itself",
                        age::text(self.timeout.try_into().unwrap_or(jiff::SignedDuration::MAX))
                    );
                }
                progress.busy(&waiting);
            }
            sleep(INTERVAL).await;
        }
    }
}

/// The nodes that stand for a cluster.
async fn nodes(connection: &Connection, id: &str) -> Result<Vec<Node>> {
    let nodes: Api<Node> = Api::all(connection.client.clone());
    let selector =
        format!("{}={},{}={id}", labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL, labels::REMOTE_CLUSTER_ID);
    let found = nodes.list(&ListParams::default().labels(&selector)).await;
    Ok(found.map_err(|error| connection.target.explain(&error)).context("cannot read nodes")?.items)
}

/// Says that a node is to be empty, or need not be any more.
async fn mark(connection: &Connection, node: &str, empty: bool) -> Result<()> {
    let nodes: Api<Node> = Api::all(connection.client.clone());
    let value = if empty { json!(labels::TRUE) } else { Value::Null };
    let patch = json!({ "metadata": { "annotations": { annotations::DRAIN: value } } });
    let changed = nodes.patch_metadata(node, &PatchParams::default(), &Patch::Merge(&patch)).await;
    changed
        .map_err(|error| connection.target.explain(&error))
        .with_context(|| format!("cannot annotate the node {node}"))?;
    Ok(())
}

/// The pods that have to leave these nodes and have not yet.
async fn left(connection: &Connection, nodes: &[Node]) -> Result<Vec<String>> {
    let pods: Api<Pod> = Api::all(connection.client.clone());
    let mut left = Vec::new();
    for node in nodes {
        let on_node = ListParams::default().fields(&format!("spec.nodeName={}", node.name_any()));
        let found = pods.list(&on_node).await.map_err(|error| connection.target.explain(&error))?;
        let stays = |pod: &Pod| pod.owner_references().iter().any(|owner| owner.kind == DAEMON_SET);
        let leaving = found.items.into_iter().filter(|pod| !stays(pod));
        left.extend(leaving.map(|pod| format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())));
    }
    Ok(left)
}
