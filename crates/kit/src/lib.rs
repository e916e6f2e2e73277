//! The workbench every controller shares.
//!
//! ```text
//!  API server ──watch──▶ Index ──plan (pure, in the rooms)──▶ Queue ──▶ API server
//!     ▲   relists diffed    │ "something changed"               │ compares, bounds, retries, ends
//!     └── Clusters: one client per cluster, few connections ────┘
//! ```
//!
//! - [`watch`] turns a list-and-watch into `apply`, `delete`, `synced` on an [`index`]; deletions that
//!   happened while the connection was down are computed, never lost;
//! - [`write`](mod@write) is the one way to write: coalescing, bounded, compare-before-write, with an end to retries;
//! - [`clusters`] holds one client per cluster, over few connections;
//! - [`lease`] elects a leader and takes the power away before another can have it;
//! - [`clock`] tells the time, and lets a test set it;
//! - [`rbac`] is how a room declares what it must be allowed to do;
//! - [`serve`], [`admin`], [`health`], [`metrics`], [`telemetry`], [`supervise`] are what a process needs
//!   around that.

pub mod admin;
pub mod backoff;
pub mod clock;
pub mod clusters;
pub mod health;
pub mod index;
pub mod key;
pub mod lease;
pub mod metrics;
pub mod rbac;
pub mod serve;
pub mod supervise;
pub mod telemetry;
pub mod watch;
pub mod write;

pub use backoff::{Backoff, BackoffPolicy};
pub use clock::Clock;
pub use clusters::{ClientSource, Cluster, Clusters};
pub use index::{Index, Seldom, Shared, Sink, Store};
pub use key::Key;
pub use supervise::Supervisor;
pub use watch::Watch;
pub use write::Queue;
