//! What is known of each peer: its namespace here, its key, and our identity there.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::ResourceExt;
use liqo_api::names::NamespaceName;
use liqo_api::{ForeignCluster, annotations, credentials, labels};
use liqo_core::contract::PublicKey;
use liqo_core::names::ClusterId;
use liqo_kit::clusters::Credentials;

use crate::paper::key_from_spki;

/// The peer's ID, as far as it is known and legal.
pub(crate) fn cluster_id(cluster: &ForeignCluster) -> Option<ClusterId> {
    cluster.spec.cluster_identity.as_ref()?.cluster_id.as_deref()?.parse().ok()
}

/// A tenant namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) created: Option<Timestamp>,
    pub(crate) deleting: bool,
    pub(crate) peer: ClusterId,
    /// By which what the peer signed is recognised.
    pub(crate) key: Option<PublicKey>,
}

impl Tenant {
    /// Reads a namespace; `None` if it is no peer's.
    pub(crate) fn read(namespace: &Namespace) -> Option<Self> {
        let is_tenant = namespace.labels().get(labels::TENANT_NAMESPACE).map(String::as_str);
        if is_tenant != Some(labels::TRUE) {
            return None;
        }
        let key = namespace.annotations().get(annotations::PEER_PUBLIC_KEY);
        Some(Self {
            name: namespace.name_any(),
            created: namespace.creation_timestamp().map(|time| time.0),
            deleting: namespace.metadata.deletion_timestamp.is_some(),
            peer: namespace.labels().get(labels::CLUSTER_ID)?.parse().ok()?,
            key: key.and_then(|key| key_from_spki(key).ok()),
        })
    }
}

/// Our identity at a peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) peer: ClusterId,
    /// Our tenant namespace there, and how to reach it; or what is wrong with what is kept.
    pub(crate) access: Result<Access, String>,
}

/// How to reach our tenant namespace at a peer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Access {
    pub(crate) namespace: NamespaceName,
    pub(crate) credentials: Credentials,
}

impl Held {
    /// Reads a Secret; `None` if it does not say whose it is.
    pub(crate) fn read(secret: &Secret) -> Option<Self> {
        let peer = secret.labels().get(labels::CLUSTER_ID)?.parse().ok()?;
        Some(Self { peer, access: Access::read(secret) })
    }
}

impl Access {
    fn read(secret: &Secret) -> Result<Self, String> {
        use credentials::identity as key;
        let data = secret.data.as_ref();
        let bytes = |key: &str| data.and_then(|data| data.get(key)).map(|bytes| bytes.0.as_slice());
        let need = |key: &str| bytes(key).ok_or_else(|| format!("its key {key} is missing"));
        let text = |key: &str| {
            let text = std::str::from_utf8(need(key)?).map_err(|_| format!("its key {key} is no text"))?;
            Ok::<_, String>(text.trim().to_owned())
        };
        let namespace = text(key::NAMESPACE)?.parse().map_err(|error| format!("{error}"))?;
        let (url, certificate) = (text(key::API_SERVER_URL)?, need(key::CERTIFICATE)?);
        let private_key = need(key::PRIVATE_KEY)?;
        let credentials = match bytes(key::API_SERVER_CA) {
            Some(ca) => Credentials::certificate(&url, ca, certificate, private_key)?,
            None => publicly_trusted(&url, certificate, private_key)?,
        };
        Ok(Self { namespace, credentials })
    }
}

/// Credentials for a server that the public authorities vouch for.
fn publicly_trusted(url: &str, certificate: &[u8], key: &[u8]) -> Result<Credentials, String> {
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "peer",
        "clusters": [{ "name": "peer", "cluster": { "server": url } }],
        "users": [{ "name": "us", "user": {
            "client-certificate-data": STANDARD.encode(certificate), "client-key-data": STANDARD.encode(key),
        } }],
        "contexts": [{ "name": "peer", "context": { "cluster": "peer", "user": "us" } }],
    });
    Credentials::kubeconfig(kubeconfig.to_string().as_bytes())
}
