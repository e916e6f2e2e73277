//! Amounts of resources, labels and images.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::{
    limits::{
        MAX_IMAGE_NAME, MAX_IMAGE_NAMES, MAX_IMAGES, MAX_LABEL, MAX_LABELS, MAX_QUALIFIED_NAME, MAX_QUANTITY,
        MAX_RESOURCES,
    },
    map, rule, text,
};

/// A name with an optional DNS prefix: what Kubernetes allows as a label key or resource name.
pub(super) const QUALIFIED_NAME: &str =
    "([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?";
/// What Kubernetes allows as a label value.
pub(super) const LABEL_VALUE: &str = "([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?";

/// Amounts by resource name, none of them negative.
pub(crate) fn resource_list(_: &mut SchemaGenerator) -> Schema {
    let mut amount = json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": MAX_QUANTITY });
    amount.insert(
        "x-kubernetes-validations".to_owned(),
        vec![rule(
            "isQuantity(string(self)) && !quantity(string(self)).isLessThan(quantity('0'))",
            "must be a quantity that is not negative, such as 500m, 2 or 4Gi",
        )]
        .into(),
    );
    let keys = rule(
        format!("self.all(name, size(name) <= {MAX_QUALIFIED_NAME} && name.matches('^{QUALIFIED_NAME}$'))"),
        "the keys must be resource names, such as cpu, memory or nvidia.com/gpu",
    );
    map(MAX_RESOURCES, amount, [keys])
}

/// Labels for a node.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    let keys = rule(
        format!("self.all(key, size(key) <= {MAX_QUALIFIED_NAME} && key.matches('^{QUALIFIED_NAME}$'))"),
        "the keys must be label keys, such as liqo.io/provider",
    );
    map(MAX_LABELS, label_value(), [keys])
}

/// The value of a label.
fn label_value() -> Schema {
    let message = "a label value consists of at most 63 letters, digits, '-', '_' and '.', and begins and ends with a \
                   letter or digit";
    text(MAX_LABEL, [rule(format!("self.matches('^{LABEL_VALUE}$')"), message)])
}

/// Container images that are already on the provider's nodes.
pub(crate) fn images(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_IMAGES,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "properties": {
                "names": {
                    "type": "array",
                    "description": "Names by which the image is known.",
                    "maxItems": MAX_IMAGE_NAMES,
                    "x-kubernetes-list-type": "atomic",
                    "items": { "type": "string", "maxLength": MAX_IMAGE_NAME },
                },
                "sizeBytes": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The image's size.",
                },
            },
        },
    })
}
