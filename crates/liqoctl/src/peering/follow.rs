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

/// Waits until we borrow from the peer, or it is clear that nothing comes of it. If somebody has `decided`, the offer is not
/// waited for by others but by the manager, for a while.
pub(crate) async fn established(
    connection: &Connection,
    name: &str,
    timeout: Duration,
    decided: bool,
    progress: &mut Progress,
) -> Result<()> {
    let began = Instant::now();
    let mut told = 0;
    let mut refused: Option<Instant> = None;
    let mut reminded = began;
    loop {
        let phases = look(connection, name).await?;
        for (step, sentence) in phases.done.iter().skip(told) {
            progress.done(&format!("{}: {sentence}", step.name()));
        }
        told = told.max(phases.done.len());
        let Some(waiting) = phases.waiting else { return Ok(()) };
        let since = text(&waiting, began);
        refused = match waiting.kind {
            Kind::Going => None,
            Kind::Refused | Kind::Person if decided || waiting.kind == Kind::Refused => {
                Some(refused.unwrap_or_else(Instant::now))
            }
            Kind::Refused | Kind::Person => bail!("{}: {}", waiting.step.name(), waiting.why),
        };
        if refused.is_some_and(|since| since.elapsed() >= GRACE) {
            progress.failed(&format!("{}: {}", waiting.step.name(), waiting.why));
            bail!(
                "no {} from {name}. It is tried again by itself; liqoctl status peer {name} shows more",
                waiting.step.name()
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

async fn look(connection: &Connection, name: &str) -> Result<Phases> {
    let api: Api<ForeignCluster> = Api::all(connection.client.clone());
    let cluster = api.get_opt(name).await.map_err(|error| connection.target.explain(&error))?;
    let cluster = cluster.with_context(|| format!("{name} was removed in the meantime"))?;
    let papers = Papers::read(&connection.client, &cluster).await?;
    Ok(phases::outgoing(&cluster, &papers))
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
