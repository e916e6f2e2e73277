//! A chart: its files, what they say about it, and its values.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::ChartError;
use crate::schema::{self, SchemaError};
use crate::values;

mod ignore;
mod metadata;
mod source;

pub(crate) use metadata::Metadata;

const METADATA: &str = "Chart.yaml";
const VALUES: &str = "values.yaml";
const SCHEMA: &str = "values.schema.json";
const TEMPLATES: &str = "templates/";
const CRDS: &str = "crds/";
const DEPENDENCIES: &str = "charts/";

/// The files of a chart by their path, which has slashes and starts in the chart's own directory.
type ChartFiles = BTreeMap<String, Arc<[u8]>>;

/// A Helm chart.
#[derive(Debug, Clone)]
pub struct Chart {
    metadata: Metadata,
    defaults: Value,
    values_text: String,
    schema: Option<Value>,
    files: ChartFiles,
}

impl Chart {
    /// The chart that this program carries.
    #[expect(clippy::expect_used, reason = "the chart is fixed when we are built, and a test opens it")]
    pub fn embedded() -> Self {
        Self::read(source::embedded()).expect("the embedded chart is a chart")
    }

    /// Opens the chart in a directory or an archive (`.tgz`).
    pub fn open(path: &Path) -> Result<Self, ChartError> {
        Self::read(source::open(path)?)
    }

    fn read(files: ChartFiles) -> Result<Self, ChartError> {
        let files = ignore::filter(files)?;
        let metadata = Metadata::read(text(&files, METADATA)?.unwrap_or_default())?;
        let values_text = text(&files, VALUES)?.unwrap_or_default().to_owned();
        let defaults = values::load(&values_text).map_err(ChartError::Defaults)?;
        let schema = text(&files, SCHEMA)?
            .map(|text| serde_json::from_str(text).map_err(|error| wrong_file(SCHEMA, &error.to_string())))
            .transpose()?;
        Ok(Self { metadata, defaults, values_text, schema, files })
    }

    /// The chart's name.
    pub fn name(&self) -> &str {
        self.metadata.text("name")
    }

    /// The chart's version.
    pub fn version(&self) -> &str {
        self.metadata.text("version")
    }

    /// The version of what the chart installs.
    pub fn app_version(&self) -> &str {
        self.metadata.text("appVersion")
    }

    /// The values that count where the user gives none.
    pub fn default_values(&self) -> &Value {
        &self.defaults
    }

    /// `values.yaml` as it is written, with its comments.
    pub fn values_text(&self) -> &str {
        &self.values_text
    }

    /// What values the chart accepts.
    pub fn values_schema(&self) -> Option<&Value> {
        self.schema.as_ref()
    }

    /// The user's values over the defaults, checked against the schema.
    pub fn values(&self, overrides: &Value) -> Result<Value, ChartError> {
        let empty = Value::Object(Map::new());
        let overrides = if overrides.is_null() { &empty } else { overrides };
        if !overrides.is_object() {
            return Err(ChartError::Values(vec!["values must be a map of names to values".into()]));
        }
        let merged = values::coalesce(&self.defaults, overrides);
        let checked = self.schema.as_ref().map_or(Ok(()), |schema| schema::check(schema, &merged));
        match checked {
            Ok(()) => Ok(merged),
            Err(SchemaError::Schema(reason)) => Err(wrong_file(SCHEMA, &reason)),
            Err(SchemaError::Values(mistakes)) => Err(ChartError::Values(mistakes)),
        }
    }

    /// The kinds that the chart brings along, in the order of their files.
    pub fn crds(&self) -> Result<Vec<Value>, ChartError> {
        let mut crds = Vec::new();
        for path in self.paths(CRDS).filter(|path| is_manifest(path)) {
            let manifests = text(&self.files, path)?.unwrap_or_default();
            crds.extend(crate::render::objects(path, manifests)?);
        }
        Ok(crds)
    }

    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The templates by their path in the chart.
    pub(crate) fn templates(&self) -> Result<BTreeMap<&str, &str>, ChartError> {
        self.paths(TEMPLATES).map(|path| Ok((path, text(&self.files, path)?.unwrap_or_default()))).collect()
    }

    /// What templates see as `.Files`: all that is not part of the chart's own machinery.
    pub(crate) fn other_files(&self) -> ChartFiles {
        let machinery = |path: &str| {
            [METADATA, VALUES, SCHEMA, "Chart.lock"].contains(&path)
                || path.starts_with(TEMPLATES)
                || path.starts_with(DEPENDENCIES)
        };
        let others = self.files.iter().filter(|(path, _)| !machinery(path));
        others.map(|(path, content)| (path.clone(), Arc::clone(content))).collect()
    }

    pub(crate) fn has_dependencies(&self) -> bool {
        self.metadata.has_dependencies() || self.paths(DEPENDENCIES).next().is_some()
    }

    fn paths<'a>(&'a self, directory: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.keys().map(String::as_str).filter(move |path| path.starts_with(directory))
    }
}

/// The text of a file, if the chart has it.
fn text<'a>(files: &'a ChartFiles, path: &str) -> Result<Option<&'a str>, ChartError> {
    let content = files.get(path).map(|content| std::str::from_utf8(content));
    content.transpose().map_err(|_| wrong_file(path, "it is not UTF-8 text"))
}

fn wrong_file(file: &str, reason: &str) -> ChartError {
    ChartError::File { file: file.to_owned(), reason: reason.to_owned() }
}

fn is_manifest(path: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|extension| path.ends_with(extension))
}

#[cfg(test)]
mod tests;
