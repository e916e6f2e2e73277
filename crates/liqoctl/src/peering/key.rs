//! The key by which a cluster is told from another one that claims the same ID.

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::names::ClusterId;
use liqo_api::{annotations, labels};
use liqo_identity::key::PublicKey;
use liqo_peering::paper::key_from_spki;

use crate::access::Connection;

/// What a cluster showed of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Nobody asked it.
    NotAsked,
    /// It tells none, as old versions of Liqo do.
    Nothing,
    Key(PublicKey),
}

impl From<Option<PublicKey>> for Shown {
    fn from(key: Option<PublicKey>) -> Self {
        key.map_or(Self::Nothing, Self::Key)
    }
}

/// Another cluster claims an ID that is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "another cluster claims the ID {id}: the one that is known here has the key {known}, this one shows {shown}. Nothing was \
     changed. If the known one was installed anew, forget it first: liqoctl remove cluster {id}; if they are two clusters, one \
     of them needs another ID: liqoctl install --cluster-id"
)]
pub(crate) struct AnotherKey {
    id: ClusterId,
    known: String,
    shown: String,
}

/// Fails if a cluster is known by this ID and has another key. One whose key is not known yet may be anyone.
pub(crate) async fn check(connection: &Connection, id: &ClusterId, shown: &Shown) -> Result<()> {
    if *shown == Shown::NotAsked {
        return Ok(());
    }
    let namespaces: Api<Namespace> = Api::all(connection.client.clone());
    let of_it = format!("{}={},{}={id}", labels::TENANT_NAMESPACE, labels::TRUE, labels::CLUSTER_ID);
    let found = namespaces.list_metadata(&ListParams::default().labels(&of_it)).await;
    let found = found.map_err(|error| connection.target.explain(&error));
    let found = found.with_context(|| format!("cannot see by which key {id} is known"))?;
    // Whoever is being forgotten is not known any more.
    let kept = found.items.iter().filter(|tenant| tenant.metadata.deletion_timestamp.is_none());
    for noted in kept.filter_map(|tenant| tenant.annotations().get(annotations::PEER_PUBLIC_KEY)) {
        compare(id, noted, shown)?;
    }
    Ok(())
}

/// Compares what is noted of a key, as tenant namespaces have it, with what was shown.
fn compare(id: &ClusterId, noted: &str, shown: &Shown) -> Result<(), AnotherKey> {
    let known = key_from_spki(noted).ok().map(|key| PublicKey::from_bytes(key.as_bytes()));
    let shown = match shown {
        Shown::NotAsked => return Ok(()),
        Shown::Key(key) if known.as_ref() == Some(key) => return Ok(()),
        Shown::Key(key) => key.fingerprint(),
        Shown::Nothing => "none".to_owned(),
    };
    let known = known.map_or_else(|| "that cannot be read".to_owned(), |key| key.fingerprint());
    Err(AnotherKey { id: id.clone(), known, shown })
}

#[cfg(test)]
mod tests;
