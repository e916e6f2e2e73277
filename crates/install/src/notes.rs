//! liqoctl's own notes in the cluster: what it installed, with which values, and how far it came.
//!
//! A Secret, as values may hold secrets. Only liqoctl reads and writes it, as only Helm reads Helm's.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams};
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::names::{FIELD_MANAGER, INSTALLATION, INSTALLATION_TYPE, INSTANCE, MANAGED_BY, RELEASE, SERVICE};
use crate::objects::Id;
use crate::trouble::patiently;

/// How far an installation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It has begun; if nobody is at work, it was interrupted.
    Installing,
    /// Everything was applied and became ready.
    Installed,
}

impl State {
    fn text(self) -> &'static str {
        match self {
            Self::Installing => "installing",
            Self::Installed => "installed",
        }
    }
}

/// The notes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Notes {
    pub(crate) state: State,
    /// The version that was installed.
    pub(crate) version: String,
    /// The values that people gave.
    pub(crate) values: Value,
    /// What was applied, or will have been.
    pub(crate) objects: Vec<Id>,
    /// Counts installations and upgrades.
    pub(crate) revision: u32,
}

impl Notes {
    /// Reads them; what cannot be understood counts as never written.
    pub(crate) fn of(secret: &Secret) -> Self {
        let data = secret.data.clone().unwrap_or_default();
        let text = |key: &str| data.get(key).and_then(|bytes| String::from_utf8(bytes.0.clone()).ok());
        Self {
            state: if text("state").as_deref() == Some("installed") {
                State::Installed
            } else {
                State::Installing
            },
            version: text("version").unwrap_or_default(),
            values: parsed(&data, "values").filter(Value::is_object).unwrap_or_else(|| json!({})),
            objects: parsed(&data, "objects").unwrap_or_default(),
            revision: text("revision").and_then(|text| text.parse().ok()).unwrap_or(0),
        }
    }

    fn secret(&self, namespace: &str, now: jiff::Timestamp) -> Secret {
        let labels = [
            ("app.kubernetes.io/name", "liqo"),
            (INSTANCE, RELEASE),
            ("app.kubernetes.io/component", "installation"),
            (liqo_api::labels::PART_OF, liqo_api::labels::PART_OF_LIQO),
            (MANAGED_BY, SERVICE),
        ];
        let data = [
            ("state", self.state.text().to_owned()),
            ("version", self.version.clone()),
            ("values", self.values.to_string()),
            ("objects", json!(self.objects).to_string()),
            ("revision", self.revision.to_string()),
            ("time", now.to_string()),
        ];
        Secret {
            metadata: ObjectMeta {
                name: Some(INSTALLATION.to_owned()),
                namespace: Some(namespace.to_owned()),
                labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
                ..ObjectMeta::default()
            },
            type_: Some(INSTALLATION_TYPE.to_owned()),
            data: Some(data.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes()))).into()),
            ..Secret::default()
        }
    }

    /// Writes them.
    pub(crate) async fn write(&self, client: &Client, namespace: &str) -> Result<(), kube::Error> {
        let secret = self.secret(namespace, jiff::Timestamp::now());
        let api = Api::<Secret>::namespaced(client.clone(), namespace);
        let params = PatchParams::apply(FIELD_MANAGER).force();
        patiently(async || api.patch(INSTALLATION, &params, &Patch::Apply(&secret)).await).await.map(drop)
    }
}

fn parsed<T: DeserializeOwned>(data: &BTreeMap<String, ByteString>, key: &str) -> Option<T> {
    serde_json::from_slice(&data.get(key)?.0).ok()
}

#[cfg(test)]
mod tests;
