//! Amounts of resources, labels and images.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::{
    limits::{
        MAX_IMAGE_NAME, MAX_IMAGE_NAMES, MAX_IMAGES, MAX_LABEL, MAX_LABELS, MAX_POLICY_REQUIREMENTS,
        MAX_QUALIFIED_NAME, MAX_QUANTITY, MAX_RESOURCES,
    },
    map, rule, text,
};

/// A name with an optional DNS prefix: what Kubernetes allows as a label key or resource name.
pub(super) const QUALIFIED_NAME: &str =
    "([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?";
/// What Kubernetes allows as a label value.
pub(super) const LABEL_VALUE: &str = "([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?";

/// How amounts are written. The API server's own reading of a quantity calculates powers of ten of any size, so that
/// `1e-999999999` would keep it busy for minutes; nobody needs an exponent beyond 19.
/// It would also read a sign or a point alone as nothing, which nobody means.
const QUANTITY: &str =
    "[+-]?([0-9]{1,19}[.]?[0-9]{0,18}|[.][0-9]{1,18})([numkMGTPE]|[KMGTPE]i|[eE][+-]?1?[0-9])?";

/// Whether a text is an amount.
pub(super) fn is_quantity(text: &str) -> String {
    format!("{text}.matches('^{QUANTITY}$') && isQuantity({text})")
}

/// The most of anything: what a contract can be about. The API server reads `9223372036854775807Ei` as 2^63 - 1, so that a limit
/// there would let pass what nobody can reckon with.
const MOST: &str = "1E";

/// An amount that is not negative, and no more than can be reckoned with.
pub(crate) fn amount(_: &mut SchemaGenerator) -> Schema {
    let shape = is_quantity("string(self)");
    let size = format!(
        "!quantity(string(self)).isLessThan(quantity('0')) && !quantity(string(self)).isGreaterThan(quantity('{MOST}'))"
    );
    let mut amount = json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": MAX_QUANTITY });
    amount.insert(
        "x-kubernetes-validations".to_owned(),
        vec![rule(
            format!("{shape} && {size}"),
            "must be a quantity that is not negative, such as 500m, 2 or 4Gi, and at most 1E (10^18)",
        )]
        .into(),
    );
    amount
}

/// Amounts by resource name, none of them negative.
pub(crate) fn resource_list(generator: &mut SchemaGenerator) -> Schema {
    let amount = amount(generator);
    by_resource(amount)
}

/// Something for each of some resources.
pub(super) fn by_resource(values: Schema) -> Schema {
    let keys = rule(
        format!("self.all(name, size(name) <= {MAX_QUALIFIED_NAME} && name.matches('^{QUALIFIED_NAME}$'))"),
        "the keys must be resource names, such as cpu, memory or nvidia.com/gpu",
    );
    map(MAX_RESOURCES, values, [keys])
}

/// Labels for a node.
pub(crate) fn labels(_: &mut SchemaGenerator) -> Schema {
    let keys = rule(
        format!("self.all(key, size(key) <= {MAX_QUALIFIED_NAME} && key.matches('^{QUALIFIED_NAME}$'))"),
        "the keys must be label keys, such as liqo.io/provider",
    );
    map(MAX_LABELS, label_value(), [keys])
}

/// Labels that something must have.
pub(crate) fn match_labels(_: &mut SchemaGenerator) -> Schema {
    let keys = rule(
        format!("self.all(key, size(key) <= {MAX_QUALIFIED_NAME} && key.matches('^{QUALIFIED_NAME}$'))"),
        "the keys must be label keys, such as liqo.io/provider",
    );
    map(MAX_POLICY_REQUIREMENTS, label_value(), [keys])
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
