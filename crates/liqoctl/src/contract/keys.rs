//! The public keys of two clusters: from files, or from what a cluster knows.

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::cluster_config::CLUSTER_CONFIG;
use liqo_api::{ClusterConfig, Contract, annotations, labels};
use liqo_core::contract::PublicKey;
use liqo_peering::paper::{Keys, key_from_spki, key_from_text};

use crate::access::Connection;
use crate::peering::own;

/// A key as people pass it on, `ed25519:…`, or the file that has it.
pub(super) fn read(text: &str, whose: &str) -> Result<PublicKey> {
    if let Ok(key) = key_from_text(text) {
        return Ok(key);
    }
    let content = std::fs::read_to_string(text).with_context(|| {
        format!("cannot read the {whose}'s key: {text:?} is no key, and the file cannot be read")
    })?;
    key_from_text(&content).with_context(|| {
        format!(
            "{text} has no key of a cluster. The {whose} shows its own: kubectl get clusterconfig liqo \
             -o jsonpath='{{.status.publicKey}}'"
        )
    })
}

/// The keys of the parties as this cluster knows them: its own, and the peer's as it was noted when it came.
pub(super) async fn known(connection: &Connection, contract: &Contract) -> Result<Keys> {
    let me = own::require_identity(connection).await?;
    let of = async |id: &str| {
        if id == me.id.as_str() { own_key(connection).await } else { peers(connection, id).await }
    };
    Ok(Keys {
        provider: of(&contract.spec.provider_id).await?,
        consumer: of(&contract.spec.consumer_id).await?,
    })
}

async fn own_key(connection: &Connection) -> Result<PublicKey> {
    let api: Api<ClusterConfig> = Api::all(connection.client.clone());
    let config = api.get_opt(CLUSTER_CONFIG).await.map_err(|error| connection.target.explain(&error))?;
    let key = config.and_then(|config| config.status).and_then(|status| status.public_key);
    let key = key.context(
        "the cluster does not tell its own key yet; liqoctl status shows whether the manager runs",
    )?;
    key_from_text(&key).context("the ClusterConfig tells no key")
}

async fn peers(connection: &Connection, id: &str) -> Result<PublicKey> {
    let api: Api<Namespace> = Api::all(connection.client.clone());
    let of_peer = ListParams::default().labels(&format!(
        "{}=true,{}={id}",
        labels::TENANT_NAMESPACE,
        labels::CLUSTER_ID
    ));
    let found = api.list_metadata(&of_peer).await.map_err(|error| connection.target.explain(&error))?;
    let key =
        found.items.iter().find_map(|namespace| namespace.annotations().get(annotations::PEER_PUBLIC_KEY));
    let Some(key) = key else {
        bail!("this cluster does not know the key of {id}. Give both with --provider-key and --consumer-key");
    };
    key_from_spki(key).with_context(|| format!("what is noted as the key of {id} is none"))
}
