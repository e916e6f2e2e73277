//! What the leader remembers, and a later one need not know.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use liqo_api::shadow_pod::PodPhase;
use liqo_core::names::ClusterId;
use liqo_kit::Key;
use liqo_kit::write::Target;

use crate::pods::{Loss, Refusal, Shadow};

/// How long a pod that the API server refused is left alone, at first and at most: the reason may have gone.
const FIRST_WAIT: SignedDuration = SignedDuration::from_secs(15);
const DOUBLINGS: u32 = 5;

/// What the leader remembers.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Pods that could not be made.
    failures: BTreeMap<Key, Failure>,
    /// When they, and those that vanished, are looked at again.
    dues: BTreeSet<(Timestamp, Key)>,
    /// Pods that came to their end and are gone, before that could be noted: of which ShadowPod, how, and which pod.
    pub(crate) finished: BTreeMap<Key, (Box<str>, PodPhase, Box<str>)>,
    /// Pods that vanished and are to be made again.
    losses: BTreeMap<Key, Loss>,
    /// Until when they are not.
    holds: BTreeMap<Key, Timestamp>,
    /// Pods for which the contract has no room, the oldest first.
    waiting: BTreeMap<ClusterId, BTreeSet<(Timestamp, Key)>>,
    waits: BTreeMap<Key, (ClusterId, Timestamp)>,
    /// Since when peers are without contract.
    pub(crate) lapsed: BTreeMap<ClusterId, Timestamp>,
    /// Namespaces, and what is in them, that could not be made.
    pub(crate) troubles: BTreeMap<Target, String>,
}

/// A pod that could not be made.
#[derive(Clone, Debug, PartialEq)]
struct Failure {
    refusal: Refusal,
    /// When it is tried again.
    until: Timestamp,
    attempts: u32,
}

impl Memory {
    /// Why a pod could not be made, while it is not tried again.
    pub(crate) fn failure(&self, key: &Key, now: Timestamp) -> Option<&Refusal> {
        self.failures.get(key).filter(|failure| failure.until > now).map(|failure| &failure.refusal)
    }

    /// Remembers that a pod could not be made.
    pub(crate) fn fail(&mut self, key: &Key, refusal: Refusal, now: Timestamp) {
        let attempts = self.succeed(key);
        let wait = FIRST_WAIT * 2_i32.pow(attempts.min(DOUBLINGS));
        let until = now.checked_add(wait).unwrap_or(Timestamp::MAX);
        let attempts = attempts.saturating_add(1);
        self.dues.insert((until, key.clone()));
        self.failures.insert(key.clone(), Failure { refusal, until, attempts });
    }

    /// Forgets that a pod could not be made; returns how often.
    pub(crate) fn succeed(&mut self, key: &Key) -> u32 {
        let Some(failure) = self.failures.remove(key) else { return 0 };
        self.dues.remove(&(failure.until, key.clone()));
        failure.attempts
    }

    /// Forgets what was said about a wish, as there is another one.
    pub(crate) fn begin_anew(&mut self, key: &Key) {
        self.succeed(key);
        self.stop_waiting(key);
    }

    /// Forgets what is remembered of a pod.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.begin_anew(key);
        self.finished.remove(key);
        self.recover(key);
    }

    /// A pod vanished.
    pub(crate) fn lose(&mut self, key: &Key, loss: Loss) {
        self.losses.insert(key.clone(), loss);
    }

    /// There is a pod again.
    pub(crate) fn recover(&mut self, key: &Key) {
        self.losses.remove(key);
        self.holds.remove(key);
    }

    /// The loss that is not counted in this ShadowPod yet.
    pub(crate) fn loss(&self, key: &Key, shadow: &Shadow) -> Option<&Loss> {
        self.losses.get(key).filter(|loss| loss.is_new_to(shadow))
    }

    /// A pod is not made before then.
    pub(crate) fn hold(&mut self, key: &Key, until: Timestamp) {
        self.holds.insert(key.clone(), until);
        self.dues.insert((until, key.clone()));
    }

    /// Whether it is too early to make this pod.
    pub(crate) fn is_held(&self, key: &Key, now: Timestamp) -> bool {
        self.holds.get(key).is_some_and(|until| *until > now)
    }

    /// The pods that are to be tried again now; each is told once.
    pub(crate) fn take_due(&mut self, now: Timestamp) -> Vec<Key> {
        let mut due = Vec::new();
        while let Some((at, key)) = self.dues.pop_first() {
            if at > now {
                self.dues.insert((at, key));
                break;
            }
            due.push(key);
        }
        due
    }

    /// When the next one is.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.dues.first().map(|(at, _)| *at)
    }

    /// A pod waits for room in a contract.
    pub(crate) fn wait(&mut self, key: &Key, peer: &ClusterId, created: Timestamp) {
        if !self.waits.contains_key(key) {
            self.waits.insert(key.clone(), (peer.clone(), created));
            self.waiting.entry(peer.clone()).or_default().insert((created, key.clone()));
        }
    }

    /// A pod waits no longer.
    pub(crate) fn stop_waiting(&mut self, key: &Key) {
        let Some((peer, created)) = self.waits.remove(key) else { return };
        if let Some(waiting) = self.waiting.get_mut(&peer) {
            waiting.remove(&(created, key.clone()));
            if waiting.is_empty() {
                self.waiting.remove(&peer);
            }
        }
    }

    /// The pods of a peer that wait, the oldest first.
    pub(crate) fn waiting(&self, peer: &ClusterId) -> impl Iterator<Item = &Key> {
        self.waiting.get(peer).into_iter().flatten().map(|(_, key)| key)
    }

    /// How many pods wait.
    pub(crate) fn waiters(&self) -> usize {
        self.waits.len()
    }
}
