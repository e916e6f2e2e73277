//! Waiting for a peering, and telling each step.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use kube::Api;
use liqo_api::ForeignCluster;
use liqo_inspect::age;
use tokio::time::{Instant, sleep};

use super::Papers;
use super::phases::{self, Kind, Phases, Waiting};
use crate::access::Connection;
use crate::progress::Progress;

/// How often the objects are looked at.
const INTERVAL: Duration = Duration::from_millis(200);
/// A refusal that lasts this long stays: a new token may not be known everywhere at once.
const GRACE: Duration = Duration::from_secs(6);
/// Where lines cannot be written anew, how often it is told what is waited for.
const REMIND: Duration = Duration::from_secs(15);

/// For how long an API server may fail to answer one who waits: it may restart.
const PATIENCE: Duration = Duration::from_secs(20);

/// Looks that failed in a row.
#[derive(Debug, Default)]
pub(crate) struct Patience(Option<Instant>);

impl Patience {
    /// What was seen; nothing if that failed and it has not failed for long.
    pub(crate) fn forgive<T>(&mut self, seen: Result<T>) -> Result<Option<T>> {
        match seen {
            Ok(seen) => {
                self.0 = None;
                Ok(Some(seen))
            }
            Err(error) if self.0.get_or_insert_with(Instant::now).elapsed() < PATIENCE => {
                tracing::info!(error = format!("{error:#}"), "it is tried again");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Waits until we borrow from the peer, or it is clear that nothing comes of it. If somebody has just `decided` about the
/// offer, the manager is given a while to notice.
pub(crate) async fn established(
    connection: &Connection,
    name: &str,
    timeout: Duration,
    decided: bool,
    progress: &mut Progress,
) -> Result<()> {
    let look = Look { phases: phases::outgoing, decided };
    follow(connection, name, timeout, &look, progress).await
}

/// Waits until what is offered to the peer unasked lies there, or it is clear that nothing comes of it.
pub(crate) async fn offered(
    connection: &Connection,
    name: &str,
    timeout: Duration,
    progress: &mut Progress,
) -> Result<()> {
    let look = Look { phases: |cluster, _| phases::lending(cluster), decided: false };
    follow(connection, name, timeout, &look, progress).await
}

/// What is looked at.
struct Look {
    phases: fn(&ForeignCluster, &Papers) -> Phases,
    decided: bool,
}

async fn follow(
    connection: &Connection,
    name: &str,
    timeout: Duration,
    look: &Look,
    progress: &mut Progress,
) -> Result<()> {
    let began = Instant::now();
    let mut told = 0;
    let mut refused: Option<Instant> = None;
    let mut reminded = began;
    let mut patience = Patience::default();
    loop {
        let Some(cluster) = patience.forgive(see(connection, name).await)? else {
            sleep(INTERVAL).await;
            continue;
        };
        let (cluster, papers) = cluster.with_context(|| format!("{name} was removed in the meantime"))?;
        let phases = (look.phases)(&cluster, &papers);
        for (step, sentence) in phases.done.iter().skip(told) {
            progress.done(&format!("{}: {sentence}", step.name()));
        }
        told = told.max(phases.done.len());
        let Some(waiting) = phases.waiting else { return Ok(()) };
        let since = text(&waiting, began);
        if waiting.kind == Kind::Person && !look.decided {
            bail!("{}: {}", waiting.step.name(), waiting.why);
        }
        let going = waiting.kind == Kind::Going;
        refused = if going { None } else { Some(refused.unwrap_or_else(Instant::now)) };
        if refused.is_some_and(|since| since.elapsed() >= GRACE) {
            progress.failed(&format!("{}: {}", waiting.step.name(), waiting.why));
            bail!(
                "{}. It is tried again by itself; liqoctl status peer {name} shows more",
                waiting.step.lacking(name)
            );
        }
        if began.elapsed() >= timeout {
            bail!(
                "not done within {}: {since}. It goes on by itself; liqoctl status peer {name} shows how far it is",
                age::text(timeout.try_into().unwrap_or(jiff::SignedDuration::MAX))
            );
        }
        progress.busy(&since);
        if reminded.elapsed() >= REMIND {
            progress.remind(&since);
            reminded = Instant::now();
        }
        sleep(INTERVAL).await;
    }
}

/// A ForeignCluster and what lies in its namespace; `None` if it is gone.
pub(crate) async fn see(connection: &Connection, name: &str) -> Result<Option<(ForeignCluster, Papers)>> {
    let api: Api<ForeignCluster> = Api::all(connection.client.clone());
    let cluster = api.get_opt(name).await.map_err(|error| connection.target.explain(&error))?;
    let Some(cluster) = cluster else { return Ok(None) };
    let papers = Papers::read(&connection.client, &cluster).await?;
    Ok(Some((cluster, papers)))
}

/// What is waited for, and since when.
fn text(waiting: &Waiting, began: Instant) -> String {
    // What the cluster says may be older than this command.
    let since = waiting.since.map_or_else(
        || jiff::SignedDuration::try_from(began.elapsed()).unwrap_or_default(),
        |since| Timestamp::now().duration_since(since),
    );
    format!("waiting for the {} since {}: {}", waiting.step.name(), age::text(since), waiting.why)
}

#[cfg(test)]
mod tests;
