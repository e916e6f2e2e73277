//! Networks, and the API server's address for peers.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{World, anchor};
use crate::finding::Finding;
use crate::values::network;

pub(super) fn networks(world: &World<'_>) -> Finding {
    const NAME: &str = "the networks of pods and Services are known and do not overlap";
    let settings = world.settings;
    let named = [
        ("pod CIDR", &settings.pod_cidr, "--pod-cidr"),
        ("service CIDR", &settings.service_cidr, "--service-cidr"),
    ];
    let mut nets: Vec<(String, IpNet)> = Vec::new();
    let mut wrong = Vec::new();
    let mut unknown = Vec::new();
    let mut add = |label: String, text: &str, wrong: &mut Vec<String>| match network(text) {
        Ok(net) => nets.push((label, net)),
        Err(why) => wrong.push(format!("{label}: {why}")),
    };
    for (label, text, flag) in named {
        match text {
            Some(text) => add(label.to_owned(), text, &mut wrong),
            None => unknown.push((label, flag)),
        }
    }
    for text in &settings.reserved_subnets {
        add(format!("reserved subnet {text}"), text, &mut wrong);
    }
    wrong.extend(overlaps(&nets));
    wrong.extend(kubernetes_outside(world, &nets));
    if !wrong.is_empty() {
        return Finding::failed(NAME, wrong.join("; "))
            .hint(
                "give the networks that the cluster really has with --pod-cidr and --service-cidr, and leave both out of \
                 --reserved-subnets: they are never given to peers anyway",
            )
            .docs(anchor::NETWORKS);
    }
    let seen: Vec<String> = nets.iter().take(2).map(|(label, net)| format!("{label} {net}")).collect();
    if !unknown.is_empty() {
        let (labels, flags): (Vec<_>, Vec<_>) = unknown.into_iter().unzip();
        return Finding::warning(
            NAME,
            format!("nothing in the cluster tells its {}", labels.join(" or its ")),
        )
        .hint(format!("give it with {}", flags.join(" and ")))
        .docs(anchor::NETWORKS);
    }
    let strays = strays(world, &nets);
    if !strays.is_empty() {
        return Finding::warning(
            NAME,
            format!("pods have addresses outside of the pod CIDR: {}", strays.join(", ")),
        )
        .hint("give the pods' network with --pod-cidr")
        .docs(anchor::NETWORKS);
    }
    Finding::ok(NAME, seen.join(", "))
}

fn overlaps(nets: &[(String, IpNet)]) -> Vec<String> {
    let mut found = Vec::new();
    for (place, (label, net)) in nets.iter().enumerate() {
        for (other, second) in &nets[place + 1..] {
            // Two reserved networks may well be one in the other.
            let both_reserved = label.starts_with("reserved") && other.starts_with("reserved");
            if !both_reserved && (net.contains(second) || second.contains(net)) {
                let (first, second) = (told(label, net), told(other, second));
                found.push(format!("{first} and {second} overlap"));
            }
        }
    }
    found
}

fn told(label: &str, net: &IpNet) -> String {
    if label.starts_with("reserved") { label.to_owned() } else { format!("{label} {net}") }
}

/// The one Service whose address is known to be in the services' network.
fn kubernetes_outside(world: &World<'_>, nets: &[(String, IpNet)]) -> Option<String> {
    let address: IpAddr = world.facts.kubernetes_service.as_deref()?.parse().ok()?;
    let (_, net) = nets.iter().find(|(label, _)| label == "service CIDR")?;
    let same_family = net.addr().is_ipv4() == address.is_ipv4();
    (same_family && !net.contains(&address)).then(|| {
        format!("service CIDR {net} is not this cluster's: the Service kubernetes has the address {address}")
    })
}

/// Addresses of pods that are not where pods should be.
fn strays(world: &World<'_>, nets: &[(String, IpNet)]) -> Vec<String> {
    const SHOWN: usize = 3;
    let Some((_, net)) = nets.iter().find(|(label, _)| label == "pod CIDR") else { return vec![] };
    let addresses = world.facts.pod_addresses.iter().filter_map(|text| text.parse::<IpAddr>().ok());
    addresses
        .filter(|address| address.is_ipv4() == net.addr().is_ipv4() && !net.contains(address))
        .take(SHOWN)
        .map(|address| address.to_string())
        .collect()
}

pub(super) fn api_server(world: &World<'_>) -> Finding {
    const NAME: &str = "peers can be told where the API server is";
    let Some(address) = &world.settings.api_server else {
        return Finding::warning(
            NAME,
            "the kubeconfig's address only works on this machine, and no node tells a better one",
        )
        .hint("give it with --api-server-url https://HOST:6443")
        .docs(anchor::API_SERVER);
    };
    let valid = address
        .parse::<http::Uri>()
        .ok()
        .filter(|uri| uri.scheme_str() == Some("https") && uri.host().is_some());
    if valid.is_none() {
        return Finding::failed(NAME, format!("{address:?} is no address of an API server"))
            .hint("write it like https://203.0.113.7:6443")
            .docs(anchor::API_SERVER);
    }
    if crate::detect::only_here(address) {
        return Finding::warning(NAME, format!("{address} means another machine for everybody else"))
            .hint("give the address that peers use with --api-server-url")
            .docs(anchor::API_SERVER);
    }
    match world.unreachable {
        Some(why) => Finding::warning(NAME, format!("{address} does not answer to this machine: {why}"))
            .hint("if peers reach it all the same, all is well: --disable-endpoint-check leaves this out. Else give \
                   another with --api-server-url")
            .docs(anchor::API_SERVER),
        None => Finding::ok(NAME, address),
    }
}
