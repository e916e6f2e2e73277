//! One request to one service over one connection.

use std::net::SocketAddr;
use std::time::Duration;

use http::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use liqo_api::Fingerprint;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::trust::OTHER_CERTIFICATE;
use super::{CallError, Trust};

/// How long TCP and TLS together may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Where a service is.
pub(super) struct Endpoint {
    url: String,
    host: String,
    port: u16,
    authority: String,
    /// Before the service's own paths.
    prefix: String,
    /// Where to connect; if not said, wherever the host is.
    address: Option<SocketAddr>,
}

/// What is asked.
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) body: String,
    /// The longest answer that is read.
    pub(super) max_answer: usize,
}

/// What was answered.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    /// When it says that it makes sense to ask again.
    pub(super) retry_after: Option<Duration>,
    /// Of the certificate that was shown.
    pub(super) shown: Option<Fingerprint>,
}

impl Endpoint {
    pub(super) fn parse(url: &str) -> Result<Self, CallError> {
        let wrong = |reason: &str| CallError::Url { url: url.to_owned(), reason: reason.to_owned() };
        let uri: Uri = url.parse().map_err(|_| wrong("it is none"))?;
        if uri.scheme_str() != Some("https") {
            return Err(wrong("it must begin with https://"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("it names no host"))?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(wrong("it must have neither a user nor a query"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(wrong("it names no host"));
        }
        Ok(Self {
            url: url.to_owned(),
            host: host.to_owned(),
            port: authority.port_u16().unwrap_or(443),
            authority: authority.as_str().to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            address: None,
        })
    }

    /// The same, at this address and no other.
    pub(super) fn at(self, address: SocketAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    pub(super) async fn call(
        &self,
        trust: &Trust,
        call: Call,
        timeout: Duration,
    ) -> Result<Answered, CallError> {
        match tokio::time::timeout(timeout, self.exchange(trust, call)).await {
            Ok(answered) => answered,
            Err(_) => Err(self.unreachable(format!("no answer within {} s", timeout.as_secs()))),
        }
    }

    async fn exchange(&self, trust: &Trust, call: Call) -> Result<Answered, CallError> {
        let connecting = tokio::time::timeout(CONNECT_TIMEOUT, self.connect(trust));
        let stream = connecting.await.unwrap_or_else(|_| {
            Err(self.unreachable(format!("no TLS connection within {} s", CONNECT_TIMEOUT.as_secs())))
        })?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let shown = shown.map(|leaf| Fingerprint::of_certificate(leaf));
        let broken = |error: hyper::Error| self.unreachable(format!("the connection broke: {error}"));
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let request = Request::builder()
            .method(call.method)
            .uri(format!("{}{}", self.prefix, call.path))
            .header(HOST, &self.authority)
            .header(USER_AGENT, concat!("liqo-rs/", env!("CARGO_PKG_VERSION")))
            // As Liqo's client says it, and some servers expect.
            .header(CONTENT_TYPE, "text/plain")
            .header(CONNECTION, "close")
            .body(Full::new(Bytes::from(call.body)))
            .map_err(|error| self.unreachable(error.to_string()))?;
        let answering = async {
            let answer = sender.send_request(request).await.map_err(broken)?;
            let status = answer.status();
            let retry_after = answer.headers().get(RETRY_AFTER).and_then(seconds);
            let body =
                Limited::new(answer.into_body(), call.max_answer).collect().await.map_err(|error| {
                    CallError::Nonsense {
                        url: self.url.clone(),
                        reason: format!("it cannot be read: {error}"),
                    }
                })?;
            Ok(Answered { status, body: body.to_bytes(), retry_after, shown })
        };
        let mut answering = std::pin::pin!(answering);
        tokio::select! {
            answered = &mut answering => answered,
            // The connection may end before the answer has been taken from it.
            _ = connection => answering.await,
        }
    }

    async fn connect(&self, trust: &Trust) -> Result<TlsStream<TcpStream>, CallError> {
        let name = ServerName::try_from(self.host.clone()).map_err(|_| CallError::Url {
            url: self.url.clone(),
            reason: "its host is no name and no address".to_owned(),
        })?;
        let config = trust.config().map_err(|error| self.unreachable(error.to_string()))?;
        let connected = match self.address {
            Some(address) => TcpStream::connect(address).await,
            None => TcpStream::connect((self.host.as_str(), self.port)).await,
        };
        let stream = connected.map_err(|error| self.unreachable(error.to_string()))?;
        let connector = TlsConnector::from(std::sync::Arc::new(config));
        connector.connect(name, stream).await.map_err(|error| self.tls_failed(trust, &error))
    }

    /// A certificate that is not trusted is another matter than a line that is cut.
    fn tls_failed(&self, trust: &Trust, error: &std::io::Error) -> CallError {
        let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let url = self.url.clone();
        match cause {
            Some(rustls::Error::InvalidCertificate(error)) => {
                CallError::Untrusted { url, reason: trust.refusal(error) }
            }
            Some(rustls::Error::General(reason)) if reason.starts_with(OTHER_CERTIFICATE) => {
                let reason = format!(
                    "{reason}; if its certificate was replaced, run `liqoctl generate-add-command` there and use what \
                     it prints"
                );
                CallError::Untrusted { url, reason }
            }
            _ => self.unreachable(format!("no TLS: {error}")),
        }
    }

    fn unreachable(&self, reason: String) -> CallError {
        CallError::Unreachable { url: self.url.clone(), reason }
    }
}

/// A number of seconds; nothing if it is a date or nonsense, which nobody needs to understand.
fn seconds(value: &HeaderValue) -> Option<Duration> {
    value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}
