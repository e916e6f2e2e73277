//! Several real Kubernetes clusters on one machine: for tests, the demo and benchmarks.
//!
//! ```text
//!   this machine ──┐
//!                  │            ┌── consumer-1   etcd, API server, … and a node: kubelet, containerd, pods
//!              "internet" ──────┼── consumer-2   another node
//!              (a bridge)       └── provider-a-1 …
//! ```
//!
//! Every machine is a network namespace; a node adds namespaces for processes, mounts and names. All of it hangs
//! on processes that carry the sandbox's mark, so that [`down()`] can remove a sandbox without trusting anything
//! that was written down, even when [`Sandbox::up`] was killed in the middle.
//!
//! * what is wanted: [`Spec`], read from `sandbox.yaml` or made by flags
//! * where everything will be: [`Place`] and [`Plan`], pure
//! * making it so: [`Sandbox::up`], and for tests [`TestSandbox`]
//! * breaking it on purpose: [`Sandbox::cut`], [`Sandbox::delay`], [`Cluster::kill`], [`Cluster::pause`], …
//! * images without a registry: [`image`]

mod binaries;
mod bring_up;
mod cgroups;
mod client;
mod cluster;
mod component;
mod control_plane;
mod down;
mod error;
mod faults;
mod host;
pub mod image;
mod network;
mod node;
mod parts;
mod pki;
mod plan;
mod prepare;
mod process;
mod relay;
mod sandbox;
mod spec;
mod state;
mod status;
pub mod testing;

pub use binaries::{Binaries, KUBERNETES_VERSION, Sources};
pub use bring_up::Progress;
pub use cluster::Cluster;
pub use component::{Component, Part};
pub use down::{Removed, abandoned, down, list};
pub use error::SandboxError;
pub use faults::RelayHost;
pub use parts::PartState;
pub use plan::{ClusterPlan, MachinePlan, Place, Plan};
pub use relay::RelayPlan;
pub use sandbox::{Options, Sandbox, Up};
pub use spec::{ClusterSpec, DEFAULT_CLUSTERS, EXAMPLE, Flavour, HOST, Spec, SpecError};
pub use state::{Delay, Faults, Owner, Phase, State};
pub use status::{ClusterStatus, ComponentStatus, Status};
pub use testing::{TestCluster, TestSandbox, require_root};
