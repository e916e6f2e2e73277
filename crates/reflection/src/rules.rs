//! What this room must be allowed to do at home. What it does at providers is allowed there, by them.

use liqo_kit::rbac::Rule;

/// What this room must be allowed to do.
pub const RULES: &[Rule] = &[
    Rule::cluster(&[""], &["pods"], &["get", "list", "watch"], "know which pods belong to virtual nodes"),
    Rule::cluster(&[""], &["pods"], &["delete"], "let pods go that ended at their provider"),
    Rule::cluster(&[""], &["pods/status"], &["patch"], "tell how pods are that run at providers"),
    Rule::cluster(&[""], &["nodes"], &["list", "watch"], "know which nodes stand for providers"),
    Rule::cluster(
        &["virtualkubelet.liqo.io"],
        &["namespacemaps"],
        &["list", "watch"],
        "know where the namespaces are",
    ),
    Rule::cluster(
        &[""],
        &["configmaps", "secrets", "services", "persistentvolumeclaims"],
        &["list", "watch"],
        "copy what pods need, in offloaded namespaces alone",
    ),
    Rule::cluster(
        &["discovery.k8s.io"],
        &["endpointslices"],
        &["list", "watch"],
        "copy where Services lead, in offloaded namespaces alone",
    ),
    Rule::cluster(
        &["networking.k8s.io"],
        &["ingresses"],
        &["list", "watch"],
        "copy how Services are reached, in offloaded namespaces alone",
    ),
    Rule::cluster(
        &["offloading.liqo.io"],
        &["namespaceoffloadings"],
        &["list", "watch"],
        "know which custom resources are wanted elsewhere",
    ),
    Rule::cluster(
        &["offloading.liqo.io"],
        &["namespaceoffloadings/status"],
        &["patch"],
        "note which custom resources are elsewhere, and why not",
    ),
    Rule::cluster(
        &[""],
        &["serviceaccounts/token"],
        &["create"],
        "pods at providers have the tokens that they would have here",
    ),
    Rule::cluster(
        &[""],
        &["persistentvolumes"],
        &["get", "list", "watch", "create", "delete"],
        "make the volumes of the virtual storage class",
    ),
    Rule::cluster(
        &[""],
        &["persistentvolumeclaims"],
        &["create", "delete", "patch"],
        "ask for the real volumes behind them, and the scheduler for another node",
    ),
    Rule::cluster(
        &[""],
        &["namespaces"],
        &["create"],
        "have a namespace for the claims behind virtual volumes",
    ),
    Rule::cluster(&[""], &["nodes"], &["get"], "know that a volume's node is there"),
    Rule::cluster(
        &["storage.k8s.io"],
        &["storageclasses"],
        &["get"],
        "know what becomes of virtual volumes without claims",
    ),
    Rule::cluster(&["events.k8s.io"], &["events"], &["create"], "say why a pod does not run"),
    Rule::cluster(&[""], &["events"], &["create", "patch"], "tell what is said about pods at providers"),
];
