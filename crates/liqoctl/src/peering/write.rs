//! Small changes of ForeignClusters.

use anyhow::{Context as _, Result};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::ForeignCluster;
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_install::names::FIELD_MANAGER;
use serde_json::{Value, json};

use crate::access::Connection;

/// Says whether to borrow from a cluster.
pub(crate) async fn outgoing(connection: &Connection, name: &str, enabled: PeeringEnabled) -> Result<()> {
    change(connection, name, &json!({"spec": {"outgoingPeeringEnabled": enabled}})).await.map(drop)
}

/// What a ForeignCluster is to say about lending and borrowing; what is not said stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Enabled {
    pub(crate) outgoing: Option<PeeringEnabled>,
    pub(crate) incoming: Option<PeeringEnabled>,
}

/// Says so, in one write; in none where it is said already.
pub(crate) async fn enable(
    connection: &Connection,
    cluster: &ForeignCluster,
    wanted: &Enabled,
) -> Result<()> {
    let mut spec = serde_json::Map::new();
    let fields = [
        ("outgoingPeeringEnabled", wanted.outgoing, cluster.spec.outgoing_peering_enabled),
        ("incomingPeeringEnabled", wanted.incoming, cluster.spec.incoming_peering_enabled),
    ];
    for (field, wanted, said) in fields {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != said) {
            spec.insert(field.to_owned(), json!(wanted));
        }
    }
    if spec.is_empty() {
        return Ok(());
    }
    change(connection, &cluster.name_any(), &json!({ "spec": spec })).await.map(drop)
}

/// Does not refuse any more to lend to a cluster; whether it did.
pub(crate) async fn lend_again(connection: &Connection, cluster: &ForeignCluster) -> Result<bool> {
    let refused = cluster.spec.incoming_peering_enabled == PeeringEnabled::No;
    if refused {
        let auto = Enabled { incoming: Some(PeeringEnabled::Auto), ..Enabled::default() };
        enable(connection, cluster, &auto).await?;
    }
    Ok(refused)
}

/// Sets an annotation, or removes it.
pub(crate) async fn annotate(
    connection: &Connection,
    name: &str,
    key: &str,
    value: Option<&str>,
) -> Result<()> {
    change(connection, name, &json!({"metadata": {"annotations": {key: value}}})).await.map(drop)
}

/// Merges something into a ForeignCluster; `false` if it is gone.
async fn change(connection: &Connection, name: &str, patch: &Value) -> Result<bool> {
    let api: Api<ForeignCluster> = Api::all(connection.client.clone());
    let how = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    match api.patch(name, &how, &Patch::Merge(patch)).await {
        Ok(_) => Ok(true),
        // What is gone needs no change.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(connection.target.explain(&error))
            .with_context(|| format!("cannot change the ForeignCluster {name}")),
    }
}
