//! What contracts, offers and identities say together.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use liqo_api::{Contract, ResourceOffer};
use liqo_core::contract::Terms;
use liqo_core::names::{ClusterId, ClusterName};
use liqo_kit::Key;
use liqo_kit::index::Grouped;

use crate::health::{Health, Record};
use crate::{Access, ByCluster, Held, Lent, Link, Provider};

#[cfg(test)]
mod tests;

/// A contract in force.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deal {
    consumer: String,
    terms: Terms,
    ending: bool,
}

impl Deal {
    /// Reads a contract; `None` if it is not in force.
    pub(crate) fn read(contract: &Contract) -> Option<Self> {
        let status = contract.status.as_ref()?;
        if !status.phase.is_in_force() {
            return None;
        }
        let terms = Terms::parse(status.agreed.as_ref()?.terms.as_bytes()).ok()?;
        // What lies in an object and what was signed in it must be about the same two clusters.
        let is_same = terms.provider.id.as_str() == contract.spec.provider_id
            && terms.consumer.id.as_str() == contract.spec.consumer_id;
        is_same.then(|| Self {
            consumer: contract.spec.consumer_id.clone(),
            terms,
            ending: contract.spec.ended.is_some(),
        })
    }
}

/// What an offer adds to a contract.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Extras {
    provider: String,
    labels: BTreeMap<String, String>,
    storage_classes: Vec<String>,
}

impl Extras {
    pub(crate) fn read(offer: ResourceOffer) -> Self {
        let mut classes = offer.spec.storage_classes;
        classes.sort_by_key(|class| !class.default);
        Self {
            provider: offer.spec.cluster_id,
            labels: offer.spec.labels,
            storage_classes: classes.into_iter().map(|class| class.storage_class_name).collect(),
        }
    }
}

/// Our identity at a peer, with the namespace that the Secret lies in.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) held: Held,
    namespace: String,
}

impl Kept {
    pub(crate) fn read(secret: &Secret) -> Option<Self> {
        Some(Self { held: Held::read(secret)?, namespace: secret.namespace()? })
    }
}

/// All of it.
pub(crate) struct Index {
    deals: Grouped<Deal, ClusterId>,
    offers: Grouped<Extras, String>,
    kept: Grouped<Kept, ClusterId>,
    /// Whether identities came, changed or went since clients were last made for them.
    pub(crate) reconnect: bool,
    pub(crate) links: BTreeMap<ClusterId, Result<Link, Arc<str>>>,
    pub(crate) records: BTreeMap<ClusterId, Record>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            deals: Grouped::by(|_, deal| Some(deal.terms.provider.id.clone())),
            offers: Grouped::by(|_, offer| Some(offer.provider.clone())),
            kept: Grouped::by(|_, kept| Some(kept.held.peer.clone())),
            reconnect: false,
            links: BTreeMap::new(),
            records: BTreeMap::new(),
        }
    }
}

impl Index {
    /// Everybody at whom we have an identity, and how to get in there.
    pub(crate) fn held(&self) -> Vec<(ClusterId, Result<Access, String>)> {
        // Where there are two, both would do; the same one each time.
        let first = |peer: &ClusterId| self.kept.group(peer).next().map(|(_, kept)| kept.held.access.clone());
        self.kept.groups().filter_map(|peer| Some((peer.clone(), first(peer)?))).collect()
    }

    /// The providers, as the cluster `me` sees them.
    pub(crate) fn providers(&self, me: &ClusterId) -> ByCluster {
        let mine = |provider: &ClusterId| self.deal(me, provider);
        let lenders = self.deals.groups().filter(|provider| mine(provider).is_some());
        let all = lenders.chain(self.kept.groups());
        all.map(|id| (id.clone(), self.provider(id, mine(id)))).collect()
    }

    /// The contract in force by which `provider` lends to `me`: where there are several, the one that ends last.
    fn deal(&self, me: &ClusterId, provider: &ClusterId) -> Option<(&Key, &Deal)> {
        let ours = self.deals.group(provider).filter(|(_, deal)| deal.consumer == me.as_str());
        ours.max_by_key(|(key, deal)| (!deal.ending, deal.terms.not_after, *key))
    }

    fn provider(&self, id: &ClusterId, deal: Option<(&Key, &Deal)>) -> Provider {
        let kept = self.kept.group(id).next().map(|(_, kept)| kept.namespace.as_str());
        let namespace = deal.and_then(|(key, _)| key.namespace()).or(kept).unwrap_or_default();
        let name: Option<ClusterName> = deal.map(|(_, deal)| deal.terms.provider.name.clone());
        let record = self.records.get(id);
        Provider {
            id: id.clone(),
            name,
            local_namespace: namespace.into(),
            link: self.links.get(id).cloned().unwrap_or_else(|| Err("we have no identity there yet".into())),
            lent: deal.map(|(key, deal)| Arc::new(self.lent(key, deal))),
            health: record.map_or(Health::Unknown, |record| record.health().clone()),
        }
    }

    fn lent(&self, key: &Key, deal: &Deal) -> Lent {
        let provider = deal.terms.provider.id.as_str().to_owned();
        let offer = self.offers.group(&provider).find(|(offer, _)| offer.namespace() == key.namespace());
        let offer = offer.map(|(_, offer)| offer);
        Lent {
            contract: key.name().to_owned(),
            resources: deal.terms.resources.clone(),
            pools: deal.terms.pools.clone(),
            labels: offer.map(|offer| offer.labels.clone()).unwrap_or_default(),
            storage_classes: offer.map(|offer| offer.storage_classes.clone()).unwrap_or_default(),
            until: deal.terms.not_after,
            ending: deal.ending,
        }
    }

    /// Takes in how a provider answered; whether that changed what is thought of it.
    pub(crate) fn observe(
        &mut self,
        id: &ClusterId,
        answer: Result<(), String>,
        now: Timestamp,
        patience: crate::health::Patience,
    ) -> bool {
        self.records.entry(id.clone()).or_insert_with(|| Record::new(now)).observe(answer, now, patience)
    }
}

macro_rules! filled_by {
    ($($kind:ty => $store:ident),*) => {$(
        impl liqo_kit::Index<$kind> for Index {
            fn apply(&mut self, key: &Key, object: $kind) {
                self.$store.apply(key, object);
            }

            fn delete(&mut self, key: &Key) {
                self.$store.delete(key);
            }
        }
    )*};
}

filled_by!(Deal => deals, Extras => offers);

impl liqo_kit::Index<Kept> for Index {
    fn apply(&mut self, key: &Key, object: Kept) {
        self.reconnect = true;
        self.kept.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.reconnect = true;
        self.kept.delete(key);
    }
}
