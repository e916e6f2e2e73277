use super::*;

fn reason(yaml: &str) -> String {
    Spec::from_yaml(yaml, "sandbox.yaml").unwrap_err().to_string()
}

#[test]
fn the_example_in_the_error_message_is_itself_valid() {
    let spec = Spec::from_yaml(EXAMPLE, "example").unwrap();
    assert_eq!(spec, Spec::new([ClusterSpec::real("consumer", 1)]));
}

#[test]
fn networks_are_equal_in_all_clusters_by_default_and_settable_per_cluster() {
    let spec = Spec::from_yaml("clusters: [{name: a}, {name: b, podCIDR: 10.50.0.0/16}]", "x").unwrap();
    assert_eq!(spec.clusters[0].service_cidr, spec.clusters[1].service_cidr);
    assert_eq!(spec.clusters[1].pod_cidr.to_string(), "10.50.0.0/16");
}

#[test]
fn requests_are_written_down_only_where_asked_for() {
    let spec =
        Spec::from_yaml("clusters: [{name: a, nodes: 0, audit: true}, {name: b, nodes: 0}]", "x").unwrap();
    assert_eq!(spec, Spec::new([ClusterSpec::api_only("a").audited(), ClusterSpec::api_only("b")]));
}

#[test]
fn controllers_may_be_given_a_higher_rate() {
    let spec = Spec::from_yaml("clusters: [{name: a, clientRate: 1000}]", "x").unwrap();
    assert_eq!(spec, Spec::new([ClusterSpec::real("a", 1).with_client_rate(1000)]));
}

#[test]
fn a_broken_file_is_refused_with_the_line_and_what_was_expected() {
    let text = reason("clusters:\n- name: a\n  nodez: 3\n");
    assert!(text.contains("line 3"), "{text}");
    assert!(text.contains("nodez") && text.contains("hollowNodes"), "{text}");

    let text = reason("clusters:\n- name: a\n  nodes: many\n");
    assert!(text.contains("line 3"), "{text}");

    let text = reason("clusters:\n- name: a\n  podCIDR: 10.0.0/16\n");
    assert!(text.contains("line 3"), "{text}");
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    for (yaml, expected) in [
        ("clusters: []", "at least one cluster"),
        ("clusters: [{name: a}, {name: a}]", "two clusters are named a"),
        ("clusters: [{name: host}]", "means this machine"),
        ("clusters: [{name: Upper}]", "lower-case"),
        ("clusters: [{name: -a}]", "letter or digit at both ends"),
        ("clusters: [{name: ../../etc}]", "lower-case"),
        ("clusters: [{name: a, nodes: 51}]", "hollowNodes for scale"),
        ("clusters: [{name: a, clientRate: 0}]", "between 1 and"),
        ("clusters: [{name: a, podCIDR: 10.1.2.3/16}]", "did you mean 10.1.0.0/16"),
        ("clusters: [{name: a, podCIDR: 10.80.0.0/16}]", "overlap"),
        ("clusters: [{name: a, podCIDR: 100.64.0.0/16}]", "nodes get their addresses"),
        ("clusters: [{name: a, serviceCIDR: 10.9.0.0/30}]", "between /8 and /24"),
    ] {
        let text = reason(yaml);
        assert!(text.contains(expected), "{yaml}: {text}");
    }
}

#[test]
fn every_node_gets_a_share_of_the_pod_network() {
    assert_eq!(ClusterSpec::real("a", 2).node_prefix(), 24);
    assert_eq!(ClusterSpec::hollow("a", 256).node_prefix(), 24);
    assert_eq!(ClusterSpec::hollow("a", 1000).node_prefix(), 26);
    assert_eq!(ClusterSpec::hollow("a", 5000).node_prefix(), 29);
    let tight = "10.128.0.0/22".parse().unwrap();
    assert!(ClusterSpec::hollow("a", 300).with_networks(tight, default_service_cidr()).validate().is_err());
    let wide = ClusterSpec::hollow("a", 5000)
        .with_networks("10.128.0.0/10".parse().unwrap(), default_service_cidr());
    wide.validate().unwrap();
    assert_eq!(wide.node_prefix(), 24);
}
