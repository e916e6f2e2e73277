//! What a pod's status says, in the words of `kubectl get pods` and a reason beside it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};

/// What there is to know about a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodView {
    pub(crate) name: String,
    pub(crate) component: String,
    pub(crate) ready: usize,
    pub(crate) containers: usize,
    /// One word: `Running`, `ImagePullBackOff`, `Terminating`, …
    pub(crate) status: String,
    /// Why it is not running, as far as Kubernetes says.
    pub(crate) message: String,
    pub(crate) restarts: i32,
    /// When a container ended last, and why.
    pub(crate) last_end: Option<End>,
    pub(crate) created: Option<Timestamp>,
    pub(crate) node: Option<String>,
    pub(crate) image: Option<String>,
}

/// The end of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) at: Option<Timestamp>,
    pub(crate) reason: String,
    pub(crate) exit_code: i32,
    pub(crate) message: String,
}

impl PodView {
    pub(crate) fn new(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let statuses = status.container_statuses.unwrap_or_default();
        let spec = pod.spec.as_ref();
        let (word, message) = word(pod, &statuses);
        let labels = pod.metadata.labels.as_ref();
        Self {
            name: pod.metadata.name.clone().unwrap_or_default(),
            component: labels
                .and_then(|labels| labels.get("app.kubernetes.io/component"))
                .cloned()
                .unwrap_or_default(),
            ready: statuses.iter().filter(|container| container.ready).count(),
            containers: spec.map_or(statuses.len(), |spec| spec.containers.len()),
            status: word,
            message,
            restarts: statuses.iter().map(|container| container.restart_count).sum(),
            last_end: statuses.iter().filter_map(last_end).max_by_key(|end| end.at),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            node: spec.and_then(|spec| spec.node_name.clone()),
            image: spec.and_then(|spec| spec.containers.first()?.image.clone()),
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.status == "Running" && self.containers > 0 && self.ready == self.containers
    }
}

fn word(pod: &Pod, containers: &[ContainerStatus]) -> (String, String) {
    if pod.metadata.deletion_timestamp.is_some() {
        return ("Terminating".into(), "it is being deleted".into());
    }
    let status = pod.status.clone().unwrap_or_default();
    let waiting = containers.iter().filter_map(|container| container.state.as_ref()).find_map(trouble);
    if let Some(found) = waiting {
        return found;
    }
    if let Some(reason) = status.reason.filter(|reason| !reason.is_empty()) {
        return (reason, status.message.unwrap_or_default());
    }
    let phase = status.phase.unwrap_or_else(|| "Unknown".into());
    let conditions = status.conditions.unwrap_or_default();
    let unscheduled = conditions.iter().find(|it| it.type_ == "PodScheduled" && it.status == "False");
    match unscheduled {
        Some(condition) if phase == "Pending" => (phase, condition.message.clone().unwrap_or_default()),
        _ => (phase, status.message.unwrap_or_default()),
    }
}

/// Containers that wait or have ended say more than the pod's phase.
fn trouble(state: &ContainerState) -> Option<(String, String)> {
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.clone().filter(|reason| !reason.is_empty())?;
        return Some((reason, waiting.message.clone().unwrap_or_default()));
    }
    let ended = state.terminated.as_ref()?;
    let reason = ended.reason.clone().unwrap_or_else(|| format!("ExitCode:{}", ended.exit_code));
    Some((reason, ended.message.clone().unwrap_or_default()))
}

fn last_end(container: &ContainerStatus) -> Option<End> {
    let of = |state: &Option<ContainerState>| state.as_ref().and_then(|state| state.terminated.clone());
    let ended = of(&container.state).or_else(|| of(&container.last_state))?;
    Some(End {
        at: ended.finished_at.map(|time| time.0),
        reason: ended.reason.unwrap_or_default(),
        exit_code: ended.exit_code,
        message: ended.message.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests;
