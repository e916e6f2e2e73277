//! Looking at contracts, logs, events and nodes.

#![allow(dead_code, reason = "each test uses a part of it")]

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::contract::ContractPhase;
use liqo_api::{Contract, ForeignCluster, ResourceOffer};
use liqo_core::contract::PublicKey;
use liqo_kit::{Index, Key};
use liqo_peering::log::{Log, PAGE_PREFIX};
use liqo_peering::paper::{Keys, verify};
use serde_json::json;

use crate::world::{House, eventually};

/// Waits for the one contract to be in force, by the latest offer, as `expected`, and to be the same on both sides.
pub(crate) async fn in_force(
    consumer: &House<'_>,
    provider: &House<'_>,
    what: &str,
    expected: impl Fn(&Contract) -> bool,
) -> Contract {
    eventually(&format!("in force on both sides: {what}"), || async {
        let (here, there) =
            (consumer.contracts(provider, consumer).await, provider.contracts(provider, consumer).await);
        let offers = provider.all::<ResourceOffer>().await.into_iter().chain(consumer.all().await);
        let offers = offers.filter(|offer| {
            offer.spec.cluster_id == provider.id() && !offer.labels().contains_key("liqo.io/replicated")
        });
        let digests: Vec<String> =
            offers.map(|offer| liqo_peering::offer::digest(&offer.spec).unwrap().to_string()).collect();
        let of = |contracts: &[Contract]| {
            let active = |it: &&Contract| {
                let status = it.status.as_ref();
                status.is_some_and(|it| it.phase == ContractPhase::Active)
                    && digests.iter().any(|digest| it.spec.terms.contains(digest))
            };
            contracts.iter().find(active).cloned()
        };
        let told: Vec<_> =
            consumer.all::<ForeignCluster>().await.into_iter().map(|it| json!(it.status)).collect();
        let state = || {
            let brief = |contracts: &[Contract]| -> Vec<_> {
                let brief =
                    |it: &Contract| json!({ "name": it.name_any(), "spec": it.spec, "status": it.status });
                contracts.iter().map(brief).collect()
            };
            json!({ "consumer": brief(&here), "provider": brief(&there), "offers": digests, "told": told })
                .to_string()
        };
        let (Some(at_consumer), Some(at_provider)) = (of(&here), of(&there)) else { return Err(state()) };
        let same = at_consumer.spec == at_provider.spec && at_consumer.status == at_provider.status;
        if same && expected(&at_provider) { Ok(at_provider) } else { Err(state()) }
    })
    .await
}

/// Whether a contract is about so much CPU.
pub(crate) fn has_cpu(cpu: &str) -> impl Fn(&Contract) -> bool {
    move |contract| amount(contract, "cpu") == cpu
}

/// When the contract ends.
pub(crate) async fn valid_until(consumer: &House<'_>, provider: &House<'_>) -> Timestamp {
    end(&latest(consumer, provider).await)
}

/// When a contract ends.
pub(crate) fn end(contract: &Contract) -> Timestamp {
    contract.status.as_ref().and_then(|status| status.valid_until.as_ref()).unwrap().0
}

async fn latest(consumer: &House<'_>, provider: &House<'_>) -> Contract {
    let contracts = provider.contracts(provider, consumer).await.into_iter();
    contracts.filter(|it| it.status.is_some()).max_by_key(ResourceExt::creation_timestamp).unwrap()
}

/// How much of a resource a contract is about, as its status says.
pub(crate) fn amount(contract: &Contract, resource: &str) -> String {
    let status = contract.status.as_ref();
    status.and_then(|it| it.resources.get(resource)).map(|it| it.0.clone()).unwrap_or_default()
}

/// A contract is what it says, for whoever has nothing but the keys.
pub(crate) fn check_paper(contract: &Contract, provider: &House<'_>, consumer: &House<'_>) {
    let key = |house: &House<'_>| PublicKey::new(house.identity.public_key().to_bytes());
    let found = verify(contract, &Keys { provider: key(provider), consumer: key(consumer) });
    assert!(found.is_valid(), "{:#?}", found.checks);
}

/// The log ties in, and has what the contracts say.
pub(crate) async fn check_log(house: &House<'_>) {
    let id = house.id().parse().unwrap();
    eventually(&format!("the log of {}", house.name), || async {
        let mut log = Log::default();
        let pages: Vec<ConfigMap> = house.all().await;
        for page in pages.into_iter().filter(|page| page.name_any().starts_with(PAGE_PREFIX)) {
            log.apply(&Key::namespaced("liqo", &page.name_any()), page);
        }
        let head = log.check(&id).map_err(|trouble| trouble.to_string())?;
        for contract in house.all::<Contract>().await {
            let Some(digest) = contract.status.and_then(|status| status.digest) else { continue };
            if !log.has(&digest.parse().unwrap()) {
                return Err(format!("{digest} is missing of {} entries", head.length));
            }
        }
        Ok(())
    })
    .await;
}

/// How many events about the ForeignCluster of this name there are with each of these reasons.
pub(crate) async fn reasons(house: &House<'_>, name: &str, reasons: &[&str]) -> Vec<usize> {
    let events: Vec<Event> = house.all().await;
    let about = |event: &&Event| event.regarding.as_ref().is_some_and(|it| it.name.as_deref() == Some(name));
    let about: Vec<&Event> = events.iter().filter(about).collect();
    reasons
        .iter()
        .map(|reason| about.iter().filter(|it| it.reason.as_deref() == Some(reason)).count())
        .collect()
}

/// The name of a node.
pub(crate) async fn node_name(house: &House<'_>, number: usize) -> String {
    let mut names: Vec<String> = house.all::<Node>().await.iter().map(ResourceExt::name_any).collect();
    names.sort();
    names.swap_remove(number)
}

/// Has a node take no new pods, or take them again.
pub(crate) async fn cordon(house: &House<'_>, number: usize, cordoned: bool) {
    let nodes: Api<Node> = Api::all(house.client.clone());
    let patch = json!({ "spec": { "unschedulable": cordoned } });
    let name = node_name(house, number).await;
    nodes.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}
