//! Nodes in short: a whole Node lists every image it has.

use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

pub(super) fn summary(node: &Node) -> Value {
    let status = node.status.clone().unwrap_or_default();
    let spec = node.spec.clone().unwrap_or_default();
    let info = status.node_info.map(|info| {
        json!({
            "kubelet": info.kubelet_version, "runtime": info.container_runtime_version, "kernel": info.kernel_version,
            "system": info.os_image, "architecture": info.architecture,
        })
    });
    let conditions = status.conditions.unwrap_or_default();
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|it| json!({"type": it.type_, "status": it.status, "reason": it.reason, "message": it.message}))
        .collect();
    json!({
        "name": node.metadata.name, "labels": node.metadata.labels, "info": info, "taints": spec.taints,
        "unschedulable": spec.unschedulable, "podCIDRs": spec.pod_cidrs, "capacity": status.capacity,
        "allocatable": status.allocatable, "conditions": conditions,
    })
}
