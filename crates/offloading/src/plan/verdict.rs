//! Which clusters a namespace extends to, and why not to the others.

use liqo_api::NamespaceOffloading;
use liqo_core::names::ClusterId;

use super::View;
use super::namespace::protected;
use crate::selector;

/// Whether a namespace extends to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) required: bool,
    /// One word for programs.
    pub(super) reason: &'static str,
    /// A sentence for people.
    pub(super) message: String,
}

fn no(reason: &'static str, message: impl Into<String>) -> Verdict {
    Verdict { required: false, reason, message: message.into() }
}

/// Whether the namespace of this NamespaceOffloading extends to this cluster.
pub(super) fn verdict(
    view: &View<'_>,
    offloading: Option<&NamespaceOffloading>,
    cluster: &ClusterId,
) -> Verdict {
    let Some(offloading) = offloading else {
        return no("NotOffloaded", "the namespace has no NamespaceOffloading");
    };
    let namespace = offloading.metadata.namespace.as_deref().unwrap_or_default();
    if offloading.metadata.deletion_timestamp.is_some() {
        return no("Deleted", "the NamespaceOffloading is being deleted");
    }
    if let Some(why) = protected(view, namespace) {
        return no("ProtectedNamespace", why);
    }
    let selector = offloading.spec.cluster_selector.as_ref();
    if let Err(error) = selector::check(selector) {
        return no("InvalidSelector", format!("the clusterSelector is not valid: {error}"));
    }
    if view.index.peers.get(cluster).is_some_and(|peer| peer.ending) {
        return no("ContractEnding", "the contract with this cluster is being ended");
    }
    let mut others = Vec::new();
    for (name, node) in view.index.nodes_of(cluster) {
        if selector::selects(selector, node.view(name)) {
            let message = format!("its virtual node {name} is selected");
            return Verdict { required: true, reason: "ClusterSelected", message };
        }
        others.push(format!("{name} does not match: {}", selector::unmet(selector, node.view(name))));
    }
    if others.is_empty() {
        return no("NoVirtualNode", "no virtual node stands for this cluster");
    }
    no(
        "NotSelected",
        format!("the clusterSelector does not select it; its virtual node {}", others.join(", ")),
    )
}
