//! What should happen about one pod, given what is known now.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::PodStatus;
use liqo_api::labels::POOL;
use liqo_api::shadow_pod::PodPhase;
use liqo_api::{ShadowPod, fence};
use liqo_kit::Key;
use liqo_providers::Health;
use liqo_providers::nodes::Nodes;
use serde_json::Value;

use super::facts::{Home, Remote, Shadow, VirtualNode};
use super::index::{Place, Pods};
use super::outgoing::{self, Draft};
use super::status::{self, Urgency};
use crate::fence::{Guard, SILENCE};
use crate::reports::Report;
use crate::route::Route;
use crate::translate::Translate;

#[cfg(test)]
mod tests;

/// How long a pod that is wrong before it runs is not told about, since more may be said in a moment.
const SOON: SignedDuration = SignedDuration::from_millis(50);
/// How long a pod that is on its way is not told about: most run by then, and that is one thing to tell instead of three.
const LATER: SignedDuration = SignedDuration::from_secs(2);
/// How long a pod waits for its namespace at the provider before that is told.
const MAPPING: SignedDuration = SignedDuration::from_secs(1);
/// Why a pod is not sent whose namespace is not at the provider.
pub(crate) const BACKOFF: &str = "OffloadingBackoff";
/// Why a pod is not ready whose provider does not answer.
pub(crate) const UNREACHABLE: &str = "ProviderUnreachable";
/// Why a pod is not ready that vanished at its provider.
pub(crate) const MISSING: &str = "RemotePodMissing";

/// What is known of a provider.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Why it does not answer, while it does not.
    pub(crate) gone: Option<Arc<str>>,
    /// The storage class there that stands for ours.
    pub(crate) storage_class: Option<String>,
}

/// All that is known.
pub(crate) struct View<'a> {
    /// The ID of this cluster.
    pub(crate) home: &'a str,
    /// Where liqo itself runs: pods of this namespace never go anywhere.
    pub(crate) own: Option<&'a str>,
    pub(crate) pods: &'a Pods,
    /// What is known of a provider; nothing of one that we have no access to.
    pub(crate) standing: &'a dyn Fn(&str) -> Option<Standing>,
    pub(crate) translate: &'a dyn Translate,
    /// The providers' nodes.
    pub(crate) nodes: &'a Nodes,
    /// How long nobody has told a provider to keep what must never run twice; measured, not read off a clock.
    pub(crate) silence: &'a dyn Fn(&str) -> Duration,
    pub(crate) now: Timestamp,
}

/// One thing to do.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Send the pod.
    Send { provider: Arc<str>, shadow: Box<ShadowPod> },
    /// Send what changed of it.
    Renew { provider: Arc<str>, uid: Box<str>, version: Box<str>, shadow: Box<ShadowPod> },
    /// Take it back.
    Withdraw { provider: Arc<str>, remote: Key, uid: Box<str> },
    /// Say at home how it is.
    Show { uid: Box<str>, patch: Value, fingerprint: u64 },
    /// It is gone there: it may go here.
    Finish { uid: Box<str> },
    /// Its node there is dead: another is to be started for it.
    Leave { uid: Box<str> },
    /// Read it again: what should be sent was dropped.
    Recall,
}

/// What should happen about one pod.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    pub(crate) steps: Vec<Step>,
    /// When to look again though nothing changed.
    pub(crate) wake: Option<Timestamp>,
    /// What to tell about the pod, beside its status.
    pub(crate) report: Option<Report>,
    /// Whether what is sent need not be kept.
    pub(crate) sent: bool,
}

impl Planned {
    fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    fn wake(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}

/// What should happen about the pod of this name.
pub(crate) fn plan(view: &View<'_>, key: &Key) -> Planned {
    let mut planned = Planned::default();
    let home = view.pods.home(key);
    withdraw(view, key, home, &mut planned);
    let Some(home) = home else { return planned };
    let Some(node) = view.pods.node(&home.node) else {
        // It runs here.
        planned.sent = true;
        return planned;
    };
    let here = Here { view, key, home, provider: &node.provider, node };
    here.plan(&mut planned);
    planned
}

/// Takes back what is at providers and not wanted there.
fn withdraw(view: &View<'_>, key: &Key, home: Option<&Home>, planned: &mut Planned) {
    let Some(namespace) = key.namespace().filter(|_| view.pods.synced) else { return };
    for (provider, place) in view.pods.places(namespace) {
        let Some(shadow) = place.shadows.get(key.name()) else { continue };
        let wanted = home.is_some_and(|home| {
            let node = view.pods.node(&home.node);
            let there = node.is_some_and(|node| *node.provider == **provider);
            there && !home.deleting && home.uid == shadow.pod_uid
        });
        let ours = shadow.origin.as_deref() == Some(view.home);
        let answers = (view.standing)(provider).is_some_and(|standing| standing.gone.is_none());
        if ours && !wanted && !shadow.deleting && answers {
            planned.step(Step::Withdraw {
                provider: Arc::clone(provider),
                remote: Key::namespaced(&place.remote, key.name()),
                uid: shadow.uid.clone(),
            });
        }
    }
}

/// A pod that belongs to a provider.
struct Here<'a> {
    view: &'a View<'a>,
    key: &'a Key,
    home: &'a Home,
    provider: &'a str,
    node: &'a VirtualNode,
}

impl<'a> Here<'a> {
    fn plan(&self, planned: &mut Planned) {
        let namespace = self.key.namespace().unwrap_or_default();
        if self.view.own == Some(namespace) {
            return self.without_place(planned);
        }
        let standing = (self.view.standing)(self.provider);
        let place = self.view.pods.place(namespace, self.provider);
        let (Some(standing), Some(place)) = (standing, place) else {
            return if self.view.pods.is_mapped(namespace, self.provider) {
                // It is there, and we cannot look.
                self.unreachable(&format!("we have no access to {}", self.provider), planned);
            } else {
                self.without_place(planned);
            };
        };
        if let Some(why) = &standing.gone {
            let why = format!("the provider {} does not answer: {why}", self.provider);
            return self.unreachable(&why, planned);
        }
        if !place.is_known() {
            return;
        }
        let shadow = place.shadows.get(self.key.name());
        if self.home.deleting {
            return self.deleting(place, shadow, planned);
        }
        let route = Route {
            home: self.view.home,
            provider: self.provider,
            namespace,
            remote: &place.remote,
            storage_class: standing.storage_class.as_deref(),
        };
        match shadow {
            Some(shadow) if shadow.origin.as_deref() != Some(self.view.home) => self.not_sent(
                "NameTaken",
                &format!(
                    "the provider {} has a ShadowPod {} in {} that is not ours, which is never touched",
                    self.provider,
                    self.key.name(),
                    place.remote
                ),
                planned,
            ),
            Some(shadow) if shadow.pod_uid == self.home.uid => self.sent(&route, place, shadow, planned),
            // One for an earlier pod of this name is being taken back.
            Some(_) => {}
            None => self.send(&route, place, planned),
        }
    }

    /// There is no namespace for it at the provider.
    fn without_place(&self, planned: &mut Planned) {
        if self.home.deleting {
            let answers = (self.view.standing)(self.provider).is_some_and(|standing| standing.gone.is_none());
            return if self.home.guard == Guard::None || answers {
                // Whatever was there went with the namespace.
                planned.step(Step::Finish { uid: self.home.uid.clone() });
            } else {
                self.finish_when_stopped(planned);
            };
        }
        let due = later(self.home.since, MAPPING);
        if self.view.now < due {
            return planned.wake(due);
        }
        let namespace = self.key.namespace().unwrap_or_default();
        let message = format!(
            "the namespace {namespace} is not offloaded to the provider {}, or not accepted there: see `kubectl \
             describe namespaceoffloading -n {namespace}`",
            self.provider
        );
        if self.home.pending {
            self.not_sent(BACKOFF, &message, planned);
        } else {
            self.not_ready(BACKOFF, &message, planned);
        }
    }

    fn unreachable(&self, why: &str, planned: &mut Planned) {
        self.not_ready(UNREACHABLE, why, planned);
        if self.home.deleting {
            self.finish_when_stopped(planned);
        }
    }

    /// What must never run twice may go here when the provider has certainly stopped it, though nobody can see that.
    fn finish_when_stopped(&self, planned: &mut Planned) {
        if self.home.guard != Guard::Fenced {
            return;
        }
        let silence = (self.view.silence)(self.provider);
        match SILENCE.checked_sub(silence).filter(|left| !left.is_zero()) {
            Some(left) => planned.wake(self.view.now.checked_add(left).unwrap_or(Timestamp::MAX)),
            None => {
                let message = format!(
                    "the provider {} does not answer, and has stopped the pod by now, as it has not heard from us for {} \
                     s: it may start elsewhere",
                    self.provider,
                    fence::DURATION.as_secs()
                );
                planned.report = Some(Report::warning(fence::FENCED, &message));
                planned.step(Step::Finish { uid: self.home.uid.clone() });
            }
        }
    }

    fn not_ready(&self, reason: &str, message: &str, planned: &mut Planned) {
        if self.home.ready && !self.home.finished {
            let patch = status::not_ready(reason, message, self.view.now);
            planned.step(Step::Show { uid: self.home.uid.clone(), patch, fingerprint: 0 });
        }
    }

    /// The pod stays here, and says why.
    fn not_sent(&self, reason: &str, message: &str, planned: &mut Planned) {
        if self.home.finished {
            return;
        }
        if self.show(&status::not_running(reason, message), planned) {
            planned.report = Some(Report::warning(reason, message));
        }
    }

    /// Says this at home, unless it is said already.
    fn show(&self, wanted: &PodStatus, planned: &mut Planned) -> bool {
        let fingerprint = status::fingerprint(wanted);
        if fingerprint == self.home.shown {
            return false;
        }
        let patch = status::patch(wanted);
        planned.step(Step::Show { uid: self.home.uid.clone(), patch, fingerprint });
        true
    }

    fn send(&self, route: &Route<'_>, place: &Place, planned: &mut Planned) {
        let taken = place.pods.contains_key(self.key.name());
        // What an earlier pod left is still ending; or the pod has ended here and is only kept for its logs.
        if self.home.finished || taken {
            return;
        }
        if !place.open {
            return self.without_place(planned);
        }
        if let Some(refused) = self.view.pods.refusal(self.key, &self.home.source) {
            let message = format!("refused by the provider {}: {}", self.provider, refused.message);
            return self.not_sent(refused.reason, &message, planned);
        }
        match self.translate(route) {
            Some(Ok(shadow)) => planned.step(Step::Send { provider: self.provider.into(), shadow }),
            Some(Err(refusal)) => self.not_sent(refusal.reason, &refusal.message, planned),
            None => planned.step(Step::Recall),
        }
    }

    fn translate(&self, route: &Route<'_>) -> Option<Result<Box<ShadowPod>, outgoing::Refusal>> {
        let draft: Draft = serde_json::from_slice(self.home.draft.as_deref()?).ok()?;
        let home = self.home;
        let shadow = outgoing::shadow_pod(self.key.name(), &home.uid, draft, &home.source, route);
        Some(shadow.map(|mut shadow| {
            // A pod keeps its node, and a node its pool: this never changes.
            if let Some(pool) = &self.node.pool {
                shadow.metadata.labels.get_or_insert_default().insert(POOL.to_owned(), pool.to_string());
            }
            shadow.spec.pod.affinity = outgoing::away_from(self.view.nodes.gone(self.provider));
            Box::new(shadow)
        }))
    }

    fn sent(&self, route: &Route<'_>, place: &Place, shadow: &Shadow, planned: &mut Planned) {
        if *shadow.content == *outgoing::content(&self.home.source, route) {
            planned.sent = true;
        } else if !shadow.deleting {
            match self.translate(route) {
                Some(Ok(translated)) => planned.step(Step::Renew {
                    provider: self.provider.into(),
                    uid: shadow.uid.clone(),
                    version: shadow.version.clone(),
                    shadow: translated,
                }),
                // It was sent as it was, and cannot be as it is.
                Some(Err(_)) => {}
                None => planned.step(Step::Recall),
            }
        }
        self.tell(place, shadow, planned);
    }

    /// Tells at home how the pod is.
    fn tell(&self, place: &Place, shadow: &Shadow, planned: &mut Planned) {
        if self.home.finished {
            return;
        }
        let remote = place.pods.get(self.key.name()).filter(|remote| remote.owner == shadow.uid);
        match (remote, &shadow.refusal) {
            (Some(remote), _) => self.tell_remote(remote, shadow, planned),
            (None, Some(refusal)) => {
                let (reason, message) = &**refusal;
                if reason == fence::FENCED && !self.home.pending {
                    // It ran, and will again when the provider has heard from us.
                    return self.not_ready(reason, message, planned);
                }
                let message = format!("refused by the provider {}: {message}", self.provider);
                self.not_sent(reason, &message, planned);
            }
            (None, None) => self.tell_missing(shadow, planned),
        }
    }

    fn tell_remote(&self, remote: &'a Remote, shadow: &Shadow, planned: &mut Planned) {
        let found = remote.status();
        let node = remote.node.as_deref().unwrap_or_default();
        let health = self.view.nodes.health(self.provider, node);
        let silence = Silence::of(self, node, &health);
        if self.home.cut_off.as_deref() == Some(node) && health == Health::Unknown {
            // Whoever led before said so; what was last heard from the node is no reason to say otherwise.
            return;
        }
        let wait = match status::urgency(&found) {
            _ if silence.is_some() => None,
            Urgency::Never if self.home.pending => return,
            Urgency::Now | Urgency::Never => None,
            Urgency::Soon => Some(SOON),
            Urgency::Later => Some(LATER),
        };
        let due = wait.map(|wait| later(remote.since, wait));
        if let Some(due) = due.filter(|due| self.view.now < *due && self.home.pending) {
            return planned.wake(due);
        }
        let home = status::Home {
            provider: self.provider,
            address: self.node.address.as_deref(),
            closed_gate: self.home.closed_gate.as_deref(),
            recreations: shadow.recreations,
            translate: self.view.translate,
        };
        let mut merged = status::merge(found, &home);
        if let Some((why, since)) = shadow.deferred.as_deref() {
            status::defer_growth(&mut merged, (why, *since), self.provider);
        }
        if let Some(silence) = silence {
            status::cut_off(&mut merged, &silence.message, silence.noticed);
            self.leave(&silence, planned);
        }
        self.show(&merged, planned);
    }

    /// The pod leaves a node that does not answer, when it has waited for as long as it says. What must never run twice stays:
    /// nobody can tell whether it has ended there.
    fn leave(&self, silence: &Silence, planned: &mut Planned) {
        if self.home.deleting || self.home.guard != Guard::None {
            return;
        }
        let Some(patience) = self.home.patience else { return };
        let due = silence.noticed.checked_add(patience).unwrap_or(Timestamp::MAX);
        if self.view.now < due {
            return planned.wake(due);
        }
        let message = format!("{}; another pod is started for it", silence.message);
        planned.report = Some(Report::warning(status::NODE_UNREACHABLE, &message));
        planned.step(Step::Leave { uid: self.home.uid.clone() });
    }

    /// The provider has the ShadowPod and no pod for it.
    fn tell_missing(&self, shadow: &Shadow, planned: &mut Planned) {
        match shadow.ended {
            Some(phase) => {
                let phase = if phase == PodPhase::Succeeded { "Succeeded" } else { "Failed" };
                let ended = PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() };
                let (fingerprint, patch) = (0, status::patch(&ended));
                planned.step(Step::Show { uid: self.home.uid.clone(), patch, fingerprint });
            }
            None => {
                let message = format!("the pod vanished at the provider {} and is made again", self.provider);
                self.not_ready(MISSING, &message, planned);
            }
        }
    }

    /// The pod goes here when nothing is left of it there.
    fn deleting(&self, place: &Place, shadow: Option<&Shadow>, planned: &mut Planned) {
        let shadow = shadow.filter(|shadow| shadow.pod_uid == self.home.uid);
        let remote = place.pods.get(self.key.name());
        match (shadow, remote) {
            (None, None) => planned.step(Step::Finish { uid: self.home.uid.clone() }),
            (Some(shadow), Some(remote)) if remote.owner == shadow.uid && !self.home.finished => {
                self.tell_remote(remote, shadow, planned);
            }
            _ => {}
        }
    }
}

/// A node of the provider that does not answer.
struct Silence {
    message: String,
    noticed: Timestamp,
}

impl Silence {
    fn of(here: &Here<'_>, node: &str, health: &Health) -> Option<Self> {
        let Health::Unreachable { since, why } = health else { return None };
        let since = since.strftime("%FT%TZ");
        let message = format!(
            "the node {node} of the provider {} has not answered since {since}: {why}",
            here.provider
        );
        let noticed = here.view.nodes.noticed(here.provider, node).unwrap_or(here.view.now);
        Some(Self { message, noticed })
    }
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// How long until then.
pub(crate) fn until(due: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(due.duration_since(now)).unwrap_or_default()
}
