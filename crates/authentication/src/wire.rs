//! What is said on the wire: the JSON of Liqo's authentication service, with fields of ours that others may ignore.
//!
//! `GET /ids` is answered with [`Ids`], `POST /identity/certificate` with [`Answer`]. What comes in is parsed into types
//! that hold what must hold; until then it is a stranger's text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use liqo_api::names::{ClusterId, Identity};
use liqo_api::{ClusterIdentity, Fingerprint};
use liqo_identity::key::PublicKey;
use serde::{Deserialize, Serialize};

use crate::tokens::Token;

#[cfg(test)]
mod tests;

/// The path that tells who a cluster is.
pub(crate) const IDS_PATH: &str = "/ids";
/// The path that gives certificates.
pub(crate) const CERTIFICATE_PATH: &str = "/identity/certificate";

/// The longest request body; a real one has about 2 KiB.
pub(crate) const MAX_BODY: usize = 64 << 10;
/// The longest token that is looked at; ours have 137 characters at most.
const MAX_TOKEN: usize = 1024;
/// The longest signing request, as PEM; one with an Ed25519 key has 400 characters.
const MAX_CSR: usize = 16 << 10;
/// The longest of the short texts: keys and signatures in base64.
const MAX_SHORT: usize = 256;

/// The answer to `GET /ids`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ids {
    pub(crate) cluster_id: String,
    pub(crate) cluster_name: String,
    /// Not in Liqo: the cluster's key, SPKI in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) public_key: Option<String>,
    /// Not in Liqo: the fingerprint of the certificate that the service shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fingerprint: Option<String>,
}

/// Who a cluster says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerIdentity {
    /// Its ID and name.
    pub identity: Identity,
    /// The key by which what it signs is recognised; old versions of Liqo have none.
    pub public_key: Option<PublicKey>,
    /// The fingerprint of its service's certificate, as it says itself.
    pub fingerprint: Option<Fingerprint>,
}

impl Ids {
    /// The same, parsed; the error says what is wrong with it.
    pub(crate) fn parse(&self) -> Result<PeerIdentity, String> {
        let identity =
            ClusterIdentity { cluster_id: self.cluster_id.clone(), cluster_name: self.cluster_name.clone() };
        let fingerprint = match &self.fingerprint {
            Some(text) => Some(text.parse().map_err(|_| "its fingerprint is none".to_owned())?),
            None => None,
        };
        Ok(PeerIdentity {
            identity: identity.parse().map_err(|error| error.to_string())?,
            public_key: self.public_key.as_deref().map(key_from_base64).transpose()?,
            fingerprint,
        })
    }
}

/// The body of `POST /identity/certificate`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CertificateRequest {
    pub(crate) cluster: ClusterIdentity,
    // `originClusterToken`, with which Liqo lets the peer call back, is neither sent nor read: nobody here needs to call
    // back, and a cluster's own token opens the door for everyone who has it.
    #[serde(default, skip_serializing_if = "Token::is_empty")]
    pub(crate) destination_cluster_token: Token,
    pub(crate) certificate_signing_request: String,
    /// Not in Liqo: the caller's key, SPKI in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) public_key: Option<String>,
    /// Not in Liqo: a signature with that key, in base64; see [`crate::proof`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) proof: Option<String>,
}

/// A key and a signature that is said to be made with it.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    pub(crate) key: PublicKey,
    pub(crate) signature: Vec<u8>,
}

/// A request whose parts are what they should be; whether they are true is another question.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) caller: Identity,
    pub(crate) token: Token,
    /// PEM, not looked at yet.
    pub(crate) csr: Vec<u8>,
    pub(crate) proof: Option<Proof>,
}

/// Reads a body. The error never repeats what was sent, as that may be a token in the wrong place.
pub(crate) fn parse(body: &[u8]) -> Result<Request, String> {
    if body.len() > MAX_BODY {
        return Err("the body is too long".to_owned());
    }
    let request: CertificateRequest = serde_json::from_slice(body).map_err(|error| {
        format!(
            "the body is not the JSON that is expected (line {}, column {})",
            error.line(),
            error.column()
        )
    })?;
    let caller = request
        .cluster
        .parse()
        .map_err(|_| "the cluster's ID and name must be DNS labels of 1 to 63 characters".to_owned())?;
    if request.destination_cluster_token.len() > MAX_TOKEN {
        return Err("the token is too long".to_owned());
    }
    let csr = request.certificate_signing_request.as_bytes();
    if csr.len() > MAX_CSR.div_ceil(3) * 4 {
        return Err("the certificate signing request is too long".to_owned());
    }
    let csr = BASE64
        .decode(csr)
        .map_err(|_| "the certificate signing request must be PEM, encoded in base64".to_owned())?;
    let proof = match (&request.public_key, &request.proof) {
        (None, None) => None,
        (Some(key), Some(signature)) => {
            Some(Proof { key: key_from_base64(key)?, signature: short_base64(signature, "proof")? })
        }
        _ => return Err("publicKey and proof must be given together".to_owned()),
    };
    Ok(Request { caller, token: request.destination_cluster_token, csr, proof })
}

/// The answer to `POST /identity/certificate`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Answer {
    /// The caller's tenant namespace.
    pub(crate) namespace: String,
    /// PEM in base64.
    pub(crate) certificate: String,
    pub(crate) api_server_url: String,
    /// PEM in base64; left out where the public authorities vouch for the server.
    #[serde(rename = "apiServerCA", default, skip_serializing_if = "Option::is_none")]
    pub(crate) api_server_ca: Option<String>,
}

/// A key as it is written here: SPKI in base64.
pub(crate) fn key_to_base64(key: &PublicKey) -> String {
    // The same bytes as in PEM, without its lines.
    key.to_pem().lines().filter(|line| !line.starts_with("-----")).collect()
}

/// Reads a key; only Ed25519 keys are.
pub(crate) fn key_from_base64(text: &str) -> Result<PublicKey, String> {
    let der = short_base64(text, "publicKey")?;
    let pem = pem::encode(&pem::Pem::new("PUBLIC KEY", der));
    PublicKey::from_pem(pem.as_bytes())
        .map_err(|_| "publicKey must be an Ed25519 key: SPKI, encoded in base64".to_owned())
}

fn short_base64(text: &str, field: &str) -> Result<Vec<u8>, String> {
    if text.len() > MAX_SHORT {
        return Err(format!("{field} is too long"));
    }
    BASE64.decode(text).map_err(|_| format!("{field} must be encoded in base64"))
}

/// Encodes as the wire has it.
pub(crate) fn to_base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64.encode(bytes)
}

/// Decodes what a peer sent in `field`.
pub(crate) fn from_base64(text: &str, field: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text).map_err(|_| format!("{field} is not encoded in base64"))
}

/// The message that a caller signs, see [`crate::proof`].
pub(crate) struct ProofOf<'a> {
    /// Who is called.
    pub(crate) called: &'a ClusterId,
    /// Who calls.
    pub(crate) caller: &'a ClusterId,
    /// The signing request, as PEM.
    pub(crate) csr: &'a [u8],
}
