//! Our identities at peers, as the Secrets keep them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use liqo_api::names::NamespaceName;
use liqo_api::{credentials, labels};
use liqo_core::names::ClusterId;
use liqo_kit::clusters::Credentials;

/// Our identity at a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The peer.
    pub peer: ClusterId,
    /// Our tenant namespace there, and how to reach it; or what is wrong with what is kept.
    pub access: Result<Access, String>,
}

/// How to reach our tenant namespace at a peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Our tenant namespace there.
    pub namespace: NamespaceName,
    /// With which we are let in.
    pub credentials: Credentials,
}

impl Held {
    /// Reads a Secret; `None` if it does not say whose it is.
    pub fn read(secret: &Secret) -> Option<Self> {
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
