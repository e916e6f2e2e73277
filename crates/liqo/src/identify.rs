//! Asking clusters that were heard of who they are.

use futures::FutureExt;
use futures::future::BoxFuture;
use liqo_authentication::client::{CallError, Trust, identify_at};
use liqo_discovery::{Endpoint, Identify, IdentifyError, Ids};

/// Asks the authentication service of a cluster.
pub(crate) struct Asking;

impl Identify for Asking {
    fn identify(&self, endpoint: Endpoint) -> BoxFuture<'static, Result<Ids, IdentifyError>> {
        async move {
            // Who shows no particular certificate is noted with the one that it shows.
            let trust = endpoint.fingerprint.map_or(Trust::Anyone, Trust::Fingerprint);
            match identify_at(&endpoint.url, endpoint.address, &trust).await {
                Ok((peer, fingerprint)) => Ok(Ids {
                    cluster_id: peer.identity.id.to_string(),
                    cluster_name: peer.identity.name.to_string(),
                    fingerprint,
                }),
                Err(CallError::Untrusted { reason, .. }) => Err(IdentifyError::Certificate(reason)),
                Err(error) => Err(IdentifyError::Failed(error.to_string())),
            }
        }
        .boxed()
    }
}
