//! The tasks of a process: named, watched, and ended in order.
//!
//! A task that must run for ever and does not, or that panics, ends the process: half a controller is worse than
//! none, and Kubernetes restarts it. On SIGTERM or SIGINT the tasks are asked to stop, then the *late* ones (what
//! must outlive the others: probes, metrics), all within a deadline; a second signal ends the wait.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[cfg(test)]
mod tests;

/// Why a process did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SupervisorError {
    /// A task that should run for ever has ended.
    #[error("task {task} has ended although nobody asked it to: {reason}")]
    Ended {
        /// Which.
        task: String,
        /// What it returned, or how it panicked.
        reason: String,
    },
    /// Tasks were still running at the deadline and were dropped.
    #[error("these tasks did not end in time and were dropped: {}", tasks.join(", "))]
    Deadline {
        /// Which.
        tasks: Vec<String>,
    },
    /// Signals cannot be received.
    #[error("cannot listen for signals: {0}")]
    Signals(String),
}

/// The signals that end a process. Listen before anything else is started: one that comes earlier kills the process
/// where it stands, or, for the first process of a container, is lost.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Hears SIGTERM and SIGINT from now on.
    pub fn listen() -> Result<Self, SupervisorError> {
        let listen = |kind| signal(kind).map_err(|error| SupervisorError::Signals(error.to_string()));
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    /// The next one, also if it came before this was called.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Starts and watches tasks. Clones share them.
#[derive(Clone)]
pub struct Supervisor(Arc<Inner>);

struct Inner {
    stop: CancellationToken,
    late_stop: CancellationToken,
    tasks: TaskTracker,
    late: TaskTracker,
    running: Mutex<BTreeMap<u64, (String, AbortHandle)>>,
    next: AtomicU64,
    failure: Mutex<Option<SupervisorError>>,
}

impl Default for Supervisor {
    fn default() -> Self {
        Self::new()
    }
}

impl Supervisor {
    /// No task yet.
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            stop: CancellationToken::new(),
            late_stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            late: TaskTracker::new(),
            running: Mutex::default(),
            next: AtomicU64::new(0),
            failure: Mutex::new(None),
        }))
    }

    /// Cancelled when the process should stop; cancel it to stop the process.
    pub fn stop(&self) -> &CancellationToken {
        &self.0.stop
    }

    /// Starts a task that runs until it is asked to stop. If it ends before, the process stops.
    pub fn critical<F, Fut, E>(&self, name: impl Into<String>, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: std::fmt::Display,
    {
        self.start(name.into(), task(self.0.stop.clone()), Kind::Critical);
    }

    /// Starts a task that outlives the others, and is asked to stop when they have ended.
    pub fn late<F, Fut, E>(&self, name: impl Into<String>, task: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = Result<(), E>> + Send + 'static,
        E: std::fmt::Display,
    {
        self.start(name.into(), task(self.0.late_stop.clone()), Kind::Late);
    }

    /// Starts a task that may end when it is done. A panic still stops the process. The task must end when
    /// [`Supervisor::stop`] is cancelled.
    pub fn spawn(&self, name: impl Into<String>, task: impl Future<Output = ()> + Send + 'static) {
        self.start(name.into(), task.map(Ok::<(), String>), Kind::MayEnd);
    }

    fn start<E: std::fmt::Display>(
        &self,
        name: String,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
        kind: Kind,
    ) {
        let inner = Arc::clone(&self.0);
        let id = inner.next.fetch_add(1, Ordering::Relaxed);
        // Kept locked until the entry exists, so that a task that ends at once finds it.
        let mut running = self.0.running.lock();
        let watched = {
            let name = name.clone();
            async move {
                let ended = AssertUnwindSafe(task).catch_unwind().await;
                inner.running.lock().remove(&id);
                inner.ended(name, ended.map(|result| result.map_err(|error| error.to_string())), kind);
            }
        };
        let tracker = if kind == Kind::Late { &self.0.late } else { &self.0.tasks };
        let handle = tracker.spawn(watched);
        running.insert(id, (name, handle.abort_handle()));
    }

    /// Runs until a signal, a failed task or [`Supervisor::stop`], then ends all tasks within `deadline`.
    pub async fn run(self, mut signals: Signals, deadline: Duration) -> Result<(), SupervisorError> {
        tokio::select! {
            signal = signals.next() => tracing::info!(signal, "stopping"),
            () = self.0.stop.cancelled() => {}
        }
        self.0.stop.cancel();
        tokio::select! {
            () = self.wind_down(Instant::now() + deadline) => {}
            signal = signals.next() => {
                tracing::warn!(signal, "stopping at once");
                self.drop_rest();
            }
        }
        let failure = self.0.failure.lock().take();
        failure.map_or(Ok(()), Err)
    }

    async fn wind_down(&self, deadline: Instant) {
        self.0.tasks.close();
        let ended = tokio::time::timeout_at(deadline, self.0.tasks.wait()).await;
        self.0.late_stop.cancel();
        self.0.late.close();
        // Late tasks get a moment even when the others have used up the time.
        let late_deadline = deadline.max(Instant::now() + Duration::from_secs(1));
        let late_ended = tokio::time::timeout_at(late_deadline, self.0.late.wait()).await;
        if ended.is_err() || late_ended.is_err() {
            self.drop_rest();
        }
    }

    fn drop_rest(&self) {
        let running = std::mem::take(&mut *self.0.running.lock());
        if running.is_empty() {
            return;
        }
        let tasks: Vec<_> = running.values().map(|(name, _)| name.clone()).collect();
        for (_, handle) in running.into_values() {
            handle.abort();
        }
        self.0.failure.lock().get_or_insert(SupervisorError::Deadline { tasks });
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Critical,
    Late,
    MayEnd,
}

impl Inner {
    fn ended(&self, task: String, ended: Result<Result<(), String>, Box<dyn Any + Send>>, kind: Kind) {
        let asked = if kind == Kind::Late { &self.late_stop } else { &self.stop }.is_cancelled();
        let reason = match ended {
            Ok(Ok(())) if asked || kind == Kind::MayEnd => return,
            Ok(Ok(())) => "it returned".to_owned(),
            Ok(Err(error)) => error,
            Err(panic) => format!("it panicked: {}", panic_text(&*panic)),
        };
        tracing::error!(task, reason, "task ended; stopping");
        self.failure.lock().get_or_insert(SupervisorError::Ended { task, reason });
        self.stop.cancel();
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
