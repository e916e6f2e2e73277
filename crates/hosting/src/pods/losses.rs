//! Pods that vanished: somebody deleted them, or drained their node. Each is counted in its ShadowPod, where the count
//! survives whoever keeps it, and made again, at once at first, and later and later if it happens again and again.

use jiff::{SignedDuration, Timestamp};

use super::{Deed, PodFacts, Shadow};

#[cfg(test)]
mod tests;

/// A pod that lived so long had a good life; that it vanished says nothing about the next.
const GOOD_LIFE: SignedDuration = SignedDuration::from_mins(10);
/// The wait before a pod is made that vanished a second time, soon after it was made; it doubles with each further time.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// The longest wait: as long as a kubelet waits for a container that crashes again and again.
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(5);
/// After so many doublings it is the longest.
const DOUBLINGS: u32 = 9;

/// A pod that vanished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    /// The ShadowPod that it was made for.
    pub(crate) owner: Box<str>,
    pub(crate) uid: Box<str>,
    created: Timestamp,
}

impl Loss {
    /// The loss of this pod.
    pub(crate) fn of(pod: &PodFacts) -> Self {
        Self { owner: pod.owner.clone(), uid: pod.uid.clone(), created: pod.created }
    }

    /// Whether it is one of this ShadowPod that is not counted yet.
    pub(crate) fn is_new_to(&self, shadow: &Shadow) -> bool {
        self.owner == shadow.uid && shadow.counted.as_ref() != Some(&self.uid)
    }

    /// Counts it.
    pub(super) fn count(&self, shadow: &Shadow, now: Timestamp) -> Deed {
        let recreations = shadow.recreations.saturating_add(1);
        let pause = pause(recreations, now.duration_since(self.created));
        Deed::Count { pod: self.uid.to_string(), recreations, pause }
    }
}

/// How long to wait before a pod is made for the so-manieth further time, if the last one lived for so long.
fn pause(recreations: u32, lived: SignedDuration) -> SignedDuration {
    if recreations < 2 || lived >= GOOD_LIFE {
        return SignedDuration::ZERO;
    }
    let doublings = (recreations - 2).min(DOUBLINGS);
    (FIRST_PAUSE * 2_i32.pow(doublings)).min(LONGEST_PAUSE)
}
