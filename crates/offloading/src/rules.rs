//! What this room must be allowed to do.

use liqo_kit::rbac::Rule;

use crate::webhook::{CONFIGURATION, SERVICE};

/// What this room must be allowed to do.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        &["offloading.liqo.io"],
        &["namespaceoffloadings"],
        &["list", "watch", "create", "patch", "delete"],
        "follow what owners of namespaces want, and the label that says it shorter",
    ),
    Rule::cluster(
        &["offloading.liqo.io"],
        &["namespaceoffloadings/status"],
        &["patch"],
        "tell which clusters a namespace extends to, and why not to others",
    ),
    Rule::cluster(
        &["virtualkubelet.liqo.io"],
        &["namespacemaps"],
        &["list", "watch", "create", "patch", "delete"],
        "note which namespaces are wanted at which provider",
    ),
    Rule::cluster(
        &["virtualkubelet.liqo.io"],
        &["namespacemaps/status"],
        &["patch"],
        "show here what providers say about them",
    ),
    Rule::cluster(
        &[""],
        &["namespaces"],
        &["list", "watch", "patch"],
        "mark offloaded namespaces, so that admission knows them",
    ),
    Rule::cluster(&[""], &["nodes"], &["list", "watch"], "know the nodes that stand for clusters"),
    Rule::cluster(
        &[""],
        &["pods"],
        &["list", "delete"],
        "pods that must leave a cluster because their namespace does",
    ),
    Rule::cluster(
        &[""],
        &["pods/eviction"],
        &["create"],
        "ask them to leave, as their disruption budgets allow",
    ),
    Rule::cluster(
        &["admissionregistration.k8s.io"],
        &["mutatingwebhookconfigurations"],
        &["list", "watch", "patch"],
        "tell the API server whose certificate the webhook shows",
    )
    .named(&[CONFIGURATION]),
    Rule::namespace(&[""], &["secrets"], &["list", "watch", "patch"], "the webhook's certificate")
        .named(&[SERVICE]),
    Rule::namespace(&[""], &["secrets"], &["create"], "the webhook's certificate"),
    Rule::cluster(&["events.k8s.io"], &["events"], &["create"], "tell about offloaded namespaces"),
];
