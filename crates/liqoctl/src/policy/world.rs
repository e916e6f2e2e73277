//! What the manager knows when it makes an offer, read once.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::cluster_config::CLUSTER_CONFIG;
use liqo_api::{
    ClusterConfig, Contract, ForeignCluster, ResourceOffer, ResourceRequest, SharingPolicy, annotations,
    labels,
};
use liqo_core::Resources;
use liqo_core::contract::{PublicKey, Terms};
use liqo_core::ledger::{Ledger, Pot, Sale};
use liqo_core::policy::{Peer, Percent, Policy, Spec};
use liqo_install::names::FIELD_MANAGER;
use liqo_peering::stock::{Stock, gather};
use liqo_peering::{SOLD_BY, paper};

use super::percentage;
use crate::access::Connection;
use crate::contract::documents;
use crate::peering::{id_of, known, own, tenant_namespace};

/// Everything that an offer depends on.
pub(super) struct World {
    pub(super) stock: Stock,
    pub(super) percentage: Percent,
    pub(super) clusters: Vec<ForeignCluster>,
    pub(super) requests: Vec<ResourceRequest>,
    pub(super) ledger: Ledger,
    pub(super) now: Timestamp,
}

impl World {
    pub(super) async fn gather(connection: &Connection) -> Result<Self> {
        let clusters = known::list(connection).await?;
        let me = own::require_identity(connection).await?;
        let client = &connection.client;
        let everything = ListParams::default();
        let (requests, offers, contracts) = (
            Api::<ResourceRequest>::all(client.clone()),
            Api::<ResourceOffer>::all(client.clone()),
            Api::<Contract>::all(client.clone()),
        );
        let failed = |error: kube::Error| connection.target.explain(&error);
        let (requests, offers, contracts) = tokio::try_join!(
            requests.list(&everything),
            offers.list(&everything),
            contracts.list(&everything)
        )
        .map_err(failed)
        .context("cannot read requests, offers and contracts")?;
        let configs: Api<ClusterConfig> = Api::all(client.clone());
        let config = configs.get_opt(CLUSTER_CONFIG).await.map_err(failed)?;
        let key = config.and_then(|config| config.status?.public_key);
        let key = key.and_then(|text| paper::key_from_text(&text).ok());
        Ok(Self {
            stock: gather(client).await.context("cannot look at what there is to share")?,
            percentage: percentage::read(connection).await?,
            ledger: ledger(me.id.as_str(), key.as_ref(), &clusters, &offers.items, &contracts.items),
            clusters,
            requests: requests.items,
            now: Timestamp::now(),
        })
    }

    /// A peer as policies see it; `None` as long as it is not known who it is.
    pub(super) fn peer(&self, cluster: &ForeignCluster) -> Option<Peer> {
        let id = id_of(cluster)?;
        let namespace = tenant_namespace(cluster);
        let mut requests = self.requests.iter().filter(|request| {
            request.namespace().as_deref() == namespace && request.spec.cluster_identity.cluster_id == id
        });
        let texts = requests.next().map(|request| request.spec.resources.clone()).unwrap_or_default();
        let wants = Resources::parse(texts.iter().map(|(name, amount)| (name, amount.0.trim())));
        let approved =
            cluster.annotations().get(annotations::APPROVED).map(String::as_str) == Some(labels::TRUE);
        Some(Peer {
            id: id.parse().ok()?,
            labels: cluster.labels().clone().into_iter().collect(),
            approved,
            // What makes no sense is not wanted, as at the manager.
            wants: wants.resources.refuse_negative().resources,
        })
    }

    /// The policies as they would be with these, in order of their names.
    pub(super) fn policies_with(&self, proposed: &[SharingPolicy]) -> Vec<Policy> {
        let new: Vec<Policy> = proposed
            .iter()
            .map(|policy| Policy::read(policy.name_any(), &Spec::from(&policy.spec)))
            .collect();
        let kept = self.stock.policies().iter().filter(|old| new.iter().all(|new| new.name() != old.name()));
        let mut all: Vec<Policy> = kept.cloned().chain(new.clone()).collect();
        all.sort_by(|one, other| one.name().cmp(other.name()));
        all
    }
}

/// What is sold: what both signed and is not over, by the policy of the offer to that cluster.
pub(super) fn ledger(
    me: &str,
    key: Option<&PublicKey>,
    clusters: &[ForeignCluster],
    offers: &[ResourceOffer],
    contracts: &[Contract],
) -> Ledger {
    let offer_to = |consumer: &str| {
        let cluster = clusters.iter().find(|cluster| id_of(cluster) == Some(consumer))?;
        let here = tenant_namespace(cluster)?;
        let ours = |offer: &&ResourceOffer| {
            offer.spec.cluster_id == me && offer.namespace().as_deref() == Some(here)
        };
        offers.iter().find(ours)
    };
    let pot = |contract: &Contract| -> Pot {
        match offer_to(&contract.spec.consumer_id) {
            Some(offer) => offer.spec.policy.clone(),
            // The offer lies at the consumer; our copy of the contract notes what it is sold by.
            None => contract.annotations().get(SOLD_BY).filter(|_| is_copy(contract)).cloned(),
        }
    };
    let sale = |contract: &Contract| {
        let status = contract.status.as_ref().filter(|status| !status.phase.is_over())?;
        let agreed = status.agreed.as_ref().filter(|_| contract.spec.provider_id == me)?;
        let terms = Terms::parse(agreed.terms.as_bytes()).ok()?;
        // What this cluster did not sign it has not sold.
        if key.is_some_and(|key| !paper::is_signed(key, &terms, &agreed.provider_signature)) {
            return None;
        }
        let since = contract.creation_timestamp().map_or(Timestamp::MIN, |time| time.0);
        Some((Sale::of(&terms, pot(contract), since), true))
    };
    contracts.iter().filter_map(sale).collect()
}

fn is_copy(contract: &Contract) -> bool {
    contract.labels().get(labels::REPLICATED).map(String::as_str) == Some(labels::TRUE)
}

/// The policies of a file, as the API server would keep them; it refuses what it would refuse.
pub(super) async fn proposed(connection: &Connection, file: &Path) -> Result<Vec<SharingPolicy>> {
    let api: Api<SharingPolicy> = Api::all(connection.client.clone());
    let mut policies = Vec::new();
    for object in documents(file)? {
        if object["kind"] != "SharingPolicy" {
            let kind = object["kind"].as_str().unwrap_or("something without a kind");
            bail!("{} has {kind}; expected are SharingPolicies", file.display());
        }
        let Some(name) = object["metadata"]["name"].as_str().map(str::to_owned) else {
            bail!("{} has a SharingPolicy without a name", file.display());
        };
        let how = PatchParams::apply(FIELD_MANAGER).force().dry_run();
        let kept = api.patch(&name, &how, &Patch::Apply(&object)).await;
        policies.push(match kept {
            Ok(policy) => policy,
            // Who may only look is answered without the API server's rules.
            Err(kube::Error::Api(status)) if status.code == 403 => {
                eprintln!(
                    "note: it could not be asked whether the API server would take {name}: {}",
                    status.message
                );
                serde_json::from_value(object).with_context(|| format!("{name} is no SharingPolicy"))?
            }
            Err(kube::Error::Api(status)) if matches!(status.code, 400 | 422) => {
                bail!("the API server would not take {name}: {}", status.message)
            }
            Err(error) => {
                return Err(connection.target.explain(&error)).with_context(|| format!("cannot try {name}"));
            }
        });
    }
    if policies.is_empty() {
        bail!("{} has no SharingPolicy", file.display());
    }
    Ok(policies)
}
