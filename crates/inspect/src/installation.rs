//! Reading an installation's objects.

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, Client};
use serde_json::Value;

/// The Deployment of the manager, and most of what belongs to it.
pub const MANAGER: &str = "liqo-controller-manager";
/// The one ClusterConfig.
pub const CLUSTER_CONFIG: &str = "liqo";

/// Where liqo is, or is supposed to be.
#[derive(Clone)]
pub struct Installation {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It, or its kind, is not there.
    #[error("{what} is not there")]
    Absent {
        /// What was looked for.
        what: String,
    },
    /// The user may not look.
    #[error("no permission to read {what}: {reason}")]
    Forbidden {
        /// What was looked for.
        what: String,
        /// Which rule is missing, in the API server's words.
        reason: String,
    },
    /// Something else.
    #[error("cannot read {what}: {reason}")]
    Failed {
        /// What was looked for.
        what: String,
        /// What happened.
        reason: String,
    },
}

impl Unread {
    pub(crate) fn new(what: &str, error: &kube::Error) -> Self {
        let what = what.to_owned();
        match error {
            kube::Error::Api(status) if status.code == 404 => Self::Absent { what },
            kube::Error::Api(status) if status.code == 403 => {
                Self::Forbidden { what, reason: status.message.clone() }
            }
            kube::Error::Api(status) => {
                Self::Failed { what, reason: format!("{} {}", status.code, status.message) }
            }
            error => Self::Failed { what, reason: error.to_string() },
        }
    }

    /// Whether it is merely not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}

impl Installation {
    /// What is to be looked at.
    pub fn new(client: Client, namespace: impl Into<String>) -> Self {
        Self { client, namespace: namespace.into() }
    }

    /// The namespace that it is in.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(crate) async fn manager(&self) -> Result<Deployment, Unread> {
        let api: Api<Deployment> = Api::namespaced(self.client.clone(), &self.namespace);
        api.get(MANAGER).await.map_err(|error| {
            Unread::new(&format!("Deployment {MANAGER} in namespace {}", self.namespace), &error)
        })
    }

    /// Read as it is: an installation of another version may have fields that this one does not know.
    pub(crate) async fn cluster_config(&self) -> Result<Value, Unread> {
        let kind = GroupVersionKind::gvk("config.liqo.io", "v1alpha1", "ClusterConfig");
        let resource = ApiResource::from_gvk_with_plural(&kind, "clusterconfigs");
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let what = format!("ClusterConfig {CLUSTER_CONFIG}");
        let object = api.get(CLUSTER_CONFIG).await.map_err(|error| Unread::new(&what, &error))?;
        Ok(object.data)
    }
}
