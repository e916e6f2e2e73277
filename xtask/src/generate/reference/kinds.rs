//! The kinds of the API, field by field, from the schemas that the API server enforces.

use std::fmt::Write;

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::cell;

/// Fields of a pod's own description are Kubernetes' and not ours to explain.
const DEEPEST: usize = 6;

pub(super) fn page(crds: &[CustomResourceDefinition]) -> anyhow::Result<String> {
    let mut page = String::from(
        "# Kinds\n\nEvery rule below is enforced by the API server when an object is written. `kubectl explain` says the \
         same in a cluster.\n",
    );
    for crd in crds {
        kind(crd, &mut page)?;
    }
    Ok(page)
}

fn kind(crd: &CustomResourceDefinition, page: &mut String) -> anyhow::Result<()> {
    let (spec, names) = (&crd.spec, &crd.spec.names);
    let version = spec.versions.first().with_context(|| format!("{} has no version", names.kind))?;
    let schema = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema = serde_json::to_value(schema).context("cannot read a schema")?;
    let short = names.short_names.clone().unwrap_or_default();
    let short = if short.is_empty() { String::new() } else { format!(", short `{}`", short.join("`, `")) };
    // Writing to a String cannot fail.
    let _ = write!(
        page,
        "\n## {}\n\n`{}/{}`, {}{short}. {}\n",
        names.kind,
        spec.group,
        version.name,
        spec.scope.to_lowercase(),
        cell(schema["description"].as_str().unwrap_or_default()),
    );
    for part in ["spec", "status"] {
        let part_schema = &schema["properties"][part];
        let mut rows = Vec::new();
        fields(part_schema, part, 1, &mut rows);
        if !rows.is_empty() {
            let _ = write!(page, "\n| {part} | type | what |\n|---|---|---|\n{}\n", rows.join("\n"));
        }
        for rule in rules(part_schema) {
            let _ = write!(page, "\n- {rule}\n");
        }
    }
    Ok(())
}

fn fields(schema: &Value, path: &str, depth: usize, rows: &mut Vec<String>) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in properties {
        let path = format!("{path}.{name}");
        let shown = path.split_once('.').map_or(path.as_str(), |(_, rest)| rest);
        let must = if required.contains(&name.as_str()) { " **required**" } else { "" };
        let about = format!("{}{}", field["description"].as_str().unwrap_or_default(), limits(field));
        rows.push(format!("| `{shown}`{must} | {} | {} |", type_of(field), cell(&about)));
        if depth < DEEPEST && !field["x-kubernetes-preserve-unknown-fields"].as_bool().unwrap_or(false) {
            fields(field, &path, depth + 1, rows);
            fields(&field["items"], &format!("{path}[]"), depth + 1, rows);
            fields(&field["additionalProperties"], &format!("{path}.*"), depth + 1, rows);
        }
    }
}

fn type_of(field: &Value) -> String {
    if field["x-kubernetes-int-or-string"].as_bool().unwrap_or(false) {
        return "integer or string".to_owned();
    }
    match field["type"].as_str() {
        Some("array") => format!("list of {}", type_of(&field["items"])),
        Some("object") if field["additionalProperties"].is_object() => {
            format!("map to {}", type_of(&field["additionalProperties"]))
        }
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

fn limits(field: &Value) -> String {
    let mut limits = String::new();
    if let Some(choices) = field["enum"].as_array() {
        let choices: Vec<String> = choices.iter().filter(|choice| !choice.is_null()).map(text).collect();
        let _ = write!(limits, " One of {}.", choices.join(", "));
    }
    if !field["default"].is_null() {
        let _ = write!(limits, " Default {}.", text(&field["default"]));
    }
    limits
}

fn text(value: &Value) -> String {
    format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// The messages of the rules on a part as a whole.
fn rules(schema: &Value) -> Vec<String> {
    let rules = schema["x-kubernetes-validations"].as_array();
    rules.into_iter().flatten().filter_map(|rule| rule["message"].as_str()).map(cell).collect()
}
