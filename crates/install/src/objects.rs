//! Objects by their names, and which of them should be.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::names::{MANAGED_BY, SERVICE};

/// Which object: what it is, where, and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Id {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
    /// Its namespace, if it lives in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl Id {
    /// Reads it from an object; `namespace` is where objects are that do not say.
    pub(crate) fn of(object: &Value, namespace: Option<&str>) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let own = object["metadata"]["namespace"].as_str();
        Self {
            api_version: text(&object["apiVersion"]),
            kind: text(&object["kind"]),
            namespace: namespace.map(|default| own.unwrap_or(default).to_owned()),
            name: text(&object["metadata"]["name"]),
        }
    }

    /// The API group.
    pub(crate) fn group(&self) -> &str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Whether both name the same object, maybe in different versions of its group.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    fn key(&self) -> (&str, &str, Option<&str>, &str) {
        (self.group(), &self.kind, self.namespace.as_deref(), &self.name)
    }
}

/// `Deployment liqo/liqo-controller-manager`.
impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// Whose an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This installation's.
    Ours,
    /// Ours, but installed by Helm.
    Helm,
    /// Somebody else's.
    Foreign,
}

/// Reads it from the labels.
pub(crate) fn owner(labels: Option<&BTreeMap<String, String>>) -> Owner {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).map(String::as_str);
    match (label(liqo_api::labels::PART_OF), label(MANAGED_BY)) {
        (Some(liqo_api::labels::PART_OF_LIQO), Some(crate::names::HELM)) => Owner::Helm,
        (Some(liqo_api::labels::PART_OF_LIQO), _) => Owner::Ours,
        _ => Owner::Foreign,
    }
}

/// The selector of everything that liqoctl installed.
pub(crate) fn installed_selector() -> String {
    format!("{},{MANAGED_BY}={SERVICE}", ours_selector())
}

/// The selector of everything of ours, whoever installed it.
pub(crate) fn ours_selector() -> String {
    format!("{}={}", liqo_api::labels::PART_OF, liqo_api::labels::PART_OF_LIQO)
}

/// What an earlier version made and this one does not: everything that is labelled ours or that the notes of the last
/// installation list, less what is wanted now and what `keep` says is not the chart's.
pub(crate) fn superfluous(
    wanted: &[Id],
    noted: &[Id],
    labelled: &[Id],
    keep: impl Fn(&Id) -> bool,
) -> Vec<Id> {
    let mut seen = BTreeSet::new();
    noted
        .iter()
        .chain(labelled)
        .filter(|id| !wanted.iter().any(|one| one.is_same(id)) && !keep(id))
        .filter(|id| seen.insert(id.key()))
        .cloned()
        .collect()
}

/// Kinds that an older version may have used, besides those that this one uses.
pub(crate) const CHART_KINDS: [(&str, &str); 21] = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "Job"),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("policy/v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
    ("monitoring.coreos.com/v1", "ServiceMonitor"),
    ("storage.k8s.io/v1", "StorageClass"),
];

#[cfg(test)]
mod tests;
