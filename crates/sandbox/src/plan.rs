//! Where everything of a sandbox is: directories, addresses, interface names. Pure: the same place and
//! specification always give the same plan, so whatever an interrupted start left behind can be found again.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use ipnet::Ipv4Net;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::spec::{ClusterSpec, Spec, SpecError, check_name, internet};

/// The API server's port, as everywhere.
pub(crate) const API_PORT: u16 = 6443;
/// etcd's client port.
pub(crate) const ETCD_PORT: u16 = 2379;

/// Where one sandbox lives on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    base: PathBuf,
    name: String,
}

impl Place {
    /// The directory below which sandboxes live unless told otherwise.
    pub const DEFAULT_BASE: &'static str = "/var/lib/liqo-sandbox";

    /// The sandbox `name` below `base`.
    pub fn new(base: impl Into<PathBuf>, name: &str) -> Result<Self, SpecError> {
        check_name("sandbox name", name)?;
        let base = base.into();
        let base = std::path::absolute(&base).unwrap_or(base);
        Ok(Self { base, name: name.to_owned() })
    }

    /// The sandbox's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory that holds all sandboxes.
    pub fn base(&self) -> &Path {
        &self.base
    }

    /// Everything of this sandbox is below this directory.
    pub fn root(&self) -> PathBuf {
        self.base.join(&self.name)
    }

    /// One kubeconfig with a context per cluster.
    pub fn kubeconfig(&self) -> PathBuf {
        self.root().join("kubeconfig")
    }

    /// Short and unique on this machine: for interface names and cgroups, which have no directories.
    pub fn id(&self) -> String {
        let digest = Sha256::digest(self.root().as_os_str().as_encoded_bytes());
        digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
    }

    /// This machine's end of the cable to the sandbox's internet.
    pub(crate) fn host_interface(&self) -> String {
        format!("lq{}", self.id())
    }

    /// The sandbox's cgroup, relative to each hierarchy.
    pub(crate) fn cgroup(&self) -> PathBuf {
        Path::new("liqo-sandbox").join(self.id())
    }

    pub(crate) fn state_file(&self) -> PathBuf {
        self.root().join("state.json")
    }

    pub(crate) fn bin(&self) -> PathBuf {
        self.root().join("bin")
    }

    pub(crate) fn images(&self) -> PathBuf {
        self.root().join("images")
    }

    /// The sixteen-bit networks of the internet range, starting with the one this place prefers.
    pub(crate) fn candidate_subnets(&self) -> impl Iterator<Item = Ipv4Net> {
        let first = usize::from(Sha256::digest(self.root().as_os_str().as_encoded_bytes())[4]);
        let all: Vec<Ipv4Net> = internet().subnets(16).into_iter().flatten().collect();
        (0..all.len()).map(move |offset| all[(first + offset) % all.len()])
    }
}

/// A sandbox with all its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The network of all nodes and of this machine's cable.
    pub subnet: Ipv4Net,
    /// The clusters, in the order of the specification.
    pub clusters: Vec<ClusterPlan>,
}

/// A cluster with all its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterPlan {
    /// What was asked for.
    pub spec: ClusterSpec,
    /// Its machines. The first one also carries the control plane, and exists even in API-server-only clusters.
    pub machines: Vec<MachinePlan>,
    /// The cluster's directory.
    pub dir: PathBuf,
}

/// A machine: a network namespace with one cable to the internet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachinePlan {
    /// Counted from 1.
    pub number: u32,
    /// The Node's name, and the machine's hostname.
    pub node_name: String,
    /// Its address on the internet.
    pub address: Ipv4Addr,
    /// The hardware address of its cable: the relay tells machines apart by it.
    pub mac: [u8; 6],
    /// The internet's end of its cable.
    pub port: String,
    /// Its files.
    pub dir: PathBuf,
}

impl Plan {
    /// Lays out `spec` at `place` with node addresses from `subnet`.
    pub fn new(place: &Place, spec: &Spec, subnet: Ipv4Net) -> Self {
        let clusters = (0u8..)
            .zip(&spec.clusters)
            .map(|(index, cluster)| ClusterPlan::new(place, cluster, index, subnet))
            .collect();
        Self { subnet, clusters }
    }

    /// The bridge's own address: every machine's default gateway.
    pub(crate) fn gateway(&self) -> Ipv4Addr {
        offset(self.subnet, 0, 1)
    }

    /// This machine's address on the sandbox's internet.
    pub(crate) fn host_address(&self) -> Ipv4Addr {
        offset(self.subnet, 0, 2)
    }

    /// The hardware address of this machine's cable.
    pub(crate) const HOST_MAC: [u8; 6] = [0x02, 0x4c, 0x51, 0xff, 0x00, 0x02];
}

impl ClusterPlan {
    fn new(place: &Place, spec: &ClusterSpec, index: u8, subnet: Ipv4Net) -> Self {
        let dir = place.root().join(&spec.name);
        let machines = (1..=spec.nodes.max(1))
            .map(|number| {
                let low = u8::try_from(number).unwrap_or(u8::MAX);
                MachinePlan {
                    number,
                    node_name: format!("{}-{number}", spec.name),
                    address: offset(subnet, index + 1, low + 9),
                    mac: [0x02, 0x4c, 0x51, index, 0x00, low],
                    port: format!("c{index}n{number}"),
                    dir: dir.join(format!("node-{number}")),
                }
            })
            .collect();
        Self { spec: spec.clone(), machines, dir }
    }

    /// The cluster's name.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The machine that carries the control plane.
    pub fn first_machine(&self) -> &MachinePlan {
        &self.machines[0]
    }

    /// Where clients reach the API server, from this machine and from every other cluster.
    pub fn api_url(&self) -> String {
        format!("https://{}:{API_PORT}", self.first_machine().address)
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("admin.kubeconfig")
    }

    /// Where an audited API server writes down the requests it gets.
    pub(crate) fn audit_log(&self) -> PathBuf {
        self.dir.join("audit.log")
    }

    /// The real machines that run pods; none in clusters without real nodes.
    pub fn nodes(&self) -> &[MachinePlan] {
        if self.spec.nodes == 0 { &[] } else { &self.machines }
    }

    /// The cluster IP of the `kubernetes` service.
    pub(crate) fn kubernetes_service(&self) -> Ipv4Addr {
        offset(self.spec.service_cidr, 0, 1)
    }

    /// The cluster IP of DNS.
    pub(crate) fn dns_service(&self) -> Ipv4Addr {
        offset(self.spec.service_cidr, 0, 10)
    }

    pub(crate) fn pki(&self) -> PathBuf {
        self.dir.join("pki")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.dir.join("logs")
    }
}

fn offset(net: Ipv4Net, third: u8, fourth: u8) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(net.network()) + (u32::from(third) << 8) + u32::from(fourth))
}

/// `02:4c:51:…` as tools print it.
pub(crate) fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

#[cfg(test)]
mod tests;
