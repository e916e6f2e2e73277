//! The room in which providers become nodes.
//!
//! ```text
//!  Providers ──▶ plan ──▶ Node liqo-<provider>: labels, taints, capacity, conditions    Lease, every ten seconds
//!                  │           ▲ kubectl logs, exec, attach, port-forward, cp, top
//!                  │           └── doors :10250 ──▶ the same request at the provider's API server, bytes copied both ways
//!                  └──▶ a contract ends: cordon ──▶ evict ──▶ delete ──▶ the node goes
//! ```
//!
//! All nodes live in this one process. [`Room`] watches and opens the doors in every process; the leader alone writes
//! ([`Room::lead`]).
//!
//! # What is promised
//!
//! - A node says what is so: its capacity is the contract's, and it is ready while its provider answers, and something behind
//!   it does.
//! - Nothing is written while nothing changes, also after a restart, but for the leases.
//! - What others add to a node stays.
//! - Whoever asks at the doors may no more than they may at a kubelet.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod doors;
mod evict;
mod index;
mod leases;
mod metrics;
mod node;
mod plan;
mod room;
mod rules;
mod settings;

pub use liqo_kit::Clock;
pub use metrics::VirtualNodeMetrics;
pub use room::Room;
pub use rules::RULES;
pub use settings::Settings;
