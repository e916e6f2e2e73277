//! The pieces that the kinds' schemas are made of.
//!
//! What a field means is written once, with its rule and the words a person reads when the rule refuses a value.
//! Everything is bounded: texts in length, lists and maps in number. That keeps what a stranger may make us store
//! small, and it is what lets the API server calculate that evaluating the rules stays cheap.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

pub(crate) mod limits;
pub(crate) mod network;
pub(crate) mod pools;
pub(crate) mod resources;
pub(crate) mod rules;
pub(crate) mod selector;
pub(crate) mod sharing;

use limits::{
    FINGERPRINT, MAX_CA_BUNDLE, MAX_CAPABILITIES, MAX_CONDITION_MESSAGE, MAX_CONDITION_REASON,
    MAX_CONDITION_TYPE, MAX_CONDITIONS, MAX_HASH_NAME, MAX_LABEL, MAX_NAMESPACES, MAX_PUBLIC_KEY,
    MAX_SUBDOMAIN, MAX_TIME, MAX_TTL_SECONDS, MAX_VERSION,
};

const DNS_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// A CEL rule and what a person is told when it refuses.
fn rule(rule: impl Into<String>, message: impl Into<String>) -> Value {
    json!({ "rule": rule.into(), "message": message.into() })
}

/// A text of bounded length that satisfies `rules`.
fn text(max_length: u32, rules: impl Into<Vec<Value>>) -> Schema {
    let rules: Vec<Value> = rules.into();
    let mut schema = json_schema!({ "type": "string", "maxLength": max_length });
    if !rules.is_empty() {
        schema.insert("x-kubernetes-validations".to_owned(), Value::Array(rules));
    }
    schema
}

/// A map of at most `max` entries.
fn map(max: u32, values: Schema, rules: impl Into<Vec<Value>>) -> Schema {
    let rules: Vec<Value> = rules.into();
    let mut schema =
        json_schema!({ "type": "object", "maxProperties": max, "additionalProperties": values.to_value() });
    if !rules.is_empty() {
        schema.insert("x-kubernetes-validations".to_owned(), Value::Array(rules));
    }
    schema
}

/// A DNS label; `what` begins the message.
fn label(what: &str) -> Schema {
    let message = format!(
        "{what} consists of at most 63 lower-case letters, digits and '-', and begins and ends with a letter or digit"
    );
    text(MAX_LABEL, [rule(format!("self.matches('^{DNS_LABEL}$')"), message)])
}

pub(crate) fn cluster_id(_: &mut SchemaGenerator) -> Schema {
    label("a cluster ID is a UUID or another text that")
}

pub(crate) fn cluster_name(_: &mut SchemaGenerator) -> Schema {
    label("a cluster name")
}

pub(crate) fn namespace_name(_: &mut SchemaGenerator) -> Schema {
    label("a namespace name")
}

pub(crate) fn service_name(_: &mut SchemaGenerator) -> Schema {
    label("a service name")
}

/// A name of an object that is no namespace, such as a storage class.
pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    let message = "an object's name consists of at most 253 lower-case letters, digits, '-' and '.', and each of its \
                   parts begins and ends with a letter or digit";
    text(MAX_SUBDOMAIN, [rule(format!("self.matches('^{DNS_LABEL}([.]{DNS_LABEL})*$')"), message)])
}

/// A public key.
pub(crate) fn public_key(_: &mut SchemaGenerator) -> Schema {
    let rule =
        rule("self.startsWith('-----BEGIN PUBLIC KEY-----')", "a public key is PEM of the type PUBLIC KEY");
    text(MAX_PUBLIC_KEY, [rule])
}

/// The SHA-256 by which people compare keys.
pub(crate) fn fingerprint(_: &mut SchemaGenerator) -> Schema {
    let rule = rule(
        format!("self.matches('^[0-9a-f]{{{FINGERPRINT}}}$')"),
        "a fingerprint is a SHA-256 in 64 lower-case hex digits",
    );
    text(FINGERPRINT, [rule])
}

/// The SHA-256 of a certificate, as an add command or a TXT record carries it.
pub(crate) fn certificate_fingerprint(_: &mut SchemaGenerator) -> Schema {
    let rule = rule(
        format!("self.matches('^sha256:[0-9a-f]{{{FINGERPRINT}}}$')"),
        "must be the SHA-256 of a certificate, written as sha256: and 64 lower-case hex digits",
    );
    text(FINGERPRINT + MAX_HASH_NAME, [rule])
}

/// The authorities that vouch for a server, as certificates in PEM. What is between the marks is read by whoever uses it.
pub(crate) fn ca_bundle(_: &mut SchemaGenerator) -> Schema {
    let certificates = rule(
        "self.contains('-----BEGIN CERTIFICATE-----') && self.contains('-----END CERTIFICATE-----')",
        "must be certificates in PEM, with -----BEGIN CERTIFICATE----- before each; what a Secret holds in base64 must be \
         decoded first",
    );
    let keys = rule(
        "!self.contains('PRIVATE KEY-----')",
        "must hold certificates only: a private key in it could be read by whoever reads ForeignClusters",
    );
    text(MAX_CA_BUNDLE, [certificates, keys])
}

/// The version of a program.
pub(crate) fn version(_: &mut SchemaGenerator) -> Schema {
    text(MAX_VERSION, [])
}

/// Things that a version of the program can do, each once.
pub(crate) fn capabilities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_CAPABILITIES,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "maxLength": MAX_LABEL },
    })
}

/// A DNS domain to search.
pub(crate) fn domain(_: &mut SchemaGenerator) -> Schema {
    let message = "must be a DNS domain in lower case without the final dot, such as liqo.example.com";
    let labels = format!("self.matches('^{DNS_LABEL}([.]{DNS_LABEL})*$')");
    let lengths = "self.split('.').all(label, size(label) <= 63)";
    text(MAX_SUBDOMAIN, [rule(format!("{labels} && {lengths} && !self.matches('^[0-9.]+$')"), message)])
}

/// Something for each of a consumer's namespaces, by their names.
pub(crate) fn namespace_map(values: Schema) -> Schema {
    let keys = rule(
        format!("self.all(name, size(name) <= {MAX_LABEL} && name.matches('^{DNS_LABEL}$'))"),
        "the keys must be namespace names: at most 63 lower-case letters, digits and '-'",
    );
    let kept = rule(
        "self.all(name, !(name in oldSelf) || self[name] == oldSelf[name])",
        "the remote name of a mapped namespace cannot change: remove the entry first",
    );
    map(MAX_NAMESPACES, values, [keys, kept])
}

/// A moment.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "format": "date-time", "maxLength": MAX_TIME })
}

/// Seconds for which something stays valid.
pub(crate) fn ttl(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_TTL_SECONDS })
}

/// The generation of the object that a statement is about.
pub(crate) fn generation(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0 })
}

/// A number that is not negative.
pub(crate) fn count(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0 })
}

/// The machine-readable cause in a condition.
pub(crate) fn condition_reason(_: &mut SchemaGenerator) -> Schema {
    text(MAX_CONDITION_REASON, [])
}

/// What a person reads in a condition.
pub(crate) fn condition_message(_: &mut SchemaGenerator) -> Schema {
    text(MAX_CONDITION_MESSAGE, [])
}

/// Kubernetes-style conditions, at most one of each type.
pub(crate) fn conditions(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_CONDITIONS,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the object's state.",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": { "type": "string", "maxLength": MAX_CONDITION_TYPE, "description": "The aspect." },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether it holds.",
                },
                "reason": described(condition_reason(generator), "Why, as one word for programs."),
                "message": described(condition_message(generator), "Why, as a sentence for people."),
                "lastTransitionTime": described(time(generator), "When the status last changed."),
                "observedGeneration": described(
                    generation(generator),
                    "The metadata.generation that this was found out about.",
                ),
            },
        },
    })
}

/// `schema` with a description, as `kubectl explain` shows it.
fn described(mut schema: Schema, description: &str) -> Schema {
    schema.insert("description".to_owned(), description.into());
    schema
}
