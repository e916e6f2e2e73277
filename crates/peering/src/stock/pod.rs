//! Pods: where they are, whose they are, and what they request.

use std::sync::Arc;

use liqo_api::labels;
use liqo_core::Resources;
use liqo_core::capacity::{InitContainer, PodRequests};
use liqo_core::names::ClusterId;
use liqo_kit::watch::{Identity, Meta, Pairs, Wire};
use serde::Deserialize;

/// The labels by which a pod says whom it was made for, the first that is there.
const PEER_LABELS: [&str; 2] = [labels::REMOTE_CLUSTER_ID, labels::REFLECTION_ORIGIN];

/// A pod as it is read.
#[derive(Clone, Debug, Deserialize)]
pub struct PodOnWire {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Option<String>,
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
    overhead: Pairs,
    resources: Option<Requests>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    name: String,
    resources: Option<Requests>,
    restart_policy: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Requests {
    requests: Pairs,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    container_statuses: Option<Vec<ContainerStatus>>,
    init_container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    allocated_resources: Pairs,
}

impl Wire for PodOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// What matters of a pod that takes room on a node.
#[derive(Clone, Debug, PartialEq)]
pub struct PodFacts {
    /// The node.
    pub node: Arc<str>,
    /// Whom the pod says that it was made for.
    pub peer: Option<ClusterId>,
    /// What has to be free for it.
    pub requests: Arc<Resources>,
}

impl PodFacts {
    /// Reads a pod; `None` if it takes no room: it is not placed yet, or it has finished.
    pub fn read(pod: PodOnWire) -> Option<Self> {
        let PodOnWire { metadata, spec, status } = pod;
        let node = spec.node_name.as_deref().filter(|node| !node.is_empty())?.into();
        if matches!(status.phase.as_str(), "Succeeded" | "Failed") {
            return None;
        }
        let peer = PEER_LABELS.iter().find_map(|label| metadata.labels.get(label));
        Some(Self {
            node,
            // What is no ID is no peer's; the pod still takes its room.
            peer: peer.and_then(|id| id.parse().ok()),
            requests: Arc::new(requests(&spec, &status).effective()),
        })
    }
}

fn requests(spec: &Spec, status: &Status) -> PodRequests {
    let of = |container: &Container, statuses: &Option<Vec<ContainerStatus>>| {
        let asked = container.resources.as_ref().map_or_else(Resources::new, |it| amounts(&it.requests));
        // A container that is being made smaller has its old room until the kubelet is done.
        let status = statuses.iter().flatten().find(|status| status.name == container.name);
        status.map_or(asked.clone(), |status| asked.max(&amounts(&status.allocated_resources)))
    };
    let init = |container: &Container| InitContainer {
        requests: of(container, &status.init_container_statuses),
        sidecar: container.restart_policy.as_deref() == Some("Always"),
    };
    PodRequests {
        containers: spec
            .containers
            .iter()
            .flatten()
            .map(|container| of(container, &status.container_statuses))
            .collect(),
        init_containers: spec.init_containers.iter().flatten().map(init).collect(),
        pod_level: spec.resources.as_ref().map_or_else(Resources::new, |it| amounts(&it.requests)),
        overhead: amounts(&spec.overhead),
    }
}

/// The API server checks quantities; what it let through all the same requests nothing.
fn amounts(pairs: &Pairs) -> Resources {
    Resources::parse(pairs.iter()).resources
}
