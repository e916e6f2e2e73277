//! What is known: the objects of this cluster and of the places at peers, read once, and what changed of whom.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use liqo_api::{Borrowing, ClusterConfig, ForeignCluster, ResourceRequest, SearchDomain, SharingPolicy};
use liqo_core::names::ClusterId;
use liqo_core::policy::Policy;
use liqo_kit::index::Grouped;
use liqo_kit::{Index as Indexed, Key, Store};

use crate::log::Log;
use crate::stock::{ClassFacts, Lodging, NodeFacts, PodFacts, ServiceFacts, Stock};

mod memory;
mod papers;
mod peers;
mod upkeep;

#[cfg(test)]
mod tests;

pub(crate) use liqo_providers::{Access, Held};
pub(crate) use memory::{Doubt, Memory, Question};
pub(crate) use papers::{Bid, Deal, Papers, created, is_copy};
pub(crate) use peers::{Tenant, cluster_id};
pub(crate) use upkeep::Reserved;

/// All that is known.
pub(crate) struct Index {
    /// By the ID of the peer.
    pub(crate) clusters: Grouped<ForeignCluster, ClusterId>,
    /// By the ID of the peer.
    pub(crate) tenants: Grouped<Tenant, ClusterId>,
    /// By the ID of the peer.
    pub(crate) identities: Grouped<Held, ClusterId>,
    /// What lies in the tenant namespaces of this cluster.
    pub(crate) here: Papers,
    /// What lies in our tenant namespaces at peers.
    pub(crate) links: BTreeMap<ClusterId, Link>,
    /// Whether the clusters of a search domain are to be joined.
    pub(crate) domains: BTreeMap<String, bool>,
    /// What is wanted of all peers.
    pub(crate) borrowing: Borrowing,
    pub(crate) stock: Stock,
    pub(crate) policies: Store<SharingPolicy>,
    pub(crate) log: Log,
    pub(crate) memory: Memory,
    changed: Changed,
}

/// Our place at a peer, as far as its watches have told.
#[derive(Default)]
pub(crate) struct Link {
    /// Our tenant namespace there.
    pub(crate) namespace: String,
    pub(crate) papers: Papers,
    /// The kinds of which all that lies there is known.
    pub(crate) synced: u8,
    /// Why the peer does not answer, while it does not.
    pub(crate) trouble: Option<String>,
    /// Since when the peer answers that we may not look there, while it does.
    pub(crate) forbidden: Option<Timestamp>,
}

impl Link {
    /// Whether what is known of the place can be acted on.
    pub(crate) fn is_usable(&self) -> bool {
        self.synced == Self::KINDS && self.trouble.is_none()
    }

    /// One bit for each kind that is looked at.
    pub(crate) const KINDS: u8 = 0b111;
}

/// Whose plans must be made anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) peers: BTreeSet<ClusterId>,
    pub(crate) all: bool,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            clusters: Grouped::by(|_, cluster| cluster_id(cluster)),
            tenants: Grouped::by(|_, tenant| Some(tenant.peer.clone())),
            identities: Grouped::by(|_, held| Some(held.peer.clone())),
            here: Papers::default(),
            links: BTreeMap::new(),
            domains: BTreeMap::new(),
            borrowing: Borrowing::default(),
            stock: Stock::default(),
            policies: Store::default(),
            log: Log::default(),
            memory: Memory::default(),
            changed: Changed { all: true, ..Changed::default() },
        }
    }
}

impl Index {
    /// The ForeignCluster of a peer. Of several, the one that was there first, as authentication has it.
    pub(crate) fn cluster_of(&self, peer: &ClusterId) -> Option<&ForeignCluster> {
        let clusters = self.clusters.group(peer).map(|(_, cluster)| cluster);
        clusters.min_by_key(|cluster| {
            let deleting = cluster.metadata.deletion_timestamp.is_some();
            (deleting, cluster.creation_timestamp().map(|time| time.0), cluster.name_any())
        })
    }

    /// The tenant namespace of a peer; one that goes away counts only if there is no other.
    pub(crate) fn tenant_of(&self, peer: &ClusterId) -> Option<&Tenant> {
        self.tenants.group(peer).map(|(_, tenant)| tenant).min_by_key(|tenant| tenant.deleting)
    }

    /// Our identity at a peer.
    pub(crate) fn held_at(&self, peer: &ClusterId) -> Option<&Held> {
        self.identities.group(peer).map(|(_, held)| held).next()
    }

    /// All peers that anything is known of.
    pub(crate) fn peers(&self) -> BTreeSet<ClusterId> {
        self.clusters.groups().chain(self.tenants.groups()).chain(self.links.keys()).cloned().collect()
    }

    /// Whether a search domain's clusters are to be joined.
    pub(crate) fn domain_joins(&self, name: &str) -> bool {
        self.domains.get(name).copied().unwrap_or(false)
    }

    /// Has everybody's plan made anew.
    pub(crate) fn touch_all(&mut self) {
        self.changed.all = true;
    }

    /// Has a peer's plan made anew.
    pub(crate) fn touch(&mut self, peer: &ClusterId) {
        self.changed.peers.insert(peer.clone());
    }

    /// Whose plans must be made anew since this was asked last.
    pub(crate) fn take_changed(&mut self) -> Changed {
        std::mem::take(&mut self.changed)
    }

    /// The peer whose tenant namespace this is.
    fn lodger(&self, key: &Key) -> Option<ClusterId> {
        let namespace = Key::cluster(key.namespace()?);
        self.tenants.store().get(&namespace).map(|tenant| tenant.peer.clone())
    }

    fn touch_lodger(&mut self, key: &Key) {
        // If its namespace is told of later, then everything in it is looked at.
        if let Some(peer) = self.lodger(key) {
            self.touch(&peer);
        }
    }

    /// Takes over what a watch at a peer told. Nothing happens once we do not look there any more.
    pub(crate) fn at_peer(&mut self, peer: &ClusterId, change: impl FnOnce(&mut Papers)) {
        if let Some(link) = self.links.get_mut(peer) {
            change(&mut link.papers);
            self.memory.booked();
            self.touch(peer);
        }
    }
}

impl Indexed<ForeignCluster> for Index {
    fn apply(&mut self, key: &Key, object: ForeignCluster) {
        let earlier = self.clusters.store().get(key).and_then(cluster_id);
        let now = cluster_id(&object);
        self.clusters.apply(key, object);
        self.changed.peers.extend(earlier.into_iter().chain(now));
    }

    fn delete(&mut self, key: &Key) {
        let earlier = self.clusters.store().get(key).and_then(cluster_id);
        self.clusters.delete(key);
        self.changed.peers.extend(earlier);
    }
}

impl Indexed<Tenant> for Index {
    fn apply(&mut self, key: &Key, object: Tenant) {
        self.touch(&object.peer);
        self.tenants.apply(key, object);
        self.memory.booked();
    }

    fn delete(&mut self, key: &Key) {
        let peer = self.tenants.store().get(key).map(|tenant| tenant.peer.clone());
        self.tenants.delete(key);
        self.changed.peers.extend(peer);
        self.memory.booked();
    }
}

impl Indexed<Held> for Index {
    fn apply(&mut self, key: &Key, object: Held) {
        self.touch(&object.peer);
        self.identities.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        let peer = self.identities.store().get(key).map(|held| held.peer.clone());
        self.identities.delete(key);
        self.changed.peers.extend(peer);
    }
}

/// Kinds that lie in tenant namespaces.
macro_rules! paper {
    ($kind:ty) => {
        impl Indexed<$kind> for Index {
            fn apply(&mut self, key: &Key, object: $kind) {
                self.here.apply(key, object);
                self.memory.booked();
                self.touch_lodger(key);
            }

            fn delete(&mut self, key: &Key) {
                Indexed::<$kind>::delete(&mut self.here, key);
                self.memory.booked();
                self.touch_lodger(key);
            }
        }
    };
}

paper!(ResourceRequest);
paper!(Bid);
paper!(Deal);

impl Indexed<SearchDomain> for Index {
    fn apply(&mut self, key: &Key, object: SearchDomain) {
        let earlier = self.domains.insert(key.name().to_owned(), object.spec.autojoin);
        self.changed.all |= earlier != Some(object.spec.autojoin);
    }

    fn delete(&mut self, key: &Key) {
        self.changed.all |= self.domains.remove(key.name()).is_some();
    }
}

impl Indexed<ClusterConfig> for Index {
    fn apply(&mut self, _: &Key, object: ClusterConfig) {
        // It tells about itself every now and then, which is nobody's business here.
        self.changed.all |= self.borrowing != object.spec.borrowing;
        self.borrowing = object.spec.borrowing;
    }

    fn delete(&mut self, _: &Key) {
        self.changed.all |= !self.borrowing.is_empty();
        self.borrowing = Borrowing::default();
    }
}

impl Indexed<SharingPolicy> for Index {
    fn apply(&mut self, key: &Key, object: SharingPolicy) {
        self.policies.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.policies.delete(key);
    }
}

impl Indexed<ConfigMap> for Index {
    fn apply(&mut self, key: &Key, object: ConfigMap) {
        self.log.apply(key, object);
        self.changed.all = true;
    }

    fn delete(&mut self, key: &Key) {
        self.log.delete(key);
        self.changed.all = true;
    }
}

/// Kinds of the stock; that offers must be reckoned anew is told by its revision.
macro_rules! stocked {
    ($($kind:ty),*) => { $(
        impl Indexed<$kind> for Index {
            fn apply(&mut self, key: &Key, object: $kind) {
                self.stock.apply(key, object);
            }

            fn delete(&mut self, key: &Key) {
                Indexed::<$kind>::delete(&mut self.stock, key);
            }
        }
    )* };
}

stocked!(NodeFacts, PodFacts, Lodging, ClassFacts, ServiceFacts, Policy);
