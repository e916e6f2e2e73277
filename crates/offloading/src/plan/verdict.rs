//! Which clusters a namespace extends to, and why not to the others.

use liqo_api::NamespaceOffloading;
use liqo_core::names::ClusterId;

use super::View;
use super::namespace::refused;
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
    if offloading.metadata.deletion_timestamp.is_some() {
        return no("Deleted", "the NamespaceOffloading is being deleted");
    }
    if let Some(why) = refused(view, offloading) {
        return no("ProtectedNamespace", why);
    }
    let selector = offloading.spec.cluster_selector.as_ref();
    if let Err(error) = selector::check(selector) {
        return no("InvalidSelector", format!("the clusterSelector is not valid: {error}"));
    }
    if view.index.peers.get(cluster).is_some_and(|peer| peer.ending) {
        return no("ContractEnding", "the contract with this cluster is being ended");
    }
    let (mut chosen, mut others) = (Vec::new(), Vec::new());
    for (name, node) in view.index.nodes_of(cluster) {
        if selector::selects(selector, node.view(name)) {
            chosen.push(name);
        } else {
            others.push(format!("{name} does not match: {}", selector::unmet(selector, node.view(name))));
        }
    }
    if !chosen.is_empty() {
        let (nodes, are) = if chosen.len() == 1 { ("node", "is") } else { ("nodes", "are") };
        let but = if others.is_empty() { String::new() } else { format!(", but {}", others.join(", ")) };
        let message = format!("its virtual {nodes} {} {are} selected{but}", chosen.join(", "));
        return Verdict { required: true, reason: "ClusterSelected", message };
    }
    if others.is_empty() {
        return no("NoVirtualNode", "no virtual node stands for this cluster");
    }
    no(
        "NotSelected",
        format!("the clusterSelector does not select it; its virtual node {}", others.join(", ")),
    )
}
