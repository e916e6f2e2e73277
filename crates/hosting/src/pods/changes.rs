//! What of a pod that runs is not as its ShadowPod says now: everything that Kubernetes lets be changed.
//!
//! Labels and annotations first, since Services depend on them and nobody refuses them; then ephemeral containers; then
//! images, deadline and tolerations; then the size, which the contract must allow. What a pod has from its ShadowPod is
//! recorded in its annotations, and not compared field by field: what the provider's own admission added or rewrote is not
//! undone.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EphemeralContainer, PodSpec, Toleration};
use liqo_api::annotations::{PASSED_METADATA, PASSED_SPEC};
use liqo_core::Resources;
use liqo_core::contract::Enforcement;
use liqo_core::names::ClusterId;
use liqo_kit::Key;
use liqo_kit::write::Part;
use serde_json::{Map, Value, json};

use super::labels::Passed;
use super::{Deed, NO_CONTRACT, PodFacts, Refusal, Shadow, containers, passed, pool, read, spec};
use crate::index::Index;

#[cfg(test)]
mod tests;

/// The part of a pod by which containers are put into it while it runs.
const EPHEMERAL: Part = Part::Subresource("ephemeralcontainers");
/// The part of a pod by which its size is changed while it runs.
const RESIZE: Part = Part::Subresource("resize");

/// A change of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) uid: String,
    pub(crate) part: Part,
    pub(crate) patch: Value,
    /// By how much it grows, and whose contract that takes it from.
    pub(crate) growth: Option<(ClusterId, Resources)>,
    /// Why that is more than the contract allows, where it only says that this is told.
    pub(crate) beyond: Option<Refusal>,
}

/// A pod that runs, and what it should be.
pub(super) struct Hosted<'a> {
    pub(super) index: &'a Index,
    pub(super) key: &'a Key,
    pub(super) shadow: &'a Shadow,
    pub(super) pod: &'a PodFacts,
    pub(super) peer: &'a ClusterId,
}

impl Hosted<'_> {
    /// What is to be done about a change; `failure` is what the API server said to it a moment ago.
    pub(super) fn plan(&self, failure: Option<&Refusal>) -> Option<Deed> {
        if self.index.ledger.is_growing(self.key) {
            // It is being changed, or was and nobody has seen it yet.
            return None;
        }
        let told = self.shadow.told.as_ref();
        match (self.missing(), failure) {
            (Ok(None), _) => told.is_some_and(|told| !told.fine).then_some(Deed::Reconcile),
            (Ok(Some(change)), None) => Some(Deed::Change(Box::new(change))),
            (Ok(Some(_)), Some(refusal)) => self.deny(refusal),
            (Err(refusal), _) => self.deny(&refusal),
        }
    }

    fn deny(&self, refusal: &Refusal) -> Option<Deed> {
        let message = format!("the pod stays as it is: {}", refusal.message);
        let refusal = Refusal::new(refusal.reason, message);
        let told = self.shadow.told.as_ref().is_some_and(|told| told.is(&refusal));
        (!told).then(|| Deed::Deny { refusal, pod: self.pod.uid.to_string() })
    }

    /// The first change that is missing, or why it cannot be made.
    fn missing(&self) -> Result<Option<Change>, Refusal> {
        if let Some(change) = self.metadata() {
            return Ok(Some(change));
        }
        if let Some(change) = self.ephemeral()? {
            return Ok(Some(change));
        }
        if let Some(change) = self.changeable()? {
            return Ok(Some(change));
        }
        self.size()
    }

    fn change(&self, part: Part, patch: Value) -> Change {
        Change { uid: self.pod.uid.to_string(), part, patch, growth: None, beyond: None }
    }

    fn metadata(&self) -> Option<Change> {
        let passed = passed(self.index, self.shadow, self.peer);
        let record = passed.record();
        if record == *self.pod.passed_metadata {
            return None;
        }
        let (labels, annotations) = passed.outdated(&self.pod.passed_metadata);
        let Passed { labels: new_labels, annotations: new_annotations } = &passed;
        let merged = |old: Vec<&str>, new: &BTreeMap<String, String>| -> Map<String, Value> {
            let gone = old.into_iter().map(|key| (key.to_owned(), Value::Null));
            gone.chain(new.iter().map(|(key, value)| (key.clone(), json!(value)))).collect()
        };
        let mut annotations = merged(annotations, new_annotations);
        annotations.insert(PASSED_METADATA.to_owned(), json!(record));
        let patch =
            json!({ "metadata": { "labels": merged(labels, new_labels), "annotations": annotations } });
        Some(self.change(Part::Object, patch))
    }

    fn ephemeral(&self) -> Result<Option<Change>, Refusal> {
        let is_there = |name: &str| self.pod.ephemeral.iter().any(|it| **it == *name);
        if self.shadow.ephemeral.iter().all(|name| is_there(name)) {
            return Ok(None);
        }
        let rules = self.index.rules(self.peer);
        let asked = read(self.shadow)?.ephemeral_containers.unwrap_or_default();
        let missing = asked.into_iter().filter(|it| !is_there(&it.name));
        let translated: Vec<EphemeralContainer> =
            missing.map(|it| containers::ephemeral(it, &rules)).collect::<Result<_, _>>()?;
        Ok(Some(self.change(EPHEMERAL, json!({ "spec": { "ephemeralContainers": translated } }))))
    }

    fn changeable(&self) -> Result<Option<Change>, Refusal> {
        if self.shadow.changeable == self.pod.passed_spec {
            return Ok(None);
        }
        let wanted = spec(self.index, self.shadow, &self.index.rules(self.peer))?;
        let PodSpec { active_deadline_seconds, containers, init_containers, tolerations, .. } = wanted;
        let mut patch = json!({ "containers": images(&containers) });
        if let Some(init) = init_containers.filter(|list| !list.is_empty()) {
            patch["initContainers"] = images(&init);
        }
        if let Some(seconds) = active_deadline_seconds {
            patch["activeDeadlineSeconds"] = json!(seconds);
        }
        // The list is one value for Kubernetes, and what is in it stays.
        let mut borne = self.pod.tolerations();
        let new = |it: &Toleration| !borne.contains(it);
        let further: Vec<Toleration> = tolerations.into_iter().flatten().filter(new).collect();
        if !further.is_empty() {
            borne.extend(further);
            patch["tolerations"] = json!(borne);
        }
        let notes = json!({ PASSED_SPEC: self.shadow.changeable });
        let patch = json!({ "metadata": { "annotations": notes }, "spec": patch });
        Ok(Some(self.change(Part::Object, patch)))
    }

    fn size(&self) -> Result<Option<Change>, Refusal> {
        let Some(patch) = self.shadow.sizes.patch(&self.pod.sizes) else { return Ok(None) };
        // The provider's admission may have added something to the pod, which it keeps.
        let (before, after) = (&*self.pod.requests, &*self.shadow.requests);
        let growth = after.sub_to_zero(before);
        let mut change = self.change(RESIZE, patch);
        if growth.is_zero() {
            return Ok(Some(change));
        }
        let Some(grant) = self.index.grant(self.peer) else {
            return Err(Refusal::new(NO_CONTRACT, "there is no contract in force by which it could grow"));
        };
        match pool::exceeded(self.index, grant, self.peer, self.pod.pool.as_ref(), &growth) {
            Some(refusal) if grant.enforcement == Enforcement::Hard => return Err(refusal),
            beyond => change.beyond = beyond,
        }
        change.growth = Some((self.peer.clone(), growth));
        Ok(Some(change))
    }
}

/// The images of containers, by name.
fn images(containers: &[Container]) -> Value {
    let named = containers.iter().filter(|it| it.image.is_some());
    named.map(|it| json!({ "name": it.name, "image": it.image })).collect()
}
