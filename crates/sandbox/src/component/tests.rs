use super::*;
use crate::plan::{Place, Plan};
use crate::spec::{ClusterSpec, Spec};

fn cluster(spec: ClusterSpec) -> ClusterPlan {
    let place = Place::new("/var/lib/liqo-sandbox", "default").unwrap();
    Plan::new(&place, &Spec::new([spec]), "100.64.0.0/16".parse().unwrap()).clusters.remove(0)
}

fn selected(spec: ClusterSpec, text: Option<&str>) -> Vec<String> {
    Part::select(&cluster(spec), text).unwrap().iter().map(ToString::to_string).collect()
}

#[test]
fn a_cluster_has_the_parts_of_its_flavour() {
    assert_eq!(selected(ClusterSpec::api_only("a"), None), ["etcd", "apiserver"]);
    assert_eq!(selected(ClusterSpec::hollow("a", 3), None).last().unwrap(), "kwok");
    assert_eq!(
        selected(ClusterSpec::real("a", 1), None),
        [
            "etcd",
            "apiserver",
            "controller-manager",
            "scheduler",
            "node-1",
            "node-1/containerd",
            "node-1/kubelet",
            "node-1/kube-proxy"
        ]
    );
}

#[test]
fn a_name_without_a_node_means_all_nodes() {
    assert_eq!(selected(ClusterSpec::real("a", 2), Some("kubelet")), ["node-1/kubelet", "node-2/kubelet"]);
    assert_eq!(selected(ClusterSpec::real("a", 2), Some("node-2")), ["node-2"]);
    assert_eq!(selected(ClusterSpec::real("a", 2), Some("kube-apiserver")), ["apiserver"]);
    assert_eq!(selected(ClusterSpec::real("a", 1), Some("kube-proxy")), ["node-1/kube-proxy"]);
}

#[test]
fn an_unknown_component_is_refused_with_the_known_ones() {
    let error =
        Part::select(&cluster(ClusterSpec::api_only("a")), Some("scheduler")).unwrap_err().to_string();
    assert!(error.contains("scheduler") && error.contains("etcd, apiserver"), "{error}");
}
