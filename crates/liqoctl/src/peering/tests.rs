use super::testing::{contract, made_at, offer, papers};
use super::*;

#[test]
fn amounts_begin_with_what_everybody_asks_for() {
    let list = offer("north", "Pending", "").spec.resource_quota.hard;
    assert_eq!(amounts(&list), "cpu 3500m, memory 6Gi, pods 40");
    assert_eq!(amounts(&Default::default()), "nothing");
}

#[test]
fn papers_are_told_apart_by_who_lends() {
    let found = papers(
        vec![offer("north", "Accepted", ""), offer("south", "Pending", "")],
        vec![contract("c-1", "north", "south", "Active"), contract("c-2", "south", "north", "Active")],
    );
    assert_eq!(found.offered_by("north").unwrap().spec.cluster_id, "north");
    assert_eq!(found.offered_to("north").unwrap().spec.cluster_id, "south");
    assert_eq!(found.lent_by("north").unwrap().name_any(), "c-1");
    assert_eq!(found.lent_to("north").unwrap().name_any(), "c-2");
}

#[test]
fn what_is_in_force_counts_before_what_is_new() {
    let found = papers(
        vec![],
        vec![
            contract("c-old", "north", "south", "Active"),
            made_at(contract("c-new", "north", "south", "Refused"), "2026-03-01T13:00:00Z"),
        ],
    );
    assert_eq!(found.lent_by("north").unwrap().name_any(), "c-old");
    let over = papers(
        vec![],
        vec![
            contract("c-old", "north", "south", "Ended"),
            made_at(contract("c-new", "north", "south", "Expired"), "2026-03-01T13:00:00Z"),
        ],
    );
    assert_eq!(over.lent_by("north").unwrap().name_any(), "c-new");
}
