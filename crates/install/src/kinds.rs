//! The kinds that the API server serves.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind};
use kube::core::discovery::{ApiCapabilities, Scope, verbs};
use kube::discovery::Discovery;
use kube::{Api, Client};

use crate::trouble::patiently;

/// What can be read, written and listed.
pub(crate) struct Kinds {
    client: Client,
    discovery: Discovery,
}

/// A kind, and whether its objects live in namespaces.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
}

impl Kind {
    fn of((resource, capabilities): (ApiResource, ApiCapabilities)) -> Self {
        Self { resource, namespaced: capabilities.scope == Scope::Namespaced }
    }

    /// One of the two kinds of webhook configurations, which every API server serves.
    pub(crate) fn webhook(kind: &str) -> Self {
        let gvk = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        Self { resource: ApiResource::from_gvk(&gvk), namespaced: false }
    }

    /// The objects of this kind: of one namespace, or of the cluster for kinds without.
    pub(crate) fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        }
    }
}

impl Kinds {
    /// Asks the API server.
    pub(crate) async fn read(client: &Client) -> Result<Self, kube::Error> {
        let discovery = patiently(async || Discovery::new(client.clone()).run_aggregated().await).await?;
        Ok(Self { client: client.clone(), discovery })
    }

    /// The kind that an object's `apiVersion` and `kind` name.
    pub(crate) fn find(&self, api_version: &str, kind: &str) -> Option<Kind> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        self.discovery.resolve_gvk(&GroupVersionKind::gvk(group, version, kind)).map(Kind::of)
    }

    /// Every kind whose objects can be listed and deleted, each once.
    pub(crate) fn all(&self) -> Vec<Kind> {
        let all = self.discovery.groups().flat_map(kube::discovery::ApiGroup::recommended_resources);
        let usable = |capabilities: &ApiCapabilities| {
            capabilities.supports_operation(verbs::LIST) && capabilities.supports_operation(verbs::DELETE)
        };
        all.filter(|(_, capabilities)| usable(capabilities)).map(Kind::of).collect()
    }

    /// All versions and kinds as a chart's `.Capabilities.APIVersions` has them.
    pub(crate) fn api_versions(&self) -> Vec<String> {
        let groups = self.discovery.groups();
        let mut all: Vec<String> = groups
            .flat_map(|group| group.versions().flat_map(|version| group.versioned_resources(version)))
            .flat_map(|(resource, _)| {
                [resource.api_version.clone(), format!("{}/{}", resource.api_version, resource.kind)]
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}
