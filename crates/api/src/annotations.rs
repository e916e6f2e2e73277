//! Annotation keys.

/// On a [`ForeignCluster`](crate::ForeignCluster) found on the network: when it was last heard of, in Unix seconds.
pub const LAST_UPDATE: &str = "LastUpdate";

/// On a [`ForeignCluster`](crate::ForeignCluster) found on the network that stays though it is advertised no longer,
/// because a peering is active: when it was last heard of, as RFC 3339.
pub const UNADVERTISED_SINCE: &str = "discovery.liqo.io/unadvertised-since";

/// On the secret with an identity: when its certificate expires.
pub const CERTIFICATE_EXPIRES: &str = "discovery.liqo.io/certificate-expire-time";

/// On a [`NamespaceOffloading`](crate::NamespaceOffloading) made because of a label on the namespace.
pub const CONTROLLED_BY: &str = "liqo.io/resource-controlled-by";

/// On a namespace made for a peer: `namespace/name` of the [`NamespaceMap`](crate::NamespaceMap) that asked for it.
pub const MANAGED_BY_NAMESPACE_MAP: &str = "liqo.io/managed-by-namespace-map";

/// On a namespace made for a peer: its name at the peer.
pub const ORIGINAL_NAME: &str = "liqo.io/original-name";

/// On a service: keep its node ports when it is reflected.
pub const FORCE_REMOTE_NODE_PORT: &str = "liqo.io/force-remote-node-port";

/// On the gateway's service: the address of the node with the active gateway.
pub const GATEWAY_NODE_IP: &str = "net.liqo.io/gatewayNodeIP";
