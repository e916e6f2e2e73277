//! `liqoctl offload`, `liqoctl unoffload` and `liqoctl status namespace`: namespaces that extend to other clusters.

pub(crate) mod follow;
pub(crate) mod offload;
pub(crate) mod reflect;
pub(crate) mod selector;
pub(crate) mod unoffload;
pub(crate) mod view;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use liqo_api::NamespaceOffloading;
use liqo_api::names::NAMESPACE_OFFLOADING;

use crate::access::Connection;

/// A namespace, and what its owner wants; `None` where there is none.
pub(crate) async fn see(
    connection: &Connection,
    name: &str,
) -> Result<Option<(Namespace, Option<NamespaceOffloading>)>> {
    let namespaces: Api<Namespace> = Api::all(connection.client.clone());
    let namespace = namespaces.get_opt(name).await.map_err(|error| connection.target.explain(&error))?;
    let Some(namespace) = namespace else { return Ok(None) };
    let api: Api<NamespaceOffloading> = Api::namespaced(connection.client.clone(), name);
    let offloading = api.get_opt(NAMESPACE_OFFLOADING).await;
    let offloading = offloading
        .map_err(|error| connection.target.explain(&error))
        .with_context(|| format!("cannot read the NamespaceOffloading of {name}; is liqo installed?"))?;
    Ok(Some((namespace, offloading)))
}
