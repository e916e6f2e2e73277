//! What only the leader does: write what is missing, and call peers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_api::foreign_cluster::PeeringConditionType;
use liqo_identity::Identity;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::WatchStatus;
use liqo_kit::write::{Enqueued, Outcome, QueueConfig, Target, Worker, Write, WriteMetrics, Written};
use liqo_kit::{BackoffPolicy, Key, Queue};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Room;
use crate::calling::call::Caller;
use crate::calling::plan::{Planned, View, plan};
use crate::client::Authorities;
use crate::index::Index;
use crate::objects::FIELD_MANAGER;
use crate::serving::upkeep::{plan_house, plan_tenant};
use crate::steps::{Call, Step};

/// How often the leader looks whether something is missing though nobody told of a change: what was given up is asked
/// for again this way.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long it waits at least before it looks again.
const PAUSE: Duration = Duration::from_millis(5);

/// Events that are remembered.
const REPORTED: usize = 256;
/// The plural of events.
const EVENTS: &str = "events";

/// How many times as long as it looked the leader rests before it looks again.
const RESTS: u32 = 4;

/// What a plan is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Cluster(Key),
    Tenant(Key),
    House,
}

impl Room {
    /// The queue that the leader writes through, and the worker that drains it, to be run in every process.
    pub fn queue(&self, metrics: &WriteMetrics) -> (Queue, Worker) {
        let (gate, observer) = (self.clone(), self.clone());
        let config = QueueConfig {
            // Somebody waits for a peering.
            backoff: BackoffPolicy { min: Duration::from_millis(50), ..BackoffPolicy::default() },
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target, outcome| observer.note(target, outcome))),
            ..QueueConfig::default()
        };
        Queue::new("authentication", self.0.client.clone(), config, metrics)
    }

    /// Writes what is missing through `queue` and calls peers, until the leadership ends.
    pub async fn lead(&self, queue: &Queue, leadership: Leadership) {
        *self.0.leading.lock() = Some(leadership.clone());
        let watches = self.0.watches.lock().clone();
        let ready = async {
            for watch in &watches {
                watch.ready().await;
            }
        };
        if leadership.ended().run_until_cancelled(ready).await.is_some() {
            leadership.ended().run_until_cancelled(self.work(queue)).await;
        }
        *self.0.leading.lock() = None;
    }

    fn leads(&self) -> bool {
        self.0.leading.lock().as_ref().is_some_and(Leadership::is_valid)
    }

    async fn work(&self, queue: &Queue) {
        // Calls of an earlier time ended with it.
        self.0.index.write().attempts.values_mut().for_each(|attempt| attempt.under_way = false);
        let mut changes = self.0.index.subscribe();
        let mut identity = self.0.identity.clone();
        let mut clock = self.0.settings.clock.clone();
        let caller = Caller {
            index: self.0.index.clone(),
            authorities: Authorities::default(),
            metrics: self.0.metrics.clone(),
            clock: clock.clone(),
        };
        let slots = Arc::new(Semaphore::new(self.0.settings.calls));
        let mut calls = JoinSet::new();
        loop {
            let looked = Instant::now();
            changes.borrow_and_update();
            let me = identity.borrow_and_update().clone();
            let (wake, wanted) = self.look(queue, me.as_deref());
            for call in me.iter().flat_map(|me| wanted.iter().map(move |call| (me, call))) {
                if let Some(ready) = caller.begin(call.1.clone(), call.0) {
                    let (caller, slots) = (caller.clone(), Arc::clone(&slots));
                    calls.spawn(async move {
                        let _slot = slots.acquire().await;
                        caller.make(ready).await;
                    });
                }
            }
            caller.forget_the_gone();
            self.show();
            // The more there is to look at, the longer until the next look: this is not all that a process does.
            tokio::time::sleep(looked.elapsed() * RESTS).await;
            let wait = wake.map_or(LOOK_AGAIN, |wake| until(wake, clock.now())).clamp(PAUSE, LOOK_AGAIN);
            tokio::select! {
                _ = changes.changed() => {}
                _ = identity.changed() => {}
                () = clock.changed() => {}
                Some(_) = calls.join_next(), if !calls.is_empty() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Plans everything, hands in the writes, and returns the calls to be made and when to look again.
    fn look(&self, queue: &Queue, me: Option<&Identity>) -> (Option<Timestamp>, Vec<Call>) {
        let now = self.0.settings.clock.now();
        let planned: Vec<_> = {
            let index = self.0.index.read();
            let clusters = index.clusters.store().iter().map(|(key, _)| Subject::Cluster(key.clone()));
            let tenants = index.tenants.store().iter().map(|(key, _)| Subject::Tenant(key.clone()));
            let subjects = clusters.chain(tenants).chain([Subject::House]);
            subjects.map(|subject| (self.plan_one(&index, me, &subject, now), subject)).collect()
        };
        let mut calls = Vec::new();
        let mut wake: Option<Timestamp> = None;
        for (Planned { steps, wake: at }, subject) in planned {
            wake = wake.into_iter().chain(at).min();
            for step in steps {
                match step {
                    Step::Call(call) => calls.push(call),
                    step => self.enqueue(queue, &subject, &step),
                }
            }
        }
        (wake, calls)
    }

    fn enqueue(&self, queue: &Queue, subject: &Subject, step: &Step) {
        let Some((target, status)) = step.target(&self.0.settings) else { return };
        tracing::debug!(object = %target, step = step.word(), "missing");
        let (room, written, subject) = (self.clone(), queue.written().clone(), subject.clone());
        match queue.enqueue(move || room.missing(&subject, &target, status, &written)) {
            Enqueued::Full => tracing::warn!("too many writes wait; this one is asked for again"),
            Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {}
        }
    }

    fn note(&self, target: &Target, outcome: &Outcome) {
        let failure = match outcome {
            Outcome::Failed(failed) => Some(failed.message.clone()),
            Outcome::Written { .. } | Outcome::Unneeded => None,
        };
        self.remember(target, failure.as_ref());
        if plural(target) == EVENTS && matches!(outcome, Outcome::Written { .. }) {
            let mut reported = self.0.reported.lock();
            reported.push_back(target.clone());
            if reported.len() > REPORTED {
                reported.pop_front();
            }
        }
    }

    /// Remembers what cannot be written, for those who want to know why nothing happens.
    fn remember(&self, target: &Target, failure: Option<&String>) {
        let mut index = self.0.index.write();
        let former = match failure {
            Some(failure) => index.failures.insert(target.clone(), failure.clone()),
            None => index.failures.remove(target),
        };
        drop(index);
        if former.as_ref() != failure {
            self.0.index.notify();
        }
    }

    fn plan_one(&self, index: &Index, me: Option<&Identity>, subject: &Subject, now: Timestamp) -> Planned {
        let view = View { index, me, autojoin: self.0.settings.autojoin, now };
        match subject {
            Subject::Cluster(key) => match index.clusters.store().get(key) {
                Some(cluster) => plan(&view, cluster),
                None => Planned::default(),
            },
            Subject::Tenant(key) => match index.tenants.store().get(key) {
                Some(tenant) => plan_tenant(index, tenant, now),
                None => Planned::default(),
            },
            Subject::House => {
                let steps = plan_house(index, self.0.settings.tokens_required, now);
                Planned { steps, wake: None }
            }
        }
    }

    /// What is missing of this object, once the watch has shown what we wrote to it last.
    fn missing(&self, subject: &Subject, target: &Target, status: bool, written: &Written) -> Option<Write> {
        let reported = plural(target) == EVENTS && self.0.reported.lock().contains(target);
        if reported || !written.has_seen(target, self.position(target)) {
            return None;
        }
        let settings = &self.0.settings;
        let me = self.0.identity.borrow().clone();
        let planned = self.plan_one(&self.0.index.read(), me.as_deref(), subject, settings.clock.now());
        let meant = |step: &&Step| {
            step.target(settings).is_some_and(|(found, about)| found == *target && about == status)
        };
        let step = planned.steps.iter().find(meant)?;
        step.write(settings, &settings.clock)
            .inspect_err(|error| tracing::error!(object = %target, %error, "this object cannot be made"))
            .ok()
            .flatten()
    }

    /// How far the watch of this object has come; events are not watched.
    fn position(&self, target: &Target) -> u64 {
        let in_house = target.key().namespace() == Some(self.0.settings.namespace.as_str());
        let name = match plural(target).as_str() {
            "secrets" if in_house => "authentication-secrets-of-liqo".to_owned(),
            plural => format!("authentication-{plural}"),
        };
        let watches = self.0.watches.lock();
        watches.iter().find(|watch| watch.name() == name).map_or(u64::MAX, WatchStatus::position)
    }

    fn show(&self) {
        let index = self.0.index.read();
        self.0.metrics.show_expiries(Caller::expiries(&index));
        let mut counts: BTreeMap<&'static str, i64> = STATUSES.map(|(_, word)| (word, 0)).into();
        for (_, cluster) in index.clusters.store().iter() {
            let status = cluster.peering_status(PeeringConditionType::AuthenticationStatus);
            let word = STATUSES.iter().find(|(known, _)| *known == status).map(|(_, word)| *word);
            if let Some(count) = word.and_then(|word| counts.get_mut(word)) {
                *count += 1;
            }
        }
        drop(index);
        self.0.metrics.show_peers(&counts);
    }
}

const STATUSES: [(liqo_api::foreign_cluster::PeeringConditionStatus, &str); 6] = {
    use liqo_api::foreign_cluster::PeeringConditionStatus as Status;
    [
        (Status::None, "none"),
        (Status::Pending, "pending"),
        (Status::Established, "established"),
        (Status::Denied, "denied"),
        (Status::EmptyDenied, "empty_denied"),
        (Status::Error, "error"),
    ]
};

/// The kind of a target, in the plural.
fn plural(target: &Target) -> String {
    target.to_string().rsplit('/').nth(1).unwrap_or_default().to_owned()
}

fn until(wake: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(wake.duration_since(now)).unwrap_or(Duration::ZERO)
}
