//! Where peers reach the API server. What this machine uses is of no use to them when it only works here.

use std::net::IpAddr;

use super::{Found, networks::kubeadm_value};
use crate::facts::{Facts, in_url};

/// Where API servers listen unless told otherwise.
const USUAL_PORT: u16 = 6443;

pub(super) fn find(facts: &Facts) -> Option<Found<String>> {
    if let Some(sandbox) = &facts.sandbox {
        return Some(Found::new(
            sandbox.api_server.as_str(),
            format!("the running sandbox {}", sandbox.sandbox),
        ));
    }
    if let Some(address) = facts.openshift.as_ref().and_then(|openshift| openshift.api_server.as_ref()) {
        return Some(Found::new(address.as_str(), "Infrastructure cluster of config.openshift.io"));
    }
    let server = facts.server.trim_end_matches('/');
    if !only_here(server) {
        return (!server.is_empty()).then(|| Found::new(server, "the kubeconfig"));
    }
    let instead = format!("as {server} of the kubeconfig is of no use to peers");
    elsewhere(facts).map(|found| Found::new(found.value, format!("{}, {instead}", found.source)))
}

fn elsewhere(facts: &Facts) -> Option<Found<String>> {
    if let Some(endpoint) = kubeadm_value(facts, &["controlPlaneEndpoint"])
        && is_known_elsewhere(&endpoint)
    {
        return Some(Found::new(
            format!("https://{endpoint}"),
            "controlPlaneEndpoint of ConfigMap kube-system/kubeadm-config",
        ));
    }
    let port = facts.kubernetes_endpoints.first().and_then(|text| text.rsplit_once(':')?.1.parse().ok());
    let port: u16 = port.unwrap_or(USUAL_PORT);
    let node = facts.nodes.iter().find(|node| node.is_control_plane());
    if let Some(node) = node
        && let Some(address) = node.external_address.as_ref().or(node.internal_address.as_ref())
    {
        return Some(Found::new(
            format!("https://{}:{port}", in_url(address)),
            format!("the control-plane node {}", node.name),
        ));
    }
    let endpoint = facts.kubernetes_endpoints.iter().find(|one| !only_here(&format!("https://{one}")))?;
    Some(Found::new(format!("https://{endpoint}"), "EndpointSlice default/kubernetes"))
}

/// Whether a `host:port` means something outside of the cluster: kind and others put a node's bare name there.
fn is_known_elsewhere(endpoint: &str) -> bool {
    let Some((host, _)) = endpoint.rsplit_once(':') else { return false };
    host.contains(['.', ':']) && !only_here(&format!("https://{endpoint}"))
}

/// Whether an address means this machine, or none at all.
pub(crate) fn only_here(url: &str) -> bool {
    let Ok(uri) = url.parse::<http::Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => {
            matches!(host, "localhost" | "kubernetes" | "kubernetes.default" | "kubernetes.default.svc")
                || host.ends_with(".localhost")
        }
    }
}
