//! What a pod at home says about the one that runs elsewhere.

use std::hash::{DefaultHasher, Hasher};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, PodCondition, PodIP, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use liqo_api::shadow_pod::PLACED;
use serde_json::{Value, json};

use crate::translate::Translate;

#[cfg(test)]
mod tests;

/// The conditions that a kubelet sets, and where the pod is. All others are set here by whoever they belong to, and stay.
const CONDITIONS: [&str; 7] = [
    "PodReadyToStartContainers",
    INITIALIZED,
    CONTAINERS_READY,
    READY,
    RESIZE_PENDING,
    "PodResizeInProgress",
    PLACED,
];
const RESIZE_PENDING: &str = "PodResizePending";
const INITIALIZED: &str = "Initialized";
const CONTAINERS_READY: &str = "ContainersReady";
pub(crate) const READY: &str = "Ready";
const SCHEDULED: &str = "PodScheduled";
pub(crate) const PENDING: &str = "Pending";
pub(crate) const RUNNING: &str = "Running";
/// Why a pod is not ready whose node at the provider does not answer.
pub(crate) const NODE_UNREACHABLE: &str = "ProviderNodeUnreachable";
/// Why a container waits that is on its way.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];

/// What is known at home about a pod, as far as its status depends on it.
#[derive(Clone, Copy)]
pub(crate) struct Home<'a> {
    /// The provider that it runs at.
    pub(crate) provider: &'a str,
    /// The address of the node that stands for the provider.
    pub(crate) address: Option<&'a str>,
    /// The readiness gate that is not open, if there is one.
    pub(crate) closed_gate: Option<&'a str>,
    /// How often the pod had to be created again there.
    pub(crate) recreations: u32,
    /// How addresses there are seen here.
    pub(crate) translate: &'a dyn Translate,
}

/// The part of a status that a kubelet writes, in one order.
pub(crate) fn kubelets_part(status: PodStatus) -> PodStatus {
    let mut conditions = status.conditions.unwrap_or_default();
    conditions.retain(|condition| CONDITIONS.contains(&condition.type_.as_str()));
    conditions.iter_mut().for_each(|condition| {
        condition.last_probe_time = None;
        // Counts the changes of another object.
        condition.observed_generation = None;
    });
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    let some = |list: Option<Vec<ContainerStatus>>| list.filter(|list| !list.is_empty()).map(cleaned);
    PodStatus {
        conditions: Some(conditions).filter(|list| !list.is_empty()),
        container_statuses: some(status.container_statuses),
        ephemeral_container_statuses: some(status.ephemeral_container_statuses),
        init_container_statuses: some(status.init_container_statuses),
        host_ip: status.host_ip,
        host_ips: status.host_ips,
        message: status.message,
        phase: status.phase,
        pod_ip: status.pod_ip,
        pod_ips: status.pod_ips,
        reason: status.reason,
        start_time: status.start_time,
        ..PodStatus::default()
    }
}

fn cleaned(mut list: Vec<ContainerStatus>) -> Vec<ContainerStatus> {
    // Which devices of a node a container has; API servers of different versions keep it or drop it.
    list.iter_mut().for_each(|status| status.allocated_resources_status = None);
    list
}

/// What tells two statuses apart, within this process.
pub(crate) fn fingerprint(status: &PodStatus) -> u64 {
    // A status is made of texts and numbers, which can always be written down.
    let bytes = serde_json::to_vec(status).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    hasher.write(&bytes);
    hasher.finish()
}

/// What home says about a pod whose status at the provider is `remote`.
pub(crate) fn merge(remote: PodStatus, home: &Home<'_>) -> PodStatus {
    let told = unplaced(&remote);
    let mut status = kubelets_part(remote);
    status.host_ip = home.address.map(str::to_owned);
    status.host_ips = home.address.map(|ip| vec![HostIP { ip: ip.to_owned() }]);
    let addresses = status.pod_ips.take().unwrap_or_default();
    let seen = |it: PodIP| home.translate.to_home(home.provider, &it.ip);
    let addresses: Vec<_> = addresses.into_iter().filter_map(seen).map(|ip| PodIP { ip }).collect();
    status.pod_ip = addresses.first().map(|first| first.ip.clone());
    status.pod_ips = Some(addresses).filter(|list| !list.is_empty());
    let lists = [
        &mut status.container_statuses,
        &mut status.init_container_statuses,
        &mut status.ephemeral_container_statuses,
    ];
    let again = i32::try_from(home.recreations).unwrap_or(i32::MAX);
    for container in lists.into_iter().flatten().flatten() {
        container.restart_count = container.restart_count.saturating_add(again);
    }
    if let Some(gate) = home.closed_gate {
        close(&mut status, gate);
    }
    if status.phase.as_deref() == Some(PENDING)
        && let Some((reason, message)) = told
    {
        status.reason = Some(reason);
        status.message = Some(format!("not placed at the provider {}: {message}", home.provider));
    }
    status
}

/// Says that the provider does not make a pod larger yet, in the way in which a kubelet says it. What the kubelet there says
/// itself is about an earlier wish.
pub(crate) fn defer_growth(status: &mut PodStatus, (message, since): (&str, Timestamp), provider: &str) {
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|it| it.type_ != RESIZE_PENDING);
    conditions.push(PodCondition {
        type_: RESIZE_PENDING.to_owned(),
        status: "True".to_owned(),
        reason: Some("Deferred".to_owned()),
        message: Some(format!("refused by the provider {provider}: {message}")),
        last_transition_time: Some(Time(since)),
        ..PodCondition::default()
    });
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
}

/// Says that the node of a pod does not answer: what was last heard from there is not so any more. `noticed` is when that
/// was found out.
pub(crate) fn cut_off(status: &mut PodStatus, message: &str, noticed: Timestamp) {
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|it| it.type_ != READY);
    conditions.push(PodCondition {
        type_: READY.to_owned(),
        status: "False".to_owned(),
        reason: Some(NODE_UNREACHABLE.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(Time(in_seconds(noticed))),
        ..PodCondition::default()
    });
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
}

/// The node of which a pod says that it does not answer.
pub(crate) fn cut_off_from(status: &PodStatus) -> Option<&str> {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let find = |type_: &str| conditions.iter().find(|it| it.type_ == type_);
    find(READY).filter(|it| it.reason.as_deref() == Some(NODE_UNREACHABLE))?;
    find(PLACED)?.message.as_deref()
}

/// Says on which node of the provider a pod is: nothing else at home tells it, and it costs no request of its own.
pub(crate) fn place(status: &mut PodStatus, node: Option<&str>) {
    let Some(node) = node.filter(|node| !node.is_empty()) else { return };
    let conditions = status.conditions.get_or_insert_default();
    conditions.retain(|it| it.type_ != PLACED);
    let scheduled = conditions.iter().find(|it| it.type_ == SCHEDULED);
    let placed = PodCondition {
        type_: PLACED.to_owned(),
        status: "True".to_owned(),
        reason: Some("Placed".to_owned()),
        message: Some(node.to_owned()),
        last_transition_time: scheduled.and_then(|it| it.last_transition_time.clone()),
        ..PodCondition::default()
    };
    conditions.push(placed);
}

/// Why a pod was not placed, where it was not.
fn unplaced(status: &PodStatus) -> Option<(String, String)> {
    let scheduled = status.conditions.iter().flatten().find(|it| it.type_ == SCHEDULED)?;
    let refused = scheduled.status == "False";
    refused.then(|| {
        let reason = scheduled.reason.clone().unwrap_or_else(|| "Unschedulable".to_owned());
        (reason, scheduled.message.clone().unwrap_or_default())
    })
}

/// A pod is ready when its gates are open as well, which are told at home.
fn close(status: &mut PodStatus, gate: &str) {
    for ready in status.conditions.iter_mut().flatten() {
        if ready.type_ == READY && ready.status == "True" {
            ready.status = "False".to_owned();
            ready.reason = Some("ReadinessGatesNotReady".to_owned());
            ready.message =
                Some(format!("corresponding condition of pod readiness gate \"{gate}\" is not True"));
        }
    }
}

/// A pod that did not come to run, and why.
pub(crate) fn not_running(reason: &str, message: &str) -> PodStatus {
    PodStatus {
        phase: Some(PENDING.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        ..PodStatus::default()
    }
}

/// How soon a status should be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// At once: somebody waits for it.
    Now,
    /// Something is wrong before the pod runs; more may be said in a moment.
    Soon,
    /// All is on its way, and what comes next matters more.
    Later,
    /// No kubelet has said anything yet: there is nothing that home does not say already.
    Never,
}

/// How soon this status of a pod at a provider should be told.
pub(crate) fn urgency(remote: &PodStatus) -> Urgency {
    if remote.phase.as_deref().is_some_and(|phase| phase != PENDING) {
        return Urgency::Now;
    }
    let containers = remote.init_container_statuses.iter().chain(&remote.container_statuses).flatten();
    let waits = containers.filter_map(|it| it.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    let mut troubles = waits.filter(|reason| !STARTING.contains(reason));
    let troubled = unplaced(remote).is_some() || remote.reason.is_some() || troubles.next().is_some();
    let unsaid = remote.start_time.is_none() && remote.container_statuses.as_ref().is_none_or(Vec::is_empty);
    match (troubled, unsaid) {
        (true, _) => Urgency::Soon,
        (false, true) => Urgency::Never,
        (false, false) => Urgency::Later,
    }
}

/// What a kubelet writes besides conditions; what it does not say is cleared.
const FIELDS: [&str; 10] = [
    "reason",
    "message",
    "hostIP",
    "hostIPs",
    "podIP",
    "podIPs",
    "startTime",
    "containerStatuses",
    "initContainerStatuses",
    "ephemeralContainerStatuses",
];

/// The patch that makes home say `status`, element by element where lists are made so.
pub(crate) fn patch(status: &PodStatus) -> Value {
    let mut patch = json!(status);
    for field in FIELDS {
        if patch.get(field).is_none() {
            patch[field] = Value::Null;
        }
    }
    for list in ["podIPs", "hostIPs"] {
        if let Some(addresses) = patch[list].as_array_mut() {
            addresses.insert(0, json!({ "$patch": "replace" }));
        }
    }
    let mut conditions = vec![];
    for type_ in CONDITIONS {
        let said = status.conditions.iter().flatten().find(|condition| condition.type_ == type_);
        let mut condition = said.map_or_else(|| json!({ "type": type_, "$patch": "delete" }), |it| json!(it));
        for field in ["reason", "message"] {
            if said.is_some() && condition.get(field).is_none() {
                condition[field] = Value::Null;
            }
        }
        conditions.push(condition);
    }
    patch["conditions"] = Value::Array(conditions);
    patch
}

/// The patch that says that a pod is not ready, and nothing else.
pub(crate) fn not_ready(reason: &str, message: &str, now: Timestamp) -> Value {
    let condition = |type_: &str| PodCondition {
        type_: type_.to_owned(),
        status: "False".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_transition_time: Some(Time(in_seconds(now))),
        ..PodCondition::default()
    };
    json!({ "conditions": [condition(READY)] })
}

fn in_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
