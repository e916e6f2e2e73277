//! What a sandbox should be: the clusters, their nodes and their networks, as a person writes it down.

use std::collections::BTreeSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::path::Path;

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};

/// The clusters that `liqoctl sandbox up` starts when nobody says otherwise.
pub const DEFAULT_CLUSTERS: [&str; 4] = ["consumer", "broker", "provider-a", "provider-b"];

/// Reserved as the name of the machine itself in network faults (`cut consumer host`).
pub const HOST: &str = "host";

/// More real nodes than this do not fit a machine on which anyone would want a sandbox.
const MAX_REAL_NODES: u32 = 50;
/// kwok copes with more, etcd and the scheduler on a shared machine do not.
const MAX_HOLLOW_NODES: u32 = 10_000;
/// As many requests a second as no API server of this machine answers.
const MAX_CLIENT_RATE: u32 = 100_000;
/// What kubeadm and most others give a node.
const USUAL_NODE_PREFIX: u8 = 24;
/// Two usable addresses: enough for hollow nodes, whose pods have no network.
const LONGEST_NODE_PREFIX: u8 = 30;
/// Each cluster has one byte of the node addresses.
const MAX_CLUSTERS: usize = 200;
/// Component, interface and namespace names are made from it; Kubernetes allows 63, interfaces are shorter.
const MAX_NAME: usize = 40;

/// A sandbox: a few clusters on one "internet".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Spec {
    /// The clusters, in the order in which they are shown.
    pub clusters: Vec<ClusterSpec>,
}

/// One cluster of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ClusterSpec {
    /// The cluster's name; also the name of its kubectl context.
    pub name: String,
    /// How many nodes have a real kubelet, containerd and containers.
    #[serde(default = "one")]
    pub nodes: u32,
    /// How many nodes kwok only pretends to run.
    #[serde(default)]
    pub hollow_nodes: u32,
    /// The pods' network. Equal in all clusters unless set, because that is what users meet.
    #[serde(default = "default_pod_cidr", rename = "podCIDR")]
    pub pod_cidr: Ipv4Net,
    /// The services' network. Equal in all clusters unless set.
    #[serde(default = "default_service_cidr", rename = "serviceCIDR")]
    pub service_cidr: Ipv4Net,
    /// Whether the API server writes down every request, see [`Cluster::audit_log`](crate::Cluster::audit_log).
    #[serde(default)]
    pub audit: bool,
    /// Requests a second that the controllers and the scheduler may make; their own default where left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_rate: Option<u32>,
}

fn one() -> u32 {
    1
}

fn default_pod_cidr() -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(10, 200, 0, 0), 16)
}

fn default_service_cidr() -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(10, 80, 0, 0), 16)
}

/// Why a specification was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SpecError {
    /// The file cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system said.
        reason: String,
    },
    /// The file is not what we expect; the reason names the line.
    #[error(
        "{path} is not a sandbox description: {reason}\n\nexpected something like:\n{example}",
        example = EXAMPLE
    )]
    Malformed {
        /// The file.
        path: String,
        /// Line, column and what was expected there.
        reason: String,
    },
    /// The description contradicts itself or asks for the impossible.
    #[error("{0}")]
    Invalid(String),
}

/// What a description looks like, for error messages and `--help`.
pub const EXAMPLE: &str = "\
clusters:
- name: consumer              # required
  nodes: 1                    # real nodes, default 1
  hollowNodes: 0              # kwok nodes, default 0; both 0: API server only
  podCIDR: 10.200.0.0/16      # default, equal in all clusters
  serviceCIDR: 10.80.0.0/16   # default, equal in all clusters
  audit: false                # default; true: every request to the API server is in audit.log
  # clientRate: 1000          # requests a second of the controllers and the scheduler; default: their own, 20 and 50
";

impl ClusterSpec {
    /// A cluster with real nodes.
    pub fn real(name: impl Into<String>, nodes: u32) -> Self {
        Self {
            name: name.into(),
            nodes,
            hollow_nodes: 0,
            pod_cidr: default_pod_cidr(),
            service_cidr: default_service_cidr(),
            audit: false,
            client_rate: None,
        }
    }

    /// A cluster whose nodes only exist as objects.
    pub fn hollow(name: impl Into<String>, nodes: u32) -> Self {
        Self { nodes: 0, hollow_nodes: nodes, ..Self::real(name, 0) }
    }

    /// etcd and an API server, nothing else: ready in seconds.
    pub fn api_only(name: impl Into<String>) -> Self {
        Self::real(name, 0)
    }

    /// The same cluster with other networks.
    #[must_use]
    pub fn with_networks(mut self, pods: Ipv4Net, services: Ipv4Net) -> Self {
        self.pod_cidr = pods;
        self.service_cidr = services;
        self
    }

    /// The same cluster with a log of all requests to its API server.
    #[must_use]
    pub fn audited(mut self) -> Self {
        self.audit = true;
        self
    }

    /// The same cluster, whose controllers and scheduler may make so many requests a second.
    #[must_use]
    pub fn with_client_rate(mut self, requests: u32) -> Self {
        self.client_rate = Some(requests);
        self
    }

    /// Whether nothing schedules or runs pods here.
    pub fn is_api_only(&self) -> bool {
        self.nodes == 0 && self.hollow_nodes == 0
    }

    /// How the nodes are made, in a word for tables.
    pub fn flavour(&self) -> Flavour {
        match (self.nodes, self.hollow_nodes) {
            (0, 0) => Flavour::None,
            (0, _) => Flavour::Hollow,
            (_, 0) => Flavour::Real,
            _ => Flavour::Mixed,
        }
    }

    /// The prefix length of one node's share of the pod network.
    pub fn node_prefix(&self) -> u8 {
        let nodes = u64::from(self.nodes) + u64::from(self.hollow_nodes);
        let fits = |len: &u8| (1u64 << (len - self.pod_cidr.prefix_len())) >= nodes;
        let shortest = self.pod_cidr.prefix_len().max(USUAL_NODE_PREFIX);
        (shortest..=LONGEST_NODE_PREFIX).find(fits).unwrap_or(LONGEST_NODE_PREFIX)
    }

    fn validate(&self) -> Result<(), SpecError> {
        let name = &self.name;
        let invalid = |text: String| Err(SpecError::Invalid(text));
        check_name("cluster name", name)?;
        if name == HOST {
            return invalid(format!(
                "the cluster name \"{HOST}\" is taken: it means this machine in network faults"
            ));
        }
        if self.nodes > MAX_REAL_NODES {
            return invalid(format!(
                "cluster {name}: {} real nodes; at most {MAX_REAL_NODES}, use hollowNodes for scale",
                self.nodes
            ));
        }
        if self.hollow_nodes > MAX_HOLLOW_NODES {
            return invalid(format!(
                "cluster {name}: {} hollow nodes; at most {MAX_HOLLOW_NODES}",
                self.hollow_nodes
            ));
        }
        if self.client_rate.is_some_and(|rate| !(1..=MAX_CLIENT_RATE).contains(&rate)) {
            return invalid(format!("cluster {name}: clientRate must be between 1 and {MAX_CLIENT_RATE}"));
        }
        for (what, net, longest) in [("podCIDR", self.pod_cidr, 22), ("serviceCIDR", self.service_cidr, 24)] {
            if net.trunc() != net {
                return invalid(format!(
                    "cluster {name}: {what} {net} has host bits set; did you mean {}?",
                    net.trunc()
                ));
            }
            if !(8..=longest).contains(&net.prefix_len()) {
                return invalid(format!("cluster {name}: {what} {net} must be between /8 and /{longest}"));
            }
            if overlaps(net, internet()) {
                return invalid(format!(
                    "cluster {name}: {what} {net} overlaps {}, from which the nodes get their addresses",
                    internet()
                ));
            }
        }
        if overlaps(self.pod_cidr, self.service_cidr) {
            return invalid(format!(
                "cluster {name}: podCIDR {} and serviceCIDR {} overlap",
                self.pod_cidr, self.service_cidr
            ));
        }
        let shares = 1u64 << (self.node_prefix() - self.pod_cidr.prefix_len());
        if shares < u64::from(self.nodes) + u64::from(self.hollow_nodes) {
            return invalid(format!("cluster {name}: podCIDR {} is too small for its nodes", self.pod_cidr));
        }
        Ok(())
    }
}

/// How the nodes of a cluster are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Flavour {
    /// Kubelets and containers.
    Real,
    /// Objects kept alive by kwok.
    Hollow,
    /// Some of each.
    Mixed,
    /// API server only.
    None,
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "real",
            Self::Hollow => "hollow",
            Self::Mixed => "real+hollow",
            Self::None => "none",
        })
    }
}

/// The range from which every sandbox takes the addresses of its nodes (shared address space, RFC 6598).
pub(crate) fn internet() -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10)
}

fn overlaps(a: Ipv4Net, b: Ipv4Net) -> bool {
    a.contains(&b) || b.contains(&a)
}

impl Spec {
    /// A sandbox of these clusters.
    pub fn new(clusters: impl IntoIterator<Item = ClusterSpec>) -> Self {
        Self { clusters: clusters.into_iter().collect() }
    }

    /// Reads and checks a `sandbox.yaml`.
    pub fn from_file(path: &Path) -> Result<Self, SpecError> {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| SpecError::Unreadable { path: shown.clone(), reason: error.to_string() })?;
        Self::from_yaml(&text, &shown)
    }

    /// Parses and checks a description; `source` is what error messages call it.
    pub fn from_yaml(text: &str, source: &str) -> Result<Self, SpecError> {
        let spec: Self = serde_saphyr::from_str(text)
            .map_err(|error| SpecError::Malformed { path: source.to_owned(), reason: error.to_string() })?;
        spec.validate().map_err(|error| SpecError::Invalid(format!("{source}: {error}")))?;
        Ok(spec)
    }

    /// Refuses what cannot be started, with the reason.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.clusters.is_empty() {
            return Err(SpecError::Invalid("a sandbox needs at least one cluster".into()));
        }
        if self.clusters.len() > MAX_CLUSTERS {
            return Err(SpecError::Invalid(format!(
                "{} clusters; at most {MAX_CLUSTERS}",
                self.clusters.len()
            )));
        }
        let mut seen = BTreeSet::new();
        for cluster in &self.clusters {
            cluster.validate()?;
            if !seen.insert(&cluster.name) {
                return Err(SpecError::Invalid(format!("two clusters are named {}", cluster.name)));
            }
        }
        Ok(())
    }
}

/// Checks a name that becomes part of paths, interfaces and Kubernetes objects.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), SpecError> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edges = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.is_empty()
        || name.len() > MAX_NAME
        || !name.chars().all(good)
        || !name.starts_with(edges)
        || !name.ends_with(edges)
    {
        return Err(SpecError::Invalid(format!(
            "{what} {name:?}: use 1 to {MAX_NAME} lower-case letters, digits and '-', with a letter or digit at both ends"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
