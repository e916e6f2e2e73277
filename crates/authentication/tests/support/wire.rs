//! The wire as a stranger sees it: built from the documents, not from the room's code.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use liqo_identity::Identity;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// A signing request with any subject, and its key.
pub(crate) fn csr(organization: &str, name: &str, sans: &[&str]) -> (String, KeyPair) {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let sans: Vec<_> = sans.iter().map(|san| (*san).to_owned()).collect();
    let mut params = CertificateParams::new(sans).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, name);
    (params.serialize_request(&key).unwrap().pem().unwrap(), key)
}

/// The proof, as the documents describe it.
pub(crate) fn proof(signer: &Identity, called: &str, caller: &str, csr: &str) -> String {
    let mut message = b"liqo.io/authentication-proof/v1".to_vec();
    for id in [called, caller] {
        message.push(0);
        message.extend_from_slice(id.as_bytes());
    }
    message.push(0);
    message.extend_from_slice(&Sha256::digest(csr));
    base64(signer.sign(&message))
}

pub(crate) fn public_key(identity: &Identity) -> String {
    identity.public_key().to_pem().lines().filter(|line| !line.starts_with("-----")).collect()
}

/// A request as Liqo 0.4 makes it.
pub(crate) fn old_request(id: &str, name: &str, token: &str, csr: &str) -> Value {
    json!({
        "cluster": { "clusterID": id, "clusterName": name },
        "destinationClusterToken": token,
        "certificateSigningRequest": base64(csr),
    })
}

/// A request with a proof.
pub(crate) fn request(caller: &Identity, called: &str, token: &str, csr: &str) -> Value {
    let mut body = old_request(caller.id.as_str(), caller.name.as_str(), token, csr);
    body["publicKey"] = json!(public_key(caller));
    body["proof"] = json!(proof(caller, called, caller.id.as_str(), csr));
    body
}

#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
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
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// A TCP connection from one of this machine's own addresses.
pub(crate) async fn tcp(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(from, 0))?;
    socket.connect(to).await
}

pub(crate) async fn tls(from: IpAddr, to: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate))
        .with_no_client_auth();
    let name = ServerName::from(to.ip());
    TlsConnector::from(Arc::new(config)).connect(name, tcp(from, to).await?).await
}

/// Status and body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends bytes and reads what comes until the end.
pub(crate) async fn exchange(from: IpAddr, to: SocketAddr, request: &[u8]) -> std::io::Result<Answer> {
    let mut stream = tls(from, to).await?;
    // The server may answer, and close, before it has read all.
    let written = stream.write_all(request).await;
    let read = tokio::time::timeout(Duration::from_secs(60), rest(&mut stream)).await;
    let text = read.map_err(std::io::Error::other)?;
    if text.is_empty() {
        written?;
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(parse(&text))
}

/// All that still comes.
pub(crate) async fn rest(stream: &mut TlsStream<TcpStream>) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        text.extend_from_slice(&buffer[..length]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn parse(text: &str) -> Answer {
    let (headers, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = headers.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let (headers, body) = (headers.to_lowercase(), body.trim_end().to_owned());
    Answer { status: status.unwrap_or_else(|| panic!("{text}")), headers, body }
}

pub(crate) fn post_text(body: &str) -> Vec<u8> {
    // Liqo's client says text/plain.
    format!(
        "POST /identity/certificate HTTP/1.1\r\nHost: auth\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub(crate) async fn post_from(from: IpAddr, to: SocketAddr, body: &str) -> Answer {
    exchange(from, to, &post_text(body)).await.unwrap()
}

pub(crate) async fn get(from: IpAddr, to: SocketAddr, path: &str) -> Answer {
    exchange(from, to, format!("GET {path} HTTP/1.1\r\nHost: auth\r\n\r\n").as_bytes()).await.unwrap()
}
