//! The kinds that are looked at besides our own.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, GroupVersionKind};

use crate::installation::OURS;

/// Where objects of a kind are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the namespace of liqo, all of them.
    Namespace,
    /// In the whole cluster, those with our label.
    Labelled,
    /// In the whole cluster, all of them.
    Everywhere,
}

impl Place {
    pub(super) fn labels(self) -> &'static str {
        if self == Self::Labelled { OURS } else { "" }
    }
}

/// A kind and where to look for it.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    pub(super) resource: ApiResource,
    pub(super) place: Place,
}

const BUILT_IN: [(&str, &str, &str, &str, Place); 22] = [
    ("", "v1", "Namespace", "namespaces", Place::Labelled),
    ("", "v1", "Pod", "pods", Place::Namespace),
    ("", "v1", "Service", "services", Place::Namespace),
    ("", "v1", "ConfigMap", "configmaps", Place::Namespace),
    ("", "v1", "Secret", "secrets", Place::Namespace),
    ("", "v1", "ServiceAccount", "serviceaccounts", Place::Namespace),
    ("", "v1", "Event", "events", Place::Namespace),
    ("", "v1", "ResourceQuota", "resourcequotas", Place::Namespace),
    ("", "v1", "LimitRange", "limitranges", Place::Namespace),
    ("apps", "v1", "Deployment", "deployments", Place::Namespace),
    ("apps", "v1", "ReplicaSet", "replicasets", Place::Namespace),
    ("apps", "v1", "DaemonSet", "daemonsets", Place::Namespace),
    ("coordination.k8s.io", "v1", "Lease", "leases", Place::Namespace),
    ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", Place::Namespace),
    ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", Place::Namespace),
    ("rbac.authorization.k8s.io", "v1", "Role", "roles", Place::Namespace),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", Place::Namespace),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", Place::Labelled),
    ("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", Place::Labelled),
    ("storage.k8s.io", "v1", "StorageClass", "storageclasses", Place::Labelled),
    ("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", Place::Labelled),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "PriorityLevelConfiguration",
        "prioritylevelconfigurations",
        Place::Labelled,
    ),
];

/// Any webhook may stand in the way of ours, so all of them are of interest.
const WEBHOOKS: [(&str, &str, &str, &str, Place); 2] = [
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        Place::Everywhere,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        Place::Everywhere,
    ),
];

pub(super) fn built_in() -> Vec<Kind> {
    let all = BUILT_IN.into_iter().chain(WEBHOOKS);
    all.map(|(group, version, kind, plural, place)| Kind {
        resource: ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural),
        place,
    })
    .collect()
}

/// Our own kinds, as the cluster has them.
pub(super) fn defined(definitions: &[CustomResourceDefinition]) -> Vec<Kind> {
    let resource = |definition: &CustomResourceDefinition| {
        let spec = &definition.spec;
        let version = spec.versions.iter().find(|version| version.served && version.storage);
        let version = version.or_else(|| spec.versions.iter().find(|version| version.served))?;
        let kind = GroupVersionKind::gvk(&spec.group, &version.name, &spec.names.kind);
        Some(ApiResource::from_gvk_with_plural(&kind, &spec.names.plural))
    };
    let resources = definitions.iter().filter_map(resource);
    resources.map(|resource| Kind { resource, place: Place::Everywhere }).collect()
}
