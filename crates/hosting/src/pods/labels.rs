//! Labels and annotations of the pods that run here.

use std::collections::BTreeMap;

use liqo_api::annotations::{CONTENT, PASSED_METADATA, PASSED_SPEC};
use liqo_api::labels;
use liqo_core::Patterns;
use liqo_core::canonical::Digest;
use serde::Serialize;

#[cfg(test)]
mod tests;

type Texts = BTreeMap<String, String>;

/// Prefixes of annotations that nobody but the consumer and its tools read.
const HARMLESS: [&str; 3] = ["prometheus.io/", "virtualkubelet.liqo.io/", "liqo.io/"];
/// Single ones of which the same is true.
const HARMLESS_KEYS: [&str; 2] =
    ["kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container"];

/// Annotations of ours that are about another object, or that say what this one has from where.
const OWN_KEYS: [&str; 3] = [CONTENT, PASSED_METADATA, PASSED_SPEC];
/// Digits by which what was passed on is told apart: enough that nobody finds two of them by chance.
const DIGITS: usize = 16;

/// A digest of what can be written as JSON.
pub(super) fn digest(it: &impl Serialize) -> Box<str> {
    // Texts, lists and maps of texts can always be written down.
    let bytes = serde_json::to_vec(it).unwrap_or_default();
    let digest = Digest::of("liqo.io/passed", &bytes).to_string();
    digest.rsplit(':').next().and_then(|hex| hex.get(..DIGITS)).unwrap_or_default().into()
}

/// What a pod has of labels and annotations from its ShadowPod.
pub(crate) struct Passed {
    pub(crate) labels: Texts,
    pub(crate) annotations: Texts,
}

impl Passed {
    /// How the pod says what it has: a digest, then the keys of labels and of annotations.
    pub(crate) fn record(&self) -> String {
        let keys = |texts: &Texts| texts.keys().map(String::as_str).collect::<Vec<_>>().join(",");
        let digest = digest(&(&self.labels, &self.annotations));
        format!("{digest} {};{}", keys(&self.labels), keys(&self.annotations))
    }

    /// The labels and annotations that a pod with this record has and should not have any more.
    pub(crate) fn outdated<'a>(&self, record: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
        let keys = record.split_once(' ').map_or("", |(_, keys)| keys);
        let (labels, annotations) = keys.split_once(';').unwrap_or_default();
        let gone = |keys: &'a str, texts: &Texts| {
            keys.split(',').filter(|key| !key.is_empty() && !texts.contains_key(*key)).collect()
        };
        (gone(labels, &self.labels), gone(annotations, &self.annotations))
    }
}

/// The labels of a pod. Those of ours are ours to set: by them, pods are found and counted.
pub(crate) fn pod_labels<'a>(
    labels: impl Iterator<Item = (&'a str, &'a str)>,
    peer: &'a str,
    us: &'a str,
) -> Texts {
    let is_ours = |key: &str| {
        key.split_once('/').is_some_and(|(prefix, _)| prefix == "liqo.io" || prefix.ends_with(".liqo.io"))
    };
    // That it must never run twice is the consumer's to say, and concerns nobody else.
    // So is for which pool it is, which was checked when the pod was admitted.
    let theirs_to_say = |(key, value): &(&str, &str)| {
        (*key == labels::FENCED && *value == labels::TRUE) || *key == labels::POOL
    };
    let theirs =
        labels.filter(|label| (!is_ours(label.0) && label.0 != labels::PART_OF) || theirs_to_say(label));
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
) -> Texts {
    let harmless = |key: &str| {
        if OWN_KEYS.contains(&key) {
            return false;
        }
        // Without a prefix, it is the user's own; with dots, it is some runtime's.
        !key.contains(['/', '.'])
            || HARMLESS.iter().any(|prefix| key.starts_with(prefix))
            || HARMLESS_KEYS.contains(&key)
            || kept.matches(key)
    };
    let passed = annotations.filter(|(key, _)| harmless(key));
    passed.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}
