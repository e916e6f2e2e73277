//! What this machine must offer before a sandbox starts, checked first and said in one message.

use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::statvfs::statvfs;

use crate::error::{FileContext, Result, SandboxError};
use crate::node::CNI_DIRECTORIES;
use crate::plan::Place;
use crate::process::{self, Inside};
use crate::spec::Spec;

/// A cluster's etcd, logs and configuration when it is new, with room to work.
const BYTES_PER_CLUSTER: u64 = 150 << 20;
/// Images, their unpacked layers and the pods' files.
const BYTES_PER_NODE: u64 = 350 << 20;
/// A one-node cluster uses about 23 inotify instances; the kernel's default of 128 ends at five clusters.
const INOTIFY_INSTANCES: u64 = 8192;
const INOTIFY_FILE: &str = "/proc/sys/fs/inotify/max_user_instances";
/// The value before we raised it, to be put back by the last sandbox that goes.
const INOTIFY_BEFORE: &str = "inotify-before";

/// Programs and the Debian package that has them.
const PROGRAMS: [(&str, &str); 7] = [
    ("ip", "iproute2"),
    ("nft", "nftables"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("setsid", "util-linux"),
    ("mount", "mount"),
    ("sleep", "coreutils"),
];
const NODE_PROGRAMS: [(&str, &str); 3] =
    [("containerd", "containerd"), ("ctr", "containerd"), ("runc", "runc")];

/// Checks everything that can be checked without changing anything.
pub(crate) fn check(place: &Place, spec: &Spec) -> Result<()> {
    check_root()?;
    let real = spec.clusters.iter().any(|cluster| cluster.nodes > 0);
    check_programs(real)?;
    check_kernel(real)?;
    check_disk(place, spec)
}

/// Everything here is done by root alone.
pub(crate) fn check_root() -> Result<()> {
    if nix::unistd::geteuid().is_root() {
        return Ok(());
    }
    Err(SandboxError::Host(
        "a sandbox needs root: it makes network namespaces and mounts. Run the command with sudo".into(),
    ))
}

fn check_programs(real: bool) -> Result<()> {
    let wanted = PROGRAMS.iter().chain(NODE_PROGRAMS.iter().filter(|_| real));
    let missing: Vec<_> = wanted.filter(|(program, _)| process::find_program(program).is_none()).collect();
    let mut names: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    if real && !CNI_DIRECTORIES.iter().any(|dir| Path::new(dir).join("bridge").exists()) {
        names.push("CNI plugins");
        packages.push("containernetworking-plugins");
    }
    if names.is_empty() {
        return Ok(());
    }
    packages.dedup();
    Err(SandboxError::Host(format!(
        "missing: {}. Install with: apt-get install {}",
        names.join(", "),
        packages.join(" ")
    )))
}

/// Tries out, in a network that is gone right after, what `up` will do.
fn check_kernel(real: bool) -> Result<()> {
    for kind in ["net", "pid", "mnt", "uts", "ipc"] {
        if !Path::new("/proc/self/ns").join(kind).exists() {
            return Err(lacking(&format!("{kind} namespaces"), ""));
        }
    }
    let probe = "ip link add probe0 type bridge || { echo 'a network bridge (CONFIG_BRIDGE)' >&3; exit 1; }
        ip link add probe1 type veth peer name probe2 || { echo 'veth pairs (CONFIG_VETH)' >&3; exit 1; }
        nft add table bridge probe || { echo 'nftables on bridges (CONFIG_NF_TABLES_BRIDGE)' >&3; exit 1; }
        nft 'add table ip probe; add chain ip probe nat { type nat hook postrouting priority 100; }' ||
            { echo 'nftables address translation (CONFIG_NFT_NAT)' >&3; exit 1; }";
    let script = format!("exec 3>&1; {{ {probe}\n}} >/dev/null");
    let output = Inside::Host
        .command(["unshare", "--net", "--", "sh", "-c", &script])
        .env("PATH", process::SEARCH_PATH)
        .output()
        .map_err(|error| lacking("network namespaces", &error.to_string()))?;
    if !output.status.success() {
        let what = String::from_utf8_lossy(&output.stdout);
        let what = if what.trim().is_empty() { "network namespaces" } else { what.trim() };
        return Err(lacking(what, String::from_utf8_lossy(&output.stderr).trim()));
    }
    let filesystems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if real && !filesystems.lines().any(|line| line.trim_end().ends_with("overlay")) {
        return Err(lacking("overlayfs (CONFIG_OVERLAY_FS; try: modprobe overlay)", ""));
    }
    if real && crate::cgroups::hierarchies().is_empty() {
        return Err(lacking("cgroups mounted at /sys/fs/cgroup", ""));
    }
    Ok(())
}

fn lacking(what: &str, said: &str) -> SandboxError {
    let said = if said.is_empty() { String::new() } else { format!(" ({said})") };
    SandboxError::Host(format!(
        "this kernel or container does not allow {what}{said}. A sandbox cannot run here without it"
    ))
}

fn check_disk(place: &Place, spec: &Spec) -> Result<()> {
    let needed = spec
        .clusters
        .iter()
        .map(|cluster| BYTES_PER_CLUSTER + BYTES_PER_NODE * u64::from(cluster.nodes))
        .sum::<u64>();
    let existing = place.base().ancestors().find(|dir| dir.exists()).unwrap_or(Path::new("/"));
    let stat = statvfs(existing).map_err(std::io::Error::from).at("look at the disk of", existing)?;
    let free = stat.blocks_available() as u64 * stat.fragment_size() as u64;
    if free >= needed {
        return Ok(());
    }
    Err(SandboxError::Host(format!(
        "not enough disk: {} has {} MB free, {} clusters need {} MB. Free some, or choose another place with --state-dir",
        existing.display(),
        free >> 20,
        spec.clusters.len(),
        needed >> 20
    )))
}

/// Raises the machine's limit that several kubelets would hit, and remembers what it was.
pub(crate) fn raise_limits(base: &Path) -> Result<()> {
    let file = Path::new(INOTIFY_FILE);
    let before = fs::read_to_string(file).at("read", file)?;
    if before.trim().parse::<u64>().is_ok_and(|limit| limit >= INOTIFY_INSTANCES) {
        return Ok(());
    }
    let remembered = base.join(INOTIFY_BEFORE);
    fs::write(&remembered, before.trim()).at("write", &remembered)?;
    fs::write(file, INOTIFY_INSTANCES.to_string()).at("raise the limit", file)
}

/// Puts the limit back once no sandbox is left.
pub(crate) fn restore_limits(base: &Path) -> Result<()> {
    let remembered = base.join(INOTIFY_BEFORE);
    let Ok(before) = fs::read_to_string(&remembered) else { return Ok(()) };
    let file = Path::new(INOTIFY_FILE);
    fs::write(file, before.trim()).at("restore", file)?;
    fs::remove_file(&remembered).at("remove", &remembered)
}

/// Directories below which a node's own `/run` and `/var/lib` would hide what it must see.
pub(crate) fn hidden_from_nodes(directories: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = directories
        .into_iter()
        .filter(|dir| dir.starts_with("/run") || dir.starts_with("/var/lib"))
        .collect();
    hidden.sort();
    hidden.dedup();
    hidden
}
