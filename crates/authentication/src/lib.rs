//! The room in which clusters prove who they are and get their keys.
//!
//! ```text
//!        calling                                                   called
//!  ForeignCluster ── GET /ids, POST /identity/certificate ──▶ authentication service (TLS)
//!        │             token, proof, signing request               │ judge
//!        ▼                                                          ▼
//!  tenant namespace                                           tenant namespace, Role, RoleBinding,
//!    Secret liqo-identity-… ◀──────── certificate ──────────  ForeignCluster, certificate by Kubernetes
//!        │
//!        └──▶ whoever talks to the peer's API server: as the user named like our cluster ID
//! ```
//!
//! Both sides are in every process; what only one may do is the leader's ([`Room::lead`]). Any process answers other clusters:
//! what must be true once is kept true by the API server.
//!
//! - [`tokens`]: by what a cluster comes in the first time, for `liqoctl` too;
//! - [`client`]: asking another cluster who it is, for `liqoctl` and discovery too;
//! - [`auth_url`] and [`own_fingerprint`]: where others reach our service, and how they recognise it;
//! - [`PEER_RULES`]: what a peer may do here, and nothing else.
//!
//! # What is promised
//!
//! - An ID belongs to one key. Who says to be a cluster that is known with another key is refused, and that is told.
//! - A peer token belongs to one peer. Who came in needs no token again: it proves its key.
//! - Who is put out ([`tokens::revoke`], [`tokens::put_out`], deleting the ForeignCluster) can do nothing within seconds. Its
//!   certificate goes on being valid, as Kubernetes revokes none, but nobody is bound to that user any more. A watch that is
//!   open goes on until its connection ends, and shows nothing but the tenant namespace, which is removed.
//! - Private keys of certificates leave the process only into the Secret; tokens only to the peer.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod client;
pub mod tokens;

mod calling;
mod certificate;
mod csr;
mod index;
mod metrics;
mod objects;
mod proof;
mod room;
mod rules;
mod serving;
mod settings;
mod steps;
#[cfg(test)]
mod testing;
mod wire;

pub use certificate::own_fingerprint;
pub use liqo_kit::Clock;
pub use metrics::AuthenticationMetrics;
pub use objects::PEER_RULES;
pub use room::Room;
pub use rules::RULES;
pub use serving::Limits;
pub use serving::address::auth_url;
pub use settings::Settings;
pub use wire::PeerIdentity;
