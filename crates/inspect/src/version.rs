//! Versions: of this program, of what is installed, of Kubernetes.

use k8s_openapi::api::apps::v1::Deployment;
use serde::Serialize;
use serde_json::Value;

use crate::facts::Read;
use crate::installation::{Installation, MANAGER, Unread};

/// The label that says which version an object was installed by.
const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// What `liqoctl version` tells.
#[derive(Debug, Clone, Serialize)]
pub struct Versions {
    /// This program.
    pub client: Build,
    /// The cluster, if it was asked and answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<ClusterVersions>,
}

/// How this program was built.
#[derive(Debug, Clone, Serialize)]
pub struct Build {
    /// The version.
    pub version: &'static str,
    /// The commit it was built from; `unknown` unless the build was told (`LIQO_COMMIT`).
    pub commit: &'static str,
    /// `release` or `debug`.
    pub build: &'static str,
    /// Operating system and architecture, as container images name them.
    pub platform: String,
}

/// What runs in the cluster.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterVersions {
    /// The API server's version.
    pub kubernetes: String,
    /// The version of the manager that runs, as it says itself, or that was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liqo: Option<String>,
    /// The manager's image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Why the manager's version is not known, unless liqo is merely not installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Build {
    /// This program.
    pub fn this() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            commit: option_env!("LIQO_COMMIT").unwrap_or("unknown"),
            build: if cfg!(debug_assertions) { "debug" } else { "release" },
            platform: format!("{}/{architecture}", std::env::consts::OS),
        }
    }
}

impl Installation {
    /// Which versions the cluster runs.
    pub async fn versions(&self, kubernetes: &str) -> ClusterVersions {
        let (config, manager) = tokio::join!(self.cluster_config(), self.get::<Deployment>(MANAGER));
        let problem = manager.as_ref().err().filter(|reason| !reason.is_absent()).map(ToString::to_string);
        ClusterVersions {
            kubernetes: kubernetes.to_owned(),
            liqo: self::manager(&config, &manager),
            image: manager.as_ref().ok().and_then(image),
            problem,
        }
    }
}

/// The manager's version: as the one that leads tells, else as it was installed. None when there is no manager; what a
/// removed one told last is no longer true.
pub(crate) fn manager(config: &Read<Value>, manager: &Read<Deployment>) -> Option<String> {
    if manager.as_ref().is_err_and(Unread::is_absent) {
        return None;
    }
    let running = config.as_ref().ok().and_then(|config| config["status"]["version"].as_str());
    running.map(str::to_owned).or_else(|| manager.as_ref().ok().and_then(label))
}

/// The version that a Deployment was installed by.
pub(crate) fn label(manager: &Deployment) -> Option<String> {
    manager.metadata.labels.as_ref()?.get(VERSION_LABEL).cloned()
}

fn image(manager: &Deployment) -> Option<String> {
    manager.spec.as_ref()?.template.spec.as_ref()?.containers.first()?.image.clone()
}
