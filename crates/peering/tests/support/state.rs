//! What there is of a peering on both sides, without what differs from run to run.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use liqo_api::{Contract, ForeignCluster, ResourceOffer, ResourceRequest};
use liqo_core::Quantity;
use liqo_core::chain::Entry;
use liqo_peering::log::PAGE_PREFIX;
use serde_json::{Value, json};

use crate::world::{House, Process};

/// What there is in a cluster, with the part of its log from this length on.
pub(crate) async fn state(house: &House<'_>, log: usize) -> Value {
    let (clusters, requests, offers, contracts, namespaces, log_entries) =
        tokio::join!(house.all(), house.all(), house.all(), house.all(), house.all(), entries(house));
    let clusters: Vec<Value> = clusters.iter().map(cluster).collect();
    // Kubernetes takes its time to remove what lies in a namespace that goes.
    let namespaces: Vec<Namespace> = namespaces;
    let stays = |namespace: Option<String>| {
        let of =
            |it: &&Namespace| Some(it.name_any()) == namespace && it.metadata.deletion_timestamp.is_none();
        namespaces.iter().any(|it| of(&it))
    };
    let requests: Vec<Value> =
        requests.iter().filter(|it: &&ResourceRequest| stays(it.namespace())).map(request).collect();
    let offers: Vec<Value> =
        offers.iter().filter(|it: &&ResourceOffer| stays(it.namespace())).map(offer).collect();
    let mut contracts: Vec<Value> =
        contracts.iter().filter(|it: &&Contract| stays(it.namespace())).map(contract).collect();
    contracts.sort_by_key(ToString::to_string);
    let tenant = |it: &&Namespace| {
        it.labels().contains_key("discovery.liqo.io/tenant-namespace")
            && it.metadata.deletion_timestamp.is_none()
    };
    let tenants: Vec<String> = namespaces.iter().filter(tenant).map(ResourceExt::name_any).collect();
    json!({
        "foreign clusters": clusters, "requests": requests, "offers": offers, "contracts": contracts,
        "tenants": tenants, "log": told(&log_entries, log),
    })
}

/// What a provider has sold and what is left, in cores, as its process shows it.
pub(crate) fn ledger(process: &Process) -> Value {
    let of = |name: &str| process.metric(&format!("liqo_peering_ledger_{name}{{resource=\"cpu\"}}"));
    json!({ "sold": of("sold").unwrap_or_default(), "free": of("free").unwrap_or_default() })
}

/// What a provider has signed and not ended, in thousandths of a core, as the contracts say, on whichever side they lie.
pub(crate) async fn signed(provider: &House<'_>, consumer: &House<'_>) -> i64 {
    let (at_provider, at_consumer) = tokio::join!(provider.all::<Contract>(), consumer.all::<Contract>());
    let contracts = at_provider.iter().chain(&at_consumer);
    let status = contracts.filter(|it| !is_copy(*it)).filter_map(|it| it.status.as_ref());
    let in_force = status.filter(|status| status.phase.is_in_force());
    let cpu = in_force.filter_map(|status| status.resources.get("cpu"));
    cpu.map(|amount| amount.0.parse::<Quantity>().unwrap().milli_value()).sum()
}

/// The entries of a cluster's log, in order.
pub(crate) async fn entries(house: &House<'_>) -> Vec<Entry> {
    let pages: Vec<ConfigMap> = house.all().await;
    let pages = pages.into_iter().filter(|page| page.name_any().starts_with(PAGE_PREFIX));
    let lines = pages.flat_map(|page| page.data.unwrap_or_default());
    let entries = lines.filter(|(key, _)| key.starts_with("entry-"));
    let mut entries: Vec<Entry> = entries.map(|(_, line)| Entry::parse(&line).unwrap()).collect();
    entries.sort_by_key(|entry| entry.index);
    entries
}

/// What is told of each contract, whichever came first.
fn told(entries: &[Entry], from: usize) -> Vec<Vec<&'static str>> {
    let mut contracts = BTreeMap::<String, Vec<&str>>::new();
    for entry in entries.iter().skip(from) {
        contracts.entry(entry.contract.to_string()).or_default().push(entry.event.as_str());
    }
    let mut all: Vec<Vec<&str>> = contracts.into_values().collect();
    all.sort();
    all
}

fn is_copy(object: &impl ResourceExt) -> bool {
    object.labels().contains_key("liqo.io/replicated")
}

fn conditions(all: &[Condition]) -> Vec<String> {
    let mut all: Vec<String> =
        all.iter().map(|it| format!("{} {} {}", it.type_, it.status, it.reason)).collect();
    all.sort();
    all
}

fn cluster(object: &ForeignCluster) -> Value {
    let status = object.status.clone().unwrap_or_default();
    let conditions = status.peering_conditions.iter();
    let mut conditions: Vec<String> =
        conditions.map(|it| format!("{:?} {:?} {}", it.type_, it.status, it.reason)).collect();
    conditions.sort();
    let mut finalizers = object.finalizers().to_vec();
    finalizers.sort();
    json!({
        "name": object.name_any(), "labels": object.labels(), "finalizers": finalizers,
        "annotations": object.annotations().keys().collect::<Vec<_>>(),
        "deleted": object.metadata.deletion_timestamp.is_some(),
        "conditions": conditions, "tenants": status.tenant_namespace,
    })
}

fn request(object: &ResourceRequest) -> Value {
    let status = object.status.clone().unwrap_or_default();
    json!({
        "name": object.name_any(), "resources": object.spec.resources, "labels": object.labels(),
        "withdrawn": object.spec.withdrawal_timestamp.is_some(),
        "offer": format!("{:?} {}", status.offer_state, status.offer_withdrawal_timestamp.is_some()),
        "conditions": conditions(&status.conditions),
    })
}

fn offer(object: &ResourceOffer) -> Value {
    let status = object.status.clone().unwrap_or_default();
    json!({
        "name": object.name_any(), "labels": object.labels(), "amounts": object.spec.resource_quota.hard,
        "withdrawn": object.spec.withdrawal_timestamp.is_some(), "phase": format!("{:?}", status.phase),
        "conditions": conditions(&status.conditions),
    })
}

fn contract(object: &Contract) -> Value {
    let status = object.status.clone().unwrap_or_default();
    json!({
        "copy": is_copy(object), "labels": object.labels(), "phase": format!("{:?}", status.phase),
        "resources": status.resources, "price": status.price, "sequence": status.sequence,
        "signed": status.agreed.is_some(), "ended": object.spec.ended.as_ref().map(|ended| &ended.reason),
        "conditions": conditions(&status.conditions),
    })
}
