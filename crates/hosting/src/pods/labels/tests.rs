//! What is kept of labels and annotations.

use super::*;

#[test]
fn labels_of_ours_are_ours_to_set() {
    let theirs = [
        ("app", "web"),
        ("example.com/tier", "front"),
        ("liqo.io/remote-cluster-id", "another"),
        ("liqo.io/managed-by", "me"),
        ("virtualkubelet.liqo.io/origin", "another"),
        ("app.kubernetes.io/part-of", "liqo-rs"),
    ];
    let labels = pod_labels(theirs.into_iter(), "consumer", "provider");
    let found: Vec<_> = labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let expected = [
        ("app", "web"),
        ("example.com/tier", "front"),
        ("liqo.io/managed-by", "shadowpod"),
        ("virtualkubelet.liqo.io/destination", "provider"),
        ("virtualkubelet.liqo.io/origin", "consumer"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn annotations_that_may_give_rights_are_dropped() {
    let dropped = [
        "k8s.v1.cni.cncf.io/networks",
        "iam.amazonaws.com/role",
        "io.kubernetes.cri-o.Devices",
        "io.katacontainers.config.hypervisor.path",
        "container.apparmor.security.beta.kubernetes.io/web",
        "cni.projectcalico.org/ipAddrs",
        "example.com/unknown",
    ];
    for key in dropped {
        assert!(pod_annotations([(key, "x")].into_iter(), &Patterns::nothing()).is_empty(), "{key}");
        assert_eq!(pod_annotations([(key, "x")].into_iter(), &Patterns::everything()).len(), 1, "{key}");
    }
    for key in ["checksum", "prometheus.io/scrape", "virtualkubelet.liqo.io/pod-uid", HARMLESS_KEYS[0]] {
        assert_eq!(pod_annotations([(key, "x")].into_iter(), &Patterns::nothing()).len(), 1, "{key}");
    }
}
