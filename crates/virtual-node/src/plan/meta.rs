//! Labels, annotations, taints and the cordon of a node.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use liqo_api::names::{UNREACHABLE_TAINT, VIRTUAL_NODE_TAINT};
use liqo_api::{annotations, labels};
use liqo_core::ResourceName;
use liqo_providers::{Health, Provider};
use serde_json::{Map, Value, json};

use super::drain::Leaving;
use super::{Stand, View, What, draining_since, outage, status};
use crate::Settings;
use crate::node::{Facts, Place};

/// Pods that do not tolerate it leave.
const NO_EXECUTE: &str = "NoExecute";
/// The annotation by which metrics-server knows where a node tells its numbers.
const METRICS_PATH: &str = "metrics.k8s.io/resource-metrics-path";
/// The longest value of a label.
const LONGEST_VALUE: usize = 63;
/// What the machines of a provider are, if its offer does not say.
const ARCHITECTURE: &str = "amd64";
const ARCHITECTURE_LABEL: &str = "kubernetes.io/arch";
/// Domains whose labels Kubernetes acts on; a provider may not say them, but for those in [`TOLD`].
const RESERVED: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// Labels of those domains that a provider may say: where it is, and what its machines are.
const TOLD: [&str; 4] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
    ARCHITECTURE_LABEL,
];

/// How a node should be, status aside.
pub(super) struct Wanted {
    name: String,
    provider_id: String,
    /// Labels that are ours whatever anybody says.
    fixed: BTreeMap<String, String>,
    /// Labels of the offer and of the administrator.
    more: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

impl Wanted {
    pub(super) fn new(settings: &Settings, name: &str, stand: &Stand<'_>) -> Self {
        let lent = stand.lent;
        let of_pool = lent.and_then(|part| part.pool).map(|pool| &pool.labels);
        // What is said of the pool comes later, and so before what is said of all.
        let offered = lent.map(|part| &part.by.labels).into_iter().chain(of_pool).flatten();
        let stores = lent.is_some_and(|part| !part.by.storage_classes.is_empty());
        let fixed = fixed(name, stand.place, stores);
        let may_say =
            |(key, value): &(&String, &String)| may_be_told(key, value) && !fixed.contains_key(*key);
        let offered = offered.filter(may_say);
        let mut more: BTreeMap<_, _> = offered.map(|(key, value)| (key.clone(), value.clone())).collect();
        more.entry(ARCHITECTURE_LABEL.to_owned()).or_insert_with(|| ARCHITECTURE.to_owned());
        let extra = settings.labels.iter().filter(|(key, _)| !fixed.contains_key(*key));
        more.extend(extra.map(|(key, value)| (key.clone(), value.clone())));
        let mut annotations = settings.annotations.clone();
        if settings.address.is_some() {
            // All nodes have one address, so that each must say where its own numbers are.
            annotations.insert(METRICS_PATH.to_owned(), format!("/nodes/{name}/metrics/resource"));
        }
        Self { name: name.to_owned(), provider_id: stand.place.provider_id(), fixed, more, annotations }
    }

    /// The node, to be made.
    pub(super) fn node(&self) -> Value {
        let labels: BTreeMap<_, _> = self.fixed.iter().chain(&self.more).collect();
        let mut annotations = self.annotations.clone();
        annotations.insert(annotations::OFFERED_LABELS.to_owned(), keys(self.more.keys()));
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": { "name": self.name, "labels": labels, "annotations": annotations },
            "spec": { "providerID": self.provider_id, "taints": [not_allowed()] },
        })
    }
}

/// What the machines of a provider are.
pub(super) fn architecture(stand: &Stand<'_>, facts: &Facts) -> String {
    let told = stand.lent.and_then(|part| {
        let of_pool = part.pool.and_then(|pool| pool.labels.get(ARCHITECTURE_LABEL));
        of_pool.or_else(|| part.by.labels.get(ARCHITECTURE_LABEL)).cloned()
    });
    told.or_else(|| facts.labels.get(ARCHITECTURE_LABEL).cloned()).unwrap_or_else(|| ARCHITECTURE.to_owned())
}

/// What is to be changed of a node that exists.
pub(super) fn change(
    view: &View<'_>,
    name: &str,
    facts: &Facts,
    stand: &Stand<'_>,
    behind: &Health,
    leaving: &Leaving,
) -> Option<What> {
    let mut patch = Map::new();
    let (mut labels, mut annotations) = (Map::new(), Map::new());
    // Of one that lends no more, labels stay as they were until the node goes.
    if stand.lent.is_some() {
        let wanted = Wanted::new(view.settings, name, stand);
        relabel(&wanted, facts, &mut labels, &mut annotations);
    }
    let mut spec = retaint(view, facts, stand.provider, behind);
    outage::note(view.now, facts, &spec, &mut annotations);
    cordon(view, facts, leaving, &mut spec, &mut annotations);
    let mut metadata = Map::new();
    for (field, changes) in [("labels", labels), ("annotations", annotations)] {
        if !changes.is_empty() {
            metadata.insert(field.to_owned(), Value::Object(changes));
        }
    }
    for (field, changes) in [("metadata", metadata), ("spec", spec)] {
        if !changes.is_empty() {
            patch.insert(field.to_owned(), Value::Object(changes));
        }
    }
    (!patch.is_empty()).then(|| What::Change { version: facts.version.clone(), patch: Value::Object(patch) })
}

fn relabel(
    wanted: &Wanted,
    facts: &Facts,
    labels: &mut Map<String, Value>,
    annotations: &mut Map<String, Value>,
) {
    let noted = facts.annotations.get(annotations::OFFERED_LABELS).map_or("", String::as_str);
    let before: BTreeSet<&str> = noted.split(',').filter(|key| !key.is_empty()).collect();
    // A label that somebody gave the node is not ours to change, though the provider says another value.
    let is_ours = |key: &str| before.contains(key) || !facts.labels.contains_key(key);
    let more: BTreeMap<_, _> = wanted.more.iter().filter(|(key, _)| is_ours(key)).collect();
    for (key, value) in wanted.fixed.iter().chain(more.iter().map(|(key, value)| (*key, *value))) {
        if facts.labels.get(key) != Some(value) {
            labels.insert(key.clone(), json!(value));
        }
    }
    let gone =
        before.iter().filter(|key| !wanted.more.contains_key(**key) && !wanted.fixed.contains_key(**key));
    for key in gone.filter(|key| facts.labels.contains_key(**key)) {
        labels.insert((*key).to_owned(), Value::Null);
    }
    let note = keys(more.keys().copied());
    let wanted_notes = wanted.annotations.iter().map(|(key, value)| (key.as_str(), value));
    for (key, value) in wanted_notes.chain([(annotations::OFFERED_LABELS, &note)]) {
        if facts.annotations.get(key) != Some(value) {
            annotations.insert(key.to_owned(), json!(value));
        }
    }
}

/// The taints: those of others, ours, and one while the provider does not answer, or nothing that is behind the node.
fn retaint(
    view: &View<'_>,
    facts: &Facts,
    provider: Option<&Provider>,
    behind: &Health,
) -> Map<String, Value> {
    let had = |key: &str| facts.taints.iter().find(|taint| taint.key == key && taint.effect == NO_EXECUTE);
    let gone = match provider.map(|provider| &provider.health) {
        Some(Health::Unreachable { .. }) => true,
        Some(Health::Reachable) => behind.is_gone() || status::stays_unreachable(facts, behind),
        // Nobody knows: as it was.
        Some(Health::Unknown) | None => had(UNREACHABLE_TAINT).is_some(),
    };
    let is_ours = |taint: &Taint| [VIRTUAL_NODE_TAINT, UNREACHABLE_TAINT].contains(&taint.key.as_str());
    let mut taints: Vec<Taint> = facts.taints.iter().filter(|taint| !is_ours(taint)).cloned().collect();
    taints.push(had(VIRTUAL_NODE_TAINT).cloned().unwrap_or_else(not_allowed));
    if gone {
        let new = || Taint { time_added: Some(Time(view.now)), ..taint(UNREACHABLE_TAINT, None) };
        taints.push(had(UNREACHABLE_TAINT).cloned().unwrap_or_else(new));
    }
    let is_same =
        taints.len() == facts.taints.len() && taints.iter().all(|taint| facts.taints.contains(taint));
    let mut spec = Map::new();
    if !is_same {
        spec.insert("taints".to_owned(), json!(taints));
    }
    spec
}

/// Keeps new pods away while a node is emptied; and no longer, unless somebody else wants that too.
fn cordon(
    view: &View<'_>,
    facts: &Facts,
    leaving: &Leaving,
    spec: &mut Map<String, Value>,
    annotations: &mut Map<String, Value>,
) {
    let begun = draining_since(facts);
    if leaving.empties() {
        if begun.is_none() {
            annotations.insert(annotations::DRAINING_SINCE.to_owned(), json!(view.now.to_string()));
        }
        if !facts.unschedulable {
            spec.insert("unschedulable".to_owned(), json!(true));
        }
    } else if *leaving == Leaving::No && facts.annotations.contains_key(annotations::DRAINING_SINCE) {
        annotations.insert(annotations::DRAINING_SINCE.to_owned(), Value::Null);
        spec.insert("unschedulable".to_owned(), Value::Null);
    }
}

fn fixed(name: &str, place: &Place, stores: bool) -> BTreeMap<String, String> {
    let stores = if stores { labels::TRUE } else { labels::FALSE };
    let always = [
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/role", "agent"),
        ("kubernetes.io/os", "linux"),
        (labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL),
        (labels::REMOTE_CLUSTER_ID, place.cluster.as_str()),
        ("node.kubernetes.io/exclude-from-external-load-balancers", labels::TRUE),
        ("alpha.service-controller.kubernetes.io/exclude-balancer", labels::TRUE),
        (labels::STORAGE_AVAILABLE, stores),
    ];
    let pool = place.pool.as_ref().map(|pool| (labels::POOL, pool.as_str()));
    let all = always.into_iter().chain(pool);
    all.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Whether a provider may give its node this label: a legal one, that Kubernetes does not act on.
fn may_be_told(key: &str, value: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    let inside = |of: &str| domain == of || domain.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
    let reserved = RESERVED.iter().any(|of| inside(of)) && !TOLD.contains(&key);
    let outer = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    let legal = bytes.len() <= LONGEST_VALUE
        && outer(bytes.first())
        && outer(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    // Label keys have the syntax of resource names.
    !reserved && legal && key.parse::<ResourceName>().is_ok()
}

fn not_allowed() -> Taint {
    taint(VIRTUAL_NODE_TAINT, Some(labels::TRUE))
}

fn taint(key: &str, value: Option<&str>) -> Taint {
    let value = value.map(str::to_owned);
    Taint { key: key.to_owned(), value, effect: NO_EXECUTE.to_owned(), time_added: None }
}

fn keys<'a>(keys: impl IntoIterator<Item = &'a String>) -> String {
    keys.into_iter().map(String::as_str).collect::<Vec<_>>().join(",")
}
