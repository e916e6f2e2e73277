//! The parts of a cluster that can be started, stopped and looked at, and the names people call them by.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::error::{Result, SandboxError};
use crate::plan::ClusterPlan;

/// A kind of part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The store.
    Etcd,
    /// kube-apiserver.
    Apiserver,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// Keeps hollow nodes alive.
    Kwok,
    /// A whole real node: kubelet, containerd, kube-proxy and every pod on it.
    Node,
    /// containerd.
    Containerd,
    /// The kubelet.
    Kubelet,
    /// kube-proxy.
    KubeProxy,
}

impl Component {
    const ALL: [Self; 9] = [
        Self::Etcd,
        Self::Apiserver,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kwok,
        Self::Node,
        Self::Containerd,
        Self::Kubelet,
        Self::KubeProxy,
    ];

    /// The name in commands and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Apiserver => "apiserver",
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
            Self::Kwok => "kwok",
            Self::Node => "node",
            Self::Containerd => "containerd",
            Self::Kubelet => "kubelet",
            Self::KubeProxy => "kube-proxy",
        }
    }

    /// The program that it is.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Apiserver => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Node => "pause",
            other => other.name(),
        }
    }

    fn is_on_node(self) -> bool {
        matches!(self, Self::Node | Self::Containerd | Self::Kubelet | Self::KubeProxy)
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One part of one cluster: a component, and for those on nodes, which node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// What it is.
    pub component: Component,
    /// On which node, counted from 1; none for the control plane.
    pub node: Option<u32>,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.component, self.node) {
            (Component::Node, Some(number)) => write!(f, "node-{number}"),
            (component, Some(number)) => write!(f, "node-{number}/{component}"),
            (component, None) => write!(f, "{component}"),
        }
    }
}

impl Part {
    /// The role its processes carry.
    pub(crate) fn mark(self, cluster: &ClusterPlan) -> String {
        match (self.component, self.node) {
            (Component::Node, Some(number)) => format!("{}/node-{number}/init", cluster.name()),
            _ => format!("{}/{self}", cluster.name()),
        }
    }

    /// Its log.
    pub(crate) fn log(self, cluster: &ClusterPlan) -> PathBuf {
        cluster.logs().join(format!("{}.log", self.to_string().replace('/', "-")))
    }

    /// Every part of a cluster, in the order in which they start.
    pub fn all(cluster: &ClusterPlan) -> Vec<Self> {
        let control_plane: &[Component] = match (cluster.spec.is_api_only(), cluster.spec.hollow_nodes) {
            (true, _) => &Component::ALL[..2],
            (false, 0) => &Component::ALL[..4],
            (false, _) => &Component::ALL[..5],
        };
        let control_plane = control_plane.iter().map(|component| Self { component: *component, node: None });
        let nodes = cluster.nodes().iter().flat_map(|node| {
            Component::ALL[5..]
                .iter()
                .map(|component| Self { component: *component, node: Some(node.number) })
        });
        control_plane.chain(nodes).collect()
    }

    /// The parts that a person means by `text`: `etcd`, `node-2`, `node-1/kubelet`; `kubelet` or `node` on all
    /// nodes; nothing for the whole cluster.
    pub fn select(cluster: &ClusterPlan, text: Option<&str>) -> Result<Vec<Self>> {
        let all = Self::all(cluster);
        let Some(text) = text else { return Ok(all) };
        let chosen: Vec<Self> = match text.parse::<Component>() {
            Ok(component) => all.iter().copied().filter(|part| part.component == component).collect(),
            Err(()) => all.iter().copied().filter(|part| part.to_string() == text).collect(),
        };
        if !chosen.is_empty() {
            return Ok(chosen);
        }
        let mut known: Vec<String> = all.iter().map(ToString::to_string).collect();
        if !cluster.nodes().is_empty() {
            known.extend(
                Component::ALL.iter().filter(|one| one.is_on_node()).map(|one| format!("{one} (all nodes)")),
            );
        }
        Err(SandboxError::Unknown { what: "component", name: text.to_owned(), known: known.join(", ") })
    }
}

impl FromStr for Component {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.strip_prefix("kube-").filter(|rest| *rest != "proxy").unwrap_or(text);
        Self::ALL.into_iter().find(|component| component.name() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests;
