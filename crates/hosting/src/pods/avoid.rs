//! Nodes that a consumer asks to leave out: it found out that they are dead before our scheduler did.
//!
//! Nothing else is heard of what it says about nodes. Leaving out is all that it can do this way: pods still run only where
//! the policy has them run.

use k8s_openapi::api::core::v1::{Affinity, NodeSelectorRequirement, NodeSelectorTerm};

use super::translate::on_nodes;

#[cfg(test)]
mod tests;

/// The field by which a node is left out.
const NAME: &str = "metadata.name";
const NOT_IN: &str = "NotIn";
/// How many are left out at most: more at once are not dead nodes but a choice.
const MOST: usize = 32;
/// The longest name that a node can have.
const LONGEST: usize = 253;

/// The nodes that a pod should not run on: those that every term of its affinity leaves out by name.
pub(super) fn nodes(asked: Option<&Affinity>) -> Vec<String> {
    let required = asked.and_then(|it| it.node_affinity.as_ref());
    let required = required.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_ref());
    let mut terms = required.into_iter().flat_map(|it| &it.node_selector_terms).map(left_out);
    let mut avoided = terms.next().unwrap_or_default();
    terms.for_each(|other| avoided.retain(|name| other.contains(name)));
    avoided.truncate(MOST);
    avoided
}

fn left_out(term: &NodeSelectorTerm) -> Vec<String> {
    let by_name = |it: &&NodeSelectorRequirement| it.key == NAME && it.operator == NOT_IN;
    let fields = term.match_fields.iter().flatten().filter(by_name);
    let names = fields.filter_map(|it| it.values.as_deref()).flatten();
    names.filter(|name| !name.is_empty() && name.len() <= LONGEST).cloned().collect()
}

/// Where a pod runs, these nodes left out.
pub(super) fn leave_out(affinity: Option<Affinity>, avoided: Vec<String>) -> Option<Affinity> {
    if avoided.is_empty() {
        return affinity;
    }
    // Kubernetes takes one name in each requirement.
    let one = |name| NodeSelectorRequirement {
        key: NAME.to_owned(),
        operator: NOT_IN.to_owned(),
        values: Some(vec![name]),
    };
    let requirements: Vec<_> = avoided.into_iter().map(one).collect();
    let mut affinity = affinity.unwrap_or_else(|| on_nodes(vec![NodeSelectorTerm::default()]));
    let required = affinity.node_affinity.as_mut();
    let required = required.and_then(|it| it.required_during_scheduling_ignored_during_execution.as_mut());
    for term in required.into_iter().flat_map(|it| &mut it.node_selector_terms) {
        term.match_fields.get_or_insert_default().extend(requirements.iter().cloned());
    }
    Some(affinity)
}
