use super::*;
use crate::peering::testing::{cluster, contract, papers, telling};

#[test]
fn it_is_over_when_nothing_is_borrowed_and_no_contract_is_in_force() {
    let over = |cluster: &ForeignCluster, papers: &Papers| Direction::Outgoing.is_over(cluster, papers);
    let state = |status: &str| telling(cluster("north", "north"), &[("OutgoingPeering", status, "x")]);
    let lent = |phase: &str| papers(vec![], vec![contract("c-1", "north", "south", phase)]);
    assert!(over(&cluster("north", "north"), &Papers::default()));
    assert!(over(&state("None"), &lent("Ended")));
    assert!(!over(&state("None"), &lent("Active")));
    assert!(!over(&state("Disconnecting"), &Papers::default()));
    assert!(!over(&state("Established"), &lent("Active")));
    let lending = papers(vec![], vec![contract("c-1", "south", "north", "Active")]);
    assert!(over(&state("None"), &lending), "what we lend is another direction");
    assert!(!Direction::Incoming.is_over(&state("None"), &lending));
    assert!(!Direction::Both.is_over(&state("None"), &lending));
}

/// A cluster of which this is told about lending, and what its spec says about it.
fn lending(status: &str, enabled: PeeringEnabled) -> ForeignCluster {
    let mut cluster = telling(cluster("north", "north"), &[("IncomingPeering", status, "x")]);
    cluster.spec.incoming_peering_enabled = enabled;
    cluster
}

#[test]
fn one_who_goes_on_asking_and_is_refused_gets_nothing() {
    let none = Papers::default();
    assert!(Direction::Both.is_over(&lending("Denied", PeeringEnabled::No), &none));
    assert!(!Direction::Both.is_over(&lending("Denied", PeeringEnabled::Auto), &none));
    assert!(!Direction::Both.is_over(&lending("Established", PeeringEnabled::No), &none));
    assert!(Direction::Outgoing.is_over(&lending("Established", PeeringEnabled::No), &none));
}

#[test]
fn only_who_borrows_asks_or_is_offered_something_is_refused() {
    use PeeringEnabled::{Auto, No, Yes};
    let ending = |direction: Direction, cluster: &ForeignCluster, papers: &Papers| {
        let write::Enabled { outgoing, incoming } = direction.ending(cluster, papers);
        (outgoing, incoming)
    };
    let none = Papers::default();
    assert_eq!(ending(Direction::Both, &lending("None", Auto), &none), (Some(No), None));
    assert_eq!(ending(Direction::Both, &lending("None", Yes), &none), (Some(No), Some(No)));
    assert_eq!(ending(Direction::Both, &lending("Pending", Auto), &none), (Some(No), Some(No)));
    let lent = papers(vec![], vec![contract("c-1", "south", "north", "Active")]);
    assert_eq!(ending(Direction::Both, &lending("None", Auto), &lent), (Some(No), Some(No)));
    assert_eq!(ending(Direction::Outgoing, &lending("Established", Auto), &lent), (Some(No), None));
    assert_eq!(ending(Direction::Incoming, &lending("None", Auto), &none), (None, Some(No)));
}

#[test]
fn what_stays_is_said() {
    let told = |direction: Direction, cluster: &ForeignCluster| {
        direction.tell(cluster, &Papers::default()).join("; ")
    };
    let lent = lending("Established", PeeringEnabled::Auto);
    assert!(told(Direction::Outgoing, &lent).contains("what is lent to north stays; liqoctl unpeer north"));
    let refused = lending("Denied", PeeringEnabled::No);
    assert!(told(Direction::Both, &refused).contains("liqoctl peer north --bidirectional"));
    assert!(told(Direction::Both, &refused).contains("liqoctl remove cluster north forgets it"));
}

#[test]
fn it_says_what_is_waited_for() {
    let told = telling(
        cluster("north", "north"),
        &[("OutgoingPeering", "Disconnecting", "north is told"), ("IncomingPeering", "Established", "y")],
    );
    assert_eq!(waiting(&told), "north is told");
    let mut held = cluster("north", "north");
    held.metadata.finalizers = Some(vec!["peering.liqo.io/contracts".to_owned()]);
    assert_eq!(waiting(&held), "held by peering.liqo.io/contracts");
    assert!(waiting(&cluster("north", "north")).contains("liqoctl status"));
}
