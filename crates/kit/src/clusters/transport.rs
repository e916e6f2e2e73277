//! Which connection a request takes, and how many may be under way.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Bytes, Incoming};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{BoxError, Service};

use super::client::{ClientConfig, Hyper};

/// Watches that share one connection. Well below the 100 streams an API server allows, so that none waits.
const WATCHES_PER_CONNECTION: usize = 64;

/// TCP and TLS within one time limit: a stopped server accepts TCP and then says nothing.
#[derive(Clone)]
pub(super) struct Connect {
    tls: HttpsConnector<HttpConnector>,
    timeout: Duration,
}

impl Connect {
    pub(super) fn new(tls: HttpsConnector<HttpConnector>, timeout: Duration) -> Self {
        Self { tls, timeout }
    }
}

impl Service<Uri> for Connect {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.tls.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let timeout = self.timeout;
        let connecting = self.tls.call(uri);
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connection) => connection,
                Err(_) => Err(format!("no TLS connection within {} s", timeout.as_secs_f32()).into()),
            }
        })
    }
}

/// Sends plain requests over one shared connection, watches over a few others, upgrades over their own.
#[derive(Clone)]
pub(super) struct Transport {
    requests: Lane,
    watches: Arc<Watches>,
    // Exec, attach and port-forward upgrade the connection, which HTTP/2 cannot.
    upgrades: Hyper,
    timeout: Duration,
}

#[derive(Clone)]
struct Lane {
    client: Hyper,
    slots: Arc<Semaphore>,
    /// Whether the last request was answered, and whose turn it is while it was not.
    answered: Arc<AtomicBool>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl Lane {
    fn new(client: Hyper, slots: usize) -> Self {
        let slots = Arc::new(Semaphore::new(slots));
        Self { client, slots, answered: Arc::default(), turn: Arc::default() }
    }

    /// Sends a request; one after the other until one is answered. Those that begin together would each open a connection, of
    /// which all but one are thrown away as soon as it is known that one can be shared.
    async fn send(&self, request: Request<Body>) -> Result<Response<Incoming>, BoxError> {
        let answered = || self.answered.load(Ordering::Acquire);
        let turn = if answered() { None } else { Some(self.turn.lock().await) };
        // Who waited need not wait any longer when somebody before was answered.
        let turn = turn.filter(|_| !answered());
        let answer = self.client.request(request).await;
        self.answered.store(answer.is_ok(), Ordering::Release);
        drop(turn);
        Ok(answer?)
    }
}

/// The connections for watches, made when they are needed: most clusters need one, though many may be allowed.
struct Watches {
    lanes: Mutex<Vec<Lane>>,
    most: usize,
    client: Box<dyn Fn() -> Hyper + Send + Sync>,
}

impl Watches {
    /// A free slot. Fills one connection before it opens the next.
    fn slot(&self) -> Result<(Lane, OwnedSemaphorePermit), BoxError> {
        let mut lanes = self.lanes.lock();
        let free = |lane: &Lane| {
            let slot = Arc::clone(&lane.slots).try_acquire_owned().ok()?;
            Some((lane.clone(), slot))
        };
        if let Some(found) = lanes.iter().find_map(free) {
            return Ok(found);
        }
        let left = self.most.saturating_sub(lanes.len() * WATCHES_PER_CONNECTION);
        if left == 0 {
            let most = self.most;
            return Err(
                format!("{most} watches on this cluster are open, the most that this program opens").into()
            );
        }
        let lane = Lane::new((self.client)(), left.min(WATCHES_PER_CONNECTION));
        let found = free(&lane).ok_or("a new connection has no room for a watch")?;
        lanes.push(lane);
        Ok(found)
    }
}

impl Transport {
    pub(super) fn new(
        limits: &ClientConfig,
        client: impl Fn() -> Hyper + Send + Sync + 'static,
        upgrades: Hyper,
    ) -> Self {
        let requests = Lane::new(client(), limits.max_requests.max(1));
        let most = limits.max_watches.max(1);
        let watches = Watches { lanes: Mutex::default(), most, client: Box::new(client) };
        Self { requests, watches: Arc::new(watches), upgrades, timeout: limits.request_timeout }
    }

    async fn send(self, request: Request<Body>) -> Result<Response<AnswerBody>, BoxError> {
        if request.headers().contains_key(http::header::UPGRADE) {
            let response = self.upgrades.request(request).await?;
            return Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()));
        }
        let timeout = self.timeout;
        let started = async {
            let (response, slot) = if is_watch(request.uri()) {
                let (lane, slot) = self.watches.slot()?;
                (lane.send(request).await?, slot)
            } else {
                let slot = Arc::clone(&self.requests.slots).acquire_owned().await?;
                (self.requests.client.request(request).await?, slot)
            };
            Ok::<_, BoxError>(response.map(|body| {
                // The slot is taken until the answer has been read, or dropped, to its end.
                let held = move |frame| {
                    let _slot = &slot;
                    frame
                };
                body.map_err(BoxError::from).map_frame(held).boxed_unsync()
            }))
        };
        match tokio::time::timeout(timeout, started).await {
            Ok(response) => response,
            Err(_) => Err(format!("no answer within {} s", timeout.as_secs_f32()).into()),
        }
    }
}

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

fn is_watch(uri: &Uri) -> bool {
    let following_logs = |pair: &str| pair == "follow=true";
    uri.query().is_some_and(|query| {
        query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1" || following_logs(pair))
    })
}

impl Service<Request<Body>> for Transport {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    // Always ready: waiting happens in the call, where it delays one request and not all behind it.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}
