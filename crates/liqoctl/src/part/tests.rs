use super::*;
use crate::peering::testing::{cluster, contract, papers, telling};

#[test]
fn it_is_over_when_nothing_is_borrowed_and_no_contract_is_in_force() {
    let state = |status: &str| telling(cluster("north", "north"), &[("OutgoingPeering", status, "x")]);
    let lent = |phase: &str| papers(vec![], vec![contract("c-1", "north", "south", phase)]);
    assert!(is_unpeered(&cluster("north", "north"), &Papers::default()));
    assert!(is_unpeered(&state("None"), &lent("Ended")));
    assert!(!is_unpeered(&state("None"), &lent("Active")));
    assert!(!is_unpeered(&state("Disconnecting"), &Papers::default()));
    assert!(!is_unpeered(&state("Established"), &lent("Active")));
    let lending = papers(vec![], vec![contract("c-1", "south", "north", "Active")]);
    assert!(is_unpeered(&state("None"), &lending), "what we lend stays");
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
