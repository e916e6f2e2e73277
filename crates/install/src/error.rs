//! Why an installation cannot be made or removed.

use crate::finding::Finding;
use crate::trouble;

/// What went wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The values are not what the chart takes.
    #[error("{0}")]
    Values(String),
    /// The chart cannot be used.
    #[error("{what}")]
    Chart {
        /// What was tried.
        what: String,
        /// Why it failed.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Something must be put right first; nothing was changed.
    #[error("{}", refused(.0))]
    Refused(Vec<Finding>),
    /// A request failed.
    #[error("{what}: {why}")]
    Request {
        /// What was tried, on what.
        what: String,
        /// What the API server said, and what to do.
        why: String,
    },
    /// Something did not come to be in time.
    #[error("{0}")]
    Late(String),
    /// Somebody else is at work.
    #[error("{0}")]
    Busy(String),
    /// The user has had enough.
    #[error("interrupted. What was done so far is kept: run the same command again, it goes on")]
    Interrupted,
    /// The user must decide.
    #[error("{0}")]
    Undecided(String),
    /// Something of ours is left.
    #[error("{0}")]
    Left(String),
}

impl InstallError {
    /// A request that failed, with what the server said and what to do about it.
    pub(crate) fn request(what: impl Into<String>, error: &kube::Error) -> Self {
        let mut why = trouble::text(error);
        if let Some(advice) = trouble::advice(error) {
            why = format!("{why}\n{advice}");
        }
        Self::Request { what: what.into(), why }
    }
}

fn refused(findings: &[Finding]) -> String {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    format!("nothing was changed, as this must be put right first:\n{}", lines.join("\n"))
}
