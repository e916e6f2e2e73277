//! A process whose requests are counted, and that is killed after so many writes, here and at providers together.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::task::{Context, Poll};

use kube::client::{Body, ClientBuilder};
use tokio::sync::watch;

/// Clients that are cut off together after so many writes: the last one is made, and nobody learns it.
#[derive(Clone)]
pub(crate) struct Fuse {
    left: Arc<AtomicIsize>,
    last: watch::Sender<Option<String>>,
    counts: watch::Sender<BTreeMap<String, usize>>,
}

impl Fuse {
    pub(crate) fn never() -> Self {
        Self::after(isize::MAX)
    }

    pub(crate) fn after(writes: isize) -> Self {
        Self {
            left: Arc::new(AtomicIsize::new(writes)),
            last: watch::Sender::new(None),
            counts: watch::Sender::new(BTreeMap::new()),
        }
    }

    /// The last write, once it is made.
    pub(crate) fn last(&self) -> Option<String> {
        self.last.borrow().clone()
    }

    pub(crate) async fn blown(&self) {
        let _ = self.last.subscribe().wait_for(Option::is_some).await;
    }

    /// How many requests were made, by method and kind.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        self.counts.borrow().clone()
    }

    pub(crate) fn client(&self, config: &kube::Config) -> Result<kube::Client, kube::Error> {
        let fuse = self.clone();
        let layer = tower::layer::layer_fn(move |inner| Fused { inner, fuse: fuse.clone() });
        Ok(ClientBuilder::try_from(config.clone())?.with_layer(&layer).build())
    }

    fn count(&self, request: &http::Request<Body>) {
        let path = request.uri().path();
        let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        let namespaced = parts.iter().position(|part| *part == "namespaces").map(|at| at + 2);
        let kind = namespaced.and_then(|at| parts.get(at)).copied();
        let kind = kind.unwrap_or_else(|| parts.last().copied().unwrap_or_default());
        let status = if path.ends_with("/status") { "/status" } else { "" };
        let key = format!("{} {kind}{status}", request.method());
        self.counts.send_modify(|counts| *counts.entry(key).or_default() += 1);
    }
}

/// The last write. It is over when it is answered, and also when whoever waits for the answer gives up.
struct Last {
    fuse: Fuse,
    what: String,
}

impl Drop for Last {
    fn drop(&mut self) {
        self.fuse.last.send_replace(Some(std::mem::take(&mut self.what)));
    }
}

#[derive(Clone)]
struct Fused<S> {
    inner: S,
    fuse: Fuse,
}

impl<S> tower::Service<http::Request<Body>> for Fused<S>
where
    S: tower::Service<http::Request<Body>> + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let fuse = self.fuse.clone();
        let writes = request.method() != http::Method::GET;
        let nth = if writes { fuse.left.fetch_sub(1, Ordering::SeqCst) } else { isize::MAX };
        if fuse.last().is_some() || (writes && nth <= 0) {
            return Box::pin(std::future::pending());
        }
        fuse.count(&request);
        let what = format!("{} {}", request.method(), request.uri().path());
        let answer = self.inner.call(request);
        let last = (nth == 1).then(|| Last { fuse, what });
        Box::pin(async move {
            let answer = answer.await;
            if last.is_some() {
                drop(last);
                return std::future::pending().await;
            }
            answer
        })
    }
}
