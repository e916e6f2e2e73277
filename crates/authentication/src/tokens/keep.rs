//! Making, listing and revoking tokens, as `liqoctl` does.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use liqo_api::credentials::{OWN_TOKEN_SECRET, TOKEN_KEY, remote_token_secret};
use liqo_api::labels;
use liqo_api::names::ClusterId;

use super::{NoRandomness, Record, Token, denied_config_map, own_secret, secret_name, text_of};
use crate::objects::{FIELD_MANAGER, labels_of};

/// What a new token is to be.
#[derive(Clone, Debug, Default)]
pub struct NewToken {
    /// How long a peer may come in by it; for ever, if not said.
    pub lifetime: Option<Duration>,
    /// What it is for.
    pub note: String,
    /// The only peer that may use it; the first that comes, if not said.
    pub peer: Option<ClusterId>,
}

/// Why something could not be done with a token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// No token could be made.
    #[error(transparent)]
    Random(#[from] NoRandomness),
    /// There is no such token.
    #[error("there is no token {id}; `liqoctl token list` shows those that exist")]
    Unknown {
        /// The ID that was asked for.
        id: String,
    },
    /// The manager did not make the cluster's own token yet.
    #[error(
        "the cluster has no token of its own yet: the Secret {OWN_TOKEN_SECRET} is missing or empty in the namespace \
         {namespace}; the controller manager makes it when it starts (`liqoctl status` shows whether it runs)"
    )]
    NoOwnToken {
        /// Where it was looked for.
        namespace: String,
    },
    /// The API server did not do it.
    #[error("cannot {what}: {source}")]
    Api {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: Box<kube::Error>,
    },
}

fn failed(what: impl Into<String>) -> impl FnOnce(kube::Error) -> TokenError {
    let what = what.into();
    move |source| TokenError::Api { what, source: Box::new(source) }
}

/// Makes a token for one peer. It can be shown now and never again.
pub async fn create(
    client: &kube::Client,
    namespace: &str,
    wanted: &NewToken,
) -> Result<(Record, Token), TokenError> {
    let (record, token) = Record::make(wanted, Timestamp::now())?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    secrets.create(&params(), &record.secret(namespace)).await.map_err(failed("keep the token"))?;
    Ok((record, token))
}

/// All peer tokens, the oldest first.
pub async fn list(client: &kube::Client, namespace: &str) -> Result<Vec<Record>, TokenError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let chosen = ListParams::default().labels(&format!("{}={}", labels::PEER_TOKEN, labels::TRUE));
    let found = secrets.list(&chosen).await.map_err(failed("list the tokens"))?;
    let mut records: Vec<_> = found.items.iter().filter_map(Record::read).collect();
    records.sort_by_key(|record| (record.created, record.id.clone()));
    Ok(records)
}

/// Revokes a token: nobody comes in by it any more, and whoever did is out within seconds.
pub async fn revoke(client: &kube::Client, namespace: &str, id: &str) -> Result<Record, TokenError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let what = format!("revoke the token {id}");
    let unknown = || TokenError::Unknown { id: id.to_owned() };
    let found = secrets.get_opt(&secret_name(id)).await.map_err(failed(what.clone()))?;
    let record = found.as_ref().and_then(Record::read).ok_or_else(unknown)?;
    if record.revoked.is_some() {
        return Ok(record);
    }
    let patch = Patch::Merge(Record::revoke_patch(Timestamp::now()));
    let patched = secrets.patch(&secret_name(id), &patching(), &patch).await.map_err(failed(what))?;
    Record::read(&patched).ok_or_else(unknown)
}

/// The cluster's own token.
pub async fn own(client: &kube::Client, namespace: &str) -> Result<Token, TokenError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let found = secrets.get_opt(OWN_TOKEN_SECRET).await.map_err(failed("read the cluster's own token"))?;
    found
        .and_then(|secret| text_of(&secret, TOKEN_KEY))
        .map(|text| Token::new(&text))
        .filter(|token| !token.is_empty())
        .ok_or_else(|| TokenError::NoOwnToken { namespace: namespace.to_owned() })
}

/// Gives the cluster another token of its own. Who came in by the old one stays; nobody else comes by it.
pub async fn rotate_own(client: &kube::Client, namespace: &str) -> Result<Token, TokenError> {
    let token = Token::new_own()?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let secret = own_secret(&token, namespace);
    secrets
        .patch(OWN_TOKEN_SECRET, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&secret))
        .await
        .map_err(failed("replace the cluster's own token"))?;
    Ok(token)
}

/// Puts a peer out: revokes the tokens it came with, and lets it not come back by the cluster's own.
pub async fn put_out(client: &kube::Client, namespace: &str, peer: &ClusterId) -> Result<(), TokenError> {
    for record in list(client, namespace).await? {
        if record.used_by.as_ref() == Some(peer) && record.revoked.is_none() {
            revoke(client, namespace, &record.id).await?;
        }
    }
    let digest = match own(client, namespace).await {
        Ok(token) => token.digest(),
        // Nobody came by a token that does not exist.
        Err(TokenError::NoOwnToken { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let map = denied_config_map(peer, &digest, namespace);
    let name = super::denied_name(peer);
    maps.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&map))
        .await
        .map_err(failed(format!("note that {peer} is not to come back")))?;
    Ok(())
}

/// Keeps the token that another cluster gave us, for our calls to it.
pub async fn keep_remote(
    client: &kube::Client,
    namespace: &str,
    peer: &ClusterId,
    token: &Token,
) -> Result<(), TokenError> {
    let mut labels = labels_of("liqo");
    labels.insert(labels::CLUSTER_ID.to_owned(), peer.to_string());
    labels.insert(labels::AUTH_TOKEN.to_owned(), String::new());
    let name = remote_token_secret(peer);
    let secret = Secret {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        data: Some([(TOKEN_KEY.to_owned(), ByteString(token.reveal().as_bytes().to_vec()))].into()),
        ..Secret::default()
    };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    secrets
        .patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(&secret))
        .await
        .map_err(failed(format!("keep the token of {peer}")))?;
    Ok(())
}

fn params() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

fn patching() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
