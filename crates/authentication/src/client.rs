//! Calling another cluster's authentication service, over TLS that is verified.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use liqo_api::Fingerprint;
use liqo_api::names::NamespaceName;
use liqo_identity::Identity;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

use crate::csr::{self, NewKey};
use crate::objects::cut;
use crate::proof::prove;
use crate::tokens::{Token, hex};
use crate::wire::{
    Answer, CERTIFICATE_PATH, CertificateRequest, IDS_PATH, Ids, PeerIdentity, ProofOf, from_base64,
    key_to_base64, to_base64,
};

mod bundle;
mod http1;
#[cfg(test)]
mod tests;
mod trust;

pub use bundle::{CaBundle, InvalidBundle};
pub use trust::{Authorities, Trust};

use http1::{Call, Endpoint};

/// How long `GET /ids` may take; Liqo waits as long.
const IDENTIFY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a certificate may take: a little longer than the called side waits for its signer.
const CERTIFICATE_TIMEOUT: Duration = Duration::from_secs(35);
/// The longest answer that says who a cluster is.
const MAX_IDS: usize = 8 << 10;
/// The longest answer with a certificate: that, and a bundle of authorities.
const MAX_CERTIFICATE: usize = 256 << 10;
/// How much of a peer's words is repeated.
const MAX_WORDS: usize = 256;
/// How far two clusters' clocks may differ.
const CLOCK_SKEW: jiff::SignedDuration = jiff::SignedDuration::from_mins(5);

/// Why a call did not do what it should.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The URL is not usable.
    #[error("{url:?} is no URL of an authentication service: {reason}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The authorities that should vouch for the service are none, so nobody was called.
    #[error(
        "spec.authCaBundle does not say who vouches for the peer's authentication service: {0}. Give the certificate of the \
         authority that signs for it (`liqoctl add --ca-file` does), or remove the field"
    )]
    Bundle(#[from] InvalidBundle),
    /// Nobody answers there.
    #[error("cannot reach {url}: {reason}")]
    Unreachable {
        /// Where.
        url: String,
        /// What happened.
        reason: String,
    },
    /// Somebody answers, but it is not proven who.
    #[error("{url} cannot be trusted: {reason}")]
    Untrusted {
        /// Where.
        url: String,
        /// What is wrong with the certificate, and what to do.
        reason: String,
    },
    /// The peer said no.
    #[error("{url} refused ({status}): {words}")]
    Refused {
        /// Where.
        url: String,
        /// The status of its answer.
        status: u16,
        /// What it said, shortened and without our token.
        words: String,
    },
    /// The peer could not do it now.
    #[error("{url} cannot do it now ({status}): {words}")]
    Busy {
        /// Where.
        url: String,
        /// The status of its answer.
        status: u16,
        /// What it said, shortened and without our token.
        words: String,
        /// When it makes sense to ask again, if it said so.
        retry_after: Option<Duration>,
    },
    /// The answer makes no sense.
    #[error("{url} gave an answer that makes no sense: {reason}")]
    Nonsense {
        /// Where.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No key can be made here.
    #[error("no key can be made: {reason}")]
    NoKey {
        /// Why.
        reason: String,
    },
}

/// Asks a cluster who it is.
pub async fn identify(url: &str, trust: &Trust) -> Result<PeerIdentity, CallError> {
    ask(url, Endpoint::parse(url)?, trust).await.map(|(identity, _)| identity)
}

/// Asks a cluster who it is, at this address and nowhere else, whatever the host of the URL says: for URLs that strangers
/// told. Returns the fingerprint of the certificate that it showed, too.
pub async fn identify_at(
    url: &str,
    address: SocketAddr,
    trust: &Trust,
) -> Result<(PeerIdentity, Fingerprint), CallError> {
    let (identity, shown) = ask(url, Endpoint::parse(url)?.at(address), trust).await?;
    let reason = || CallError::Nonsense { url: url.to_owned(), reason: "it shows no certificate".to_owned() };
    Ok((identity, shown.ok_or_else(reason)?))
}

async fn ask(
    url: &str,
    endpoint: Endpoint,
    trust: &Trust,
) -> Result<(PeerIdentity, Option<Fingerprint>), CallError> {
    let call = Call { method: Method::GET, path: IDS_PATH, body: String::new(), max_answer: MAX_IDS };
    let answer = endpoint.call(trust, call, IDENTIFY_TIMEOUT).await?;
    if answer.status != StatusCode::OK {
        return Err(refused(url, &answer, &Token::default()));
    }
    let nonsense = |reason| CallError::Nonsense { url: url.to_owned(), reason };
    let ids: Ids = serde_json::from_slice(&answer.body)
        .map_err(|_| nonsense("it is not the JSON with a cluster's ID and name".to_owned()))?;
    Ok((ids.parse().map_err(nonsense)?, answer.shown))
}

/// What a peer gave us: a certificate for a key that only we have.
#[derive(Clone)]
pub(crate) struct Obtained {
    pub(crate) private_key: Zeroizing<String>,
    pub(crate) csr: String,
    /// PEM.
    pub(crate) certificate: Vec<u8>,
    pub(crate) certified: Certified,
    pub(crate) api_server_url: String,
    /// PEM.
    pub(crate) api_server_ca: Option<Vec<u8>>,
    pub(crate) namespace: NamespaceName,
}

impl fmt::Debug for Obtained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Obtained").field("certified", &self.certified).finish_non_exhaustive()
    }
}

/// Makes a key and asks `peer` for a certificate of it.
pub(crate) async fn request_certificate(
    url: &str,
    trust: &Trust,
    me: &Identity,
    peer: &PeerIdentity,
    token: &Token,
    now: Timestamp,
) -> Result<Obtained, CallError> {
    let key = csr::new_key(&me.id).map_err(|error| CallError::NoKey { reason: error.to_string() })?;
    let proof = prove(me, &ProofOf { called: &peer.identity.id, caller: &me.id, csr: key.csr.as_bytes() });
    let request = CertificateRequest {
        cluster: me.cluster_identity(),
        destination_cluster_token: token.clone(),
        certificate_signing_request: to_base64(&key.csr),
        public_key: Some(key_to_base64(&me.public_key())),
        proof: Some(to_base64(proof)),
    };
    let body =
        serde_json::to_string(&request).map_err(|error| CallError::NoKey { reason: error.to_string() })?;
    let call = Call { method: Method::POST, path: CERTIFICATE_PATH, body, max_answer: MAX_CERTIFICATE };
    let answer = Endpoint::parse(url)?.call(trust, call, CERTIFICATE_TIMEOUT).await?;
    if answer.status != StatusCode::ACCEPTED && answer.status != StatusCode::OK {
        return Err(refused(url, &answer, token));
    }
    let nonsense = |reason| CallError::Nonsense { url: url.to_owned(), reason };
    let answer: Answer = serde_json::from_slice(&answer.body)
        .map_err(|_| nonsense("it is not the JSON with a certificate".to_owned()))?;
    check_answer(&answer, key, me, now).map_err(nonsense)
}

/// Everything in an answer is a stranger's text until it is checked.
fn check_answer(answer: &Answer, key: NewKey, me: &Identity, now: Timestamp) -> Result<Obtained, String> {
    let certificate = from_base64(&answer.certificate, "its certificate")?;
    let certified = Certified::read(&certificate)?;
    if certified.public_key != key.public_key {
        return Err("its certificate is for another key".to_owned());
    }
    if certified.common_name != me.id.as_str() {
        return Err("its certificate is for another name".to_owned());
    }
    if certified.not_before > now.saturating_add(CLOCK_SKEW).unwrap_or(now) || certified.not_after <= now {
        return Err(format!(
            "its certificate is valid from {} to {}, and here it is {now}: the clocks of the two clusters differ",
            certified.not_before, certified.not_after
        ));
    }
    let api_server_ca = match &answer.api_server_ca {
        Some(ca) if !ca.is_empty() => Some(from_base64(ca, "the authority of its API server")?),
        _ => None,
    };
    if let Some(ca) = &api_server_ca
        && CertificateDer::pem_slice_iter(ca).next().is_none_or(|first| first.is_err())
    {
        return Err("the authority of its API server is no certificate".to_owned());
    }
    let url: http::Uri =
        answer.api_server_url.parse().map_err(|_| "the URL of its API server is none".to_owned())?;
    if url.scheme_str() != Some("https") || url.host().is_none() {
        return Err("the URL of its API server is no https URL".to_owned());
    }
    let namespace = answer.namespace.parse().map_err(|_| "the name of its namespace is none".to_owned())?;
    let NewKey { private_key, csr, .. } = key;
    let api_server_url = answer.api_server_url.clone();
    Ok(Obtained { private_key, csr, certificate, certified, api_server_url, api_server_ca, namespace })
}

fn refused(url: &str, answer: &http1::Answered, token: &Token) -> CallError {
    let (url, status) = (url.to_owned(), answer.status.as_u16());
    let words = words(&answer.body, token);
    match answer.status {
        StatusCode::BAD_REQUEST
        | StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NOT_FOUND
        | StatusCode::METHOD_NOT_ALLOWED => CallError::Refused { url, status, words },
        _ => CallError::Busy { url, status, words, retry_after: answer.retry_after },
    }
}

/// What a peer said, for people: short, on one line, and without our token, which old versions of Liqo repeat.
fn words(body: &[u8], token: &Token) -> String {
    let text = String::from_utf8_lossy(body);
    let text = if token.is_empty() { text.into_owned() } else { text.replace(token.reveal(), "[token]") };
    let line: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    cut(line.trim(), MAX_WORDS).to_owned()
}

/// What a certificate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certified {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
    pub(crate) common_name: String,
    pub(crate) public_key: Vec<u8>,
    /// The SHA-256 of the certificate, in hex.
    pub(crate) digest: String,
}

impl Certified {
    /// Reads the first certificate of a PEM text.
    pub(crate) fn read(pem: &[u8]) -> Result<Self, String> {
        let unusable = || "its certificate cannot be read".to_owned();
        let der = CertificateDer::from_pem_slice(pem).map_err(|_| unusable())?;
        let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| unusable())?;
        let time = |time: x509_parser::time::ASN1Time| Timestamp::from_second(time.timestamp());
        let validity = certificate.validity();
        let mut names = certificate.subject().iter_common_name();
        Ok(Self {
            not_before: time(validity.not_before).map_err(|_| unusable())?,
            not_after: time(validity.not_after).map_err(|_| unusable())?,
            common_name: names.next().and_then(|name| name.as_str().ok()).unwrap_or_default().to_owned(),
            public_key: certificate.public_key().subject_public_key.data.to_vec(),
            digest: hex(&<sha2::Sha256 as sha2::Digest>::digest(&der)),
        })
    }
}
