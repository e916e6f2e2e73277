//! Waiting until everything runs; and if it does not, saying which pod and why.

mod diagnose;
mod look;
mod wait;

use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use liqo_api::ClusterConfig;

pub(crate) use diagnose::{Step, Trouble, step, troubles};
pub(crate) use look::is_workload;
pub(crate) use wait::{Wait, wait};

/// What is known about one thing that runs pods.
#[derive(Debug, Clone, Default)]
pub(crate) struct Workload {
    /// `Deployment liqo/liqo-controller-manager`.
    pub(crate) what: String,
    /// Its controller has seen its latest state.
    pub(crate) observed: bool,
    /// Its controller has seen it at all.
    pub(crate) noticed: bool,
    pub(crate) wanted: i32,
    pub(crate) updated: i32,
    pub(crate) available: i32,
    /// Pods of an older version that still run.
    pub(crate) old: i32,
    /// Why its controller cannot make pods.
    pub(crate) failures: Vec<String>,
    pub(crate) replica_sets: Vec<ReplicaSet>,
    /// Its pods of the latest version.
    pub(crate) pods: Vec<Pod>,
    pub(crate) events: Vec<Event>,
    /// Where its pods could run; looked at when one of them has no node.
    pub(crate) nodes: Vec<Node>,
    /// The last lines of pods that do not work, by the pod's name.
    pub(crate) logs: Vec<(String, String)>,
}

/// What the manager tells about the cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    pub(crate) config: Option<ClusterConfig>,
    /// The version that must tell it; `None` if any will do.
    pub(crate) version: Option<String>,
}
