//! Endpoints of home as a provider sees them.

use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use liqo_api::labels;

use super::Around;
use crate::route::Route;

/// Who keeps a slice.
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// When the endpoints last changed, for measuring: of no use elsewhere, and different each time.
pub(super) const TRIGGER: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The slice at a provider: without what runs there, which it knows better, and with addresses as seen from there.
pub(super) fn adapt(
    mut slice: EndpointSlice,
    route: &Route<'_>,
    around: &Around<'_>,
) -> Option<EndpointSlice> {
    let endpoints = std::mem::take(&mut slice.endpoints);
    slice.endpoints = endpoints.into_iter().filter_map(|it| endpoint(it, route, around)).collect();
    if slice.endpoints.is_empty() {
        return None;
    }
    let own = slice.metadata.labels.get_or_insert_default();
    own.insert(MANAGED_BY.to_owned(), labels::REFLECTED_ENDPOINT_SLICE.to_owned());
    Some(slice)
}

fn endpoint(it: Endpoint, route: &Route<'_>, around: &Around<'_>) -> Option<Endpoint> {
    let provider = it.node_name.as_deref().and_then(around.provider_of);
    if provider.as_deref() == Some(route.provider) {
        return None;
    }
    let seen = |address: &String| around.translate.to_provider(route.provider, address);
    let addresses: Vec<_> = it.addresses.iter().filter_map(seen).collect();
    let target_ref = it.target_ref.map(|mut target| {
        // There is no such object there.
        target.kind = target.kind.map(|kind| format!("Remote{kind}"));
        target
    });
    (!addresses.is_empty()).then(|| Endpoint {
        addresses,
        conditions: it.conditions,
        hostname: it.hostname,
        node_name: Some(route.home.to_owned()),
        target_ref,
        ..Endpoint::default()
    })
}
