//! YAML as Helm and Kubernetes read and write it.

use serde_json::Value as Json;

mod ambiguous;
mod write;

pub(crate) use write::write;

/// A document that is no YAML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct YamlError(String);

/// Reads one document. `yes`, `on` and `0644` mean what they mean to Kubernetes: true, true and 420.
pub(crate) fn read(text: &str) -> Result<Json, YamlError> {
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        // Comments are not needed, and to keep them would limit how many may follow each other.
        emit_comments: false,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| YamlError(error.to_string()))
}

#[cfg(test)]
mod tests;
