//! The room in which other clusters are found.
//!
//! ```text
//!  multicast DNS ──┐                    ┌── asked: GET /ids
//!  (lan)           ├──▶ book: who was ──┤
//!  SearchDomains ──┘    heard of        └── claims: who said who it is ──▶ plan ──▶ ForeignClusters
//!  (wan)                                                                   ▲ what there is
//! ```
//!
//! What strangers say is parsed before it is believed ([`mod@advert`]), kept in bounded size, and counts only once the
//! cluster itself has said the same over TLS. Every cluster gets one ForeignCluster, which is refreshed while the cluster
//! is advertised and goes when it is not. Whoever claims the ID of another cluster that is alive is refused.
//!
//! ```text
//!  let room = Room::new(client, settings, own_identity, identify);
//!  room.metrics().register(&mut registry);
//!  room.start(&supervisor, &watch_metrics);            // in every process
//!  let (queue, worker) = room.queue(&write_metrics);   // run the worker in every process
//!  room.add_checks(&ready);
//!  room.run(&queue, gate, stop).await;                 // while it leads, or for ever where it is alone
//! ```
//!
//! A process runs a [`Room`] with the sources that it can reach: the local network needs the network of a node, DNS does
//! not. How a cluster is asked over TLS is given from outside, as [`Identify`].

mod advert;
mod book;
mod domains;
mod events;
mod lan;
mod metrics;
mod peers;
mod probe;
mod room;
mod state;
mod wan;

use liqo_kit::rbac::Rule;

pub use lan::{Advertisement, DEFAULT_TTL, InterfaceChoice, InterfaceRule, InvalidRule, Lan};
pub use metrics::DiscoveryMetrics;
pub use probe::{Endpoint, Identify, IdentifyError, Ids};
pub use room::{Room, Settings};
pub use wan::Wan;

/// What this room must be allowed to do wherever it runs.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        &["discovery.liqo.io"],
        &["foreignclusters"],
        &["list", "watch", "create", "patch", "delete"],
        "a ForeignCluster for each cluster that is found, as long as it is advertised",
    ),
    Rule::cluster(
        &["events.k8s.io"],
        &["events"],
        &["create"],
        "tell about clusters that were found or refused; events about objects without namespace are in default",
    ),
];

/// What it must be allowed besides where it searches domains.
pub const WAN_RULES: &[Rule] = &[
    Rule::cluster(
        &["discovery.liqo.io"],
        &["searchdomains"],
        &["list", "watch"],
        "know which domains to search",
    ),
    Rule::cluster(&["discovery.liqo.io"], &["searchdomains/status"], &["patch"], "tell what was found there"),
];
