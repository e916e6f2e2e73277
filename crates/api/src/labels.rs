//! Label keys, and the values that have a fixed meaning.

/// On objects that belong to a peer: the peer's cluster ID.
pub const CLUSTER_ID: &str = "discovery.liqo.io/cluster-id";

/// On a [`ForeignCluster`](crate::ForeignCluster): how it was found, a [`DiscoveryType`](crate::DiscoveryType).
pub const DISCOVERY_TYPE: &str = "discovery.liqo.io/discovery-type";

/// On a [`ForeignCluster`](crate::ForeignCluster) found by DNS: the name of the `SearchDomain`.
pub const SEARCH_DOMAIN: &str = "discovery.liqo.io/searchdomain";

/// On a tenant namespace, with the value `true`.
pub const TENANT_NAMESPACE: &str = "discovery.liqo.io/tenant-namespace";

/// On the certificate signing request of a peer, with the value `true`.
pub const REMOTE_TENANT_CSR: &str = "discovery.liqo.io/remote-tenant-csr";

/// On the secret with the identity that a peer gave us, with the value `true`.
pub const LOCAL_IDENTITY: &str = "discovery.liqo.io/local-identity";

/// On the secret with the token that a peer gave us.
pub const AUTH_TOKEN: &str = "discovery.liqo.io/auth-token";

/// On the secret with the hash of a token that a peer may come with, with the value `true`.
pub const PEER_TOKEN: &str = "authentication.liqo.io/peer-token";

/// On the ConfigMap that says that a peer was put out, with the value `true`.
pub const DENIED_PEER: &str = "authentication.liqo.io/denied-peer";

/// On the ClusterRoles that a peer is given: which part of the peering they belong to.
pub const REMOTE_PEERING_PERMISSIONS: &str = "auth.liqo.io/remote-peering-permissions";

/// On an object of a tenant namespace: `true` if it is the original, to be copied to the peer; `false` on the copy.
pub const REPLICATION: &str = "liqo.io/replication";

/// On the original: the cluster ID of the peer that gets the copy.
pub const REPLICATION_DESTINATION: &str = "liqo.io/remoteID";

/// On the copy: the cluster ID of the peer that has the original.
pub const REPLICATION_ORIGIN: &str = "liqo.io/originID";

/// On the copy, with the value `true`.
pub const REPLICATED: &str = "liqo.io/replicated";

/// Which component of this cluster made the object.
pub const OWNERSHIP: &str = "liqo.io/ownership";

/// Value of [`OWNERSHIP`] on the `NetworkConfig`s that this cluster made.
pub const OWNERSHIP_NETWORK_CONFIG: &str = "netcfgCreator";

/// On a node: what kind of node it is.
pub const NODE_TYPE: &str = "liqo.io/type";

/// Value of [`NODE_TYPE`] on the nodes that stand for peers.
pub const NODE_TYPE_VIRTUAL: &str = "virtual-node";

/// On virtual nodes, namespace maps and namespaces: the cluster ID of the peer they stand or exist for.
pub const REMOTE_CLUSTER_ID: &str = "liqo.io/remote-cluster-id";

/// On virtual nodes, ShadowPods and pods made from them: the pool of the provider's nodes.
pub const POOL: &str = "liqo.io/pool";

/// On a virtual node: whether it offers storage.
pub const STORAGE_AVAILABLE: &str = "storage.liqo.io/available";

/// On a namespace, with the value `true`: offload it with the default settings.
pub const OFFLOADING_ENABLED: &str = "liqo.io/enabled";

/// On an offloaded namespace, with the value `true`: its pods may be placed on virtual nodes.
pub const SCHEDULING_ENABLED: &str = "liqo.io/scheduling-enabled";

/// On an offloaded namespace: where its pods may run, a [`PodOffloadingStrategy`](crate::namespace_offloading::PodOffloadingStrategy); for
/// admission policies, which see labels only.
pub const OFFLOADING_STRATEGY: &str = "offloading.liqo.io/strategy";

/// On a local pod that runs elsewhere, with the value `true`.
pub const SHADOW_POD: &str = "liqo.io/shadowPod";

/// On objects made for another one of ours: the kind of maker.
pub const MANAGED_BY: &str = "liqo.io/managed-by";

/// Value of [`MANAGED_BY`] on the pods made for a [`ShadowPod`](crate::ShadowPod).
pub const MANAGED_BY_SHADOW_POD: &str = "shadowpod";

/// Value of [`MANAGED_BY`] on volumes of the virtual storage class, and on the claims behind them.
pub const MANAGED_BY_STORAGE: &str = "storage";

/// On a [`ShadowPod`](crate::ShadowPod) and its pod, with the value `true`: it must never run twice, see
/// [`fence`](crate::fence).
pub const FENCED: &str = "liqo.io/fenced";

/// On a reflected object: the cluster ID it comes from. Objects without it are not ours to touch.
pub const REFLECTION_ORIGIN: &str = "virtualkubelet.liqo.io/origin";

/// On a reflected object: the cluster ID it was sent to.
pub const REFLECTION_DESTINATION: &str = "virtualkubelet.liqo.io/destination";

/// Value of the well-known `endpointslice.kubernetes.io/managed-by` on reflected endpoint slices.
pub const REFLECTED_ENDPOINT_SLICE: &str = "endpointslice.reflection.liqo.io";

/// On the claims behind virtual volumes: the namespace of the claim that the user made.
pub const VIRTUAL_CLAIM_NAMESPACE: &str = "storage.liqo.io/virtual-pvc-namespace";

/// On the claims behind virtual volumes: the name of the claim that the user made.
pub const VIRTUAL_CLAIM_NAME: &str = "storage.liqo.io/virtual-pvc-name";

/// On a gateway's pod: `active` or `standby`.
pub const GATEWAY: &str = "net.liqo.io/gateway";

/// On the secret with the gateway's key pair.
pub const GATEWAY_KEY: &str = "net.liqo.io/key";

/// On a [`TunnelEndpoint`](crate::TunnelEndpoint): the peer's cluster ID.
pub const TUNNEL_CLUSTER_ID: &str = "clusterID";

/// Cluster label: who runs the cluster.
pub const PROVIDER: &str = "liqo.io/provider";

/// Cluster label: where the cluster is.
pub const REGION: &str = "topology.kubernetes.io/region";

/// On everything that belongs to an installation, with the value [`PART_OF_LIQO`]: one of the labels that Kubernetes
/// recommends.
pub const PART_OF: &str = "app.kubernetes.io/part-of";

/// Value of [`PART_OF`].
pub const PART_OF_LIQO: &str = "liqo-rs";

/// Value of the labels that only say "yes".
pub const TRUE: &str = "true";

/// Value of the labels that only say "no".
pub const FALSE: &str = "false";
