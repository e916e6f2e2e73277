//! What a bug report needs, without secrets, in one archive.
//!
//! ```text
//!   read everything ──▶ learn what is secret ──▶ take it out ──▶ files, within bounds ──▶ tar.gz
//! ```
//!
//! What cannot be read is listed in the manifest and stops nothing.

mod archive;
mod collect;
mod kinds;
mod nodes;

use jiff::Timestamp;
use serde::Serialize;

pub use archive::BundleError;

/// Uncompressed; more than anyone reads, and still small enough to attach when compressed.
const LARGEST: usize = 64 << 20;
/// Of each container's log, its end.
const LARGEST_LOG: usize = 1 << 20;

/// What was collected.
#[derive(Debug)]
pub struct Bundle {
    files: Vec<File>,
    manifest: Manifest,
    size: usize,
}

/// A file of the bundle.
#[derive(Debug)]
struct File {
    path: String,
    text: String,
}

/// What is in a bundle, and what is not.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// When it was made.
    pub created: Timestamp,
    /// The version of the program that made it.
    pub liqoctl: &'static str,
    /// The API server's version.
    pub kubernetes: String,
    /// Where liqo was looked for.
    pub namespace: String,
    /// What was done about secrets.
    pub secrets: &'static str,
    /// The files.
    pub files: Vec<Entry>,
    /// What could not be read, and why.
    pub problems: Vec<Problem>,
}

/// A file as the manifest lists it.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// Its path in the archive.
    pub path: String,
    /// What is in it.
    pub about: String,
    /// Its size.
    pub bytes: usize,
}

/// Something that is not in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}

const SECRETS: &str = "Of Secrets only the sizes of the values are in here. Values that look like or are named like passwords, \
     tokens or keys, and every value of a Secret that turned up elsewhere, were replaced by <removed>.";

impl Bundle {
    fn new(created: Timestamp, kubernetes: &str, namespace: &str) -> Self {
        let manifest = Manifest {
            created,
            liqoctl: env!("CARGO_PKG_VERSION"),
            kubernetes: kubernetes.to_owned(),
            namespace: namespace.to_owned(),
            secrets: SECRETS,
            files: vec![],
            problems: vec![],
        };
        Self { files: vec![], manifest, size: 0 }
    }

    /// What is in it, and what is not.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Adds a file unless that makes the bundle too large.
    fn add(&mut self, path: impl Into<String>, about: impl Into<String>, text: String) {
        let path = path.into();
        if self.size + text.len() > LARGEST {
            let why =
                format!("{} bytes more would make the bundle larger than {} MiB", text.len(), LARGEST >> 20);
            return self.problem(path, &why);
        }
        self.size += text.len();
        self.manifest.files.push(Entry { path: path.clone(), about: about.into(), bytes: text.len() });
        self.files.push(File { path, text });
    }

    fn problem(&mut self, what: impl Into<String>, why: &impl ToString) {
        self.manifest.problems.push(Problem { what: what.into(), why: why.to_string() });
    }
}

#[cfg(test)]
mod tests;
