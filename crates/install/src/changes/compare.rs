//! What differs between two states of an object. Pure.

use serde_json::Value;

/// More differences than this are not read by anybody.
const SHOWN: usize = 20;
/// A longer value is cut.
const LONGEST: usize = 60;

/// The object without what the API server keeps for itself.
pub(crate) fn without_bookkeeping(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"]
        {
            metadata.remove(key);
        }
    }
    object
}

/// What differs, as `path: before → after`. What is in a Secret is not shown.
pub(crate) fn differences(before: &Value, after: &Value) -> Vec<String> {
    let secret = before["kind"] == "Secret" || after["kind"] == "Secret";
    let mut found = Vec::new();
    walk(&without_bookkeeping(before), &without_bookkeeping(after), "", secret, &mut found);
    if found.len() > SHOWN {
        let more = found.len() - SHOWN;
        found.truncate(SHOWN);
        found.push(format!("and {more} more"));
    }
    found
}

/// Whether everything that is wanted is there already; what is there besides does not count.
pub(crate) fn is_part_of(wanted: &Value, there: &Value) -> bool {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => wanted.iter().all(|(key, value)| {
            is_empty(value) || there.get(key).is_some_and(|there| is_part_of(value, there))
        }),
        (Value::Array(wanted), Value::Array(there)) => {
            wanted.len() == there.len() && wanted.iter().zip(there).all(|(a, b)| is_part_of(a, b))
        }
        (wanted, there) => wanted == there,
    }
}

/// The API server leaves out what says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn walk(before: &Value, after: &Value, path: &str, secret: bool, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let nothing = Value::Null;
                walk(
                    old.get(key).unwrap_or(&nothing),
                    new.get(key).unwrap_or(&nothing),
                    &path,
                    secret,
                    found,
                );
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (place, (old, new)) in old.iter().zip(new).enumerate() {
                walk(old, new, &format!("{path}[{place}]"), secret, found);
            }
        }
        (old, new) if old == new => {}
        _ if secret && path.starts_with("data") => found.push(format!("{path}: changed")),
        (old, new) => found.push(format!("{path}: {} → {}", short(old), short(new))),
    }
}

fn short(value: &Value) -> String {
    let text = match value {
        Value::Null => return "nothing".into(),
        value => value.to_string(),
    };
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

#[cfg(test)]
mod tests;
