//! The room in which clusters ask for resources, offer them and sign contracts.
//!
//! ```text
//!        consumer                                                     provider
//!  ForeignCluster ──asks──▶ ResourceRequest ─────────────────▶ SharingPolicy, free capacity, ledger
//!        │                                                           │
//!   limits, or a person ◀──────────── ResourceOffer ◀────────────────┘
//!        │
//!        └──proposes, signed──▶ Contract ──▶ judged, admitted by the ledger, signed ──▶ in force on both sides
//! ```
//!
//! Who calls has a tenant namespace at the one that is called; all of the above lies there, and who calls keeps copies of it
//! at home. A cluster may also offer unasked: then the provider calls.
//!
//! - [`Room`] watches in every process; the leader alone plans and writes ([`Room::lead`]);
//! - [`stock`] is what a cluster has to share, [`offer`] what is made and read of it, for `liqoctl` too;
//! - [`paper`] drafts, signs and verifies contracts, [`log`] keeps them; both for `liqoctl` too.
//!
//! # What is promised
//!
//! - What is sold is in a Kubernetes object before it is anybody's. The sum of it never exceeds what the policies allow.
//! - Nothing is written while nothing changes, also after a restart; nothing is told twice.
//! - Parting takes a minute at most, whatever the other side does.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod log;
pub mod offer;
pub mod paper;
pub mod stock;

mod borrowing;
mod copies;
mod events;
mod house;
mod index;
mod lending;
mod metrics;
mod parting;
mod places;
mod room;
mod rules;
mod settings;
mod standing;
mod status;
mod steps;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use lending::SOLD_BY;
pub use liqo_kit::Clock;
pub use metrics::PeeringMetrics;
pub use room::Room;
pub use rules::RULES;
pub use settings::Settings;
