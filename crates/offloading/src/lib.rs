//! The room in which namespaces extend to other clusters, and pods learn where they may run.
//!
//! ```text
//!  label liqo.io/enabled ─▶ NamespaceOffloading ─┐
//!                                                ├─▶ NamespaceMap here ─▶ copy at the provider ─▶ its namespace there
//!  virtual nodes, providers ─────────────────────┘        ▲                        │
//!                                                         └──── status: why not ◀──┘
//!  a pod of an offloaded namespace ──API server──▶ webhook: toleration and affinity ──▶ scheduler
//! ```
//!
//! - [`Room`] watches in every process and answers the API server there ([`Room::serve`]); the leader alone plans and
//!   writes ([`Room::lead`]);
//! - [`placement`] is where a pod may run, [`selector`] which nodes a selector means; both for `liqoctl` too.
//!
//! # What is promised
//!
//! - A pod never runs where the owner of its namespace did not allow it: who is not sure refuses.
//! - Pods that a provider's absence moved go back only where the owner asked for it, and each is asked once.
//! - A namespace leaves a cluster after its pods, which are asked first and have a bounded time.
//! - Nothing is written while nothing changes, also after a restart; nothing is told twice.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod placement;
pub mod selector;

mod events;
mod fail_back;
mod failover;
mod index;
mod metrics;
mod plan;
mod room;
mod rules;
mod settings;
mod steps;
#[cfg(test)]
mod testing;
mod webhook;

pub use fail_back::FailBack;
pub use failover::Failover;
pub use metrics::OffloadingMetrics;
pub use room::Room;
pub use rules::RULES;
pub use settings::Settings;
pub use webhook::{CONFIGURATION, PATH, SERVICE};
