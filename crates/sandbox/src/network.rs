//! The cables of a sandbox. The "internet" is a bridge in a network namespace of its own; every machine is a
//! network namespace with one cable to it, and so is this machine, by one veth pair.
//!
//! A namespace is held by a sleeping process, not by a file in `/run/netns`: no mount to clean up, and when the
//! process goes, the namespace goes with everything in it.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Result, SandboxError};
use crate::plan::{ClusterPlan, MachinePlan, Place, Plan, mac_text};
use crate::process::{self, Inside, Launch};

/// How long the shell that sets a network up may take to become what holds it.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// The role of the process that holds the internet.
pub(crate) const INTERNET: &str = "internet";
/// This machine's port on the internet's bridge.
pub(crate) const HOST_PORT: &str = "host";
/// The bridge.
pub(crate) const BRIDGE: &str = "internet";

/// The role of the process that holds a machine's network.
pub(crate) fn holder_part(cluster: &ClusterPlan, machine: &MachinePlan) -> String {
    format!("{}/node-{}/network", cluster.name(), machine.number)
}

fn hold(root: &Path, part: &str) -> Result<i32> {
    let script = "ip link set lo up && echo 1 > /proc/sys/net/ipv4/ip_forward && echo ready \
                  && exec sleep infinity > /dev/null";
    let argv = ["unshare", "--net", "--", "sh", "-c", script].map(OsString::from).to_vec();
    let log = root.join("network.log");
    Launch { root, part, inside: Inside::Host, argv, log, env: vec![] }.start_and_hear_ready()?;
    // It says so just before it becomes the program that others look for, which may be a while later on a busy machine.
    let give_up = Instant::now() + PATIENCE;
    loop {
        match holder(root, part) {
            Err(_) if Instant::now() < give_up => std::thread::sleep(LOOK_AGAIN),
            found => return found,
        }
    }
}

/// The process that holds the network called `part`.
pub(crate) fn holder(root: &Path, part: &str) -> Result<i32> {
    process::of(root)
        .into_iter()
        .find(|process| process.part == part && process.program == "sleep")
        .map(|process| process.pid)
        .ok_or_else(|| SandboxError::Command {
            what: format!("finding the network of {part}"),
            reason: "the process that holds it is gone; run liqoctl sandbox down and up again".into(),
        })
}

/// Runs `ip` commands in a namespace, all or the first that fails.
pub(crate) fn ip(inside: Inside, what: &str, commands: &[String]) -> Result<()> {
    inside.run(what, ["ip", "-batch", "-"], (commands.join("\n") + "\n").as_bytes()).map(drop)
}

/// Builds the internet and plugs this machine and every machine of the plan into it.
pub(crate) fn create(place: &Place, plan: &Plan) -> Result<()> {
    let root = place.root();
    let internet = hold(&root, INTERNET)?;
    let prefix = plan.subnet.prefix_len();
    let bridge = [
        format!("link add {BRIDGE} type bridge"),
        format!("addr add {}/{prefix} dev {BRIDGE}", plan.gateway()),
        format!("link set {BRIDGE} up"),
    ];
    ip(Inside::Network(internet), "making the bridge between the clusters", &bridge)?;
    plug_in_host(place, plan, internet)?;
    for cluster in &plan.clusters {
        for machine in &cluster.machines {
            let holder = hold(&root, &holder_part(cluster, machine))?;
            plug_in(plan, machine, internet, holder)?;
            masquerade(cluster, holder)?;
        }
    }
    Ok(())
}

fn plug_in_host(place: &Place, plan: &Plan, internet: i32) -> Result<()> {
    let (interface, mac) = (place.host_interface(), mac_text(Plan::HOST_MAC));
    let here = [
        format!("link add {interface} address {mac} type veth peer name {HOST_PORT} netns {internet}"),
        format!("addr add {}/{} dev {interface}", plan.host_address(), plan.subnet.prefix_len()),
        format!("link set {interface} up"),
    ];
    ip(Inside::Host, "connecting this machine to the sandbox", &here)?;
    let there = [format!("link set {HOST_PORT} master {BRIDGE} up")];
    ip(Inside::Network(internet), "connecting this machine to the sandbox", &there)
}

fn plug_in(plan: &Plan, machine: &MachinePlan, internet: i32, holder: i32) -> Result<()> {
    let (port, mac, name) = (&machine.port, mac_text(machine.mac), &machine.node_name);
    let what = format!("connecting machine {name}");
    let there = [
        format!("link add {port} type veth peer name eth0 address {mac} netns {holder}"),
        format!("link set {port} master {BRIDGE} up"),
    ];
    ip(Inside::Network(internet), &what, &there)?;
    let here = [
        format!("addr add {}/{} dev eth0", machine.address, plan.subnet.prefix_len()),
        "link set eth0 up".to_owned(),
        format!("route add default via {}", plan.gateway()),
    ];
    ip(Inside::Network(holder), &what, &here)
}

/// Pods reach the internet with their node's address; between nodes of a cluster they keep their own.
fn masquerade(cluster: &ClusterPlan, holder: i32) -> Result<()> {
    let pods = cluster.spec.pod_cidr;
    let rules = format!(
        "table ip sandbox {{
           chain postrouting {{
             type nat hook postrouting priority 100;
             ip saddr {pods} ip daddr != {pods} oifname eth0 masquerade
           }}
         }}"
    );
    Inside::Network(holder)
        .run("setting up address translation (nft)", ["nft", "-f", "-"], rules.as_bytes())
        .map(drop)
}

/// Tells a node which pods are behind which other node of its cluster.
pub(crate) fn route_pods(inside: Inside, routes: &[(String, std::net::Ipv4Addr)]) -> Result<()> {
    let commands: Vec<String> =
        routes.iter().map(|(pods, node)| format!("route replace {pods} via {node} dev eth0")).collect();
    if commands.is_empty() {
        return Ok(());
    }
    ip(inside, "routing to the pods of another node", &commands)
}

/// Removes this machine's cable. With the namespaces gone it usually is gone already.
pub(crate) fn unplug_host(place: &Place) -> Result<()> {
    let interface = place.host_interface();
    if !Path::new("/sys/class/net").join(&interface).exists() {
        return Ok(());
    }
    let gone = ip(Inside::Host, "removing the cable to the sandbox", &[format!("link del {interface}")]);
    // The kernel may take it away between our look and our command.
    if Path::new("/sys/class/net").join(&interface).exists() { gone } else { Ok(()) }
}
