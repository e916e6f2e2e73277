//! The one way to write to an API server.
//!
//! A planner says *what should be* ([`Plan`]); the queue makes it so. One slot per object: whatever was asked
//! for last is what counts. The plan is asked when it is queued and again just before each attempt, with the
//! index as it is then, so that nothing is written that is true already, and a conflict leads to a new plan
//! instead of the same write again. Every write has a time limit, every retry waits longer, and there is an end:
//! then the failure is reported and nothing happens until somebody asks again.
//!
//! Nothing here ever blocks a watch: a full queue says so, and the caller decides.

use std::sync::Arc;
use std::time::Duration;

use crate::backoff::BackoffPolicy;

mod metrics;
mod queue;
mod request;
mod slots;
#[cfg(test)]
mod tests;
mod worker;
mod written;

pub use metrics::WriteMetrics;
pub use queue::{Enqueued, Queue};
pub use request::{Part, Target, Write};
pub use worker::Worker;
pub use written::Written;

/// What should be written to one object, given what is known now.
///
/// Any `Fn() -> Option<Write>` is a plan. It is called with no lock held by the queue, often, and must be quick.
pub trait Plan: Send + Sync {
    /// The write still missing, or `None` when the object is as it should be.
    fn plan(&self) -> Option<Write>;
}

impl<F: Fn() -> Option<Write> + Send + Sync> Plan for F {
    fn plan(&self) -> Option<Write> {
        self()
    }
}

/// Says whether this process may write now.
pub type Gate = Arc<dyn Fn() -> bool + Send + Sync>;

/// Is told what became of a write.
pub type Observer = Arc<dyn Fn(&Target, &Outcome) + Send + Sync>;

/// The limits of a queue.
#[derive(Clone)]
pub struct QueueConfig {
    /// Objects that may wait at once.
    pub capacity: usize,
    /// Writes under way at once.
    pub concurrency: usize,
    /// How long one write may take.
    pub timeout: Duration,
    /// Attempts before a write is given up.
    pub max_attempts: u32,
    /// The waits between attempts.
    pub backoff: BackoffPolicy,
    /// The name under which server-side apply owns fields.
    pub field_manager: String,
    /// Asked just before each write; while it says no, nothing is written. A leader's validity goes here.
    pub gate: Option<Gate>,
    /// Told what became of each write.
    pub observer: Option<Observer>,
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            capacity: 4096,
            concurrency: 16,
            timeout: Duration::from_secs(10),
            // With the default waits, a write is tried for about half a minute.
            max_attempts: 8,
            backoff: BackoffPolicy::default(),
            field_manager: "liqo".to_owned(),
            gate: None,
            observer: None,
        }
    }
}

/// What became of a write.
#[derive(Debug)]
pub enum Outcome {
    /// It was made; the object now has this version (none after a deletion).
    Written {
        /// The version the server gave it.
        resource_version: Option<String>,
    },
    /// The plan had nothing left to write when its turn came.
    Unneeded,
    /// It was given up.
    Failed(Failed),
}

/// A write that was given up.
#[derive(Debug, thiserror::Error)]
#[error("gave up writing after {attempts} attempts ({reason}): {message}")]
pub struct Failed {
    /// The kind of the last failure.
    pub reason: Reason,
    /// How many attempts were made.
    pub attempts: u32,
    /// The last failure in words.
    pub message: String,
}

/// Why a write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No answer in time. The write may have been made all the same.
    Timeout,
    /// The API server could not be reached.
    Unreachable,
    /// The object is not as the plan believed (changed, created, gone).
    Conflict,
    /// The server asked for fewer requests.
    Throttled,
    /// The server failed.
    ServerError,
    /// We may not do this.
    Forbidden,
    /// The server will never accept this.
    Refused,
    /// We are not the leader (any more).
    Gate,
}

impl Reason {
    /// The word used in metrics and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Unreachable => "unreachable",
            Self::Conflict => "conflict",
            Self::Throttled => "throttled",
            Self::ServerError => "server_error",
            Self::Forbidden => "forbidden",
            Self::Refused => "refused",
            Self::Gate => "gate",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
