//! What the owner of an offloaded namespace is told.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use liqo_api::namespace_map::MappingPhase;
use liqo_api::namespace_offloading::{
    ConditionStatus, OffloadingPhase, RemoteNamespaceCondition, RemoteNamespaceConditionType,
    RemoteNamespaceConditions,
};
use liqo_api::{NamespaceMap, NamespaceOffloading, NamespaceOffloadingStatus, conditions};
use liqo_core::names::ClusterId;
use liqo_providers::Health;

use super::namespace::problem;
use super::verdict::verdict;
use super::{View, peer};
use crate::events::{Report, cut};
use crate::steps::Step;

/// The condition that says whether what the owner asked for makes sense.
const VALID: &str = "Valid";
/// The longest message of a condition that we write.
const MAX_MESSAGE: usize = 1024;

/// What people know a cluster by.
pub(super) fn name_of(view: &View<'_>, cluster: &ClusterId) -> String {
    let peer = view.index.peers.get(cluster).and_then(|peer| peer.unique_name.clone());
    let map = || view.index.original(cluster).map(ResourceExt::name_any);
    peer.or_else(map).unwrap_or_else(|| cluster.to_string())
}

/// Writes the status, and tells what changed in it.
pub(super) fn tell(view: &View<'_>, offloading: &NamespaceOffloading) -> Vec<Step> {
    let before = offloading.status.clone().unwrap_or_default();
    let after = status(view, offloading, &before);
    let mut wanted = offloading.clone();
    wanted.status = Some(after.clone());
    let Some(step) = Step::bring_status(offloading, &wanted, "tell") else { return Vec::new() };
    // A namespace that goes takes no more events.
    let namespace = offloading.namespace().unwrap_or_default();
    let going = view.index.namespaces.get(namespace.as_str());
    let going = going.is_none_or(|namespace| namespace.metadata.deletion_timestamp.is_some());
    let reports = if going { Vec::new() } else { reports(&before, &after) };
    let reports = reports.iter().map(|report| report.about(offloading, &view.settings.pod, view.now));
    reports.chain([step]).collect()
}

fn status(
    view: &View<'_>,
    offloading: &NamespaceOffloading,
    before: &NamespaceOffloadingStatus,
) -> NamespaceOffloadingStatus {
    let mut clusters = BTreeMap::new();
    let mut states = Vec::new();
    for cluster in view.index.clusters() {
        let told = of_cluster(view, offloading, &cluster);
        let Some(told) = told else { continue };
        let name = name_of(view, &cluster);
        let mut all = before.remote_namespaces_conditions.get(&name).cloned().unwrap_or_default();
        states.push((told.required, told.ready.status, told.mapped));
        conditions::set(&mut all.0, told.as_required(offloading.metadata.generation), view.now);
        conditions::set(&mut all.0, told.as_ready(offloading.metadata.generation), view.now);
        clusters.insert(name, all);
    }
    let mut general = before.conditions.clone();
    conditions::set(&mut general, valid(view, offloading), view.now);
    NamespaceOffloadingStatus {
        remote_namespace_name: peer::remote_name(view, offloading),
        offloading_phase: Some(phase(offloading, &states)),
        remote_namespaces_conditions: clusters,
        conditions: general,
        // Told by those who reflect.
        reflected: before.reflected.clone(),
    }
}

fn valid(view: &View<'_>, offloading: &NamespaceOffloading) -> Condition {
    let problem = problem(view, offloading);
    let (status, reason, message) = match &problem {
        Some((reason, message)) => ("False", *reason, message.as_str()),
        None => ("True", "Accepted", "what is asked for makes sense"),
    };
    Condition {
        type_: VALID.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: cut(message, MAX_MESSAGE).to_owned(),
        observed_generation: offloading.metadata.generation,
        last_transition_time: Time(view.now),
    }
}

fn phase(offloading: &NamespaceOffloading, states: &[(bool, ConditionStatus, bool)]) -> OffloadingPhase {
    if offloading.metadata.deletion_timestamp.is_some() {
        return OffloadingPhase::Terminating;
    }
    let required: Vec<_> = states.iter().filter(|(required, ..)| *required).collect();
    let count = |status| required.iter().filter(|(_, it, _)| *it == status).count();
    let (ready, failed) = (count(ConditionStatus::True), count(ConditionStatus::False));
    let leaving = states.iter().any(|(required, _, mapped)| !required && *mapped);
    match required.len() {
        0 if leaving => OffloadingPhase::InProgress,
        0 => OffloadingPhase::NoClusterSelected,
        all if failed == all => OffloadingPhase::AllFailed,
        _ if failed > 0 => OffloadingPhase::SomeFailed,
        all if ready == all && !leaving => OffloadingPhase::Ready,
        _ => OffloadingPhase::InProgress,
    }
}

/// What is told about one cluster.
struct Told {
    required: bool,
    why: (&'static str, String),
    ready: Ready,
    mapped: bool,
}

struct Ready {
    status: ConditionStatus,
    reason: String,
    message: String,
}

impl Ready {
    fn new(status: ConditionStatus, reason: &str, message: impl Into<String>) -> Self {
        Self { status, reason: reason.to_owned(), message: message.into() }
    }
}

impl Told {
    fn as_required(&self, generation: Option<i64>) -> RemoteNamespaceCondition {
        let status = if self.required { ConditionStatus::True } else { ConditionStatus::False };
        let type_ = RemoteNamespaceConditionType::OffloadingRequired;
        condition(type_, status, self.why.0, &self.why.1, generation)
    }

    fn as_ready(&self, generation: Option<i64>) -> RemoteNamespaceCondition {
        let Ready { status, reason, message } = &self.ready;
        condition(RemoteNamespaceConditionType::Ready, *status, reason, message, generation)
    }
}

fn condition(
    type_: RemoteNamespaceConditionType,
    status: ConditionStatus,
    reason: &str,
    message: &str,
    observed_generation: Option<i64>,
) -> RemoteNamespaceCondition {
    RemoteNamespaceCondition {
        type_,
        status,
        last_transition_time: None,
        reason: reason.to_owned(),
        message: cut(message, MAX_MESSAGE).to_owned(),
        observed_generation,
    }
}

/// What there is to tell about one cluster; nothing if it has nothing to do with offloading.
fn of_cluster(view: &View<'_>, offloading: &NamespaceOffloading, cluster: &ClusterId) -> Option<Told> {
    let namespace = offloading.namespace().unwrap_or_default();
    let verdict = verdict(view, Some(offloading), cluster);
    let mapped = is_mapped(view, cluster, &namespace);
    let lends = view.index.peers.get(cluster).is_some_and(|peer| peer.lends);
    let shown = view.index.nodes_of(cluster).next().is_some();
    if !mapped && !lends && !shown {
        return None;
    }
    let ready = if verdict.required {
        readiness(view, cluster, &namespace)
    } else if mapped {
        Ready::new(
            ConditionStatus::False,
            "Withdrawing",
            "pods leave the cluster, then the namespace there goes",
        )
    } else {
        Ready::new(ConditionStatus::False, "NotRequired", "the namespace does not extend to this cluster")
    };
    Some(Told { required: verdict.required, why: (verdict.reason, verdict.message), ready, mapped })
}

/// Whether the namespace is there, or somebody is still to be told that it should not be: the map here alone does not
/// tell, since the copy there is written at the same time and may come later.
fn is_mapped(view: &View<'_>, cluster: &ClusterId, namespace: &str) -> bool {
    let copy = view.index.copy(cluster);
    let asked = |map: &NamespaceMap| map.spec.desired_mapping.contains_key(namespace);
    let given = copy.and_then(|copy| copy.status.as_ref());
    view.index.original(cluster).into_iter().chain(copy).any(asked)
        || given.is_some_and(|status| status.current_mapping.contains_key(namespace))
}

fn readiness(view: &View<'_>, cluster: &ClusterId, namespace: &str) -> Ready {
    use ConditionStatus::{False, True, Unknown};
    let Some(peer) = view.index.peers.get(cluster) else {
        return Ready::new(Unknown, "NoContract", "no contract with this cluster is known");
    };
    if let Err(why) = &peer.place {
        return Ready::new(False, "NoAccess", why.as_ref());
    }
    if let Health::Unreachable { since, why } = &peer.health {
        return Ready::new(
            Unknown,
            "ProviderUnreachable",
            format!("it has not answered since {since:.0}: {why}"),
        );
    }
    let map = view.index.copy(cluster).or_else(|| view.index.original(cluster));
    let current = map.and_then(|map| map.status.as_ref()?.current_mapping.get(namespace));
    let Some(current) = current else {
        return Ready::new(
            Unknown,
            "Waiting",
            "the cluster was asked for the namespace and has not answered yet",
        );
    };
    let name = &current.remote_namespace;
    let said = |otherwise: String| current.message.clone().unwrap_or(otherwise);
    match current.phase {
        MappingPhase::Accepted => Ready::new(True, "NamespaceReady", format!("it is there as {name}")),
        MappingPhase::CreationLoopBackOff => {
            let reason =
                current.reason.as_deref().filter(|reason| is_reason(reason)).unwrap_or("CreationFailed");
            Ready::new(False, reason, said(format!("the namespace {name} cannot be created there")))
        }
        MappingPhase::Terminating => {
            Ready::new(False, "Terminating", said(format!("the namespace {name} is being removed there")))
        }
    }
}

/// Whether a provider's word is one that the API server takes for a reason.
fn is_reason(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|last| last.is_ascii_alphanumeric() || *last == b'_')
        && bytes.iter().all(|byte| inner(*byte))
}

/// What changed that is worth an event.
fn reports(before: &NamespaceOffloadingStatus, after: &NamespaceOffloadingStatus) -> Vec<Report> {
    let mut all = Vec::new();
    let is_valid = |status: &NamespaceOffloadingStatus| {
        status
            .conditions
            .iter()
            .find(|it| it.type_ == VALID)
            .map(|it| (it.status.clone(), it.message.clone()))
    };
    if is_valid(before) != is_valid(after)
        && let Some(now) = after.conditions.iter().find(|it| it.type_ == VALID && it.status == "False")
    {
        all.push(report(true, &now.reason, now.message.clone(), now.last_transition_time.0));
    }
    for (name, conditions) in &after.remote_namespaces_conditions {
        let earlier = before.remote_namespaces_conditions.get(name);
        all.extend(of_change(name, earlier, conditions));
    }
    all
}

fn of_change(
    name: &str,
    before: Option<&RemoteNamespaceConditions>,
    after: &RemoteNamespaceConditions,
) -> Option<Report> {
    use RemoteNamespaceConditionType::{OffloadingRequired, Ready};
    let find = |all: Option<&RemoteNamespaceConditions>, type_| {
        all.and_then(|all| all.0.iter().find(|it| it.type_ == type_)).cloned()
    };
    let (was, is) = (find(before, Ready), find(Some(after), Ready)?);
    let time = is.last_transition_time.as_ref().map(|time| time.0)?;
    let same = |was: &RemoteNamespaceCondition| was.status == is.status && was.reason == is.reason;
    if was.as_ref().is_some_and(same) {
        return None;
    }
    let required = find(Some(after), OffloadingRequired).is_some_and(|it| it.status == ConditionStatus::True);
    match (is.status, is.reason.as_str()) {
        (ConditionStatus::True, _) => {
            Some(report(false, "NamespaceOffloaded", format!("{name}: {}", is.message), time))
        }
        (_, "Withdrawing") => {
            let why = find(Some(after), OffloadingRequired).map(|it| it.message).unwrap_or_default();
            Some(report(false, "NamespaceWithdrawing", format!("{name}: {why}"), time))
        }
        (_, "NotRequired") => was.map(|_| {
            report(false, "NamespaceWithdrawn", format!("{name}: the namespace there is gone"), time)
        }),
        (ConditionStatus::False, reason) if required => {
            Some(report(true, reason, format!("{name}: {}", is.message), time))
        }
        (ConditionStatus::Unknown, "ProviderUnreachable") => {
            Some(report(true, "ProviderUnreachable", format!("{name}: {}", is.message), time))
        }
        _ => None,
    }
}

fn report(warning: bool, reason: &str, message: String, occasion: jiff::Timestamp) -> Report {
    Report { warning, reason: reason.to_owned(), message, occasion: occasion.to_string() }
}
