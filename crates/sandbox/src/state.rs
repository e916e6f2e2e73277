//! What a sandbox remembers on disk: its plan, how far its start came, and which network faults are set.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::error::{FileContext, Result, SandboxError};
use crate::plan::{Place, Plan};

/// How far a sandbox has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// `up` has not finished: it is running, or it was killed.
    Starting,
    /// Everything was ready once.
    Ready,
}

/// A delay between two clusters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delay {
    /// One side; the relay stands at its machines.
    pub a: String,
    /// The other side.
    pub b: String,
    /// Added in each direction.
    pub each_way: Duration,
}

/// The network faults that are set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Faults {
    /// Pairs that cannot reach each other.
    pub cuts: Vec<(String, String)>,
    /// Pairs that reach each other late.
    pub delays: Vec<Delay>,
}

/// The file `state.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// How far the start came.
    pub phase: Phase,
    /// The process that a test sandbox belongs to; when it is gone, the sandbox is debris.
    pub owner: Option<Owner>,
    /// Clusters and addresses.
    pub plan: Plan,
    /// Faults set at this moment.
    #[serde(default)]
    pub faults: Faults,
}

/// A process, told apart from a later one with the same number by its start time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pid: u32,
    started: String,
}

impl Owner {
    /// This process.
    pub fn me() -> Self {
        Self::of(std::process::id())
    }

    /// The process with this number; one that is gone already leaves its sandbox abandoned from the start.
    pub fn of(pid: u32) -> Self {
        Self { pid, started: start_time(pid).unwrap_or_default() }
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        start_time(self.pid).is_some_and(|started| started == self.started)
    }
}

fn start_time(pid: u32) -> Option<String> {
    const FIELD_AFTER_NAME: usize = 19;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(FIELD_AFTER_NAME).map(str::to_owned)
}

impl State {
    /// Reads it; `None` if there is none or it was being written when its writer was killed.
    pub(crate) fn read(place: &Place) -> Option<Self> {
        serde_json::from_slice(&fs::read(place.state_file()).ok()?).ok()
    }

    /// Writes it whole or not at all.
    pub(crate) fn write(&self, place: &Place) -> Result<()> {
        let (path, new) = (place.state_file(), place.root().join("state.json.new"));
        let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::from).at("write", &path)?;
        fs::write(&new, text).at("write", &new)?;
        fs::rename(&new, &path).at("write", &path)
    }
}

/// The right to change a sandbox, or the list of sandboxes. Ends with the value, or with the process.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not read")] Flock<File>);

impl Lock {
    /// Takes the lock of one sandbox, whose directory is made if need be.
    pub(crate) fn of(place: &Place) -> Result<Self> {
        let root = place.root();
        loop {
            fs::create_dir_all(&root).at("create", &root)?;
            let dir = File::open(&root).at("open", &root)?;
            let Ok(locked) = Flock::lock(dir, FlockArg::LockExclusiveNonblock) else {
                return Err(SandboxError::Busy { name: place.name().into(), pid: holder_of(&root) });
            };
            // `down` may have removed the directory while we waited at its door.
            if is_same(&locked, &root) {
                return Ok(Self(locked));
            }
        }
    }

    /// Takes the lock on what all sandboxes share, waiting for those who only need it for a moment.
    pub(crate) fn of_base(base: &Path) -> Result<Self> {
        loop {
            fs::create_dir_all(base).at("create", base)?;
            let dir = File::open(base).at("open", base)?;
            let locked = Flock::lock(dir, FlockArg::LockExclusive)
                .map_err(|(_, error)| std::io::Error::from(error))
                .at("lock", base)?;
            if is_same(&locked, base) {
                return Ok(Self(locked));
            }
        }
    }
}

fn is_same(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(held), Ok(there)) => held.ino() == there.ino() && held.dev() == there.dev(),
        _ => false,
    }
}

/// The process that holds the lock on a directory, as the kernel lists it.
fn holder_of(dir: &Path) -> String {
    let inode = fs::metadata(dir).map(|meta| format!(":{} ", meta.ino())).unwrap_or_default();
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks
        .lines()
        .find(|line| line.contains("FLOCK") && line.contains(&inode))
        .and_then(|line| line.split_whitespace().nth(4))
        .unwrap_or("?")
        .to_owned()
}

#[cfg(test)]
mod tests;
