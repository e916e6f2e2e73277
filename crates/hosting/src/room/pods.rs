//! What the leader does about pods: count, make, remove, and tell why not.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use liqo_api::ShadowPod;
use liqo_api::shadow_pod::CREATED;
use liqo_kit::write::{Enqueued, Failed, Reason, Target, Write, Written};
use liqo_kit::{Key, Queue};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Room;
use crate::index::Index;
use crate::objects;
use crate::pods::{self, Deed, FAILED, FORBIDDEN, INVALID, QUOTA_EXCEEDED, RUNS, Refusal};

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
            let (target, status) = slot(&key, &deed);
            let (room, written, meant) = (self.clone(), queue.written().clone(), target.clone());
            let (subject, events, since) = (key.clone(), queue.clone(), Instant::now());
            let plan = move || room.perform(&subject, &meant, &written, &events, since);
            if queue.ask(target, status, plan) == Enqueued::Full {
                pods.insert(key);
                return;
            }
        }
    }

    /// What is to be done about a pod; those for which there is no room are remembered.
    fn judge(&self, key: &Key, now: Timestamp) -> Option<Deed> {
        let deed = pods::plan(&self.0.index.read(), key, now);
        let waits = matches!(&deed, Some(Deed::Refuse(refusal)) if refusal.reason == QUOTA_EXCEEDED);
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
    fn perform(
        &self,
        key: &Key,
        target: &Target,
        written: &Written,
        queue: &Queue,
        since: Instant,
    ) -> Option<Write> {
        let now = self.0.settings.clock.now();
        if !written.has_seen(target, self.position(target)) {
            return None;
        }
        let mut index = self.0.index.write();
        // What was counted is of an attempt that failed: what was made is seen by now.
        index.ledger.release(key);
        let deed = pods::plan(&index, key, now)?;
        if slot(key, &deed).0 != *target {
            // Something else is to be done by now.
            index.changed.pods.insert(key.clone());
            return None;
        }
        let shadow = index.shadows.get(key);
        let uid = shadow.map(|shadow| shadow.uid.clone()).unwrap_or_default();
        let version = shadow.map(|shadow| shadow.resource_version.clone()).unwrap_or_default();
        let told = match &deed {
            Deed::Create { beyond, .. } => beyond.clone(),
            Deed::Refuse(refusal) => Some(refusal.clone()),
            _ => None,
        };
        let write = match deed {
            Deed::Create { peer, pod, .. } => {
                let requests = shadow.map(|shadow| Arc::clone(&shadow.requests)).unwrap_or_default();
                index.ledger.reserve(key, peer, requests, now);
                index.memory.stop_waiting(key);
                self.0.metrics.created(since);
                Write::create(target.clone(), &*pod)
            }
            Deed::Delete { uid } => Ok(Write::delete(target.clone(), &uid)),
            Deed::Finish { phase, pod } => {
                Write::merge_status(target.clone(), &version, &json!({ "phase": phase, "podUID": pod }))
            }
            Deed::Refuse(refusal) => {
                self.0.metrics.refused(refusal.reason);
                Write::merge_status(target.clone(), &version, &conditions("False", &refusal, now))
            }
            Deed::Admit => {
                let refusal = Refusal::new(RUNS, "the pod was made");
                Write::merge_status(target.clone(), &version, &conditions("True", &refusal, now))
            }
        };
        drop(index);
        if let Some(told) = told {
            self.report(queue, key, &uid, &told, now);
        }
        write.inspect_err(|error| tracing::error!(pod = %key, %error, "this object cannot be made")).ok()
    }

    fn report(&self, queue: &Queue, key: &Key, uid: &str, told: &Refusal, now: Timestamp) {
        let event = objects::event(key, uid, told, &self.0.settings.pod, now);
        let target = Target::of::<Event>(Key::new(
            event.metadata.namespace.as_deref(),
            event.metadata.name.as_deref().unwrap_or_default(),
        ));
        match Write::create(target, &event) {
            Ok(write) => match queue.write(&write.or_exists()) {
                Enqueued::Full => tracing::warn!("too many writes wait; this event is lost"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {}
            },
            Err(error) => tracing::error!(pod = %key, %error, "this event cannot be made"),
        }
    }
}

/// A pod was not made, or not removed.
pub(super) fn note_failed_pod(index: &mut Index, key: &Key, failed: &Failed, now: Timestamp) {
    let freed = index.ledger.release(key);
    let refusal = match failed.reason {
        Reason::Forbidden if failed.message.contains("exceeded quota") => {
            Some(Refusal::new(QUOTA_EXCEEDED, &failed.message))
        }
        Reason::Forbidden => Some(Refusal::new(FORBIDDEN, &failed.message)),
        Reason::Refused => Some(Refusal::new(INVALID, &failed.message)),
        Reason::Conflict if index.pods.get(key).is_none() => Some(Refusal::new(FAILED, &failed.message)),
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

/// The object that a deed is done to, and whether to its status.
fn slot(key: &Key, deed: &Deed) -> (Target, bool) {
    match deed {
        Deed::Create { .. } | Deed::Delete { .. } => (Target::of::<Pod>(key.clone()), false),
        Deed::Finish { .. } | Deed::Refuse(_) | Deed::Admit => (Target::of::<ShadowPod>(key.clone()), true),
    }
}

/// The one condition of a ShadowPod.
fn conditions(status: &str, said: &Refusal, now: Timestamp) -> Value {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let condition = Condition {
        type_: CREATED.to_owned(),
        status: status.to_owned(),
        reason: said.reason.to_owned(),
        message: said.message.clone(),
        last_transition_time: Time(now),
        observed_generation: None,
    };
    json!({ "conditions": [condition] })
}
