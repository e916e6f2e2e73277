//! Finding the ForeignCluster that a person means.

use anyhow::{Context as _, Result};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::ForeignCluster;

use super::{id_of, name_of};
use crate::access::Connection;

/// Clusters that a message names; more would hide the message.
const SHOWN: usize = 10;

/// Why no cluster is meant, or several.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotFound {
    /// Nobody knows it.
    #[error("there is no cluster {wanted:?}. {known}")]
    Unknown { wanted: String, known: String },
    /// It could be one of several.
    #[error("several clusters are called {wanted:?}: {which}. Say which one by its name here or by its ID")]
    Several { wanted: String, which: String },
}

/// All clusters that are known.
pub(crate) async fn list(connection: &Connection) -> Result<Vec<ForeignCluster>> {
    let api: Api<ForeignCluster> = Api::all(connection.client.clone());
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            anyhow::bail!(
                "liqo is not installed in {}: it has no ForeignClusters. Install it with liqoctl install",
                connection.target
            )
        }
        Err(error) => Err(connection.target.explain(&error)).context("cannot list the known clusters"),
    }
}

/// The one that is meant: by the ForeignCluster's name, the cluster's ID, or the cluster's name where one has it.
pub(crate) fn find<'a>(all: &'a [ForeignCluster], wanted: &str) -> Result<&'a ForeignCluster, NotFound> {
    if let Some(found) = all.iter().find(|cluster| cluster.name_any() == wanted) {
        return Ok(found);
    }
    if let Some(found) = all.iter().find(|cluster| id_of(cluster) == Some(wanted)) {
        return Ok(found);
    }
    let called: Vec<_> = all.iter().filter(|cluster| name_of(cluster) == Some(wanted)).collect();
    match called[..] {
        [one] => Ok(one),
        [] => Err(NotFound::Unknown { wanted: wanted.to_owned(), known: known(all) }),
        _ => {
            let which = called
                .iter()
                .map(|it| format!("{} (ID {})", it.name_any(), id_of(it).unwrap_or("not known yet")));
            Err(NotFound::Several { wanted: wanted.to_owned(), which: which.collect::<Vec<_>>().join(", ") })
        }
    }
}

/// What is suggested when a cluster's name is completed.
pub(crate) fn suggestion(cluster: &ForeignCluster) -> (String, String) {
    (cluster.name_any(), format!("ID {}", id_of(cluster).unwrap_or("not known yet")))
}

fn known(all: &[ForeignCluster]) -> String {
    if all.is_empty() {
        return "No other cluster is known here: liqoctl generate-add-command, run at the other one, prints how to add it"
            .to_owned();
    }
    let names: Vec<String> = all.iter().take(SHOWN).map(ResourceExt::name_any).collect();
    let more = match all.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("Known are: {}{more}", names.join(", "))
}

#[cfg(test)]
mod tests;
