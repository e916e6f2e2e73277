//! Who lends to this cluster, how it is reached, and whether it answers.
//!
//! Every room of the consumer's side needs this: the one that shows providers as nodes, the one that sends pods there,
//! the one that maps namespaces. So that they agree, and watch and connect once, it is found out here:
//!
//! ```text
//!  Contracts in force ─┐
//!  ResourceOffers ─────┼──▶ index ──▶ Providers::subscribe(): one list for all rooms
//!  identity Secrets ───┘      ▲
//!        └──▶ one client each ┴── a real request every two seconds: does it answer?
//! ```
//!
//! Whether the nodes behind a provider's API server answer is measured by who knows the pods there, with [`nodes`].

mod access;
mod health;
mod index;
pub mod nodes;
mod pulse;
mod turns;
mod watched;

pub use access::{Access, Held};
pub use health::Health;
pub use watched::{Providers, RULES, Settings};

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use liqo_api::names::NamespaceName;
use liqo_core::Resources;
use liqo_core::names::{ClusterId, ClusterName};
use liqo_core::pools::Pools;
use liqo_kit::clusters::Cluster;

/// The providers by their IDs.
pub type ByCluster = BTreeMap<ClusterId, Provider>;

/// A cluster that lends to us, or at which we still have an identity.
#[derive(Clone)]
pub struct Provider {
    /// What identifies it.
    pub id: ClusterId,
    /// What people call it; not known while there is no contract.
    pub name: Option<ClusterName>,
    /// Our namespace for everything about it.
    pub local_namespace: Arc<str>,
    /// How it is reached; or why it cannot be.
    pub link: Result<Link, Arc<str>>,
    /// What it lends; nothing may be placed there without.
    pub lent: Option<Arc<Lent>>,
    /// Whether it answers.
    pub health: Health,
}

/// The way to a provider.
#[derive(Clone)]
pub struct Link {
    /// Our tenant namespace there.
    pub place: NamespaceName,
    /// Its clients.
    pub cluster: Cluster,
}

/// What a provider lends, by the contract in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Lent {
    /// The name of the contract.
    pub contract: String,
    /// How much.
    pub resources: Resources,
    /// The same by pool of its nodes; nothing where it lends them as one.
    pub pools: Pools,
    /// What the provider says about itself in its offer.
    pub labels: BTreeMap<String, String>,
    /// The storage classes of its offer, the default one first.
    pub storage_classes: Vec<String>,
    /// Until when, unless it is renewed.
    pub until: Timestamp,
    /// Whether we ended it, and what runs there must leave.
    pub ending: bool,
}
