//! What this room must be allowed to do.

use liqo_api::fence;
use liqo_kit::rbac::Rule;

use crate::objects::SIGNER;

/// What this room must be allowed to do.
pub const RULES: &[Rule] = &[
    Rule::namespace(
        &[""],
        &["secrets"],
        &["list", "watch", "create", "patch", "delete", "get"],
        "tokens, and the certificate of the authentication service",
    ),
    Rule::namespace(
        &[""],
        &["configmaps"],
        &["list", "watch", "create", "patch", "delete"],
        "note which peers were put out; read the API server's address and authority",
    ),
    Rule::cluster(
        &["discovery.liqo.io"],
        &["foreignclusters"],
        &["get", "list", "watch", "create", "patch"],
        "note who peers are, and those that come by themselves",
    ),
    Rule::cluster(
        &["discovery.liqo.io"],
        &["foreignclusters/status"],
        &["patch"],
        "tell how far the authentication is",
    ),
    Rule::cluster(
        &["discovery.liqo.io"],
        &["searchdomains"],
        &["list", "watch"],
        "know whose clusters are joined",
    ),
    Rule::cluster(
        &[""],
        &["namespaces"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "the tenant namespaces of peers",
    ),
    Rule::cluster(
        &[""],
        &["secrets"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "our identities at peers, in the tenant namespaces",
    ),
    Rule::cluster(
        &["rbac.authorization.k8s.io"],
        &["roles"],
        &["list", "watch", "create", "patch"],
        "what peers may do in their tenant namespaces",
    ),
    Rule::cluster(
        &["rbac.authorization.k8s.io"],
        &["rolebindings"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "give peers their role, and take it away",
    ),
    Rule::cluster(
        &["rbac.authorization.k8s.io"],
        &["clusterrolebindings"],
        &["list"],
        "refuse a peer whose ID is the name of a user",
    ),
    Rule::cluster(
        &["certificates.k8s.io"],
        &["certificatesigningrequests"],
        &["get", "list", "watch", "create"],
        "have certificates made for peers",
    ),
    Rule::cluster(
        &["certificates.k8s.io"],
        &["certificatesigningrequests/approval"],
        &["patch"],
        "approve them",
    ),
    Rule::cluster(
        &["certificates.k8s.io"],
        &["signers"],
        &["approve"],
        "approve them, for clients of the API server and for nobody else",
    )
    .named(&[SIGNER]),
    Rule::cluster(&[""], &["nodes"], &["list"], "find the API server's address where none is configured"),
    Rule::cluster(
        &["events.k8s.io"],
        &["events"],
        &["create"],
        "tell about peers; events about objects without namespace are in the namespace default",
    ),
    // Nobody can give what it has not got: these are what the peers get (PEER_RULES).
    Rule::cluster(
        &["discovery.liqo.io"],
        &["resourcerequests"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        "give peers the right to ask for resources",
    ),
    Rule::cluster(
        &["sharing.liqo.io"],
        &["resourceoffers", "contracts"],
        &["get", "list", "watch", "create", "patch"],
        "give peers the right to see and make offers and contracts",
    ),
    Rule::cluster(
        &["sharing.liqo.io"],
        &["resourceoffers/status", "contracts/status"],
        &["get", "patch"],
        "give peers the right to accept, refuse and sign",
    ),
    Rule::cluster(
        &["virtualkubelet.liqo.io"],
        &["namespacemaps"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        "give peers the right to ask for namespaces",
    ),
    Rule::cluster(
        &["coordination.k8s.io"],
        &["leases"],
        &["get", "create", "patch"],
        "give peers the right to say that they are there",
    )
    .named(&[fence::LEASE]),
];
