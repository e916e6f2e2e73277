//! Logs, terminals and tunnels: what comes from the provider goes to who asked, and back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, UPGRADE};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use liqo_kit::ClientSource;
use liqo_kit::watch::Chain;
use liqo_providers::Link;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Refused, query};
use crate::metrics::VirtualNodeMetrics;

#[cfg(test)]
mod tests;

/// Logs read at once from one provider: they share connections with everything else that is asked there. Who comes then waits
/// for so long.
const READ: usize = 32;
const TURN: Duration = Duration::from_secs(20);
/// Logs followed at once: they share connections with watches, of which there may be more.
const FOLLOWED: usize = 256;
/// Terminals and tunnels at once to one provider; each has a connection of its own.
const UPGRADES: usize = 256;
/// How long the provider may take to begin its answer.
const BEGIN: Duration = Duration::from_secs(30);
/// How much of a refusal is passed on.
const LONGEST_REFUSAL: usize = 64 << 10;

/// Which headers an upgrade is agreed on with, besides those that begin with [`WEBSOCKET`].
const OF_UPGRADES: [HeaderName; 3] =
    [CONNECTION, UPGRADE, HeaderName::from_static("x-stream-protocol-version")];
const WEBSOCKET: &str = "sec-websocket-";

/// What is open.
pub(super) struct Streams {
    places: Mutex<HashMap<String, Places>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    metrics: VirtualNodeMetrics,
}

/// The places at one provider.
#[derive(Clone)]
struct Places {
    read: Arc<Semaphore>,
    followed: Arc<Semaphore>,
    upgrades: Arc<Semaphore>,
}

impl Places {
    fn new() -> Self {
        let places = |most| Arc::new(Semaphore::new(most));
        Self { read: places(READ), followed: places(FOLLOWED), upgrades: places(UPGRADES) }
    }

    fn are_free(&self) -> bool {
        let taken = [(&self.read, READ), (&self.followed, FOLLOWED), (&self.upgrades, UPGRADES)];
        taken.into_iter().all(|(places, most)| places.available_permits() == most)
    }

    /// A place for reading logs: what is read comes to an end, so it is waited for.
    async fn for_logs(self, path: &str) -> Option<OwnedSemaphorePermit> {
        if query::is_followed(path) {
            return self.followed.try_acquire_owned().ok();
        }
        tokio::time::timeout(TURN, self.read.acquire_owned()).await.ok()?.ok()
    }
}

/// Something open.
struct Open {
    _place: OwnedSemaphorePermit,
    metrics: VirtualNodeMetrics,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.metrics.streams.dec();
    }
}

impl Streams {
    pub(super) fn new(metrics: VirtualNodeMetrics) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        Self { places: Mutex::default(), tasks, stop, metrics }
    }

    /// The streams that are open.
    pub(super) fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// Ends all of them with `stop`.
    pub(super) async fn run(&self, stop: &CancellationToken) {
        stop.cancelled().await;
        self.stop.cancel();
    }

    /// Reads logs there.
    pub(super) async fn logs(&self, link: &Link, path: &str) -> Result<Response, Refused> {
        let open = self.open(self.places(link).for_logs(path).await)?;
        let request = request(Method::GET, path, HeaderMap::new())?;
        let answer = send(link, request).await?;
        let (parts, body) = answer.into_parts();
        if !parts.status.is_success() {
            return Ok(refusal(parts.status, body).await);
        }
        // Open until the last of it was read, or nobody reads any more.
        let held = move |frame| {
            let _open = &open;
            frame
        };
        let mut response = Response::new(Body::new(body.map_frame(held)));
        if let Some(kind) = parts.headers.get(CONTENT_TYPE) {
            response.headers_mut().insert(CONTENT_TYPE, kind.clone());
        }
        Ok(response)
    }

    /// Asks for the same upgrade there, and copies bytes both ways.
    pub(super) async fn upgrade(
        &self,
        mut asked: Request,
        link: &Link,
        path: &str,
    ) -> Result<Response, Refused> {
        let open = self.open(self.places(link).upgrades.try_acquire_owned().ok())?;
        if !asked.headers().contains_key(UPGRADE) {
            return Err(Refused::new(StatusCode::BAD_REQUEST, "you must use SPDY or WebSocket for this"));
        }
        let here = hyper::upgrade::on(&mut asked);
        let request = request(asked.method().clone(), path, of_upgrade(asked.headers()))?;
        let mut answer = send(link, request).await?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let (parts, body) = answer.into_parts();
            return Ok(refusal(parts.status, body).await);
        }
        let there = hyper::upgrade::on(&mut answer);
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let _open = open;
            stop.run_until_cancelled(copy(here, there)).await;
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = of_upgrade(answer.headers());
        Ok(response)
    }

    fn places(&self, link: &Link) -> Places {
        let mut all = self.places.lock();
        // Who is gone and has nothing open takes no memory.
        all.retain(|id, places| id == link.cluster.id() || !places.are_free());
        all.entry(link.cluster.id().to_owned()).or_insert_with(Places::new).clone()
    }

    fn open(&self, place: Option<OwnedSemaphorePermit>) -> Result<Open, Refused> {
        let place = place.ok_or_else(|| {
            Refused::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many logs or terminals are open at this provider: close some, or try again later",
            )
        })?;
        self.metrics.streams.inc();
        Ok(Open { _place: place, metrics: self.metrics.clone() })
    }
}

fn request(
    method: Method,
    path: &str,
    headers: HeaderMap,
) -> Result<http::Request<kube::client::Body>, Refused> {
    let mut request = http::Request::new(kube::client::Body::empty());
    *request.method_mut() = method;
    *request.uri_mut() = path
        .parse()
        .map_err(|_| Refused::new(StatusCode::BAD_REQUEST, "this cannot be asked of a provider"))?;
    *request.headers_mut() = headers;
    Ok(request)
}

async fn send(
    link: &Link,
    request: http::Request<kube::client::Body>,
) -> Result<http::Response<kube::client::Body>, Refused> {
    let failed = |why: String| {
        Refused::new(StatusCode::BAD_GATEWAY, format!("the provider's API server cannot be asked: {why}"))
    };
    let client = link.cluster.client();
    match tokio::time::timeout(BEGIN, client.send(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(failed(Chain(&error).to_string())),
        Err(_) => Err(failed(format!("no answer within {} s", BEGIN.as_secs()))),
    }
}

/// What an upgrade is agreed on with; nothing of who asked, and nothing else, is passed on.
fn of_upgrade(headers: &HeaderMap) -> HeaderMap {
    let wanted = |name: &HeaderName| OF_UPGRADES.contains(name) || name.as_str().starts_with(WEBSOCKET);
    let passed = headers.iter().filter(|(name, _)| wanted(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect::<HeaderMap>()
}

/// Passes on why not, in words: the API server that asked puts them into an answer of its own.
async fn refusal(code: StatusCode, body: kube::client::Body) -> Response {
    let text = match tokio::time::timeout(BEGIN, Limited::new(body, LONGEST_REFUSAL).collect()).await {
        Ok(Ok(collected)) => reason(&collected.to_bytes()),
        _ => "the provider refuses, and does not say why".to_owned(),
    };
    // Of a "not found", that API server would keep the reason to itself.
    let code = if code == StatusCode::NOT_FOUND { StatusCode::BAD_REQUEST } else { code };
    (code, text).into_response()
}

/// What an API server's refusal says.
fn reason(body: &[u8]) -> String {
    let status = serde_json::from_slice::<kube::core::Status>(body).ok();
    let message = status.map(|status| status.message).filter(|message| !message.is_empty());
    message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

async fn copy(here: OnUpgrade, there: OnUpgrade) {
    let (here, there) = match tokio::try_join!(here, there) {
        Ok(both) => both,
        Err(error) => return tracing::debug!(%error, "a stream ended before it began"),
    };
    let (mut here, mut there) = (TokioIo::new(here), TokioIo::new(there));
    if let Err(error) = tokio::io::copy_bidirectional(&mut here, &mut there).await {
        tracing::debug!(%error, "a stream was cut");
    }
}
