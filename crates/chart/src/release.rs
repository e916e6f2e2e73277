//! What a chart is told about its installation.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::template::Value;

/// The Helm whose behaviour is followed, for charts that ask for it.
const HELM_VERSION: &str = "v3.19.4";

/// One installation of a chart: `.Release` and `.Capabilities`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The name of the installation.
    pub name: String,
    /// The namespace it goes to.
    pub namespace: String,
    /// Who installs: `liqoctl`, or `Helm`.
    pub service: String,
    /// Whether something is installed already.
    pub is_upgrade: bool,
    /// How many times it was installed, this time included.
    pub revision: u32,
    /// The cluster's version, such as `v1.34.4`; empty if it is not known.
    pub kubernetes_version: String,
    /// What the cluster offers, such as `v1`, `apps/v1` and `apps/v1/Deployment`.
    pub api_versions: Vec<String>,
}

impl Release {
    pub(crate) fn as_release(&self) -> Value {
        Value::from_json(&json!({
            "Name": self.name,
            "Namespace": self.namespace,
            "Service": self.service,
            "IsInstall": !self.is_upgrade,
            "IsUpgrade": self.is_upgrade,
            "Revision": self.revision,
        }))
    }

    pub(crate) fn as_capabilities(&self) -> Value {
        let version = self.kubernetes_version.as_str();
        let mut numbers = version.strip_prefix('v').unwrap_or(version).split('.');
        let mut number = || numbers.next().unwrap_or_default().to_owned();
        let kubernetes: Json = json!({
            "Version": version,
            "GitVersion": version,
            "Major": number(),
            "Minor": number(),
        });
        Value::map(BTreeMap::from([
            ("KubeVersion".to_owned(), Value::from_json(&kubernetes)),
            ("APIVersions".to_owned(), Value::ApiVersions(self.api_versions.as_slice().into())),
            ("HelmVersion".to_owned(), Value::from_json(&json!({ "Version": HELM_VERSION }))),
        ]))
    }
}
