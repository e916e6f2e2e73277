//! Several clusters in memory, with people who want something, links that break and processes that are killed.

use jiff::{SignedDuration, Timestamp};
use liqo_core::Resources;
use liqo_core::capacity::Node;
use liqo_core::contract::Terms;
use liqo_kit::Key;
use serde_json::{Value, json};

use super::server::Server;
use super::side::{Due, Side, known, tenant_name};
use crate::paper;
use crate::steps::Where;

/// Longer than parting may take, and than anything that was refused is tried again.
const PATIENCE: SignedDuration = SignedDuration::from_secs(180);
/// More than it takes to come to rest, in writes and in moments.
const TOO_MANY: usize = 3000;

/// Several clusters.
pub(crate) struct World {
    pub(crate) sides: Vec<Side>,
    pub(crate) now: Timestamp,
    /// Writes that were made.
    pub(crate) writes: Vec<String>,
}

/// What becomes of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is made, and the process learns it.
    Made,
    /// It is made, and the process does not learn it.
    Unheard,
    /// It is made, and the process is killed.
    Killed,
    /// It is not made.
    Lost,
}

impl World {
    pub(crate) fn new(names: &[&str]) -> Self {
        let sides = names.iter().map(|name| Side::new(name)).collect();
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        Self { sides, now, writes: Vec::new() }
    }

    /// Gives a cluster nodes with so many cores.
    pub(crate) fn nodes(&mut self, side: usize, cores: &[&str]) {
        let node = |(number, cores): (usize, &&str)| Node {
            name: format!("node-{number}"),
            allocatable: [("cpu", *cores), ("memory", "64Gi"), ("pods", "110")]
                .into_iter()
                .map(|(name, amount)| (name.parse().unwrap(), amount.parse().unwrap()))
                .collect(),
            labels: [("number".to_owned(), number.to_string())].into(),
            ready: true,
            schedulable: true,
            virtual_node: false,
        };
        self.sides[side].nodes = cores.iter().enumerate().map(node).collect();
        self.sides[side].tell_of_nodes_and_peers();
    }

    /// One cluster knows another, and has called it if it says so.
    pub(crate) fn meet(&mut self, caller: usize, called: usize) {
        let (a, b) = (self.sides[caller].me.clone(), self.sides[called].me.clone());
        self.sides[caller].peers.insert(called, known(&b, Some(&tenant_name(&a))));
        self.sides[called].peers.entry(caller).or_insert_with(|| known(&a, None));
        self.foreign_cluster(caller, called, "Manual", &json!({}));
        self.foreign_cluster(called, caller, "IncomingPeering", &json!({}));
        self.sides[caller].tell_of_nodes_and_peers();
        self.sides[called].tell_of_nodes_and_peers();
    }

    fn foreign_cluster(&mut self, of: usize, peer: usize, found: &str, spec: &Value) {
        let identity = &self.sides[peer].me.identity;
        let (id, name) = (identity.id.to_string(), identity.name.to_string());
        let mut object = json!({
            "apiVersion": "discovery.liqo.io/v1alpha1", "kind": "ForeignCluster",
            "metadata": { "name": name, "labels": { "discovery.liqo.io/discovery-type": found } },
            "spec": {
                "foreignAuthUrl": "https://203.0.113.7", "clusterIdentity": { "clusterID": id, "clusterName": name },
            },
        });
        super::merge(&mut object, &json!({ "spec": spec }));
        let now = self.now;
        self.sides[of].server.put("foreignclusters", &Key::cluster(&name), &object, now);
    }

    /// A person changes the ForeignCluster of a peer.
    pub(crate) fn change(&mut self, of: usize, peer: usize, patch: &Value) {
        let key = self.cluster_key(peer);
        let now = self.now;
        if self.sides[of].server.get("foreignclusters", &key).is_some() {
            self.sides[of].server.put("foreignclusters", &key, patch, now);
        }
    }

    /// A person deletes the ForeignCluster of a peer.
    pub(crate) fn remove(&mut self, of: usize, peer: usize) {
        let (key, now) = (self.cluster_key(peer), self.now);
        self.sides[of].server.delete("foreignclusters", &key, now);
    }

    /// Puts a peer out, or lets it in again, as the authentication notes it.
    pub(crate) fn put_out(&mut self, of: usize, peer: usize, put_out: bool) {
        self.sides[of].peers.get_mut(&peer).unwrap().tenant.put_out = put_out;
        self.sides[of].tell_of_nodes_and_peers();
    }

    /// A person makes a policy.
    pub(crate) fn policy(&mut self, of: usize, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "SharingPolicy",
            "metadata": { "name": name }, "spec": spec,
        });
        let now = self.now;
        self.sides[of].server.put("sharingpolicies", &Key::cluster(name), &object, now);
    }

    fn cluster_key(&self, peer: usize) -> Key {
        Key::cluster(self.sides[peer].me.identity.name.as_str())
    }

    /// Cuts or heals a link.
    pub(crate) fn cut(&mut self, caller: usize, called: usize, cut: bool) {
        if let Some(known) = self.sides[caller].peers.get_mut(&called) {
            known.cut = cut;
        }
    }

    pub(crate) fn wait(&mut self, time: SignedDuration) {
        self.now = self.now.checked_add(time).unwrap();
    }

    /// Has one watch tell one thing; the number says which. Returns whether there was one.
    pub(crate) fn hear(&mut self, side: usize, which: usize) -> bool {
        let servers: Vec<&Server> = self.sides.iter().map(|side| &side.server).collect();
        let untold = self.sides[side].untold(&servers);
        let Some((peer, kind)) = untold.get(which % untold.len().max(1)).copied() else { return false };
        match peer {
            None => self.sides[side].hear(kind),
            Some(peer) => {
                // Taken out, so that one side can look at another's.
                let server = std::mem::take(&mut self.sides[peer].server);
                self.sides[side].hear_there(peer, kind, &server);
                self.sides[peer].server = server;
            }
        }
        true
    }

    /// Has a process do one of the things that are due; the number says which. Returns whether there was one.
    pub(crate) fn act(&mut self, side: usize, which: usize, fate: Fate) -> bool {
        let now = self.now;
        let (due, _) = self.sides[side].due(now);
        let Some((peer, step)) = due.get(which % due.len().max(1)).cloned() else { return false };
        self.sides[side].claim(peer, &step, now);
        self.make(side, (peer, step), fate);
        self.forget_the_gone();
        true
    }

    fn make(&mut self, side: usize, (peer, step): Due, fate: Fate) {
        let place = match (step.at, peer) {
            (Where::There, Some(peer)) => peer,
            _ => side,
        };
        let cut = place != side && self.sides[side].peers[&place].cut;
        if fate != Fate::Lost && !cut {
            let made = self.sides[place].server.write(&step, self.now);
            let name = &self.sides[side].me.identity.name;
            self.writes.push(format!("{name}: {} {:?} {} {made:?}", step.what, step.at, step.target));
            let length = self.sides[place].server.history.len();
            if made.is_ok() && fate == Fate::Made {
                self.sides[side].note(peer, &step, length);
            }
        }
        if fate == Fate::Killed {
            self.sides[side].restart();
        }
    }

    /// What authentication does: who is not known any more loses its namespace, and we ours there.
    fn forget_the_gone(&mut self) {
        for side in 0..self.sides.len() {
            let peers: Vec<usize> = self.sides[side].peers.keys().copied().collect();
            for peer in peers {
                if self.sides[side].server.get("foreignclusters", &self.cluster_key(peer)).is_none() {
                    let Some(gone) = self.sides[side].peers.remove(&peer) else { continue };
                    self.sides[side].server.purge(&gone.tenant.name);
                    self.sides[side].process.index.links.remove(&gone.id);
                    let key = Key::cluster(&gone.tenant.name);
                    liqo_kit::Index::<crate::index::Tenant>::delete(
                        &mut self.sides[side].process.index,
                        &key,
                    );
                    if let Some(known) = self.sides[peer].peers.get_mut(&side) {
                        known.access = None;
                        self.sides[peer].tell_of_nodes_and_peers();
                    }
                }
            }
        }
    }

    /// Lets everything happen that happens by itself, until nothing does any more for a while.
    pub(crate) fn rest(&mut self) {
        self.rest_with(|_| Fate::Made);
    }

    /// The same, where a side's writes have a fate.
    pub(crate) fn rest_with(&mut self, fate: impl Fn(usize) -> Fate) {
        let mut until = self.now.checked_add(PATIENCE).unwrap();
        let mut writes = 0;
        for _ in 0..TOO_MANY {
            let mut busy = false;
            let mut wake = None;
            for side in 0..self.sides.len() {
                while self.hear(side, 0) {}
                self.sides[side].notice();
                let now = self.now;
                let (due, next) = self.sides[side].due(now);
                // It may have begun to look at a place.
                busy |= self.hear(side, 0);
                wake = wake.into_iter().chain(next.filter(|next| *next > now)).min();
                // Every write changes what should be done next.
                if let Some(due) = due.into_iter().next() {
                    busy = true;
                    writes += 1;
                    self.sides[side].claim(due.0, &due.1, now);
                    // An event is made before what it tells of; who is killed at each of them gets no further.
                    let fate = if due.1.what == "report" { Fate::Made } else { fate(side) };
                    self.make(side, due, fate);
                    while self.hear(side, 0) {}
                    self.forget_the_gone();
                }
            }
            assert!(writes < TOO_MANY / 2, "it never comes to rest:\n{}", self.told());
            if busy {
                until = self.now.checked_add(PATIENCE).unwrap();
                continue;
            }
            match wake {
                Some(wake) if wake < until => self.now = wake,
                _ => return,
            }
        }
        panic!("it never comes to rest:\n{}", self.told());
    }

    /// The latest writes.
    pub(crate) fn told(&self) -> String {
        let writes = self.writes.iter().filter(|write| !write.contains("report"));
        let mut latest: Vec<&str> = writes.rev().take(80).map(String::as_str).collect();
        latest.reverse();
        latest.join("\n")
    }

    /// What a provider has really sold: what it signed and what is not over, wherever it lies.
    pub(crate) fn really_sold(&self, provider: usize) -> Resources {
        let mut sum = Resources::new();
        self.agreed(provider).iter().for_each(|terms| sum.accumulate(&terms.resources));
        sum
    }

    /// The terms that a provider signed and that are not over, wherever they lie.
    pub(crate) fn agreed(&self, provider: usize) -> Vec<Terms> {
        let me = &self.sides[provider].me;
        let mut all = Vec::new();
        let contracts = self.sides.iter().flat_map(|side| side.server.all("contracts"));
        for (_, contract) in contracts {
            let copy = contract["metadata"]["labels"]["liqo.io/replicated"] == json!("true");
            let over = matches!(contract["status"]["phase"].as_str(), Some("Ended" | "Expired"));
            let agreed = &contract["status"]["agreed"];
            let (Some(terms), Some(signature)) =
                (agreed["terms"].as_str(), agreed["providerSignature"].as_str())
            else {
                continue;
            };
            let terms = Terms::parse(terms.as_bytes()).unwrap();
            if !copy && !over && terms.provider == me.party && terms.not_after > self.now {
                assert!(paper::is_signed(&me.party.key, &terms, signature));
                all.push(terms);
            }
        }
        all
    }

    /// What there is, without what differs from run to run.
    pub(crate) fn state(&self) -> Value {
        let sides = self.sides.iter().map(|side| {
            let mut all: Vec<Value> =
                side.server.everything().filter_map(|it| summary(it.0, it.1, it.2)).collect();
            all.sort_by_key(ToString::to_string);
            (side.me.identity.name.to_string(), json!({ "objects": all, "sold": side.sold().to_string() }))
        });
        Value::Object(sides.collect())
    }
}

/// What was never begun is told like what is over.
fn told(mut conditions: Vec<String>) -> Vec<String> {
    conditions.retain(|condition| !condition.contains(" None ") || condition.contains("NotTold"));
    conditions
}

fn summary(plural: &str, key: &Key, object: &Value) -> Option<Value> {
    let conditions = |list: &Value| -> Vec<String> {
        let all = list.as_array().cloned().unwrap_or_default();
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let one =
            |it: &Value| format!("{} {} {}", word(&it["type"]), word(&it["status"]), word(&it["reason"]));
        let mut all: Vec<String> = all.iter().map(one).collect();
        all.sort();
        all
    };
    let copy = object["metadata"]["labels"]["liqo.io/replicated"] == json!("true");
    let held = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let told = told(conditions(&object["status"]["peeringConditions"]));
    Some(match plural {
        // A mere acquaintance; whether it is forgotten depends on how far it came.
        "foreignclusters" if !held && told.is_empty() && object["metadata"]["annotations"].is_null() => {
            return None;
        }
        "foreignclusters" => json!({
            "cluster": key.name(), "held": held,
            "conditions": told,
            "annotations": object["metadata"]["annotations"],
        }),
        "resourcerequests" => json!({
            "request": key.as_str(), "resources": object["spec"]["resources"],
            "withdrawn": !object["spec"]["withdrawalTimestamp"].is_null(),
            "conditions": conditions(&object["status"]["conditions"]),
        }),
        "resourceoffers" => json!({
            "offer": key.as_str(), "copy": copy, "amounts": object["spec"]["resourceQuota"],
            "phase": object["status"]["phase"], "withdrawn": !object["spec"]["withdrawalTimestamp"].is_null(),
        }),
        "contracts" => json!({
            "contract": key.namespace(), "copy": copy, "phase": object["status"]["phase"],
            "resources": object["status"]["resources"], "ended": object["spec"]["ended"]["reason"],
        }),
        "sharingpolicies" => {
            json!({ "policy": key.name(), "peers": object["status"]["peers"], "sold": object["status"]["sold"] })
        }
        _ => return None,
    })
}
