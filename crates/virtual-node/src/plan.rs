//! What should become of the node of one provider.
//!
//! A provider that lends has a node; one whose contract is over has its node emptied, then removed. What others add to a
//! node (labels, taints, a cordon) stays.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use liqo_api::{annotations, names};
use liqo_core::names::ClusterId;
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use liqo_providers::{ByCluster, Health, Provider};
use serde_json::{Value, json};

use crate::Settings;
use crate::index::Index;
use crate::node::{Facts, Known};

mod drain;
mod meta;
mod status;
#[cfg(test)]
mod tests;

pub(crate) use drain::Draining;
use drain::Leaving;

/// What is looked at.
pub(crate) struct View<'a> {
    pub(crate) index: &'a Index,
    pub(crate) providers: &'a ByCluster,
    pub(crate) settings: &'a Settings,
    pub(crate) now: Timestamp,
}

/// What is missing, and when to look again.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Planned {
    pub(crate) steps: Vec<Step>,
    pub(crate) draining: Option<Draining>,
    pub(crate) wake: Option<Timestamp>,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) node: String,
    pub(crate) what: What,
}

/// What is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    /// The node, anew.
    Create(Value),
    /// Labels, annotations, taints, cordon; of the node at this version.
    Change { version: String, patch: Value },
    /// The status.
    Status(Value),
    /// The node with this uid goes.
    Delete(String),
}

impl Step {
    /// Whether the status is written, which is a slot of its own.
    pub(crate) const fn is_status(&self) -> bool {
        matches!(self.what, What::Status(_))
    }

    /// The object.
    pub(crate) fn target(&self) -> Target {
        Target::of::<Node>(Key::cluster(&self.node))
    }

    /// The write itself.
    pub(crate) fn write(&self) -> Result<Write, serde_json::Error> {
        match &self.what {
            What::Create(node) => Write::create(self.target(), node),
            What::Change { version, patch } => Write::merge(self.target(), version, patch),
            What::Status(node) => Write::apply_status(self.target(), node),
            What::Delete(uid) => Ok(Write::delete(self.target(), uid)),
        }
    }
}

/// What should become of the node of `cluster`.
pub(crate) fn plan(view: &View<'_>, cluster: &ClusterId) -> Planned {
    let provider = view.providers.get(cluster);
    let lends = provider.is_some_and(|provider| provider.lent.as_ref().is_some_and(|lent| !lent.ending));
    match (view.index.node_of(cluster), provider) {
        (None, Some(provider)) if lends => create(view, provider),
        (None, _) => Planned::default(),
        // It is on its way out; whoever wants it back makes it anew.
        (Some((_, facts)), _) if facts.deleting => Planned::default(),
        (Some((name, facts)), provider) => {
            let leaving = drain::leaving(view, cluster, provider, facts);
            keep(view, name, facts, provider, leaving)
        }
    }
}

/// The node of a provider that has none yet: as soon as it is known whether it answers.
fn create(view: &View<'_>, provider: &Provider) -> Planned {
    if provider.health == Health::Unknown && provider.link.is_ok() {
        return Planned::default();
    }
    let Some(name) = free_name(view.index, provider) else { return Planned::default() };
    let wanted = meta::Wanted::new(view.settings, &name, provider);
    Planned { steps: vec![Step { node: name, what: What::Create(wanted.node()) }], ..Planned::default() }
}

/// `liqo-<name>`, or with some digits where that belongs to somebody else.
fn free_name(index: &Index, provider: &Provider) -> Option<String> {
    let identity = identity(provider)?;
    [identity.virtual_node(), identity.distinct_virtual_node()]
        .into_iter()
        .find(|name| index.node(name).is_none())
}

fn identity(provider: &Provider) -> Option<names::Identity> {
    let name = provider.name.as_ref()?;
    Some(names::Identity { id: provider.id.as_str().parse().ok()?, name: name.as_str().parse().ok()? })
}

fn keep(
    view: &View<'_>,
    name: &str,
    facts: &Facts,
    provider: Option<&Provider>,
    leaving: Leaving,
) -> Planned {
    let mut planned = drain::progress(view, name, facts, &leaving);
    if planned.steps.is_empty() {
        let change = meta::change(view, name, facts, provider, &leaving);
        let status = status::status(view, name, facts, provider);
        let steps = change.into_iter().chain(status).map(|what| Step { node: name.to_owned(), what });
        planned.steps.extend(steps);
    }
    planned
}

/// Since when a node of ours is emptied.
fn draining_since(facts: &Facts) -> Option<Timestamp> {
    facts.annotations.get(annotations::DRAINING_SINCE)?.parse().ok()
}

/// A node of ours by its name.
pub(crate) fn cluster_of<'a>(index: &'a Index, node: &str) -> Option<&'a ClusterId> {
    match index.node(node)? {
        Known::Ours(facts) => facts.cluster.as_ref(),
        Known::Other => None,
    }
}

fn object(name: &str, uid: &str, status: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "uid": uid }, "status": status })
}

/// Whether a node says that it can be used.
pub(crate) fn is_ready(facts: &Facts) -> bool {
    facts.condition(status::READY).is_some_and(|condition| condition.status == "True")
}
