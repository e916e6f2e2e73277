//! The certificate that the authentication service shows.
//!
//! It is made once, signed by itself, and lives for ten years: peers recognise it by its fingerprint, which is the SHA-256
//! of the certificate, so another certificate is another fingerprint. It is replaced by itself a year before it ends; whoever
//! has the old fingerprint then needs the new one (`liqoctl generate-add-command` prints it). Deleting the Secret replaces it
//! at once. A certificate that someone else put into the Secret, such as cert-manager, is shown with its whole chain and never
//! replaced, however the Secret is marked: the mark is that of one certificate.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::Fingerprint;
use liqo_api::credentials::{AUTH_SERVICE, SERVING_CERTIFICATE_SECRET};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use time::OffsetDateTime;
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

use crate::objects::labels_of;

#[cfg(test)]
mod tests;

/// How long a certificate is valid.
const LIFETIME: SignedDuration = SignedDuration::from_hours(10 * 365 * 24);
/// How long before its end it is replaced.
const RENEW_BEFORE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// A certificate is valid from this long ago, for those whose clocks are behind.
const BACKDATE: SignedDuration = SignedDuration::from_hours(1);

/// Annotation of the Secret: the fingerprint of the certificate that we made, and hence may replace. It may outlive that one, as
/// whoever applies another certificate does not take foreign annotations away.
const SELF_SIGNED: &str = "authentication.liqo.io/self-signed";

const CERTIFICATE: &str = "tls.crt";
const PRIVATE_KEY: &str = "tls.key";

/// Why no certificate was made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("no certificate can be made: {0}")]
    NotMade(#[from] rcgen::Error),
    #[error("no certificate can be made: its end is beyond all time")]
    Time,
}

/// A Secret with a new certificate.
pub(crate) fn make(namespace: &str, now: Timestamp) -> Result<Secret, CertificateError> {
    // Browsers and older TLS libraries know P-256 and not all of them Ed25519.
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let names = [
        AUTH_SERVICE.to_owned(),
        format!("{AUTH_SERVICE}.{namespace}"),
        format!("{AUTH_SERVICE}.{namespace}.svc"),
        format!("{AUTH_SERVICE}.{namespace}.svc.cluster.local"),
    ];
    let mut params = CertificateParams::new(names)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, AUTH_SERVICE);
    params.distinguished_name = subject;
    params.not_before = date(now, -BACKDATE)?;
    params.not_after = date(now, LIFETIME)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.self_signed(&key)?;
    let fingerprint = Fingerprint::of_certificate(certificate.der());
    let private_key = Zeroizing::new(key.serialize_pem());
    let data = [(CERTIFICATE, certificate.pem()), (PRIVATE_KEY, private_key.to_string())];
    Ok(Secret {
        metadata: ObjectMeta {
            name: Some(SERVING_CERTIFICATE_SECRET.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels_of("liqo")),
            annotations: Some([(SELF_SIGNED.to_owned(), fingerprint.to_string())].into()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(data.map(|(key, value)| (key.to_owned(), ByteString(value.into_bytes()))).into()),
        ..Secret::default()
    })
}

fn date(now: Timestamp, offset: SignedDuration) -> Result<OffsetDateTime, CertificateError> {
    let seconds = now.checked_add(offset).map_err(|_| CertificateError::Time)?.as_second();
    OffsetDateTime::from_unix_timestamp(seconds).map_err(|_| CertificateError::Time)
}

/// The fingerprint of the certificate that the service of a cluster shows, as its Secret says; nothing if there is none
/// yet.
pub async fn own_fingerprint(
    client: &kube::Client,
    namespace: &str,
) -> Result<Option<Fingerprint>, kube::Error> {
    let secrets: kube::Api<Secret> = kube::Api::namespaced(client.clone(), namespace);
    let secret = secrets.get_opt(SERVING_CERTIFICATE_SECRET).await?;
    Ok(secret.as_ref().and_then(Serving::read).map(|serving| serving.fingerprint))
}

/// The certificate that the Secret holds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Serving {
    pub(crate) resource_version: String,
    pub(crate) uid: String,
    /// PEM.
    pub(crate) chain: Vec<u8>,
    /// PEM.
    pub(crate) key: Zeroizing<Vec<u8>>,
    pub(crate) fingerprint: Fingerprint,
    expires: Timestamp,
    ours: bool,
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

impl Serving {
    /// Reads the Secret; `None` if there is no certificate in it.
    pub(crate) fn read(secret: &Secret) -> Option<Self> {
        let data = secret.data.as_ref()?;
        let chain = data.get(CERTIFICATE)?.0.clone();
        let leaf = CertificateDer::from_pem_slice(&chain).ok()?;
        let (_, parsed) = X509Certificate::from_der(&leaf).ok()?;
        let fingerprint = Fingerprint::of_certificate(&leaf);
        Some(Self {
            resource_version: secret.resource_version().unwrap_or_default(),
            uid: secret.uid().unwrap_or_default(),
            key: Zeroizing::new(data.get(PRIVATE_KEY)?.0.clone()),
            fingerprint,
            expires: Timestamp::from_second(parsed.validity().not_after.timestamp()).ok()?,
            ours: secret.annotations().get(SELF_SIGNED) == Some(&fingerprint.to_string()),
            chain,
        })
    }

    /// Whether the other shows the same: the same certificates, with the same key.
    pub(crate) fn shows_the_same(&self, other: &Self) -> bool {
        (&self.chain, &self.key) == (&other.chain, &other.key)
    }

    /// Whether it is time for another one.
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.ours && self.expires.duration_since(now) < RENEW_BEFORE
    }
}
