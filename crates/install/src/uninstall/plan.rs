//! What is to go and what stays. Pure.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use liqo_api::labels;
use serde_json::Value;

use crate::inventory::Seen;
use crate::names::{COMPONENT, GROUP_SUFFIX, INSTALLATION, MANAGED_BY, MANAGER};
use crate::objects::{Id, Owner, ours_selector, owner};

/// Kinds that Kubernetes itself keeps in every namespace, or that follow others.
const FOLLOWERS: [&str; 6] =
    ["Event", "Endpoints", "EndpointSlice", "PodMetrics", "ControllerRevision", "Pod"];
/// Objects that Kubernetes or OpenShift puts into every namespace.
const EVERYWHERE: [(&str, &str); 5] = [
    ("ConfigMap", "kube-root-ca.crt"),
    ("ConfigMap", "openshift-service-ca.crt"),
    ("ServiceAccount", "default"),
    ("ServiceAccount", "builder"),
    ("ServiceAccount", "deployer"),
];

/// Whether a group is liqo's.
pub(super) fn is_liqo_group(group: &str) -> bool {
    group.strip_suffix(GROUP_SUFFIX).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The identity: what makes the cluster who it is.
pub(super) fn is_identity(id: &Id, namespace: &str) -> bool {
    id.namespace.as_deref() == Some(namespace)
        && ((id.kind == "Secret" && id.name == liqo_api::cluster_config::IDENTITY_SECRET)
            || (id.kind == "ConfigMap" && id.name == liqo_api::cluster_config::CLUSTER_ID_CONFIG_MAP))
}

/// Objects of ours that bear no label, as they are made at run time.
pub(super) fn is_known_by_name(id: &Id, namespace: &str) -> bool {
    let here = id.namespace.as_deref() == Some(namespace);
    is_identity(id, namespace)
        || (here && id.kind == "Secret" && id.name == INSTALLATION)
        || (here && id.kind == "Lease" && (id.name == INSTALLATION || id.name == MANAGER))
}

/// The turn of what calls the manager.
pub(super) const WEBHOOKS: u8 = 0;
/// The turn of what runs.
pub(super) const WORKLOADS: u8 = 1;

/// When an object goes: what calls the manager first, the manager next, its rights last.
pub(super) fn turn(id: &Id) -> u8 {
    match id.kind.as_str() {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => WEBHOOKS,
        "Deployment" | "DaemonSet" | "StatefulSet" | "Job" | "CronJob" => WORKLOADS,
        "Secret" | "ConfigMap" => 3,
        _ => 2,
    }
}

/// When objects of a kind end, while a manager lives that ends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// They find other clusters.
    Finding,
    /// They are the other clusters.
    Parting,
    /// They are about what was agreed on with those.
    Rest,
}

/// When the objects of this kind end.
pub(super) fn ending(kind: &str) -> Ending {
    match kind {
        "SearchDomain" => Ending::Finding,
        "ForeignCluster" => Ending::Parting,
        _ => Ending::Rest,
    }
}

/// What the manager made for and with peers: tokens, certificates, tenant namespaces and what peers may do there. It
/// belongs to the peerings, and stays as long as they do.
pub(super) fn is_of_peerings(seen: &Seen) -> bool {
    seen.labels.get(MANAGED_BY).is_some_and(|by| by == MANAGER)
}

/// The selector of nodes that stand for peers.
pub(super) fn virtual_nodes() -> String {
    format!("{}={}", labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL)
}

/// The selector of the namespaces in which a peer and we exchange objects.
pub(super) fn tenant_namespaces() -> String {
    format!("{}={}", labels::TENANT_NAMESPACE, labels::TRUE)
}

/// The selector of the namespaces in which peers' pods run.
pub(super) fn hosted_namespaces() -> String {
    made_by_the_manager("hosting")
}

/// The selector of the namespaces behind claims of the StorageClass `liqo`.
pub(super) fn storage_namespaces() -> String {
    made_by_the_manager("storage")
}

/// Somebody else's label `component` alone says nothing.
fn made_by_the_manager(component: &str) -> String {
    format!("{},{MANAGED_BY}={MANAGER},{COMPONENT}={component}", ours_selector())
}

/// Whether a pod is on a node that is not there any more.
pub(super) fn is_stranded(pod: &Pod, nodes: &BTreeSet<String>) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|node| !node.is_empty() && !nodes.contains(node))
}

/// Takes our labels off an object that stays.
pub(super) fn no_labels() -> Value {
    let labels = ["name", "instance", "component", "version", "part-of", "managed-by"];
    labels.iter().map(|label| (format!("app.kubernetes.io/{label}"), Value::Null)).collect()
}

/// Differs after any change to these objects.
pub(super) fn fingerprint(objects: &[Seen]) -> Vec<(Id, String)> {
    let mut all: Vec<_> = objects.iter().map(|seen| (seen.id.clone(), seen.version.clone())).collect();
    all.sort();
    all
}

/// Of everything labelled ours, what an uninstallation deletes one by one; definitions, custom objects and the
/// namespace have steps of their own.
pub(super) fn one_by_one(labelled: &[Seen], namespace: &str, purge: bool) -> Vec<Seen> {
    let mut chosen: Vec<Seen> = labelled
        .iter()
        .filter(|seen| !seen.owned && owner(Some(&seen.labels)) != Owner::Foreign)
        .filter(|seen| !matches!(seen.id.kind.as_str(), "Namespace" | "CustomResourceDefinition"))
        .filter(|seen| !FOLLOWERS.contains(&seen.id.kind.as_str()))
        .filter(|seen| !is_liqo_group(seen.id.group()))
        .filter(|seen| !is_identity(&seen.id, namespace))
        .filter(|seen| purge || !is_of_peerings(seen))
        // The notes go last, so that an interrupted uninstallation is still known as one.
        .filter(|seen| !is_known_by_name(&seen.id, namespace))
        .cloned()
        .collect();
    chosen.sort_by(|a, b| (turn(&a.id), &a.id).cmp(&(turn(&b.id), &b.id)));
    chosen
}

/// Objects in the namespace that are somebody else's.
pub(super) fn strangers(everything: &[Seen], namespace: &str) -> Vec<Id> {
    let follows =
        |seen: &Seen| FOLLOWERS.contains(&seen.id.kind.as_str()) && (seen.owned || seen.id.kind != "Pod");
    let everywhere = |id: &Id| EVERYWHERE.contains(&(id.kind.as_str(), id.name.as_str()));
    // OpenShift binds roles and keeps pull secrets in every namespace.
    let automatic = |id: &Id| {
        (id.kind == "RoleBinding" && id.name.starts_with("system:"))
            || (id.kind == "Secret" && (id.name.contains("-dockercfg-") || id.name.contains("-token-")))
    };
    everything
        .iter()
        .filter(|seen| seen.id.namespace.as_deref() == Some(namespace) && !seen.terminating)
        .filter(|seen| !seen.owned && !follows(seen) && !everywhere(&seen.id) && !automatic(&seen.id))
        .filter(|seen| owner(Some(&seen.labels)) == Owner::Foreign && !is_marked(seen))
        .filter(|seen| !is_known_by_name(&seen.id, namespace) && !is_liqo_group(seen.id.group()))
        .map(|seen| seen.id.clone())
        .collect()
}

/// Whether it bears a label of liqo's own, as what the manager makes for peers does.
fn is_marked(seen: &Seen) -> bool {
    seen.labels.keys().any(|key| key.split_once('/').is_some_and(|(domain, _)| is_liqo_group(domain)))
}

/// The finalizers of an object that will stay when ours are taken off.
pub(super) fn foreign_finalizers(finalizers: &[String]) -> Vec<String> {
    let ours = |name: &String| {
        let domain = name.split('/').next().unwrap_or(name);
        is_liqo_group(domain) || domain.ends_with(&format!(".{GROUP_SUFFIX}"))
    };
    finalizers.iter().filter(|name| !ours(name)).cloned().collect()
}

/// What is in use, in words, of the objects of liqo's kinds.
pub(super) fn in_use(objects: &[(Id, Value)]) -> Vec<String> {
    let mut found: Vec<String> = objects.iter().filter_map(|(id, object)| peering(id, object)).collect();
    found.extend(objects.iter().filter_map(|(id, _)| offloading(id)));
    found
}

fn peering(id: &Id, object: &Value) -> Option<String> {
    if id.kind != "ForeignCluster" {
        return None;
    }
    let status = |part: &str| {
        let conditions = object["status"]["peeringConditions"].as_array();
        let found = conditions.into_iter().flatten().find(|one| one["type"] == part);
        found.and_then(|one| one["status"].as_str()).unwrap_or("None").to_owned()
    };
    let active = |text: &str| matches!(text, "Established" | "Pending" | "Disconnecting");
    let asked = |field: &str| object["spec"][field] == "Yes";
    let (outgoing, incoming) = (status("OutgoingPeering"), status("IncomingPeering"));
    let mut ways = Vec::new();
    if active(&outgoing) || asked("outgoingPeeringEnabled") {
        ways.push(format!("outgoing {outgoing}"));
    }
    if active(&incoming) || asked("incomingPeeringEnabled") {
        ways.push(format!("incoming {incoming}"));
    }
    (!ways.is_empty()).then(|| format!("peering with {} ({})", id.name, ways.join(", ")))
}

fn offloading(id: &Id) -> Option<String> {
    let namespace = id.namespace.as_deref().unwrap_or_default();
    (id.kind == "NamespaceOffloading").then(|| format!("namespace {namespace} is offloaded"))
}

#[cfg(test)]
mod tests;
