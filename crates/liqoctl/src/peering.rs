//! What the commands about other clusters have in common.
//!
//! * [`own`]: what others must know to call this cluster
//! * [`known`]: finding the ForeignCluster that a person means
//! * [`declare`]: making another cluster known, without confusing it with one that is; [`key`] tells two of one ID apart
//! * [`write`](mod@write): small changes of what is known
//! * [`phases`]: how far a peering is, from what the objects say; [`follow`] waits and tells
//! * [`paper`]: offers and contracts as they are shown
//! * [`view`]: all that is known of one peer, for `liqoctl status peer`

pub(crate) mod declare;
pub(crate) mod follow;
pub(crate) mod key;
pub(crate) mod known;
pub(crate) mod own;
pub(crate) mod paper;
pub(crate) mod phases;
pub(crate) mod verify;
pub(crate) mod view;
pub(crate) mod write;

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use liqo_api::names::ClusterId;
use liqo_api::{Contract, ForeignCluster, ResourceOffer, annotations, labels};

/// What lies in the tenant namespace of one peer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Papers {
    pub(crate) offers: Vec<ResourceOffer>,
    pub(crate) contracts: Vec<Contract>,
}

impl Papers {
    /// Reads them; before there is a tenant namespace, there are none.
    pub(crate) async fn read(client: &Client, cluster: &ForeignCluster) -> Result<Self> {
        let Some(namespace) = tenant_namespace(cluster) else { return Ok(Self::default()) };
        let all = ListParams::default();
        let offers: Api<ResourceOffer> = Api::namespaced(client.clone(), namespace);
        let contracts: Api<Contract> = Api::namespaced(client.clone(), namespace);
        let (offers, contracts) = tokio::try_join!(offers.list(&all), contracts.list(&all))?;
        Ok(Self { offers: offers.items, contracts: contracts.items })
    }

    /// What the peer offers to us.
    pub(crate) fn offered_by(&self, peer: &str) -> Option<&ResourceOffer> {
        self.offers.iter().find(|offer| offer.spec.cluster_id == peer)
    }

    /// What we offer to the peer.
    pub(crate) fn offered_to(&self, peer: &str) -> Option<&ResourceOffer> {
        self.offers.iter().find(|offer| offer.spec.cluster_id != peer)
    }

    /// The contract by which the peer lends to us: one in force, else the newest.
    pub(crate) fn lent_by(&self, peer: &str) -> Option<&Contract> {
        newest(self.contracts.iter().filter(|contract| contract.spec.provider_id == peer))
    }

    /// The contract by which we lend to the peer.
    pub(crate) fn lent_to(&self, peer: &str) -> Option<&Contract> {
        newest(self.contracts.iter().filter(|contract| contract.spec.consumer_id == peer))
    }
}

fn newest<'a>(contracts: impl Iterator<Item = &'a Contract>) -> Option<&'a Contract> {
    contracts.max_by_key(|contract| {
        let in_force = contract.status.as_ref().is_some_and(|status| status.phase.is_in_force());
        (in_force, contract.creation_timestamp().map(|time| time.0), contract.name_any())
    })
}

/// Where the objects of a peering live in this cluster.
pub(crate) fn tenant_namespace(cluster: &ForeignCluster) -> Option<&str> {
    cluster.status.as_ref()?.tenant_namespace.local.as_deref()
}

/// The peer's ID, as far as it is known.
pub(crate) fn id_of(cluster: &ForeignCluster) -> Option<&str> {
    let spec = cluster.spec.cluster_identity.as_ref().and_then(|identity| identity.cluster_id.as_deref());
    spec.or_else(|| cluster.labels().get(labels::CLUSTER_ID).map(String::as_str))
}

/// What people call the peer, as far as it is known.
pub(crate) fn name_of(cluster: &ForeignCluster) -> Option<&str> {
    cluster.spec.cluster_identity.as_ref()?.cluster_name.as_deref()
}

/// When our certificate at the peer ends. Only the annotation is read, never the key.
pub(crate) async fn certificate_expires(
    client: &Client,
    cluster: &ForeignCluster,
) -> Result<Option<jiff::Timestamp>> {
    let Some(namespace) = tenant_namespace(cluster) else { return Ok(None) };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let ours = ListParams::default().labels(&format!("{}={}", labels::LOCAL_IDENTITY, labels::TRUE));
    let found = secrets.list_metadata(&ours).await?;
    let expires = found.items.iter().filter_map(|secret| {
        secret.annotations().get(annotations::CERTIFICATE_EXPIRES)?.parse::<jiff::Timestamp>().ok()
    });
    Ok(expires.max())
}

/// Amounts as a person reads them: `cpu 3500m, memory 6Gi`; pods and the like after those that everybody asks for.
pub(crate) fn amounts(
    list: &std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
) -> String {
    let first = ["cpu", "memory"];
    let named = first.iter().filter_map(|name| Some((*name, list.get(*name)?)));
    let rest =
        list.iter().map(|(name, amount)| (name.as_str(), amount)).filter(|(name, _)| !first.contains(name));
    let all: Vec<String> = named.chain(rest).map(|(name, amount)| format!("{name} {}", amount.0)).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

/// A cluster ID in a sentence.
pub(crate) fn same_cluster(id: &ClusterId) -> String {
    format!("{id} is this cluster itself: it cannot peer with itself")
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
