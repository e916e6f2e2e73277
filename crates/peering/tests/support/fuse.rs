//! Processes that are killed, and links that are cut, after so many writes.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use kube::client::Body;
use liqo_kit::clusters::{ClientConfig, Clusters, client};
use liqo_peering::Room;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::world::{House, Process};

/// More than anybody writes.
const NEVER: isize = isize::MAX;

/// Clients that count their writes together: after so many, something happens. The last one is made, and whoever made it
/// does not learn it.
#[derive(Clone)]
pub(crate) struct Fuse {
    count: Arc<Mutex<Count>>,
    last: watch::Sender<Option<String>>,
    /// What happens in that moment.
    happens: Option<Arc<dyn Fn() + Send + Sync>>,
}

#[derive(Clone, Copy)]
struct Count {
    /// How many writes are left.
    left: isize,
    /// How often it was armed: a write that is under way when it is armed anew does not blow it any more.
    armed: usize,
}

impl Fuse {
    /// For a process whose requests go nowhere after so many writes, here and at peers: it is as good as killed.
    pub(crate) fn new() -> Self {
        let count = Arc::new(Mutex::new(Count { left: NEVER, armed: 0 }));
        Self { count, last: watch::Sender::new(None), happens: None }
    }

    /// For a process that goes on, while this happens in the moment after so many writes.
    pub(crate) fn then(happens: impl Fn() + Send + Sync + 'static) -> Self {
        Self { happens: Some(Arc::new(happens)), ..Self::new() }
    }

    /// From now on so many writes are left.
    pub(crate) fn arm(&self, writes: isize) {
        let mut count = self.count.lock();
        *count = Count { left: writes, armed: count.armed + 1 };
    }

    /// From now on nothing happens, whatever is under way: the end may be seen before the last write is answered.
    pub(crate) fn disarm(&self) {
        self.arm(NEVER);
    }

    /// Starts the rooms of a house; all writes of peering count.
    pub(crate) async fn start(&self, house: &House<'_>) -> Process {
        let here = self.client(&house.room_config().await, &ClientConfig::default()).unwrap();
        house.start_with(here, Some(self.at_peers())).await
    }

    /// Starts the rooms of a house; writes of peering at peers count.
    pub(crate) async fn start_at_peers(&self, house: &House<'_>) -> Process {
        house.start_with(house.room_client().await, Some(self.at_peers())).await
    }

    /// The last write, once it is made.
    pub(crate) fn last(&self) -> Option<String> {
        self.last.borrow().clone()
    }

    pub(crate) async fn blown(&self) {
        let _ = self.last.subscribe().wait_for(Option::is_some).await;
    }

    fn at_peers(&self) -> Clusters {
        let fuse = self.clone();
        Clusters::connecting(move |config| fuse.client(config, &Room::clients_at_peers()))
    }

    fn client(&self, config: &kube::Config, limits: &ClientConfig) -> Result<kube::Client, kube::Error> {
        let fused = Fused { inner: client(config, limits)?, fuse: self.clone() };
        Ok(kube::Client::new(fused, config.default_namespace.clone()))
    }

    fn is_cut_off(&self) -> bool {
        self.happens.is_none() && self.count.lock().left <= 0
    }

    /// Counts a write. If it is the last one: how often the fuse was armed by then.
    fn count(&self) -> Option<usize> {
        let mut count = self.count.lock();
        count.left -= 1;
        (count.left == 0).then_some(count.armed)
    }

    /// Whether it blows after its last write, of the time when it was armed so often.
    fn blows(&self, armed: usize, what: String) -> bool {
        let count = self.count.lock();
        if count.armed != armed {
            return false;
        }
        if let Some(happens) = &self.happens {
            happens();
        }
        self.last.send_replace(Some(what));
        true
    }
}

#[derive(Clone)]
struct Fused {
    inner: kube::Client,
    fuse: Fuse,
}

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, tower::BoxError>> + Send>>;

impl tower::Service<http::Request<Body>> for Fused {
    type Response = http::Response<Body>;
    type Error = tower::BoxError;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), tower::BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Answer {
        let fuse = self.fuse.clone();
        if fuse.is_cut_off() {
            return Box::pin(std::future::pending());
        }
        let writes = request.method() != http::Method::GET;
        let last = if writes { fuse.count() } else { None };
        let what = format!("{} {}", request.method(), request.uri().path());
        let inner = self.inner.clone();
        Box::pin(async move {
            let answer = inner.send(request).await;
            if last.is_some_and(|armed| fuse.blows(armed, what)) {
                return std::future::pending().await;
            }
            answer.map_err(Into::into)
        })
    }
}
