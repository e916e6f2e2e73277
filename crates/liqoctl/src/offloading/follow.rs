//! Waiting until a namespace is where it should be, and telling what happens cluster by cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use liqo_api::NamespaceOffloading;
use liqo_api::namespace_offloading::{
    ConditionStatus, OffloadingPhase, RemoteNamespaceCondition, RemoteNamespaceConditionType,
    RemoteNamespaceConditions,
};
use liqo_inspect::age;
use tokio::time::{Instant, sleep};

use super::see;
use crate::access::Connection;
use crate::peering::follow::Patience;
use crate::progress::Progress;

/// How often the object is looked at.
const INTERVAL: Duration = Duration::from_millis(200);
/// A failure that lasts this long stays: a provider may just be about to make room.
const GRACE: Duration = Duration::from_secs(6);
/// Where lines cannot be written anew, how often it is told what is waited for.
const REMIND: Duration = Duration::from_secs(15);

/// One aspect of the state in one cluster.
pub(crate) fn aspect(
    all: &RemoteNamespaceConditions,
    type_: RemoteNamespaceConditionType,
) -> Option<&RemoteNamespaceCondition> {
    all.0.iter().find(|condition| condition.type_ == type_)
}

/// Whether the manager has seen the latest change.
fn is_told(offloading: &NamespaceOffloading) -> bool {
    let conditions = offloading.status.iter().flat_map(|status| &status.conditions);
    let told = conditions.filter_map(|condition| condition.observed_generation).max();
    told.is_some() && told >= offloading.metadata.generation
}

/// Waits until the namespace is where it should be, or it is clear that it does not come there.
pub(crate) async fn settled(
    connection: &Connection,
    name: &str,
    timeout: Duration,
    progress: &mut Progress,
) -> Result<()> {
    let began = Instant::now();
    let mut told = BTreeMap::new();
    let mut failing: Option<Instant> = None;
    let (mut reminded, mut patience) = (began, Patience::default());
    loop {
        let Some(seen) = patience.forgive(see(connection, name).await)? else {
            sleep(INTERVAL).await;
            continue;
        };
        let (_, offloading) =
            seen.with_context(|| format!("namespace {name} was deleted in the meantime"))?;
        let offloading = offloading
            .with_context(|| format!("the NamespaceOffloading of {name} was deleted in the meantime"))?;
        let status = offloading.status.clone().unwrap_or_default();
        let phase = status.offloading_phase.filter(|_| is_told(&offloading));
        if phase.is_some() {
            tell(&status.remote_namespaces_conditions, &mut told, progress);
            if let Some(wrong) =
                status.conditions.iter().find(|it| it.type_ == "Valid" && it.status == "False")
            {
                bail!("namespace {name}: {}", wrong.message);
            }
        }
        match phase {
            Some(OffloadingPhase::Ready) => return Ok(()),
            Some(OffloadingPhase::NoClusterSelected) => {
                let why = if status.remote_namespaces_conditions.is_empty() {
                    "no cluster lends to this one yet"
                } else {
                    "the selector selects none of those that lend"
                };
                progress.warn(&format!(
                    "namespace {name} is in no other cluster: {why}. It goes there by itself when one comes"
                ));
                return Ok(());
            }
            Some(OffloadingPhase::AllFailed | OffloadingPhase::SomeFailed) => {
                if failing.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                    bail!(
                        "not all clusters take namespace {name}. It is tried again by itself; liqoctl status namespace {name} \
                         shows more"
                    );
                }
            }
            _ => failing = None,
        }
        let waiting = match phase {
            None => "waiting for the manager to notice".to_owned(),
            Some(_) => waiting_for(&status.remote_namespaces_conditions),
        };
        if began.elapsed() >= timeout {
            bail!(
                "not done within {}: {waiting}. It goes on by itself; liqoctl status namespace {name} shows how far it is",
                age::text(timeout.try_into().unwrap_or(jiff::SignedDuration::MAX))
            );
        }
        progress.busy(&waiting);
        if reminded.elapsed() >= REMIND {
            progress.remind(&waiting);
            reminded = Instant::now();
        }
        sleep(INTERVAL).await;
    }
}

/// Tells what became of it in each cluster, once each.
fn tell(
    clusters: &BTreeMap<String, RemoteNamespaceConditions>,
    told: &mut BTreeMap<String, String>,
    progress: &mut Progress,
) {
    for (cluster, conditions) in clusters {
        let Some(ready) = aspect(conditions, RemoteNamespaceConditionType::Ready) else { continue };
        if told.get(cluster) == Some(&ready.reason) {
            continue;
        }
        let before = told.insert(cluster.clone(), ready.reason.clone());
        let line = format!("{cluster}: {}", ready.message);
        match (ready.status, ready.reason.as_str()) {
            (ConditionStatus::True, _) => progress.done(&line),
            // Those that were never meant are nobody's news.
            (_, "NotRequired") if before.is_none() => {}
            (_, "NotRequired") => progress.done(&format!("{cluster}: the namespace there is gone")),
            (ConditionStatus::False, "Withdrawing" | "Terminating") | (ConditionStatus::Unknown, _) => {}
            (ConditionStatus::False, _) => progress.failed(&line),
        }
    }
}

/// What is not there yet.
fn waiting_for(clusters: &BTreeMap<String, RemoteNamespaceConditions>) -> String {
    let waiting: Vec<_> = clusters
        .iter()
        .filter_map(|(cluster, conditions)| {
            let ready = aspect(conditions, RemoteNamespaceConditionType::Ready)?;
            let open = ready.status != ConditionStatus::True && ready.reason != "NotRequired";
            open.then(|| format!("{cluster}: {}", ready.message))
        })
        .collect();
    if waiting.is_empty() { "waiting".to_owned() } else { format!("waiting for {}", waiting.join("; ")) }
}
