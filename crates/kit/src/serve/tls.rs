//! The server's certificate, replaceable while it serves.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use tokio_util::sync::CancellationToken;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Not the PEM it should be, or certificate and key do not belong together.
    #[error("the certificate or its key is not usable: {0}")]
    Certificate(String),
    /// The CA for client certificates is not usable.
    #[error("the CA for client certificates is not usable: {0}")]
    ClientCa(String),
}

/// The certificate a server shows. Clones share it; [`Certificates::replace`] takes effect with the next
/// handshake, and connections that exist go on.
#[derive(Clone)]
pub struct Certificates(Arc<RwLock<Arc<CertifiedKey>>>);

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("chain", &self.0.read().cert.len()).finish_non_exhaustive()
    }
}

impl Certificates {
    /// A certificate chain and its key, both PEM.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        Ok(Self(Arc::new(RwLock::new(certified(chain, key)?))))
    }

    /// The same from files, as Kubernetes mounts a TLS secret.
    pub fn from_files(chain: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::from_pem(&read(chain)?, &read(key)?)
    }

    /// Shows another certificate from now on. If it is not usable, the old one stays.
    pub fn replace(&self, chain: &[u8], key: &[u8]) -> Result<(), TlsError> {
        let certified = certified(chain, key)?;
        *self.0.write() = certified;
        Ok(())
    }

    /// Follows the files until `stop`: what they hold is compared every `interval`, because a mounted secret is
    /// swapped by a symbolic link that leaves file times alone.
    pub async fn follow_files(
        self,
        chain: PathBuf,
        key: PathBuf,
        interval: Duration,
        stop: CancellationToken,
    ) {
        let mut current = (read(&chain).unwrap_or_default(), read(&key).unwrap_or_default());
        while stop.run_until_cancelled(tokio::time::sleep(interval)).await.is_some() {
            let found = match (read(&chain), read(&key)) {
                (Ok(chain), Ok(key)) => (chain, key),
                (Err(error), _) | (_, Err(error)) => {
                    tracing::warn!(%error, "keeping the old certificate");
                    continue;
                }
            };
            if found == current {
                continue;
            }
            // Chain and key are two files: one may be new while the other is still old. Then this fails, and
            // the next look succeeds.
            match self.replace(&found.0, &found.1) {
                Ok(()) => {
                    tracing::info!(chain = %chain.display(), "certificate reloaded");
                    current = found;
                }
                Err(error) => tracing::warn!(%error, "keeping the old certificate"),
            }
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read()))
    }
}

/// Whether clients must show a certificate, and from whom (PEM).
#[derive(Clone, Debug)]
pub enum ClientAuth {
    /// No certificate is asked for.
    None,
    /// One may be shown; if so, it must be from this CA.
    Optional(Vec<u8>),
    /// One must be shown, from this CA.
    Required(Vec<u8>),
    /// As this says, for CAs that change while the server runs.
    By(Arc<dyn ClientCertVerifier>),
}

/// The TLS side of [`serve`](super::serve()): TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1.
pub fn tls_config(
    certificates: Certificates,
    clients: &ClientAuth,
) -> Result<Arc<rustls::ServerConfig>, TlsError> {
    let provider = provider();
    let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsError::Certificate(error.to_string()))?;
    let verifier = |ca: &[u8]| {
        let roots = Arc::new(client_roots(ca)?);
        Ok::<_, TlsError>(WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)))
    };
    let unusable = |error: rustls::server::VerifierBuilderError| TlsError::ClientCa(error.to_string());
    let builder = match clients {
        ClientAuth::None => builder.with_no_client_auth(),
        ClientAuth::By(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
        ClientAuth::Required(ca) => {
            builder.with_client_cert_verifier(verifier(ca)?.build().map_err(unusable)?)
        }
        ClientAuth::Optional(ca) => {
            let verifier = verifier(ca)?.allow_unauthenticated().build().map_err(unusable)?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(certificates));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn client_roots(ca: &[u8]) -> Result<RootCertStore, TlsError> {
    let unusable = |error: &dyn fmt::Display| TlsError::ClientCa(error.to_string());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca) {
        let certificate = certificate.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    Ok(roots)
}

fn certified(chain: &[u8], key: &[u8]) -> Result<Arc<CertifiedKey>, TlsError> {
    let unusable = |error: &dyn fmt::Display| TlsError::Certificate(error.to_string());
    let chain: Vec<_> =
        CertificateDer::pem_slice_iter(chain).collect::<Result<_, _>>().map_err(|error| unusable(&error))?;
    if chain.is_empty() {
        return Err(TlsError::Certificate("it contains no certificate".into()));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unusable(&error))?;
    // Checks that the key belongs to the certificate.
    let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| unusable(&error))?;
    Ok(Arc::new(certified))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}
