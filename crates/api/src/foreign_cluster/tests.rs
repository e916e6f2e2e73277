use serde_json::json;

use super::*;

fn foreign_cluster(spec: &serde_json::Value) -> ForeignCluster {
    serde_json::from_value(json!({ "metadata": { "name": "peer" }, "spec": spec })).unwrap()
}

#[test]
fn a_minimal_object_reads_with_the_defaults_of_the_schema() {
    let peer = foreign_cluster(&json!({ "foreignAuthUrl": "https://auth" }));
    assert_eq!(peer.spec, ForeignClusterSpec::new("https://auth"));
    assert_eq!(peer.spec.outgoing_peering_enabled, PeeringEnabled::Auto);
    assert_eq!(peer.spec.networking_enabled, NetworkingEnabled::Yes);
    assert!(!peer.spec.insecure_skip_tls_verify);
}

#[test]
fn the_identity_is_known_once_id_and_name_are() {
    let with =
        |identity| foreign_cluster(&json!({ "foreignAuthUrl": "https://auth", "clusterIdentity": identity }));
    assert!(with(json!(null)).identity().is_none());
    assert!(with(json!({ "clusterID": "id" })).identity().is_none());
    let identity = with(json!({ "clusterID": "id", "clusterName": "name" })).identity().unwrap().unwrap();
    assert_eq!((identity.id.as_str(), identity.name.as_str()), ("id", "name"));
    assert!(with(json!({ "clusterID": "id", "clusterName": "No Name" })).identity().unwrap().is_err());
}

#[test]
fn a_peer_without_a_known_discovery_label_was_created_by_hand() {
    let labelled = |value: &str| BTreeMap::from([(labels::DISCOVERY_TYPE.to_owned(), value.to_owned())]);
    assert_eq!(DiscoveryType::from_labels(None), DiscoveryType::Manual);
    assert_eq!(DiscoveryType::from_labels(Some(&labelled("Carrier pigeon"))), DiscoveryType::Manual);
    for kind in
        [DiscoveryType::Lan, DiscoveryType::Wan, DiscoveryType::Manual, DiscoveryType::IncomingPeering]
    {
        assert_eq!(DiscoveryType::from_labels(Some(&labelled(kind.as_label()))), kind);
    }
}

#[test]
fn a_part_of_the_peering_that_nobody_spoke_of_is_none() {
    let mut peer = foreign_cluster(&json!({ "foreignAuthUrl": "https://auth" }));
    assert_eq!(peer.peering_status(PeeringConditionType::OutgoingPeering), PeeringConditionStatus::None);
    peer.status = serde_json::from_value(json!({
        "peeringConditions": [{ "type": "OutgoingPeering", "status": "Established" }],
    }))
    .unwrap();
    assert_eq!(
        peer.peering_status(PeeringConditionType::OutgoingPeering),
        PeeringConditionStatus::Established
    );
    assert_eq!(peer.peering_status(PeeringConditionType::NetworkStatus), PeeringConditionStatus::None);
}

#[test]
fn auto_borrows_by_how_the_peer_was_found() {
    let peer = |wanted: &str, kind: &str, domain: &str| -> ForeignCluster {
        let labels = json!({ labels::DISCOVERY_TYPE: kind, labels::SEARCH_DOMAIN: domain });
        let spec = json!({ "foreignAuthUrl": "https://auth", "outgoingPeeringEnabled": wanted });
        serde_json::from_value(json!({ "metadata": { "name": "peer", "labels": labels }, "spec": spec }))
            .unwrap()
    };
    // The SearchDomain `joined` joins, any other does not.
    let wants = |peer: ForeignCluster, autojoin| peer.wants_outgoing(autojoin, |domain| domain == "joined");
    let cases = [
        ("Auto", "LAN", "", true),
        ("Auto", "WAN", "joined", true),
        ("Auto", "WAN", "watched", false),
        ("Auto", "Manual", "joined", false),
        ("Auto", "IncomingPeering", "joined", false),
        ("No", "LAN", "", false),
        ("No", "WAN", "joined", false),
    ];
    for (wanted, kind, domain, expected) in cases {
        assert_eq!(wants(peer(wanted, kind, domain), true), expected, "{wanted} {kind} {domain}");
        assert!(!wants(peer(wanted, kind, domain), false), "without autojoin: {wanted} {kind} {domain}");
    }
    assert!(wants(peer("Yes", "Manual", ""), false));
}
