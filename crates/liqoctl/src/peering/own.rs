//! What others must know to call this cluster: who it is, where its authentication service is, how it is recognised.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;
use liqo_api::cluster_config::{CLUSTER_CONFIG, CLUSTER_ID_CONFIG_MAP, CLUSTER_ID_KEY, CLUSTER_NAME_KEY};
use liqo_api::credentials::AUTH_SERVICE;
use liqo_api::names::Identity;
use liqo_api::{ClusterConfig, ClusterIdentity, Fingerprint};
use liqo_authentication::client::{CallError, Trust, identify};
use liqo_identity::key::PublicKey;
use liqo_inspect::{Installation, MANAGER};
use tokio::time::{Instant, sleep};

use super::key::Shown;
use super::verify;
use crate::access::Connection;
use crate::progress::Progress;

/// How often something that is missing is looked for again.
const INTERVAL: Duration = Duration::from_millis(500);

/// What others must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) identity: Identity,
    pub(crate) auth_url: String,
    pub(crate) fingerprint: Fingerprint,
    /// The key by which others recognise it.
    pub(crate) key: Shown,
}

/// What is missing for others to call; it may come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lack {
    Installation {
        namespace: String,
    },
    Identity,
    /// The reason why it has no address for others.
    Address(String),
    Certificate,
    /// Nobody answers behind the Service.
    Endpoints,
    /// The service shows another certificate than the one that it should.
    OtherCertificate(String),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let logs = "liqoctl status shows whether the manager runs, liqoctl logs what it says";
        match self {
            Self::Installation { namespace } => {
                write!(f, "liqo is not installed in namespace {namespace}. Install it with liqoctl install")
            }
            Self::Identity => write!(f, "the cluster has no identity yet; the manager makes it. {logs}"),
            Self::Address(why) => {
                write!(f, "others cannot reach this cluster's authentication service: {why}")
            }
            Self::Certificate => {
                write!(f, "the authentication service has no certificate yet; the manager makes it. {logs}")
            }
            Self::Endpoints => {
                write!(f, "nobody answers behind the Service {AUTH_SERVICE}: no pod of it is ready. {logs}")
            }
            Self::OtherCertificate(why) => write!(f, "{why}. {logs}"),
        }
    }
}

/// Who the cluster is.
pub(crate) async fn identity(connection: &Connection) -> Result<Result<Identity, Lack>> {
    let maps: Api<ConfigMap> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let map = maps.get_opt(CLUSTER_ID_CONFIG_MAP).await;
    let map = map.map_err(|error| connection.target.explain(&error)).context("cannot read the identity")?;
    let Some(data) = map.and_then(|map| map.data) else {
        return Ok(Err(if manager(connection).await?.is_some() {
            Lack::Identity
        } else {
            Lack::Installation { namespace: connection.namespace.clone() }
        }));
    };
    let text = |key: &str| data.get(key).cloned().unwrap_or_default();
    let told = ClusterIdentity { cluster_id: text(CLUSTER_ID_KEY), cluster_name: text(CLUSTER_NAME_KEY) };
    Ok(Ok(told.parse().with_context(|| format!("the ConfigMap {CLUSTER_ID_CONFIG_MAP} makes no sense"))?))
}

/// Who the cluster is, or an error that says what to do.
pub(crate) async fn require_identity(connection: &Connection) -> Result<Identity> {
    identity(connection).await?.map_err(|lack| anyhow::anyhow!("{lack}"))
}

/// The Deployment of the manager, if it is installed.
pub(crate) async fn manager(connection: &Connection) -> Result<Option<Deployment>> {
    let api: Api<Deployment> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let found = api.get_opt(MANAGER).await;
    found.map_err(|error| connection.target.explain(&error)).context("cannot read the manager's Deployment")
}

/// Everything, as it is now.
async fn read(connection: &Connection) -> Result<Result<Own, Lack>> {
    let identity = match identity(connection).await? {
        Ok(identity) => identity,
        Err(lack) => return Ok(Err(lack)),
    };
    let (client, namespace) = (&connection.client, connection.namespace.as_str());
    let auth_url = match Installation::new(client.clone(), namespace).auth_url().await {
        Ok(url) => url,
        Err(why) => return Ok(Err(Lack::Address(why))),
    };
    let failed = |error: kube::Error| connection.target.explain(&error);
    let fingerprint = liqo_authentication::own_fingerprint(client, namespace).await.map_err(failed)?;
    let Some(fingerprint) = fingerprint else { return Ok(Err(Lack::Certificate)) };
    let key = key(connection).await?;
    Ok(Ok(Own { identity, auth_url, fingerprint, key }))
}

/// The cluster's key; not known as long as the manager has not told it.
async fn key(connection: &Connection) -> Result<Shown> {
    let configs: Api<ClusterConfig> = Api::all(connection.client.clone());
    let config = configs.get_opt(CLUSTER_CONFIG).await.map_err(|error| connection.target.explain(&error))?;
    let pem = config.and_then(|config| config.status?.public_key);
    let key = pem.and_then(|pem| PublicKey::from_pem(pem.as_bytes()).ok());
    Ok(key.map_or(Shown::NotAsked, Shown::Key))
}

/// Everything, once others can call; what is told besides is worth knowing.
pub(crate) async fn wait(
    connection: &Connection,
    timeout: Duration,
    progress: &mut Progress,
) -> Result<(Own, Option<String>)> {
    let deadline = Instant::now() + timeout;
    loop {
        let lack = match read(connection).await? {
            Ok(own) => match answers(connection, &own).await? {
                Ok(note) => return Ok((own, note)),
                Err(lack) => lack,
            },
            Err(lack) => lack,
        };
        // Waiting installs nothing.
        if Instant::now() >= deadline || matches!(lack, Lack::Installation { .. }) {
            bail!("{lack}");
        }
        progress.busy(&format!("waiting: {lack}"));
        sleep(INTERVAL).await;
    }
}

/// Whether the service answers. That this machine cannot reach it need not mean that others cannot.
async fn answers(connection: &Connection, own: &Own) -> Result<Result<Option<String>, Lack>> {
    let failure = match identify(&own.auth_url, &Trust::Fingerprint(own.fingerprint)).await {
        Ok(found) => {
            verify::check(&found, &own.auth_url, &own.identity.id)?;
            return Ok(Ok(None));
        }
        Err(CallError::Untrusted { reason, .. }) => {
            return Ok(Err(Lack::OtherCertificate(format!("{}: {reason}", own.auth_url))));
        }
        Err(error) => error,
    };
    if !has_endpoints(connection).await {
        return Ok(Err(Lack::Endpoints));
    }
    Ok(Ok(Some(format!("{failure}, at least from this machine; the other cluster must be able to"))))
}

async fn has_endpoints(connection: &Connection) -> bool {
    let api: Api<EndpointSlice> = Api::namespaced(connection.client.clone(), &connection.namespace);
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={AUTH_SERVICE}"));
    match api.list(&of_service).await {
        Ok(slices) => slices.items.iter().flat_map(|slice| &slice.endpoints).any(|endpoint| {
            endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
        }),
        // Who may not look cannot say that there is nobody.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests;
