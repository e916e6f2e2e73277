//! ShadowPod: a consumer's pod, kept alive by the provider.

use k8s_openapi::{api::core::v1::PodSpec, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::schema::limits::{MAX_CONTAINERS, MAX_IMAGE_NAME, MAX_LABEL};

/// Condition: the pod could be made. Without it, it could, or nobody has tried yet.
pub const CREATED: &str = "Created";

/// Condition: the pod is as the ShadowPod says now. Without it, it is, or nobody has tried yet.
pub const UP_TO_DATE: &str = "UpToDate";

/// Condition of the pod at the consumer: it was placed at the provider; its message is the name of the node there.
pub const PLACED: &str = "virtualkubelet.liqo.io/placed";

/// The pod to run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "virtualkubelet.liqo.io",
    version = "v1alpha1",
    kind = "ShadowPod",
    plural = "shadowpods",
    namespaced,
    shortname = "shpod",
    category = "liqo",
    status = "ShadowPodStatus",
    derive = "PartialEq",
    doc = "A pod that the provider keeps running for a consumer, also while the consumer cannot be reached.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPodSpec {
    /// The pod's specification, a core/v1 PodSpec. It is checked in full when the pod is created.
    // The schema of a PodSpec is ten times larger than all others here together, and would be a copy that ages.
    #[schemars(schema_with = "pod_spec")]
    pub pod: PodSpec,
}

/// Any object that has containers with names.
fn pod_spec(_: &mut SchemaGenerator) -> Schema {
    let name =
        json!({ "type": "string", "description": "Its name.", "minLength": 1, "maxLength": MAX_LABEL });
    let image = json!({ "type": "string", "description": "Its image.", "maxLength": MAX_IMAGE_NAME });
    let containers = |description: &str| {
        json!({
            "type": "array",
            "description": description,
            "maxItems": MAX_CONTAINERS,
            "items": {
                "type": "object",
                "description": "A core/v1 Container.",
                "x-kubernetes-preserve-unknown-fields": true,
                "required": ["name"],
                "properties": { "name": name, "image": image },
            },
        })
    };
    let mut main = containers("The containers that make up the pod.");
    main["x-kubernetes-validations"] =
        json!([{ "rule": "size(self) > 0", "message": "a pod needs at least one container" }]);
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true,
        "required": ["containers"],
        "properties": {
            "containers": main,
            "initContainers": containers("The containers that run before."),
        },
    })
}

/// What became of the pod.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowPodStatus {
    /// The phase of the pod. A pod that succeeded or failed is not started again, even if its object is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<PodPhase>,

    /// The UID of the pod that this is about: the one that ended, or the last one that vanished.
    #[serde(rename = "podUID", default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = crate::schema::limits::MAX_UID))]
    pub pod_uid: Option<String>,

    /// How often the pod had to be created again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::count")]
    pub recreations: Option<u32>,

    /// Whether the pod could be created, and changed when its specification was; and if not, why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The phases of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum PodPhase {
    /// Accepted, not all containers have started.
    Pending,
    /// At least one container runs.
    Running,
    /// All containers ended well.
    Succeeded,
    /// All containers ended, at least one badly.
    Failed,
    /// The node cannot be asked.
    Unknown,
}
