//! Pools of nodes. Lists of lists: patterns instead of rules, whose cost an API server would multiply and refuse.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{
    label,
    limits::{MAX_LABEL, MAX_POOL_LABELS, MAX_QUALIFIED_NAME, MAX_QUANTITY, MAX_RESOURCES},
    resources::{LABEL_VALUE, QUALIFIED_NAME},
};

/// Requirements of a pool's selector, and values of one of them.
const MAX_REQUIREMENTS: u32 = 4;
const MAX_VALUES: u32 = 16;

/// The name of a pool.
pub(crate) fn name(_: &mut SchemaGenerator) -> Schema {
    label("a pool name")
}

/// What a pool has.
pub(crate) fn amounts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": MAX_RESOURCES,
        "additionalProperties": { "x-kubernetes-int-or-string": true, "maxLength": MAX_QUANTITY },
    })
}

/// The largest pods that fit into a pool.
pub(crate) fn largest_pod(generator: &mut SchemaGenerator) -> Schema {
    let described = |text: &str, mut amounts: Schema| {
        amounts.insert("description".to_owned(), json!(text));
        amounts
    };
    let on_one_node = "What one pod can have as a whole, on the roomiest node.";
    let of_each = "The most of each resource alone that any one node has.";
    json_schema!({
        "type": "object",
        "properties": {
            "onOneNode": described(on_one_node, amounts(generator)),
            "ofEach": described(of_each, amounts(generator)),
        },
    })
}

/// Labels of a pool's nodes at other clusters.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "maxProperties": MAX_POOL_LABELS, "additionalProperties": value() })
}

/// The nodes of a pool.
pub(crate) fn selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "type": "object",
                "description": "Labels that must have exactly these values.",
                "maxProperties": MAX_REQUIREMENTS,
                "additionalProperties": value(),
            },
            "matchExpressions": {
                "type": "array",
                "description": "Further requirements; all must hold.",
                "maxItems": MAX_REQUIREMENTS,
                "x-kubernetes-list-type": "atomic",
                "items": requirement(),
            },
        },
    })
}

fn requirement() -> Value {
    json!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {
                "type": "string",
                "description": "The key of the label.",
                "maxLength": MAX_QUALIFIED_NAME,
                "pattern": format!("^{QUALIFIED_NAME}$"),
            },
            "operator": {
                "type": "string",
                "description": "How the label's value relates to the values.",
                "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
            },
            "values": {
                "type": "array",
                "description": "The values to compare with.",
                "maxItems": MAX_VALUES,
                "x-kubernetes-list-type": "atomic",
                "items": value(),
            },
        },
    })
}

fn value() -> Value {
    json!({ "type": "string", "maxLength": MAX_LABEL, "pattern": format!("^{LABEL_VALUE}$") })
}
