//! A `liqoctl sandbox` of a test's own, and a look at everything that it could leave behind.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tokio::time::Instant;

/// Where test sandboxes live, apart from those of people.
pub const BASE: &str = "/var/lib/liqo-sandbox-tests";

/// A sandbox by its command line; taken down when the test ends.
pub struct Cli {
    pub name: String,
    pub base: PathBuf,
}

impl Cli {
    pub fn new(test: &str) -> Self {
        Self { name: format!("cli-{test}-{}", std::process::id()), base: BASE.into() }
    }

    /// Name and place of this sandbox, and the process without which it is debris.
    pub fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("LIQO_SANDBOX_NAME", self.name.clone()),
            ("LIQO_SANDBOX_STATE_DIR", self.base.display().to_string()),
            ("LIQO_SANDBOX_OWNER", std::process::id().to_string()),
        ]
    }

    /// The command with this sandbox's name and place.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_liqoctl"));
        command.envs(self.environment());
        command.arg("sandbox").args(arguments).stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed, and gives what it wrote to standard output.
    pub fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "liqoctl sandbox {arguments:?}: {}", all_text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with code 1, and gives what it wrote to standard error.
    pub fn refused(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "liqoctl sandbox {arguments:?}: {}", all_text(&output));
        assert!(output.stdout.is_empty(), "nothing but data goes to standard output: {}", all_text(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub fn root(&self) -> PathBuf {
        self.base.join(&self.name)
    }

    /// Everything of this sandbox that can be found on the machine, without asking liqoctl.
    pub fn traces(&self) -> Vec<String> {
        let root = self.root();
        let mut traces = Vec::new();
        if root.exists() {
            traces.push(format!("directory {}", root.display()));
        }
        let mark = format!("LIQO_SANDBOX={}\0", root.display());
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
            if contains(&environment, mark.as_bytes()) {
                let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
                let command = String::from_utf8_lossy(&command).replace('\0', " ");
                traces.push(format!("process {}: {command}", entry.file_name().to_string_lossy()));
            }
        }
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        traces.extend(
            mounts.lines().filter(|line| line.contains(&self.name)).map(|line| format!("mount {line}")),
        );
        traces.extend(self.interface_and_cgroups());
        traces
    }

    /// Both are named after a hash of the directory.
    fn interface_and_cgroups(&self) -> Vec<String> {
        let root = self.root().display().to_string();
        let hash =
            Command::new("sh").args(["-c", &format!("printf %s '{root}' | sha256sum | cut -c1-8")]).output();
        let id = String::from_utf8(hash.unwrap().stdout).unwrap().trim().to_owned();
        let found = Command::new("find").args(["/sys/fs/cgroup", "-name", &id]).output().unwrap();
        let mut traces: Vec<String> =
            String::from_utf8_lossy(&found.stdout).lines().map(|line| format!("cgroup {line}")).collect();
        if Path::new("/sys/class/net").join(format!("lq{id}")).exists() {
            traces.push(format!("interface lq{id}"));
        }
        traces
    }

    pub fn assert_no_traces(&self) {
        let traces = self.traces();
        assert!(traces.is_empty(), "left behind:\n{}", traces.join("\n"));
    }
}

impl Drop for Cli {
    fn drop(&mut self) {
        let output = self.run(&["down"]);
        if !output.status.success() {
            eprintln!("cannot remove the test's sandbox: {}", all_text(&output));
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

pub fn all_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// What no sandbox may ever change on this machine, however many run.
pub fn machine() -> String {
    let say = |argv: &[&str]| {
        let output = Command::new(argv[0]).args(&argv[1..]).output().unwrap();
        format!("$ {}\n{}", argv.join(" "), all_text(&output))
    };
    [say(&["ip", "netns"]), say(&["mount"]), say(&["nft", "list", "ruleset"]), say(&["ip", "rule"])]
        .join("\n")
}

/// Asks until the answer is yes, or the deadline has come; then shows the last answer.
pub fn until(what: &str, seconds: u64, mut ask: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + Duration::from_secs(seconds);
    while let Err(state) = ask() {
        assert!(Instant::now() < deadline, "{what} not after {seconds} s: {state}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
