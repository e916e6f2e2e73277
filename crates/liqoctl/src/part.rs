//! `liqoctl unpeer` and `liqoctl remove cluster`: parting, in order and within a bounded time.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::{
    PeeringConditionStatus as Status, PeeringConditionType as Part, PeeringEnabled,
};
use liqo_api::{Contract, ForeignCluster, annotations, labels};
use liqo_inspect::age;
use tokio::time::{Instant, sleep};

use crate::access::{Access, Connection};
use crate::duration::parse_span;
use crate::peering::follow::{Patience, see};
use crate::peering::{Papers, id_of, known, phases, write};
use crate::progress::Progress;
use crate::{Door, OnCluster};

/// How often it is looked whether it is over.
const INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `unpeer`.
#[derive(Debug, Args)]
pub(crate) struct Unpeer {
    /// The cluster: its name here, its ID, or its own name
    #[arg(value_name = "CLUSTER")]
    name: String,
    /// What to end: what is borrowed from it, what is lent to it, or both
    #[arg(long, value_enum, default_value_t)]
    direction: Direction,
    #[command(flatten)]
    how: How,
}

/// Which way resources go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Direction {
    /// Whatever there is between the two clusters
    #[default]
    Both,
    /// What is borrowed from the other cluster
    Outgoing,
    /// What is lent to the other cluster
    Incoming,
}

/// Arguments of `remove`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Part from a cluster and forget it: contracts end, what is reserved is freed, then the credentials go
    #[command(after_help = EXAMPLES)]
    Cluster(OnCluster<Remove>),
}

/// Arguments of `remove cluster`.
#[derive(Debug, Args)]
struct Remove {
    /// The cluster: its name here, its ID, or its own name
    #[arg(value_name = "CLUSTER")]
    name: String,
    #[command(flatten)]
    how: How,
}

/// How to part.
#[derive(Debug, Clone, Copy, Args)]
struct How {
    /// Do not wait for the other cluster: it is told what there is time for
    #[arg(long)]
    force: bool,
    /// How long to wait; the cluster itself waits a minute for the other one
    #[arg(long, value_name = "DURATION", default_value = "90s", value_parser = parse_span)]
    timeout: Duration,
}

pub(crate) const UNPEER_EXAMPLES: &str = "Examples:
  liqoctl unpeer milan                        # nothing is borrowed and nothing is lent any more; it stays known
  liqoctl unpeer milan --direction outgoing   # nothing is borrowed any more; what is lent to it stays
  liqoctl unpeer milan --direction incoming   # nothing is lent to it any more; what is borrowed stays
  liqoctl unpeer milan --force                # without waiting for the other cluster
  liqoctl peer milan                          # borrow again
  liqoctl peer milan --bidirectional          # and let it borrow again
  liqoctl peer milan --lend --no-borrow       # or offer it resources unasked again

Ends with 0 when it is over, also when there was nothing. Nothing is lent again until somebody says so; credentials stay, which
liqoctl remove cluster takes away.";

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl remove cluster milan         # part in order, and forget it
  liqoctl remove cluster milan --force # without waiting for the other cluster

Ends with 0 when the cluster is not known any more, also when it was not. It comes in again only with a new token.";

impl Unpeer {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let all = known::list(&connection).await?;
        let cluster = known::find(&all, &self.name)?;
        let name = cluster.name_any();
        let mut progress = Progress::new(access.stderr());
        if cluster.metadata.deletion_timestamp.is_none() {
            let papers = Papers::read(&connection.client, cluster).await;
            let papers = papers.context("cannot read the offers and contracts")?;
            let ending = self.direction.ending(cluster, &papers);
            write::enable(&connection, cluster, &ending).await?;
            if self.how.force {
                write::annotate(&connection, &name, annotations::FORCE, Some(labels::TRUE)).await?;
            }
        }
        let over = |cluster: &ForeignCluster, papers: &Papers| self.direction.is_over(cluster, papers);
        let done = self.how.wait(&connection, &name, over, &mut progress).await;
        // The next parting is to be in order again.
        if self.how.force {
            write::annotate(&connection, &name, annotations::FORCE, None).await?;
        }
        done?;
        for line in self.remains(&connection, &name).await? {
            progress.done(&line);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What is over, and what is not.
    async fn remains(&self, connection: &Connection, name: &str) -> Result<Vec<String>> {
        let seen = see(connection, name).await?;
        Ok(match &seen {
            Some((cluster, papers)) => self.direction.tell(cluster, papers),
            None => vec![format!("{name} is gone")],
        })
    }
}

impl Direction {
    const fn borrowed(self) -> bool {
        matches!(self, Self::Both | Self::Outgoing)
    }

    const fn lent(self) -> bool {
        matches!(self, Self::Both | Self::Incoming)
    }

    /// What the ForeignCluster is to say. Whoever parts from a cluster that never asked for anything has not forbidden it to
    /// ask: then peering again is all that it takes to have things as they were.
    fn ending(self, cluster: &ForeignCluster, papers: &Papers) -> write::Enabled {
        let no = Some(PeeringEnabled::No);
        let lends = cluster.peering_status(Part::IncomingPeering) != Status::None
            || cluster.spec.incoming_peering_enabled == PeeringEnabled::Yes
            || id_of(cluster)
                .is_some_and(|id| papers.offered_to(id).is_some() || in_force(papers.lent_to(id)));
        write::Enabled {
            outgoing: no.filter(|_| self.borrowed()),
            incoming: no.filter(|_| self == Self::Incoming || self == Self::Both && lends),
        }
    }

    /// Nothing is left of what was to end.
    fn is_over(self, cluster: &ForeignCluster, papers: &Papers) -> bool {
        let borrowed = self.borrowed() && is_borrowed(cluster, papers);
        let lent = self.lent() && is_lent(cluster, papers);
        !borrowed && !lent
    }

    /// What is over, and what stays.
    fn tell(self, cluster: &ForeignCluster, papers: &Papers) -> Vec<String> {
        let name = cluster.name_any();
        let refused = cluster.spec.incoming_peering_enabled == PeeringEnabled::No;
        let outgoing = match (self.borrowed(), is_borrowed(cluster, papers)) {
            (true, _) => Some(format!("nothing is borrowed from {name} any more")),
            (false, true) => Some(format!("what is borrowed from {name} stays")),
            (false, false) => None,
        };
        let incoming = match (self.lent(), is_lent(cluster, papers)) {
            (true, _) if refused => Some(format!(
                "nothing is lent to {name} any more, and it is refused until somebody runs liqoctl peer {name} \
                 --bidirectional, or --lend"
            )),
            (true, _) => Some(format!("nothing is lent to {name}")),
            (false, true) => Some(format!(
                "what is lent to {name} stays; liqoctl unpeer {name} --direction incoming ends it"
            )),
            (false, false) => None,
        };
        let known = format!("{name} stays known; liqoctl remove cluster {name} forgets it");
        outgoing.into_iter().chain(incoming).chain([known]).collect()
    }
}

/// Whether something is borrowed, or is left of what was.
fn is_borrowed(cluster: &ForeignCluster, papers: &Papers) -> bool {
    let over = cluster.peering_status(Part::OutgoingPeering) == Status::None;
    !over || in_force(id_of(cluster).and_then(|id| papers.lent_by(id)))
}

/// Whether something is lent, or is left of what was. One who still asks is refused, and gets nothing.
fn is_lent(cluster: &ForeignCluster, papers: &Papers) -> bool {
    let status = cluster.peering_status(Part::IncomingPeering);
    let over = status == Status::None
        || status == Status::Denied && cluster.spec.incoming_peering_enabled == PeeringEnabled::No;
    !over || in_force(id_of(cluster).and_then(|id| papers.lent_to(id)))
}

fn in_force(contract: Option<&Contract>) -> bool {
    contract.and_then(|it| it.status.as_ref()).is_some_and(|status| status.phase.is_in_force())
}

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        let Command::Cluster(it) = self.command;
        it.command.run(&door.open(it.flags)?).await
    }
}

impl Remove {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let mut progress = Progress::new(access.stderr());
        let all = known::list(&connection).await?;
        let cluster = match known::find(&all, &self.name) {
            Ok(cluster) => cluster,
            Err(known::NotFound::Unknown { .. }) => {
                progress.done(&format!("{} is not known here", self.name));
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) => return Err(error.into()),
        };
        let name = cluster.name_any();
        if self.how.force {
            write::annotate(&connection, &name, annotations::FORCE, Some(labels::TRUE)).await?;
        }
        delete(&connection, cluster).await?;
        self.how.wait(&connection, &name, |_, _| false, &mut progress).await?;
        progress.done(&format!("{name} is gone"));
        Ok(ExitCode::SUCCESS)
    }
}

async fn delete(connection: &Connection, cluster: &ForeignCluster) -> Result<()> {
    let api: Api<ForeignCluster> = Api::all(connection.client.clone());
    let name = cluster.name_any();
    // Somebody may have added it again in the meantime; that one is not meant.
    let this_one = kube::api::Preconditions { uid: cluster.uid(), resource_version: None };
    let how = DeleteParams { preconditions: Some(this_one), ..DeleteParams::default() };
    match api.delete(&name, &how).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(connection.target.explain(&error))
            .with_context(|| format!("cannot delete the ForeignCluster {name}")),
    }
}

impl How {
    /// Waits until it is over, or the ForeignCluster is gone.
    async fn wait(
        self,
        connection: &Connection,
        name: &str,
        over: impl Fn(&ForeignCluster, &Papers) -> bool,
        progress: &mut Progress,
    ) -> Result<()> {
        let began = Instant::now();
        let mut uid = None;
        let mut patience = Patience::default();
        loop {
            let Some(seen) = patience.forgive(see(connection, name).await)? else {
                sleep(INTERVAL).await;
                continue;
            };
            let Some((cluster, papers)) = seen else { return Ok(()) };
            if *uid.get_or_insert_with(|| cluster.uid()) != cluster.uid() {
                return Ok(());
            }
            if over(&cluster, &papers) {
                return Ok(());
            }
            let waiting = waiting(&cluster);
            if began.elapsed() >= self.timeout {
                bail!(
                    "{name} did not part within {}: {waiting}. It goes on by itself; liqoctl status peer {name} shows \
                     how far it is{}",
                    age::text(self.timeout.try_into().unwrap_or(jiff::SignedDuration::MAX)),
                    if self.force { "" } else { ", and --force does not wait for the other cluster" }
                );
            }
            progress.busy(&format!("parting from {name}: {waiting}"));
            sleep(INTERVAL).await;
        }
    }
}

/// What parting waits for, in the words of the conditions.
fn waiting(cluster: &ForeignCluster) -> String {
    let conditions = [Part::OutgoingPeering, Part::IncomingPeering, Part::AuthenticationStatus];
    let conditions = conditions.into_iter().filter_map(|part| phases::condition(cluster, part));
    let going: Vec<_> = conditions
        .filter(|it| it.status == Status::Disconnecting || phases::is_bad(it.status))
        .map(phases::words)
        .collect();
    if !going.is_empty() {
        return going.join("; ");
    }
    match cluster.finalizers() {
        [] => "the controller manager has not noticed yet (liqoctl status shows whether it runs)".to_owned(),
        held => format!("held by {}", held.join(", ")),
    }
}

#[cfg(test)]
mod tests;
