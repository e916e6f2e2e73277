//! What should become of the node of one provider, or of one pool of its nodes.
//!
//! A provider that lends has a node, or one for each pool that it lends apart; one whose contract is over, or from whose
//! contract the pool went, has its node emptied, then removed. What others add to a
//! node (labels, taints, a cordon) stays.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use liqo_api::{annotations, names};
use liqo_core::Resources;
use liqo_core::names::ClusterId;
use liqo_core::pools::Pool;
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use liqo_providers::nodes::Survey;
use liqo_providers::{ByCluster, Health, Lent, Provider};
use serde_json::{Value, json};

use crate::Settings;
use crate::index::Index;
use crate::node::{Facts, Known, Place};

mod drain;
mod meta;
mod outage;
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
    /// What is left behind the nodes.
    pub(crate) survey: &'a Survey,
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

/// What a node stands for, as it is now.
#[derive(Clone, Copy)]
pub(crate) struct Stand<'a> {
    pub(crate) place: &'a Place,
    pub(crate) provider: Option<&'a Provider>,
    /// What is lent there; nothing may be placed there without.
    pub(crate) lent: Option<Part<'a>>,
}

/// What is lent of a provider, or of one of its pools.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    /// By this contract, which may have more.
    pub(crate) by: &'a Lent,
    pub(crate) resources: &'a Resources,
    pub(crate) pool: Option<&'a Pool>,
}

impl<'a> Stand<'a> {
    /// What `place` is now.
    pub(crate) fn of(providers: &'a ByCluster, place: &'a Place) -> Self {
        let provider = providers.get(&place.cluster);
        let by = provider.and_then(|provider| provider.lent.as_deref());
        let lent = by.and_then(|by| match &place.pool {
            None => by.pools.is_empty().then_some(Part { by, resources: &by.resources, pool: None }),
            Some(name) => {
                let pool = by.pools.get(name)?;
                Some(Part { by, resources: &pool.resources, pool: Some(pool) })
            }
        });
        Self { place, provider, lent }
    }
}

/// What of a provider has a node of its own.
pub(crate) fn places(provider: &Provider) -> Vec<Place> {
    let whole = || Place::whole(provider.id.clone());
    match provider.lent.as_deref() {
        None => Vec::new(),
        Some(lent) if lent.pools.is_empty() => vec![whole()],
        Some(lent) => lent.pools.keys().map(|pool| Place { pool: Some(pool.clone()), ..whole() }).collect(),
    }
}

/// What should become of the node of `place`.
pub(crate) fn plan(view: &View<'_>, place: &Place) -> Planned {
    let stand = Stand::of(view.providers, place);
    let lends = stand.lent.is_some_and(|part| !part.by.ending);
    match view.index.node_of(place) {
        None => match stand.provider.filter(|_| lends) {
            Some(provider) => create(view, &stand, provider),
            None => Planned::default(),
        },
        // It is on its way out; whoever wants it back makes it anew.
        Some((_, facts)) if facts.deleting => Planned::default(),
        Some((name, facts)) => {
            let leaving = drain::leaving(view, &stand, facts);
            keep(view, name, facts, &stand, leaving)
        }
    }
}

/// Notes since when nothing is lent of what has a node.
pub(crate) fn notice(index: &mut Index, providers: &ByCluster, place: &Place, now: Timestamp) {
    let lends = Stand::of(providers, place).lent.is_some();
    if lends || index.node_of(place).is_none() {
        index.absent.remove(place);
    } else {
        index.absent.entry(place.clone()).or_insert(now);
    }
}

/// The node of a provider that has none yet: as soon as it is known whether it answers.
fn create(view: &View<'_>, stand: &Stand<'_>, provider: &Provider) -> Planned {
    if provider.health == Health::Unknown && provider.link.is_ok() {
        return Planned::default();
    }
    let Some(name) = free_name(view.index, stand.place, provider) else { return Planned::default() };
    let wanted = meta::Wanted::new(view.settings, &name, stand);
    Planned { steps: vec![Step { node: name, what: What::Create(wanted.node()) }], ..Planned::default() }
}

/// `liqo-<name>`, with the pool where there is one, or with some digits where that belongs to somebody else.
fn free_name(index: &Index, place: &Place, provider: &Provider) -> Option<String> {
    let identity = identity(provider)?;
    let names = match &place.pool {
        None => [identity.virtual_node(), identity.distinct_virtual_node()],
        Some(pool) => [identity.pool_node(pool.as_str()), identity.distinct_pool_node(pool.as_str())],
    };
    names.into_iter().find(|name| index.node(name).is_none())
}

fn identity(provider: &Provider) -> Option<names::Identity> {
    let name = provider.name.as_ref()?;
    Some(names::Identity { id: provider.id.as_str().parse().ok()?, name: name.as_str().parse().ok()? })
}

fn keep(view: &View<'_>, name: &str, facts: &Facts, stand: &Stand<'_>, leaving: Leaving) -> Planned {
    let mut planned = drain::progress(view, name, facts, &leaving);
    if planned.steps.is_empty() {
        let behind = view.survey.of(name);
        let change = meta::change(view, name, facts, stand, &behind, &leaving);
        let status = status::status(view, name, facts, stand, &behind);
        let steps = change.into_iter().chain(status).map(|what| Step { node: name.to_owned(), what });
        planned.steps.extend(steps);
    }
    planned
}

/// Since when a node of ours is emptied.
fn draining_since(facts: &Facts) -> Option<Timestamp> {
    facts.annotations.get(annotations::DRAINING_SINCE)?.parse().ok()
}

/// What a node of ours stands for.
pub(crate) fn place_of<'a>(index: &'a Index, node: &str) -> Option<&'a Place> {
    match index.node(node)? {
        Known::Ours(facts) => facts.place.as_ref(),
        Known::Other => None,
    }
}

/// The provider of a node of ours.
pub(crate) fn cluster_of<'a>(index: &'a Index, node: &str) -> Option<&'a ClusterId> {
    place_of(index, node).map(|place| &place.cluster)
}

fn object(name: &str, uid: &str, status: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "uid": uid }, "status": status })
}

/// Whether a node says that it can be used.
pub(crate) fn is_ready(facts: &Facts) -> bool {
    facts.condition(status::READY).is_some_and(|condition| condition.status == "True")
}
