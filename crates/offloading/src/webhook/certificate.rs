//! The webhook's certificate.
//!
//! An authority signs one certificate and its key is forgotten at once: nobody can make another. So a renewal is another
//! authority, and goes in two steps, in none of which the API server is shown what it does not trust: first the new
//! authority is added to those that are trusted, and when the API server was told, the new certificate is shown.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

use super::SERVICE;
use crate::events::labels_of;
use crate::settings::Settings;
use crate::steps::Deed;

/// How long a certificate is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(365 * 24);
/// How long before its end it is replaced.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(120 * 24);
/// A certificate is valid from this long ago, for those whose clocks are behind.
const BACKDATE: SignedDuration = SignedDuration::from_hours(1);

const AUTHORITIES: &str = "ca.crt";
const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";
/// The ones to be shown next, once the API server trusts them.
const NEXT_CERTIFICATE: &str = "next.crt";
const NEXT_PRIVATE_KEY: &str = "next.key";

/// Why no certificate was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("no certificate can be made: {0}")]
    NotMade(#[from] rcgen::Error),
    #[error("no certificate can be made: its end is beyond all time")]
    Time,
}

/// The Secret.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) resource_version: String,
    /// PEM; the newest first.
    pub(crate) authorities: Vec<u8>,
    /// What is shown; nothing if it cannot be used.
    pub(crate) shown: Option<Shown>,
    /// Another one that waits to be shown: certificate and key, PEM.
    staged: Option<(Vec<u8>, Zeroizing<Vec<u8>>)>,
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kept").field("resource_version", &self.resource_version).finish_non_exhaustive()
    }
}

/// What the webhook shows.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// PEM.
    pub(crate) chain: Vec<u8>,
    /// PEM.
    pub(crate) key: Zeroizing<Vec<u8>>,
    expires: Timestamp,
}

impl Shown {
    /// When it is time for another one.
    pub(crate) fn due(&self) -> Timestamp {
        self.expires.checked_sub(RENEW_BEFORE).unwrap_or(self.expires)
    }

    /// Whether it is time for another one.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        now >= self.due()
    }

    fn read(chain: &[u8], key: &[u8]) -> Option<Self> {
        let leaf = CertificateDer::from_pem_slice(chain).ok()?;
        let (_, parsed) = X509Certificate::from_der(&leaf).ok()?;
        let expires = Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()?;
        Some(Self { chain: chain.to_vec(), key: Zeroizing::new(key.to_vec()), expires })
    }
}

impl Kept {
    pub(crate) fn read(secret: &Secret) -> Self {
        let bytes = |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).map(|it| it.0.as_slice());
        let shown = bytes(AUTHORITIES)
            .filter(|authorities| CertificateDer::from_pem_slice(authorities).is_ok())
            .and_then(|_| Shown::read(bytes(CERTIFICATE)?, bytes(PRIVATE_KEY)?));
        Self {
            resource_version: secret.resource_version().unwrap_or_default(),
            authorities: bytes(AUTHORITIES).unwrap_or_default().to_vec(),
            shown,
            staged: bytes(NEXT_CERTIFICATE)
                .zip(bytes(NEXT_PRIVATE_KEY))
                .map(|(chain, key)| (chain.to_vec(), Zeroizing::new(key.to_vec()))),
        }
    }

    /// The step that shows what waits to be shown.
    pub(super) fn promote(&self) -> Option<Deed> {
        let (chain, key) = self.staged.as_ref()?;
        let patch = json!({ "data": {
            CERTIFICATE: ByteString(chain.clone()),
            PRIVATE_KEY: ByteString(key.to_vec()),
            NEXT_CERTIFICATE: null,
            NEXT_PRIVATE_KEY: null,
        } });
        Some(Deed::Merge { resource_version: self.resource_version.clone(), patch })
    }
}

/// An authority, and a certificate of it.
struct Made {
    authority: String,
    chain: String,
    key: Zeroizing<String>,
}

/// The Secret with a new certificate.
pub(crate) fn create(settings: &Settings, now: Timestamp) -> Result<Secret, CertificateError> {
    let Made { authority, chain, key } = make(settings, now)?;
    let data = [(AUTHORITIES, authority), (CERTIFICATE, chain), (PRIVATE_KEY, key.to_string())];
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(SERVICE.to_owned()),
            namespace: Some(settings.namespace.to_string()),
            labels: Some(labels_of()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(data.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).into()),
        ..Secret::default()
    })
}

/// The change that replaces what cannot be used.
pub(crate) fn replace(settings: &Settings, now: Timestamp) -> Result<Value, CertificateError> {
    let Secret { data, .. } = create(settings, now)?;
    let mut patch = json!({ "data": data });
    patch["data"][NEXT_CERTIFICATE] = Value::Null;
    patch["data"][NEXT_PRIVATE_KEY] = Value::Null;
    Ok(patch)
}

/// The change that adds another certificate, whose authority is trusted from now on beside the present one.
pub(crate) fn stage(
    settings: &Settings,
    authorities: &[u8],
    now: Timestamp,
) -> Result<Value, CertificateError> {
    let Made { authority, chain, key } = make(settings, now)?;
    let present = String::from_utf8_lossy(authorities);
    // What was trusted before the present one signs nothing that is still shown.
    let end = "-----END CERTIFICATE-----";
    let present = present.split_inclusive(end).next().unwrap_or_default();
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    Ok(json!({ "data": {
        AUTHORITIES: bytes(&format!("{authority}{present}\n")),
        NEXT_CERTIFICATE: bytes(&chain),
        NEXT_PRIVATE_KEY: bytes(&key),
    } }))
}

fn make(settings: &Settings, now: Timestamp) -> Result<Made, CertificateError> {
    let (from, to) = (date(now, -BACKDATE)?, date(now, LIFETIME)?);
    let named = |name: &str| {
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, name);
        subject
    };
    let mut authority = CertificateParams::new(Vec::new())?;
    // Two authorities of one name would be taken for one another.
    authority.distinguished_name = named(&format!("{SERVICE} {}", now.as_second()));
    (authority.not_before, authority.not_after) = (from, to);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let signed = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let namespace = settings.namespace.as_str();
    let service =
        [SERVICE.to_owned(), format!("{SERVICE}.{namespace}"), format!("{SERVICE}.{namespace}.svc")];
    let names: Vec<_> = service.into_iter().chain(settings.webhook_names.iter().cloned()).collect();
    let mut shown = CertificateParams::new(names)?;
    shown.distinguished_name = named(SERVICE);
    (shown.not_before, shown.not_after) = (from, to);
    shown.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    shown.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let chain = shown.signed_by(&key, &issuer)?.pem();
    Ok(Made { authority: signed.pem(), chain, key: Zeroizing::new(key.serialize_pem()) })
}

fn date(now: Timestamp, offset: SignedDuration) -> Result<OffsetDateTime, CertificateError> {
    let seconds = now.checked_add(offset).map_err(|_| CertificateError::Time)?.as_second();
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| CertificateError::Time)
}
