//! Small changes of ForeignClusters.

use anyhow::{Context as _, Result};
use kube::Api;
use kube::api::{Patch, PatchParams};
use liqo_api::ForeignCluster;
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_install::names::FIELD_MANAGER;
use serde_json::{Value, json};

use crate::access::Connection;

/// Says whether to borrow from a cluster.
pub(crate) async fn outgoing(connection: &Connection, name: &str, enabled: PeeringEnabled) -> Result<()> {
    change(connection, name, &json!({"spec": {"outgoingPeeringEnabled": enabled}})).await.map(drop)
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
