//! Watch → index, without losing a deletion.
//!
//! A [`Watch`] keeps one list-and-watch alive for one kind and feeds its sinks, synchronously and in order.
//! It remembers key and uid of everything it has seen. When it has to list again (410 Gone, a restarted API
//! server), it says `delete` for what is not in the list any more, and `delete` then `apply` where another
//! object took the name. Objects it cannot read are counted and logged once; they stop nothing.
//!
//! The first list is a stream where the server can do that (the objects arrive one by one), else pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kube::core::{ApiResource, Resource};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::BackoffPolicy;
use crate::clusters::ClientSource;
use crate::index::Sink;

mod driver;
mod fetch;
mod inlet;
mod known;
mod metrics;
mod pairs;
#[cfg(test)]
mod tests;
mod tracker;
mod wire;

pub use fetch::Chain;
pub use metrics::WatchMetrics;
pub use pairs::Pairs;
pub use wire::{Identity, Meta, MetaOnly, NotedMeta, Wire};

use inlet::{Project, Typed};
use tracker::Tracker;

/// Which objects to watch.
#[derive(Clone, Debug)]
pub struct Scope {
    path: String,
    name: String,
    labels: Option<String>,
    fields: Option<String>,
    metadata_only: bool,
}

impl Scope {
    /// All objects of a kind, in all namespaces.
    pub fn all<K: Resource<DynamicType = ()>>() -> Self {
        Self::new(K::url_path(&(), None), K::plural(&()).into_owned())
    }

    /// The objects of a kind in one namespace.
    pub fn namespaced<K: Resource<DynamicType = ()>>(namespace: &str) -> Self {
        Self::new(K::url_path(&(), Some(namespace)), K::plural(&()).into_owned())
    }

    /// The objects of a kind known only at run time, in one namespace or in all.
    pub fn dynamic(resource: &ApiResource, namespace: Option<&str>) -> Self {
        Self::new(kube::core::DynamicObject::url_path(resource, namespace), resource.plural.clone())
    }

    fn new(path: String, name: String) -> Self {
        Self { path, name, labels: None, fields: None, metadata_only: false }
    }

    /// Only objects that match this label selector.
    #[must_use]
    pub fn labels(mut self, selector: impl Into<String>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Only objects that match this field selector.
    #[must_use]
    pub fn fields(mut self, selector: impl Into<String>) -> Self {
        self.fields = Some(selector.into());
        self
    }

    /// Asks the server to send metadata alone.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        self
    }
}

/// The timing of a watch.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// How long a connection may say nothing before it counts as dead. The server is asked to end each watch
    /// after about this time, so a living one always says something.
    pub idle: Duration,
    /// How long the start of a watch or one page of a list may take.
    pub request_timeout: Duration,
    /// Objects per page where the list is not a stream.
    pub page_size: u32,
    /// Whether to try streaming lists.
    pub streaming: bool,
    /// The waits between failed attempts.
    pub backoff: BackoffPolicy,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self {
            // Long enough to cost nothing (one request a minute), short enough to notice a half-open connection
            // across a WAN well before an operator does.
            idle: Duration::from_secs(40),
            request_timeout: Duration::from_secs(15),
            // A page is in memory as a whole, as the server sent it: 250 pods are about 2 MiB.
            page_size: 250,
            streaming: true,
            backoff: BackoffPolicy::default(),
        }
    }
}

/// One list-and-watch: reads `W` from the wire, keeps `T`.
pub struct Watch<W: Wire, T = W> {
    source: Arc<dyn ClientSource>,
    scope: Scope,
    config: WatchConfig,
    project: Project<W, T>,
    sink: Arc<dyn Sink<T>>,
    metrics: WatchMetrics,
    status: WatchStatus,
}

impl<W: Wire> Watch<W, W> {
    /// Watches `scope` through the client of `source`, keeping objects as they are read.
    pub fn new(source: impl ClientSource, scope: Scope) -> Self {
        Self::projected(source, scope, Some)
    }
}

impl<W: Wire, T: Send + 'static> Watch<W, T> {
    /// Watches `scope` and keeps what `project` makes of each object; `None` means "as if it did not exist".
    pub fn projected(
        source: impl ClientSource,
        scope: Scope,
        project: impl Fn(W) -> Option<T> + Send + Sync + 'static,
    ) -> Self {
        let status = WatchStatus::new(scope.name.clone());
        Self {
            source: Arc::new(source),
            scope,
            config: WatchConfig::default(),
            project: Box::new(project),
            sink: Arc::new(crate::index::Nowhere),
            metrics: WatchMetrics::default(),
            status,
        }
    }

    /// Sets the timing.
    #[must_use]
    pub fn config(mut self, config: WatchConfig) -> Self {
        self.config = config;
        self
    }

    /// Counts into these metrics.
    #[must_use]
    pub fn metrics(mut self, metrics: &WatchMetrics) -> Self {
        self.metrics = metrics.clone();
        self
    }

    /// The name under which logs, metrics and checks speak of this watch (default: the plural of the kind). Name it
    /// before asking for its status.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.scope.name = name.into();
        self.status = WatchStatus::new(self.scope.name.clone());
        self
    }

    /// Feeds this sink; several share a watch through [`Fan`](crate::index::Fan).
    #[must_use]
    pub fn feed(mut self, sink: impl Sink<T> + 'static) -> Self {
        self.sink = Arc::new(sink);
        self
    }

    /// How the watch is doing; stays valid while it runs.
    pub fn status(&self) -> WatchStatus {
        self.status.clone()
    }

    /// Watches until `stop` is cancelled.
    pub async fn run(self, stop: CancellationToken) {
        let Self { source, scope, config, project, sink, metrics, status } = self;
        let inlet = Box::new(Typed { project, sink });
        let tracker = Tracker::new(scope.name.clone(), inlet, &metrics, status);
        let driver = driver::Driver::new(source, scope, config, tracker);
        stop.run_until_cancelled(driver.drive()).await;
    }
}

/// How a watch is doing.
#[derive(Clone)]
pub struct WatchStatus(Arc<StatusInner>);

struct StatusInner {
    name: String,
    ready: watch::Sender<bool>,
    position: AtomicU64,
    heard: Mutex<Instant>,
    failure: Mutex<Option<String>>,
    forbidden: AtomicBool,
}

impl WatchStatus {
    fn new(name: String) -> Self {
        Self(Arc::new(StatusInner {
            name,
            ready: watch::Sender::new(false),
            position: AtomicU64::new(0),
            heard: Mutex::new(Instant::now()),
            failure: Mutex::new(None),
            forbidden: AtomicBool::new(false),
        }))
    }

    /// The name of the watch.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Whether a full list has been taken over at least once.
    pub fn is_ready(&self) -> bool {
        *self.0.ready.borrow()
    }

    /// Resolves when the first full list has been taken over.
    pub async fn ready(&self) {
        // The sender lives in self, so waiting can only end by becoming ready.
        let _ = self.0.ready.subscribe().wait_for(|ready| *ready).await;
    }

    /// How long ago the server was last heard of. Grows while the API server is out of reach.
    pub fn staleness(&self) -> Duration {
        self.0.heard.lock().elapsed()
    }

    /// The resource version up to which everything has been seen (0 before the first list). Compare with
    /// [`Written`](crate::write::Written) before planning on an object that was just written.
    pub fn position(&self) -> u64 {
        self.0.position.load(Ordering::Acquire)
    }

    /// Why the watch is not connected, while it is not.
    pub fn failure(&self) -> Option<String> {
        self.0.failure.lock().clone()
    }

    /// Whether the watch is not connected because the server answers that we may not, as it last did.
    pub fn is_forbidden(&self) -> bool {
        self.0.forbidden.load(Ordering::Acquire)
    }

    fn heard(&self) {
        *self.0.heard.lock() = Instant::now();
    }

    fn reach(&self, resource_version: &str) {
        // Versions are opaque by contract but decimal in every server; one that is not only loses
        // read-your-writes, which then falls back to waiting.
        if let Ok(position) = resource_version.parse() {
            self.0.position.store(position, Ordering::Release);
        }
    }

    fn synced(&self) {
        self.0.ready.send_replace(true);
    }

    fn failed(&self, failure: Option<String>, forbidden: bool) {
        *self.0.failure.lock() = failure;
        self.0.forbidden.store(forbidden, Ordering::Release);
    }
}
