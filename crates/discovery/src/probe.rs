//! Asking a candidate who it is.
//!
//! All its addresses are tried at once, as some may be of networks that we do not reach; the first that takes a
//! connection is asked for `GET /ids`. How that is done over TLS is the caller's: see [`Identify`].

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use liqo_api::Fingerprint;
use liqo_api::names::Identity;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::advert::{self, Advert, Host, Refusal, Refused};
use crate::book::Answer;

#[cfg(test)]
mod tests;

/// How long a connection to one address may take.
const CONNECT: Duration = Duration::from_millis(500);

/// How long a cluster may take to say who it is, TLS included.
const IDENTIFY: Duration = Duration::from_secs(5);

/// Where a cluster's authentication service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its base URL, such as `https://203.0.113.7:31520`; `/ids` is below it.
    pub url: String,
    /// The host as the URL has it, without brackets: a name or an address.
    pub host: String,
    /// The address to connect to: one that the host has.
    pub address: SocketAddr,
    /// The certificate that it must show, where that is known. Without one, any will do: nothing secret is sent.
    pub fingerprint: Option<Fingerprint>,
}

/// What an authentication service answers. Texts are as they came; they are checked here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The cluster's ID.
    pub cluster_id: String,
    /// The cluster's name.
    pub cluster_name: String,
    /// The fingerprint of the certificate that it showed.
    pub fingerprint: Fingerprint,
}

/// Why it did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentifyError {
    /// It shows another certificate than the one that it must show.
    #[error("its certificate is not the expected one: {0}")]
    Certificate(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// Asks an authentication service who it is: `GET /ids`, which answers `{"clusterId": …, "clusterName": …}`.
///
/// It is given strangers' addresses, so it must connect to [`Endpoint::address`] and nowhere else, follow nothing, read no
/// more than a few kilobytes, and send nothing secret. Where [`Endpoint::fingerprint`] is known, only that certificate
/// counts.
pub trait Identify: Send + Sync + 'static {
    /// Asks. It is given a few seconds, then dropped.
    fn identify(&self, endpoint: Endpoint) -> BoxFuture<'static, Result<Ids, IdentifyError>>;
}

/// Asks the candidate of a record, and compares what it says with what the record says.
pub(crate) async fn ask(advert: &Advert, identify: &Arc<dyn Identify>) -> Result<Answer, Refused> {
    let address = connect(&advert.addresses, advert.port).await.ok_or_else(|| unreachable(advert))?;
    let host = match &advert.host {
        Host::Name(name) => name.to_string(),
        Host::Address => address.ip().to_string(),
    };
    let url = advert.url(address.ip());
    let endpoint = Endpoint { url, host, address, fingerprint: advert.fingerprint };
    let answer = ask_endpoint(endpoint, identify).await?;
    compare(advert, &answer)?;
    Ok(answer)
}

/// Asks who is at an endpoint.
pub(crate) async fn ask_endpoint(
    endpoint: Endpoint,
    identify: &Arc<dyn Identify>,
) -> Result<Answer, Refused> {
    let url = endpoint.url.clone();
    let ids = match timeout(IDENTIFY, identify.identify(endpoint)).await {
        Err(_) => {
            let detail = format!("{url} did not say within {} s who it is", IDENTIFY.as_secs());
            return Err(Refused::new(Refusal::NotIdentified, detail));
        }
        Ok(Err(IdentifyError::Certificate(reason))) => {
            let detail = format!("{url} has another certificate than the advertised one: {}", clip(&reason));
            return Err(Refused::new(Refusal::WrongCertificate, detail));
        }
        Ok(Err(IdentifyError::Failed(reason))) => {
            let detail = format!("{url} does not say who it is: {}", clip(&reason));
            return Err(Refused::new(Refusal::NotIdentified, detail));
        }
        Ok(Ok(ids)) => ids,
    };
    let identity =
        Identity { id: advert::cluster_id(&ids.cluster_id)?, name: advert::cluster_name(&ids.cluster_name)? };
    Ok(Answer { identity, url, fingerprint: ids.fingerprint })
}

/// Connects to all addresses at once; returns the first that answers.
pub(crate) async fn connect(addresses: &[IpAddr], port: u16) -> Option<SocketAddr> {
    let mut attempts: FuturesUnordered<_> = addresses
        .iter()
        .map(|address| {
            let address = SocketAddr::new(*address, port);
            async move { timeout(CONNECT, TcpStream::connect(address)).await.ok()?.ok().map(|_| address) }
        })
        .collect();
    while let Some(attempt) = attempts.next().await {
        if attempt.is_some() {
            return attempt;
        }
    }
    None
}

fn unreachable(advert: &Advert) -> Refused {
    let addresses: Vec<_> =
        advert.addresses.iter().map(|address| SocketAddr::new(*address, advert.port).to_string()).collect();
    let detail = format!("nothing answers at {} within {} ms", addresses.join(", "), CONNECT.as_millis());
    Refused::new(Refusal::Unreachable, detail)
}

/// Who answers must be who was advertised.
fn compare(advert: &Advert, answer: &Answer) -> Result<(), Refused> {
    let Identity { id, name } = &answer.identity;
    let url = &answer.url;
    if let Some(advertised) = advert.id.as_ref().filter(|advertised| *advertised != id) {
        let detail = format!("{url} is advertised as cluster {advertised}, but says that it is {id}");
        return Err(Refused::new(Refusal::Impostor, detail));
    }
    if let Some(advertised) = advert.name.as_ref().filter(|advertised| *advertised != name) {
        let detail = format!("{url} is advertised under the name {advertised}, but calls itself {name}");
        return Err(Refused::new(Refusal::Impostor, detail));
    }
    if let Some(advertised) = advert.fingerprint.filter(|advertised| *advertised != answer.fingerprint) {
        let detail = format!(
            "{url} is advertised with the certificate {advertised}, but shows {}",
            answer.fingerprint
        );
        return Err(Refused::new(Refusal::WrongCertificate, detail));
    }
    Ok(())
}

/// An error's words may repeat what a stranger sent.
fn clip(reason: &str) -> String {
    const LONGEST: usize = 200;
    reason.chars().filter(|character| !character.is_control()).take(LONGEST).collect()
}
