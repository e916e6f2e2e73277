//! Annotation keys.

/// On a [`ForeignCluster`](crate::ForeignCluster) found on the network: when it was last heard of, in Unix seconds.
pub const LAST_UPDATE: &str = "LastUpdate";

/// On a [`ForeignCluster`](crate::ForeignCluster) found on the network that stays though it is advertised no longer,
/// because a peering is active: when it was last heard of, as RFC 3339.
pub const UNADVERTISED_SINCE: &str = "discovery.liqo.io/unadvertised-since";

/// On the secret with an identity: when its certificate expires.
pub const CERTIFICATE_EXPIRES: &str = "discovery.liqo.io/certificate-expire-time";

/// On a tenant namespace: the peer's key, by which what it signed is recognised; SPKI in base64.
pub const PEER_PUBLIC_KEY: &str = "authentication.liqo.io/public-key";

/// On a tenant namespace: by which token the peer came in: the token's ID, `own` for the cluster's own token, or `open` if it
/// came without one while none was asked for.
pub const ADMITTED_BY: &str = "authentication.liqo.io/admitted-by";

/// On a tenant namespace: since when the peer is put out, as RFC 3339. While it is there, the peer is lent nothing, and has no
/// rights anywhere in this cluster.
pub const PUT_OUT: &str = "authentication.liqo.io/put-out";

/// On a [`ForeignCluster`](crate::ForeignCluster), with any value: get a new key and certificate from the peer now. It is
/// removed when that is done.
pub const ROTATE: &str = "authentication.liqo.io/rotate";

/// On a [`ForeignCluster`](crate::ForeignCluster) that a controller deletes because the peer left by itself, with the value
/// `true`: the peer may come back with the token that it has.
pub const WITHDRAWN: &str = "discovery.liqo.io/withdrawn";

/// On a [`ForeignCluster`](crate::ForeignCluster) that is being deleted, with the value `true`: do not wait for anyone.
pub const FORCE: &str = "liqo.io/force";

/// On a [`ResourceRequest`](crate::ResourceRequest), with the value `true`: the consumer goes for good, and the provider
/// need not remember it.
pub const LEAVING: &str = "discovery.liqo.io/leaving";

/// On a [`ForeignCluster`](crate::ForeignCluster), with the value `true`: somebody said yes to lending to it, where a
/// [`SharingPolicy`](crate::SharingPolicy) requires that.
pub const APPROVED: &str = "sharing.liqo.io/approved";

/// On the consumer's [`ResourceOffer`](crate::ResourceOffer): what a person decided, `accept` or `refuse` and the digest
/// of the offer that it was decided about.
pub const DECISION: &str = "sharing.liqo.io/decision";

/// On a [`NamespaceOffloading`](crate::NamespaceOffloading) made because of a label on the namespace.
pub const CONTROLLED_BY: &str = "liqo.io/resource-controlled-by";

/// On a [`NamespaceOffloading`](crate::NamespaceOffloading) or its namespace: for how many seconds pods wait for a provider
/// that does not answer before they are started elsewhere, or [`FAILOVER_NEVER`].
pub const FAILOVER: &str = "liqo.io/failover";

/// Value of [`FAILOVER`]: pods wait for their provider for ever.
pub const FAILOVER_NEVER: &str = "never";

/// On a [`NamespaceOffloading`](crate::NamespaceOffloading) or its namespace, with the value `true` or a number of seconds:
/// when a provider answers again, and did so for that long, pods that were started elsewhere while it was away go back.
pub const FAIL_BACK: &str = "liqo.io/fail-back";

/// On a namespace made for a peer: `namespace/name` of the [`NamespaceMap`](crate::NamespaceMap) that asked for it.
pub const MANAGED_BY_NAMESPACE_MAP: &str = "liqo.io/managed-by-namespace-map";

/// On a namespace made for a peer: the custom kinds that the peer may write there, as `resource.group` with spaces between;
/// without it, all that the cluster hosts.
pub const CUSTOM_KINDS: &str = "liqo.io/custom-kinds";

/// On a namespace made for a peer: its name at the peer.
pub const ORIGINAL_NAME: &str = "liqo.io/original-name";

/// On a service: keep its node ports when it is reflected.
pub const FORCE_REMOTE_NODE_PORT: &str = "liqo.io/force-remote-node-port";

/// On a [`ShadowPod`](crate::ShadowPod): the UID of the pod at the consumer that it was made for.
pub const POD_UID: &str = "virtualkubelet.liqo.io/pod-uid";

/// On a [`ShadowPod`](crate::ShadowPod): a digest of what its consumer wants, by which it sees that nothing changed.
pub const CONTENT: &str = "virtualkubelet.liqo.io/content";

/// On a pod made for a [`ShadowPod`](crate::ShadowPod): a digest of the labels and annotations that it has from there, and
/// their keys, so that those that go there go here, and those of others stay.
pub const PASSED_METADATA: &str = "virtualkubelet.liqo.io/passed-metadata";

/// On a pod made for a [`ShadowPod`](crate::ShadowPod): a digest of what it has from there and may change while it runs
/// (images, deadline, tolerations).
pub const PASSED_SPEC: &str = "virtualkubelet.liqo.io/passed-spec";

/// On a pod, with the value `true`: it must never run twice, see [`fence`](crate::fence). Pods of StatefulSets and those that
/// use claims need not say so.
pub const FENCED: &str = "liqo.io/fenced";

/// On an object of an offloaded namespace, with the value `true`: it stays at home.
pub const SKIP_REFLECTION: &str = "liqo.io/skip-reflection";

/// On an object of an offloaded namespace, with the value `true`: it goes to providers, where only those go that say so.
pub const ALLOW_REFLECTION: &str = "liqo.io/allow-reflection";

/// On a pod, with the value `true`: what is said about it at a provider is not told at home.
pub const SKIP_EVENTS: &str = "liqo.io/skip-events";

/// On the claims behind virtual volumes: the uid of the claim that the user made.
pub const VIRTUAL_CLAIM_UID: &str = "storage.liqo.io/virtual-pvc-uid";

/// On a virtual node, with any value: nothing new is placed there, and what runs there is moved elsewhere.
pub const DRAIN: &str = "virtual-node.liqo.io/drain";

/// On a virtual node that is being emptied: since when, as RFC 3339.
pub const DRAINING_SINCE: &str = "virtual-node.liqo.io/draining-since";

/// On a virtual node whose provider answers again: from when until when it did not, as RFC 3339, with a slash between.
pub const LAST_OUTAGE: &str = "virtual-node.liqo.io/last-outage";

/// On a virtual node: the keys of the labels that it has from the provider's offer or from the administrator's flags,
/// separated by commas. Other labels are not Liqo's to change.
pub const OFFERED_LABELS: &str = "virtual-node.liqo.io/offered-labels";

/// On the gateway's service: the address of the node with the active gateway.
pub const GATEWAY_NODE_IP: &str = "net.liqo.io/gatewayNodeIP";
