//! Pods on virtual nodes that go nowhere: those of a DaemonSet that tolerates every taint, or that somebody bound by hand.
//!
//! No kubelet will ever see them. So they are told why they wait, and go at once when they are deleted: whoever makes them waits
//! for that.

use std::collections::{BTreeSet, HashMap};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use liqo_api::labels;
use liqo_kit::Key;
use liqo_kit::watch::{Identity, Wire};
use serde::Deserialize;

use crate::pods::plan::BACKOFF;
use crate::pods::status::PENDING;

#[cfg(test)]
mod tests;

/// A pod without our label as it is read: little of it matters.
#[derive(Deserialize)]
pub(crate) struct StrayOnWire {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    namespace: Option<Box<str>>,
    name: Box<str>,
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    deletion_timestamp: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<Box<str>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: Option<Box<str>>,
    reason: Option<Box<str>>,
}

impl Wire for StrayOnWire {
    fn identity(&self) -> Identity<'_> {
        Identity {
            namespace: self.metadata.namespace.as_deref(),
            name: &self.metadata.name,
            uid: &self.metadata.uid,
            resource_version: &self.metadata.resource_version,
        }
    }
}

/// A pod without our label that is bound to a node, whichever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stray {
    pub(crate) uid: Box<str>,
    pub(crate) node: Box<str>,
    deleting: bool,
    /// Whether it waits to be run.
    pending: bool,
    /// Whether it runs, as far as anybody said: it had our label once, and may run at a provider.
    running: bool,
    /// Whether it says why it does not run.
    told: bool,
}

impl Stray {
    /// Reads a pod; `None` as long as it is bound to no node.
    pub(crate) fn read(wire: StrayOnWire) -> Option<Self> {
        let StrayOnWire { metadata, spec, status } = wire;
        let phase = status.phase.as_deref().unwrap_or(PENDING);
        Some(Self {
            node: spec.node_name.filter(|node| !node.is_empty())?,
            uid: metadata.uid,
            deleting: metadata.deletion_timestamp.is_some(),
            pending: phase == PENDING,
            running: phase == "Running",
            told: status.reason.as_deref() == Some(BACKOFF),
        })
    }

    /// What should happen about it, if its node is a virtual one.
    pub(crate) fn plan(&self) -> Option<Deed> {
        match self {
            Self { deleting: true, running, .. } => (!running).then_some(Deed::Finish),
            Self { pending: true, told: false, .. } => Some(Deed::Tell),
            _ => None,
        }
    }

    /// Why it does not run.
    pub(crate) fn why(&self) -> String {
        let (node, key, kind) = (&self.node, labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL);
        format!(
            "{node} stands for a provider and runs only pods of offloaded namespaces, and this is none of them. A DaemonSet \
             that tolerates every taint makes such pods: so that its updates do not wait for them, give it a node affinity \
             that leaves out nodes with {key}={kind}"
        )
    }
}

/// What to do about a pod that goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Say why it does not run.
    Tell,
    /// Let it go.
    Finish,
}

/// The pods without our label, on all nodes: which of these stand for providers may become known later.
#[derive(Default)]
pub(crate) struct Strays {
    pods: HashMap<Key, Stray>,
    dirty: BTreeSet<Key>,
}

impl Strays {
    /// The pod of this name.
    pub(crate) fn get(&self, key: &Key) -> Option<&Stray> {
        self.pods.get(key)
    }

    /// What should be looked at.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.dirty)
    }

    /// All on these nodes should be looked at.
    pub(crate) fn touch(&mut self, is_virtual: impl Fn(&str) -> bool) {
        let there = self.pods.iter().filter(|(_, stray)| is_virtual(&stray.node));
        self.dirty.extend(there.map(|(key, _)| key.clone()));
    }
}

impl liqo_kit::Index<Stray> for Strays {
    fn apply(&mut self, key: &Key, stray: Stray) {
        self.dirty.insert(key.clone());
        self.pods.insert(key.clone(), stray);
    }

    fn delete(&mut self, key: &Key) {
        self.dirty.remove(key);
        self.pods.remove(key);
    }
}
