//! Which nodes a node selector means, as Kubernetes' scheduler reads it.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};
use liqo_api::labels;

#[cfg(test)]
mod tests;

/// The only field of a node that selectors know.
const NAME_FIELD: &str = "metadata.name";

/// A node as selectors see it.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
}

/// Why a selector means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct InvalidSelector {
    path: String,
    reason: String,
}

/// Whether a selector for clusters means this node. Without terms it means all of them.
pub fn selects(selector: Option<&NodeSelector>, node: NodeView<'_>) -> bool {
    let terms = terms_of(selector);
    terms.is_empty() || terms.iter().any(|term| term_matches(term, node))
}

/// Why a selector does not mean this node: what the node lacks, term by term.
pub fn unmet(selector: Option<&NodeSelector>, node: NodeView<'_>) -> String {
    let first_unmet = |term: &NodeSelectorTerm| {
        let unmet = requirements(term).find(|requirement| !requirement.is_met_by(node));
        unmet.map_or_else(|| "a term without requirements".to_owned(), |unmet| unmet.to_string())
    };
    let all: Vec<_> = terms_of(selector).iter().map(first_unmet).collect();
    all.join("; ")
}

/// The terms, one of which must match.
pub(crate) fn terms_of(selector: Option<&NodeSelector>) -> &[NodeSelectorTerm] {
    selector.map_or(&[], |selector| selector.node_selector_terms.as_slice())
}

/// Whether a term matches a node. One without requirements matches none.
pub(crate) fn term_matches(term: &NodeSelectorTerm, node: NodeView<'_>) -> bool {
    let mut requirements = requirements(term).peekable();
    requirements.peek().is_some() && requirements.all(|requirement| requirement.is_met_by(node))
}

/// Checks what Kubernetes would refuse in a pod.
///
/// The API server checks a NamespaceOffloading by the same rules; this is for one that got in before they were there.
pub fn check(selector: Option<&NodeSelector>) -> Result<(), InvalidSelector> {
    for (number, term) in terms_of(selector).iter().enumerate() {
        let path = format!("nodeSelectorTerms[{number}]");
        let mut any = false;
        for (kind, list) in
            [("matchExpressions", &term.match_expressions), ("matchFields", &term.match_fields)]
        {
            for (index, requirement) in list.iter().flatten().enumerate() {
                any = true;
                let path = format!("{path}.{kind}[{index}]");
                let checked =
                    if kind == "matchFields" { check_field(requirement) } else { check_label(requirement) };
                checked.map_err(|reason| InvalidSelector { path, reason })?;
            }
        }
        if !any {
            let reason = "a term without requirements matches no cluster".to_owned();
            return Err(InvalidSelector { path, reason });
        }
    }
    Ok(())
}

fn check_label(requirement: &NodeSelectorRequirement) -> Result<(), String> {
    let values = requirement.values.as_deref().unwrap_or_default();
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => {
            Err(format!("the operator {} needs at least one value", requirement.operator))
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            Err(format!("the operator {} takes no values", requirement.operator))
        }
        "Gt" | "Lt" => match values {
            [value] if value.parse::<i64>().is_ok() => Ok(()),
            _ => {
                Err(format!("the operator {} needs exactly one value, a whole number", requirement.operator))
            }
        },
        "In" | "NotIn" | "Exists" | "DoesNotExist" => Ok(()),
        other => Err(format!("{other:?} is no operator: expected In, NotIn, Exists, DoesNotExist, Gt or Lt")),
    }
}

fn check_field(requirement: &NodeSelectorRequirement) -> Result<(), String> {
    if requirement.key != NAME_FIELD {
        return Err(format!("{:?} is no field to select by: expected {NAME_FIELD}", requirement.key));
    }
    match (requirement.operator.as_str(), requirement.values.as_deref()) {
        ("In" | "NotIn", Some([_])) => Ok(()),
        _ => {
            Err(format!("a requirement on {NAME_FIELD} needs the operator In or NotIn and exactly one value"))
        }
    }
}

/// The requirements of a term.
fn requirements(term: &NodeSelectorTerm) -> impl Iterator<Item = Requirement<'_>> {
    let labels = term.match_expressions.iter().flatten().map(|inner| Requirement { inner, of_field: false });
    let fields = term.match_fields.iter().flatten().map(|inner| Requirement { inner, of_field: true });
    labels.chain(fields)
}

struct Requirement<'a> {
    inner: &'a NodeSelectorRequirement,
    of_field: bool,
}

impl Requirement<'_> {
    fn is_met_by(&self, node: NodeView<'_>) -> bool {
        let found = match self.of_field {
            true if self.inner.key == NAME_FIELD => Some(node.name),
            true => None,
            false => node.labels.get(&self.inner.key).map(String::as_str),
        };
        let values = self.inner.values.as_deref().unwrap_or_default();
        let is_in = |found: &str| values.iter().any(|value| value == found);
        match self.inner.operator.as_str() {
            "In" => found.is_some_and(is_in),
            "NotIn" => !found.is_some_and(is_in),
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            "Gt" => compare(found, values).is_some_and(|(found, bound)| found > bound),
            "Lt" => compare(found, values).is_some_and(|(found, bound)| found < bound),
            // What Kubernetes does not know either matches nothing there.
            _ => false,
        }
    }
}

fn compare(found: Option<&str>, values: &[String]) -> Option<(i64, i64)> {
    let [bound] = values else { return None };
    Some((found?.parse().ok()?, bound.parse().ok()?))
}

impl fmt::Display for Requirement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.inner.key, self.inner.values.as_deref().unwrap_or_default());
        match (self.inner.operator.as_str(), values) {
            ("In", [value]) => write!(f, "{key}={value}"),
            ("NotIn", [value]) => write!(f, "{key}!={value}"),
            ("In", values) => write!(f, "{key} in ({})", values.join(",")),
            ("NotIn", values) => write!(f, "{key} not in ({})", values.join(",")),
            ("Exists", _) => write!(f, "{key}"),
            ("DoesNotExist", _) => write!(f, "!{key}"),
            ("Gt", values) => write!(f, "{key} > {}", values.join(",")),
            ("Lt", values) => write!(f, "{key} < {}", values.join(",")),
            (operator, values) => write!(f, "{key} {operator} {}", values.join(",")),
        }
    }
}

/// The requirement that a node is virtual, or that it is not.
pub(crate) fn virtual_node(operator: &str) -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: labels::NODE_TYPE.to_owned(),
        operator: operator.to_owned(),
        values: Some(vec![labels::NODE_TYPE_VIRTUAL.to_owned()]),
    }
}
