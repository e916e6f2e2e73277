//! The client: TLS, limits and time-outs.

use std::time::Duration;

use hyper_rustls::FixedServerNameResolver;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use rustls::pki_types::ServerName;
use tower::ServiceBuilder;

use super::transport::{Connect, Transport};

/// Limits of one client. The defaults suit hundreds of clusters in one process.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// How long TCP and TLS together may take.
    pub connect_timeout: Duration,
    /// How long the server may take to begin its answer (the time waited for a free slot included).
    pub request_timeout: Duration,
    /// Requests under way at once, watches not counted.
    pub max_requests: usize,
    /// Watches open at once.
    pub max_watches: usize,
    /// Share connections between requests (HTTP/2) where the server can.
    pub http2: bool,
    /// How often a connection is asked whether it is still alive, and how long the answer may take.
    /// Without this, a connection cut in the middle looks merely quiet.
    pub keep_alive: (Duration, Duration),
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            // An API server allows 100 streams on a connection; stay well below on the shared one.
            max_requests: 64,
            max_watches: 256,
            http2: true,
            keep_alive: (Duration::from_secs(10), Duration::from_secs(5)),
        }
    }
}

/// Idle connections end after this; a controller that is quiet should not hold a server's memory.
const POOL_IDLE: Duration = Duration::from_secs(60);
/// Idle HTTP/1.1 connections kept.
const POOL_SIZE: usize = 4;
/// Flow-control windows: a stream that nobody reads must not fill the window of the whole connection.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// A client for `config` within `limits`. Unverified TLS is refused whatever `config` says.
pub fn client(config: &kube::Config, limits: &ClientConfig) -> Result<kube::Client, kube::Error> {
    if config.accept_invalid_certs {
        return Err(kube::Error::Service("unverified TLS is never used here; give the CA instead".into()));
    }
    // Two providers in one process make rustls refuse to choose; name ours. An error means it is chosen already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let shared = connector(config, limits, limits.http2)?;
    let upgrades = hyper(limits, connector(config, limits, false)?);
    let connect = {
        let limits = limits.clone();
        move || hyper(&limits, shared.clone())
    };
    let transport = Transport::new(limits, connect, upgrades);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(transport);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

pub(super) type Hyper = hyper_util::client::legacy::Client<Connect, Body>;

fn hyper(limits: &ClientConfig, connector: Connect) -> Hyper {
    let (interval, answer) = limits.keep_alive;
    hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_SIZE)
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(interval)
        .http2_keep_alive_timeout(answer)
        // Requests that are given up before the next question leave the connection idle; not asked then, it would be used
        // again and again though it is dead.
        .http2_keep_alive_while_idle(true)
        .build(connector)
}

fn connector(config: &kube::Config, limits: &ClientConfig, http2: bool) -> Result<Connect, kube::Error> {
    let (interval, answer) = limits.keep_alive;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(limits.connect_timeout));
    // The same care for HTTP/1.1, which has no ping of its own.
    tcp.set_keepalive(Some(interval));
    tcp.set_keepalive_interval(Some(answer));
    tcp.set_keepalive_retries(Some(2));
    tcp.set_tcp_user_timeout(Some(interval + answer));
    let builder = hyper_rustls::HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http();
    let builder = match &config.tls_server_name {
        Some(name) => {
            let name = ServerName::try_from(name.clone()).map_err(|error| {
                kube::Error::Service(format!("tls-server-name {name:?} is no host name: {error}").into())
            })?;
            builder.with_server_name_resolver(FixedServerNameResolver::new(name))
        }
        None => builder,
    };
    let tls = if http2 {
        builder.enable_http1().enable_http2().wrap_connector(tcp)
    } else {
        builder.enable_http1().wrap_connector(tcp)
    };
    Ok(Connect::new(tls, limits.connect_timeout))
}
