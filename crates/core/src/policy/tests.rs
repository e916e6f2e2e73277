//! Tables of worlds.

mod amounts;
mod pools;
mod properties;
mod selection;
mod validation;
mod windows;

use jiff::Timestamp;
use serde_json::Value;

use super::{Evaluation, Offer, Peer, Percent, Policy, Refusal, Verdict, evaluate};
use crate::capacity::{Capacity, Load, Node, Owner};
use crate::ledger::{Ledger, Sale};
use crate::resources::Resources;
use crate::testing::{contract_id, id, list, time};

/// A Wednesday.
const NOW: &str = "2026-07-01T12:00:00Z";

/// A cluster with nodes, policies and contracts.
#[derive(Clone, Debug)]
struct World {
    nodes: Vec<(Node, Load)>,
    policies: Vec<Policy>,
    ledger: Ledger,
    default_percentage: i64,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        Self {
            nodes: Vec::new(),
            policies: Vec::new(),
            ledger: Ledger::default(),
            default_percentage: 100,
            now: time(NOW),
        }
    }

    fn with_node(allocatable: &str) -> Self {
        Self::new().node(allocatable)
    }

    fn node(self, allocatable: &str) -> Self {
        self.labelled_node(allocatable, &[])
    }

    fn labelled_node(mut self, allocatable: &str, labels: &[(&str, &str)]) -> Self {
        let node = Node {
            name: format!("node-{}", self.nodes.len()),
            allocatable: list(allocatable),
            labels: labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            ready: true,
            schedulable: true,
            virtual_node: false,
        };
        self.nodes.push((node, Load::default()));
        self
    }

    /// Places a pod on the node that came last.
    fn pod(mut self, owner: &str, requests: &str) -> Self {
        let owner = if owner == "local" { Owner::Local } else { Owner::Peer(id(owner)) };
        let (_, load) = self.nodes.last_mut().unwrap();
        load.add(&owner, &list(requests));
        self
    }

    fn percentage(mut self, percentage: i64) -> Self {
        self.default_percentage = percentage;
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads like the document")]
    fn policy(mut self, name: &str, spec: Value) -> Self {
        self.policies.push(policy(name, &spec));
        self
    }

    fn sold(mut self, peer: &str, pot: Option<&str>, resources: &str) -> Self {
        self.ledger = self.ledger.restore(sale(peer, pot, list(resources)), true);
        self
    }

    /// Sells all of an offer.
    fn sell(mut self, peer: &str, offer: &Offer) -> Self {
        self.ledger = self.ledger.restore(sale_of(peer, offer), true);
        self
    }

    fn at(mut self, now: &str) -> Self {
        self.now = time(now);
        self
    }

    fn capacity(&self) -> Capacity {
        let mut capacity = Capacity::default();
        for (node, load) in &self.nodes {
            capacity.insert(node.clone(), load.clone());
        }
        capacity
    }

    fn ask_as(&self, peer: &Peer) -> Evaluation {
        let default = Percent::new(self.default_percentage).unwrap();
        evaluate(&self.policies, default, peer, &self.capacity(), &self.ledger, self.now)
    }

    fn ask(&self, name: &str) -> Evaluation {
        self.ask_as(&peer(name))
    }

    fn offer(&self, name: &str) -> Offer {
        offer(self.ask(name))
    }

    /// What is offered, without the pods that are always there.
    fn offered(&self, name: &str) -> Resources {
        let mut resources = self.offer(name).resources;
        resources.remove("pods");
        resources
    }

    fn refusal(&self, name: &str) -> Refusal {
        refusal(self.ask(name))
    }
}

fn policy(name: &str, spec: &Value) -> Policy {
    let spec = serde_json::from_value(spec.clone()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    Policy::parse(name, &spec).unwrap_or_else(|problems| panic!("{problems}"))
}

fn peer(name: &str) -> Peer {
    Peer { id: id(name), labels: [].into(), approved: false, wants: Resources::new() }
}

fn labelled(name: &str, labels: &[(&str, &str)]) -> Peer {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Peer { labels, ..peer(name) }
}

fn sale(peer: &str, pot: Option<&str>, resources: Resources) -> Sale {
    Sale {
        contract: contract_id(&format!("of-{peer}")),
        sequence: 0,
        peer: id(peer),
        pot: pot.map(ToOwned::to_owned),
        resources,
        pools: [].into(),
        since: Timestamp::UNIX_EPOCH,
    }
}

/// All of an offer, sold.
fn sale_of(peer: &str, offer: &Offer) -> Sale {
    let pools = offer.pools.iter().map(|(name, pool)| (name.clone(), pool.resources.clone()));
    Sale { pools: pools.collect(), ..sale(peer, offer.policy.as_deref(), offer.resources.clone()) }
}

fn offer(evaluation: Evaluation) -> Offer {
    match evaluation.verdict {
        Verdict::Offer(offer) => *offer,
        other => panic!("expected an offer, got {other:?} by {:#?}", evaluation.lines),
    }
}

fn refusal(evaluation: Evaluation) -> Refusal {
    match evaluation.verdict {
        Verdict::Refuse(refusal) => refusal,
        other => panic!("expected a refusal, got {other:?} by {:#?}", evaluation.lines),
    }
}
