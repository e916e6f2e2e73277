//! Pods that must never run twice run only while their consumer says that it is there.
//!
//! ```text
//!  consumer                                            here
//!  Lease liqo-home, renewed every 2 s ──▶ heard of ──▶ pods with liqo.io/fenced run
//!                                   16 s of silence ──▶ they are stopped, within 6 s, and not made again
//!                                     heard of again ──▶ those whose ShadowPods are still there are made again
//! ```
//!
//! The consumer's clock is not asked. A renewal counts from when our API server noted it, or from when it was sent, if that
//! is earlier: a consumer says when that was by our own clock, as it was last told. So one that was long on its way is old.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use liqo_api::fence;
use liqo_core::names::ClusterId;
use liqo_kit::watch::{Identity, Meta, Wire};
use liqo_kit::{Index as Indexed, Key};
use serde::Deserialize;
use tokio::time::Instant;

use crate::index::Index;
use crate::pods::{Deed, Phase, PodFacts, Refusal, Shadow};

#[cfg(test)]
mod tests;

/// How long a new ShadowPod waits for its consumer to be heard of before that is told: the two come at the same time.
const PATIENCE: SignedDuration = SignedDuration::from_secs(fence::DURATION.as_secs().cast_signed());

/// A Lease as it is read: with what the API server noted about its writers.
#[derive(Deserialize)]
pub(crate) struct LeaseOnWire {
    metadata: LeaseMeta,
    #[serde(default)]
    spec: LeaseSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseMeta {
    #[serde(flatten)]
    meta: Meta,
    #[serde(default)]
    managed_fields: Vec<Writer>,
}

#[derive(Deserialize)]
struct Writer {
    #[serde(default)]
    manager: Box<str>,
    time: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    renew_time: Option<MicroTime>,
}

impl Wire for LeaseOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.meta.identity()
    }
}

/// When a consumer last said that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    /// By the clock of our API server.
    at: Timestamp,
    /// When it was seen, and until when it is good.
    seen: Instant,
    until: Instant,
}

impl Renewal {
    /// Reads a Lease that is seen `now`, when our clock says `clock`; `None` if it was never renewed.
    pub(crate) fn read(lease: &LeaseOnWire, clock: Timestamp, now: Instant) -> Option<Self> {
        let said = lease.spec.renew_time.as_ref()?.0;
        let writers = lease.metadata.managed_fields.iter();
        let renewals = writers.filter(|writer| &*writer.manager == fence::RENEWER);
        let noted = renewals.filter_map(|writer| writer.time.as_ref()).map(|time| time.0).max()?;
        let at = said.min(noted);
        // One from the future is from now: it counts no longer than others.
        let age = Duration::try_from(clock.duration_since(at)).unwrap_or_default();
        Some(Self { at, seen: now, until: now + fence::DURATION.saturating_sub(age) })
    }
}

/// Who is heard of, and what depends on that.
#[derive(Debug, Default)]
pub(crate) struct Fence {
    /// By tenant namespace.
    renewals: BTreeMap<Box<str>, Renewal>,
    /// The tenant namespaces of those who are heard of.
    heard: BTreeSet<Box<str>>,
    /// ShadowPods and pods that must never run twice.
    keys: BTreeSet<Key>,
    /// When to look at new ones whose consumer may not have been heard of.
    dues: BTreeSet<(Timestamp, Key)>,
}

impl Fence {
    /// How long until somebody may not be heard of any more, or something is due.
    pub(crate) fn next(&self, clock: Timestamp, now: Instant) -> Option<Duration> {
        if self.keys.is_empty() {
            return None;
        }
        let ends = self.heard.iter().filter_map(|place| self.renewals.get(place));
        let ends = ends.map(|renewal| renewal.until.saturating_duration_since(now));
        let dues = self.dues.first().map(|(at, _)| at.duration_since(clock));
        ends.chain(dues.map(|due| Duration::try_from(due).unwrap_or_default())).min()
    }

    /// A ShadowPod or pod came or changed; or both are gone.
    pub(crate) fn keep(&mut self, key: &Key, fenced: bool) {
        if fenced {
            self.keys.insert(key.clone());
        } else {
            self.keys.remove(key);
        }
    }

    /// A ShadowPod came.
    pub(crate) fn expect(&mut self, key: &Key, created: Timestamp) {
        self.dues.insert((created.checked_add(PATIENCE).unwrap_or(Timestamp::MAX), key.clone()));
    }

    fn take_due(&mut self, clock: Timestamp) -> Vec<Key> {
        let mut due = Vec::new();
        while let Some((at, key)) = self.dues.pop_first() {
            if at > clock {
                self.dues.insert((at, key));
                break;
            }
            due.push(key);
        }
        due
    }
}

impl Index {
    /// Finds out who is heard of no longer, and what is due; what depends on it is looked at.
    pub(crate) fn listen(&mut self, clock: Timestamp, now: Instant) {
        let Fence { renewals, heard, .. } = &mut self.fence;
        let before = heard.len();
        heard.retain(|place| renewals.get(place).is_some_and(|renewal| now < renewal.until));
        if heard.len() != before {
            self.changed.pods.extend(self.fence.keys.iter().cloned());
        }
        let due = self.fence.take_due(clock);
        self.changed.pods.extend(due);
    }

    /// Whether a consumer is heard of.
    fn hears_of(&self, peer: &ClusterId) -> bool {
        self.tenant_of(peer).is_some_and(|tenant| self.fence.heard.contains(tenant.name.as_str()))
    }

    /// Notes whether this ShadowPod or its pod must never run twice.
    pub(crate) fn note_fence(&mut self, key: &Key) {
        let shadow = self.shadows.get(key).is_some_and(Shadow::is_fenced);
        let fenced = shadow || self.pods.get(key).is_some_and(|pod| pod.fenced);
        self.fence.keep(key, fenced);
    }
}

impl Indexed<Renewal> for Index {
    fn apply(&mut self, key: &Key, renewal: Renewal) {
        let Some(place) = key.namespace() else { return };
        let before = self.fence.renewals.get(place);
        // Seen again, it is as old as before, whatever the clock says.
        if before.is_some_and(|before| before.at == renewal.at) {
            return;
        }
        self.fence.renewals.insert(place.into(), renewal);
        if renewal.seen < renewal.until && self.fence.heard.insert(place.into()) {
            self.changed.pods.extend(self.fence.keys.iter().cloned());
        }
    }

    fn delete(&mut self, key: &Key) {
        let place = key.namespace().unwrap_or_default();
        self.fence.renewals.remove(place);
        if self.fence.heard.remove(place) {
            self.changed.pods.extend(self.fence.keys.iter().cloned());
        }
    }
}

/// Stops a pod that must never run twice when its consumer is not heard of. One that is ending already is given no more
/// time than the others.
pub(crate) fn stop(index: &Index, key: &Key, pod: &PodFacts) -> Option<Deed> {
    let shadow = index.shadows.get(key).filter(|shadow| shadow.uid == pod.owner);
    let fenced = pod.fenced || shadow.is_some_and(Shadow::is_fenced);
    if !fenced || pod.phase != Phase::Living {
        return None;
    }
    let peer = index.space(key.namespace()?)?.peer.as_ref()?;
    let most = u32::try_from(fence::GRACE.as_secs()).unwrap_or(u32::MAX);
    let ends_soon = pod.given.is_some_and(|given| given <= most);
    let stop = || Deed::Stop { uid: pod.uid.to_string(), grace: pod.grace.min(most), refusal: refusal() };
    (!index.hears_of(peer) && !ends_soon).then(stop)
}

/// Why a pod is not made now, if it must never run twice and its consumer is not heard of: nothing to say yet, or what.
pub(crate) fn hold(
    index: &Index,
    shadow: &Shadow,
    peer: &ClusterId,
    now: Timestamp,
) -> Option<Option<Refusal>> {
    let held = shadow.is_fenced() && !index.hears_of(peer);
    held.then(|| (now.duration_since(shadow.created) >= PATIENCE).then(refusal))
}

fn refusal() -> Refusal {
    let message = format!(
        "the consumer has not renewed its Lease {} here for {} s: the pod must never run twice, so it does not run here until \
         the consumer is heard of again",
        fence::LEASE,
        fence::DURATION.as_secs()
    );
    Refusal::new(fence::FENCED, message)
}
