//! What is wrong with a pod.

use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Node, Pod};

use super::super::Workload;
use super::Trouble;

/// Nodes that are named; with more, the reader looks for himself.
const MOST_NODES: usize = 5;

/// In a word, for the line that says what is waited for.
pub(super) fn state(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let waiting = containers(pod).into_iter().find_map(|one| one.state?.waiting?.reason);
    waiting
        .or(status.reason)
        .or_else(|| unscheduled(pod).map(|_| "Unschedulable".to_owned()))
        .or(status.phase)
        .unwrap_or_else(|| "Pending".into())
}

fn containers(pod: &Pod) -> Vec<ContainerStatus> {
    let status = pod.status.clone().unwrap_or_default();
    let first = status.init_container_statuses.unwrap_or_default();
    first.into_iter().chain(status.container_statuses.unwrap_or_default()).collect()
}

fn name(pod: &Pod) -> String {
    pod.metadata.name.clone().unwrap_or_default()
}

fn condition<'a>(pod: &'a Pod, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|one| one.type_ == kind)?;
    Some((found.status.as_str(), found.message.as_deref().unwrap_or_default()))
}

fn unscheduled(pod: &Pod) -> Option<&str> {
    condition(pod, "PodScheduled").filter(|(status, _)| *status == "False").map(|(_, message)| message)
}

/// What is wrong with it, if anything is.
pub(super) fn trouble(pod: &Pod, workload: &Workload) -> Option<Trouble> {
    let what = format!("pod {}", name(pod));
    let log = workload.logs.iter().find(|(of, _)| *of == name(pod)).map(|(_, text)| text.clone());
    let trouble = evicted(pod, &what)
        .or_else(|| containers(pod).iter().find_map(|one| container(one, &what, workload, pod)))
        .or_else(|| unschedulable(pod, &what, &workload.nodes))
        .or_else(|| unstarted(pod, &what, workload))
        .or_else(|| unready(pod, &what, workload))?;
    Some(Trouble { log: log.filter(|text| !text.trim().is_empty()), ..trouble })
}

fn evicted(pod: &Pod, what: &str) -> Option<Trouble> {
    let status = pod.status.as_ref()?;
    (status.phase.as_deref() == Some("Failed")).then_some(())?;
    let reason = status.reason.clone()?;
    let message = status.message.clone().unwrap_or_default();
    let hint = if message.contains("storage") || message.contains("disk") || message.contains("imagefs") {
        "the node's disk is full: make room on it (unused images: crictl rmi --prune)"
    } else {
        "kubectl describe nodes tells what the node is short of"
    };
    Some(Trouble::new(what, format!("{reason}: {message}"), hint))
}

/// The latest message of an event about this pod, of one of these reasons.
fn event(workload: &Workload, pod: &Pod, reasons: &[&str]) -> Option<String> {
    let about = |event: &&k8s_openapi::api::core::v1::Event| {
        event.involved_object.name == pod.metadata.name
            && event.reason.as_deref().is_some_and(|reason| reasons.contains(&reason))
    };
    workload.events.iter().rfind(about).and_then(|event| event.message.clone())
}

fn container(status: &ContainerStatus, what: &str, workload: &Workload, pod: &Pod) -> Option<Trouble> {
    let state = status.state.clone().unwrap_or_default();
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.as_deref().unwrap_or_default();
        let message = waiting.message.clone().unwrap_or_default();
        return match reason {
            "ErrImagePull"
            | "ImagePullBackOff"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "ImageInspectError"
            | "RegistryUnavailable" => Some(image(status, what, reason, &message, workload, pod)),
            "CrashLoopBackOff" => Some(crash(status, what)),
            "CreateContainerConfigError" | "CreateContainerError" | "RunContainerError" | "StartError" => {
                let hint = if is_full(&message) { FULL_DISK } else { "kubectl describe pod tells more" };
                Some(
                    Trouble::new(what, format!("its container cannot be started: {message}"), hint).lasting(),
                )
            }
            _ => None,
        };
    }
    ended(&state).map(|_| crash(status, what))
}

fn ended(state: &ContainerState) -> Option<&ContainerStateTerminated> {
    state.terminated.as_ref().filter(|ended| ended.exit_code != 0)
}

const FULL_DISK: &str = "the node's disk is full: make room on it (unused images: crictl rmi --prune)";

fn is_full(message: &str) -> bool {
    message.contains("no space left on device") || message.contains("disk quota exceeded")
}

fn image(
    status: &ContainerStatus,
    what: &str,
    reason: &str,
    message: &str,
    workload: &Workload,
    pod: &Pod,
) -> Trouble {
    // A pause between two attempts does not say what went wrong in the last.
    let told = event(workload, pod, &["Failed", "ErrImageNeverPull", "InspectFailed"])
        .filter(|event| event.len() > message.len() && !event.starts_with("Error: "))
        .unwrap_or_else(|| message.to_owned());
    let hint = if is_full(&told) {
        FULL_DISK.to_owned()
    } else {
        "put the image where the nodes find it, see docs/image.md (kind: kind load image-archive; sandbox: liqoctl install \
         sandbox brings it along), or name another with --set image.name=REGISTRY/liqo,image.tag=TAG; a private registry \
         needs image.pullSecrets"
            .to_owned()
    };
    Trouble::new(what, format!("the image {} cannot be pulled ({reason}): {told}", status.image), hint)
        .lasting()
}

fn crash(status: &ContainerStatus, what: &str) -> Trouble {
    let last = status.last_state.as_ref().and_then(|state| state.terminated.clone());
    let ended = status.state.as_ref().and_then(|state| state.terminated.clone()).or(last);
    let times = match status.restart_count {
        0 => String::new(),
        1 => ", once before".to_owned(),
        count => format!(", {count} times before"),
    };
    let Some(ended) = ended else {
        return Trouble::new(
            what,
            format!("its container ends again and again{times}"),
            "liqoctl logs tells more",
        )
        .lasting();
    };
    let reason = ended.reason.clone().unwrap_or_default();
    let (why, hint) = match reason.as_str() {
        "OOMKilled" => (
            format!("its container used more memory than it may and was ended{times}"),
            "give it more with --set controllerManager.pod.resources.limits.memory=512Mi",
        ),
        _ => (
            format!("its container ended with code {}{times}", ended.exit_code),
            "put right what it says; it is started again by itself",
        ),
    };
    let mut trouble = Trouble::new(what, why, hint).lasting();
    trouble.log = ended.message;
    trouble
}

fn unschedulable(pod: &Pod, what: &str, nodes: &[Node]) -> Option<Trouble> {
    let message = format!("{}{}", unscheduled(pod)?, reservations(nodes));
    let hint = if message.contains("disk-pressure") || message.contains("DiskPressure") {
        FULL_DISK
    } else {
        "add a node or make room on one; tolerations and a node selector are values: controllerManager.pod.…"
    };
    Some(Trouble::new(what, format!("no node takes it: {message}"), hint))
}

/// What the scheduler does not name: the taints and troubles of the nodes.
fn reservations(nodes: &[Node]) -> String {
    let told: Vec<String> = nodes.iter().filter_map(reservation).take(MOST_NODES).collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join("; ")) }
}

fn reservation(node: &Node) -> Option<String> {
    let spec = node.spec.iter();
    let taints = spec.flat_map(|spec| spec.taints.iter().flatten()).map(|taint| {
        let value = taint.value.as_deref().filter(|value| !value.is_empty());
        let value = value.map(|value| format!("={value}")).unwrap_or_default();
        format!("taint {}{value}:{}", taint.key, taint.effect)
    });
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let pressed = conditions
        .filter(|one| one.type_.ends_with("Pressure") && one.status == "True")
        .map(|one| format!("{}: {}", one.type_, one.message.as_deref().unwrap_or("no reason given")));
    let all: Vec<String> = taints.chain(pressed).collect();
    let name = node.metadata.name.as_deref().unwrap_or_default();
    (!all.is_empty()).then(|| format!("node {name} has {}", all.join(", ")))
}

/// It has a node, but its containers are not there.
fn unstarted(pod: &Pod, what: &str, workload: &Workload) -> Option<Trouble> {
    if pod.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Pending") {
        return None;
    }
    if condition(pod, "PodScheduled").is_none_or(|(status, _)| status != "True") {
        return Some(Trouble::new(
            what,
            "no scheduler has looked at it",
            "is kube-scheduler running? The log of that program tells more",
        ));
    }
    const FAILURES: [&str; 4] =
        ["FailedCreatePodSandBox", "FailedMount", "FailedAttachVolume", "NetworkNotReady"];
    if let Some(message) = event(workload, pod, &FAILURES) {
        let hint = if is_full(&message) {
            FULL_DISK
        } else {
            "kubectl describe pod and the kubelet's log tell more"
        };
        return Some(Trouble::new(what, format!("it cannot be started: {message}"), hint));
    }
    let pulling =
        event(workload, pod, &["Pulling", "Pulled"]).filter(|message| message.starts_with("Pulling"))?;
    let hint =
        "wait longer with --timeout, or put the image where the nodes find it faster, see docs/image.md";
    Some(Trouble::new(what, format!("its image is not there yet: {pulling}"), hint))
}

/// It runs, but does not say that it works.
fn unready(pod: &Pod, what: &str, workload: &Workload) -> Option<Trouble> {
    let running = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
    let not_ready = condition(pod, "Ready").is_some_and(|(status, _)| status != "True");
    (running && not_ready).then(|| {
        let probe = event(workload, pod, &["Unhealthy"]).map(|text| format!(": {text}")).unwrap_or_default();
        Trouble::new(what, format!("it runs but is not ready{probe}"), "liqoctl logs tells more")
    })
}
