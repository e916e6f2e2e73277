use super::*;
use crate::peering::testing::{cluster, contract, offer, papers, telling};
use crate::style::Style;

fn now() -> Timestamp {
    "2026-03-01T12:05:00Z".parse().unwrap()
}

fn both() -> PeerDetail {
    let north = telling(
        cluster("north", "north"),
        &[
            ("AuthenticationStatus", "Established", "the peer knows us"),
            ("OutgoingPeering", "Established", "cpu 3500m is borrowed"),
            ("IncomingPeering", "Pending", "it was offered something"),
        ],
    );
    let found = papers(
        vec![offer("north", "Accepted", "the offer is accepted"), offer("south", "Pending", "")],
        vec![contract("c-1", "north", "south", "Active")],
    );
    detail(&north, &found, Some("2027-03-01T12:00:00Z".parse().unwrap()))
}

#[test]
fn a_person_sees_both_directions_and_every_step() {
    let text = text(&both(), true, Style::plain(), now());
    for part in [
        "Cluster:       north (ID north)",
        "Found:         by hand",
        "Certificate:   until 2027-03-01",
        "Namespaces:    liqo-tenant-x here",
        "BORROWED FROM IT: Established (since 5m), cpu 3500m is borrowed",
        "✓ contract: c-1 signed by both",
        "offer:     Accepted, cpu 3500m, memory 6Gi, pods 40; free",
        "LENT TO IT: Pending (since 5m), it was offered something",
        "AuthenticationStatus: Established",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}

#[test]
fn programs_get_the_same() {
    let value = serde_json::to_value(both()).unwrap();
    assert_eq!(value["clusterID"], "north");
    assert_eq!(value["outgoing"]["status"], "Established");
    assert_eq!(value["outgoing"]["enabled"], "Yes");
    assert_eq!(value["outgoing"]["contract"]["name"], "c-1");
    assert_eq!(value["outgoing"]["offer"]["direction"], "borrow");
    assert_eq!(value["incoming"]["offer"]["direction"], "lend");
    assert_eq!(value["outgoing"]["steps"][4]["state"], "Done");
    assert!(value.get("troubles").is_none());
}

#[test]
fn what_is_wrong_is_among_the_troubles() {
    let north = telling(cluster("north", "north"), &[("AuthenticationStatus", "Denied", "no such token")]);
    let detail = detail(&north, &Papers::default(), None);
    assert_eq!(detail.troubles, ["AuthenticationStatus is Denied: no such token"]);
    let text = text(&detail, false, Style::plain(), now());
    assert!(text.contains("✗ certificate: no such token (since 5m)"), "{text}");
}
