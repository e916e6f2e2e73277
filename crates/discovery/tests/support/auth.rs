//! An authentication service as far as discovery needs one: HTTPS with `GET /ids`, and the client that asks it.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use liqo_api::Fingerprint;
use liqo_discovery::{Endpoint, Identify, IdentifyError, Ids};
use liqo_kit::serve::{Certificates, ClientAuth, ServeConfig, serve, tls_config};
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// A certificate with its key.
pub(crate) struct Certificate {
    chain: String,
    key: String,
    pub(crate) fingerprint: Fingerprint,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["liqo-auth".to_owned()]).unwrap().self_signed(&key).unwrap();
        let fingerprint = Fingerprint::of_certificate(certificate.der());
        Self { chain: certificate.pem(), key: key.serialize_pem(), fingerprint }
    }
}

/// Serves `/ids` in this thread's network; returns its port, and stops with `stop`.
pub(crate) async fn serve_ids(
    certificate: &Certificate,
    id: &str,
    name: &str,
    stop: CancellationToken,
) -> (u16, impl Future<Output = ()> + Send + use<>) {
    let listener = TcpListener::bind((std::net::Ipv6Addr::UNSPECIFIED, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let ids = json!({ "clusterId": id, "clusterName": name });
    let router = Router::new().route("/ids", get(move || async move { axum::Json(ids) }));
    let certificates =
        Certificates::from_pem(certificate.chain.as_bytes(), certificate.key.as_bytes()).unwrap();
    let tls = tls_config(certificates, &ClientAuth::None).unwrap();
    (port, serve(listener, Some(tls), router, ServeConfig::default(), stop))
}

/// Asks over real TLS and takes down which certificate it was shown.
#[derive(Debug, Default)]
pub(crate) struct Client;

impl Identify for Client {
    fn identify(&self, endpoint: Endpoint) -> BoxFuture<'static, Result<Ids, IdentifyError>> {
        Box::pin(async move {
            let failed = |error: String| IdentifyError::Failed(error);
            let (fingerprint, body) = fetch(&endpoint).await.map_err(failed)?;
            if let Some(expected) = endpoint.fingerprint.filter(|expected| *expected != fingerprint) {
                return Err(IdentifyError::Certificate(format!("expected {expected}, got {fingerprint}")));
            }
            let ids: serde_json::Value =
                serde_json::from_slice(&body).map_err(|error| failed(error.to_string()))?;
            let text = |key: &str| ids[key].as_str().unwrap_or_default().to_owned();
            Ok(Ids { cluster_id: text("clusterId"), cluster_name: text("clusterName"), fingerprint })
        })
    }
}

async fn fetch(endpoint: &Endpoint) -> Result<(Fingerprint, Bytes), String> {
    const LARGEST: usize = 4096;
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| text(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Any(provider)))
        .with_no_client_auth();
    let stream = TcpStream::connect(endpoint.address).await.map_err(|error| text(&error))?;
    let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| text(&error))?;
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await.map_err(|error| text(&error))?;
    let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).ok_or("no certificate")?;
    let fingerprint = Fingerprint::of_certificate(shown);
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
    let request = hyper::Request::get("/ids").header("host", &endpoint.host).body(Empty::<Bytes>::new());
    let answer = async {
        let response = sender.send_request(request.map_err(|error| text(&error))?).await;
        let response = response.map_err(|error| text(&error))?;
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        body.map(http_body_util::Collected::to_bytes).map_err(|error| text(&error))
    };
    tokio::select! {
        answer = answer => Ok((fingerprint, answer?)),
        ended = connection => Err(format!("the connection ended: {ended:?}")),
    }
}

/// Takes any certificate: which one it was is looked at afterwards.
#[derive(Debug)]
struct Any(Arc<CryptoProvider>);

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
