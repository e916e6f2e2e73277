//! Nodes: what they have, and whether it can be shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use liqo_api::labels;
use liqo_core::Resources;
use liqo_core::capacity::Node;
use liqo_kit::watch::{Identity, Meta, Wire};
use serde::Deserialize;

/// Names of resources that a node has for its own bookkeeping; no pod can ask for them.
const ATTACHABLE_VOLUMES: &str = "attachable-volumes-";

/// Taints with these effects keep away who does not tolerate them, which nobody has to.
const KEEPING_AWAY: [&str; 2] = ["NoSchedule", "NoExecute"];

/// A node as it is read.
#[derive(Clone, Debug, Deserialize)]
pub struct NodeOnWire {
    metadata: Meta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
    taints: Option<Vec<Taint>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Taint {
    effect: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    allocatable: Option<BTreeMap<String, String>>,
    conditions: Option<Vec<Condition>>,
    images: Option<Vec<ImageOnWire>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ImageOnWire {
    names: Option<Vec<String>>,
    size_bytes: i64,
}

impl Wire for NodeOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// What matters of a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeFacts {
    /// What it has, and whether it counts.
    pub node: Node,
    /// The images that it has.
    pub images: Vec<Arc<Image>>,
}

/// An image that a node has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Image {
    /// The names by which it is known.
    pub names: Vec<String>,
    /// How large it is, in bytes.
    pub size: i64,
}

impl NodeFacts {
    /// Reads a node.
    pub fn read(node: NodeOnWire) -> Option<Self> {
        let NodeOnWire { metadata, spec, status } = node;
        let label = |key: &str| metadata.labels.get(key);
        let tainted = spec.taints.iter().flatten().any(|taint| KEEPING_AWAY.contains(&taint.effect.as_str()));
        // The API server checks quantities; what it let through all the same is nothing to share.
        let allocatable = Resources::parse(status.allocatable.into_iter().flatten()).resources;
        let mut allocatable = allocatable.refuse_negative().resources;
        allocatable.retain(|name, _| !name.as_str().starts_with(ATTACHABLE_VOLUMES));
        let ready = status.conditions.iter().flatten().any(|it| it.kind == "Ready" && it.status == "True");
        let image = |image: ImageOnWire| {
            Arc::new(Image { names: image.names.unwrap_or_default(), size: image.size_bytes.max(0) })
        };
        Some(Self {
            images: status.images.into_iter().flatten().map(image).collect(),
            node: Node {
                name: metadata.name.to_string(),
                allocatable,
                labels: metadata
                    .labels
                    .iter()
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect(),
                ready,
                schedulable: !spec.unschedulable && !tainted && metadata.deletion_timestamp.is_none(),
                virtual_node: label(labels::NODE_TYPE) == Some(labels::NODE_TYPE_VIRTUAL),
            },
        })
    }
}
