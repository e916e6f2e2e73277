//! Whose word counts for a peer's certificate.

use std::fmt;
use std::sync::{Arc, OnceLock};

use liqo_api::{Fingerprint, ForeignClusterSpec};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// How the certificate of an authentication service is verified.
#[derive(Clone, Debug)]
pub enum Trust {
    /// It must be exactly this one. Neither its name nor its dates matter then.
    Fingerprint(Fingerprint),
    /// An authority must vouch for it, for the name in the URL.
    Authorities(Authorities),
    /// Any will do: whoever sits in between can take the token.
    Anyone,
}

impl Trust {
    /// What a ForeignCluster asks for; `authorities` count where it names no certificate.
    pub fn of(spec: &ForeignClusterSpec, authorities: &Authorities) -> Self {
        // A fingerprint that is no fingerprint cannot come from an API server, and must not open the door.
        let pinned = spec.auth_fingerprint.as_deref().map(str::parse::<Fingerprint>);
        match pinned {
            Some(Ok(fingerprint)) => Self::Fingerprint(fingerprint),
            None if spec.insecure_skip_tls_verify => Self::Anyone,
            _ => Self::Authorities(authorities.clone()),
        }
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
            Self::Authorities(authorities) => authorities.verifier()?,
            Self::Fingerprint(fingerprint) => Arc::new(Named { expected: Some(*fingerprint), provider }),
            Self::Anyone => Arc::new(Named { expected: None, provider }),
        };
        Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
    }
}

/// The authorities that vouch for authentication services: the machine's, or where it has none, those that browsers trust;
/// and others that someone added. Clones share them.
#[derive(Clone, Default)]
pub struct Authorities(Arc<OnceLock<Arc<RootCertStore>>>, Arc<Vec<CertificateDer<'static>>>);

impl Authorities {
    /// Adds authorities, in PEM. The error says what is wrong with them.
    pub fn with(pem: &[u8]) -> Result<Self, String> {
        let added: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|error| format!("the authorities are no PEM: {error}"))?;
        let mut roots = RootCertStore::empty();
        for authority in &added {
            roots.add(authority.clone()).map_err(|error| format!("an authority cannot be used: {error}"))?;
        }
        if added.is_empty() {
            return Err("there is no certificate among the authorities".to_owned());
        }
        Ok(Self(Arc::default(), Arc::new(added)))
    }

    fn verifier(&self) -> Result<Arc<dyn ServerCertVerifier>, rustls::Error> {
        // Read once: that is some hundred files on some machines.
        let roots = self.0.get_or_init(|| Arc::new(self.roots()));
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), provider()).build();
        Ok(verifier.map_err(|error| rustls::Error::General(error.to_string()))?)
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        roots.add_parsable_certificates(self.1.iter().cloned());
        roots
    }
}

impl fmt::Debug for Authorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorities").field("added", &self.1.len()).finish_non_exhaustive()
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
