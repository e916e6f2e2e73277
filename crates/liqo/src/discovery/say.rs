//! What is said about this cluster: only what its own authentication service confirms.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use liqo_api::Fingerprint;
use liqo_api::names::Identity;
use liqo_authentication::client::{Trust, identify_at};
use liqo_discovery::Advertisement;
use liqo_kit::Shared;
use liqo_kit::health::Checks;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::arguments::Lan;
use super::own::Own;
use super::place::place;
use crate::VERSION;
use crate::values::{Host, Port};

/// When the service is asked again that did not answer: it may be about to start.
const SOON: Duration = Duration::from_secs(2);
/// When it is asked again that did: its certificate lives for years, but somebody may replace it.
const LATER: Duration = Duration::from_secs(60);

/// Keeps what is said up to date. Clones share it.
#[derive(Clone)]
pub(super) struct Saying {
    own: Shared<Own>,
    address: Option<Host>,
    port: Option<Port>,
    ttl: u32,
    said: watch::Sender<Option<Advertisement>>,
    /// Why nothing is said yet.
    trouble: Arc<Mutex<String>>,
}

impl Saying {
    pub(super) fn new(own: Shared<Own>, lan: &Lan) -> Self {
        Self {
            own,
            address: lan.auth_service_address_override.0.clone(),
            port: lan.auth_service_port_override.0,
            ttl: u32::try_from(lan.mdns_ttl.0.as_secs()).unwrap_or(u32::MAX),
            said: watch::Sender::new(None),
            trouble: Arc::new(Mutex::new("starting".to_owned())),
        }
    }

    pub(super) fn said(&self) -> watch::Receiver<Option<Advertisement>> {
        self.said.subscribe()
    }

    /// Adds the check that there is something to say.
    pub(super) fn add_check(&self, checks: &Checks) {
        let saying = self.clone();
        checks.add("advertisement", move || match &*saying.said.borrow() {
            Some(_) => Ok(()),
            None => Err(saying.trouble.lock().clone()),
        });
    }

    /// Asks and says until it is stopped. What was said once goes on being said when the service does not answer for a
    /// while: a manager that restarts is no cluster that leaves.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut changes = self.own.subscribe();
        loop {
            changes.borrow_and_update();
            let Some(found) = stop.run_until_cancelled(self.look()).await else { return };
            let wait = match found {
                Ok(found) => {
                    self.said.send_if_modified(|said| {
                        let differs = said.as_ref() != Some(&found);
                        if differs {
                            tracing::info!(port = found.port, fingerprint = ?found.fingerprint, "advertising this cluster");
                            *said = Some(found);
                        }
                        differs
                    });
                    LATER
                }
                Err(why) => {
                    let former = std::mem::replace(&mut *self.trouble.lock(), why.clone());
                    if former != why {
                        tracing::warn!("what is advertised cannot be confirmed: {why}");
                    }
                    SOON
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                _ = changes.changed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn look(&self) -> Result<Advertisement, String> {
        let (identity, service) = {
            let own = self.own.read();
            (own.identity.clone(), own.service.clone())
        };
        let identity =
            identity.ok_or("it is not known yet who this cluster is; the manager's leader says so")?;
        let service = service.ok_or("there is no Service liqo-auth")?;
        let place = place(&service, self.address.as_ref(), self.port.as_ref())?;
        let fingerprint = confirm(&service, &identity).await?;
        Ok(Advertisement {
            identity,
            port: place.port,
            addresses: place.addresses,
            fingerprint: Some(fingerprint),
            version: VERSION.to_owned(),
            ttl: self.ttl,
        })
    }
}

/// The fingerprint of our own service, if it is ours. Asking for it needs no right to read its key.
async fn confirm(service: &Service, own: &Identity) -> Result<Fingerprint, String> {
    let address = inside(service).ok_or("the Service liqo-auth has no address in the cluster")?;
    let asked = identify_at(&format!("https://{address}"), address, &Trust::Anyone).await;
    let (found, fingerprint) =
        asked.map_err(|error| format!("the authentication service does not answer: {error}"))?;
    if found.identity != *own {
        return Err(format!(
            "the authentication service at {address} is of the cluster {} ({}), and this is {} ({})",
            found.identity.name, found.identity.id, own.name, own.id
        ));
    }
    Ok(fingerprint)
}

/// Where the Service is reached inside the cluster, and from its nodes.
fn inside(service: &Service) -> Option<SocketAddr> {
    let spec = service.spec.as_ref()?;
    let address: IpAddr = spec.cluster_ip.as_ref()?.parse().ok()?;
    let port = u16::try_from(spec.ports.as_ref()?.first()?.port).ok()?;
    Some((address, port).into())
}
