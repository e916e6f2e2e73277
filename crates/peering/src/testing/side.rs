//! One cluster of a world in memory: its server, and a process that may be killed at any time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use liqo_api::{ForeignCluster, ResourceRequest, SharingPolicy};
use liqo_core::capacity::Node;
use liqo_core::names::ClusterId;
use liqo_identity::{Identity, Wanted};
use liqo_kit::clusters::Credentials;
use liqo_kit::{Index as _, Key};
use serde_json::Value;

use super::server::{Happened, Server};
use crate::Settings;
use crate::house;
use crate::index::{Access, Bid, Deal, Held, Index, Link, Papers, Reserved, Tenant};
use crate::lending::{ledger, obligations};
use crate::paper;
use crate::parting;
use crate::places::{Me, View};
use crate::steps::{Paced, Step};
use crate::stock::{NodeFacts, PolicyOnWire, read_policy};

/// Kinds that are watched here, and those that are watched at peers.
const HERE: [&str; 6] =
    ["foreignclusters", "resourcerequests", "resourceoffers", "contracts", "sharingpolicies", "configmaps"];
const THERE: [&str; 3] = ["resourcerequests", "resourceoffers", "contracts"];

/// One cluster.
pub(crate) struct Side {
    pub(crate) me: Me,
    pub(crate) server: Server,
    pub(crate) settings: Settings,
    pub(crate) nodes: Vec<Node>,
    /// The clusters that it knows, by their number.
    pub(crate) peers: BTreeMap<usize, Known>,
    pub(crate) process: Process,
}

/// What a cluster knows of a peer from authentication.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) id: ClusterId,
    pub(crate) tenant: Tenant,
    /// Whether it has an identity there.
    pub(crate) access: Option<Access>,
    /// Whether the link between them is cut.
    pub(crate) cut: bool,
}

/// What is lost when the process is killed.
#[derive(Default)]
pub(crate) struct Process {
    pub(crate) index: Index,
    /// How far each watch here has come; a watch that is not there has not begun.
    seen: BTreeMap<&'static str, usize>,
    seen_there: BTreeMap<(usize, &'static str), usize>,
    /// What it looks at each peer for.
    purposes: BTreeMap<usize, parting::Purpose>,
    /// Up to where a watch must have come before an object is written again.
    written: BTreeMap<(Option<usize>, String), usize>,
}

/// A step, and the peer that it is about if it is about one.
pub(crate) type Due = (Option<usize>, Step);

impl Side {
    pub(crate) fn new(name: &str) -> Self {
        let id = format!("{name}-id");
        let wanted = Wanted { id: Some(id.parse().unwrap()), name: Some(name.parse().unwrap()) };
        let me = Me::new(Arc::new(Identity::generate(&wanted).unwrap())).unwrap();
        let settings = Settings::new("liqo".parse().unwrap(), "manager-0");
        let server = Server::default();
        let (nodes, peers) = (Vec::new(), BTreeMap::new());
        let mut side = Self { me, server, settings, nodes, peers, process: Process::default() };
        side.restart();
        side
    }

    /// Kills the process; the next one knows nothing but what the server has.
    pub(crate) fn restart(&mut self) {
        self.process = Process::default();
        self.tell_of_nodes_and_peers();
    }

    /// Tells what comes by other ways than watches.
    pub(crate) fn tell_of_nodes_and_peers(&mut self) {
        let index = &mut self.process.index;
        for node in &self.nodes {
            let facts = NodeFacts { node: node.clone(), images: Vec::new() };
            index.apply(&Key::cluster(&node.name), facts);
        }
        for known in self.peers.values() {
            index.apply(&Key::cluster(&known.tenant.name), known.tenant.clone());
            let secret = Key::namespaced(&known.tenant.name, "liqo-identity");
            match &known.access {
                Some(access) => {
                    index.apply(&secret, Held { peer: known.id.clone(), access: Ok(access.clone()) });
                }
                None => liqo_kit::Index::<Held>::delete(index, &secret),
            }
        }
    }

    /// Watches that have something to tell: here, or at a peer.
    pub(crate) fn untold(&self, servers: &[&Server]) -> Vec<(Option<usize>, &'static str)> {
        let behind = |seen: Option<&usize>, length: usize| seen.is_none_or(|seen| *seen < length);
        let mut untold: Vec<(Option<usize>, &'static str)> = Vec::new();
        let length = self.server.history.len();
        untold.extend(
            HERE.iter().filter(|kind| behind(self.process.seen.get(*kind), length)).map(|kind| (None, *kind)),
        );
        for (number, known) in self.peers.iter().filter(|(_, known)| !known.cut && known.access.is_some()) {
            if !self.process.index.links.contains_key(&known.id) {
                continue;
            }
            let length = servers[*number].history.len();
            let kinds =
                THERE.iter().filter(|kind| behind(self.process.seen_there.get(&(*number, **kind)), length));
            untold.extend(kinds.map(|kind| (Some(*number), *kind)));
        }
        untold
    }

    /// Has a watch here tell the next thing.
    pub(crate) fn hear(&mut self, kind: &'static str) {
        let process = &mut self.process;
        let Some(seen) = process.seen.get_mut(kind) else {
            for (plural, key, object) in self.server.everything().filter(|(plural, ..)| *plural == kind) {
                tell(&mut process.index, plural, key, Some(object));
            }
            process.seen.insert(kind, self.server.history.len());
            return;
        };
        let rest = self.server.history.iter().enumerate().skip(*seen);
        let next = rest.into_iter().find(|(_, happened)| happened.plural == kind);
        *seen = next.map_or(self.server.history.len(), |(place, _)| place + 1);
        if let Some((_, Happened { plural, key, object })) = next {
            tell(&mut process.index, plural, key, object.as_ref());
        }
    }

    /// Has a watch at a peer tell the next thing.
    pub(crate) fn hear_there(&mut self, number: usize, kind: &'static str, server: &Server) {
        let Some(known) = self.peers.get(&number) else { return };
        let Some(access) = &known.access else { return };
        let (namespace, id) = (access.namespace.to_string(), known.id.clone());
        let process = &mut self.process;
        let mine = |key: &Key| key.namespace() == Some(namespace.as_str());
        let Some(seen) = process.seen_there.get_mut(&(number, kind)) else {
            for (plural, key, object) in
                server.everything().filter(|(plural, key, _)| *plural == kind && mine(key))
            {
                process.index.at_peer(&id, |papers| tell_paper(papers, plural, key, Some(object)));
            }
            let bit = 1 << THERE.iter().position(|it| *it == kind).unwrap();
            if let Some(link) = process.index.links.get_mut(&id) {
                link.synced |= bit;
            }
            process.seen_there.insert((number, kind), server.history.len());
            return;
        };
        let rest = server.history.iter().enumerate().skip(*seen);
        let next = rest.into_iter().find(|(_, it)| it.plural == kind && mine(&it.key));
        *seen = next.map_or(server.history.len(), |(place, _)| place + 1);
        if let Some((_, it)) = next {
            process.index.at_peer(&id, |papers| tell_paper(papers, &it.plural, &it.key, it.object.as_ref()));
        }
    }

    /// Whether everything was listed once: before, a process writes nothing.
    fn is_ready(&self) -> bool {
        HERE.iter().all(|kind| self.process.seen.contains_key(kind))
    }

    /// What the leader does before it plans.
    fn prepare(&mut self, now: Timestamp) {
        let index = &mut self.process.index;
        index.release_seen(now);
        obligations::observe(index, &self.me, &self.settings, now);
        index.draw_ids(&self.peers.values().map(|known| known.id.clone()).collect::<BTreeSet<_>>());
        for (number, known) in &self.peers {
            let view = View { index, me: &self.me, settings: &self.settings, now };
            let needed = parting::needs_link(&view, &known.id);
            let linked = match (self.process.purposes.get(number), needed) {
                (Some(before), Some(now)) if before.ends(now) => false,
                _ => index.links.contains_key(&known.id),
            };
            self.process.purposes.remove(number);
            self.process.purposes.extend(needed.map(|needed| (*number, needed)));
            match (&known.access, linked) {
                (Some(access), false) if needed.is_some() => {
                    let link = Link { namespace: access.namespace.to_string(), ..Link::default() };
                    index.links.insert(known.id.clone(), link);
                    self.process.seen_there.retain(|(peer, _), _| peer != number);
                }
                (access, true) if needed.is_none() || access.is_none() => {
                    index.links.remove(&known.id);
                    index.memory.booked();
                    self.process.seen_there.retain(|(peer, _), _| peer != number);
                }
                _ => {}
            }
        }
    }

    /// Notices that links are cut, or whole.
    pub(crate) fn notice(&mut self) {
        for known in self.peers.values() {
            if let Some(link) = self.process.index.links.get_mut(&known.id) {
                link.trouble = known.cut.then(|| "cut".to_owned());
            }
        }
    }

    /// What is to be written now, and when something is due if nothing else happens.
    pub(crate) fn due(&mut self, now: Timestamp) -> (Vec<Due>, Option<Timestamp>) {
        if !self.is_ready() {
            return (Vec::new(), None);
        }
        self.prepare(now);
        let view = View { index: &self.process.index, me: &self.me, settings: &self.settings, now };
        let house = house::plan(&view);
        let mut wake = house.wake;
        let mut due: Vec<Due> = house.steps.into_iter().map(|step| (None, step)).collect();
        for (number, known) in &self.peers {
            let planned = parting::plan(&view, &known.id);
            wake = wake.into_iter().chain(planned.wake).min();
            due.extend(planned.steps.into_iter().map(|step| (Some(*number), step)));
        }
        let reported = &self.process.index.memory.reported;
        due.retain(|(number, step)| self.has_seen(*number, step) && !reported.contains(&step.target));
        (due, wake)
    }

    fn slot(number: Option<usize>, step: &Step) -> (Option<usize>, String) {
        (number.filter(|_| step.at == crate::steps::Where::There), step.target.to_string())
    }

    /// Whether the watch has told what was written to this object last.
    fn has_seen(&self, number: Option<usize>, step: &Step) -> bool {
        let slot = Self::slot(number, step);
        let plural = super::plural(step);
        let seen = match slot.0 {
            None => HERE.iter().find(|kind| **kind == plural).map(|kind| self.process.seen.get(kind)),
            Some(peer) => {
                let kind = THERE.iter().find(|kind| **kind == plural);
                kind.map(|kind| self.process.seen_there.get(&(peer, *kind)))
            }
        };
        let written = self.process.written.get(&slot).copied().unwrap_or_default();
        // What is not watched is written as often as it is planned.
        seen.is_none_or(|seen| seen.copied().unwrap_or_default() >= written)
    }

    /// Remembers what is sold or done at a pace, before it is done.
    pub(crate) fn claim(&mut self, number: Option<usize>, step: &Step, now: Timestamp) {
        let memory = &mut self.process.index.memory;
        if let Some(sale) = &step.sale {
            let version = step.version().unwrap_or_default().to_owned();
            memory.reserve(Reserved { sale: sale.clone(), version, since: now });
        }
        if let (Some((what, occasion)), Some(number)) = (&step.paced, number) {
            let peer = &self.peers[&number].id;
            match what {
                Paced::Offer => memory.offers.grant(peer, occasion, self.settings.offers, now),
                Paced::Proposal => memory.proposals.grant(peer, occasion, self.settings.proposals, now),
            }
        }
    }

    /// Remembers that the object was written, at this length of the server's history.
    pub(crate) fn note(&mut self, number: Option<usize>, step: &Step, length: usize) {
        if super::plural(step) == "events" {
            self.process.index.memory.report(step.target.clone());
        } else {
            self.process.written.insert(Self::slot(number, step), length);
        }
    }

    /// What it believes to have sold.
    pub(crate) fn sold(&self) -> liqo_core::Resources {
        ledger(&self.process.index, &self.me).sold()
    }
}

fn read<T: serde::de::DeserializeOwned>(object: &Value) -> T {
    serde_json::from_value(object.clone()).unwrap_or_else(|error| panic!("{error}: {object}"))
}

fn tell(index: &mut Index, plural: &str, key: &Key, object: Option<&Value>) {
    match (plural, object) {
        ("foreignclusters", Some(object)) => index.apply(key, read::<ForeignCluster>(object)),
        ("foreignclusters", None) => liqo_kit::Index::<ForeignCluster>::delete(index, key),
        ("configmaps", Some(object)) => index.apply(key, read::<ConfigMap>(object)),
        ("configmaps", None) => liqo_kit::Index::<ConfigMap>::delete(index, key),
        ("sharingpolicies", Some(object)) => {
            index.apply(key, read::<SharingPolicy>(object));
            index.apply(key, read_policy(read::<PolicyOnWire>(object)).unwrap());
        }
        ("sharingpolicies", None) => {
            liqo_kit::Index::<SharingPolicy>::delete(index, key);
            liqo_kit::Index::<liqo_core::policy::Policy>::delete(index, key);
        }
        ("resourcerequests", Some(object)) => index.apply(key, read::<ResourceRequest>(object)),
        ("resourcerequests", None) => liqo_kit::Index::<ResourceRequest>::delete(index, key),
        ("resourceoffers", Some(object)) => index.apply(key, Bid::read(read(object))),
        ("resourceoffers", None) => liqo_kit::Index::<Bid>::delete(index, key),
        ("contracts", Some(object)) => index.apply(key, Deal::read(read(object))),
        ("contracts", None) => liqo_kit::Index::<Deal>::delete(index, key),
        _ => panic!("{plural} is not watched"),
    }
}

fn tell_paper(papers: &mut Papers, plural: &str, key: &Key, object: Option<&Value>) {
    match (plural, object) {
        ("resourcerequests", Some(object)) => papers.apply(key, read::<ResourceRequest>(object)),
        ("resourcerequests", None) => liqo_kit::Index::<ResourceRequest>::delete(papers, key),
        ("resourceoffers", Some(object)) => papers.apply(key, Bid::read(read(object))),
        ("resourceoffers", None) => liqo_kit::Index::<Bid>::delete(papers, key),
        ("contracts", Some(object)) => papers.apply(key, Deal::read(read(object))),
        ("contracts", None) => liqo_kit::Index::<Deal>::delete(papers, key),
        _ => panic!("{plural} is not watched there"),
    }
}

/// What `me` knows of `other` once one of them has called.
pub(crate) fn known(other: &Me, namespace_there: Option<&str>) -> Known {
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{ "name": "c", "cluster": { "server": "https://203.0.113.7:6443" } }],
        "users": [{ "name": "u", "user": { "token": "t" } }],
        "contexts": [{ "name": "c", "context": { "cluster": "c", "user": "u" } }],
    });
    let access = namespace_there.map(|namespace| Access {
        namespace: namespace.parse().unwrap(),
        credentials: Credentials::kubeconfig(kubeconfig.to_string().as_bytes()).unwrap(),
    });
    let tenant = Tenant {
        name: tenant_name(other),
        created: None,
        deleting: false,
        put_out: false,
        peer: other.id().clone(),
        key: Some(paper::party(&other.identity).unwrap().key),
    };
    Known { id: other.id().clone(), tenant, access, cut: false }
}

/// The tenant namespace of a cluster.
pub(crate) fn tenant_name(of: &Me) -> String {
    format!("liqo-tenant-{}", of.identity.name)
}
