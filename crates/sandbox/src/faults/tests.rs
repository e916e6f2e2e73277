use std::time::Duration;

use super::*;
use crate::spec::{ClusterSpec, Spec};
use crate::state::Delay;

fn plan() -> Plan {
    let place = Place::new("/var/lib/liqo-sandbox", "default").unwrap();
    let spec = Spec::new([ClusterSpec::real("a", 2), ClusterSpec::real("b", 1), ClusterSpec::real("c", 1)]);
    Plan::new(&place, &spec, "100.64.0.0/16".parse().unwrap())
}

#[test]
fn a_cut_drops_both_directions_between_all_machines_and_nothing_else() {
    let faults = Faults { cuts: vec![("a".into(), "b".into())], delays: vec![] };
    let text = rules(&plan(), &faults);
    assert!(
        text.contains(r#"iifname { "c0n1", "c0n1o", "c0n2", "c0n2o" } oifname { "c1n1", "c1n1o" } drop"#),
        "{text}"
    );
    assert!(text.contains(r#"iifname { "c1n1", "c1n1o" } oifname { "c0n1""#), "{text}");
    assert!(!text.contains("c2n1"), "{text}");
    assert!(!rules(&plan(), &Faults::default()).contains("drop"));
}

#[test]
fn the_relay_stands_at_the_first_cluster_and_delays_only_the_second() {
    let delay = Delay { a: "a".into(), b: "b".into(), each_way: Duration::from_millis(100) };
    let relays = relay_plan(&plan(), &Faults { cuts: vec![], delays: vec![delay] });
    let ports: Vec<&str> = relays.links.iter().map(|link| link.port.as_str()).collect();
    assert_eq!(ports, ["c0n1", "c0n2"]);
    let other = plan().clusters[1].machines[0].mac;
    assert_eq!(relays.links[0].delay_for(other), Some(Duration::from_millis(100)));
    assert_eq!(relays.links[0].delay_for(plan().clusters[2].machines[0].mac), None);
}

#[test]
fn a_pair_is_the_same_in_either_order() {
    assert!(same_pair(&("a".into(), "b".into()), ("b", "a")));
    assert!(!same_pair(&("a".into(), "b".into()), ("a", "c")));
}
