//! Where others on the local network reach the authentication service. Pure.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;

use crate::values::{Host, Port};

/// A port, and the addresses that have it; none means every address of every interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) port: u16,
    pub(super) addresses: Vec<IpAddr>,
}

/// The place, or what is missing for there to be one.
///
/// A port that the nodes have comes first: it is there on this node's own addresses, which are those of the local network.
pub(super) fn place(service: &Service, address: Option<&Host>, port: Option<&Port>) -> Result<Place, String> {
    let own = service.spec.as_ref().and_then(|spec| spec.ports.as_ref()?.first());
    let own = own.ok_or("the Service liqo-auth has no port")?;
    let number = |port: i32| u16::try_from(port).ok().filter(|port| *port > 0);
    if let Some(Host(host)) = address {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        // A name is for those far away, who can look it up; so is the port there.
        if let Ok(address) = bare.parse() {
            let port = port.map(|port| port.0).or_else(|| number(own.port));
            let port = port.ok_or("the Service liqo-auth has no port")?;
            return Ok(Place { port, addresses: vec![address] });
        }
    }
    let forwarded = port.filter(|_| address.is_none()).map(|port| port.0);
    if let Some(port) = forwarded.or_else(|| own.node_port.and_then(number)) {
        return Ok(Place { port, addresses: Vec::new() });
    }
    let addresses = balancer(service);
    match number(own.port) {
        Some(port) if !addresses.is_empty() => Ok(Place { port, addresses }),
        _ => Err("the Service liqo-auth has no port on the nodes: make it a NodePort or LoadBalancer Service \
                  (auth.service.type), or say where it is reached (auth.config.addressOverride and portOverride)"
            .to_owned()),
    }
}

fn balancer(service: &Service) -> Vec<IpAddr> {
    let status = service.status.as_ref().and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref());
    status.into_iter().flatten().filter_map(|one| one.ip.as_ref()?.parse().ok()).collect()
}
