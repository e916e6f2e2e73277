//! Takes secrets out of what leaves the cluster. Pure, and rather too strict than too lax.
//!
//! Three nets, one behind the other:
//!
//! 1. what is known to be secret: every value of a Secret that was read, wherever it turns up again
//! 2. where secrets live: `data` of Secrets, fields and variables whose name says so ([`names`])
//! 3. what secrets look like: PEM, bearer tokens, JWTs, passwords in URLs, long random texts ([`text`])

mod known;
mod names;
mod object;
mod text;

use std::borrow::Cow;

use serde_json::Value;

pub(crate) use known::secret_values;

/// What stands where a secret stood.
pub(crate) const REMOVED: &str = "<removed>";

/// Takes secrets out of texts and objects.
pub(crate) struct Redactor {
    /// Values that are secret, the longest first.
    known: Vec<String>,
}

impl Redactor {
    /// One that knows these values to be secret.
    pub(crate) fn new(secrets: &[String]) -> Self {
        Self { known: known::in_order(secrets) }
    }

    /// A text without secrets.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut without_known = Cow::Borrowed(text);
        for value in &self.known {
            if without_known.contains(value.as_str()) {
                without_known = Cow::Owned(without_known.replace(value.as_str(), REMOVED));
            }
        }
        text::redact(&without_known)
    }

    /// A log without secrets; lines that are JSON are looked at field by field.
    pub(crate) fn log(&self, log: &str) -> String {
        let lines: Vec<String> = log.lines().map(|line| self.log_line(line)).collect();
        let ending = if log.ends_with('\n') { "\n" } else { "" };
        // A key spans several lines, so the whole is looked at once more.
        self.text(&(lines.join("\n") + ending))
    }

    fn log_line(&self, line: &str) -> String {
        if !line.trim_start().starts_with('{') {
            return line.to_owned();
        }
        let Ok(original) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
        let mut value = original.clone();
        self.document(&mut value);
        // The line stays as it was written unless something had to go.
        if value == original { line.to_owned() } else { value.to_string() }
    }

    /// Takes secrets out of a Kubernetes object.
    pub(crate) fn object(&self, object: &mut Value) {
        object::redact(self, object);
    }

    /// Takes secrets out of a document of unknown make, such as a configuration file.
    pub(crate) fn document(&self, document: &mut Value) {
        object::redact_document(self, document);
    }
}

#[cfg(test)]
mod tests;
