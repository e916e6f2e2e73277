//! What can go wrong, in words that say what to do next.

use std::io;
use std::path::{Path, PathBuf};

use crate::spec::SpecError;

/// Why something could not be done with a sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The specification is no good.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// This machine cannot run a sandbox as it is.
    #[error("{0}")]
    Host(String),
    /// A file operation failed.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// The verb.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program that we called said no.
    #[error("{what} failed: {reason}")]
    Command {
        /// What was tried.
        what: String,
        /// What it said.
        reason: String,
    },
    /// There is no such sandbox.
    #[error("there is no sandbox {name:?} here. Start it: liqoctl sandbox up{}", name_flag(name))]
    Absent {
        /// Its name.
        name: String,
    },
    /// It exists, but not in one piece.
    #[error(
        "sandbox {name:?} is not whole: its start was interrupted. Remove it: liqoctl sandbox down{}",
        name_flag(name)
    )]
    Interrupted {
        /// Its name.
        name: String,
    },
    /// Another command is changing it at this moment.
    #[error(
        "sandbox {name:?} is being changed by process {pid} right now. Wait for it to end, or end it with: kill {pid}"
    )]
    Busy {
        /// Its name.
        name: String,
        /// Who holds it.
        pid: String,
    },
    /// A name that is not one of the sandbox's.
    #[error("there is no {what} {name:?}; known: {known}")]
    Unknown {
        /// Cluster, component, node.
        what: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// A component did not get ready.
    #[error("{what} was not ready after {seconds} s: {state}{log}")]
    NotReady {
        /// Cluster and component.
        what: String,
        /// How long we waited.
        seconds: u64,
        /// What it looked like at the end.
        state: String,
        /// The end of its log, kept here because a failed start removes the files.
        log: String,
    },
    /// The API server refused or did not answer.
    #[error("cluster {cluster}: cannot {what}: {source}")]
    Api {
        /// The cluster.
        cluster: String,
        /// What was tried.
        what: String,
        /// What the client said.
        source: Box<kube::Error>,
    },
    /// An image archive could not be made.
    #[error(transparent)]
    Image(#[from] crate::image::ImageError),
    /// A certificate could not be made.
    #[error("cannot make the certificates of cluster {cluster}: {reason}")]
    Pki {
        /// The cluster.
        cluster: String,
        /// What the library said.
        reason: String,
    },
}

/// Short for this crate's results.
pub(crate) type Result<T, E = SandboxError> = std::result::Result<T, E>;

/// The `--name` that a suggested command needs.
fn name_flag(name: &str) -> String {
    if name == "default" { String::new() } else { format!(" --name {name}") }
}

/// How much of a log an error message carries along.
const TAIL_LINES: usize = 15;

/// The end of a log, for an error message.
pub(crate) fn log_tail(path: &Path) -> String {
    let Ok(bytes) = std::fs::read(path) else { return String::new() };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return format!("\n{} is empty", path.display());
    }
    let tail = lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n  ");
    format!("\nlast lines of {}:\n  {tail}", path.display())
}

/// Adds the verb and the path to an IO error.
pub(crate) trait FileContext<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T>;
}

impl<T> FileContext<T> for io::Result<T> {
    fn at(self, what: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| SandboxError::File { what, path: path.to_owned(), source })
    }
}
