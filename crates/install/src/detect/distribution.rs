//! Which distribution of Kubernetes it is.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::Found;
use crate::facts::{Facts, NodeFacts};

/// On the nodes of a sandbox: the cluster's name.
pub(crate) const SANDBOX_LABEL: &str = "liqo.io/sandbox-cluster";

/// A distribution of Kubernetes that liqoctl knows by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Clusters made by kubeadm.
    Kubeadm,
    /// Kubernetes in Docker.
    Kind,
    /// k3s, and k3d.
    K3s,
    /// Amazon's.
    Eks,
    /// Google's.
    Gke,
    /// Microsoft's.
    Aks,
    /// Red Hat's.
    Openshift,
    /// A cluster of `liqoctl sandbox`.
    Sandbox,
}

impl Distribution {
    /// All of them, in the order in which people read about them.
    pub const ALL: [Self; 8] = [
        Self::Kubeadm,
        Self::Kind,
        Self::K3s,
        Self::Eks,
        Self::Gke,
        Self::Aks,
        Self::Openshift,
        Self::Sandbox,
    ];

    /// As it is written on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kubeadm => "kubeadm",
            Self::Kind => "kind",
            Self::K3s => "k3s",
            Self::Eks => "eks",
            Self::Gke => "gke",
            Self::Aks => "aks",
            Self::Openshift => "openshift",
            Self::Sandbox => "sandbox",
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|one| one.name() == text)
            .ok_or_else(|| format!("{text:?} is no distribution that liqoctl knows: {}", known()))
    }
}

/// Goes from what can be nothing else to what several could be: OpenShift runs on Amazon's machines, and kind and the
/// sandbox are made like others.
pub(super) fn find(facts: &Facts) -> Option<Found<Distribution>> {
    sandbox(facts)
        .or_else(|| openshift(facts))
        .or_else(|| by_provider(facts))
        .or_else(|| by_version(facts))
        .or_else(|| by_label(facts))
        .or_else(|| kubeadm(facts))
}

fn sandbox(facts: &Facts) -> Option<Found<Distribution>> {
    if let Some(sandbox) = &facts.sandbox {
        let source = format!("the running sandbox {}, to which {} belongs", sandbox.sandbox, facts.server);
        return Some(Found::new(Distribution::Sandbox, source));
    }
    let node = facts.nodes.iter().find(|node| node.labels.contains_key(SANDBOX_LABEL))?;
    Some(Found::new(Distribution::Sandbox, format!("the label {SANDBOX_LABEL} of node {}", node.name)))
}

fn openshift(facts: &Facts) -> Option<Found<Distribution>> {
    let group = facts.groups.iter().find(|group| *group == "config.openshift.io")?;
    Some(Found::new(Distribution::Openshift, format!("the API group {group}")))
}

fn by_provider(facts: &Facts) -> Option<Found<Distribution>> {
    let node = facts.nodes.iter().find(|node| node.provider_id.starts_with("kind://"))?;
    Some(Found::new(Distribution::Kind, format!("the provider of node {}, {}", node.name, node.provider_id)))
}

fn by_version(facts: &Facts) -> Option<Found<Distribution>> {
    let told = std::iter::once(("the API server's version", &facts.version))
        .chain(facts.nodes.iter().map(|node| ("the kubelets' version", &node.kubelet_version)));
    let mut marks = told.filter_map(|(source, version)| {
        let distribution = if version.contains("+k3s") {
            Distribution::K3s
        } else if version.contains("-eks-") {
            Distribution::Eks
        } else if version.contains("-gke.") {
            Distribution::Gke
        } else {
            return None;
        };
        Some(Found::new(distribution, format!("{source}, {version}")))
    });
    marks.next()
}

fn by_label(facts: &Facts) -> Option<Found<Distribution>> {
    const MARKS: [(&str, Distribution); 5] = [
        ("kubernetes.azure.com/cluster", Distribution::Aks),
        ("eks.amazonaws.com/nodegroup", Distribution::Eks),
        ("eks.amazonaws.com/compute-type", Distribution::Eks),
        ("alpha.eksctl.io/cluster-name", Distribution::Eks),
        ("cloud.google.com/gke-nodepool", Distribution::Gke),
    ];
    let marked = |node: &NodeFacts| MARKS.into_iter().find(|(label, _)| node.labels.contains_key(*label));
    let (node, (label, distribution)) = facts.nodes.iter().find_map(|node| Some((node, marked(node)?)))?;
    Some(Found::new(distribution, format!("the label {label} of node {}", node.name)))
}

fn kubeadm(facts: &Facts) -> Option<Found<Distribution>> {
    facts.kubeadm_config.as_ref()?;
    Some(Found::new(Distribution::Kubeadm, "ConfigMap kube-system/kubeadm-config"))
}
