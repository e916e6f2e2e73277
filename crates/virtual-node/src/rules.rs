//! What this room must be allowed to do.

use liqo_kit::rbac::Rule;

use crate::doors::{CLIENT_CA, SIGNER};

/// What this room must be allowed to do.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        &[""],
        &["nodes"],
        &["list", "watch", "create", "patch", "delete"],
        "the nodes that stand for providers",
    ),
    Rule::cluster(&[""], &["nodes/status"], &["patch"], "tell how much there is, and whether it can be used"),
    Rule::node_leases(
        &["coordination.k8s.io"],
        &["leases"],
        &["create", "patch"],
        "tell Kubernetes that these nodes live",
    ),
    Rule::cluster(
        &[""],
        &["pods"],
        &["get", "list", "delete"],
        "find the pod whose logs are asked for; empty the node of a provider whose contract ends",
    ),
    Rule::cluster(&[""], &["pods/eviction"], &["create"], "ask pods to leave, as their budgets allow"),
    Rule::cluster(
        &["virtualkubelet.liqo.io"],
        &["namespacemaps"],
        &["list", "watch"],
        "know what namespaces are called at providers",
    ),
    Rule::cluster(
        &[""],
        &["configmaps"],
        &["get"],
        "know whom the API server trusts, to trust the same; this one is in the namespace kube-system",
    )
    .named(&[CLIENT_CA]),
    Rule::cluster(&["authentication.k8s.io"], &["tokenreviews"], &["create"], "know who asks for logs"),
    Rule::cluster(
        &["authorization.k8s.io"],
        &["subjectaccessreviews"],
        &["create"],
        "know whether they may have them",
    ),
    Rule::cluster(
        &["certificates.k8s.io"],
        &["certificatesigningrequests"],
        &["get", "create"],
        "the certificate that the API server sees when it asks for logs",
    ),
    Rule::cluster(
        &["certificates.k8s.io"],
        &["certificatesigningrequests/approval"],
        &["patch"],
        "approve it",
    ),
    Rule::cluster(
        &["certificates.k8s.io"],
        &["signers"],
        &["approve"],
        "approve it, for what kubelets serve and for nothing else",
    )
    .named(&[SIGNER]),
];
