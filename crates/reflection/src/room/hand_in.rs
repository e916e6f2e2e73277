//! From steps to writes.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use liqo_api::ShadowPod;
use liqo_kit::watch::WatchStatus;
use liqo_kit::write::{Enqueued, Plan, Target, Write};
use liqo_kit::{Key, Queue};
use parking_lot::Mutex;

use super::Room;
use super::lead::Round;
use crate::pods::plan::{Planned, Step};

/// How often the same status is written in vain until everything is looked at again: an API server that changes what it
/// is given would be asked for ever.
const MOST_TRIES: u8 = 16;

/// The status that was last written for each pod, and how often.
pub(super) type Tries = HashMap<Key, (u64, u8)>;

/// Where a write about a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Slot {
    /// The pod at home.
    Pod,
    /// Its status.
    Status,
    /// The ShadowPod at this provider.
    Shadow(Arc<str>),
}

impl Step {
    fn slot(&self) -> Option<Slot> {
        match self {
            Self::Send { provider, .. } | Self::Renew { provider, .. } | Self::Withdraw { provider, .. } => {
                Some(Slot::Shadow(Arc::clone(provider)))
            }
            Self::Show { .. } => Some(Slot::Status),
            Self::Finish { .. } | Self::Leave { .. } => Some(Slot::Pod),
            Self::Recall => None,
        }
    }

    fn target(&self, key: &Key) -> Target {
        match self {
            Self::Send { shadow, .. } | Self::Renew { shadow, .. } => {
                let namespace = shadow.metadata.namespace.as_deref();
                Target::of::<ShadowPod>(Key::new(namespace, key.name()))
            }
            Self::Withdraw { remote, .. } => Target::of::<ShadowPod>(remote.clone()),
            Self::Show { .. } | Self::Finish { .. } | Self::Leave { .. } | Self::Recall => {
                Target::of::<Pod>(key.clone())
            }
        }
    }

    fn write(&self, key: &Key) -> Option<Write> {
        let target = self.target(key);
        let write = match self {
            Self::Send { shadow, .. } => Write::create(target, shadow),
            Self::Renew { uid, version, shadow, .. } => Write::replace(target, uid, version, shadow),
            Self::Withdraw { uid, .. } => Ok(Write::delete(target, uid)),
            Self::Show { uid, patch, .. } => Write::strategic_status(target, uid, patch),
            Self::Finish { uid } => Ok(Write::delete(target, uid).grace(0)),
            Self::Leave { uid } => Ok(Write::delete(target, uid)),
            Self::Recall => return None,
        };
        write.inspect_err(|error| tracing::error!(pod = %key, %error, "cannot write this down")).ok()
    }
}

/// A write that is planned again when its turn comes, but for the first time.
struct Again {
    room: Room,
    me: Arc<str>,
    key: Key,
    slot: Slot,
    queue: Queue,
    first: Mutex<Option<Write>>,
}

impl Plan for Again {
    fn plan(&self) -> Option<Write> {
        if let Some(write) = self.first.lock().take() {
            return Some(write);
        }
        let planned = self.room.planned(&self.me, &self.key, self.room.0.settings.clock.now());
        let step = planned.steps.into_iter().find(|step| step.slot().as_ref() == Some(&self.slot))?;
        self.room.due(&step, &self.slot, &self.key, &self.queue).then(|| step.write(&self.key)).flatten()
    }
}

impl Room {
    /// Hands in what is planned about a pod.
    pub(super) fn hand_in(&self, queue: &Queue, me: &str, key: &Key, planned: Planned, round: &mut Round) {
        if let Some(report) = &planned.report {
            let uid = self.0.pods.read().home(key).map(|home| home.uid.clone());
            let now = self.0.settings.clock.now();
            let write = uid.and_then(|uid| report.about(key, &uid, &self.0.settings.pod, now));
            if let Some(write) = write {
                // Whether it is told in an event as well is not worth waiting for.
                let _ = queue.write(&write);
            }
        }
        for step in planned.steps {
            let Some(slot) = step.slot() else {
                round.recall(key);
                continue;
            };
            let to = match &slot {
                Slot::Shadow(provider) => self.0.links.lock().queue(provider).cloned(),
                Slot::Pod | Slot::Status => Some(queue.clone()),
            };
            let Some(to) = to else { continue };
            if !self.due(&step, &slot, key, &to) {
                continue;
            }
            let Some(write) = step.write(key) else { continue };
            self.0.metrics.begin(write.target());
            let again = Again {
                room: self.clone(),
                me: me.into(),
                key: key.clone(),
                slot,
                queue: to.clone(),
                first: Mutex::new(Some(write)),
            };
            if to.enqueue(again) == Enqueued::Full {
                self.0.pods.write().touch(key.clone());
                round.full = true;
            }
        }
    }

    /// Whether this may be written now: what we wrote before has been seen, and it was not written in vain too often.
    fn due(&self, step: &Step, slot: &Slot, key: &Key, queue: &Queue) -> bool {
        let position = match slot {
            Slot::Shadow(provider) => {
                self.0.links.lock().position(key.namespace().unwrap_or_default(), provider)
            }
            Slot::Pod | Slot::Status => self.0.pods_here.lock().as_ref().map_or(0, WatchStatus::position),
        };
        if !queue.written().has_seen(&step.target(key), position) {
            return false;
        }
        let Step::Show { fingerprint, .. } = step else { return true };
        let mut tries = self.0.tries.lock();
        let (last, count) = tries.entry(key.clone()).or_insert((*fingerprint, 0));
        if *last == *fingerprint {
            *count = count.saturating_add(1);
        } else {
            (*last, *count) = (*fingerprint, 1);
        }
        *count <= MOST_TRIES
    }
}
