//! Where the pods of an offloaded namespace may run, put into their specs.
//!
//! ```text
//!            own terms            strategy                      result
//!  Remote          t    ∧   (virtual ∧ selector)      =   terms that mean chosen clusters
//!  LocalAndRemote  t    ∧   (not virtual ∪ virtual ∧ selector)
//!  Local           t                                  =   untouched; the taint of virtual nodes keeps the pod off
//! ```
//!
//! Where pods go back to providers that answer again, chosen clusters are preferred, too. The scheduler does the rest. A pod that was treated already comes out as it is, so that it may be treated again.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PreferredSchedulingTerm, Toleration,
};
use liqo_api::namespace_offloading::PodOffloadingStrategy;
use liqo_api::{labels, names};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failover::Failover;
use crate::selector::{terms_of, virtual_node};

#[cfg(test)]
mod tests;

/// The most terms that a pod comes to have: each of its own is combined with each of the selector's.
const MOST_TERMS: usize = 512;

/// The most that a preference may weigh.
const MOST_WEIGHT: i32 = 100;

/// Taints that Kubernetes itself puts on a node that is not ready, and evicts for after five minutes.
const NODE_TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// Where the pods of a namespace may run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// Here, there, or both.
    pub strategy: PodOffloadingStrategy,
    /// Which clusters; without terms, all.
    pub selector: Option<NodeSelector>,
    /// How long they wait for a provider that does not answer.
    pub failover: Failover,
    /// Whether other clusters come first where pods may run here too.
    pub prefer_remote: bool,
}

/// Why a pod cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Its own terms and those of the namespace together are too many.
    #[error(
        "the node affinity of this pod has {own} terms and the clusterSelector of its namespace {selector}: together more than \
         {MOST_TERMS}"
    )]
    TooManyTerms {
        /// How many the pod has.
        own: usize,
        /// How many the namespace has.
        selector: usize,
    },
}

/// What of a pod is looked at.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodView {
    /// Its metadata.
    pub metadata: PodMeta,
    /// Its spec.
    pub spec: PodSpecView,
}

/// What of a pod's metadata is looked at.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodMeta {
    /// Its labels.
    pub labels: Option<BTreeMap<String, String>>,
}

/// What of a pod's spec is looked at.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PodSpecView {
    /// Where it wants to run.
    pub affinity: Option<Affinity>,
    /// Which taints it tolerates.
    pub tolerations: Option<Vec<Toleration>>,
}

impl Placement {
    /// The JSON patch that gives a pod what it needs; empty if it has it.
    pub fn patch(&self, pod: &PodView) -> Result<Vec<Value>, PlacementError> {
        let branches = self.branches();
        if branches.is_empty() {
            return Ok(Vec::new());
        }
        let own = own_terms(pod);
        let terms = combine(own, &branches)?;
        let mut patch = Vec::new();
        if terms != own {
            patch.push(patch_terms(pod.spec.affinity.as_ref(), &terms));
        }
        if terms.iter().all(is_local) {
            // The pod itself wants to stay at home.
            return Ok(patch);
        }
        patch.extend(self.patch_preference(pod));
        patch.extend(patch_tolerations(pod, self.tolerations()));
        patch.extend(patch_label(pod));
        Ok(patch)
    }

    /// Adds that the chosen clusters come first, where the pod does not say so. Its required terms are there by now, and with
    /// them all that is around them.
    fn patch_preference(&self, pod: &PodView) -> Vec<Value> {
        if !self.prefer_remote || self.strategy != PodOffloadingStrategy::LocalAndRemote {
            return Vec::new();
        }
        let affinity = pod.spec.affinity.as_ref().and_then(|it| it.node_affinity.as_ref());
        let own = affinity.and_then(|it| it.preferred_during_scheduling_ignored_during_execution.as_ref());
        let prefer = |preference| PreferredSchedulingTerm { preference, weight: MOST_WEIGHT };
        let wanted = self.remote().into_iter().map(prefer);
        let missing: Vec<_> = wanted.filter(|it| !own.is_some_and(|own| own.contains(it))).collect();
        let path = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
        match own {
            _ if missing.is_empty() => Vec::new(),
            None => vec![json!({ "op": "add", "path": path, "value": missing })],
            Some(_) => {
                let add = |it| json!({ "op": "add", "path": format!("{path}/-"), "value": it });
                missing.iter().map(add).collect()
            }
        }
    }

    /// The chosen clusters, as terms one of which must hold.
    fn remote(&self) -> Vec<NodeSelectorTerm> {
        let selected = terms_of(self.selector.as_ref());
        let remote = if selected.is_empty() { &[NodeSelectorTerm::default()] } else { selected };
        let is_virtual = NodeSelectorTerm {
            match_expressions: Some(vec![virtual_node("In")]),
            ..NodeSelectorTerm::default()
        };
        remote.iter().map(|term| both(&is_virtual, term)).collect()
    }

    /// What the strategy allows, as terms one of which must hold; nothing if it says nothing.
    fn branches(&self) -> Vec<NodeSelectorTerm> {
        let local = NodeSelectorTerm {
            match_expressions: Some(vec![virtual_node("NotIn")]),
            ..NodeSelectorTerm::default()
        };
        match self.strategy {
            PodOffloadingStrategy::Local => Vec::new(),
            PodOffloadingStrategy::Remote => self.remote(),
            PodOffloadingStrategy::LocalAndRemote => [local].into_iter().chain(self.remote()).collect(),
        }
    }

    fn tolerations(&self) -> Vec<Toleration> {
        let for_ever = |key: &str| Toleration {
            key: Some(key.to_owned()),
            operator: Some("Exists".to_owned()),
            effect: Some("NoExecute".to_owned()),
            ..Toleration::default()
        };
        let mut all = vec![for_ever(names::VIRTUAL_NODE_TAINT)];
        match self.failover {
            Failover::After(seconds) => {
                let toleration_seconds = Some(seconds);
                all.push(Toleration { toleration_seconds, ..for_ever(names::UNREACHABLE_TAINT) });
            }
            Failover::Never => {
                all.push(for_ever(names::UNREACHABLE_TAINT));
                // Kubernetes would move the pods after five minutes. Where pods may also run at home it shall: there the same
                // taints mean that a machine broke.
                if self.strategy == PodOffloadingStrategy::Remote {
                    all.extend(NODE_TAINTS.map(for_ever));
                }
            }
        }
        all
    }
}

/// The terms of the pod itself.
fn own_terms(pod: &PodView) -> &[NodeSelectorTerm] {
    let required = pod.spec.affinity.as_ref().and_then(|affinity| {
        affinity.node_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref()
    });
    terms_of(required)
}

/// The terms that hold where one of `own` and one of `branches` holds.
fn combine(
    own: &[NodeSelectorTerm],
    branches: &[NodeSelectorTerm],
) -> Result<Vec<NodeSelectorTerm>, PlacementError> {
    // A term without requirements matches nothing; together with ours it would match something.
    let meaningful: Vec<_> = own.iter().filter(|term| !is_empty(term)).collect();
    if meaningful.is_empty() {
        return Ok(if own.is_empty() { possible(branches.to_vec()) } else { own.to_vec() });
    }
    if meaningful.len().saturating_mul(branches.len()) > MOST_TERMS {
        return Err(PlacementError::TooManyTerms { own: own.len(), selector: branches.len() });
    }
    let combined = meaningful.iter().flat_map(|term| {
        // What implies a branch already is within what is allowed, as it is.
        if branches.iter().any(|branch| contains(term, branch)) {
            vec![(*term).clone()]
        } else {
            branches.iter().map(|branch| both(term, branch)).collect()
        }
    });
    Ok(possible(combined.collect()))
}

/// The terms that may hold somewhere. A pod must have a term; if all are impossible, it waits, as what it wishes and what the
/// namespace allows do not go together.
fn possible(terms: Vec<NodeSelectorTerm>) -> Vec<NodeSelectorTerm> {
    let possible: Vec<_> = terms.iter().filter(|term| !is_impossible(term)).cloned().collect();
    if possible.is_empty() { terms } else { possible }
}

fn requirements(list: Option<&Vec<NodeSelectorRequirement>>) -> &[NodeSelectorRequirement] {
    list.map_or(&[], Vec::as_slice)
}

fn is_empty(term: &NodeSelectorTerm) -> bool {
    requirements(term.match_expressions.as_ref()).is_empty()
        && requirements(term.match_fields.as_ref()).is_empty()
}

/// The term that holds where both do.
fn both(one: &NodeSelectorTerm, other: &NodeSelectorTerm) -> NodeSelectorTerm {
    NodeSelectorTerm {
        match_expressions: union(one.match_expressions.as_ref(), other.match_expressions.as_ref()),
        match_fields: union(one.match_fields.as_ref(), other.match_fields.as_ref()),
    }
}

fn union(
    one: Option<&Vec<NodeSelectorRequirement>>,
    other: Option<&Vec<NodeSelectorRequirement>>,
) -> Option<Vec<NodeSelectorRequirement>> {
    let mut all = requirements(one).to_vec();
    for requirement in requirements(other) {
        if !all.contains(requirement) {
            all.push(requirement.clone());
        }
    }
    (!all.is_empty()).then_some(all)
}

/// Whether `term` says all that `branch` says.
fn contains(term: &NodeSelectorTerm, branch: &NodeSelectorTerm) -> bool {
    let within = |wanted: Option<&Vec<_>>, there: Option<&Vec<_>>| {
        requirements(wanted).iter().all(|requirement| requirements(there).contains(requirement))
    };
    within(branch.match_expressions.as_ref(), term.match_expressions.as_ref())
        && within(branch.match_fields.as_ref(), term.match_fields.as_ref())
}

/// Whether the term wants a node that is virtual and is not.
fn is_impossible(term: &NodeSelectorTerm) -> bool {
    let all = requirements(term.match_expressions.as_ref());
    all.contains(&virtual_node("In")) && all.contains(&virtual_node("NotIn"))
}

fn is_local(term: &NodeSelectorTerm) -> bool {
    requirements(term.match_expressions.as_ref()).contains(&virtual_node("NotIn"))
}

/// Sets the terms, with as much around them as is not there.
fn patch_terms(affinity: Option<&Affinity>, terms: &[NodeSelectorTerm]) -> Value {
    let required = json!({ "nodeSelectorTerms": terms });
    let name = "requiredDuringSchedulingIgnoredDuringExecution";
    let node_affinity = affinity.map(|affinity| affinity.node_affinity.as_ref());
    let (path, value) = match node_affinity {
        None => ("/spec/affinity".to_owned(), json!({ "nodeAffinity": { name: required } })),
        Some(None) => ("/spec/affinity/nodeAffinity".to_owned(), json!({ name: required })),
        Some(Some(_)) => (format!("/spec/affinity/nodeAffinity/{name}"), required),
    };
    json!({ "op": "add", "path": path, "value": value })
}

/// Adds those tolerations whose taints the pod does not speak of itself.
fn patch_tolerations(pod: &PodView, wanted: Vec<Toleration>) -> Vec<Value> {
    let own = pod.spec.tolerations.as_deref();
    let missing: Vec<_> = wanted
        .into_iter()
        .filter(|wanted| !own.unwrap_or_default().iter().any(|own| covers(own, wanted)))
        .collect();
    match own {
        _ if missing.is_empty() => Vec::new(),
        None => vec![json!({ "op": "add", "path": "/spec/tolerations", "value": missing })],
        Some(_) => {
            let add = |toleration| json!({ "op": "add", "path": "/spec/tolerations/-", "value": toleration });
            missing.iter().map(add).collect()
        }
    }
}

/// Whether the pod's own toleration is about the same taint. Of two that are, Kubernetes would take the shorter time.
fn covers(own: &Toleration, wanted: &Toleration) -> bool {
    let of_effect = own
        .effect
        .as_deref()
        .is_none_or(|effect| effect.is_empty() || Some(effect) == wanted.effect.as_deref());
    let exists = own.operator.as_deref() == Some("Exists");
    let of_key = match own.key.as_deref() {
        None | Some("") => exists,
        // The taints have the value true or none.
        key => key == wanted.key.as_deref() && (exists || own.value.as_deref() == Some(labels::TRUE)),
    };
    of_effect && of_key
}

/// By this label those who send pods away find them without looking at all others.
fn patch_label(pod: &PodView) -> Option<Value> {
    let Some(own) = &pod.metadata.labels else {
        let value = json!({ labels::SHADOW_POD: labels::TRUE });
        return Some(json!({ "op": "add", "path": "/metadata/labels", "value": value }));
    };
    if own.get(labels::SHADOW_POD).is_some_and(|value| value == labels::TRUE) {
        return None;
    }
    let path = format!("/metadata/labels/{}", labels::SHADOW_POD.replace('~', "~0").replace('/', "~1"));
    Some(json!({ "op": "add", "path": path, "value": labels::TRUE }))
}
