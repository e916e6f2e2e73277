//! From a chart and its values to objects.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::chart::Chart;
use crate::error::ChartError;
use crate::release::Release;
use crate::template::{self, Budget, Fault, Files, Templates, Value};
use crate::yaml;

mod order;

/// The template whose text is for the user.
const NOTES: &str = "NOTES.txt";

/// Marks objects that Helm makes at a special moment instead of with the rest.
const HOOK: &str = "helm.sh/hook";

/// The hook that only `helm test` makes.
const TEST_HOOKS: [&str; 3] = ["test", "test-success", "test-failure"];

impl Chart {
    /// The objects of the chart in the order in which Helm installs them, without the [CRDs](Self::crds).
    pub fn render(&self, release: &Release, overrides: &Json) -> Result<Vec<Json>, ChartError> {
        let mut rendered = Vec::new();
        for (file, text) in self.texts(release, overrides)? {
            if file.ends_with(NOTES) {
                continue;
            }
            for object in objects(&file, &text)? {
                match hooks(&object).as_slice() {
                    [] => rendered.push(object),
                    hooks if hooks.iter().all(|hook| TEST_HOOKS.contains(hook)) => {}
                    hooks => return Err(self.needs_helm(format!("has the hook {}", hooks.join(", ")))),
                }
            }
        }
        order::sort(&mut rendered);
        Ok(rendered)
    }

    /// What the chart has to say to the user; empty if it says nothing.
    pub fn notes(&self, release: &Release, overrides: &Json) -> Result<String, ChartError> {
        let file = format!("{}/templates/{NOTES}", self.name());
        Ok(self.texts(release, overrides)?.remove(&file).unwrap_or_default())
    }

    /// What each template renders to, by the path of its file.
    fn texts(&self, release: &Release, overrides: &Json) -> Result<BTreeMap<String, String>, ChartError> {
        self.check_support(release)?;
        let values = self.values(overrides)?;
        let (files, templates) = self.parse()?;
        let context = self.context(release, &values);
        let budget = Budget::default();
        let mut texts = BTreeMap::new();
        for file in files.into_iter().filter(|file| !base_name(file).starts_with('_')) {
            let Some(template) = templates.get(&file) else { continue };
            let about = BTreeMap::from([
                ("Name".to_owned(), Value::text(file.as_str())),
                ("BasePath".to_owned(), Value::text(format!("{}/templates", self.name()))),
            ]);
            // One context for all templates: what one sets in the values, the next one sees, as in Helm.
            let root = with(&context, "Template", Value::map(about));
            let text = template::execute(&templates, template, &root, &budget).map_err(failed)?;
            texts.insert(file, text);
        }
        Ok(texts)
    }

    fn check_support(&self, release: &Release) -> Result<(), ChartError> {
        if self.has_dependencies() {
            return Err(self.needs_helm("depends on other charts".into()));
        }
        if self.metadata().is_library() {
            return Err(self.needs_helm("is a library for other charts".into()));
        }
        let (wanted, found) = (self.metadata().text("kubeVersion"), release.kubernetes_version.as_str());
        if wanted.is_empty() || found.is_empty() {
            return Ok(());
        }
        match template::satisfies(wanted, found) {
            Ok(true) => Ok(()),
            Ok(false) => Err(ChartError::Kubernetes {
                chart: self.name().to_owned(),
                wanted: wanted.to_owned(),
                found: found.to_owned(),
            }),
            Err(reason) => Err(ChartError::File { file: "Chart.yaml".into(), reason }),
        }
    }

    fn needs_helm(&self, what: String) -> ChartError {
        ChartError::NeedsHelm { chart: self.name().to_owned(), what }
    }

    /// The files in Helm's order, and all templates by name. Of two templates with one name the later one counts, so
    /// one in a file higher up hides one in a deeper directory.
    fn parse(&self) -> Result<(Vec<String>, Templates), ChartError> {
        let sources = self.templates()?;
        let mut paths: Vec<&str> = sources.keys().copied().collect();
        paths.sort_by_key(|path| std::cmp::Reverse((path.matches('/').count(), *path)));
        let mut files = Vec::new();
        let mut templates = Templates::new();
        for path in paths {
            let file = format!("{}/{path}", self.name());
            let parsed = template::parse(&file, sources[path]).map_err(|error| ChartError::Template {
                place: format!("{file}:{}", error.line),
                message: error.message,
                included_from: Vec::new(),
            })?;
            template::add(&mut templates, parsed);
            files.push(file);
        }
        Ok((files, templates))
    }

    /// The dot of every template.
    fn context(&self, release: &Release, values: &Json) -> Value {
        Value::map(BTreeMap::from([
            ("Values".to_owned(), Value::from_json(values)),
            ("Release".to_owned(), release.as_release()),
            ("Chart".to_owned(), Value::from_json(&self.metadata().as_chart())),
            ("Capabilities".to_owned(), release.as_capabilities()),
            ("Files".to_owned(), Value::Files(Files(self.other_files()).into())),
            ("Subcharts".to_owned(), Value::map(BTreeMap::new())),
        ]))
    }
}

fn with(context: &Value, key: &str, value: Value) -> Value {
    if let Value::Map(map) = context {
        map.0.borrow_mut().insert(key.to_owned(), value);
    }
    context.clone()
}

fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

fn failed(fault: Fault) -> ChartError {
    ChartError::Template {
        place: fault.place.to_string(),
        message: fault.message,
        included_from: fault.trail.iter().map(ToString::to_string).collect(),
    }
}

/// The objects that a text has, apart by lines with `---`. What is empty or only comments is no object.
pub(crate) fn objects(file: &str, text: &str) -> Result<Vec<Json>, ChartError> {
    let wrong = |reason: String| ChartError::Manifest { template: file.to_owned(), reason };
    let mut objects = Vec::new();
    for (at, document) in documents(text).iter().enumerate() {
        let numbered = |reason: String| wrong(format!("document {}: {reason}", at + 1));
        let object = yaml::read(document).map_err(|error| numbered(error.to_string()))?;
        if object.is_null() {
            continue;
        }
        let named =
            |field: &str| object.get(field).and_then(Json::as_str).is_some_and(|text| !text.is_empty());
        if !named("apiVersion") || !named("kind") {
            return Err(numbered("it has no apiVersion or no kind".into()));
        }
        objects.push(object);
    }
    Ok(objects)
}

/// Splits at lines that start with `---`.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("---") {
            documents.push(rest.to_owned());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
        }
        if let Some(last) = documents.last_mut() {
            last.push('\n');
        }
    }
    documents
}

/// The moments at which Helm would make the object; none for an ordinary one.
fn hooks(object: &Json) -> Vec<&str> {
    let annotation = object.pointer("/metadata/annotations").and_then(|all| all.get(HOOK));
    let moments = annotation.and_then(Json::as_str).unwrap_or_default().split(',').map(str::trim);
    moments.filter(|moment| !moment.is_empty()).collect()
}

#[cfg(test)]
mod tests;
