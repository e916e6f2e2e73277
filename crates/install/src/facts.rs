//! What a cluster says about itself, before anything is concluded from it.

mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub(crate) use read::{in_url, read};

/// What was read from a cluster. What could not be read is empty, and named in `unread`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Facts {
    /// Where this machine reaches the API server.
    pub server: String,
    /// The context of the kubeconfig.
    pub context: Option<String>,
    /// The API server's version, such as `v1.34.1+k3s1`.
    pub version: String,
    /// The API groups that are served.
    pub groups: Vec<String>,
    /// The nodes, virtual ones left out.
    pub nodes: Vec<NodeFacts>,
    /// `ClusterConfiguration` of the ConfigMap that kubeadm leaves in kube-system.
    pub kubeadm_config: Option<String>,
    /// Arguments of the control plane's pods in kube-system.
    pub control_plane_arguments: Vec<String>,
    /// Addresses of a few pods that have one of their own.
    pub pod_addresses: Vec<String>,
    /// The ranges of the ServiceCIDR objects.
    pub service_cidrs: Vec<String>,
    /// What the API server says of a Service with an impossible address.
    pub service_refusal: Option<String>,
    /// The address of the Service `kubernetes`.
    pub kubernetes_service: Option<String>,
    /// Where that Service leads, as `host:port`.
    pub kubernetes_endpoints: Vec<String>,
    /// What OpenShift's own objects tell.
    pub openshift: Option<OpenShift>,
    /// Enabled address pools of Calico.
    pub calico_pools: Vec<String>,
    /// Address pools of Cilium, where Cilium gives out the addresses.
    pub cilium_pools: Vec<String>,
    /// The sandbox that the cluster belongs to; known to whoever may look at this machine.
    pub sandbox: Option<SandboxCluster>,
    /// What could not be read, and why.
    pub unread: Vec<Unread>,
}

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeFacts {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Who provides it, such as `kind://docker/kind/kind-control-plane`.
    pub provider_id: String,
    /// The kubelet's version.
    pub kubelet_version: String,
    /// The networks of its pods.
    pub pod_cidrs: Vec<String>,
    /// Its address inside the cluster's network.
    pub internal_address: Option<String>,
    /// Its address for the rest of the world.
    pub external_address: Option<String>,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether new pods may be placed on it.
    pub schedulable: bool,
    /// What it is short of: `DiskPressure`, `MemoryPressure`, `PIDPressure`.
    pub pressures: Vec<String>,
}

impl NodeFacts {
    /// Whether the control plane runs on it.
    pub fn is_control_plane(&self) -> bool {
        self.labels.keys().any(|key| {
            key == "node-role.kubernetes.io/control-plane" || key == "node-role.kubernetes.io/master"
        })
    }
}

/// What OpenShift tells.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenShift {
    /// The pods' networks.
    pub cluster_networks: Vec<String>,
    /// The services' networks.
    pub service_networks: Vec<String>,
    /// Where others reach the API server.
    pub api_server: Option<String>,
}

/// A cluster of a sandbox on this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct SandboxCluster {
    /// The sandbox's name.
    pub sandbox: String,
    /// The cluster's name.
    pub cluster: String,
    /// Where all clusters of the sandbox reach its API server.
    pub api_server: String,
    /// The pods' network.
    pub pod_cidr: String,
    /// The services' network.
    pub service_cidr: String,
}

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unread {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}
