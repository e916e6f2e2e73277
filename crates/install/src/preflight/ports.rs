//! Ports of the nodes: each can be had by one only.

use super::{World, anchor};
use crate::finding::Finding;

const UDP: &str = "UDP";
const TCP: &str = "TCP";

pub(super) fn tunnels(world: &World<'_>) -> Finding {
    const NAME: &str = "the port of the tunnels is free on the nodes";
    const HINT: &str = "choose another with --vpn-listening-port";
    match world.settings.listening_port.filter(|port| *port > 0) {
        Some(port) => free(world, NAME, &[port], UDP, HINT),
        None => Finding::failed(NAME, "it must be a number between 1 and 65535")
            .hint("choose one with --vpn-listening-port")
            .docs(anchor::PORT),
    }
}

/// Ports that are had only if somebody asks for them.
pub(super) fn others(world: &World<'_>) -> Vec<Finding> {
    const AUTH: &str = "the port of the authentication service is free on the nodes";
    const AUTH_HINT: &str =
        "choose another with --set auth.service.nodePort=…, or 0: then Kubernetes chooses";
    const LAN: &str = "the ports for finding clusters in the local network are free on the nodes";
    const LAN_HINT: &str = "choose others with --set discovery.metricsPort=…,discovery.probesPort=…";
    let auth = world.settings.auth_node_port.map(|port| free(world, AUTH, &[port], TCP, AUTH_HINT));
    let lan = &world.settings.lan_ports;
    let lan = (!lan.is_empty()).then(|| free(world, LAN, lan, TCP, LAN_HINT));
    auth.into_iter().chain(lan).collect()
}

fn free(world: &World<'_>, name: &str, ports: &[u16], protocol: &str, hint: &str) -> Finding {
    let users = |port: &u16| {
        let same = world.existing.ports.iter().filter(|one| one.number == *port && one.protocol == protocol);
        let by: Vec<&str> = same.map(|one| one.by.as_str()).collect();
        (!by.is_empty()).then(|| format!("{port}/{protocol} is used by {}", by.join(", ")))
    };
    let taken: Vec<String> = ports.iter().filter_map(users).collect();
    if !taken.is_empty() {
        return Finding::failed(name, taken.join("; ")).hint(hint).docs(anchor::PORT);
    }
    let all: Vec<String> = ports.iter().map(|port| format!("{port}/{protocol}")).collect();
    Finding::ok(name, all.join(", "))
}
