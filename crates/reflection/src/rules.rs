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
    Rule::cluster(&["events.k8s.io"], &["events"], &["create"], "say why a pod does not run"),
];
