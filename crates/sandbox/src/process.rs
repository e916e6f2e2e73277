//! The processes of a sandbox: started, found again, signalled.
//!
//! Nothing is remembered about them. Each carries the sandbox and its own role in its environment, which its
//! children inherit, so they are found by looking at `/proc`: also after the one who started them was killed.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

use crate::error::{FileContext, Result, SandboxError};

/// The environment variable that says to which sandbox a process belongs (its root directory).
const MARK: &str = "LIQO_SANDBOX";
/// The environment variable that says which part of it it is (`consumer/etcd`).
const PART: &str = "LIQO_SANDBOX_PART";
/// Programs are found here; a login shell's PATH may lack the system directories.
pub(crate) const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// A killed process is gone within milliseconds; a kernel that needs longer is in trouble.
const KILL_DEADLINE: Duration = Duration::from_secs(10);
/// How long `down` waits for the system's init to bury what it inherited.
const REAP_PATIENCE: Duration = Duration::from_secs(5);
/// The moment between two programs lasts microseconds; on a loaded machine it may be put off by a few turns.
const EXEC_PATIENCE: Duration = Duration::from_millis(100);
/// Between two looks at `/proc`: short, because every start and stop waits for it.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Which namespaces a process starts in.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Inside {
    /// This machine's own.
    Host,
    /// Only the network of the namespace's holder.
    Network(i32),
    /// Everything of a node, given by its init.
    Node(i32),
}

impl Inside {
    fn wrap(self, argv: &[OsString]) -> Vec<OsString> {
        let flags: Vec<String> = match self {
            Self::Host => return argv.to_vec(),
            Self::Network(pid) => vec![format!("--net=/proc/{pid}/ns/net")],
            Self::Node(pid) => {
                let target = format!("--target={pid}");
                [target.as_str(), "--net", "--pid", "--mount", "--uts", "--ipc"].map(String::from).into()
            }
        };
        let mut all = vec![OsString::from("nsenter")];
        all.extend(flags.into_iter().map(OsString::from));
        all.push("--".into());
        all.extend_from_slice(argv);
        all
    }

    /// A command in these namespaces that someone waits for.
    pub(crate) fn command<S: AsRef<OsStr>>(self, argv: impl IntoIterator<Item = S>) -> Command {
        let argv: Vec<OsString> = argv.into_iter().map(|part| part.as_ref().to_owned()).collect();
        let wrapped = self.wrap(&argv);
        let mut command = Command::new(&wrapped[0]);
        command.args(&wrapped[1..]);
        command
    }

    /// Runs a short command to its end, feeding it `input`; its complaint becomes the error.
    pub(crate) fn run<S: AsRef<OsStr>>(
        self,
        what: &str,
        argv: impl IntoIterator<Item = S>,
        input: &[u8],
    ) -> Result<Output> {
        let failed = |reason: String| SandboxError::Command { what: what.to_owned(), reason };
        let mut child = self
            .command(argv)
            .env("PATH", SEARCH_PATH)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that fails early closes its input; its exit status tells more than our broken pipe.
            let _ = std::io::Write::write_all(&mut stdin, input);
        }
        let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(output);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let said =
            if stderr.trim().is_empty() { output.status.to_string() } else { stderr.trim().to_owned() };
        Err(failed(said))
    }
}

/// A process that goes on after the command that started it has ended.
pub(crate) struct Launch<'a> {
    /// The sandbox's root directory.
    pub(crate) root: &'a Path,
    /// Its role, e.g. `consumer/etcd`.
    pub(crate) part: &'a str,
    /// Where it runs.
    pub(crate) inside: Inside,
    /// Program and arguments.
    pub(crate) argv: Vec<OsString>,
    /// Its output goes here.
    pub(crate) log: PathBuf,
    /// More environment.
    pub(crate) env: Vec<(String, OsString)>,
}

impl Launch<'_> {
    fn command(&self) -> Command {
        let argv = self.detached();
        let mut command = Command::new(&argv[0]);
        // A clean environment: a proxy or a KUBECONFIG of the user must not leak into the clusters.
        command.args(&argv[1..]).env_clear().env("PATH", SEARCH_PATH).env("HOME", "/root");
        command
            .env(MARK, self.root)
            .env(PART, self.part)
            .envs(self.env.iter().map(|(key, value)| (key, value)));
        command.current_dir("/").stdin(Stdio::null());
        command
    }

    /// The command in a session of its own, out of reach of the terminal.
    fn detached(&self) -> Vec<OsString> {
        let setsid = OsString::from("setsid");
        if let Inside::Node(_) = self.inside {
            // To enter a process namespace, nsenter forks, and its first half would wait here for as long as the
            // component runs: stopped when that is paused, and holding its remains when that is killed. With a
            // second fork inside, the component becomes a child of the node's init, and nsenter ends.
            let inner: Vec<OsString> =
                [setsid, "--fork".into()].into_iter().chain(self.argv.iter().cloned()).collect();
            return self.inside.wrap(&inner);
        }
        std::iter::once(setsid).chain(self.inside.wrap(&self.argv)).collect()
    }

    fn log_file(&self) -> Result<fs::File> {
        if let Some(dir) = self.log.parent() {
            fs::create_dir_all(dir).at("create", dir)?;
        }
        OpenOptions::new().create(true).append(true).open(&self.log).at("open", &self.log)
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> SandboxError {
        SandboxError::Command { what: format!("starting {}", self.part), reason: reason.to_string() }
    }

    /// Starts it and leaves it alone.
    pub(crate) fn start(&self) -> Result<()> {
        let log = self.log_file()?;
        let errors = log.try_clone().at("open", &self.log)?;
        let mut child =
            self.command().stdout(log).stderr(errors).spawn().map_err(|error| self.failed(&error))?;
        if let Inside::Node(_) = self.inside {
            child.wait().map_err(|error| self.failed(&error))?;
        }
        Ok(())
    }

    /// Starts it and waits until it says `ready` on its standard output, which it then leaves.
    pub(crate) fn start_and_hear_ready(&self) -> Result<i32> {
        let log = self.log_file()?;
        let mut child =
            self.command().stdout(Stdio::piped()).stderr(log).spawn().map_err(|error| self.failed(&error))?;
        let mut said = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut said).map_err(|error| self.failed(&error))?;
        }
        if said.trim() == "ready" {
            return i32::try_from(child.id()).map_err(|error| self.failed(&error));
        }
        let _ = child.wait();
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        Err(self.failed(&if log.trim().is_empty() { "it ended without a word" } else { log.trim() }))
    }
}

/// A running process of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    /// As this machine counts.
    pub(crate) pid: i32,
    /// The role it was started for, or its ancestor was.
    pub(crate) part: String,
    /// The name of the program it was called by.
    pub(crate) program: String,
    /// Stopped by a signal.
    pub(crate) paused: bool,
    /// Its number in its own process namespace.
    pub(crate) inner_pid: i32,
}

/// Every process of the sandbox at `root`.
pub(crate) fn of(root: &Path) -> Vec<Process> {
    all_pids().filter_map(|pid| describe(pid, root)).collect()
}

/// Where a program of the system is.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let executable = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    SEARCH_PATH.split(':').map(|dir| Path::new(dir).join(name)).find(executable)
}

/// Root directories of all sandboxes that have processes.
pub(crate) fn all_roots() -> std::collections::BTreeSet<PathBuf> {
    all_pids().filter_map(|pid| variable(&environment(pid), MARK).map(PathBuf::from)).collect()
}

fn all_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The environment a process was started with; nothing if it ended while we looked.
///
/// While a process turns into another program, the kernel shows neither its environment nor its arguments. One that
/// is missed in that moment would survive its sandbox, so it is looked at again; kernel threads, which never have any,
/// are told by the program that they do not have either.
fn environment(pid: i32) -> Vec<u8> {
    let read = |what: &str| fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
    let give_up = tokio::time::Instant::now() + EXEC_PATIENCE;
    loop {
        let environment = read("environ");
        let between_programs = environment.is_empty()
            && read("cmdline").is_empty()
            && fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        if !between_programs || tokio::time::Instant::now() > give_up {
            return environment;
        }
        std::thread::yield_now();
    }
}

fn variable(environment: &[u8], key: &str) -> Option<OsString> {
    let prefix = format!("{key}=");
    let entry = environment.split(|byte| *byte == 0).find(|entry| entry.starts_with(prefix.as_bytes()))?;
    Some(OsStr::from_bytes(&entry[prefix.len()..]).to_owned())
}

fn describe(pid: i32, root: &Path) -> Option<Process> {
    let environment = environment(pid);
    if variable(&environment, MARK)?.as_os_str() != root.as_os_str() {
        return None;
    }
    let cmdline = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let called = Path::new(OsStr::from_bytes(cmdline.split(|byte| *byte == 0).next()?)).file_name();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let state = field("State:")?.chars().next()?;
    if matches!(state, 'Z' | 'X') {
        return None;
    }
    Some(Process {
        pid,
        part: variable(&environment, PART)?.to_string_lossy().into_owned(),
        program: called.map_or_else(
            || field("Name:").unwrap_or_default().to_owned(),
            |name| name.to_string_lossy().into_owned(),
        ),
        paused: matches!(state, 'T' | 't'),
        inner_pid: field("NSpid:")
            .and_then(|pids| pids.split_whitespace().last()?.parse().ok())
            .unwrap_or(pid),
    })
}

/// Whether a process still runs; one that only waits to be reaped does not.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
    let dead = stat
        .and_then(|stat| stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().starts_with(['Z', 'X'])))
        .unwrap_or(true);
    // The first thread may be dead while others are still on their way out, with their files and ports open.
    let threads = || fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !dead || threads() > 1
}

/// The number that names a namespace of a process, e.g. `net`.
pub(crate) fn namespace(pid: i32, kind: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/{kind}")).ok()
}

/// All processes on this machine that live in one of these namespaces.
pub(crate) fn inside_namespaces(kind: &str, namespaces: &[PathBuf]) -> Vec<i32> {
    all_pids().filter(|pid| namespace(*pid, kind).is_some_and(|found| namespaces.contains(&found))).collect()
}

/// Sends a signal; a process that has just ended is no error.
pub(crate) fn signal(pids: &[i32], signal: Signal) {
    for pid in pids {
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

/// Waits until none of them runs any more.
pub(crate) fn wait_gone(pids: &[i32], deadline: Duration) -> Result<(), Vec<i32>> {
    let give_up = tokio::time::Instant::now() + deadline;
    loop {
        let left: Vec<i32> = pids.iter().copied().filter(|pid| is_alive(*pid)).collect();
        if left.is_empty() {
            return Ok(());
        }
        if tokio::time::Instant::now() > give_up {
            return Err(left);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Waits until nothing is to be seen of ended processes: until whoever inherited them has taken note.
///
/// A lazy init may need seconds for that. It is no error if it never does: nothing of them is left but a number.
pub(crate) fn wait_reaped(pids: &[i32]) {
    let give_up = tokio::time::Instant::now() + REAP_PATIENCE;
    for pid in pids {
        loop {
            // Ours to bury, if this process started it; any other is refused and vanishes without us.
            let _ = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
            if !Path::new(&format!("/proc/{pid}")).exists() || tokio::time::Instant::now() > give_up {
                break;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Kills them and waits until they are gone.
pub(crate) fn kill_all(pids: &[i32]) -> Result<()> {
    signal(pids, Signal::SIGKILL);
    wait_gone(pids, KILL_DEADLINE).map_err(|left| SandboxError::Command {
        what: "killing the sandbox's processes".into(),
        reason: format!(
            "{left:?} do not end; they wait for the kernel (see: ps -o pid,state,wchan,cmd -p <pid>)"
        ),
    })
}

#[cfg(test)]
mod tests;
