//! Whose client certificates are believed: those that the API server believes, also after its authorities changed.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use parking_lot::RwLock;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

/// Where Kubernetes tells them.
pub(crate) const CLIENT_CA: &str = "extension-apiserver-authentication";
const NAMESPACE: &str = "kube-system";
const KEY: &str = "client-ca-file";
/// How often it is looked whether they changed: they do every few years, and overlap.
const REFRESH: Duration = Duration::from_secs(300);
/// How soon it is looked again when that failed.
const AGAIN: Duration = Duration::from_secs(5);
/// How long the answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The authorities. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct Trust {
    provider: Arc<CryptoProvider>,
    current: Arc<RwLock<Option<Current>>>,
}

#[derive(Debug)]
struct Current {
    pem: String,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Default for Trust {
    fn default() -> Self {
        Self { provider: Arc::new(aws_lc_rs::default_provider()), current: Arc::default() }
    }
}

impl Trust {
    /// Follows what the API server of `client` believes.
    pub(super) async fn follow(&self, client: &kube::Client) {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        loop {
            let found = tokio::time::timeout(TIMEOUT, maps.get(CLIENT_CA)).await;
            let read = match found {
                Ok(Ok(map)) => self.set(map.data.unwrap_or_default().remove(KEY).unwrap_or_default()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("no answer".to_owned()),
            };
            let wait = match read {
                Ok(()) => REFRESH,
                Err(error) => {
                    tracing::warn!(
                        error,
                        "it is not known whose client certificates the API server believes"
                    );
                    AGAIN
                }
            };
            tokio::time::sleep(wait).await;
        }
    }

    fn set(&self, pem: String) -> Result<(), String> {
        if self.current.read().as_ref().is_some_and(|current| current.pem == pem) {
            return Ok(());
        }
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate = certificate.map_err(|error| format!("not PEM: {error}"))?;
            roots.add(certificate).map_err(|error| error.to_string())?;
        }
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&self.provider));
        let verifier = builder.allow_unauthenticated().build().map_err(|error| error.to_string())?;
        *self.current.write() = Some(Current { pem, verifier });
        Ok(())
    }
}

impl ClientCertVerifier for Trust {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verifier = self.current.read().as_ref().map(|current| Arc::clone(&current.verifier));
        let verifier = verifier.ok_or_else(|| Error::General("no authority is known yet".to_owned()))?;
        verifier.verify_client_cert(end_entity, intermediates, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
