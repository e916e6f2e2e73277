//! Serving HTTP, with TLS whose certificate can change while connections go on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt};
use tower_http::limit::RequestBodyLimitLayer;

use sources::Sources;

mod sources;
mod tls;

pub use sources::source;
pub use tls::{Certificates, ClientAuth, TlsError, tls_config};

/// Limits of a server. Every one of them is what an attacker would otherwise choose.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    /// Connections at once; further ones wait in the kernel's queue.
    pub max_connections: usize,
    /// Connections at once from one [`source`]; further ones are closed, so that one client cannot keep all others out.
    pub max_per_source: usize,
    /// How long the TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long a request's header may take to arrive.
    pub header_timeout: Duration,
    /// How long a connection may last at all, whatever is going on; `None` is for servers of long requests.
    pub lifetime: Option<Duration>,
    /// The longest request body.
    pub max_body: usize,
    /// How long requests under way may take to finish when the server stops.
    pub drain: Duration,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self {
            max_connections: 1024,
            // API servers and monitoring come from few addresses, and are trusted.
            max_per_source: usize::MAX,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(10),
            lifetime: None,
            // An admission review holds two objects of at most 1.5 MiB each.
            max_body: 4 << 20,
            drain: Duration::from_secs(10),
        }
    }
}

/// Who is on the other end; in the extensions of every request.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The other end's address.
    pub address: SocketAddr,
    /// The client certificate, verified, where one was asked for and given.
    pub certificate: Option<CertificateDer<'static>>,
}

/// Serves `router` on `listener`, with TLS if there is a configuration for it, until `stop` is cancelled; then
/// lets requests under way finish, within `config.drain`.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
    router: Router,
    config: ServeConfig,
    stop: CancellationToken,
) {
    let server = Server {
        tls: tls.map(TlsAcceptor::from),
        router: router.layer(RequestBodyLimitLayer::new(config.max_body)),
        graceful: Graceful { drain: GracefulShutdown::new(), stop: stop.clone() },
        sources: Sources::new(config.max_per_source),
        config,
    };
    server.accept(listener, stop).await;
}

struct Server {
    tls: Option<TlsAcceptor>,
    router: Router,
    graceful: Graceful,
    sources: Sources,
    config: ServeConfig,
}

struct Graceful {
    drain: GracefulShutdown,
    stop: CancellationToken,
}

impl Server {
    async fn accept(self, listener: TcpListener, stop: CancellationToken) {
        let slots = Arc::new(Semaphore::new(self.config.max_connections));
        let mut connections = JoinSet::new();
        loop {
            // A slot first: what cannot be served is not accepted.
            let accepted = async {
                let slot = Arc::clone(&slots).acquire_owned().await.ok()?;
                Some((slot, listener.accept().await))
            };
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                Some((slot, accepted)) = accepted => match accepted {
                    Ok((stream, address)) => {
                        let Some(place) = self.sources.enter(address) else {
                            tracing::debug!(%address, "too many connections from there; closed");
                            continue;
                        };
                        let connection = self.connection(stream, address);
                        connections.spawn(async move {
                            connection.await;
                            drop((slot, place));
                        });
                    }
                    // Out of file descriptors, most likely: waiting lets connections end.
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                },
            }
        }
        drop(listener);
        let drained = self.graceful.drain.shutdown();
        if tokio::time::timeout(self.config.drain, drained).await.is_err() {
            tracing::warn!(connections = connections.len(), "connections did not end in time; closed");
        }
        connections.shutdown().await;
    }

    /// One connection, from the handshake to its end.
    fn connection(&self, stream: TcpStream, address: SocketAddr) -> impl Future<Output = ()> + Send + use<> {
        let (tls, router, config) = (self.tls.clone(), self.router.clone(), self.config.clone());
        let (watcher, stop) = (self.graceful.drain.watcher(), self.graceful.stop.clone());
        async move {
            let _ = stream.set_nodelay(true);
            let Some(acceptor) = tls else {
                return speak(stream, Peer { address, certificate: None }, router, &config, watcher).await;
            };
            let handshake = tokio::time::timeout(config.handshake_timeout, acceptor.accept(stream));
            match stop.run_until_cancelled(handshake).await {
                Some(Ok(Ok(stream))) => {
                    let certificates = stream.get_ref().1.peer_certificates();
                    let certificate =
                        certificates.and_then(<[_]>::first).map(|first| first.clone().into_owned());
                    speak(stream, Peer { address, certificate }, router, &config, watcher).await;
                }
                Some(Ok(Err(error))) => tracing::debug!(%address, %error, "TLS handshake failed"),
                Some(Err(_)) => tracing::debug!(%address, "TLS handshake took too long"),
                None => {}
            }
        }
    }
}

async fn speak<S>(
    stream: S,
    peer: Peer,
    router: Router,
    config: &ServeConfig,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let address = peer.address;
    let spoken = CancellationToken::new();
    let speaks = spoken.clone();
    let service = hyper::service::service_fn(move |mut request: hyper::Request<Incoming>| {
        speaks.cancel();
        request.extensions_mut().insert(peer.clone());
        let mut router = router
            .clone()
            .map_request(|request: hyper::Request<Incoming>| request.map(axum::body::Body::new));
        router.call(request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(config.header_timeout);
    // A peer that vanished without a word should not keep its slot.
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_concurrent_streams(250);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).into_owned();
    // The header's time limit starts with its first bytes; a peer that never sends any has this one.
    let silent = tokio::time::timeout(config.header_timeout, spoken.cancelled());
    let silent = async move {
        if silent.await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    let too_long = async {
        match config.lifetime {
            Some(lifetime) => tokio::time::sleep(lifetime).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        ended = watcher.watch(connection) => if let Err(error) = ended {
            tracing::debug!(%address, error, "connection ended");
        },
        () = silent => tracing::debug!(%address, "no request came in time; closed"),
        () = too_long => tracing::debug!(%address, "the connection lasted too long; closed"),
    }
}
