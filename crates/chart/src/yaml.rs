//! YAML as Helm and Kubernetes read and write it.

use serde_json::Value as Json;

mod ambiguous;
mod write;

pub(crate) use write::write;

/// What `*aliases` may add to a document; a few lines of them can stand for a billion values.
const MAX_REPEATED: usize = 100_000;

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
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPEATED },
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| YamlError(error.render_with_formatter(&serde_saphyr::UserMessageFormatter)))
}

#[cfg(test)]
mod tests;
