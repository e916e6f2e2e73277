use std::collections::BTreeSet;

use super::*;

fn plan() -> Plan {
    let place = Place::new("/var/lib/liqo-sandbox", "default").unwrap();
    let spec =
        Spec::new([ClusterSpec::real("a", 3), ClusterSpec::api_only("b"), ClusterSpec::hollow("c", 9)]);
    Plan::new(&place, &spec, "100.70.0.0/16".parse().unwrap())
}

#[test]
fn every_machine_has_its_own_address_port_and_mac() {
    let plan = plan();
    let machines: Vec<_> = plan.clusters.iter().flat_map(|cluster| &cluster.machines).collect();
    assert_eq!(machines.len(), 5);
    for field in [
        machines.iter().map(|m| m.address.to_string()).collect::<BTreeSet<_>>(),
        machines.iter().map(|m| m.port.clone()).collect(),
        machines.iter().map(|m| mac_text(m.mac)).collect(),
    ] {
        assert_eq!(field.len(), machines.len(), "{field:?}");
    }
    assert_eq!(plan.clusters[1].api_url(), "https://100.70.2.10:6443");
}

#[test]
fn clusters_without_real_nodes_still_have_a_machine_for_the_control_plane() {
    let plan = plan();
    assert!(plan.clusters[1].nodes().is_empty() && plan.clusters[2].nodes().is_empty());
    assert_eq!(plan.clusters[0].nodes().len(), 3);
}

#[test]
fn interface_names_fit_the_kernels_fifteen_characters() {
    let place = Place::new("/var/lib/liqo-sandbox", "a-name-that-is-as-long-as-allowed-here-x").unwrap();
    assert!(place.host_interface().len() <= 15);
    assert!(plan().clusters.iter().flat_map(|c| &c.machines).all(|m| m.port.len() <= 8));
}

#[test]
fn two_sandboxes_prefer_different_names_and_all_subnets_are_candidates() {
    let one = Place::new("/var/lib/liqo-sandbox", "one").unwrap();
    let two = Place::new("/var/lib/liqo-sandbox", "two").unwrap();
    assert_ne!(one.id(), two.id());
    assert_eq!(one.candidate_subnets().collect::<BTreeSet<_>>().len(), 64);
}
