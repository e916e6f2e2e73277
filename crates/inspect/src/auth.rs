//! Where other clusters reach this one.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Service};
use kube::Api;
use kube::api::ListParams;
use liqo_api::credentials::AUTH_SERVICE;

use crate::facts::Read;
use crate::installation::{self, Installation, MANAGER, Unread};

/// Flags of the manager that say where its service is, if not where the Service says.
const ADDRESS_FLAG: &str = "--auth-service-address-override=";
const PORT_FLAG: &str = "--auth-service-port-override=";

/// Nodes that are looked at; one with an address is enough.
const SOME_NODES: u32 = 50;

impl Installation {
    /// The URL at which other clusters reach the authentication service; the error says what is missing.
    pub async fn auth_url(&self) -> Result<String, String> {
        let (service, nodes, manager) = tokio::join!(
            self.get::<Service>(AUTH_SERVICE),
            self.some_nodes(),
            self.get::<Deployment>(MANAGER)
        );
        auth_url(&service, &nodes, &manager)
    }

    pub(crate) async fn some_nodes(&self) -> Read<Vec<Node>> {
        let api: Api<Node> = Api::all(self.client.clone());
        let page = api.list(&ListParams::default().limit(SOME_NODES)).await;
        page.map(|page| page.items).map_err(|error| Unread::new("nodes", &error))
    }
}

/// The URL, out of what was read.
pub(crate) fn auth_url(
    service: &Read<Service>,
    nodes: &Read<Vec<Node>>,
    manager: &Read<Deployment>,
) -> Result<String, String> {
    let service = service.as_ref().map_err(ToString::to_string)?;
    let flag = |name: &str| manager.as_ref().ok().and_then(|manager| installation::flag(manager, name));
    let (address, port) = (flag(ADDRESS_FLAG), flag(PORT_FLAG).and_then(|port| port.parse().ok()));
    let found = nodes.as_deref().unwrap_or_default();
    liqo_authentication::auth_url(service, found, address, port).map_err(|reason| match nodes {
        // Without them, the reason would be misleading.
        Err(why) => why.to_string(),
        Ok(_) => reason,
    })
}

/// Whether it waits for a load balancer that does not come.
pub(crate) fn waits_for_balancer(service: &Service) -> bool {
    let is_balanced = service.spec.as_ref().is_some_and(|spec| spec.type_.as_deref() == Some("LoadBalancer"));
    let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
    is_balanced && balancer.is_none_or(Vec::is_empty)
}
