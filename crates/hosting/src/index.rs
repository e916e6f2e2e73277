//! What is known: who lends what to whom, which namespaces and pods are wanted, and which there are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use liqo_core::names::ClusterId;
use liqo_kit::index::Grouped;
use liqo_kit::{Index as Indexed, Key, Store};

use crate::claims::Claims;
use crate::fence::Fence;
use crate::limits::Limits;
use crate::pods::{HouseRules, PodFacts, Priority, Shadow};

mod feed;
mod ledger;
mod memory;
mod papers;
mod spaces;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use ledger::{Account, Ledger};
pub(crate) use memory::Memory;
pub(crate) use papers::{Bid, Deal, Grant, House, Map, Tenant};
pub(crate) use spaces::{Binding, Quota, QuotaOnWire, Space, SpaceOnWire};

/// Pods that wait for room in their contract and are tried again when some of it is given back. Others follow when these
/// have it; a smaller one behind them is found when all are looked at.
const TRIED_AGAIN: usize = 32;

/// All that is known.
pub(crate) struct Index {
    /// Who we are.
    pub(crate) me: Option<ClusterId>,
    /// By the ID of the peer.
    pub(crate) tenants: Grouped<Tenant, ClusterId>,
    pub(crate) contracts: Store<Deal>,
    pub(crate) offers: Store<Bid>,
    pub(crate) houses: Store<House>,
    pub(crate) priorities: Store<Priority>,
    pub(crate) maps: Store<Map>,
    /// By the map that asked for them, as `namespace/name`.
    pub(crate) spaces: Grouped<Space, Key>,
    pub(crate) quotas: Store<Quota>,
    pub(crate) bindings: Store<Binding>,
    pub(crate) shadows: Store<Shadow>,
    pub(crate) pods: Store<PodFacts>,
    pub(crate) ledger: Ledger,
    pub(crate) claims: Claims,
    pub(crate) memory: Memory,
    pub(crate) fence: Fence,
    /// How many objects a namespace of a consumer may have.
    pub(crate) limits: Limits,
    grants: BTreeMap<ClusterId, Grant>,
    rules: BTreeMap<ClusterId, Arc<HouseRules>>,
    pub(crate) changed: Changed,
}

/// What must be looked at anew.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    /// Tenants, contracts, policies or maps: who gets what must be reckoned anew.
    pub(crate) papers: bool,
    /// Everything.
    pub(crate) all: bool,
    pub(crate) spaces: BTreeSet<String>,
    pub(crate) maps: BTreeSet<Key>,
    pub(crate) pods: BTreeSet<Key>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            me: None,
            tenants: Grouped::by(|_, tenant| Some(tenant.peer.clone())),
            contracts: Store::default(),
            offers: Store::default(),
            houses: Store::default(),
            priorities: Store::default(),
            maps: Store::default(),
            spaces: Grouped::by(|_, space| space.map.clone()),
            quotas: Store::default(),
            bindings: Store::default(),
            shadows: Store::default(),
            pods: Store::default(),
            ledger: Ledger::default(),
            claims: Claims::default(),
            memory: Memory::default(),
            fence: Fence::default(),
            limits: Limits::default(),
            grants: BTreeMap::new(),
            rules: BTreeMap::new(),
            changed: Changed { papers: true, all: true, ..Changed::default() },
        }
    }
}

impl Index {
    /// A namespace of this cluster.
    pub(crate) fn space(&self, name: &str) -> Option<&Space> {
        self.spaces.store().get(&Key::cluster(name))
    }

    /// What a peer may use; nothing without a contract in force.
    pub(crate) fn grant(&self, peer: &ClusterId) -> Option<&Grant> {
        self.grants.get(peer)
    }

    /// How many peers may use something.
    pub(crate) fn guests(&self) -> usize {
        self.grants.len()
    }

    /// The rules of the house for a peer.
    pub(crate) fn rules(&self, peer: &ClusterId) -> Arc<HouseRules> {
        self.rules.get(peer).cloned().unwrap_or_default()
    }

    /// The tenant namespace of a peer, unless it goes away.
    pub(crate) fn tenant_of(&self, peer: &ClusterId) -> Option<&Tenant> {
        self.tenants.group(peer).map(|(_, tenant)| tenant).find(|tenant| !tenant.deleting)
    }

    /// Reckons anew what peers may use and by which rules; returns those for whom it changed.
    pub(crate) fn reckon_grants(&mut self) -> BTreeSet<ClusterId> {
        let (mut grants, mut rules) = (BTreeMap::new(), BTreeMap::new());
        for peer in self.tenants.groups() {
            let Some(tenant) = self.tenant_of(peer) else { continue };
            if let Some(grant) = self.granted(tenant) {
                grants.insert(peer.clone(), grant);
                rules.insert(peer.clone(), self.ruled(tenant));
            }
        }
        let known = self.grants.keys().chain(grants.keys()).cloned().collect::<BTreeSet<_>>();
        let differs = |peer: &ClusterId| {
            self.grants.get(peer) != grants.get(peer) || self.rules.get(peer) != rules.get(peer)
        };
        let changed = known.into_iter().filter(differs).collect();
        (self.grants, self.rules) = (grants, rules);
        changed
    }

    /// Whether a peer is put out, so that nothing it was given counts any more.
    pub(crate) fn is_put_out(&self, peer: &ClusterId) -> bool {
        self.tenants.group(peer).any(|(_, tenant)| tenant.put_out)
    }

    /// What the contracts of a tenant allow. Who is put out has none, whether or not they are ended yet.
    fn granted(&self, tenant: &Tenant) -> Option<Grant> {
        let me = self.me.as_ref().filter(|_| !tenant.put_out)?;
        let deals = self.contracts.in_namespace(&tenant.name).map(|(_, deal)| deal);
        let in_force = deals.filter_map(|deal| deal.grant(me, &tenant.peer));
        in_force.reduce(|mut all, more| {
            all.resources.accumulate(&more.resources);
            all
        })
    }

    /// The rules of the policy that a tenant was made an offer by.
    fn ruled(&self, tenant: &Tenant) -> Arc<HouseRules> {
        let policy = self.bid(tenant).and_then(|bid| bid.policy.as_deref());
        let house = policy.and_then(|name| self.houses.get(&Key::cluster(name)));
        house.map(|house| Arc::clone(&house.0)).unwrap_or_default()
    }

    /// What a tenant is offered.
    fn bid<'a>(&'a self, tenant: &'a Tenant) -> Option<&'a Bid> {
        let mut offers = self.offers.in_namespace(&tenant.name).map(|(_, bid)| bid);
        offers.find(|bid| self.me.as_ref().is_some_and(|me| me.as_str() == &*bid.from))
    }

    /// Whether a peer is offered something, so that it is known by which policy.
    pub(crate) fn is_offered(&self, peer: &ClusterId) -> bool {
        self.tenant_of(peer).is_some_and(|tenant| self.bid(tenant).is_some())
    }

    /// Notes since when those who have something here are without contract.
    pub(crate) fn note_lapses(&mut self, now: Timestamp) {
        let spaces = self.spaces.store().iter().filter_map(|(_, space)| space.peer.clone());
        let without: BTreeSet<ClusterId> = spaces.filter(|peer| !self.grants.contains_key(peer)).collect();
        let lapsed = &mut self.memory.lapsed;
        lapsed.retain(|peer, _| without.contains(peer));
        for peer in without {
            lapsed.entry(peer).or_insert(now);
        }
    }

    /// Looks at all pods of a namespace.
    pub(crate) fn touch_pods(&mut self, namespace: &str) {
        let keys: Vec<Key> = self.shadows.in_namespace(namespace).map(|(key, _)| key.clone()).collect();
        let pods: Vec<Key> = self.pods.in_namespace(namespace).map(|(key, _)| key.clone()).collect();
        self.changed.pods.extend(keys.into_iter().chain(pods));
    }

    /// Counts what a pod takes of its contract, now that something about it changed.
    pub(crate) fn settle(&mut self, key: &Key) {
        let space = key.namespace().and_then(|namespace| self.space(namespace));
        let peer = space.and_then(|space| space.peer.clone());
        let pod = self.pods.get(key).filter(|pod| pod.phase == crate::pods::Phase::Living);
        let charge = peer
            .zip(pod)
            .map(|(peer, pod)| (Account { peer, pool: pod.pool.clone() }, Arc::clone(&pod.requests)));
        let freed = self.ledger.settle(key, charge);
        if let Some(peer) = freed {
            self.try_again(&peer);
        }
    }

    /// Looks again at pods that wait for room, as there is some.
    pub(crate) fn try_again(&mut self, peer: &ClusterId) {
        let waiting = self.memory.waiting(peer).take(TRIED_AGAIN);
        self.changed.pods.extend(waiting.cloned());
    }

    /// Everything must be looked at.
    pub(crate) fn touch_all(&mut self) {
        self.changed.papers = true;
        self.changed.all = true;
    }

    /// Looks again at a map, and at the namespaces that it asks for.
    fn touch_map(&mut self, key: &Key) {
        self.changed.papers = true;
        self.changed.maps.insert(key.clone());
    }
}
