//! The namespace that liqo lives in.

use k8s_openapi::api::core::v1::Namespace;
use liqo_install::finding::Finding;

use super::{World, docs, not_looked_at};

/// The label by which Kubernetes decides which pods a namespace admits.
const ENFORCE: &str = "pod-security.kubernetes.io/enforce";
const LEVELS: [&str; 3] = ["restricted", "baseline", "privileged"];

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let wanted = &world.facts.namespace_name;
    let name = format!("namespace {wanted} is there to stay");
    match &world.facts.namespace {
        Ok(namespace) if is_going(namespace) => vec![
            Finding::failed(name, format!("it is being deleted{}", what_holds_it(namespace)))
                .hint("Wait until it is gone, then run liqoctl install; what holds it up is named above")
                .docs(docs::NAMESPACE),
        ],
        Ok(namespace) => vec![Finding::ok(name, ""), pod_security(namespace, level(world))],
        Err(why) if why.is_absent() => {
            vec![Finding::failed(name, "it does not exist").hint("Run liqoctl install").docs(docs::NAMESPACE)]
        }
        Err(why) => vec![not_looked_at(&name, why)],
    }
}

fn is_going(namespace: &Namespace) -> bool {
    namespace.metadata.deletion_timestamp.is_some()
}

/// The conditions of a namespace that is being deleted say what is still in it.
fn what_holds_it(namespace: &Namespace) -> String {
    let conditions = namespace.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    let holding = conditions.filter(|condition| condition.status == "True");
    let messages: Vec<&str> = holding.filter_map(|condition| condition.message.as_deref()).collect();
    if messages.is_empty() { String::new() } else { format!(": {}", messages.join("; ")) }
}

/// The strictest level at which all pods of liqo start: the local network needs the network of a node.
fn level(world: &World<'_>) -> &'static str {
    if world.facts.discovery.is_ok() { "privileged" } else { "restricted" }
}

fn pod_security(namespace: &Namespace, wanted: &str) -> Finding {
    const NAME: &str = "the namespace has a Pod Security level";
    let level = namespace.metadata.labels.as_ref().and_then(|labels| labels.get(ENFORCE));
    let shown = namespace.metadata.name.as_deref().unwrap_or_default();
    match level {
        Some(level) if LEVELS.contains(&level.as_str()) => Finding::ok(NAME, level.clone()),
        Some(level) => Finding::warning(NAME, format!("{level:?} is no level that Kubernetes knows"))
            .hint(format!("kubectl label namespace {shown} {ENFORCE}={wanted} --overwrite"))
            .docs(docs::POD_SECURITY),
        None => Finding::warning(NAME, "none is set, so any pod may run beside liqo's and its keys")
            .hint(format!("kubectl label namespace {shown} {ENFORCE}={wanted}"))
            .docs(docs::POD_SECURITY),
    }
}
