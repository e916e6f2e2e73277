//! The kinds, labels and names of the Liqo API.
//!
//! ```text
//!  consumer                                             provider
//!  ────────                                             ────────
//!  SearchDomain ──finds──▶ ForeignCluster               ForeignCluster (the consumer)
//!                                │                            │
//!                    tenant namespace ◀── same content ──▶ tenant namespace
//!                          ResourceRequest ─────────────▶ ResourceRequest
//!                                                             │ answered by
//!                          ResourceOffer ◀──────────────── ResourceOffer ◀── SharingPolicy
//!                                │ accepted
//!                          Contract ────both sign─────── Contract
//!                                │
//!                          virtual node
//!                                │ selected by
//!  NamespaceOffloading ──▶ NamespaceMap ────────────────▶ NamespaceMap ──▶ namespaces
//!  Pod on the virtual node ─────────────────────────────▶ ShadowPod ──▶ Pod
//!
//!                          NetworkConfig ◀─────────────▶ NetworkConfig
//!                                │                            │
//!                          TunnelEndpoint ═══ tunnel ═══ TunnelEndpoint
//! ```
//!
//! Besides, each cluster has one ClusterConfig, in which it tells about itself: its identity, working mode, version.
//!
//! Each kind is a file here, with its spec, its status and its rules. The rules travel in the schema and are
//! enforced by the API server ([`crds()`] gives the definitions to install); what they need is Kubernetes 1.32 or
//! later. Fields are plain texts, as an object may be older than a rule; [`names`] has the types to parse them into.
//!
//! # Where this differs from Liqo 0.4
//!
//! Manifests written for Liqo apply unchanged unless they meet one of these:
//!
//! - `ForeignCluster.spec.insecureSkipTLSVerify` is `false` unless set. Liqo's `true` left the token to whoever sits
//!   between the clusters.
//! - What an object is about cannot change: the cluster's identity, once it is known; the strategy by which a
//!   namespace is named elsewhere; the remote name of a mapped namespace. Delete the object, or the entry, first.
//! - Selectors that match nothing by mistake are refused: `In` without values, a term without requirements.
//! - Of `ResourceOffer.spec.resourceQuota` only `hard` exists; nothing ever used the rest of a quota.
//! - `ResourceRequest.spec.authUrl` may be left out, as a consumer need not be reachable; so may
//!   `ForeignCluster.spec.foreignAuthUrl` of a peer that called us.
//! - Every kind has a status subresource, and conditions say which generation they are about.
//! - Everything has a largest size.

#![expect(unreachable_pub, reason = "kube's KubeSchema derive repeats every struct inside a function")]
#![expect(clippy::duplicated_attributes, reason = "two printer columns of the same type are no mistake")]

pub mod annotations;
pub mod borrowing;
pub mod cluster_config;
pub mod conditions;
pub mod contract;
mod crds;
pub mod credentials;
pub mod fence;
pub mod finalizers;
pub mod fingerprint;
pub mod foreign_cluster;
mod identity;
pub mod labels;
pub mod names;
pub mod namespace_map;
pub mod namespace_offloading;
pub mod network_config;
pub mod outage;
pub mod resource_offer;
pub mod resource_request;
mod schema;
pub mod search_domain;
pub mod shadow_pod;
pub mod sharing_policy;
pub mod tunnel_endpoint;

pub use borrowing::Borrowing;
pub use cluster_config::{ClusterConfig, ClusterConfigSpec, ClusterConfigStatus, WorkingMode};
pub use contract::{Contract, ContractPhase, ContractSpec, ContractStatus};
pub use crds::crds;
pub use fingerprint::Fingerprint;
pub use foreign_cluster::{DiscoveryType, ForeignCluster, ForeignClusterSpec, ForeignClusterStatus};
pub use identity::ClusterIdentity;
pub use namespace_map::{NamespaceMap, NamespaceMapSpec, NamespaceMapStatus};
pub use namespace_offloading::{NamespaceOffloading, NamespaceOffloadingSpec, NamespaceOffloadingStatus};
pub use network_config::{NetworkConfig, NetworkConfigSpec, NetworkConfigStatus, TunnelBackend};
pub use resource_offer::{ResourceOffer, ResourceOfferSpec, ResourceOfferStatus};
pub use resource_request::{ResourceRequest, ResourceRequestSpec, ResourceRequestStatus};
pub use search_domain::{SearchDomain, SearchDomainSpec, SearchDomainStatus};
pub use shadow_pod::{ShadowPod, ShadowPodSpec, ShadowPodStatus};
pub use sharing_policy::{SharingPolicy, SharingPolicySpec, SharingPolicyStatus};
pub use tunnel_endpoint::{TunnelEndpoint, TunnelEndpointSpec, TunnelEndpointStatus};
