//! Looks at what runs.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::{ListParams, LogParams};
use kube::{Api, Client};
use liqo_api::ClusterConfig;
use liqo_api::cluster_config::CLUSTER_CONFIG;

use super::{Told, Workload};
use crate::objects::Id;
use crate::trouble;

/// Lines of a log that are shown.
const LAST_WORDS: i64 = 15;
/// Enough to tell why no node takes a pod, without reading thousands.
const SOME_NODES: u32 = 50;
/// On a ReplicaSet: counts the Deployment's versions.
const REVISION: &str = "deployment.kubernetes.io/revision";
/// On pods of a Deployment: which of its versions they are.
const TEMPLATE: &str = "pod-template-hash";

/// Whether it runs pods that are waited for.
pub(crate) fn is_workload(id: &Id) -> bool {
    id.group() == "apps" && matches!(id.kind.as_str(), "Deployment" | "DaemonSet")
}

/// What is known now; `thoroughly` with events and logs.
pub(super) async fn workload(client: &Client, id: &Id, thoroughly: bool) -> Result<Workload, kube::Error> {
    let namespace = id.namespace.as_deref().unwrap_or_default();
    let (mut workload, selector) = match id.kind.as_str() {
        "DaemonSet" => daemons(&Api::<DaemonSet>::namespaced(client.clone(), namespace).get(&id.name).await?),
        _ => deployment(&Api::<Deployment>::namespaced(client.clone(), namespace).get(&id.name).await?),
    };
    workload.what = id.to_string();
    let done = workload.observed && workload.available >= workload.wanted && workload.old == 0;
    if done && !thoroughly {
        return Ok(workload);
    }
    let params = ListParams::default().labels(&selector_text(&selector));
    let pods = Api::<Pod>::namespaced(client.clone(), namespace).list(&params).await;
    let pods = optional(pods.map(|list| list.items))?;
    if id.kind == "Deployment" {
        let sets = Api::<ReplicaSet>::namespaced(client.clone(), namespace).list(&params).await;
        workload.replica_sets = latest(optional(sets.map(|list| list.items))?);
    }
    workload.pods = of_latest(pods, &workload.replica_sets);
    if thoroughly {
        workload.events = events(client, namespace).await?;
        if workload.pods.iter().any(has_no_node) {
            let params = ListParams::default().limit(SOME_NODES);
            let nodes = Api::<Node>::all(client.clone()).list(&params).await;
            workload.nodes = optional(nodes.map(|list| list.items))?;
        }
        workload.logs = logs(client, namespace, &workload.pods).await;
    }
    Ok(workload)
}

fn has_no_node(pod: &Pod) -> bool {
    pod.spec.as_ref().is_none_or(|spec| spec.node_name.is_none())
}

/// What the user may not see is left out.
fn optional<T: Default>(answer: Result<T, kube::Error>) -> Result<T, kube::Error> {
    match answer {
        Err(error) if trouble::is_forbidden(&error) => Ok(T::default()),
        answer => answer,
    }
}

fn selector_text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.clone().unwrap_or_default();
    labels.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn deployment(deployment: &Deployment) -> (Workload, LabelSelector) {
    let spec = deployment.spec.clone().unwrap_or_default();
    let status = deployment.status.clone().unwrap_or_default();
    let failures = status
        .conditions
        .iter()
        .flatten()
        .filter(|one| one.type_ == "ReplicaFailure" && one.status == "True");
    let updated = status.updated_replicas.unwrap_or(0);
    let workload = Workload {
        observed: status.observed_generation >= deployment.metadata.generation,
        noticed: status.observed_generation.is_some_and(|generation| generation > 0),
        wanted: spec.replicas.unwrap_or(1),
        updated,
        available: status.available_replicas.unwrap_or(0),
        old: (status.replicas.unwrap_or(0) - updated).max(0),
        failures: failures.filter_map(|one| one.message.clone()).collect(),
        ..Workload::default()
    };
    (workload, spec.selector)
}

fn daemons(daemons: &DaemonSet) -> (Workload, LabelSelector) {
    let spec = daemons.spec.clone().unwrap_or_default();
    let status = daemons.status.clone().unwrap_or_default();
    let workload = Workload {
        observed: status.observed_generation >= daemons.metadata.generation,
        noticed: status.observed_generation.is_some_and(|generation| generation > 0),
        wanted: status.desired_number_scheduled,
        updated: status.updated_number_scheduled.unwrap_or(0),
        available: status.number_available.unwrap_or(0),
        ..Workload::default()
    };
    (workload, spec.selector)
}

/// Of all versions of a Deployment, the latest.
fn latest(sets: Vec<ReplicaSet>) -> Vec<ReplicaSet> {
    let revision = |set: &ReplicaSet| {
        let annotations = set.metadata.annotations.as_ref();
        annotations.and_then(|all| all.get(REVISION)?.parse::<u64>().ok()).unwrap_or(0)
    };
    sets.into_iter().max_by_key(revision).into_iter().collect()
}

fn of_latest(pods: Vec<Pod>, sets: &[ReplicaSet]) -> Vec<Pod> {
    let template = |labels: &Option<BTreeMap<String, String>>| {
        labels.as_ref().and_then(|all| all.get(TEMPLATE).cloned())
    };
    let wanted = sets.first().and_then(|set| template(&set.metadata.labels));
    let mut pods: Vec<Pod> = pods
        .into_iter()
        .filter(|pod| pod.metadata.deletion_timestamp.is_none())
        .filter(|pod| wanted.is_none() || template(&pod.metadata.labels) == wanted)
        .collect();
    pods.sort_by(|a, b| a.metadata.creation_timestamp.cmp(&b.metadata.creation_timestamp));
    pods
}

/// Events of the namespace, the oldest first.
async fn events(client: &Client, namespace: &str) -> Result<Vec<Event>, kube::Error> {
    let list = Api::<Event>::namespaced(client.clone(), namespace).list(&ListParams::default()).await;
    let mut events = optional(list.map(|list| list.items))?;
    let time = |event: &Event| {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        last.or(event.event_time.as_ref().map(|time| time.0)).or(event
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0))
    };
    events.sort_by_key(time);
    Ok(events)
}

/// The last words of containers that ended, else of those that run and are not ready.
async fn logs(client: &Client, namespace: &str, pods: &[Pod]) -> Vec<(String, String)> {
    let api = Api::<Pod>::namespaced(client.clone(), namespace);
    let mut logs = Vec::new();
    for pod in pods {
        let Some(name) = pod.metadata.name.clone() else { continue };
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let Some(troubled) = statuses.clone().find(|one| !one.ready) else { continue };
        let running = troubled.state.as_ref().is_some_and(|state| state.running.is_some());
        let params = LogParams {
            container: Some(troubled.name.clone()),
            previous: !running && troubled.restart_count > 0,
            tail_lines: Some(LAST_WORDS),
            ..LogParams::default()
        };
        // A container that never started has no log.
        if let Ok(text) = api.logs(&name, &params).await {
            logs.push((name, text));
        }
    }
    logs
}

/// What the manager tells.
pub(super) async fn told(client: &Client, version: Option<&str>) -> Result<Told, kube::Error> {
    let config = Api::<ClusterConfig>::all(client.clone()).get_opt(CLUSTER_CONFIG).await?;
    Ok(Told { config, version: version.map(str::to_owned) })
}
