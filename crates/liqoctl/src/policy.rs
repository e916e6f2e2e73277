//! `liqoctl policy`: what is shared with whom, how that comes about, and what a change would change.

mod explain;
mod list;
mod percentage;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use kube::ResourceExt;
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_api::{annotations, labels};

use crate::access::Access;
use crate::output::{self, Format};
use crate::peering::{known, write};
use crate::{Door, OnCluster};
use world::World;

/// Arguments of `policy`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the policies: whom each is about, what it shares, and whom it is applied to
    #[command(after_help = EXAMPLES)]
    List(OnCluster<List>),
    /// Show line by line how the offer to a cluster comes about, or what a policy would change; writes nothing
    #[command(after_help = EXAMPLES)]
    Explain(OnCluster<Explain>),
    /// Say yes to lending to a cluster, where a policy requires that
    #[command(after_help = EXAMPLES)]
    Approve(OnCluster<Approve>),
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl policy list
  liqoctl policy explain --peer milan                        # how the offer to milan comes about, line by line
  liqoctl policy explain --peer milan --dry-run -f new.yaml  # the same, if these policies were there
  liqoctl policy explain --dry-run -f new.yaml               # what they would change, and for whom
  liqoctl policy approve milan                               # where a policy says approval: Required
  liqoctl policy approve milan --revoke";

/// Arguments of `policy list`.
#[derive(Debug, Args)]
struct List {
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Arguments of `policy explain`.
#[derive(Debug, Args)]
struct Explain {
    /// The cluster: its name here, its ID, or its own name
    #[arg(long, value_name = "CLUSTER", required_unless_present = "filename")]
    peer: Option<String>,
    /// Show what would come out if the policies of the file were there; nothing is written
    #[arg(long, requires = "filename")]
    dry_run: bool,
    /// The file with policies for --dry-run; - is standard input
    #[arg(short, long, value_name = "FILE", requires = "dry_run")]
    filename: Option<PathBuf>,
    /// Output format; wide also shows the clusters for which nothing changes
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Arguments of `policy approve`.
#[derive(Debug, Args)]
struct Approve {
    /// The cluster: its name here, its ID, or its own name
    #[arg(value_name = "CLUSTER")]
    name: String,
    /// Take the approval back
    #[arg(long)]
    revoke: bool,
}

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        match self.command {
            Command::List(it) => it.command.run(&door.open(it.flags)?).await,
            Command::Explain(it) => it.command.run(&door.open(it.flags)?).await,
            Command::Approve(it) => it.command.run(&door.open(it.flags)?).await,
        }
    }
}

impl List {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let views = list::read(&connection).await?;
        output::print(self.output, &views, |wide| list::table(&views, wide))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Explain {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let now = World::gather(&connection).await?;
        let then = match &self.filename {
            Some(file) => Some(now.policies_with(&world::proposed(&connection, file).await?)),
            None => None,
        };
        let Some(peer) = &self.peer else {
            let Some(then) = then else { bail!("give --peer CLUSTER, or --dry-run -f FILE") };
            let changes = explain::changes(&now, &then);
            output::print(self.output, &changes, |wide| explain::changes_text(&changes, wide))?;
            return Ok(ExitCode::SUCCESS);
        };
        let cluster = known::find(&now.clusters, peer)?;
        if cluster.spec.incoming_peering_enabled == PeeringEnabled::No {
            eprintln!(
                "note: nothing is lent to {}, as its ForeignCluster says so; this is what policy says",
                cluster.name_any()
            );
        }
        let policies = then.as_deref().unwrap_or_else(|| now.stock.policies());
        let explained = explain::explain(&now, policies, cluster)?;
        output::print(self.output, &explained, |_| explained.text())?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Approve {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let all = known::list(&connection).await?;
        let cluster = known::find(&all, &self.name)?;
        let name = cluster.name_any();
        let approved =
            cluster.annotations().get(annotations::APPROVED).map(String::as_str) == Some(labels::TRUE);
        if approved == self.revoke {
            let value = (!self.revoke).then_some(labels::TRUE);
            write::annotate(&connection, &name, annotations::APPROVED, value).await?;
        }
        eprintln!(
            "{}",
            match self.revoke {
                true =>
                    format!("{name} is not approved any more; where a policy requires it, what is lent ends"),
                false => format!(
                    "{name} is approved; liqoctl policy explain --peer {name} shows what it is offered"
                ),
            }
        );
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests;
