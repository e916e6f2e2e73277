//! Processes that are killed, and links that are cut, after so many writes.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::task::{Context, Poll};

use kube::client::Body;
use liqo_kit::clusters::{ClientConfig, Clusters, client};
use liqo_peering::Room;
use tokio::sync::watch;

use crate::world::{House, Process};

/// More than anybody writes.
const NEVER: isize = isize::MAX;

/// Clients that count their writes together: after so many, something happens. The last one is made, and whoever made it
/// does not learn it.
#[derive(Clone)]
pub(crate) struct Fuse {
    left: Arc<AtomicIsize>,
    last: watch::Sender<Option<String>>,
    /// What happens in that moment.
    happens: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Fuse {
    /// For a process whose requests go nowhere after so many writes, here and at peers: it is as good as killed.
    pub(crate) fn new() -> Self {
        Self { left: Arc::new(AtomicIsize::new(NEVER)), last: watch::Sender::new(None), happens: None }
    }

    /// For a process that goes on, while this happens in the moment after so many writes.
    pub(crate) fn then(happens: impl Fn() + Send + Sync + 'static) -> Self {
        Self { happens: Some(Arc::new(happens)), ..Self::new() }
    }

    /// From now on so many writes are left.
    pub(crate) fn arm(&self, writes: isize) {
        self.left.store(writes, Ordering::SeqCst);
    }

    /// From now on nothing happens.
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
        self.happens.is_none() && self.left.load(Ordering::SeqCst) <= 0
    }

    fn blow(&self, what: String) {
        if let Some(happens) = &self.happens {
            happens();
        }
        self.last.send_replace(Some(what));
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
        let nth = if writes { fuse.left.fetch_sub(1, Ordering::SeqCst) } else { isize::MAX };
        let what = format!("{} {}", request.method(), request.uri().path());
        let inner = self.inner.clone();
        Box::pin(async move {
            let answer = inner.send(request).await;
            if nth == 1 {
                fuse.blow(what);
                return std::future::pending().await;
            }
            answer.map_err(Into::into)
        })
    }
}
