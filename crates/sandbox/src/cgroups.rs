//! The cgroups of a sandbox: one directory in every hierarchy, below which each node's kubelet keeps its pods.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{FileContext, Result};
use crate::plan::{MachinePlan, Place};

const MOUNT: &str = "/sys/fs/cgroup";
/// Controllers a kubelet wants on unified hierarchies, where they must be handed down level by level.
const CONTROLLERS: &str = "+cpu +cpuset +memory +pids";

/// The node's cgroup as the kubelet's `cgroupRoot` names it.
pub(crate) fn of_node(place: &Place, node: &MachinePlan) -> PathBuf {
    place.cgroup().join(&node.node_name)
}

/// Every mounted hierarchy: one on unified systems, one per controller on older ones.
pub(crate) fn hierarchies() -> Vec<PathBuf> {
    if Path::new(MOUNT).join("cgroup.controllers").exists() {
        return vec![MOUNT.into()];
    }
    let entries = fs::read_dir(MOUNT).into_iter().flatten().filter_map(Result::ok);
    // Debian links `cpu` and `cpuacct` to one directory; following links would visit it three times.
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Whether this machine has a single, unified hierarchy.
pub(crate) fn is_unified() -> bool {
    Path::new(MOUNT).join("cgroup.controllers").exists()
}

/// Makes the node's cgroup in every hierarchy.
pub(crate) fn create(place: &Place, node: &MachinePlan) -> Result<()> {
    for hierarchy in hierarchies() {
        let mut dir = hierarchy;
        for part in of_node(place, node).components() {
            hand_down(&dir);
            dir.push(part);
            // Several nodes start at once and share the upper levels.
            if let Err(error) = fs::create_dir(&dir)
                && error.kind() != std::io::ErrorKind::AlreadyExists
            {
                return Err(error).at("create", &dir);
            }
            inherit_cpuset(&dir)?;
        }
        hand_down(&dir);
    }
    Ok(())
}

/// Removes what the pods of a node's earlier life left in its cgroup, as a restart of a machine would. The kubelet asks
/// containerd about each of them, for three seconds, before it looks at its pods.
pub(crate) fn clear(place: &Place, node: &MachinePlan) {
    for hierarchy in hierarchies() {
        let entries = fs::read_dir(hierarchy.join(of_node(place, node))).into_iter().flatten();
        for entry in entries.filter_map(Result::ok) {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                // One that a process has not left yet only costs those seconds.
                let _ = remove_tree(&entry.path());
            }
        }
    }
}

fn hand_down(dir: &Path) {
    if is_unified() {
        // A controller that this machine lacks is the kubelet's to complain about.
        let _ = fs::write(dir.join("cgroup.subtree_control"), CONTROLLERS);
    }
}

/// On older systems a new cpuset is empty, and no process may enter it until it is filled.
fn inherit_cpuset(dir: &Path) -> Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        let (own, parent) = (dir.join(file), dir.join("..").join(file));
        if is_unified() || !own.exists() {
            continue;
        }
        let inherited = fs::read_to_string(&parent).at("read", &parent)?;
        fs::write(&own, inherited.trim()).at("write", &own)?;
    }
    Ok(())
}

/// Removes the sandbox's cgroups, deepest first. Its processes must be gone.
pub(crate) fn remove(place: &Place) -> Result<()> {
    for hierarchy in hierarchies() {
        let own = hierarchy.join(place.cgroup());
        if own.exists() {
            remove_tree(&own).at("remove", &own)?;
        }
        if let Some(parent) = own.parent() {
            // Not empty: another sandbox runs.
            let _ = fs::remove_dir(parent);
        }
    }
    Ok(())
}

fn remove_tree(dir: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(dir)
}
