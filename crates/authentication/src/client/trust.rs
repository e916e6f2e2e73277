//! Whose word counts for a peer's certificate.

use std::fmt;
use std::sync::{Arc, OnceLock};

use liqo_api::{Fingerprint, ForeignClusterSpec};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::{CaBundle, CallError, MAX_WORDS};
use crate::objects::cut;

/// How the certificate of an authentication service is verified.
#[derive(Clone, Debug)]
pub enum Trust {
    /// It must be exactly this one. Neither its name nor its dates matter then.
    Fingerprint(Fingerprint),
    /// One of these authorities must vouch for it, for the host in the URL.
    Bundle(CaBundle),
    /// A public authority must vouch for it, for the host in the URL.
    Authorities(Authorities),
    /// Any will do: whoever sits in between can take the token.
    Anyone,
}

impl Trust {
    /// What a ForeignCluster asks for: its fingerprint counts before its own authorities, those before the wish to verify
    /// nothing, and where it says nothing, `authorities` count. What cannot be read opens no door.
    pub fn of(spec: &ForeignClusterSpec, authorities: &Authorities) -> Result<Self, CallError> {
        let pinned = spec.auth_fingerprint.as_deref().map(str::parse::<Fingerprint>);
        if let Some(Ok(fingerprint)) = pinned {
            return Ok(Self::Fingerprint(fingerprint));
        }
        if let Some(pem) = &spec.auth_ca_bundle {
            return Ok(Self::Bundle(CaBundle::parse(pem.as_bytes())?));
        }
        // A fingerprint that is no fingerprint cannot come from an API server, and must not open the door.
        Ok(match pinned {
            None if spec.insecure_skip_tls_verify => Self::Anyone,
            _ => Self::Authorities(authorities.clone()),
        })
    }

    /// Whether it is known who answers.
    pub fn is_verified(&self) -> bool {
        !matches!(self, Self::Anyone)
    }

    pub(super) fn config(&self) -> Result<ClientConfig, rustls::Error> {
        let provider = provider();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let verifier: Arc<dyn ServerCertVerifier> = match self {
            Self::Authorities(authorities) => vouched_by(authorities.roots())?,
            Self::Bundle(bundle) => vouched_by(Arc::new(bundle.roots().map_err(general)?))?,
            Self::Fingerprint(fingerprint) => Arc::new(Named { expected: Some(*fingerprint), provider }),
            Self::Anyone => Arc::new(Named { expected: None, provider }),
        };
        Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
    }

    /// Why a certificate is not trusted, and what to do.
    pub(super) fn refusal(&self, error: &CertificateError) -> String {
        const FINGERPRINT: &str = "give its fingerprint, which `liqoctl generate-add-command` prints there, as \
                                   spec.authFingerprint";
        // A server may have any number of names.
        let words = error.to_string();
        let words = cut(&words, MAX_WORDS);
        match (error, self) {
            (CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }, _) => {
                format!(
                    "its certificate is for another host ({words}); call it by a name or an address that its certificate has, \
                 or {FINGERPRINT}"
                )
            }
            (_, Self::Bundle(_)) => format!(
                "none of the authorities in spec.authCaBundle vouches for its certificate ({words}); give the one that \
                 signed it (`liqoctl add --ca-file`), or {FINGERPRINT}"
            ),
            _ => format!(
                "no known authority vouches for its certificate ({words}); {FINGERPRINT}, or the authority that signed it \
                 as spec.authCaBundle"
            ),
        }
    }
}

fn vouched_by(roots: Arc<RootCertStore>) -> Result<Arc<WebPkiServerVerifier>, rustls::Error> {
    WebPkiServerVerifier::builder_with_provider(roots, provider()).build().map_err(general)
}

fn general(error: impl fmt::Display) -> rustls::Error {
    rustls::Error::General(error.to_string())
}

/// The authorities that vouch for authentication services of which nothing else is said: the machine's, or where it has none,
/// those that browsers trust. Clones share them.
#[derive(Clone, Default)]
pub struct Authorities(Arc<OnceLock<Arc<RootCertStore>>>);

impl Authorities {
    fn roots(&self) -> Arc<RootCertStore> {
        // Read once: that is some hundred files on some machines.
        Arc::clone(self.0.get_or_init(|| Arc::new(public())))
    }
}

fn public() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    roots
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorities").finish_non_exhaustive()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Begins the text of the error for a certificate that is not the expected one.
pub(super) const OTHER_CERTIFICATE: &str = "it shows the certificate";

/// Accepts one certificate, or any. That the other end has its key is checked in either case.
#[derive(Debug)]
struct Named {
    expected: Option<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let shown = Fingerprint::of_certificate(shown);
        match self.expected {
            Some(expected) if expected != shown => {
                Err(rustls::Error::General(format!("{OTHER_CERTIFICATE} {shown} and not {expected}")))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
