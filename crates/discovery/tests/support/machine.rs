//! Running things in the network of a sandbox's machine: a thread that has moved there, with a runtime of its own.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs::File;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use liqo_api::names::Identity;
use liqo_discovery::{DiscoveryMetrics, Identify, Lan, Room, Settings, Wan};
use liqo_kit::Supervisor;
use liqo_kit::clusters::{ClientConfig, client};
use liqo_kit::supervise::{Signals, SupervisorError};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_sandbox::TestCluster;
use nix::sched::{CloneFlags, setns};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::auth::Client;

/// A network namespace.
#[derive(Clone)]
pub(crate) struct Machine(Arc<File>);

impl Machine {
    /// This machine.
    pub(crate) fn here() -> Self {
        Self(Arc::new(File::open("/proc/self/ns/net").unwrap()))
    }

    /// The first machine of a cluster.
    pub(crate) fn of(cluster: &TestCluster<'_>) -> Self {
        let mut holder = cluster.exec_command(1, ["sleep", "60"]).unwrap().spawn().unwrap();
        let process = format!("/proc/{}", holder.id());
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        // Until then it is on its way into the namespace.
        while std::fs::read_to_string(format!("{process}/comm")).unwrap().trim() != "sleep" {
            assert!(std::time::Instant::now() < deadline, "no process was started in the machine's network");
            std::thread::sleep(Duration::from_millis(1));
        }
        let namespace = File::open(format!("{process}/ns/net")).unwrap();
        holder.kill().unwrap();
        holder.wait().unwrap();
        Self(Arc::new(namespace))
    }

    /// Runs `work` there, in a thread and a runtime of its own.
    pub(crate) fn run<T, F, Fut>(&self, work: F) -> JoinHandle<T>
    where
        T: Send + 'static,
        F: FnOnce() -> Fut + Send + 'static,
        Fut: Future<Output = T>,
    {
        let namespace = Arc::clone(&self.0);
        std::thread::spawn(move || {
            setns(&*namespace, CloneFlags::CLONE_NEWNET).unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(work())
        })
    }
}

/// A room at work.
pub(crate) struct Running {
    pub(crate) metrics: DiscoveryMetrics,
    stop: CancellationToken,
    thread: Option<JoinHandle<Result<(), SupervisorError>>>,
}

/// How long a room may take to end.
const END: Duration = Duration::from_secs(5);

impl Running {
    /// Starts a room on a machine, for the cluster of this configuration.
    pub(crate) fn start(
        machine: &Machine,
        config: kube::Config,
        own: Identity,
        lan: Option<Lan>,
        wan: Option<Wan>,
    ) -> Self {
        let (sender, started) = std::sync::mpsc::sync_channel(1);
        let thread = machine.run(move || async move {
            let supervisor = Supervisor::new();
            let settings =
                Settings { lan, wan, controller: "liqo-discovery".to_owned(), pod: "test".to_owned() };
            let client = client(&config, &ClientConfig::default()).unwrap();
            let identify: Arc<dyn Identify> = Arc::new(Client);
            let room = Room::new(client, settings, watch::Sender::new(Some(own)).subscribe(), identify);
            room.start(&supervisor, &WatchMetrics::default());
            let (queue, worker) = room.queue(&WriteMetrics::default());
            supervisor.critical("queue", |stop| async move {
                worker.run(stop).await;
                Ok::<_, String>(())
            });
            sender.send((room.metrics().clone(), supervisor.stop().clone())).unwrap();
            supervisor.critical("discovery", |stop| async move {
                room.run(&queue, Arc::new(|| true), stop).await;
                Ok::<_, String>(())
            });
            supervisor.run(Signals::listen().unwrap(), END).await
        });
        let (metrics, stop) = started.recv().unwrap();
        Self { metrics, stop, thread: Some(thread) }
    }

    /// Ends it in order, with goodbyes.
    pub(crate) fn stop(mut self) {
        self.stop.cancel();
        let ended = self.thread.take().unwrap().join().unwrap();
        assert_eq!(ended, Ok(()));
    }

    /// One of its numbers.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let line = self.metrics_text();
        let line = line.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or(0.0)
    }

    pub(crate) fn metrics_text(&self) -> String {
        let mut registry = prometheus_client::registry::Registry::default();
        self.metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
