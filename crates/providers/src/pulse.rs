//! Asks providers whether they answer, with a real request through the real client.

use std::time::Duration;

use kube::Api;
use kube::api::ListParams;
use liqo_api::ResourceRequest;
use liqo_kit::clusters::ClientSource;

use crate::Link;

/// How often a provider is asked.
pub(crate) const EVERY: Duration = Duration::from_secs(2);
/// How long the answer may take: longer, and it is as good as none.
const ANSWER: Duration = Duration::from_secs(2);
/// How many are asked in a second, however many there are: a thousand providers cost no more than these.
const MOST_IN_A_SECOND: u32 = 250;

/// How long to wait between two rounds of asking so many.
pub(crate) fn interval(providers: usize) -> Duration {
    let providers = u32::try_from(providers).unwrap_or(u32::MAX);
    EVERY.max(Duration::from_secs(1).saturating_mul(providers) / MOST_IN_A_SECOND)
}

/// Asks once: authentication, authorization and the store behind the API server are all needed for the answer.
pub(crate) async fn ask(link: &Link) -> Result<(), String> {
    let requests: Api<ResourceRequest> = Api::namespaced(link.cluster.client(), link.place.as_str());
    let list = ListParams::default().limit(1);
    match tokio::time::timeout(ANSWER, requests.list_metadata(&list)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(kube::Error::Api(status))) => {
            Err(format!("its API server answers {}: {}", status.code, status.message))
        }
        Ok(Err(error)) => {
            Err(format!("its API server cannot be reached: {}", liqo_kit::watch::Chain(&error)))
        }
        Err(_) => Err(format!("its API server does not answer within {} s", ANSWER.as_secs())),
    }
}
