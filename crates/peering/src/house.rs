//! What is about no single peer: the log of contracts, and what policies tell of themselves.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::sharing_policy::{SharingPolicyStatus, VALID};
use liqo_api::{SharingPolicy, conditions};
use liqo_core::Resources;
use liqo_core::ledger::{Ledger, Pot};
use liqo_core::names::ContractId;
use liqo_core::policy::Policy;

use crate::copies;
use crate::events::labels_of;
use crate::index::Deal;
use crate::lending::{ledger, pots, pushes};
use crate::log::{Account, Append};
use crate::offer;
use crate::places::{Peer, Planned, View};
use crate::standing::condition;
use crate::steps::{Step, Where};

#[cfg(test)]
mod tests;

/// Clusters that a policy's status names; the API takes no more.
const MOST_PEERS: usize = 64;

/// What should happen that is about no single peer.
pub(crate) fn plan(view: &View<'_>) -> Planned {
    let mut planned = Planned::default();
    note(view, &mut planned);
    tell_policies(view, &mut planned);
    planned
}

/// Writes into the log what the contracts say and the log does not.
fn note(view: &View<'_>, planned: &mut Planned) {
    let log = &view.index.log;
    let deals = view.index.here.contracts.iter().map(|(_, deal)| deal);
    let mut seen: BTreeSet<ContractId> = BTreeSet::new();
    let mut missing = Vec::new();
    for account in deals.filter_map(|deal| account(view, deal)) {
        // Names are drawn at random; of two contracts of one name, whoever made them, the first in order counts.
        if seen.insert(account.contract.clone()) {
            missing.extend(log.missing_of(&account));
        }
    }
    match log.append(view.me.id(), &missing, view.now) {
        Ok(Some(append)) => planned.step(write(view, &append)),
        Ok(None) => {}
        Err(trouble) => {
            tracing::error!(%trouble, "contracts are neither amended nor removed before this is mended");
        }
    }
}

/// What a contract says that belongs into the log; nothing if not both signed it.
pub(crate) fn account(view: &View<'_>, deal: &Deal) -> Option<Account> {
    let (terms, signed, status) = (deal.agreed_terms()?, deal.signed()?, deal.status.as_ref()?);
    let ours = terms.provider == view.me.party || terms.consumer == view.me.party;
    let is_this = terms.contract.as_str() == deal.name_any()
        && deal.is_between(terms.provider.id.as_str(), terms.consumer.id.as_str());
    // The keys are in the terms, which we signed ourselves: who has them was checked then.
    let by_both = || {
        copies::is_signed(view, &terms.provider.key, terms, &signed.provider_signature)
            && copies::is_signed(view, &terms.consumer.key, terms, &signed.consumer_signature)
    };
    (ours && is_this && by_both()).then(|| Account::of(terms, status))
}

fn write(view: &View<'_>, append: &Append) -> Option<Step> {
    let namespace = view.settings.namespace.as_str();
    let Some(resource_version) = &append.resource_version else {
        return Some(Step::create(
            Where::Here,
            &append.page(namespace, labels_of()),
            "begin a page of the log",
        ));
    };
    let seen = ConfigMap {
        metadata: ObjectMeta {
            name: Some(append.name.clone()),
            namespace: Some(namespace.to_owned()),
            resource_version: Some(resource_version.clone()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    let wanted = ConfigMap { data: Some(append.data.clone()), ..seen.clone() };
    Step::bring(Where::Here, &seen, &wanted, "log")
}

/// Has every policy tell whether it makes sense, whom it is applied to and what is sold by it.
fn tell_policies(view: &View<'_>, planned: &mut Planned) {
    if view.index.policies.is_empty() {
        return;
    }
    let pots = pots(view.index, view.me);
    let ledger = ledger(view.index, view.me);
    let sold = sold_by_pot(&ledger);
    let unseen = unseen(view);
    for (_, policy) in view.index.policies.iter() {
        let name = policy.name_any();
        let applied = pots.iter().filter(|(_, pot)| pot.as_deref() == Some(name.as_str()));
        let mut peers: Vec<String> = applied
            .filter_map(|(peer, _)| Some(view.index.cluster_of(peer)?.identity()?.ok()?.name.to_string()))
            .collect();
        peers.sort();
        peers.truncate(MOST_PEERS);
        let sold = sold.get(&Some(name)).map(offer::texts).unwrap_or_default();
        let (peers, sold) = match &policy.status {
            // What was told may still be so.
            Some(told) if told.peers.iter().any(|peer| unseen.contains(peer)) => {
                (told.peers.clone(), told.sold.clone())
            }
            _ => (peers, sold),
        };
        planned.step(tell_policy(view, policy, peers, sold));
    }
}

/// Peers that are offered something at their place, which is not known yet.
fn unseen(view: &View<'_>) -> BTreeSet<String> {
    let peers = view.index.peers();
    let peers = peers.iter().filter_map(|peer| Peer::read(view.index, peer));
    let unseen = peers.filter(|peer| peer.there.is_none() && pushes(peer));
    unseen.map(|peer| peer.name().to_owned()).collect()
}

fn tell_policy(
    view: &View<'_>,
    policy: &SharingPolicy,
    peers: Vec<String>,
    sold: BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
) -> Option<Step> {
    let read = Policy::read(policy.name_any(), &(&policy.spec).into());
    let problems: Vec<String> = read.problems().iter().map(ToString::to_string).collect();
    let (reason, message) = if problems.is_empty() {
        ("Valid", "the policy makes sense".to_owned())
    } else {
        ("Invalid", format!("whom it is about is refused: {}", problems.join("; ")))
    };
    let generation = policy.metadata.generation;
    let valid = condition(VALID, problems.is_empty(), reason, &message, generation);
    let mut wanted = policy.clone();
    let status = wanted.status.get_or_insert_with(SharingPolicyStatus::default);
    status.observed_generation = generation;
    status.peers = peers;
    status.sold = sold;
    conditions::set(&mut status.conditions, valid, view.now);
    Step::bring_status(Where::Here, policy, &wanted, "tell of policy")
}

/// What is reserved by each policy: the larger of what stands and what is being amended.
fn sold_by_pot(ledger: &Ledger) -> BTreeMap<Pot, Resources> {
    let mut claims: BTreeMap<(&Pot, &ContractId), Resources> = BTreeMap::new();
    for sale in ledger.sales() {
        let claim = claims.entry((&sale.pot, &sale.contract)).or_default();
        *claim = claim.max(&sale.resources);
    }
    let mut sold: BTreeMap<Pot, Resources> = BTreeMap::new();
    for ((pot, _), claim) in claims {
        sold.entry(pot.clone()).or_default().accumulate(&claim);
    }
    sold
}
