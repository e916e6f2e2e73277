//! Which state of the source an image is made from.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use jiff::Timestamp;

use super::command;

/// A state of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    /// The commit; none where git knows of none.
    pub(super) revision: Option<String>,
    /// Whether files differ from it.
    pub(super) dirty: bool,
    /// Its time, or the one that was asked for. Never the time of the build, which differs each time.
    pub(super) time: Timestamp,
}

impl Commit {
    /// Asks git; a source without git's data, such as an unpacked archive, can be built all the same.
    pub(super) fn look(root: &Path, epoch: Option<i64>) -> Result<Self> {
        let git = |arguments: &[&str]| command::output(Command::new("git").current_dir(root).args(arguments));
        let commit = git(&["log", "-1", "--format=%H %ct"]).ok();
        let status = if commit.is_some() { git(&["status", "--porcelain"])? } else { String::new() };
        Self::from_git(commit.as_deref(), &status, epoch)
    }

    fn from_git(commit: Option<&str>, status: &str, epoch: Option<i64>) -> Result<Self> {
        let (revision, seconds) = match commit.and_then(|text| text.trim().split_once(' ')) {
            None => (None, 0),
            Some((revision, seconds)) => (Some(revision.to_owned()), seconds.parse().context("git's time")?),
        };
        let time = Timestamp::from_second(epoch.unwrap_or(seconds))
            .context("the commit's time or SOURCE_DATE_EPOCH is out of range")?;
        Ok(Self { revision, dirty: !status.trim().is_empty(), time })
    }

    /// The version with a word about a source that no commit describes.
    pub(super) fn version(&self, version: &str) -> String {
        match (&self.revision, self.dirty) {
            (Some(_), false) => version.to_owned(),
            (Some(_), true) => format!("{version}-dirty"),
            (None, _) => format!("{version}-unknown"),
        }
    }

    /// The revision with the same word.
    pub(super) fn revision(&self) -> Option<String> {
        self.revision.as_ref().map(|commit| format!("{commit}{}", if self.dirty { "-dirty" } else { "" }))
    }
}

#[cfg(test)]
mod tests;
