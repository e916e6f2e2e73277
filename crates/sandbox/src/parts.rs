//! Starting, stopping and looking at the parts of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::component::{Component, Part};
use crate::control_plane;
use crate::error::{Result, SandboxError};
use crate::plan::{ClusterPlan, MachinePlan, Place};
use crate::process::{self, Inside, Launch, Process};
use crate::{network, node};

/// A component that does not end politely by then is killed.
const POLITE_STOP: Duration = Duration::from_secs(10);

/// What a part is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// It runs.
    Running,
    /// It is stopped by a signal and will go on where it was.
    Paused,
    /// It is not there.
    Stopped,
}

fn machine(cluster: &ClusterPlan, part: Part) -> Option<&MachinePlan> {
    cluster.nodes().iter().find(|machine| Some(machine.number) == part.node)
}

/// Starts a part; the caller makes sure that what it needs is there.
pub(crate) fn start(place: &Place, cluster: &ClusterPlan, part: Part) -> Result<()> {
    if let Some(machine) = machine(cluster, part) {
        return node::start(place, cluster, machine, part.component);
    }
    let root = place.root();
    let network = network::holder(&root, &network::holder_part(cluster, cluster.first_machine()))?;
    let argv = control_plane::argv(place, cluster, part.component);
    Launch {
        root: &root,
        part: &part.mark(cluster),
        inside: Inside::Network(network),
        argv,
        log: part.log(cluster),
        env: vec![],
    }
    .start()
}

/// The processes of a part among all of a sandbox.
pub(crate) fn processes(all: &[Process], cluster: &ClusterPlan, part: Part) -> Vec<Process> {
    let mark = part.mark(cluster);
    if part.component != Component::Node {
        let own =
            |process: &&Process| process.part == mark && (is_program(process, part) || is_starter(process));
        return all.iter().filter(own).cloned().collect();
    }
    let Some(init) = all.iter().find(|process| process.part == mark && process.inner_pid == 1) else {
        return vec![];
    };
    let Some(namespace) = process::namespace(init.pid, "pid") else { return vec![] };
    // Containers have an environment of their own, so the mark alone would miss them.
    process::inside_namespaces("pid", &[namespace])
        .into_iter()
        .map(|pid| {
            let known = all.iter().find(|process| process.pid == pid).cloned();
            known.unwrap_or_else(|| Process { pid, inner_pid: 0, ..init.clone() })
        })
        .collect()
}

/// What a part is doing, given all processes of the sandbox.
pub(crate) fn state(all: &[Process], cluster: &ClusterPlan, part: Part) -> PartState {
    let mark = part.mark(cluster);
    let main = |process: &&Process| match part.component {
        Component::Node => process.part == mark && process.inner_pid == 1,
        _ => process.part == mark && is_program(process, part),
    };
    let starting = || all.iter().any(|process| process.part == mark && is_starter(process));
    match all.iter().find(main) {
        Some(process) if process.paused => PartState::Paused,
        Some(_) => PartState::Running,
        None if starting() => PartState::Running,
        None => PartState::Stopped,
    }
}

/// Shims and containers of containerd carry its mark, too, and outlive it.
fn is_program(process: &Process, part: Part) -> bool {
    process.program == part.component.program()
}

/// The process on its way to become its program.
fn is_starter(process: &Process) -> bool {
    matches!(process.program.as_str(), "setsid" | "nsenter" | "unshare")
}

fn pids(place: &Place, cluster: &ClusterPlan, parts: &[Part]) -> Vec<i32> {
    let all = process::of(&place.root());
    let mut pids: Vec<i32> =
        parts.iter().flat_map(|part| processes(&all, cluster, *part)).map(|process| process.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Ends parts at once, without asking them.
pub(crate) fn kill(place: &Place, cluster: &ClusterPlan, parts: &[Part]) -> Result<()> {
    process::kill_all(&pids(place, cluster, parts))
}

/// Asks parts to end and waits for it. A node is switched off like a machine.
pub(crate) fn stop(place: &Place, cluster: &ClusterPlan, parts: &[Part]) -> Result<()> {
    let (nodes, others): (Vec<Part>, Vec<Part>) =
        parts.iter().partition(|part| part.component == Component::Node);
    let polite = pids(place, cluster, &others);
    process::signal(&polite, Signal::SIGTERM);
    // A paused process does not hear.
    process::signal(&polite, Signal::SIGCONT);
    if let Err(left) = process::wait_gone(&polite, POLITE_STOP) {
        process::kill_all(&left)?;
    }
    kill(place, cluster, &nodes)
}

/// Freezes parts where they are.
pub(crate) fn pause(place: &Place, cluster: &ClusterPlan, parts: &[Part]) -> Result<()> {
    // What is started while we go through the list is caught by the next round.
    const ROUNDS: usize = 5;
    let mut stopped: Vec<i32> = vec![];
    for _ in 0..ROUNDS {
        let found = pids(place, cluster, parts);
        if found.is_empty() {
            return Err(nothing_there(cluster, parts));
        }
        let fresh: Vec<i32> = found.into_iter().filter(|pid| !stopped.contains(pid)).collect();
        if fresh.is_empty() {
            break;
        }
        process::signal(&fresh, Signal::SIGSTOP);
        stopped.extend(fresh);
    }
    Ok(())
}

/// Lets paused parts go on.
pub(crate) fn resume(place: &Place, cluster: &ClusterPlan, parts: &[Part]) -> Result<()> {
    let found = pids(place, cluster, parts);
    if found.is_empty() {
        return Err(nothing_there(cluster, parts));
    }
    process::signal(&found, Signal::SIGCONT);
    Ok(())
}

fn nothing_there(cluster: &ClusterPlan, parts: &[Part]) -> SandboxError {
    let names: Vec<String> = parts.iter().map(ToString::to_string).collect();
    SandboxError::Command {
        what: format!("finding {} of cluster {}", names.join(", "), cluster.name()),
        reason: format!("it is not running. Start it: liqoctl sandbox start {}", cluster.name()),
    }
}

/// The logs of parts, those that exist.
pub(crate) fn logs(cluster: &ClusterPlan, parts: &[Part]) -> Vec<PathBuf> {
    parts.iter().map(|part| part.log(cluster)).filter(|path| path.exists()).collect()
}
