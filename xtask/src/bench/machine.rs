//! What the numbers were measured on.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

/// The facts without which a number means nothing.
#[derive(Debug, Serialize)]
pub(super) struct Machine {
    cores: usize,
    cpu: String,
    memory_mb: u64,
    kernel: String,
    /// Programs that wanted to run in the last minute, before the bench began.
    load_at_start: f64,
    commit: String,
    /// Whether files differed from the commit.
    changed: bool,
    date: String,
}

impl Machine {
    /// Reads what the kernel and git say; what cannot be read stays empty.
    pub(super) fn look(root: &Path) -> Self {
        let git = |arguments: &[&str]| {
            let output = Command::new("git").current_dir(root).args(arguments).output();
            output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
        };
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_default(),
            memory_mb: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.split(' ').next()?.parse::<u64>().ok())
                .map_or(0, |kibibytes| kibibytes * 1024 / 1_000_000),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_at_start: load(),
            commit: git(&["rev-parse", "--short=12", "HEAD"]),
            changed: !git(&["status", "--porcelain"]).is_empty(),
            date: jiff::Timestamp::now().strftime("%FT%TZ").to_string(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, memory_mb, kernel, load_at_start, .. } = self;
        // The rest of a kernel's name says who built it, not what it can do.
        let kernel = kernel.split('.').take(2).collect::<Vec<_>>().join(".");
        write!(f, "{cores} cores, {} GB, Linux {kernel}, load {load_at_start} at the start", memory_mb / 1000)
    }
}

/// The load average of the last minute.
pub(super) fn load() -> f64 {
    read("/proc/loadavg").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value behind `name:` in a file of `/proc`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.split_once(':')?.1.trim().to_owned()))
}
