//! The node selector, with the rules that Kubernetes has for it in pods.
//!
//! A selector that Kubernetes itself would refuse must not be stored: it would match nothing, silently.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{
    described,
    limits::{
        MAX_LABEL, MAX_NODE_VALUES, MAX_POLICY_REQUIREMENTS, MAX_QUALIFIED_NAME, MAX_SELECTOR_REQUIREMENTS,
        MAX_SELECTOR_TERMS, MAX_SELECTOR_VALUES, MAX_SUBDOMAIN,
    },
    resources::{LABEL_VALUE, QUALIFIED_NAME},
    rule,
};

/// A core/v1 NodeSelector.
pub(crate) fn node_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "nodeSelectorTerms": {
                "type": "array",
                "description": "A node matches if one of the terms matches.",
                "maxItems": MAX_SELECTOR_TERMS,
                "x-kubernetes-list-type": "atomic",
                "items": term(),
            },
        },
    })
}

fn term() -> Value {
    json!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": requirements("Requirements on the node's labels; all must hold.", &label_requirement(&[
                "In",
                "NotIn",
                "Exists",
                "DoesNotExist",
                "Gt",
                "Lt",
            ], MAX_SELECTOR_VALUES)),
            "matchFields": requirements("Requirements on the node's fields; all must hold.", &field_requirement()),
        },
        "x-kubernetes-validations": [rule(
            "(has(self.matchExpressions) && size(self.matchExpressions) > 0) || \
             (has(self.matchFields) && size(self.matchFields) > 0)",
            "a term without requirements matches no cluster: put them under matchExpressions, or remove the term",
        )],
    })
}

fn requirements(description: &str, requirement: &Value) -> Value {
    json!({
        "type": "array",
        "description": description,
        "maxItems": MAX_SELECTOR_REQUIREMENTS,
        "x-kubernetes-list-type": "atomic",
        "items": requirement,
    })
}

/// Requirements on labels, as in a metav1.LabelSelector.
pub(crate) fn match_expressions(_: &mut SchemaGenerator) -> Schema {
    expressions(MAX_SELECTOR_VALUES)
}

fn expressions(most_values: u32) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_POLICY_REQUIREMENTS,
        "x-kubernetes-list-type": "atomic",
        "items": label_requirement(&["In", "NotIn", "Exists", "DoesNotExist"], most_values),
    })
}

/// A metav1.LabelSelector.
pub(crate) fn label_selector(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": described(
                super::resources::match_labels(generator),
                "Labels that must have exactly these values.",
            ),
            "matchExpressions": described(expressions(MAX_NODE_VALUES), "Further requirements; all must hold."),
        },
    })
}

fn label_requirement(operators: &[&str], most_values: u32) -> Value {
    let key =
        rule(format!("self.matches('^{QUALIFIED_NAME}$')"), "must be a label key, such as liqo.io/type");
    let value = rule(
        format!("self.matches('^{LABEL_VALUE}$')"),
        "must be a label value: at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
    );
    json!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": {
                "type": "string",
                "description": "The key of the label.",
                "maxLength": MAX_QUALIFIED_NAME,
                "x-kubernetes-validations": [key],
            },
            "operator": {
                "type": "string",
                "description": "How the label's value relates to the values.",
                "enum": operators,
            },
            "values": values(MAX_LABEL, most_values, &value),
        },
        "x-kubernetes-validations": [
            rule(
                "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
                "the operators In and NotIn need at least one value",
            ),
            rule(
                "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",
                "the operators Exists and DoesNotExist take no values",
            ),
            rule(
                "!(self.operator in ['Gt', 'Lt']) || (has(self.values) && size(self.values) == 1 && \
                 self.values[0].matches('^[0-9]{1,18}$'))",
                "the operators Gt and Lt need exactly one value, a whole number that is not negative",
            ),
        ],
    })
}

fn field_requirement() -> Value {
    let name = rule("size(self) > 0", "must be the name of a node");
    json!({
        "type": "object",
        "required": ["key", "operator"],
        "properties": {
            "key": { "type": "string", "description": "The field.", "enum": ["metadata.name"] },
            "operator": {
                "type": "string",
                "description": "How the field relates to the value.",
                "enum": ["In", "NotIn"],
            },
            "values": values(MAX_SUBDOMAIN, MAX_SELECTOR_VALUES, &name),
        },
        "x-kubernetes-validations": [rule(
            "has(self.values) && size(self.values) == 1",
            "a requirement on metadata.name needs exactly one value",
        )],
    })
}

fn values(max_length: u32, most: u32, value_rule: &Value) -> Value {
    json!({
        "type": "array",
        "description": "The values to compare with.",
        "maxItems": most,
        "x-kubernetes-list-type": "atomic",
        "items": { "type": "string", "maxLength": max_length, "x-kubernetes-validations": [value_rule] },
    })
}
