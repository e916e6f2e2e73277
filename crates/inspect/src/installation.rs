//! Reading an installation's objects.

use std::error::Error;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::ListParams;
use kube::core::{ClusterResourceScope, Resource};
use kube::{Api, Client};
use serde::de::DeserializeOwned;

/// The Deployment of the manager, and most of what belongs to it.
pub const MANAGER: &str = "liqo-controller-manager";
/// The Deployment that listens to the local network, if it is to.
pub(crate) const DISCOVERY: &str = "liqo-discovery";
/// The label that all objects of liqo have, with its value.
pub(crate) const OURS: &str = "app.kubernetes.io/part-of=liqo-rs";
/// The ConfigMap with what was configured for the network.
pub(crate) const NETWORK_CONFIG_MAP: &str = "liqo-network";
/// Objects per answer; an API server builds an answer in memory.
const PAGE: u32 = 500;
/// No list that a person wants to look at is longer; a cluster with more peers is shown in part.
pub(crate) const MOST: usize = 10_000;

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
    pub(crate) fn new(what: impl Into<String>, error: &kube::Error) -> Self {
        let what = what.into();
        match error {
            kube::Error::Api(status) if status.code == 404 => Self::Absent { what },
            kube::Error::Api(status) if status.code == 403 => {
                Self::Forbidden { what, reason: status.message.clone() }
            }
            kube::Error::Api(status) => {
                Self::Failed { what, reason: format!("{} {}", status.code, status.message) }
            }
            error => Self::Failed { what, reason: with_causes(error) },
        }
    }

    /// Whether it is merely not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }

    /// Whether a right is missing.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Forbidden { .. })
    }
}

/// An error with what caused it; layers that repeat the one below are left out.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    causes.map(ToString::to_string).fold(error.to_string(), |text, cause| {
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// The pod in a lease's holder: `POD_SUFFIX`, where the suffix tells apart processes in the same pod.
pub(crate) fn pod_of(holder: &str) -> &str {
    holder.split_once('_').map_or(holder, |(pod, _)| pod)
}

/// The value of a flag of the program in a Deployment, such as `--cluster-name=`; the last one counts.
pub(crate) fn flag<'a>(deployment: &'a Deployment, flag: &str) -> Option<&'a str> {
    let containers = &deployment.spec.as_ref()?.template.spec.as_ref()?.containers;
    let arguments = containers.first()?.args.iter().flatten().rev();
    arguments.filter_map(|argument| argument.strip_prefix(flag)).next().filter(|value| !value.is_empty())
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

    /// An object in the namespace of liqo.
    pub(crate) async fn get<K>(&self, name: &str) -> Result<K, Unread>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let what = || format!("{} {name} in namespace {}", K::kind(&()), self.namespace);
        api.get(name).await.map_err(|error| Unread::new(what(), &error))
    }

    /// An object that is in no namespace.
    pub(crate) async fn get_global<K>(&self, name: &str) -> Result<K, Unread>
    where
        K: Resource<Scope = ClusterResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        api.get(name).await.map_err(|error| Unread::new(format!("{} {name}", K::kind(&())), &error))
    }

    /// Objects in the namespace of liqo, those with a label if one is given.
    pub(crate) async fn list<K>(&self, labels: &str) -> Result<Vec<K>, Unread>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), &self.namespace);
        let what = format!("{} in namespace {}", K::plural(&()), self.namespace);
        list(&api, &ListParams::default().labels(labels), &what).await
    }

    /// Objects of the whole cluster, those with a label if one is given.
    pub(crate) async fn list_global<K>(&self, labels: &str) -> Result<Vec<K>, Unread>
    where
        K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned,
    {
        let api: Api<K> = Api::all(self.client.clone());
        list(&api, &ListParams::default().labels(labels), &K::plural(&())).await
    }
}

/// All pages of a list, up to [`MOST`] objects.
pub(crate) async fn list<K>(api: &Api<K>, parameters: &ListParams, what: &str) -> Result<Vec<K>, Unread>
where
    K: Clone + std::fmt::Debug + DeserializeOwned,
{
    let mut parameters = parameters.clone().limit(PAGE);
    let mut objects = Vec::new();
    loop {
        let page = api.list(&parameters).await.map_err(|error| Unread::new(what, &error))?;
        objects.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) if objects.len() < MOST => parameters.continue_token = Some(token),
            _ => return Ok(objects),
        }
    }
}
