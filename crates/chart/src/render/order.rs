//! The order in which Helm installs.

use serde_json::Value as Json;

/// Kinds that others need come first. What is not listed comes last, by the name of its kind.
const KINDS: [&str; 36] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// Sorts objects by kind; those of one kind stay as they are.
pub(super) fn sort(objects: &mut [Json]) {
    objects.sort_by(|one, other| place(one).cmp(&place(other)));
}

fn place(object: &Json) -> (usize, &str) {
    let kind = object.get("kind").and_then(Json::as_str).unwrap_or_default();
    match KINDS.iter().position(|known| *known == kind) {
        Some(at) => (at, ""),
        None => (KINDS.len(), kind),
    }
}
