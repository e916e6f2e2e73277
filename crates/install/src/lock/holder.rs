//! Who is at work, told apart from every other process on any machine.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Uid, User};

/// Begins the part of an identity that only programs read.
const KEY: char = '#';

/// A process that changes an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    /// For people: who, where, what.
    name: String,
    /// This start of this machine, and the view on processes that this one has.
    machine: String,
    pid: u32,
    started: String,
}

impl Holder {
    /// This process.
    pub(crate) fn me(what: &str) -> Self {
        let user =
            User::from_uid(Uid::current()).ok().flatten().map_or_else(|| "somebody".into(), |user| user.name);
        let host = read("/proc/sys/kernel/hostname").unwrap_or_else(|| "an unknown machine".into());
        let boot = read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let processes = fs::metadata("/proc/self/ns/pid").map(|meta| meta.ino()).unwrap_or_default();
        let pid = std::process::id();
        Self {
            name: format!("{what} of {user} on {host} (process {pid})"),
            machine: format!("{boot}/{processes}"),
            pid,
            started: start_time(pid).unwrap_or_default(),
        }
    }

    /// As the Lease has it.
    pub(crate) fn text(&self) -> String {
        format!("{}{KEY}{}/{}/{}", self.name, self.machine, self.pid, self.started)
    }

    /// The part for people.
    pub(crate) fn name_of(text: &str) -> &str {
        text.split(KEY).next().unwrap_or(text)
    }

    /// Whether the holder was a process of this machine that is gone.
    pub(crate) fn knows_dead(&self, other: &str) -> bool {
        let Some((_, key)) = other.split_once(KEY) else { return false };
        let Some((key, started)) = key.rsplit_once('/') else { return false };
        let Some((machine, pid)) = key.rsplit_once('/') else { return false };
        let here = machine == self.machine && Path::new("/proc/self").exists() && !started.is_empty();
        here && pid.parse().is_ok_and(|pid| start_time(pid).as_deref() != Some(started))
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// When a process was started, in the kernel's own count: a later process with the same number has another.
fn start_time(pid: u32) -> Option<String> {
    const FIELD_AFTER_NAME: usize = 19;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    // A dead process that nobody has waited for is dead.
    let alive = fields.clone().next().is_some_and(|state| state != "Z" && state != "X");
    fields.nth(FIELD_AFTER_NAME).filter(|_| alive).map(str::to_owned)
}

#[cfg(test)]
mod tests;
