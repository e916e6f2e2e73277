//! Which version and plural a kind has in a cluster.

use std::time::Duration;

use kube::api::{ApiResource, GroupVersionKind};
use kube::discovery::{self, ApiCapabilities, Scope};
use kube::error::DiscoveryError;
use liqo_api::namespace_offloading::{KindName, NotReflected};

use super::CustomKind;

/// How long an API server may take to answer.
const TIMEOUT: Duration = Duration::from_secs(4);

/// What an API server says about a kind; `None` if it could not be asked.
pub(crate) type Answer<T> = Option<Result<T, NotReflected>>;

/// The kind of this name in the version that the cluster prefers.
pub(crate) async fn preferred(client: &kube::Client, name: &KindName) -> Answer<CustomKind> {
    let missing = || not("KindMissing", format!("this cluster has no kind {name}"));
    let found = tokio::time::timeout(TIMEOUT, discovery::group(client, &name.group)).await.ok()?;
    let group = match found {
        Ok(group) => group,
        Err(error) => return is_missing(&error).then(|| Err(missing())),
    };
    Some(match group.recommended_kind(&name.kind) {
        Some(found) => namespaced(found).map(|resource| CustomKind::of(&resource)),
        None => Err(missing()),
    })
}

/// Whether the cluster serves this kind, as a provider.
pub(crate) async fn serves(client: &kube::Client, kind: CustomKind) -> Answer<()> {
    let resource = kind.resource();
    let (title, version) = (kind.title(), &resource.version);
    let missing = || {
        not(
            "KindMissing",
            format!("the provider has no {title} in version {version}; install its definition there"),
        )
    };
    let wanted = GroupVersionKind::gvk(&resource.group, version, &resource.kind);
    let found = tokio::time::timeout(TIMEOUT, discovery::pinned_kind(client, &wanted)).await.ok()?;
    let found = match found {
        Ok(found) => found,
        Err(error) => return is_missing(&error).then(|| Err(missing())),
    };
    Some(
        namespaced(found)
            .and_then(|there| if there.plural == resource.plural { Ok(()) } else { Err(missing()) }),
    )
}

fn namespaced((resource, capabilities): (ApiResource, ApiCapabilities)) -> Result<ApiResource, NotReflected> {
    match capabilities.scope {
        Scope::Namespaced => Ok(resource),
        Scope::Cluster => {
            let kind = &resource.kind;
            Err(not("NotNamespaced", format!("objects of the kind {kind} are in no namespace")))
        }
    }
}

fn is_missing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 404,
        kube::Error::Discovery(error) => {
            matches!(error, DiscoveryError::MissingKind(_) | DiscoveryError::MissingApiGroup(_))
        }
        _ => false,
    }
}

fn not(reason: &str, message: String) -> NotReflected {
    NotReflected { reason: reason.to_owned(), message }
}
