//! Network faults between clusters: packets dropped by the bridge, packets delayed by a relay.

use std::path::PathBuf;

use nix::sys::signal::Signal;

use crate::error::Result;
use crate::network::{self, BRIDGE, HOST_PORT, INTERNET};
use crate::plan::{MachinePlan, Place, Plan};
use crate::process::{self, Inside, Launch};
use crate::relay::{self, RelayPlan};
use crate::spec::HOST;
use crate::state::{Faults, State};

/// The role of the relay's process.
const RELAY: &str = "relay";

/// What runs the relay: it must outlive a command, but not a test.
#[derive(Debug, Clone)]
pub enum RelayHost {
    /// This program, called with these arguments and the path of the relay's plan.
    Program(PathBuf, Vec<String>),
    /// A thread of this process.
    Thread,
}

/// Whether two pairs have the same ends, in whatever order.
pub(crate) fn same_pair(pair: &(String, String), (a, b): (&str, &str)) -> bool {
    (pair.0 == a && pair.1 == b) || (pair.0 == b && pair.1 == a)
}

/// Makes the network as the faults say.
pub(crate) fn apply(place: &Place, state: &State, relay: &RelayHost) -> Result<()> {
    let internet = network::holder(&place.root(), INTERNET)?;
    let inside = Inside::Network(internet);
    inside.run(
        "cutting the network (nft)",
        ["nft", "-f", "-"],
        rules(&state.plan, &state.faults).as_bytes(),
    )?;
    apply_delays(place, state, internet, relay)
}

/// The bridge's port of a machine: its cable, or the relay's end when one stands in between.
fn ports(plan: &Plan, name: &str) -> Vec<String> {
    if name == HOST {
        return vec![HOST_PORT.into(), relay::outer(HOST_PORT)];
    }
    let machines =
        plan.clusters.iter().filter(|cluster| cluster.name() == name).flat_map(|cluster| &cluster.machines);
    machines.flat_map(|machine| [machine.port.clone(), relay::outer(&machine.port)]).collect()
}

fn rules(plan: &Plan, faults: &Faults) -> String {
    let set = |name: &str| {
        ports(plan, name).iter().map(|port| format!("\"{port}\"")).collect::<Vec<_>>().join(", ")
    };
    let drops: String = faults
        .cuts
        .iter()
        .map(|(a, b)| (set(a), set(b)))
        .map(|(a, b)| {
            format!("iifname {{ {a} }} oifname {{ {b} }} drop\niifname {{ {b} }} oifname {{ {a} }} drop\n")
        })
        .collect();
    format!(
        "table bridge faults\ndelete table bridge faults\n\
         table bridge faults {{\nchain forward {{\ntype filter hook forward priority 0;\n{drops}}}\n}}\n"
    )
}

fn stop_relay(place: &Place) -> Result<()> {
    let running: Vec<i32> = process::of(&place.root())
        .iter()
        .filter(|process| process.part == RELAY)
        .map(|process| process.pid)
        .collect();
    process::signal(&running, Signal::SIGTERM);
    process::kill_all(&running)
}

fn apply_delays(place: &Place, state: &State, internet: i32, host: &RelayHost) -> Result<()> {
    stop_relay(place)?;
    let inside = Inside::Network(internet);
    let wanted = relay_plan(&state.plan, &state.faults);
    for port in all_ports(&state.plan) {
        unplug_relay(inside, &port)?;
    }
    if wanted.links.is_empty() {
        return Ok(());
    }
    for link in &wanted.links {
        plug_in_relay(inside, &link.port)?;
    }
    match host {
        RelayHost::Thread => relay::start_thread(internet, wanted),
        RelayHost::Program(program, arguments) => {
            let root = place.root();
            let file = root.join("relay.json");
            wanted.write(&file)?;
            let argv = std::iter::once(program.into())
                .chain(arguments.iter().map(Into::into))
                .chain([file.into_os_string()])
                .collect();
            let log = root.join("relay.log");
            let launch = Launch {
                root: &root,
                part: RELAY,
                inside: Inside::Network(internet),
                argv,
                log,
                env: vec![],
            };
            launch.start_and_hear_ready().map(drop)
        }
    }
}

fn all_ports(plan: &Plan) -> Vec<String> {
    let machines = plan.clusters.iter().flat_map(|cluster| &cluster.machines);
    machines.map(|machine| machine.port.clone()).chain([HOST_PORT.to_owned()]).collect()
}

/// Which relays stand where, and whom they delay.
fn relay_plan(plan: &Plan, faults: &Faults) -> RelayPlan {
    let machines = |name: &str| -> Vec<&MachinePlan> {
        plan.clusters
            .iter()
            .filter(|cluster| cluster.name() == name)
            .flat_map(|cluster| &cluster.machines)
            .collect()
    };
    let ends = |name: &str| -> Vec<(String, [u8; 6])> {
        if name == HOST {
            return vec![(HOST_PORT.into(), Plan::HOST_MAC)];
        }
        machines(name).into_iter().map(|machine| (machine.port.clone(), machine.mac)).collect()
    };
    let mut relays = RelayPlan::default();
    for delay in &faults.delays {
        for (port, _) in ends(&delay.a) {
            for (_, mac) in ends(&delay.b) {
                relays.add(&port, mac, delay.each_way);
            }
        }
    }
    relays
}

/// Puts a pair of TAP devices between a cable and the bridge; the relay carries frames from one to the other.
fn plug_in_relay(inside: Inside, port: &str) -> Result<()> {
    let (side, inner, outer) = (relay::side_bridge(port), relay::inner(port), relay::outer(port));
    let commands = [
        format!("link add {side} type bridge"),
        format!("link set {side} up"),
        format!("tuntap add dev {inner} mode tap"),
        format!("tuntap add dev {outer} mode tap"),
        format!("link set {port} master {side}"),
        format!("link set {inner} master {side} up"),
        format!("link set {outer} master {BRIDGE} up"),
    ];
    network::ip(inside, "putting a relay into the network", &commands)
}

fn unplug_relay(inside: Inside, port: &str) -> Result<()> {
    let known = inside.run("listing the internet's interfaces", ["ip", "-o", "link"], b"")?;
    if !String::from_utf8_lossy(&known.stdout).contains(&format!(": {}:", relay::side_bridge(port))) {
        return Ok(());
    }
    let commands = [
        format!("link set {port} master {BRIDGE}"),
        format!("link del {}", relay::inner(port)),
        format!("link del {}", relay::outer(port)),
        format!("link del {}", relay::side_bridge(port)),
    ];
    network::ip(inside, "taking a relay out of the network", &commands)
}

#[cfg(test)]
mod tests;
