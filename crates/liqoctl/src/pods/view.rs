//! One pod as people see it: where it is, how it is, and why it is not better.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Node, Pod, PodCondition, PodStatus};
use kube::ResourceExt;
use liqo_api::labels;
use liqo_api::namespace_offloading::PodOffloadingStrategy;
use liqo_api::shadow_pod::PLACED;
use liqo_inspect::age;
use serde::Serialize;

use crate::table::Table;

#[cfg(test)]
mod tests;

/// Why a container waits that is on its way.
const STARTING: [&str; 2] = ["ContainerCreating", "PodInitializing"];
/// What is shown where there is nothing to say.
const NONE: &str = "-";
/// Who runs a pod that is in this cluster.
const HOME: &str = "(home)";
/// The longest reason in the table; `-o wide` and `-o json` have all of it.
const SHORT: usize = 100;

/// What is known besides pods.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// How namespaces are offloaded; those that are not are not in it.
    pub(super) strategies: BTreeMap<String, PodOffloadingStrategy>,
    /// The virtual nodes, by name.
    pub(super) lenders: BTreeMap<String, Lender>,
    /// What namespaces are called elsewhere, by the cluster's ID and the name here.
    pub(super) namespaces: BTreeMap<(String, String), String>,
}

/// A cluster that a virtual node stands for.
#[derive(Debug, Clone, Default)]
pub(super) struct Lender {
    id: String,
    name: String,
    /// Why the node is not ready, if it is not.
    trouble: Option<String>,
}

impl Lender {
    /// Reads the node that stands for the cluster of this ID and name.
    pub(super) fn read(node: &Node, id: &str, name: String) -> Self {
        let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
        let ready = conditions.filter(|it| it.type_ == "Ready").find(|it| it.status != "True");
        let trouble = ready.map(|it| said(it.reason.as_deref(), it.message.as_deref()));
        Self { id: id.to_owned(), name, trouble }
    }
}

/// A pod of an offloaded namespace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PodView {
    pub(super) namespace: String,
    pub(super) name: String,
    /// Containers that are ready, and all of them.
    ready: String,
    status: String,
    restarts: i32,
    /// The cluster that runs it, by its name here; none for a pod that is in this cluster or nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_id: Option<String>,
    /// Its namespace there.
    #[serde(skip_serializing_if = "Option::is_none")]
    remote_namespace: Option<String>,
    /// The node that it is on, there or here.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    /// The node here that stands for the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    virtual_node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    /// Why it does not run, or not where it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl PodView {
    /// Whether it belongs to the cluster of this ID.
    pub(super) fn is_at(&self, id: Option<&str>) -> bool {
        self.provider_id.as_deref() == id
    }
}

/// What is known of one pod.
pub(super) fn of(pod: &Pod, around: &Surroundings) -> PodView {
    let namespace = pod.namespace().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    let bound = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|node| !node.is_empty());
    let lender = bound.as_ref().and_then(|node| around.lenders.get(node));
    let remote = lender.and_then(|it| around.namespaces.get(&(it.id.clone(), namespace.clone())));
    let (virtual_node, node) = match lender {
        Some(_) => (bound, condition(&status, PLACED).and_then(|it| it.message.clone())),
        None => (None, bound),
    };
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let count = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    let strategy = around.strategies.get(&namespace).copied();
    PodView {
        name: pod.name_any(),
        ready: format!("{}/{count}", containers.iter().filter(|it| it.ready).count()),
        status: short_status(pod, &status),
        restarts: containers.iter().map(|it| it.restart_count).sum(),
        provider: lender.map(|it| it.name.clone()),
        provider_id: lender.map(|it| it.id.clone()),
        remote_namespace: remote.cloned(),
        ip: status.pod_ip.clone(),
        created: pod.creation_timestamp().map(|time| time.0),
        why: why(pod, &status, lender).or_else(|| stays(pod, strategy)),
        namespace,
        node,
        virtual_node,
    }
}

fn condition<'a>(status: &'a PodStatus, type_: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|it| it.type_ == type_)
}

fn is_over(status: &PodStatus) -> bool {
    matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))
}

/// A word and a sentence, as far as there are any.
fn said(reason: Option<&str>, message: Option<&str>) -> String {
    let filled = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    match (filled(reason), filled(message)) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "no reason is told".to_owned(),
    }
}

/// Containers in the order in which they start.
fn containers(status: &PodStatus) -> impl Iterator<Item = &ContainerStatus> {
    status.init_container_statuses.iter().chain(&status.container_statuses).flatten()
}

/// How it is in one word, like kubectl's.
fn short_status(pod: &Pod, status: &PodStatus) -> String {
    if pod.metadata.deletion_timestamp.is_some() {
        return "Terminating".to_owned();
    }
    let waiting = containers(status).find_map(|it| it.state.as_ref()?.waiting.as_ref()?.reason.as_deref());
    let ended = containers(status).find_map(|it| {
        let ended = it.state.as_ref()?.terminated.as_ref()?;
        ended.reason.as_deref().filter(|_| ended.exit_code != 0)
    });
    let word = status.reason.as_deref().or(waiting).or(ended).or(status.phase.as_deref());
    word.unwrap_or("Unknown").to_owned()
}

/// Why a pod does not run well; nothing if it does, or ended well.
fn why(pod: &Pod, status: &PodStatus, lender: Option<&Lender>) -> Option<String> {
    if status.phase.as_deref() == Some("Succeeded") {
        return None;
    }
    if let Some(trouble) = lender.and_then(|it| it.trouble.as_deref()).filter(|_| !is_over(status)) {
        return Some(trouble.to_owned());
    }
    if status.reason.is_some() || status.message.is_some() {
        return Some(said(status.reason.as_deref(), status.message.as_deref()));
    }
    if let Some(it) = condition(status, "PodScheduled").filter(|it| it.status == "False") {
        return Some(said(it.reason.as_deref(), it.message.as_deref()));
    }
    if let Some(trouble) = containers(status).find_map(trouble) {
        return Some(trouble);
    }
    if is_over(status) {
        return Some("no reason is told".to_owned());
    }
    if pod.metadata.deletion_timestamp.is_some() {
        return lender.map(|it| format!("waits until it has ended at {}", it.name));
    }
    match (status.phase.as_deref(), condition(status, "Ready")) {
        (Some("Running"), Some(ready)) if ready.status == "True" => None,
        (_, Some(ready)) if ready.status != "True" => {
            Some(said(ready.reason.as_deref(), ready.message.as_deref()))
        }
        (Some("Pending"), _) => Some(match lender {
            Some(it) => format!("{} has not said anything about it yet", it.name),
            None => "it is on its way".to_owned(),
        }),
        _ => None,
    }
}

/// What is wrong with one container.
fn trouble(it: &ContainerStatus) -> Option<String> {
    let ContainerState { waiting, terminated, .. } = it.state.clone().unwrap_or_default();
    let last = it.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    if let Some(waiting) = waiting {
        let reason = waiting.reason.as_deref().filter(|reason| !STARTING.contains(reason))?;
        let code = last.map(|last| format!(" (it ended with {})", last.exit_code)).unwrap_or_default();
        return Some(format!(
            "container {}: {}{code}",
            it.name,
            said(Some(reason), waiting.message.as_deref())
        ));
    }
    let ended = terminated.filter(|ended| ended.exit_code != 0)?;
    let reason = ended.reason.as_deref().unwrap_or("Error");
    Some(format!(
        "container {}: {} (it ended with {})",
        it.name,
        said(Some(reason), ended.message.as_deref()),
        ended.exit_code
    ))
}

/// Why a pod that could be elsewhere is here: it was made before anybody asked where it may run.
fn stays(pod: &Pod, strategy: Option<PodOffloadingStrategy>) -> Option<String> {
    let over = pod.status.as_ref().is_some_and(is_over);
    (is_from_before(pod, strategy?) && !over).then(|| {
        "was made before its namespace was offloaded, or wants to be here: it stays until it is made anew"
            .to_owned()
    })
}

/// Whether nobody told this pod that it may run elsewhere, though its namespace may.
fn is_from_before(pod: &Pod, strategy: PodOffloadingStrategy) -> bool {
    let told = pod.labels().get(labels::SHADOW_POD).is_some_and(|it| it == labels::TRUE);
    strategy != PodOffloadingStrategy::Local && !told
}

/// The pods for people.
pub(super) fn text(views: &[PodView], with_namespace: bool, wide: bool, now: Timestamp) -> String {
    let mut headings =
        vec!["NAMESPACE", "NAME", "READY", "STATUS", "PROVIDER", "REMOTE NAMESPACE", "NODE", "AGE"];
    if wide {
        headings.extend(["RESTARTS", "IP", "VIRTUAL NODE"]);
    }
    headings.push("WHY");
    let skipped = usize::from(!with_namespace);
    let mut table = Table::of(&headings[skipped..]);
    for view in views {
        table.push(cells(view, wide, now).split_off(skipped));
    }
    table.to_string()
}

fn cells(view: &PodView, wide: bool, now: Timestamp) -> Vec<String> {
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| NONE.to_owned());
    let at_home = view.provider.is_none() && view.node.is_some();
    let provider = if at_home { HOME.to_owned() } else { or_none(&view.provider) };
    let mut cells = vec![
        view.namespace.clone(),
        view.name.clone(),
        view.ready.clone(),
        view.status.clone(),
        provider,
        or_none(&view.remote_namespace),
        or_none(&view.node),
        view.created.map_or_else(|| NONE.to_owned(), |at| age::text(now.duration_since(at))),
    ];
    if wide {
        cells.extend([view.restarts.to_string(), or_none(&view.ip), or_none(&view.virtual_node)]);
    }
    let why = or_none(&view.why).replace(['\n', '\r', '\t'], " ");
    cells.push(if wide { why } else { shortened(&why) });
    cells
}

/// As much of a sentence as fits beside the rest.
fn shortened(text: &str) -> String {
    if text.chars().count() <= SHORT {
        return text.to_owned();
    }
    text.chars().take(SHORT - 1).chain(['…']).collect()
}
