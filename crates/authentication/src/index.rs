//! What is known: the objects that both sides of the room look at, trimmed to what decides.

use std::collections::BTreeMap;

use kube::ResourceExt;
use liqo_api::names::ClusterId;
use liqo_api::{ForeignCluster, labels};
use liqo_kit::index::Grouped;
use liqo_kit::write::Target;
use liqo_kit::{Index as Indexed, Key, Store};

use crate::calling::Attempt;
use crate::certificate::Serving;
use crate::tokens::{AdmittedBy, Book};

mod house;
mod peers;
#[cfg(test)]
mod tests;

pub(crate) use house::{Denied, HouseConfigMap, HouseSecret, RemoteToken};
pub(crate) use peers::{
    CLAIM_REFUSED, Claim, Held, KnownKey, NO_KEY, PeerBinding, PeerRole, Signing, TOKEN_DIGEST, Tenant,
};

/// All that is known.
pub(crate) struct Index {
    /// By the ID of the peer.
    pub(crate) clusters: Grouped<ForeignCluster, String>,
    /// By the ID of the peer.
    pub(crate) tenants: Grouped<Tenant, String>,
    /// By the ID of the peer.
    pub(crate) identities: Grouped<Held, String>,
    pub(crate) roles: Store<PeerRole>,
    pub(crate) bindings: Store<PeerBinding>,
    pub(crate) requests: Store<Signing>,
    pub(crate) book: Book,
    /// Of each SearchDomain, whether its clusters are to be joined.
    pub(crate) domains: BTreeMap<String, bool>,
    /// Tokens that others gave us, by their ID.
    pub(crate) remote_tokens: BTreeMap<String, RemoteToken>,
    pub(crate) serving: Option<Serving>,
    /// Whether there is a Secret of that name, usable or not.
    pub(crate) own_token_exists: bool,
    pub(crate) serving_exists: bool,
    /// Peers that were put out, by their ID.
    pub(crate) denied: BTreeMap<String, Denied>,
    pub(crate) api_server: Option<String>,
    pub(crate) root_ca: Option<Vec<u8>>,
    /// What this process remembers of its calls, by the name of the ForeignCluster.
    pub(crate) attempts: BTreeMap<String, Attempt>,
    /// Objects that could not be written, and why; until they are.
    pub(crate) failures: BTreeMap<Target, String>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            clusters: Grouped::by(|_, cluster| cluster_id(cluster).map(str::to_owned)),
            tenants: Grouped::by(|_, tenant| Some(tenant.peer.to_string())),
            identities: Grouped::by(|_, held| Some(held.peer.to_string())),
            roles: Store::default(),
            bindings: Store::default(),
            requests: Store::default(),
            book: Book::default(),
            domains: BTreeMap::new(),
            remote_tokens: BTreeMap::new(),
            serving: None,
            own_token_exists: false,
            serving_exists: false,
            denied: BTreeMap::new(),
            api_server: None,
            root_ca: None,
            attempts: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

/// The peer's ID, as far as it is known.
pub(crate) fn cluster_id(cluster: &ForeignCluster) -> Option<&str> {
    let spec = cluster.spec.cluster_identity.as_ref().and_then(|identity| identity.cluster_id.as_deref());
    spec.or_else(|| cluster.labels().get(labels::CLUSTER_ID).map(String::as_str))
}

impl Index {
    /// The ForeignCluster of a peer. Of several, the one that was there first: the others are told that they are not it.
    pub(crate) fn cluster_of(&self, peer: &ClusterId) -> Option<&ForeignCluster> {
        let group = peer.to_string();
        let clusters = self.clusters.group(&group).map(|(_, cluster)| cluster);
        clusters.min_by_key(|cluster| {
            let deleting = cluster.metadata.deletion_timestamp.is_some();
            (deleting, cluster.creation_timestamp().map(|time| time.0), cluster.name_any())
        })
    }

    /// The tenant namespace of a peer.
    pub(crate) fn tenant_of(&self, peer: &ClusterId) -> Option<&Tenant> {
        // One that goes away counts only if there is no other.
        self.tenants.group(&peer.to_string()).map(|(_, tenant)| tenant).min_by_key(|tenant| tenant.deleting)
    }

    /// Our identity at a peer.
    pub(crate) fn identity_at(&self, peer: &ClusterId) -> Option<&Held> {
        self.identities.group(&peer.to_string()).map(|(_, held)| held).next()
    }

    /// Whether the peer of this namespace is to be let do what peers may.
    pub(crate) fn standing(&self, tenant: &Tenant) -> Standing {
        let Some(by) = &tenant.admitted_by else { return Standing::NotAdmitted };
        match by {
            AdmittedBy::Token(id) if self.book.is_revoked(id) => Standing::Revoked,
            AdmittedBy::Own if self.is_denied(&tenant.peer) => Standing::Revoked,
            AdmittedBy::Open if self.denied.contains_key(tenant.peer.as_str()) => Standing::Revoked,
            _ => Standing::Admitted,
        }
    }

    /// Whether the peer is not to come by the cluster's own token, as it is now.
    pub(crate) fn is_denied(&self, peer: &ClusterId) -> bool {
        let denied = self.denied.get(peer.as_str());
        denied.is_some_and(|denied| {
            self.book.own.as_ref().is_some_and(|own| own.digest() == denied.token_digest)
        })
    }
}

impl Index {
    /// Whether the peer was put out, by whatever it had come in: it does not come back by itself.
    pub(crate) fn was_put_out(&self, peer: &ClusterId) -> bool {
        let revoked = self.tenant_of(peer).is_some_and(|tenant| self.standing(tenant) == Standing::Revoked);
        revoked || self.denied.contains_key(peer.as_str()) || self.book.has_put_out(peer)
    }
}

/// Whether a peer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It never came.
    NotAdmitted,
    /// It is in.
    Admitted,
    /// It was in, and was put out.
    Revoked,
}

/// Whether the clusters of a SearchDomain are to be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Joins(pub(crate) bool);

impl Indexed<Joins> for Index {
    fn apply(&mut self, key: &Key, Joins(joins): Joins) {
        self.domains.insert(key.name().to_owned(), joins);
    }

    fn delete(&mut self, key: &Key) {
        self.domains.remove(key.name());
    }
}

/// Kinds that are kept as they come.
macro_rules! kept_in {
    ($kind:ty, $field:ident) => {
        impl Indexed<$kind> for Index {
            fn apply(&mut self, key: &Key, object: $kind) {
                self.$field.apply(key, object);
            }

            fn delete(&mut self, key: &Key) {
                self.$field.delete(key);
            }
        }
    };
}

kept_in!(ForeignCluster, clusters);
kept_in!(Tenant, tenants);
kept_in!(Held, identities);
kept_in!(PeerRole, roles);
kept_in!(PeerBinding, bindings);
kept_in!(Signing, requests);
