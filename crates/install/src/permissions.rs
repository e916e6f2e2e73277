//! The rights that installing needs, and which of them the user does not have.

mod ask;
mod snippet;

use std::collections::BTreeSet;
use std::fmt;

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use serde_json::Value;

pub(crate) use ask::{Rights, ask};
pub(crate) use snippet::{Subject, snippet};

use crate::changes::{Action, Planned};

const RBAC: &str = "rbac.authorization.k8s.io";

/// A verb on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Right {
    pub(crate) verb: String,
    pub(crate) group: String,
    /// `pods`, `pods/log`.
    pub(crate) resource: String,
    /// In this namespace; `None` for the whole cluster.
    pub(crate) namespace: Option<String>,
    /// On the object of this name only.
    pub(crate) name: Option<String>,
}

impl Right {
    fn new(verb: &str, group: &str, resource: &str, namespace: Option<&str>) -> Self {
        Self {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: None,
        }
    }

    fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    fn attributes(&self) -> ResourceAttributes {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
            None => (self.resource.as_str(), None),
        };
        ResourceAttributes {
            verb: Some(self.verb.clone()),
            group: Some(self.group.clone()),
            resource: Some(resource.to_owned()),
            subresource,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            ..ResourceAttributes::default()
        }
    }
}

/// `create clusterroles.rbac.authorization.k8s.io`, `get secrets in namespace liqo`.
impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// Everything that an installation does, as rights. `planned` has all objects, those of the API too.
pub(crate) fn needed(planned: &[Planned], namespace: &str) -> Vec<Right> {
    let mut rights = BTreeSet::new();
    for one in planned {
        let resource = &one.kind.resource;
        let place = one.id.namespace.as_deref();
        let verbs: &[&str] = match one.action {
            Action::Remove => &["get", "list", "delete"],
            _ => &["get", "list", "create", "patch"],
        };
        rights.extend(verbs.iter().map(|verb| Right::new(verb, &resource.group, &resource.plural, place)));
    }
    // The notes, and the lock of whoever is at work.
    let here = Some(namespace);
    rights.extend(["get", "create", "patch"].map(|verb| Right::new(verb, "", "secrets", here)));
    rights.extend(
        ["get", "create", "update", "delete"]
            .map(|verb| Right::new(verb, "coordination.k8s.io", "leases", here)),
    );
    rights.insert(Right::new("get", "config.liqo.io", "clusterconfigs", None));
    rights.into_iter().collect()
}

/// What is good to have: without it, some questions of the user get poorer answers.
pub(crate) fn useful(namespace: &str) -> Vec<Right> {
    let here = Some(namespace);
    vec![
        Right::new("list", "", "nodes", None),
        Right::new("list", "", "pods", here),
        Right::new("get", "", "pods/log", here),
        Right::new("list", "", "events", here),
        Right::new("list", "apps", "replicasets", here),
    ]
}

/// The rights that the installation hands out: only who has them may do that, or who may escalate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    /// Hands out anything in this role.
    pub(crate) escalate: Vec<Right>,
    /// Has what the role has.
    pub(crate) own: Vec<Right>,
}

/// What the roles among the objects hand out, role by role, of those that are not there as they should be.
pub(crate) fn granted(planned: &[Planned]) -> Vec<Grant> {
    let changing = planned.iter().filter(|one| matches!(one.action, Action::Create | Action::Change));
    let roles = changing
        .filter(|one| one.id.group() == RBAC && matches!(one.id.kind.as_str(), "ClusterRole" | "Role"));
    roles
        .map(|one| {
            let place = one.id.namespace.as_deref();
            let verb =
                |verb: &str| Right::new(verb, RBAC, &one.kind.resource.plural, place).named(&one.id.name);
            let rules = one.wanted.as_ref().map(|object| &object["rules"]);
            Grant { escalate: vec![verb("escalate"), verb("bind")], own: own(rules, place) }
        })
        .collect()
}

fn own(rules: Option<&Value>, namespace: Option<&str>) -> Vec<Right> {
    let texts = |rule: &Value, key: &str| -> Vec<String> {
        rule[key].as_array().into_iter().flatten().filter_map(|one| one.as_str().map(str::to_owned)).collect()
    };
    let mut rights = Vec::new();
    for rule in rules.and_then(Value::as_array).into_iter().flatten() {
        let names = texts(rule, "resourceNames");
        let names: Vec<Option<&String>> =
            if names.is_empty() { vec![None] } else { names.iter().map(Some).collect() };
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                for verb in texts(rule, "verbs") {
                    let right = |name: Option<&String>| Right {
                        name: name.cloned(),
                        ..Right::new(&verb, &group, &resource, namespace)
                    };
                    rights.extend(names.iter().map(|name| right(*name)));
                }
            }
        }
    }
    rights
}

#[cfg(test)]
mod tests;
