//! Warnings about pods at providers, told about the pods at home.
//!
//! Only warnings: what goes well is in the pods' status, and costs no request of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::Event;
use liqo_kit::clusters::Cluster;
use liqo_kit::watch::{Scope, WatchMetrics};
use liqo_kit::{Key, Queue, Shared, Sink, Watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Room;
use crate::pods::index::Pods;
use crate::reports::Report;

/// Where warnings of one namespace at a provider go.
struct Warnings {
    pods: Shared<Pods>,
    namespace: Arc<str>,
    /// What was there when we began to look was told by whoever looked before.
    listed: AtomicBool,
    stop: CancellationToken,
}

/// A warning about the pod of this name.
struct Warning {
    pod: String,
    report: Report,
}

impl Warning {
    fn read(event: Event) -> Option<Self> {
        let is_warning = event.type_.as_deref() == Some("Warning");
        let pod = event.involved_object.name.filter(|_| is_warning)?;
        let report = Report::warning(&event.reason.unwrap_or_default(), &event.message.unwrap_or_default());
        Some(Self { pod, report })
    }
}

impl Sink<Warning> for Warnings {
    fn apply(&self, _: &Key, warning: Warning) {
        if self.listed.load(Ordering::Relaxed) && !self.stop.is_cancelled() {
            self.pods.write().warn(Key::namespaced(&self.namespace, &warning.pod), warning.report);
        }
    }

    fn delete(&self, _: &Key) {}

    fn synced(&self) {
        self.listed.store(true, Ordering::Relaxed);
    }

    fn changed(&self) {
        self.pods.notify();
    }
}

impl Room {
    /// Listens to warnings about pods in this namespace at a provider.
    pub(super) fn watch_warnings(
        &self,
        namespace: &Arc<str>,
        remote: &str,
        cluster: &Cluster,
        stop: &CancellationToken,
        tasks: &mut JoinSet<()>,
    ) {
        let sink = Warnings {
            pods: self.0.pods.clone(),
            namespace: Arc::clone(namespace),
            listed: AtomicBool::new(false),
            stop: stop.clone(),
        };
        let metrics: WatchMetrics = self.0.watch_metrics.lock().clone();
        let scope = Scope::namespaced::<Event>(remote).fields("involvedObject.kind=Pod,type=Warning");
        let watch = Watch::projected(cluster.clone(), scope, Warning::read);
        let watch = watch.named("reflection-at-providers-events").metrics(&metrics).feed(sink);
        tasks.spawn(watch.run(stop.clone()));
    }

    /// Tells what was heard since this was called last.
    pub(super) fn pass_warnings(&self, queue: &Queue) {
        let heard = self.0.pods.write().take_warnings();
        for (key, report) in heard {
            let Some(uid) = self.0.pods.read().home(&key).map(|home| home.uid.clone()) else { continue };
            let now = self.0.settings.clock.now();
            if let Some(write) = report.about(&key, &uid, &self.0.settings.pod, now) {
                // One of many; a full queue has better things to do.
                let _ = queue.write(&write);
            }
        }
    }
}
