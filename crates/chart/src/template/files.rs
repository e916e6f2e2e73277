//! `.Files`: what a chart ships beside its templates.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use crate::glob::Glob;

/// The chart's other files by path, or those of them that a pattern chose.
#[derive(Debug, Default, Clone)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Arc<[u8]>>);

impl Files {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The file's text; nothing if there is no such file, as in Helm.
    pub(crate) fn get(&self, path: &str) -> Result<&str, String> {
        self.0.get(path).map_or(Ok(""), |bytes| as_text(path, bytes))
    }

    /// The files whose path matches: `*` stays within a directory, `**` does not.
    pub(crate) fn glob(&self, pattern: &str) -> Result<Self, String> {
        let glob = Glob::new(pattern)?;
        Ok(Self(self.0.iter().filter(|(path, _)| glob.matches(path)).map(owned).collect()))
    }

    /// File names (without directories) and their text: the data of a ConfigMap.
    pub(crate) fn as_config(&self) -> Result<Json, String> {
        let text = |(path, bytes): (&String, &Arc<[u8]>)| {
            Ok((base_name(path).to_owned(), Json::from(as_text(path, bytes)?)))
        };
        self.0.iter().map(text).collect::<Result<_, _>>().map(Json::Object)
    }

    /// File names (without directories) and their content in base64: the data of a Secret.
    pub(crate) fn as_secrets(&self) -> Json {
        let encoded = |(path, bytes): (&String, &Arc<[u8]>)| {
            (base_name(path).to_owned(), Json::from(STANDARD.encode(bytes)))
        };
        Json::Object(self.0.iter().map(encoded).collect())
    }
}

fn owned((path, bytes): (&String, &Arc<[u8]>)) -> (String, Arc<[u8]>) {
    (path.clone(), Arc::clone(bytes))
}

fn as_text<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, String> {
    std::str::from_utf8(bytes).map_err(|_| format!("the file {path} is not UTF-8 text"))
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
