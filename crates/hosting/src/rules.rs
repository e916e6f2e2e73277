//! What this room must be allowed to do, and what it allows consumers.

use liqo_api::fence;
use liqo_api::names::REMOTE_TENANT_ROLE;
use liqo_kit::rbac::Rule;

/// What this room must be allowed to do.
pub const RULES: &[Rule] = &[
    Rule::cluster(
        &["virtualkubelet.liqo.io"],
        &["namespacemaps", "shadowpods"],
        &["list", "watch"],
        "see which namespaces and pods consumers want here",
    ),
    Rule::cluster(
        &["virtualkubelet.liqo.io"],
        &["namespacemaps/status", "shadowpods/status"],
        &["patch"],
        "tell consumers what they got, and why not",
    ),
    Rule::cluster(
        &["sharing.liqo.io"],
        &["contracts", "resourceoffers", "sharingpolicies"],
        &["list", "watch"],
        "know what consumers may use, and by which rules",
    ),
    Rule::cluster(
        &[""],
        &["namespaces"],
        &["list", "watch", "create", "patch", "delete"],
        "the namespaces of consumers",
    ),
    Rule::cluster(
        &[""],
        &["resourcequotas"],
        &["list", "watch", "create", "patch", "delete"],
        "hold consumers to their contracts",
    ),
    Rule::cluster(
        &["rbac.authorization.k8s.io"],
        &["rolebindings"],
        &["list", "watch", "create", "patch", "delete"],
        "let consumers into their namespaces",
    ),
    Rule::cluster(
        &["rbac.authorization.k8s.io"],
        &["clusterroles"],
        &["bind"],
        "give consumers this role and no other",
    )
    .named(&[REMOTE_TENANT_ROLE]),
    Rule::cluster(
        &[""],
        &["pods"],
        &["list", "watch", "create", "patch", "delete"],
        "run the pods of consumers",
    ),
    Rule::cluster(
        &[""],
        &["pods/ephemeralcontainers", "pods/resize"],
        &["patch"],
        "change pods of consumers while they run",
    ),
    Rule::cluster(
        &["scheduling.k8s.io"],
        &["priorityclasses"],
        &["list", "watch"],
        "give no pod of a consumer more priority than its policy grants",
    ),
    Rule::cluster(
        &["coordination.k8s.io"],
        &["leases"],
        &["list", "watch"],
        "stop pods that must never run twice when their consumer is not heard of",
    )
    .named(&[fence::LEASE]),
    Rule::cluster(&["events.k8s.io"], &["events"], &["create"], "tell why a pod is not run"),
];

/// What a consumer may do in the namespaces that are mapped for it: the rules of the ClusterRole in the chart.
pub const TENANT_RULES: &[Rule] = &[
    Rule::namespace(
        &[""],
        &["configmaps", "secrets", "services", "persistentvolumeclaims"],
        FULL,
        "what pods need",
    ),
    Rule::namespace(&["discovery.k8s.io"], &["endpointslices"], FULL, "where services lead"),
    Rule::namespace(&["networking.k8s.io"], &["ingresses"], FULL, "how services are reached"),
    Rule::namespace(&["virtualkubelet.liqo.io"], &["shadowpods"], FULL, "the pods to run"),
    Rule::namespace(
        &[""],
        &["pods", "events", "resourcequotas"],
        &["get", "list", "watch"],
        "see how pods are",
    ),
    Rule::namespace(&["events.k8s.io"], &["events"], &["get", "list", "watch"], "see how pods are"),
    Rule::namespace(&["metrics.k8s.io"], &["pods"], &["list"], "see what pods use"),
    Rule::namespace(&[""], &["pods/log"], &["get"], "read logs"),
    Rule::namespace(
        &[""],
        &["pods/exec", "pods/attach", "pods/portforward"],
        &["create", "get"],
        "get into pods",
    ),
];

const FULL: &[&str] = &["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];
