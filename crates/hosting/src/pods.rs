//! What should become of each ShadowPod: a pod, a reason why there is none, or the memory of one that came to its end.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::ObjectMeta;
use liqo_api::ShadowPod;
use liqo_api::annotations::{PASSED_METADATA, PASSED_SPEC};
use liqo_api::shadow_pod::PodPhase;
use liqo_core::Resources;
use liqo_core::contract::Enforcement;
use liqo_core::names::ClusterId;
use liqo_kit::Key;

use crate::fence;
use crate::index::Index;

mod avoid;
mod changes;
mod containers;
mod labels;
mod losses;
mod pool;
mod priority;
mod reading;
mod sizes;
#[cfg(test)]
mod tests;
mod translate;
mod volumes;

pub(crate) use changes::Change;
use changes::Hosted;
use labels::Passed;
pub(crate) use losses::Loss;
pub(crate) use priority::Priority;
pub(crate) use reading::{Phase, PodFacts, PodOnWire, Said, Shadow, ShadowOnWire};
pub(crate) use translate::HouseRules;

/// The pod asks for what is not shared, or for more rights than the policy grants.
pub(crate) const FORBIDDEN: &str = "Forbidden";
/// The pod cannot be what it says.
pub(crate) const INVALID: &str = "Invalid";
/// The contract does not allow another pod of this size.
pub(crate) const QUOTA_EXCEEDED: &str = "QuotaExceeded";
/// There is no contract in force.
pub(crate) const NO_CONTRACT: &str = "NoContract";
/// The API server did not take it.
pub(crate) const FAILED: &str = "Failed";
/// The pod was made after all.
pub(crate) const RUNS: &str = "Created";
/// The pod was changed after all.
pub(crate) const CHANGED: &str = "Changed";

/// Why a pod is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// As one word for programs.
    pub(crate) reason: &'static str,
    /// As a sentence for people.
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(reason: &'static str, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// What is to be done about one ShadowPod or its pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    /// Make the pod; `beyond` what the contract allows, where it only says that this is told.
    Create { peer: ClusterId, pod: Box<Pod>, beyond: Option<Refusal> },
    /// Take the pod away.
    Delete { uid: String },
    /// Take the pod away, in so many seconds at most, and tell why.
    Stop { uid: String, grace: u32, refusal: Refusal },
    /// Note how the pod ended, so that it is not made again.
    Finish { phase: PodPhase, pod: String },
    /// Tell why there is no pod.
    Refuse(Refusal),
    /// Tell that there is a pod after all.
    Admit,
    /// Change the pod.
    Change(Box<Change>),
    /// Tell why the pod is not changed.
    Deny { refusal: Refusal, pod: String },
    /// Tell that the pod is as it should be after all.
    Reconcile,
    /// Count a pod that vanished, before it is made again, and wait until then for so long.
    Count { pod: String, recreations: u32, pause: SignedDuration },
}

/// What is missing; nothing if all is as it should be.
pub(crate) fn plan(index: &Index, key: &Key, now: Timestamp) -> Option<Deed> {
    let pod = index.pods.get(key);
    if let Some(stop) = pod.and_then(|pod| fence::stop(index, key, pod)) {
        return Some(stop);
    }
    let Some(shadow) = index.shadows.get(key).filter(|shadow| !shadow.deleting) else {
        return pod.and_then(remove);
    };
    let space = index.space(key.namespace()?).filter(|space| !space.deleting)?;
    match pod {
        // One in another pool than it should be counts where it is not, and cannot move.
        Some(pod) if *pod.owner != *shadow.uid || pod.pool != shadow.pool() => remove(pod),
        Some(pod) => keep(shadow, pod).or_else(|| {
            let peer = space.peer.as_ref().filter(|_| pod.is_alive())?;
            let hosted = Hosted { index, key, shadow, pod, peer };
            hosted.plan(index.memory.failure(key, now))
        }),
        None if shadow.finished => None,
        None => {
            if let Some((uid, phase, pod)) = index.memory.finished.get(key)
                && **uid == *shadow.uid
            {
                return Some(Deed::Finish { phase: *phase, pod: pod.to_string() });
            }
            if index.ledger.is_reserved(key) {
                return None;
            }
            let peer = space.peer.clone()?;
            if let Some(why) = fence::hold(index, shadow, &peer, now) {
                return why.and_then(|refusal| refuse(shadow, refusal));
            }
            if let Some(loss) = index.memory.loss(key, shadow) {
                return Some(loss.count(shadow, now));
            }
            if index.memory.is_held(key, now) {
                return None;
            }
            match admit(index, key, shadow, &peer, now) {
                Ok((pod, beyond)) => Some(Deed::Create { peer, pod: Box::new(pod), beyond }),
                Err(refusal) => refuse(shadow, refusal),
            }
        }
    }
}

fn refuse(shadow: &Shadow, refusal: Refusal) -> Option<Deed> {
    let told = shadow.said.as_ref().is_some_and(|said| said.is(&refusal));
    (!told).then_some(Deed::Refuse(refusal))
}

fn remove(pod: &PodFacts) -> Option<Deed> {
    (!pod.deleting).then(|| Deed::Delete { uid: pod.uid.to_string() })
}

/// What is missing where shadow and pod belong together.
fn keep(shadow: &Shadow, pod: &PodFacts) -> Option<Deed> {
    if let Some(phase) = pod.end(shadow.restarts) {
        let finish = || Deed::Finish { phase, pod: pod.uid.to_string() };
        return (!shadow.finished).then(finish);
    }
    shadow.said.as_ref().is_some_and(|said| !said.fine).then_some(Deed::Admit)
}

/// The pod to make now, and whether that is more than was agreed.
fn admit(
    index: &Index,
    key: &Key,
    shadow: &Shadow,
    peer: &ClusterId,
    now: Timestamp,
) -> Result<(Pod, Option<Refusal>), Refusal> {
    if let Some(refusal) = index.memory.failure(key, now) {
        return Err(refusal.clone());
    }
    let Some(grant) = index.grant(peer) else {
        let message = "the provider has no contract with this cluster that is in force";
        return Err(Refusal::new(NO_CONTRACT, message));
    };
    let pool = pool::of(grant, shadow)?;
    match pool::exceeded(index, grant, peer, pool, &shadow.requests) {
        Some(refusal) if grant.enforcement == Enforcement::Hard => Err(refusal),
        beyond => Ok((pod(index, key, shadow, peer)?, beyond)),
    }
}

/// Which amounts of the contract a further pod would exceed. The words do not change with every pod that comes and goes.
fn exceeded(agreed: &Resources, used: &Resources, wanted: &Resources) -> Option<Refusal> {
    let mut sum = used.clone();
    sum.accumulate(wanted);
    // Of what is used up by others, a pod that wants nothing of it is not refused.
    sum.retain(|name, _| !wanted.amount(name.as_str()).is_zero());
    let lacking = sum.lacking_in(agreed);
    let each = |(name, _): (&liqo_core::ResourceName, _)| {
        let name = name.as_str();
        format!("{name} ({} wanted, {} agreed for all pods)", wanted.amount(name), agreed.amount(name))
    };
    let names: Vec<String> = lacking.iter().map(each).collect();
    (!names.is_empty()).then(|| {
        Refusal::new(QUOTA_EXCEEDED, format!("the contract does not allow it: {}", names.join(", ")))
    })
}

/// The pod as the consumer wants it.
fn read(shadow: &Shadow) -> Result<PodSpec, Refusal> {
    serde_json::from_str(&shadow.spec)
        .map_err(|error| Refusal::new(INVALID, format!("the pod cannot be read: {error}")))
}

/// The specification of the pod, by the rules of the house.
fn spec(index: &Index, shadow: &Shadow, rules: &HouseRules) -> Result<PodSpec, Refusal> {
    let asked = read(shadow)?;
    let avoided = avoid::nodes(asked.affinity.as_ref());
    let class =
        priority::choose(asked.priority_class_name.as_deref(), rules.max_priority, &index.priorities)?;
    let mut spec = translate::translate(asked, rules, class)?;
    if let Some(pool) = shadow.pool() {
        spec.affinity = Some(pool::nodes(rules, &pool)?);
    }
    spec.affinity = avoid::leave_out(spec.affinity, avoided);
    Ok(spec)
}

/// The labels and annotations of the pod.
pub(crate) fn passed(index: &Index, shadow: &Shadow, peer: &ClusterId) -> Passed {
    let us = index.me.as_ref().map_or("", ClusterId::as_str);
    Passed {
        labels: labels::pod_labels(shadow.labels.iter(), peer.as_str(), us),
        annotations: labels::pod_annotations(shadow.annotations.iter(), &index.rules(peer).kept),
    }
}

/// The pod to make.
fn pod(index: &Index, key: &Key, shadow: &Shadow, peer: &ClusterId) -> Result<Pod, Refusal> {
    let rules = index.rules(peer);
    let owner = OwnerReference {
        api_version: ShadowPod::api_version(&()).into_owned(),
        kind: ShadowPod::kind(&()).into_owned(),
        name: key.name().to_owned(),
        uid: shadow.uid.to_string(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    let passed = passed(index, shadow, peer);
    let record = passed.record();
    let Passed { labels, mut annotations } = passed;
    annotations.insert(PASSED_METADATA.to_owned(), record);
    annotations.insert(PASSED_SPEC.to_owned(), shadow.changeable.to_string());
    let metadata = ObjectMeta {
        name: Some(key.name().to_owned()),
        namespace: key.namespace().map(str::to_owned),
        labels: Some(labels),
        annotations: Some(annotations),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    Ok(Pod { metadata, spec: Some(spec(index, shadow, &rules)?), status: None })
}
