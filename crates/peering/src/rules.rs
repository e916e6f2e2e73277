//! What this room must be allowed to do.

use liqo_kit::rbac::Rule;

/// What this room must be allowed to do.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        &["discovery.liqo.io"],
        &["foreignclusters"],
        &["list", "watch", "patch", "delete"],
        "keep a ForeignCluster until what was agreed on is over; forget peers that leave for good",
    ),
    Rule::cluster(
        &["discovery.liqo.io"],
        &["foreignclusters/status"],
        &["patch"],
        "tell how far borrowing and lending are",
    ),
    Rule::cluster(
        &["discovery.liqo.io"],
        &["searchdomains"],
        &["list", "watch"],
        "know whose clusters are joined",
    ),
    Rule::cluster(
        &["config.liqo.io"],
        &["clusterconfigs"],
        &["list", "watch"],
        "know what is borrowed, and which offers are accepted",
    )
    .named(&[liqo_api::cluster_config::CLUSTER_CONFIG]),
    Rule::cluster(
        &["discovery.liqo.io"],
        &["resourcerequests"],
        &["list", "watch"],
        "see who asks for resources",
    ),
    Rule::cluster(
        &["discovery.liqo.io"],
        &["resourcerequests/status"],
        &["patch"],
        "tell those who ask whether they are offered something, and why not",
    ),
    Rule::cluster(
        &["sharing.liqo.io"],
        &["resourceoffers", "contracts"],
        &["list", "watch", "create", "patch", "delete"],
        "offer, propose and keep contracts, and copies of those at peers",
    ),
    Rule::cluster(
        &["sharing.liqo.io"],
        &["resourceoffers/status", "contracts/status"],
        &["patch"],
        "accept, refuse and sign",
    ),
    Rule::cluster(
        &["sharing.liqo.io"],
        &["sharingpolicies"],
        &["list", "watch"],
        "know what is shared with whom",
    ),
    Rule::cluster(
        &["sharing.liqo.io"],
        &["sharingpolicies/status"],
        &["patch"],
        "tell whether a policy makes sense, and whom it is applied to",
    ),
    Rule::cluster(&[""], &["nodes", "pods", "services"], &["list", "watch"], "know what there is to share"),
    Rule::cluster(&[""], &["namespaces"], &["list", "watch"], "know the namespaces of peers"),
    Rule::cluster(&["storage.k8s.io"], &["storageclasses"], &["list", "watch"], "offer storage classes"),
    Rule::cluster(
        &[""],
        &["secrets"],
        &["list", "watch"],
        "our identities at peers, in the tenant namespaces",
    ),
    Rule::namespace(&[""], &["configmaps"], &["list", "watch", "create", "patch"], "the log of contracts"),
    Rule::cluster(
        &["events.k8s.io"],
        &["events"],
        &["create"],
        "tell about peers; events about objects without namespace are in the namespace default",
    ),
];
