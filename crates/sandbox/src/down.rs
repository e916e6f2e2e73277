//! Taking a sandbox away, whatever state it is in. Nothing here trusts what is written down: processes are found
//! by their mark, everything else by names that follow from the sandbox's place.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{FileContext, Result, SandboxError};
use crate::plan::Place;
use crate::process;
use crate::state::{Lock, State};
use crate::{cgroups, host, network};

/// What was found and removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// A sandbox, or what was left of one.
    Sandbox,
    /// There was nothing.
    Nothing,
}

/// Removes the sandbox: every process, namespace, interface, cgroup and file.
pub fn down(place: &Place) -> Result<Removed> {
    host::check_root()?;
    if !exists(place) {
        return Ok(Removed::Nothing);
    }
    refuse_foreign_directory(place)?;
    let lock = Lock::of(place)?;
    remove(place)?;
    drop(lock);
    Ok(Removed::Sandbox)
}

/// Whether anything of a sandbox is on this machine.
pub(crate) fn exists(place: &Place) -> bool {
    place.root().exists()
        || Path::new("/sys/class/net").join(place.host_interface()).exists()
        || cgroups::hierarchies().iter().any(|hierarchy| hierarchy.join(place.cgroup()).exists())
        || !process::of(&place.root()).is_empty()
}

/// Files that a sandbox's directory always has, unless it is empty.
pub(crate) const MARKER: &str = ".liqo-sandbox";

/// Never removes a directory that someone else filled.
pub(crate) fn refuse_foreign_directory(place: &Place) -> Result<()> {
    let root = place.root();
    let Ok(mut entries) = fs::read_dir(&root) else { return Ok(()) };
    if root.join(MARKER).exists() || entries.next().is_none() {
        return Ok(());
    }
    Err(SandboxError::Host(format!(
        "{} is taken by something that is not a sandbox. Choose another --name or --state-dir",
        root.display()
    )))
}

/// The removal itself; the caller holds the lock.
pub(crate) fn remove(place: &Place) -> Result<()> {
    kill_processes(&place.root())?;
    network::unplug_host(place)?;
    cgroups::remove(place)?;
    let root = place.root();
    if root.exists() {
        remove_tree(&root)?;
    }
    leave_base(place.base())
}

/// Kills what carries the mark, and whatever else lives in the sandbox's networks or nodes.
fn kill_processes(root: &Path) -> Result<()> {
    // Twice is usual (children of what was killed first); more means that something keeps starting processes.
    const ROUNDS: usize = 10;
    let mut networks: Vec<PathBuf> = Vec::new();
    let mut killed: Vec<i32> = Vec::new();
    for _ in 0..ROUNDS {
        let marked: Vec<i32> = process::of(root).iter().map(|process| process.pid).collect();
        let own = process::namespace(std::process::id().try_into().unwrap_or(1), "net");
        networks.extend(marked.iter().filter_map(|pid| process::namespace(*pid, "net")));
        networks.retain(|network| Some(network) != own.as_ref());
        let mut all = process::inside_namespaces("net", &networks);
        all.extend(&marked);
        if all.is_empty() {
            process::wait_reaped(&killed);
            return Ok(());
        }
        process::kill_all(&all)?;
        killed.extend(all);
    }
    Err(SandboxError::Command {
        what: "ending the sandbox's processes".into(),
        reason: format!("something keeps starting them: {:?}", process::of(root)),
    })
}

/// Removes the directory. A node that has just been killed may still hold a file for a moment.
fn remove_tree(root: &Path) -> Result<()> {
    const ATTEMPTS: u32 = 50;
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(20);
    for _ in 1..ATTEMPTS {
        if fs::remove_dir_all(root).is_ok() || !root.exists() {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    fs::remove_dir_all(root).at("remove", root)
}

/// The last one to go puts the machine's limits back and removes the common directory.
fn leave_base(base: &Path) -> Result<()> {
    if !base.exists() {
        return Ok(());
    }
    let _lock = Lock::of_base(base)?;
    let others = fs::read_dir(base).at("read", base)?.flatten().any(|entry| entry.path().is_dir());
    if others {
        return Ok(());
    }
    host::restore_limits(base)?;
    // Someone's own file in it keeps the directory; that is theirs to remove.
    let _ = fs::remove_dir(base);
    Ok(())
}

/// Names of all sandboxes below `base`, running or debris.
pub fn list(base: &Path) -> Vec<String> {
    let entries = fs::read_dir(base).into_iter().flatten().flatten();
    let on_disk = entries.filter(|entry| entry.path().is_dir()).map(|entry| entry.path());
    let mut names: Vec<String> = on_disk
        .chain(process::all_roots().into_iter().filter(|root| root.parent() == Some(base)))
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Names of the sandboxes below `base` that belonged to a process which is gone.
pub fn abandoned(base: &Path) -> Vec<String> {
    let is_abandoned = |name: &String| {
        let state = Place::new(base, name).ok().and_then(|place| State::read(&place));
        state.and_then(|state| state.owner).is_some_and(|owner| !owner.is_alive())
    };
    list(base).into_iter().filter(is_abandoned).collect()
}
