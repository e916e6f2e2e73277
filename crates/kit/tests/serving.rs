//! Serving over real sockets: certificates that change, limits, probes, metrics, and an orderly end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use liqo_kit::Queue;
use liqo_kit::admin::Admin;
use liqo_kit::clusters::ClientConfig;
use liqo_kit::serve::{Certificates, ClientAuth, Peer, ServeConfig, serve, tls_config};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::{QueueConfig, WriteMetrics};
use rcgen::{CertificateParams, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;

struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["ca".into()]).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

struct Running {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

async fn start(router: Router, tls: Option<Arc<rustls::ServerConfig>>, config: ServeConfig) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(serve(listener, tls, router, config, stop.clone()));
    Running { address, stop, tasks }
}

fn routes() -> Router {
    Router::new()
        .route("/", get(|| async { "hello" }))
        .route("/echo", post(|body: String| async move { body }))
        .route(
            "/who",
            get(|peer: axum::Extension<Peer>| async move { peer.certificate.is_some().to_string() }),
        )
}

/// With `/slow`, which tells when it has begun, and takes so long from then on.
fn slow_routes(begun: &Arc<Notify>, takes: Duration) -> Router {
    let begun = Arc::clone(begun);
    let slow = move || {
        let begun = Arc::clone(&begun);
        async move {
            begun.notify_one();
            tokio::time::sleep(takes).await;
            "done"
        }
    };
    routes().route("/slow", get(slow))
}

async fn handshake(
    address: SocketAddr,
    ca: &Ca,
    identity: Option<(String, String)>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    let tcp = TcpStream::connect(address).await?;
    let name = ServerName::try_from("server").unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await
}

fn shown(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;

async fn speak<S>(stream: S, tasks: &mut JoinSet<()>) -> Sender
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tasks.spawn(async move {
        let _ = connection.await;
    });
    sender
}

async fn ask(sender: &mut Sender, method: &str, path: &str, body: &str) -> hyper::Result<(u16, String)> {
    let request = hyper::Request::builder()
        .method(method)
        .uri(path)
        .header("host", "server")
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap();
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

async fn fetch(address: SocketAddr, path: &str) -> (u16, String) {
    let mut tasks = JoinSet::new();
    let mut sender = speak(TcpStream::connect(address).await.unwrap(), &mut tasks).await;
    ask(&mut sender, "GET", path, "").await.unwrap()
}

/// A directory that is removed with the value.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_new_certificate_is_shown_without_a_restart_and_old_connections_go_on() {
    let ca = Ca::new();
    let directory = Directory::new("kit-serving");
    let (chain, key) = (directory.0.join("tls.crt"), directory.0.join("tls.key"));
    let write = |(certificate, private): (String, String)| {
        std::fs::write(&key, private).unwrap();
        std::fs::write(&chain, certificate).unwrap();
    };
    write(ca.issue("server"));
    let certificates = Certificates::from_files(&chain, &key).unwrap();
    let tls = tls_config(certificates.clone(), &ClientAuth::None).unwrap();
    let mut running = start(routes(), Some(tls), ServeConfig::default()).await;
    let follow = certificates.follow_files(
        chain.clone(),
        key.clone(),
        Duration::from_millis(20),
        running.stop.clone(),
    );
    running.tasks.spawn(follow);

    let old = handshake(running.address, &ca, None).await.unwrap();
    let first = shown(&old);
    let mut old = speak(old, &mut running.tasks).await;
    assert_eq!(ask(&mut old, "GET", "/", "").await.unwrap(), (200, "hello".into()));

    // Half a change (a key that does not belong to the certificate) changes nothing; the whole one does.
    std::fs::write(&key, ca.issue("server").1).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(shown(&handshake(running.address, &ca, None).await.unwrap()), first);
    write(ca.issue("server"));
    let deadline = Instant::now() + Duration::from_secs(5);
    while shown(&handshake(running.address, &ca, None).await.unwrap()) == first {
        assert!(Instant::now() < deadline, "the old certificate is still shown");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(ask(&mut old, "GET", "/", "").await.unwrap(), (200, "hello".into()));
}

#[tokio::test]
async fn a_client_certificate_is_demanded_verified_and_shown_to_the_handler() {
    let (ca, stranger) = (Ca::new(), Ca::new());
    let (chain, key) = ca.issue("server");
    let certificates = Certificates::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let tls = tls_config(certificates, &ClientAuth::Required(ca.pem.clone().into_bytes())).unwrap();
    let mut running = start(routes(), Some(tls), ServeConfig::default()).await;
    let stream = handshake(running.address, &ca, Some(ca.issue("client"))).await.unwrap();
    let mut sender = speak(stream, &mut running.tasks).await;
    assert_eq!(ask(&mut sender, "GET", "/who", "").await.unwrap().1, "true");
    for identity in [None, Some(stranger.issue("client"))] {
        // With TLS 1.3 the refusal reaches the client with its first read.
        if let Ok(stream) = handshake(running.address, &ca, identity).await {
            let mut sender = speak(stream, &mut running.tasks).await;
            assert!(ask(&mut sender, "GET", "/who", "").await.is_err());
        }
    }
}

#[tokio::test]
async fn a_stop_lets_requests_finish_and_takes_no_new_ones() {
    let begun = Arc::new(Notify::new());
    let routes = slow_routes(&begun, Duration::from_millis(800));
    let mut running = start(routes, None, ServeConfig::default()).await;
    let mut tasks = JoinSet::new();
    let mut idle = speak(TcpStream::connect(running.address).await.unwrap(), &mut tasks).await;
    assert_eq!(ask(&mut idle, "GET", "/", "").await.unwrap().0, 200);
    let mut busy = speak(TcpStream::connect(running.address).await.unwrap(), &mut tasks).await;
    let mut asking = JoinSet::new();
    asking.spawn(async move { ask(&mut busy, "GET", "/slow", "").await });
    begun.notified().await;
    running.stop.cancel();
    let stopped = Instant::now();
    assert_eq!(asking.join_next().await.unwrap().unwrap().unwrap(), (200, "done".into()));
    running.tasks.join_next().await.unwrap().unwrap();
    assert!(
        stopped.elapsed() < Duration::from_secs(3),
        "the idle connection held it up: {:?}",
        stopped.elapsed()
    );
    assert!(TcpStream::connect(running.address).await.is_err());
}

#[tokio::test]
async fn what_does_not_end_by_the_deadline_is_closed() {
    let config = ServeConfig { drain: Duration::from_millis(100), ..ServeConfig::default() };
    let begun = Arc::new(Notify::new());
    let mut running = start(slow_routes(&begun, Duration::from_secs(3600)), None, config).await;
    let mut asking = JoinSet::new();
    let address = running.address;
    asking.spawn(async move {
        let mut tasks = JoinSet::new();
        let mut sender = speak(TcpStream::connect(address).await.unwrap(), &mut tasks).await;
        ask(&mut sender, "GET", "/slow", "").await.is_err()
    });
    begun.notified().await;
    running.stop.cancel();
    running.tasks.join_next().await.unwrap().unwrap();
    assert!(asking.join_next().await.unwrap().unwrap(), "the request outlived the server");
}

#[tokio::test]
async fn bodies_headers_and_connections_have_limits() {
    let config = ServeConfig {
        max_body: 1000,
        header_timeout: Duration::from_secs(1),
        max_connections: 2,
        ..ServeConfig::default()
    };
    let running = start(routes(), None, config).await;
    let mut tasks = JoinSet::new();
    let mut sender = speak(TcpStream::connect(running.address).await.unwrap(), &mut tasks).await;
    assert_eq!(ask(&mut sender, "POST", "/echo", &"x".repeat(1000)).await.unwrap().0, 200);
    assert_eq!(ask(&mut sender, "POST", "/echo", &"x".repeat(1001)).await.unwrap().0, 413);
    drop(sender);

    // Two that say nothing hold both slots until the header's time is over; then a third is served.
    let started = Instant::now();
    let silent = [
        TcpStream::connect(running.address).await.unwrap(),
        TcpStream::connect(running.address).await.unwrap(),
    ];
    let third = tokio::time::timeout(Duration::from_secs(20), fetch(running.address, "/")).await.unwrap();
    assert_eq!(third.0, 200);
    assert!(started.elapsed() >= Duration::from_millis(500), "the silent ones were not in the way");
    drop(silent);
}

#[tokio::test]
async fn probes_say_what_fails_and_metrics_are_readable() {
    let mut registry = liqo_kit::metrics::registry();
    WatchMetrics::default().register(&mut registry);
    let writes = WriteMetrics::default();
    writes.register(&mut registry);
    let nobody = kube::Config::new("https://127.0.0.1:9".parse().unwrap());
    let nobody = liqo_kit::clusters::client(&nobody, &ClientConfig::default()).unwrap();
    let (_queue, _worker) = Queue::new("pods", nobody, QueueConfig::default(), &writes);
    let admin = Admin::new(registry);
    let running = start(admin.router(), None, ServeConfig::default()).await;
    assert_eq!(fetch(running.address, "/healthz").await, (200, "ok\n".into()));
    admin.ready.add("watch/pods", || Err("the first list is not complete".into()));
    admin.ready.add("lease", || Ok(()));
    let (status, text) = fetch(running.address, "/readyz?verbose").await;
    assert_eq!(status, 503);
    assert_eq!(text, "[+] lease: ok\n[-] watch/pods: the first list is not complete\nfailed\n");
    assert_eq!(fetch(running.address, "/healthz").await.0, 200);
    let (status, text) = fetch(running.address, "/metrics").await;
    assert_eq!(status, 200);
    for name in [
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "process_open_fds ",
        "liqo_write_enqueued_total{queue=\"pods\"} 0",
        "# EOF",
    ] {
        assert!(text.contains(name), "no {name} in\n{text}");
    }
}
