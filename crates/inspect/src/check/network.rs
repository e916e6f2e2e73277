//! The networks that were configured, policies between pods, and the manager's share of the API server.

use std::collections::BTreeMap;

use ipnet::IpNet;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use liqo_install::finding::Finding;

use super::{World, docs, not_looked_at};
use crate::installation::NETWORK_CONFIG_MAP;

const KNOWN: &str = "the cluster's networks are known and distinct";
const POLICIES: &str = "no policy keeps the manager from its peers";
const FLOW: &str = "the manager has its share of the API server";

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let facts = world.facts;
    let mut findings = vec![match &facts.network {
        Ok(map) => networks(map.data.as_ref().unwrap_or(&BTreeMap::new())),
        Err(why) if why.is_absent() => Finding::failed(KNOWN, why.to_string())
            .hint("Run liqoctl install again: it finds the networks and writes them down")
            .docs(docs::NETWORKS),
        Err(why) => not_looked_at(KNOWN, why),
    }];
    findings.push(match &facts.policies {
        Ok(policies) => restrictions(world, policies),
        Err(why) => not_looked_at(POLICIES, why),
    });
    findings.extend(flow(world));
    findings
}

fn networks(data: &BTreeMap<String, String>) -> Finding {
    let failed = |why: String| {
        Finding::failed(KNOWN, why)
            .hint(format!(
                "Run liqoctl install again with --pod-cidr and --service-cidr as they are; ConfigMap {NETWORK_CONFIG_MAP} \
                 holds what was found"
            ))
            .docs(docs::NETWORKS)
    };
    let mut known: Vec<(&str, IpNet)> = Vec::new();
    let mut missing = Vec::new();
    for (key, what) in
        [("podCIDR", "pods"), ("serviceCIDR", "Services"), ("reservedSubnets", "reserved networks")]
    {
        let value = data.get(key).map(|value| value.trim()).unwrap_or_default();
        if value.is_empty() && key != "reservedSubnets" {
            missing.push(what);
        }
        for text in value.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            match text.parse() {
                Ok(network) => known.push((what, network)),
                Err(_) => return failed(format!("{key} has {text:?}, which is no network like 10.0.0.0/16")),
            }
        }
    }
    let overlap = known.iter().enumerate().find_map(|(index, (what, network))| {
        let later = known[index + 1..].iter();
        let other = later.clone().find(|(other, it)| *other != *what && overlaps(network, it))?;
        Some(format!("{network} ({what}) and {} ({}) overlap", other.1, other.0))
    });
    if let Some(overlap) = overlap {
        return failed(overlap);
    }
    let shown =
        known.iter().map(|(what, network)| format!("{what} {network}")).collect::<Vec<_>>().join(", ");
    match missing.as_slice() {
        [] => Finding::ok(KNOWN, shown),
        // Not needed before networks are connected, so no failure.
        missing => Finding::warning(KNOWN, format!("not known: the network of the {}", missing.join(" and of the ")))
            .hint("Run liqoctl install again with --pod-cidr and --service-cidr, before connecting networks with a peer")
            .docs(docs::NETWORKS),
    }
}

fn overlaps(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

/// Ours restrict what comes in. A policy that restricts what goes out cuts the manager off from peers, whose addresses
/// nobody knows beforehand.
fn restrictions(world: &World<'_>, policies: &[NetworkPolicy]) -> Finding {
    let labels: Vec<&BTreeMap<String, String>> =
        world.facts.pods.iter().flatten().filter_map(|pod| pod.metadata.labels.as_ref()).collect();
    let restricting: Vec<&str> = policies
        .iter()
        .filter(|policy| {
            let Some(spec) = &policy.spec else { return false };
            let egress = match &spec.policy_types {
                Some(types) => types.iter().any(|it| it == "Egress"),
                None => spec.egress.is_some(),
            };
            let everything =
                spec.egress.iter().flatten().any(|rule| rule.to.is_none() && rule.ports.is_none());
            let selector = spec.pod_selector.clone().unwrap_or_default();
            egress && !everything && labels.iter().any(|labels| selects(&selector, labels))
        })
        .filter_map(|policy| policy.metadata.name.as_deref())
        .collect();
    match restricting.as_slice() {
        [] => Finding::ok(POLICIES, ""),
        names => Finding::warning(
            POLICIES,
            format!("{} restricts what liqo's pods may reach", names.join(", ")),
        )
        .hint("Make sure that the API servers of this cluster and of all peers are among what it allows")
        .docs(docs::POLICIES),
    }
}

/// Whether a selector finds an object with these labels; as Kubernetes has it, the empty one finds all.
fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector.match_expressions.iter().flatten().all(|expression| {
        let value = labels.get(&expression.key);
        let listed = value.is_some_and(|value| expression.values.iter().flatten().any(|it| it == value));
        match expression.operator.as_str() {
            "In" => listed,
            "NotIn" => !listed,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    });
    equal && expressions
}

/// A FlowSchema whose level is gone puts the manager behind everything else.
fn flow(world: &World<'_>) -> Option<Finding> {
    let schemas = match &world.facts.flow_schemas {
        Ok(schemas) => schemas,
        Err(why) => return Some(not_looked_at(FLOW, why)),
    };
    let dangling: Vec<&str> = schemas
        .iter()
        .filter(|schema| {
            let conditions = schema.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
            conditions
                .clone()
                .any(|it| it.type_.as_deref() == Some("Dangling") && it.status.as_deref() == Some("True"))
        })
        .filter_map(|schema| schema.metadata.name.as_deref())
        .collect();
    match (schemas.len(), dangling.as_slice()) {
        // Switched off by flowControl.enabled=false.
        (0, _) => None,
        (_, []) => Some(Finding::ok(FLOW, "")),
        (_, names) => Some(
            Finding::warning(FLOW, format!("the priority level of FlowSchema {} is gone", names.join(", ")))
                .hint("Run liqoctl install again: it puts back what is missing")
                .docs(docs::FLOW),
        ),
    }
}
