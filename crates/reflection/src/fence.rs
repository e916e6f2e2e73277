//! Pods that must never run twice: until when their provider keeps them, and when they may be started elsewhere.
//!
//! ```text
//!  home                                          provider
//!  renews the Lease every 2 s ─────────────────▶ keeps the pods while it was renewed in the last 16 s
//!      ⋮ the link breaks                             ⋮
//!  last attempt + 16 s ·························· stops them, within 6 s
//!  last attempt + 25 s: may start them elsewhere
//! ```
//!
//! A request that was not answered may arrive at any time later. So each renewal says when it was sent, by the provider's
//! own clock: what its API server noted at the last answer, plus what has passed since. One that arrives late is old.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PodSpec, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use liqo_api::{annotations, fence, labels, names};
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// How often the Lease is renewed. What has passed since the last time when a link breaks is missing when it is back.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// How soon it is tried again if something failed while the Lease lasts: an outage of seconds must not outlast it.
const AGAIN: Duration = Duration::from_millis(500);
/// The same when it has run out.
const LATER: Duration = Duration::from_secs(2);
/// What the provider may need to notice, and its nodes to be told.
const MARGIN: Duration = Duration::from_secs(3);

/// How long after the last attempt to renew the provider has certainly stopped what must never run twice.
pub(crate) const SILENCE: Duration =
    Duration::from_secs(fence::DURATION.as_secs() + fence::GRACE.as_secs() + MARGIN.as_secs());

/// How a pod is kept from running twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Not at all: it does no harm.
    None,
    /// It waits for its provider for ever, and is started elsewhere by nobody.
    Waits,
    /// Its provider stops it when we are not heard of.
    Fenced,
}

impl Guard {
    /// How this pod is: one of a StatefulSet has an identity, one with a claim writes to what another could write to as well,
    /// and others may say so.
    pub(crate) fn of(meta: &ObjectMeta, spec: &PodSpec) -> Self {
        let mut owners = meta.owner_references.iter().flatten();
        let of_a_set = |owner: &OwnerReference| {
            let apps = owner.api_version.starts_with("apps/");
            apps && owner.kind == "StatefulSet" && owner.controller == Some(true)
        };
        let mut volumes = spec.volumes.iter().flatten();
        let said = meta.annotations.as_ref().and_then(|notes| notes.get(annotations::FENCED));
        let single = owners.any(of_a_set)
            || volumes.any(|volume| volume.persistent_volume_claim.is_some())
            || said.is_some_and(|said| said == labels::TRUE);
        match (single, patience(spec).is_none()) {
            (false, _) => Self::None,
            (true, true) => Self::Waits,
            (true, false) => Self::Fenced,
        }
    }
}

/// How long a pod stays when what it runs on does not answer; for ever if there is no end to it.
pub(crate) fn patience(spec: &PodSpec) -> Option<Duration> {
    let concerns = |it: &&Toleration| {
        let key = it.key.as_deref().unwrap_or_default();
        let effect = it.effect.as_deref().unwrap_or_default();
        (key.is_empty() || key == names::UNREACHABLE_TAINT) && (effect.is_empty() || effect == "NoExecute")
    };
    let mut all = spec.tolerations.iter().flatten().filter(concerns).peekable();
    if all.peek().is_none() {
        return Some(Duration::ZERO);
    }
    // As Kubernetes does it: the shortest counts.
    let seconds = all.filter_map(|it| it.toleration_seconds).min()?;
    Some(Duration::from_secs(seconds.try_into().unwrap_or_default()))
}

/// What time it is at a provider, or a little earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Anchor {
    /// What its API server noted when it last answered.
    noted: Timestamp,
    /// When we heard of it.
    heard: Instant,
}

impl Anchor {
    fn time(&self, now: Instant) -> Timestamp {
        self.noted.checked_add(now.duration_since(self.heard)).unwrap_or(self.noted)
    }
}

/// What is known of our Lease at one provider.
#[derive(Clone, Debug)]
pub(crate) struct Tie {
    anchor: Option<Anchor>,
    /// When it was last tried to renew it, whatever came of that.
    tried: Instant,
    /// When the last renewal was sent that is known to have arrived.
    renewed: Option<Instant>,
    /// Whether something failed since the provider last answered.
    failed: bool,
    /// Whether all that lies there is wanted, as was seen after the Lease had run out.
    clear: bool,
    /// Nothing is to be done before.
    due: Instant,
}

/// What to do next about a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing before then.
    Wait(Instant),
    /// Find out whether the provider answers, by reading.
    Ask,
    /// See whether all that lies there is wanted: a renewal brings it to life.
    Look,
    /// Have the provider's API server note its time.
    Greet,
    /// Renew it, and say that this is the time.
    Renew(Timestamp),
}

impl Tie {
    /// Nothing is known; somebody before us may have renewed it until now.
    fn new(now: Instant) -> Self {
        Self { anchor: None, tried: now, renewed: None, failed: false, clear: false, due: now }
    }

    /// What to do next.
    pub(crate) fn next(&self, now: Instant) -> Next {
        if now < self.due {
            return Next::Wait(self.due);
        }
        if self.failed {
            return Next::Ask;
        }
        if !self.lasts(now) && !self.clear {
            return Next::Look;
        }
        self.anchor.map_or(Next::Greet, |anchor| Next::Renew(anchor.time(now)))
    }

    fn lasts(&self, now: Instant) -> bool {
        self.renewed.is_some_and(|sent| now.duration_since(sent) < fence::DURATION)
    }

    /// A renewal is about to be sent.
    pub(crate) fn try_now(&mut self, now: Instant) {
        self.tried = now;
    }

    /// The renewal that was tried last has arrived; the API server noted this time.
    pub(crate) fn renew(&mut self, noted: Option<Timestamp>, now: Instant) {
        self.greet(noted, now);
        self.renewed = Some(self.tried);
        self.clear = false;
        self.due = self.tried + EVERY;
    }

    /// The provider's API server has told its time.
    pub(crate) fn greet(&mut self, noted: Option<Timestamp>, now: Instant) {
        self.anchor = noted.map(|noted| Anchor { noted, heard: now }).or(self.anchor);
        if self.anchor.is_none() {
            self.fail(now);
        }
    }

    /// The provider answered.
    pub(crate) const fn answer(&mut self) {
        self.failed = false;
    }

    /// All that lies at the provider is wanted, or not all of it.
    pub(crate) fn look(&mut self, clear: bool, now: Instant) {
        self.clear = clear;
        if !clear {
            self.due = now + AGAIN;
        }
    }

    /// Something failed: the provider is asked whether it answers before anything else is tried. Returns whether that is
    /// news.
    pub(crate) fn fail(&mut self, now: Instant) -> bool {
        let wait = if self.lasts(now) { AGAIN } else { LATER };
        (self.clear, self.due) = (false, now + wait);
        !std::mem::replace(&mut self.failed, true)
    }
}

/// Our Leases at providers.
pub(crate) struct Ties {
    began: Instant,
    ties: HashMap<Arc<str>, Tie>,
}

impl Ties {
    /// Nothing is known; somebody before us may have renewed until now.
    pub(crate) fn new(now: Instant) -> Self {
        Self { began: now, ties: HashMap::new() }
    }

    /// That at this provider.
    pub(crate) fn at(&mut self, provider: &Arc<str>) -> &mut Tie {
        let began = self.began;
        self.ties.entry(Arc::clone(provider)).or_insert_with(|| Tie::new(began))
    }

    /// How long nobody has tried to renew the one at this provider.
    pub(crate) fn silence(&self, provider: &str, now: Instant) -> Duration {
        let tried = self.ties.get(provider).map_or(self.began, |tie| tie.tried);
        now.duration_since(tried)
    }
}
