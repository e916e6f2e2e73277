//! Finalizers: who must clean up before an object may go.

/// On a [`ForeignCluster`](crate::ForeignCluster), until its tenant namespace and our identity there are gone. It goes after
/// those of the other parts of the peering.
pub const AUTHENTICATION: &str = "authentication.liqo.io/identity";

/// On a [`ForeignCluster`](crate::ForeignCluster), until what was agreed with it is over and both sides know.
pub const CONTRACTS: &str = "peering.liqo.io/contracts";

/// On the original of a replicated object, until its copy at the peer is gone.
pub const REPLICATION: &str = "crdReplicator.liqo.io";

/// On the consumer's [`ResourceOffer`](crate::ResourceOffer), until its virtual node is gone.
pub const OFFER_NODE: &str = "liqo.io/node";

/// On the consumer's [`ResourceOffer`](crate::ResourceOffer), until nothing serves its virtual node any more.
pub const OFFER_VIRTUAL_KUBELET: &str = "liqo.io/virtualkubelet";

/// On a virtual node, until its pods are gone.
pub const VIRTUAL_NODE: &str = "virtualnode-controller.liqo.io/finalizer";

/// On a [`NamespaceOffloading`](crate::NamespaceOffloading), until the namespace is unmapped everywhere.
pub const NAMESPACE_OFFLOADING: &str = "namespaceoffloading-controller.liqo.io/finalizer";

/// On the provider's [`NamespaceMap`](crate::NamespaceMap), until the namespaces it made are gone.
pub const NAMESPACE_MAP: &str = "namespacemap-controller.liqo.io/finalizer";

/// On a [`NetworkConfig`](crate::NetworkConfig), until the tunnel made from it is gone.
pub const NETWORK_CONFIG: &str = "tunnelendpointcreator.net.liqo.io";

/// On a [`TunnelEndpoint`](crate::TunnelEndpoint), until the gateway closed the tunnel.
pub const TUNNEL_GATEWAY: &str = "liqo-gateway.net.liqo.io";

/// On a [`TunnelEndpoint`](crate::TunnelEndpoint), until the node whose routing pod has this address removed its routes.
pub fn tunnel_route(pod_ip: std::net::IpAddr) -> String {
    format!("liqo-route.{}.net.liqo.io", pod_ip.to_string().replace(':', "-"))
}
