//! `liqoctl status`: arguments and wiring.

mod show;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use liqo_inspect::Installation;

pub(crate) use show::finding;

use crate::access::Access;
use crate::offloading;
use crate::output::{self, Format};
use crate::peering::{known, view};
use crate::{Door, OnCluster};

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show one other cluster: what is borrowed from it and lent to it, and what is waited for
    #[command(after_help = PEER_EXAMPLES)]
    Peer(OnCluster<Peer>),
    /// Show one namespace: which clusters it extends to, and why not to the others
    #[command(visible_alias = "ns", after_help = NAMESPACE_EXAMPLES)]
    Namespace(OnCluster<Namespace>),
}

/// Arguments of `status peer`.
#[derive(Debug, Args)]
struct Peer {
    /// The cluster: its name here, its ID, or its own name
    #[arg(value_name = "CLUSTER")]
    name: String,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Arguments of `status namespace`.
#[derive(Debug, Args)]
struct Namespace {
    /// The namespace
    #[arg(value_name = "NAMESPACE")]
    name: String,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl status                       # identity, versions, pods, peers, and what is wrong
  liqoctl status --context provider-a -o wide
  liqoctl status -o json | jq -r .cluster.id
  liqoctl status peer milan            # one other cluster
  liqoctl status namespace shop        # one namespace

Ends with 0 if all is well, and with 1 if liqo is not installed or something has failed.";

const PEER_EXAMPLES: &str = "Examples:
  liqoctl status peer milan            # what is borrowed and lent, step by step
  liqoctl status peer milan -o json | jq -r .outgoing.status

Ends with 0 if nothing is wrong, also while something is waited for, and with 1 if the cluster is not known, refuses, cannot
be reached, or does not keep what was agreed on.";

const NAMESPACE_EXAMPLES: &str = "Examples:
  liqoctl status namespace shop           # which clusters it extends to, and why not to the others
  liqoctl status namespace shop -o wide
  liqoctl status namespace shop -o json | jq -r .phase

Ends with 0 if nothing is wrong, also if the namespace is not offloaded, and with 1 if there is no such namespace, what is asked
for makes no sense, or a cluster refuses it.";

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        match self.command {
            Some(Command::Peer(it)) => return it.command.run(&door.open(it.flags)?, self.output).await,
            Some(Command::Namespace(it)) => return it.command.run(&door.open(it.flags)?, self.output).await,
            None => {}
        }
        let access = door.open(crate::access::Flags::default())?;
        let connection = access.connect().await?;
        let server = connection.server();
        let status = Installation::new(connection.client, connection.namespace).status(&server).await;
        output::print(self.output, &status, |wide| show::text(&status, wide, access.stdout()))?;
        Ok(if status.healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Namespace {
    async fn run(self, access: &Access, before: Option<Format>) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let Some((namespace, offloading)) = offloading::see(&connection, &self.name).await? else {
            bail!("there is no namespace {} in {}", self.name, connection.target);
        };
        let seen = offloading::view::of(&connection, &namespace, offloading.as_ref()).await?;
        output::print(self.output.or(before), &seen, |wide| offloading::view::text(&seen, wide))?;
        Ok(if offloading::view::is_well(&seen) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Peer {
    async fn run(self, access: &Access, before: Option<Format>) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let all = known::list(&connection).await?;
        let peer = view::of(&connection, known::find(&all, &self.name)?).await?;
        let text = |wide| view::text(&peer, wide, access.stdout(), Timestamp::now());
        output::print(self.output.or(before), &peer, text)?;
        Ok(if peer.troubles.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
