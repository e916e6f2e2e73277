//! Checking values against a chart's `values.schema.json`.

use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

/// How many mistakes are told at once; more would hide the first.
const MAX_SHOWN: usize = 10;

/// How many characters of a mistake are told.
const MAX_LENGTH: usize = 300;

/// Checks the values. The error has one line per mistake, each with the value's path.
pub(crate) fn check(schema: &Value, values: &Value) -> Result<(), SchemaError> {
    let validator =
        jsonschema::validator_for(schema).map_err(|error| SchemaError::Schema(error.to_string()))?;
    let mistakes: Vec<String> = validator
        .iter_errors(values)
        .map(|error| format!("{}: {}", path(error.instance_path()), shortened(error.to_string())))
        .take(MAX_SHOWN)
        .collect();
    if mistakes.is_empty() { Ok(()) } else { Err(SchemaError::Values(mistakes)) }
}

/// Why values and schema do not meet.
#[derive(Debug)]
pub(crate) enum SchemaError {
    /// The schema itself is wrong.
    Schema(String),
    /// The values are.
    Values(Vec<String>),
}

/// A mistake of a whole map would tell all of it.
fn shortened(mistake: String) -> String {
    match mistake.char_indices().nth(MAX_LENGTH) {
        Some((end, _)) => format!("{} …", &mistake[..end]),
        None => mistake,
    }
}

/// `controllerManager.pod.extraArgs[0]`
fn path(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Property(name) if path.is_empty() => path.push_str(&name),
            LocationSegment::Property(name) => path.push_str(&format!(".{name}")),
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    if path.is_empty() { "values".into() } else { path }
}

#[cfg(test)]
mod tests;
