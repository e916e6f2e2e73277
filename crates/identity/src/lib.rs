//! The room in which a cluster gets its identity and tells about itself.
//!
//! ```text
//!   Secret liqo-identity          ConfigMap clusterid-configmap      ClusterConfig liqo
//!   private key, ID, name   ───▶  ID and name, for all to read  ───▶ who we are, and whether all is well
//!            └──────────────────────────┬─────────────────────────────────────┘
//!                                 watched by name
//!                                       ▼
//!                             Index ──▶ judge ──▶ Identity, for the rooms that sign with it
//!                                       └──▶ plan ──▶ Queue (the leader's alone)
//! ```
//!
//! On the first start there is nothing, and an identity is made; after that it never changes by itself. What is lost,
//! broken or contradictory is refused in words that say what to do, and taken back by itself once it is repaired.

pub mod key;

mod identity;
mod index;
mod metrics;
mod objects;
mod plan;
mod room;

use liqo_api::names::NamespaceName;
use liqo_kit::rbac::Rule;

pub use identity::{Identity, Wanted};
pub use metrics::IdentityMetrics;
pub use plan::Reason;
pub use room::Room;

/// What this room must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace that Liqo is installed in.
    pub namespace: NamespaceName,
    /// What the flags say the cluster is.
    pub wanted: Wanted,
    /// The version of this program, as the ClusterConfig shows it.
    pub version: String,
    /// What this version can do, as the ClusterConfig shows it.
    pub capabilities: Vec<String>,
    /// The pod that this is.
    pub pod: String,
}

/// What this room must be allowed to do.
pub const RULES: &[Rule] = &[
    Rule::namespace(
        &[""],
        &["secrets"],
        &["create"],
        "the Secret with the cluster's key, on the first start",
    ),
    Rule::namespace(
        &[""],
        &["secrets"],
        &["list", "watch"],
        "read the cluster's key, and notice when it is lost",
    )
    .named(&[liqo_api::cluster_config::IDENTITY_SECRET]),
    Rule::namespace(&[""], &["configmaps"], &["create"], "the ConfigMap with the cluster's ID and name"),
    Rule::namespace(
        &[""],
        &["configmaps"],
        &["list", "watch", "patch"],
        "compare the ConfigMap with the key, and note the key's fingerprint on it",
    )
    .named(&[liqo_api::cluster_config::CLUSTER_ID_CONFIG_MAP]),
    Rule::namespace(&["events.k8s.io"], &["events"], &["create"], "tell about an identity that is refused"),
    Rule::cluster(
        &["config.liqo.io"],
        &["clusterconfigs"],
        &["create"],
        "the object in which the cluster tells about itself",
    ),
    Rule::cluster(
        &["config.liqo.io"],
        &["clusterconfigs"],
        &["list", "watch"],
        "repair what others change in it",
    )
    .named(&[liqo_api::cluster_config::CLUSTER_CONFIG]),
    Rule::cluster(&["config.liqo.io"], &["clusterconfigs/status"], &["patch"], "tell what the cluster is")
        .named(&[liqo_api::cluster_config::CLUSTER_CONFIG]),
];
