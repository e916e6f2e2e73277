//! Labels and annotations of the pods that run here.

use std::collections::BTreeMap;

use liqo_api::labels;
use liqo_core::Patterns;

#[cfg(test)]
mod tests;

/// Prefixes of annotations that nobody but the consumer and its tools read.
const HARMLESS: [&str; 3] = ["prometheus.io/", "virtualkubelet.liqo.io/", "liqo.io/"];
/// Single ones of which the same is true.
const HARMLESS_KEYS: [&str; 2] =
    ["kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container"];

/// The labels of a pod. Those of ours are ours to set: by them, pods are found and counted.
pub(crate) fn pod_labels<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    peer: &'a str,
    us: &'a str,
) -> BTreeMap<String, String> {
    let is_ours = |key: &str| {
        key.split_once('/').is_some_and(|(prefix, _)| prefix == "liqo.io" || prefix.ends_with(".liqo.io"))
    };
    let theirs = labels.filter(|(key, _)| !is_ours(key) && *key != labels::PART_OF);
    let ours = [
        (labels::MANAGED_BY, labels::MANAGED_BY_SHADOW_POD),
        (labels::REFLECTION_ORIGIN, peer),
        (labels::REFLECTION_DESTINATION, us),
    ];
    theirs.chain(ours).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The annotations of a pod. What node agents and admission read in annotations can give rights (networks of the node,
/// roles in a cloud), so that only those are kept that are known to be harmless or that the policy names.
pub(crate) fn pod_annotations<'a>(
    annotations: impl Iterator<Item = (&'a str, &'a str)>,
    kept: &Patterns,
) -> BTreeMap<String, String> {
    let harmless = |key: &str| {
        // Without a prefix, it is the user's own; with dots, it is some runtime's.
        !key.contains(['/', '.'])
            || HARMLESS.iter().any(|prefix| key.starts_with(prefix))
            || HARMLESS_KEYS.contains(&key)
            || kept.matches(key)
    };
    let passed = annotations.filter(|(key, _)| harmless(key));
    passed.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
