//! What policies, offers and contracts consist of: prices, times, promises and signatures.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;

use super::{
    limits::{
        FINGERPRINT, MAX_CONDITION_REASON, MAX_CURRENCIES, MAX_CURRENCY, MAX_HASH_NAME, MAX_LABEL,
        MAX_PATTERN, MAX_PATTERNS, MAX_PEERS, MAX_POLICY_PEERS, MAX_PROMISE, MAX_PROMISES, MAX_SENTENCE,
        MAX_SEQUENCE, MAX_SIGNATURE_NAME, MAX_SPAN, MAX_TERMS, MAX_TIME_ZONE, SIGNATURE,
    },
    map, resources, rule, text,
};

/// Whole numbers with units, of which one is more than zero.
const SPAN: &str = "([0-9]{1,10}[wdhms]){1,5}";
const TIME_OF_DAY: &str = "([01][0-9]|2[0-3]):[0-5][0-9]";

/// A length of time.
pub(crate) fn span(_: &mut SchemaGenerator) -> Schema {
    let message = "must be a length of time that is more than none, in whole numbers with units: 30s, 90m, 1h30m, 30d or 2w";
    text(MAX_SPAN, [rule(format!("self.matches('^{SPAN}$') && self.matches('[1-9]')"), message)])
}

/// What a price is for.
pub(crate) fn period(_: &mut SchemaGenerator) -> Schema {
    let message = "must be Hourly, Daily, Weekly, Monthly, Yearly or a length of time such as 15m";
    let named = "self.matches('^(?i:hourly|daily|weekly|monthly|yearly)$')";
    let length = format!("self.matches('^{SPAN}$') && self.matches('[1-9]')");
    text(MAX_SPAN, [rule(format!("{named} || ({length})"), message)])
}

/// A currency.
pub(crate) fn currency(_: &mut SchemaGenerator) -> Schema {
    let message =
        "a currency consists of 3 to 12 capital letters or digits and begins with a letter, such as EUR";
    text(MAX_CURRENCY, [rule("self.matches('^[A-Z][A-Z0-9]{2,11}$')", message)])
}

/// Currencies, each once.
pub(crate) fn currencies(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_CURRENCIES,
        "x-kubernetes-list-type": "set",
        "items": currency(generator),
    })
}

/// How many times capacity is sold.
pub(crate) fn overcommit(_: &mut SchemaGenerator) -> Schema {
    let shape = "string(self).matches('^([0-9]{1,3}([.][0-9]{1,3})?|[0-9]{1,6}m)$')";
    let size = "quantity(string(self)).isGreaterThan(quantity('0')) && \
                !quantity(string(self)).isGreaterThan(quantity('100'))";
    let message = "must be more than 0 and at most 100, with at most three decimals, such as 1.5";
    let mut schema =
        json_schema!({ "x-kubernetes-int-or-string": true, "maxLength": super::limits::MAX_QUANTITY });
    schema
        .insert("x-kubernetes-validations".to_owned(), json!([rule(format!("{shape} && {size}"), message)]));
    schema
}

/// Hundredths.
pub(crate) fn percentage(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int32", "minimum": 0, "maximum": 100 })
}

/// Names and patterns.
pub(crate) fn patterns(_: &mut SchemaGenerator) -> Schema {
    let message = "a name or pattern consists of visible ASCII characters, such as cpu, nvidia.com/* or *";
    json_schema!({
        "type": "array",
        "maxItems": MAX_PATTERNS,
        "x-kubernetes-list-type": "atomic",
        "items": text(MAX_PATTERN, [rule("self.matches('^[!-~]+$')", message)]),
    })
}

/// Custom resources, each as `resource.group`. Atomic, as an empty list means none, and server-side apply would drop an empty
/// set.
pub(crate) fn custom_kinds(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_PATTERNS,
        "x-kubernetes-list-type": "atomic",
        "items": { "type": "string", "maxLength": MAX_PATTERN, "pattern": r"^[a-z]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$" },
    })
}

/// Names and patterns, at least one.
pub(crate) fn some_patterns(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = patterns(generator);
    let message = "shares nothing: name resources, or leave it out to share all";
    schema.insert("x-kubernetes-validations".to_owned(), json!([rule("size(self) > 0", message)]));
    schema
}

/// Something for each of some resources, described by `T`.
pub(crate) fn shares<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let share = T::json_schema(generator);
    resources::by_resource(share)
}

/// Cluster IDs, each once.
pub(crate) fn cluster_ids(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_PEERS,
        "x-kubernetes-list-type": "set",
        "items": super::cluster_id(generator),
    })
}

/// Names of clusters, for people.
pub(crate) fn cluster_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": MAX_POLICY_PEERS,
        "x-kubernetes-list-type": "atomic",
        "items": { "type": "string", "maxLength": MAX_LABEL },
    })
}

/// Days of the week, each once.
pub(crate) fn days(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 7,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "enum": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"] },
    })
}

/// When a window opens.
pub(crate) fn opening_time(_: &mut SchemaGenerator) -> Schema {
    let message = "must be a time of day, such as 08:00 or 20:30";
    text(MAX_SPAN, [rule(format!("self.matches('^{TIME_OF_DAY}$')"), message)])
}

/// When a window closes.
pub(crate) fn closing_time(_: &mut SchemaGenerator) -> Schema {
    let message = "must be a time of day, such as 08:00 or 24:00";
    text(MAX_SPAN, [rule(format!("self.matches('^({TIME_OF_DAY}|24:00)$')"), message)])
}

/// A time zone of the IANA database.
pub(crate) fn time_zone(_: &mut SchemaGenerator) -> Schema {
    let message = "must be a time zone such as UTC or Europe/Rome";
    text(MAX_TIME_ZONE, [rule("self.matches('^[A-Za-z][A-Za-z0-9_+/-]*$')", message)])
}

/// Promises by name.
pub(crate) fn service_level(_: &mut SchemaGenerator) -> Schema {
    let keys = rule(
        format!("self.all(name, size(name) <= {MAX_LABEL} && name.matches('^[A-Za-z0-9._-]+$'))"),
        "the keys must be 1 to 63 letters, digits, '-', '_' and '.', such as availability",
    );
    let control = rule("!self.matches('[[:cntrl:]]')", "must not have control characters");
    map(MAX_PROMISES, text(MAX_PROMISE, [control]), [keys])
}

/// The canonical text of a contract's terms.
pub(crate) fn terms(_: &mut SchemaGenerator) -> Schema {
    let message = "must be the canonical JSON of the terms, one object";
    text(MAX_TERMS, [rule("self.startsWith('{') && self.endsWith('}')", message)])
}

/// A signature.
pub(crate) fn signature(_: &mut SchemaGenerator) -> Schema {
    let message = "must be an Ed25519 signature, written as ed25519: and 128 lower-case hex digits";
    text(
        SIGNATURE + MAX_SIGNATURE_NAME,
        [rule(format!("self.matches('^ed25519:[0-9a-f]{{{SIGNATURE}}}$')"), message)],
    )
}

/// A digest.
pub(crate) fn digest(_: &mut SchemaGenerator) -> Schema {
    let message = "must be a SHA-256, written as sha256: and 64 lower-case hex digits";
    text(
        FINGERPRINT + MAX_HASH_NAME,
        [rule(format!("self.matches('^sha256:[0-9a-f]{{{FINGERPRINT}}}$')"), message)],
    )
}

/// The number of an amendment.
pub(crate) fn sequence(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_SEQUENCE })
}

/// A cause in one word.
pub(crate) fn reason(_: &mut SchemaGenerator) -> Schema {
    let message = "must be one word for programs, such as Withdrawn";
    text(MAX_CONDITION_REASON, [rule("self.matches('^[A-Za-z][A-Za-z0-9_]*$')", message)])
}

/// What a person reads.
pub(crate) fn sentence(_: &mut SchemaGenerator) -> Schema {
    text(MAX_SENTENCE, [])
}
