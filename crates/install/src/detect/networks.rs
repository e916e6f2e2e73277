//! The networks of pods and Services.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

use super::{Distribution, Found};
use crate::facts::Facts;

/// Nodes have slices of the pods' network, and more nodes will have more of them: what is found from the slices of a
/// few nodes is taken to be at least this large.
const USUAL_PREFIX: u8 = 16;
/// A VPC is at most this large.
const VPC_PREFIX: u8 = 16;

/// The pods' network: what the network plugin says, then what the control plane was told, then what nodes and pods
/// have, then what the distribution does unless told otherwise.
pub(super) fn pods(
    facts: &Facts,
    assumed: Option<Distribution>,
    services: Option<&Found<String>>,
) -> Option<Found<String>> {
    let from = |texts: &[String], source: &str| first(texts).map(|net| Found::new(net, source));
    let openshift = facts.openshift.as_ref().map(|openshift| openshift.cluster_networks.as_slice());
    None.or_else(|| {
        let sandbox = facts.sandbox.as_ref()?;
        from(std::slice::from_ref(&sandbox.pod_cidr), &format!("the running sandbox {}", sandbox.sandbox))
    })
    .or_else(|| from(openshift?, "Network cluster of config.openshift.io"))
    .or_else(|| from(&facts.calico_pools, "Calico's IPPool"))
    .or_else(|| from(&facts.cilium_pools, "ConfigMap kube-system/cilium-config"))
    .or_else(|| {
        let told = kubeadm_value(facts, &["networking", "podSubnet"])?;
        from(&[told], "podSubnet of ConfigMap kube-system/kubeadm-config")
    })
    .or_else(|| argument(facts, "--cluster-cidr", "kube-controller-manager"))
    .or_else(|| slices(facts, assumed, services))
    .or_else(|| by_default(assumed).map(|(pods, _, source)| Found::new(pods, source)))
    .or_else(|| estimate(facts))
}

/// The services' network.
pub(super) fn services(facts: &Facts, assumed: Option<Distribution>) -> Option<Found<String>> {
    let from = |texts: &[String], source: &str| first(texts).map(|net| Found::new(net, source));
    let openshift = facts.openshift.as_ref().map(|openshift| openshift.service_networks.as_slice());
    from(&facts.service_cidrs, "ServiceCIDR objects")
        .or_else(|| from(openshift?, "Network cluster of config.openshift.io"))
        .or_else(|| {
            let sandbox = facts.sandbox.as_ref()?;
            from(
                std::slice::from_ref(&sandbox.service_cidr),
                &format!("the running sandbox {}", sandbox.sandbox),
            )
        })
        .or_else(|| {
            let told = kubeadm_value(facts, &["networking", "serviceSubnet"])?;
            from(&[told], "serviceSubnet of ConfigMap kube-system/kubeadm-config")
        })
        .or_else(|| argument(facts, "--service-cluster-ip-range", "kube-apiserver"))
        .or_else(|| {
            let refusal = facts.service_refusal.as_ref()?;
            let after = refusal.split("range of valid IPs is").nth(1)?;
            let net = after.split_whitespace().next()?.trim_end_matches('.');
            from(&[net.to_owned()], "the API server's answer to a Service with an impossible address")
        })
        .or_else(|| by_default(assumed).map(|(_, services, source)| Found::new(services, source)))
        // A default that the Service kubernetes is not in is another cluster's.
        .filter(|found| contains(&found.value, facts.kubernetes_service.as_deref()))
}

fn contains(net: &str, address: Option<&str>) -> bool {
    let Some(address) = address.and_then(|text| text.parse::<IpAddr>().ok()) else { return true };
    net.parse::<IpNet>().is_ok_and(|net| net.contains(&address) || net.addr().is_ipv4() != address.is_ipv4())
}

/// The first network of a list, those of IPv4 before others; each text may hold several, split by commas.
fn first(texts: &[String]) -> Option<String> {
    let nets: Vec<IpNet> =
        texts.iter().flat_map(|text| text.split(',')).filter_map(|net| net.trim().parse().ok()).collect();
    let chosen = nets.iter().find(|net| net.addr().is_ipv4()).or(nets.first())?;
    Some(chosen.trunc().to_string())
}

/// A field of kubeadm's ClusterConfiguration.
pub(super) fn kubeadm_value(facts: &Facts, path: &[&str]) -> Option<String> {
    let config: serde_json::Value = serde_saphyr::from_str(facts.kubeadm_config.as_deref()?).ok()?;
    let value = path.iter().try_fold(&config, |value, key| value.get(key))?;
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn argument(facts: &Facts, flag: &str, program: &str) -> Option<Found<String>> {
    let arguments = &facts.control_plane_arguments;
    let value = arguments.iter().enumerate().find_map(|(place, argument)| {
        let rest = argument.strip_prefix(flag)?;
        match rest.strip_prefix('=') {
            Some(value) => Some(value.to_owned()),
            None if rest.is_empty() => arguments.get(place + 1).cloned(),
            None => None,
        }
    })?;
    first(&[value]).map(|net| Found::new(net, format!("{flag} of {program}")))
}

/// The network that the nodes' slices are of.
fn slices(
    facts: &Facts,
    assumed: Option<Distribution>,
    services: Option<&Found<String>>,
) -> Option<Found<String>> {
    let all = facts.nodes.iter().flat_map(|node| &node.pod_cidrs);
    let nets: Vec<Ipv4Net> = all.filter_map(|text| text.parse().ok()).collect();
    let exact = supernet(nets.iter().map(|net| (net.network(), net.broadcast())))?;
    let count = facts.nodes.iter().filter(|node| !node.pod_cidrs.is_empty()).count();
    let source = match count {
        1 => "spec.podCIDRs of the only node".to_owned(),
        count => format!("spec.podCIDRs of {count} nodes"),
    };
    if let Some((pods, _, known)) = by_default(assumed)
        && pods.parse::<Ipv4Net>().is_ok_and(|default| default.contains(&exact))
    {
        return Some(Found::new(pods, format!("{known}, which {source} agree with")));
    }
    let wide = widened(exact, USUAL_PREFIX, services);
    let source = if wide == exact { source } else { format!("{source} ({exact}), with room for more nodes") };
    Some(Found::new(wide.to_string(), source))
}

/// What pods and nodes of a cluster without a pods' network of its own have: those of a VPC.
fn estimate(facts: &Facts) -> Option<Found<String>> {
    let nodes = facts.nodes.iter().filter_map(|node| node.internal_address.as_ref());
    let addresses: Vec<_> =
        facts.pod_addresses.iter().chain(nodes).filter_map(|text| text.parse().ok()).collect();
    // Nodes alone say nothing of pods.
    if facts.pod_addresses.is_empty() {
        return None;
    }
    let exact = supernet(addresses.into_iter().map(|address| (address, address)))?;
    let wide = widened(exact, VPC_PREFIX, None);
    Some(Found::new(
        wide.to_string(),
        "the addresses of pods and nodes, which is only an estimate: --pod-cidr tells better",
    ))
}

/// The smallest network that holds all these ranges.
fn supernet(ranges: impl Iterator<Item = (std::net::Ipv4Addr, std::net::Ipv4Addr)>) -> Option<Ipv4Net> {
    let (low, high) = ranges
        .map(|(first, last)| (u32::from(first), u32::from(last)))
        .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let prefix = u8::try_from((low ^ high).leading_zeros()).ok()?;
    Some(Ipv4Net::new(low.into(), prefix).ok()?.trunc())
}

/// The same network with a shorter prefix, unless it would swallow the services' network.
fn widened(net: Ipv4Net, prefix: u8, services: Option<&Found<String>>) -> Ipv4Net {
    let Some(wide) = (net.prefix_len() > prefix).then(|| Ipv4Net::new(net.addr(), prefix).ok()).flatten()
    else {
        return net;
    };
    let wide = wide.trunc();
    let services: Option<Ipv4Net> = services.and_then(|found| found.value.parse().ok());
    let collides = services.is_some_and(|services| wide.contains(&services) || services.contains(&wide));
    if collides { net } else { wide }
}

/// What distributions do unless told otherwise: pods, services.
fn by_default(assumed: Option<Distribution>) -> Option<(&'static str, &'static str, &'static str)> {
    match assumed? {
        Distribution::K3s => Some(("10.42.0.0/16", "10.43.0.0/16", "the defaults of k3s")),
        Distribution::Kind => Some(("10.244.0.0/16", "10.96.0.0/16", "the defaults of kind")),
        Distribution::Openshift => Some(("10.128.0.0/14", "172.30.0.0/16", "the defaults of OpenShift")),
        // Pods are in a VPC or VNet, or in a network that somebody chose.
        Distribution::Kubeadm
        | Distribution::Eks
        | Distribution::Gke
        | Distribution::Aks
        | Distribution::Sandbox => None,
    }
}
