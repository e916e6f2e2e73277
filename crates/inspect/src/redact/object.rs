//! Where secrets live in objects.

use k8s_openapi::ByteString;
use serde_json::{Map, Value};

use super::names::is_secret;
use super::{REMOVED, Redactor};

/// Copies of the whole object as somebody once wrote it; all that is in them is elsewhere, too.
const COPIES: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "objectset.rio.cattle.io/applied"];
/// Texts below a field whose name says that it is secret, and which only tell where to find one.
const POINTERS: [&str; 15] = [
    "apiGroup",
    "apiVersion",
    "audience",
    "defaultMode",
    "expirationSeconds",
    "fieldPath",
    "items",
    "key",
    "kind",
    "mode",
    "name",
    "namespace",
    "path",
    "secretName",
    "type",
];

fn removed(bytes: usize) -> Value {
    Value::String(format!("<removed: {bytes} bytes>"))
}

/// A Kubernetes object, or a list of them.
pub(super) fn redact(redactor: &Redactor, object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata") {
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.remove("managedFields");
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.iter_mut().for_each(|(name, value)| annotation(redactor, name, value));
        }
    }
    match object.get("kind").and_then(Value::as_str) {
        Some("Secret") => secret(object),
        Some("ConfigMap") => config_map(redactor, object),
        Some(kind) if kind.ends_with("List") => {
            let items = object.get_mut("items").and_then(Value::as_array_mut);
            items.into_iter().flatten().for_each(|item| redact(redactor, item));
        }
        _ => {}
    }
    fields(redactor, object, Inside::Plain);
}

fn annotation(redactor: &Redactor, name: &str, value: &mut Value) {
    let Some(text) = value.as_str() else { return };
    *value = if COPIES.contains(&name) || is_secret(name) {
        removed(text.len())
    } else {
        Value::String(embedded(redactor, text))
    };
}

fn secret(object: &mut Value) {
    for field in ["data", "stringData"] {
        let Some(values) = object.get_mut(field).and_then(Value::as_object_mut) else { continue };
        for value in values.values_mut() {
            let plain = || value.as_str().map(str::len);
            let decoded = serde_json::from_value::<ByteString>(value.clone()).ok().map(|bytes| bytes.0.len());
            let size = if field == "data" { decoded.or_else(plain) } else { plain() };
            *value = removed(size.unwrap_or_default());
        }
    }
}

fn config_map(redactor: &Redactor, object: &mut Value) {
    for value in
        object.get_mut("binaryData").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        *value = removed(value.as_str().map_or(0, str::len));
    }
    let data = object.get_mut("data").and_then(Value::as_object_mut);
    for (name, value) in data.into_iter().flat_map(Map::iter_mut) {
        let Some(text) = value.as_str() else { continue };
        *value = if is_secret(name) { removed(text.len()) } else { Value::String(embedded(redactor, text)) };
    }
}

/// A text that may be a document by itself.
fn embedded(redactor: &Redactor, text: &str) -> String {
    let trimmed = text.trim_start();
    if trimmed.starts_with(['{', '['])
        && let Ok(mut document) = serde_json::from_str(text)
    {
        redact_document(redactor, &mut document);
        return document.to_string();
    }
    if text.contains('\n')
        && let Ok(original @ Value::Object(_)) = serde_saphyr::from_str::<Value>(text)
    {
        let mut document = original.clone();
        redact_document(redactor, &mut document);
        // Comments and order are kept where nothing had to go.
        if document != original
            && let Ok(text) = serde_saphyr::to_string(&document)
        {
            return text;
        }
    }
    redactor.text(text)
}

/// A document of unknown make: what is below a secret name goes as a whole.
pub(super) fn redact_document(redactor: &Redactor, document: &mut Value) {
    fields(redactor, document, Inside::Document);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// A Kubernetes object, whose fields named after secrets mostly point to one.
    Plain,
    /// Below such a field.
    Pointer,
    /// A document of which nothing is known.
    Document,
}

fn fields(redactor: &Redactor, value: &mut Value, inside: Inside) {
    match value {
        Value::String(text) if inside == Inside::Pointer => *value = removed(text.len()),
        Value::String(text) => *text = redactor.text(text),
        Value::Array(items) => {
            flags(items);
            items.iter_mut().for_each(|item| fields(redactor, item, inside));
        }
        Value::Object(map) => {
            named_value(map);
            let taken = std::mem::take(map);
            for (name, mut value) in taken {
                field(redactor, &name, &mut value, inside);
                map.insert(redactor.text(&name), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn field(redactor: &Redactor, name: &str, value: &mut Value, inside: Inside) {
    let secret = is_secret(name);
    match (inside, &value) {
        // A switch or a count tells nothing.
        (_, Value::Bool(_) | Value::Null) => {}
        (Inside::Document, _) if secret => *value = Value::String(REMOVED.into()),
        (_, Value::String(text)) if secret && !is_marker(text) => *value = removed(text.len()),
        (Inside::Pointer, Value::String(text)) if POINTERS.contains(&name) => {
            *value = Value::String(redactor.text(text));
        }
        (Inside::Plain, Value::Object(_) | Value::Array(_)) if secret => {
            fields(redactor, value, Inside::Pointer);
        }
        _ => fields(redactor, value, inside),
    }
}

fn is_marker(text: &str) -> bool {
    text.starts_with("<removed")
}

/// `{name: DB_PASSWORD, value: …}`, as environment variables are written.
fn named_value(map: &mut Map<String, Value>) {
    let named = ["name", "key", "header"].into_iter().filter_map(|field| map.get(field)?.as_str());
    if named.into_iter().any(is_secret)
        && let Some(value) = map.get_mut("value").filter(|value| value.is_string() || value.is_number())
    {
        *value = removed(value.as_str().map_or(0, str::len));
    }
}

/// `[--token, abc]`: a flag and its value as two arguments.
fn flags(items: &mut [Value]) {
    for index in 1..items.len() {
        let flag = items[index - 1]
            .as_str()
            .is_some_and(|it| it.starts_with('-') && !it.contains('=') && is_secret(it));
        let value = items[index].as_str().is_some_and(|it| !it.starts_with("--"));
        if flag && value {
            items[index] = Value::String(REMOVED.into());
        }
    }
}
