//! Where others reach us: the API server that peers are told, and the authentication service.

use k8s_openapi::api::core::v1::{Node, Service};
use kube::ResourceExt;
use liqo_api::labels;

#[cfg(test)]
mod tests;

/// Where API servers usually listen.
const API_SERVER_PORT: u16 = 6443;

/// Which address of a node others can most likely reach; Liqo's order.
const PREFERENCE: [&str; 5] = ["ExternalDNS", "ExternalIP", "InternalDNS", "InternalIP", "Hostname"];

/// Marks the nodes that have an API server.
pub(crate) const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// The API server's URL from what someone configured: a URL, a host, or a host and a port.
pub(crate) fn api_server_from(setting: &str) -> Result<String, String> {
    let setting = setting.trim();
    let url = if setting.contains("://") { setting.to_owned() } else { format!("https://{setting}") };
    let wrong =
        || format!("{setting:?} is no address of an API server; write it like https://203.0.113.7:6443");
    let uri: http::Uri = url.parse().map_err(|_| wrong())?;
    let authority = uri.authority().ok_or_else(wrong)?;
    if uri.scheme_str() != Some("https") || authority.as_str().contains('@') || uri.query().is_some() {
        return Err(wrong());
    }
    // A URL means what it says; a bare host means the port that API servers have.
    let port = if setting.contains("://") || authority.port().is_some() {
        String::new()
    } else {
        format!(":{API_SERVER_PORT}")
    };
    Ok(format!("https://{authority}{port}{}", uri.path().trim_end_matches('/')))
}

/// The API server's URL where nobody configured one: the address of a node that has one.
pub(crate) fn api_server_of(nodes: &[Node]) -> Option<String> {
    let mut nodes: Vec<_> = nodes.iter().filter(|node| is_physical(node)).collect();
    nodes.sort_by_key(|node| node.name_any());
    nodes.into_iter().find_map(address).map(|host| format!("https://{}:{API_SERVER_PORT}", bracketed(&host)))
}

/// Where others reach the authentication service: by what was configured, its load balancer, or the port that it has on
/// every node. The error says what is missing.
pub fn auth_url(
    service: &Service,
    nodes: &[Node],
    address_override: Option<&str>,
    port_override: Option<u16>,
) -> Result<String, String> {
    let name = service.name_any();
    let spec = service.spec.as_ref();
    let port = spec.and_then(|spec| spec.ports.as_ref()?.first());
    let port = port.ok_or_else(|| format!("the Service {name} has no port"))?;
    let (host, own_port) = match spec.and_then(|spec| spec.type_.as_deref()) {
        _ if address_override.is_some() => (address_override.map(str::to_owned), Some(port.port)),
        Some("LoadBalancer") if balancer(service).is_some() => (balancer(service), Some(port.port)),
        Some("LoadBalancer" | "NodePort") => {
            let mut physical: Vec<_> = nodes.iter().filter(|node| is_physical(node)).collect();
            physical.sort_by_key(|node| node.name_any());
            (physical.into_iter().find_map(address), port.node_port)
        }
        _ => {
            return Err(format!(
                "the Service {name} is reachable inside the cluster only; make it a LoadBalancer or NodePort Service, or \
                 say where it is reached (--auth-service-address-override)"
            ));
        }
    };
    let host = host.ok_or("no node has an address")?;
    let own_port = own_port.and_then(|port| u16::try_from(port).ok());
    let port =
        port_override.or(own_port).ok_or_else(|| format!("the Service {name} has no node port yet"))?;
    let host = bracketed(&host);
    Ok(if port == 443 { format!("https://{host}") } else { format!("https://{host}:{port}") })
}

fn balancer(service: &Service) -> Option<String> {
    let ingress = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?.first()?;
    ingress.hostname.clone().or_else(|| ingress.ip.clone())
}

fn is_physical(node: &Node) -> bool {
    node.labels().get(labels::NODE_TYPE).map(String::as_str) != Some(labels::NODE_TYPE_VIRTUAL)
}

fn address(node: &Node) -> Option<String> {
    let addresses = node.status.as_ref()?.addresses.as_ref()?;
    PREFERENCE.iter().find_map(|kind| {
        addresses.iter().find(|address| address.type_ == *kind).map(|address| address.address.clone())
    })
}

/// IPv6 addresses stand in brackets in URLs.
fn bracketed(host: &str) -> String {
    if host.contains(':') && !host.starts_with('[') { format!("[{host}]") } else { host.to_owned() }
}
