//! Listens to what is said at providers about pods and claims, and tells it about those at home.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSeries, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use liqo_kit::clusters::Cluster;
use liqo_kit::watch::{Identity, Meta, Scope, WatchMetrics, Wire};
use liqo_kit::{Key, Queue, Sink, Watch};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Room;
use crate::events::{Said, Standing, Subject};
use crate::policies::{EVENT, Policy};
use crate::reports::retell;

/// Where what is said in one namespace at a provider goes.
struct Listener {
    room: Room,
    namespace: Arc<str>,
    provider: Arc<str>,
    /// What was there when we began to look was told by whoever looked before.
    listed: AtomicBool,
    /// Whether somebody should look earlier than was known.
    sooner: AtomicBool,
    stop: CancellationToken,
}

/// An event as it is read: there are as many as pods, and half of each is who wrote which field.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventOnWire {
    metadata: Meta,
    #[serde(rename = "type")]
    type_: Option<String>,
    #[serde(default)]
    involved_object: ObjectReference,
    series: Option<EventSeries>,
    event_time: Option<MicroTime>,
    first_timestamp: Option<Time>,
    last_timestamp: Option<Time>,
    count: Option<i32>,
    source: Option<EventSource>,
    reporting_component: Option<String>,
    reason: Option<String>,
    message: Option<String>,
}

impl Wire for EventOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// Something is said about the object of this name.
struct Heard {
    about: fn(Key) -> Subject,
    name: String,
    said: Said,
}

impl Heard {
    fn read(event: EventOnWire) -> Option<Self> {
        let warning = event.type_.as_deref() == Some("Warning");
        let about = match event.involved_object.kind.as_deref() {
            Some("Pod") => Subject::Pod,
            // That claims wait for their consumers is said at home as well.
            Some("PersistentVolumeClaim") if warning => Subject::Claim,
            _ => return None,
        };
        let name = event.involved_object.name?;
        let (series, at) = (event.series, event.event_time.map(|time| time.0));
        let first = event.first_timestamp.map(|time| time.0).or(at);
        let last = event.last_timestamp.map(|time| time.0);
        let last = last.or_else(|| series.as_ref()?.last_observed_time.as_ref().map(|time| time.0));
        let count = event.count.or_else(|| series.as_ref()?.count).unwrap_or(1);
        let component = event.source.and_then(|source| source.component).or(event.reporting_component);
        let said = Said {
            warning,
            reason: event.reason.unwrap_or_default(),
            message: event.message.unwrap_or_default(),
            component: component.unwrap_or_default(),
            count,
            first: first.unwrap_or_default(),
            last: last.or(first).unwrap_or_default(),
        };
        Some(Self { about, name, said })
    }
}

impl Sink<Heard> for Listener {
    fn apply(&self, _: &Key, heard: Heard) {
        if self.listed.load(Ordering::Relaxed) && !self.stop.is_cancelled() {
            let now = self.room.0.settings.clock.now();
            let subject = (heard.about)(Key::namespaced(&self.namespace, &heard.name));
            let sooner = self.room.0.events.lock().hear(subject, &self.provider, heard.said, now);
            self.sooner.fetch_or(sooner, Ordering::Relaxed);
        }
    }

    fn delete(&self, _: &Key) {}

    fn synced(&self) {
        self.listed.store(true, Ordering::Relaxed);
    }

    fn changed(&self) {
        if self.sooner.swap(false, Ordering::Relaxed) {
            self.room.0.pods.notify();
        }
    }
}

impl Room {
    /// Listens to what is said in this namespace at a provider.
    pub(super) fn watch_events(
        &self,
        namespace: &Arc<str>,
        provider: &Arc<str>,
        remote: &str,
        cluster: &Cluster,
        stop: &CancellationToken,
        tasks: &mut JoinSet<()>,
    ) {
        if self.0.settings.policies.of(EVENT) == Policy::Never {
            return;
        }
        let sink = Listener {
            room: self.clone(),
            namespace: Arc::clone(namespace),
            provider: Arc::clone(provider),
            listed: AtomicBool::new(false),
            sooner: AtomicBool::new(false),
            stop: stop.clone(),
        };
        let metrics: WatchMetrics = self.0.watch_metrics.lock().clone();
        // What the provider's manager says about ShadowPods is in their status.
        let scope = Scope::namespaced::<Event>(remote).fields("involvedObject.kind!=ShadowPod");
        let watch = Watch::projected(cluster.clone(), scope, Heard::read);
        let watch = watch.named("reflection-at-providers-events").metrics(&metrics).feed(sink);
        tasks.spawn(watch.run(stop.clone()));
    }

    /// Tells what is due, and says when something else is.
    pub(super) fn pass_events(&self, queue: &Queue, now: Timestamp) -> Option<Timestamp> {
        let (pods, claims) = (self.0.pods.read(), self.0.claims.read());
        let mut events = self.0.events.lock();
        let due = events.due(now, |subject| match subject {
            Subject::Pod(key) => pods.home(key).map(|pod| Standing {
                uid: pod.uid.clone(),
                settled: pod.ready || pod.finished,
                quiet: pod.quiet,
            }),
            Subject::Claim(key) => claims.claim(key).map(|claim| Standing {
                uid: claim.uid.clone(),
                settled: true,
                quiet: claim.original.is_none(),
            }),
        });
        let wake = events.wake();
        drop((pods, claims, events));
        for (subject, uid, said) in due {
            if let Some(write) = retell(&subject, &uid, &said) {
                self.0.metrics.begin(write.target());
                // One of many; a full queue has better things to do.
                let _ = queue.write(&write);
            }
        }
        wake
    }
}
