//! The room in which a provider hosts the namespaces and pods of its consumers.
//!
//! ```text
//!  consumer writes                    here                                                   consumer reads
//!  NamespaceMap (its place) ──claims──▶ Namespace, ResourceQuota, RoleBinding ──────────────▶ status.currentMapping
//!  ShadowPod (its namespaces) ──rules of the house, contract──▶ Pod ─────────────────────────▶ the Pod; or why there is none
//! ```
//!
//! - [`Room`] watches in every process; the leader alone plans and writes ([`Room::lead`]);
//! - claims decide who gets which namespace, the namespaces' plan makes them, the pods' plan keeps pods alive.
//!
//! # What is promised
//!
//! - A consumer gets what its contract says, over all its namespaces, and nothing once it has none.
//! - It can make so many objects of each kind in a namespace, and no more.
//! - What runs is made of what is known to be harmless: every field of a pod is passed, forced, dropped or refused by name.
//! - A pod that runs follows its ShadowPod in all that Kubernetes lets be changed, within the same rules and contract.
//! - A pod that vanished is made again, one that came to its end is not, also while the consumer is away.
//! - Nothing is written while nothing changes, also after a restart.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod claims;
mod fence;
mod index;
mod limits;
mod metrics;
mod namespaces;
mod objects;
mod pods;
mod room;
mod rules;
mod settings;

pub use limits::Limits;
pub use metrics::HostingMetrics;
pub use room::Room;
pub use rules::{RULES, TENANT_RULES};
pub use settings::Settings;
