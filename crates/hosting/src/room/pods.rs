//! What the leader does about pods: count, make, remove, and tell why not.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use liqo_api::ShadowPod;
use liqo_api::shadow_pod::{CREATED, UP_TO_DATE};
use liqo_kit::write::{Enqueued, Failed, Part, Reason, Target, Write};
use liqo_kit::{Key, Queue};
use serde_json::json;
use tokio::time::Instant;

use super::Room;
use crate::index::{Account, Index};
use crate::objects::{self, About};
use crate::pods::{
    self, CHANGED, Deed, FAILED, FORBIDDEN, INVALID, QUOTA_EXCEEDED, RUNS, Refusal, Said, Shadow,
};

/// Writes that wait in the queue; further pods are looked at when some of these are made.
const WAITING: usize = 2048;
/// A condition's message; the API server refuses longer ones.
const MAX_MESSAGE: usize = 4096;

impl Room {
    /// Plans for pods, as many as the queue has room for; the others stay to be looked at when some are made.
    pub(super) fn hand_in_pods(&self, queue: &Queue, pods: &mut BTreeSet<Key>, now: Timestamp) {
        while queue.depth() < WAITING {
            let Some(key) = pods.pop_first() else { return };
            let Some(deed) = self.judge(&key, now) else { continue };
            let (target, part) = slot(&key, &deed);
            let (room, meant) = (self.clone(), (target.clone(), part));
            let (subject, events, since) = (key.clone(), queue.clone(), Instant::now());
            let plan = move || room.perform(&subject, &meant, &events, since);
            if queue.ask(target, part, plan) == Enqueued::Full {
                pods.insert(key);
                return;
            }
        }
    }

    /// What is to be done about a pod; those for which there is no room are remembered.
    fn judge(&self, key: &Key, now: Timestamp) -> Option<Deed> {
        let deed = pods::plan(&self.0.index.read(), key, now);
        let waits = match &deed {
            Some(Deed::Refuse(refusal) | Deed::Deny { refusal, .. }) => refusal.reason == QUOTA_EXCEEDED,
            _ => false,
        };
        if waits {
            let mut index = self.0.index.write();
            let space = key.namespace().and_then(|namespace| index.space(namespace));
            let peer = space.and_then(|space| space.peer.clone());
            let created = index.shadows.get(key).map(|shadow| shadow.created);
            if let (Some(peer), Some(created)) = (peer, created) {
                index.memory.wait(key, &peer, created);
            }
        }
        deed
    }

    /// Plans again with the index to itself, and counts the pod before anybody else plans.
    fn perform(&self, key: &Key, meant: &(Target, Part), queue: &Queue, since: Instant) -> Option<Write> {
        let now = self.0.settings.clock.now();
        if !queue.written().has_seen(&meant.0, self.position(&meant.0)) {
            return None;
        }
        let mut index = self.0.index.write();
        // What was counted is of an attempt that failed: what was made is seen by now.
        index.ledger.release(key);
        index.listen(now, Instant::now());
        let deed = pods::plan(&index, key, now)?;
        if slot(key, &deed) != *meant {
            // Something else is to be done by now.
            index.changed.pods.insert(key.clone());
            return None;
        }
        let report = report(&index, key, &deed);
        self.count(&mut index, key, &deed, since, now);
        let write = write(&index, key, meant.0.clone(), deed, now);
        drop(index);
        if let Some((about, told)) = report {
            self.report(queue, &objects::event(&about, key, &told, &self.0.settings.pod, now));
        }
        write.inspect_err(|error| tracing::error!(pod = %key, %error, "this object cannot be made")).ok()
    }

    /// Counts what is about to be done.
    fn count(&self, index: &mut Index, key: &Key, deed: &Deed, since: Instant, now: Timestamp) {
        match deed {
            Deed::Create { peer, .. } => {
                let shadow = index.shadows.get(key);
                let requests = shadow.map(|shadow| Arc::clone(&shadow.requests)).unwrap_or_default();
                let pool = shadow.and_then(Shadow::pool);
                index.ledger.reserve(key, Account { peer: peer.clone(), pool }, requests, now);
                index.memory.stop_waiting(key);
                self.0.metrics.created(since);
            }
            Deed::Change(change) => {
                if let Some((peer, growth)) = &change.growth {
                    let pool = index.pods.get(key).and_then(|pod| pod.pool.clone());
                    index.ledger.grow(key, Account { peer: peer.clone(), pool }, growth.clone(), now);
                    index.memory.stop_waiting(key);
                }
            }
            Deed::Count { pause, .. } if pause.is_positive() => {
                index.memory.hold(key, now.checked_add(*pause).unwrap_or(Timestamp::MAX));
            }
            Deed::Refuse(refusal) | Deed::Deny { refusal, .. } => self.0.metrics.refused(refusal.reason),
            Deed::Count { .. }
            | Deed::Delete { .. }
            | Deed::Stop { .. }
            | Deed::Finish { .. }
            | Deed::Admit
            | Deed::Reconcile => {}
        }
    }

    fn report(&self, queue: &Queue, event: &Event) {
        let target = Target::of::<Event>(Key::new(
            event.metadata.namespace.as_deref(),
            event.metadata.name.as_deref().unwrap_or_default(),
        ));
        match Write::create(target, event) {
            Ok(write) => match queue.write(&write.or_exists()) {
                Enqueued::Full => tracing::warn!("too many writes wait; this event is lost"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {}
            },
            Err(error) => tracing::error!(%error, "this event cannot be made"),
        }
    }
}

/// What is to be told beside a deed, and about which object.
fn report(index: &Index, key: &Key, deed: &Deed) -> Option<(About, Refusal)> {
    let uid = || index.shadows.get(key).map(|shadow| shadow.uid.to_string()).unwrap_or_default();
    match deed {
        Deed::Create { beyond, .. } => Some((About::ShadowPod(uid()), beyond.clone()?)),
        Deed::Refuse(refusal) | Deed::Stop { refusal, .. } => {
            Some((About::ShadowPod(uid()), refusal.clone()))
        }
        // Consumers listen to warnings about their pods.
        Deed::Change(change) => Some((About::Pod(change.uid.clone()), change.beyond.clone()?)),
        Deed::Deny { refusal, pod } => Some((About::Pod(pod.clone()), refusal.clone())),
        _ => None,
    }
}

/// The write by which a deed is done.
fn write(
    index: &Index,
    key: &Key,
    target: Target,
    deed: Deed,
    now: Timestamp,
) -> Result<Write, serde_json::Error> {
    let shadow = index.shadows.get(key);
    let version = shadow.map(|shadow| shadow.resource_version.clone()).unwrap_or_default();
    let status = |target: Target, said: Option<Condition>, told: Option<Condition>| {
        let before = |said: &Option<Said>, type_| said.as_ref().map(|said| repeated(type_, said));
        let said = said.or_else(|| before(&shadow?.said, CREATED));
        let told = told.or_else(|| before(&shadow?.told, UP_TO_DATE));
        let conditions: Vec<Condition> = said.into_iter().chain(told).collect();
        Write::merge_status(target, &version, &json!({ "conditions": conditions }))
    };
    match deed {
        Deed::Create { pod, .. } => Write::create(target, &*pod),
        Deed::Delete { uid } => Ok(Write::delete(target, &uid)),
        Deed::Stop { uid, grace, .. } => Ok(Write::delete(target, &uid).grace(grace)),
        Deed::Change(change) => Write::strategic(target, change.part, &change.uid, &change.patch),
        Deed::Finish { phase, pod } => {
            Write::merge_status(target, &version, &json!({ "phase": phase, "podUID": pod }))
        }
        Deed::Count { pod, recreations, .. } => {
            Write::merge_status(target, &version, &json!({ "recreations": recreations, "podUID": pod }))
        }
        Deed::Refuse(refusal) => status(target, Some(condition(CREATED, "False", &refusal, now)), None),
        Deed::Admit => {
            let made = Refusal::new(RUNS, "the pod was made");
            status(target, Some(condition(CREATED, "True", &made, now)), None)
        }
        Deed::Deny { refusal, .. } => {
            status(target, None, Some(condition(UP_TO_DATE, "False", &refusal, now)))
        }
        Deed::Reconcile => {
            let changed = Refusal::new(CHANGED, "the pod is as it should be");
            status(target, None, Some(condition(UP_TO_DATE, "True", &changed, now)))
        }
    }
}

/// A pod was not made, not changed, or not removed.
pub(super) fn note_failed_pod(index: &mut Index, key: &Key, failed: &Failed, now: Timestamp) {
    let made = index.ledger.release(key);
    let freed = index.ledger.release_growth(key).or_else(|| made.clone());
    let refusal = match failed.reason {
        Reason::Forbidden if failed.message.contains("exceeded quota") => {
            Some(Refusal::new(QUOTA_EXCEEDED, &failed.message))
        }
        Reason::Forbidden => Some(Refusal::new(FORBIDDEN, &failed.message)),
        Reason::Refused => Some(Refusal::new(INVALID, &failed.message)),
        // Another pod has the name; one that was to be changed and is gone is made again without a pause.
        Reason::Conflict if made.is_some() && index.pods.get(key).is_none() => {
            Some(Refusal::new(FAILED, &failed.message))
        }
        // Nothing that the consumer could do about it; it is tried again.
        _ => None,
    };
    match refusal {
        Some(mut refusal) => {
            refusal.message.truncate(refusal.message.floor_char_boundary(MAX_MESSAGE));
            index.memory.fail(key, refusal, now);
        }
        None => drop(index.memory.succeed(key)),
    }
    index.changed.pods.insert(key.clone());
    if let Some(peer) = freed {
        index.try_again(&peer);
    }
}

/// What a deed is done to.
fn slot(key: &Key, deed: &Deed) -> (Target, Part) {
    let pod = || Target::of::<Pod>(key.clone());
    match deed {
        Deed::Create { .. } | Deed::Delete { .. } | Deed::Stop { .. } => (pod(), Part::Object),
        Deed::Change(change) => (pod(), change.part),
        Deed::Finish { .. }
        | Deed::Refuse(_)
        | Deed::Admit
        | Deed::Deny { .. }
        | Deed::Reconcile
        | Deed::Count { .. } => (Target::of::<ShadowPod>(key.clone()), Part::Status),
    }
}

/// A condition of a ShadowPod.
fn condition(type_: &str, status: &str, said: &Refusal, now: Timestamp) -> Condition {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut message = said.message.clone();
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: said.reason.to_owned(),
        message,
        last_transition_time: Time(now),
        observed_generation: None,
    }
}

/// A condition as it was said before.
fn repeated(type_: &str, said: &Said) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: if said.fine { "True" } else { "False" }.to_owned(),
        reason: said.reason.to_string(),
        message: said.message.to_string(),
        last_transition_time: Time(said.since),
        observed_generation: None,
    }
}
