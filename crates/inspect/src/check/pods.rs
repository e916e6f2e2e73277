//! The pods: running, ready, and not restarted lately.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use liqo_install::finding::Finding;

use super::{World, docs, not_looked_at};
use crate::age;
use crate::pod::{End, PodView};

const READY: &str = "all pods are ready";
/// A restart that is longer ago has been got over.
const LATELY: SignedDuration = SignedDuration::from_mins(10);
/// What a pod wrote at its end may be long; its last words matter.
const MESSAGE_LENGTH: usize = 300;

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let namespace = &world.facts.namespace_name;
    let pods = match &world.facts.pods {
        Ok(pods) => pods.iter().map(PodView::new).collect::<Vec<_>>(),
        Err(why) => return vec![not_looked_at(READY, why)],
    };
    // One that is going, or has ended for good (evicted, done), is not counted on any more.
    let counted = |pod: &&PodView| {
        !matches!(pod.status.as_str(), "Terminating" | "Succeeded" | "Evicted" | "Completed")
    };
    let events = world.facts.events.as_deref().unwrap_or_default();
    let pods: Vec<&PodView> = pods.iter().filter(counted).collect();
    let mut findings: Vec<Finding> =
        pods.iter().filter(|pod| !pod.is_ready()).map(|pod| not_ready(pod, events, namespace)).collect();
    if pods.is_empty() {
        findings.push(none(events, namespace));
    } else if findings.is_empty() {
        findings.push(Finding::ok(READY, format!("{} of {}", pods.len(), pods.len())));
    }
    findings.extend(restarts(&pods, world.hello.now));
    findings
}

fn none(events: &[Event], namespace: &str) -> Finding {
    let refusal = last_warning(events, "ReplicaSet", |name| name.starts_with("liqo-"));
    let why = refusal.map_or_else(|| "there is no pod".to_owned(), |why| format!("there is no pod: {why}"));
    Finding::failed(READY, why)
        .hint(format!("kubectl -n {namespace} get events --field-selector type=Warning"))
        .docs(docs::NO_PODS)
}

fn not_ready(pod: &PodView, events: &[Event], namespace: &str) -> Finding {
    let name = format!("pod {} is ready", pod.name);
    let status = pod.status.as_str();
    let said = last_warning(events, "Pod", |about| about == pod.name);
    let message = if pod.message.is_empty() { said.unwrap_or_default() } else { pod.message.clone() };
    let why = if message.is_empty() { status.to_owned() } else { format!("{status}: {}", shorten(&message)) };
    let image = pod.image.as_deref().unwrap_or("of the pod");
    let (hint, anchor) = match status {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "ErrImageNeverPull"
        | "InvalidImageName"
        | "ImageInspectError"
        | "RegistryUnavailable" => (
            format!(
                "The node cannot get the image {image}: push it to a registry that the node reaches, give it a pull secret, \
                 or load it into the node"
            ),
            docs::IMAGE,
        ),
        "CrashLoopBackOff" | "Error" | "OOMKilled" | "ContainerCannotRun" | "RunContainerError"
        | "StartError" | "Failed" => {
            let why = pod.last_end.as_ref().map(end).unwrap_or_default();
            let hint = format!("{why}See what it said before: liqoctl logs --previous");
            (hint, docs::CRASH)
        }
        "Pending" => {
            let hint = "No node takes it. Make room, or look at taints, node selector and quota";
            (hint.to_owned(), docs::UNSCHEDULED)
        }
        "Running" => {
            let hint = format!(
                "It runs, but says that it is not ready: liqoctl logs, kubectl -n {namespace} describe pod {}",
                pod.name
            );
            (hint, docs::NOT_READY)
        }
        _ => (format!("kubectl -n {namespace} describe pod {}", pod.name), docs::STARTING),
    };
    Finding::failed(name, why).hint(hint).docs(anchor)
}

fn end(end: &End) -> String {
    match end.reason.as_str() {
        "OOMKilled" => {
            "It used more memory than its limit. Raise controllerManager.pod.resources.limits.memory. "
                .to_owned()
        }
        _ if !end.message.is_empty() => {
            format!(
                "It ended with code {} and its last words were: {}\n",
                end.exit_code,
                shorten(&end.message)
            )
        }
        _ => format!("It ended with code {}. ", end.exit_code),
    }
}

fn restarts(pods: &[&PodView], now: Timestamp) -> Option<Finding> {
    const NAME: &str = "no pod was restarted lately";
    let recent: Vec<String> = pods
        .iter()
        .filter(|pod| pod.restarts > 0)
        .filter_map(|pod| {
            let end = pod.last_end.as_ref()?;
            let since = now.duration_since(end.at?);
            let reason = if end.reason.is_empty() { String::new() } else { format!("{}, ", end.reason) };
            (since < LATELY).then(|| {
                format!(
                    "{} {} ago ({reason}exit code {}, {} in all)",
                    pod.name,
                    age::text(since),
                    end.exit_code,
                    pod.restarts
                )
            })
        })
        .collect();
    if pods.is_empty() {
        return None;
    }
    Some(match recent.as_slice() {
        [] => Finding::ok(NAME, ""),
        recent => Finding::warning(NAME, recent.join("; "))
            .hint("See what it said before: liqoctl logs --previous")
            .docs(docs::RESTARTS),
    })
}

/// The newest warning about an object.
fn last_warning(events: &[Event], kind: &str, about: impl Fn(&str) -> bool) -> Option<String> {
    let time = |event: &Event| {
        let last = event.last_timestamp.as_ref().map(|time| time.0);
        last.or(event.event_time.as_ref().map(|time| time.0)).or(event
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0))
    };
    events
        .iter()
        .filter(|event| event.type_.as_deref() == Some("Warning"))
        .filter(|event| event.involved_object.kind.as_deref() == Some(kind))
        .filter(|event| event.involved_object.name.as_deref().is_some_and(&about))
        .max_by_key(|event| time(event))
        .and_then(|event| event.message.clone())
}

/// The end of a long text, on one line.
fn shorten(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let length = line.chars().count();
    if length <= MESSAGE_LENGTH {
        return line;
    }
    format!("…{}", line.chars().skip(length - MESSAGE_LENGTH).collect::<String>())
}
