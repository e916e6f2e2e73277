//! `Chart.yaml`.

use serde_json::{Map, Value};

use super::{METADATA, wrong_file};
use crate::error::ChartError;
use crate::yaml;

/// The fields of `Chart.yaml` and what templates call them, `.Chart.…`.
const TEXTS: [(&str, &str); 10] = [
    ("name", "Name"),
    ("version", "Version"),
    ("appVersion", "AppVersion"),
    ("apiVersion", "APIVersion"),
    ("kubeVersion", "KubeVersion"),
    ("description", "Description"),
    ("type", "Type"),
    ("home", "Home"),
    ("icon", "Icon"),
    ("condition", "Condition"),
];

/// The fields that are lists or maps.
const OTHERS: [(&str, &str); 6] = [
    ("keywords", "Keywords"),
    ("sources", "Sources"),
    ("maintainers", "Maintainers"),
    ("annotations", "Annotations"),
    ("deprecated", "Deprecated"),
    ("dependencies", "Dependencies"),
];

/// What a chart says about itself.
#[derive(Debug, Clone)]
pub(crate) struct Metadata(Map<String, Value>);

impl Metadata {
    pub(super) fn read(text: &str) -> Result<Self, ChartError> {
        let read = yaml::read(text).map_err(|error| wrong_file(METADATA, &error.to_string()))?;
        let Value::Object(mut fields) = read else {
            return Err(wrong_file(METADATA, "it is not a map of names to values"));
        };
        for (field, _) in TEXTS {
            match fields.get(field) {
                // `appVersion: 1.2` is meant as a text.
                Some(Value::Number(number)) => {
                    let text = number.to_string();
                    fields.insert(field.to_owned(), Value::String(text));
                }
                Some(Value::String(_) | Value::Null) | None => {}
                Some(_) => return Err(wrong_file(METADATA, &format!("{field} must be a text"))),
            }
        }
        let metadata = Self(fields);
        for field in ["apiVersion", "name", "version"] {
            if metadata.text(field).is_empty() {
                return Err(wrong_file(METADATA, &format!("it has no {field}")));
            }
        }
        if !["v1", "v2"].contains(&metadata.text("apiVersion")) {
            return Err(wrong_file(METADATA, "its apiVersion must be v2 or v1"));
        }
        if metadata.text("name").contains(['/', '\\']) {
            return Err(wrong_file(METADATA, "its name must not be a path"));
        }
        Ok(metadata)
    }

    /// A text field; empty if it is not given.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn has_dependencies(&self) -> bool {
        self.0.get("dependencies").and_then(Value::as_array).is_some_and(|all| !all.is_empty())
    }

    pub(crate) fn is_library(&self) -> bool {
        self.text("type").eq_ignore_ascii_case("library")
    }

    /// `.Chart`, with the names that templates use.
    pub(crate) fn as_chart(&self) -> Value {
        let texts = TEXTS.iter().map(|(field, name)| ((*name).to_owned(), Value::from(self.text(field))));
        let others = OTHERS.iter().filter_map(|(field, name)| {
            self.0.get(*field).map(|value| ((*name).to_owned(), with_capitals(field, value)))
        });
        let root = [("IsRoot".to_owned(), Value::Bool(true))];
        Value::Object(texts.chain(others).chain(root).collect())
    }
}

/// Maintainers have fields of their own.
fn with_capitals(field: &str, value: &Value) -> Value {
    let Some(maintainers) = value.as_array().filter(|_| field == "maintainers") else { return value.clone() };
    let named = |maintainer: &Value| {
        let text = |name: &str| maintainer.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        serde_json::json!({ "Name": text("name"), "Email": text("email"), "URL": text("url") })
    };
    maintainers.iter().map(named).collect()
}
