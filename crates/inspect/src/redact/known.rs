//! Values that are known to be secret.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use liqo_api::cluster_config::IDENTITY_SECRET_TYPE;
use liqo_install::names::INSTALLATION_TYPE;

/// Shorter values are words that turn up everywhere: `true`, `admin`, a port.
const SHORTEST: usize = 6;
/// Lines of a longer value that are worth looking for by themselves.
const SHORTEST_LINE: usize = 20;
/// Of a very long value, its beginning is enough to find it.
const LONGEST: usize = 400;
/// Values of our own Secrets that everyone may know. Without this list, the word `installed` would go everywhere.
const PUBLIC: [(&str, &[&str]); 2] = [
    (IDENTITY_SECRET_TYPE, &["cluster-id", "cluster-name", "public-key"]),
    (INSTALLATION_TYPE, &["objects", "revision", "state", "time", "version"]),
];

/// The values of these Secrets, plain and in base64, but not those that are no secret: names that are all over the
/// bundle anyway.
pub(crate) fn secret_values(secrets: &[Secret], public: &BTreeSet<String>) -> Vec<String> {
    let mut values = BTreeSet::new();
    for secret in secrets {
        let listed = PUBLIC.into_iter().find(|(kind, _)| secret.type_.as_deref() == Some(kind));
        let fine = listed.map(|(_, keys)| keys).unwrap_or_default();
        let data = secret.data.iter().flatten();
        data.filter(|(key, _)| !fine.contains(&key.as_str())).for_each(|(_, value)| add(&mut values, value));
    }
    values.retain(|value| !public.contains(value));
    values.into_iter().collect()
}

fn add(values: &mut BTreeSet<String>, value: &ByteString) {
    if value.0.len() < SHORTEST {
        return;
    }
    if let Ok(serde_json::Value::String(encoded)) = serde_json::to_value(value) {
        values.insert(beginning(encoded.trim_end_matches('=')));
    }
    let Ok(text) = std::str::from_utf8(&value.0) else { return };
    values.insert(beginning(text.trim()));
    values.extend(text.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE).map(beginning));
}

fn beginning(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST.min(text.len()))].to_owned()
}

/// The values in the order in which they are to be looked for: the longest first, as one may begin with another.
pub(super) fn in_order(values: &[String]) -> Vec<String> {
    let mut values: Vec<String> = values.iter().filter(|value| value.len() >= SHORTEST).cloned().collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
}
