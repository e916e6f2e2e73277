use liqo_api::Fingerprint;

use super::*;
use crate::peering::testing::{authority, cluster, of_spec};

fn wanted(name: Option<&str>, id: &str) -> Wanted {
    Wanted {
        name: name.map(str::to_owned),
        id: id.parse().unwrap(),
        cluster_name: Some("milan".parse().unwrap()),
        url: "https://203.0.113.7:31520".to_owned(),
        recognition: Recognition::default(),
        key: Shown::NotAsked,
        borrow: true,
        lend: false,
    }
}

fn created(plan: Result<Plan, Refused>) -> ForeignCluster {
    match plan.unwrap() {
        Plan::Create(cluster) => *cluster,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_cluster_is_called_as_it_calls_itself_or_as_the_user_wants() {
    let made = created(plan(&[], &wanted(None, "id-1")));
    assert_eq!(made.name_any(), "milan");
    assert_eq!(made.spec.outgoing_peering_enabled, PeeringEnabled::Yes);
    assert_eq!(made.discovery_type(), DiscoveryType::Manual);
    assert_eq!(made.labels()[labels::CLUSTER_ID], "id-1");
    assert_eq!(created(plan(&[], &wanted(Some("office"), "id-1"))).name_any(), "office");
}

#[test]
fn clusters_of_the_same_name_get_different_names_here() {
    let known = [cluster("milan", "id-1")];
    let made = created(plan(&known, &wanted(None, "id-2")));
    assert!(made.name_any().starts_with("milan-") && made.name_any().len() == 12, "{}", made.name_any());
    let error = plan(&known, &wanted(Some("milan"), "id-2")).unwrap_err().to_string();
    assert!(error.contains("with the ID id-1") && error.contains(&made.name_any()), "{error}");
}

#[test]
fn what_is_known_is_not_written_again() {
    let made = created(plan(&[], &wanted(None, "id-1")));
    assert_eq!(plan(&[made], &wanted(None, "id-1")), Ok(Plan::Nothing { name: "milan".to_owned() }));
}

#[test]
fn only_what_differs_is_changed() {
    let mut known = created(plan(&[], &wanted(None, "id-1")));
    known.spec.outgoing_peering_enabled = PeeringEnabled::No;
    known.spec.incoming_peering_enabled = PeeringEnabled::Yes;
    known.spec.ttl = Some(90);
    let other = Wanted { url: "https://198.51.100.1".to_owned(), ..wanted(Some("any"), "id-1") };
    let patch = json!({"spec": {
        "foreignAuthUrl": "https://198.51.100.1", "outgoingPeeringEnabled": "Yes", "ttl": null,
    }});
    assert_eq!(plan(&[known], &other), Ok(Plan::Change { name: "milan".to_owned(), patch }));
}

#[test]
fn who_is_lent_to_and_not_borrowed_from_is_so_from_the_start_and_later() {
    let lent = Wanted { borrow: false, lend: true, ..wanted(None, "id-1") };
    let made = created(plan(&[], &lent));
    let said = (made.spec.outgoing_peering_enabled, made.spec.incoming_peering_enabled);
    assert_eq!(said, (PeeringEnabled::No, PeeringEnabled::Yes));
    assert_eq!(plan(std::slice::from_ref(&made), &lent), Ok(Plan::Nothing { name: "milan".to_owned() }));
    let borrowed = created(plan(&[], &wanted(None, "id-1")));
    let patch = json!({"spec": {"outgoingPeeringEnabled": "No", "incomingPeeringEnabled": "Yes"}});
    assert_eq!(plan(&[borrowed], &lent), Ok(Plan::Change { name: "milan".to_owned(), patch }));
    // Borrowing as well takes nothing back of what is lent.
    let patch = json!({"spec": {"outgoingPeeringEnabled": "Yes"}});
    assert_eq!(plan(&[made], &wanted(None, "id-1")), Ok(Plan::Change { name: "milan".to_owned(), patch }));
}

#[test]
fn what_it_was_recognised_by_before_is_taken_back() {
    let by = |recognition| Wanted { recognition, ..wanted(None, "id-1") };
    let fingerprint = Fingerprint::of_certificate(b"x");
    let authorities = CaBundle::parse(authority("ours").as_bytes()).unwrap();
    let pinned = by(Recognition::by_fingerprint(fingerprint));
    let vouched = by(Recognition { authorities: Some(authorities.clone()), ..Recognition::default() });
    let (fingerprint, authorities) = (fingerprint.to_string(), authorities.to_pem());
    for (before, after, patch) in [
        (&pinned, &wanted(None, "id-1"), json!({"authFingerprint": null})),
        (&pinned, &vouched, json!({"authFingerprint": null, "authCaBundle": authorities})),
        (&vouched, &pinned, json!({"authFingerprint": fingerprint, "authCaBundle": null})),
        (&vouched, &wanted(None, "id-1"), json!({"authCaBundle": null})),
    ] {
        let known = created(plan(&[], before));
        let name = "milan".to_owned();
        assert_eq!(plan(std::slice::from_ref(&known), before), Ok(Plan::Nothing { name: name.clone() }));
        assert_eq!(plan(&[known], after), Ok(Plan::Change { name, patch: json!({ "spec": patch }) }));
    }
}

#[test]
fn one_made_by_hand_without_an_id_is_taken_over_where_it_is_named() {
    let known = [of_spec("office", &json!({"foreignAuthUrl": "https://203.0.113.7:31520"}))];
    let Plan::Change { name, patch } = plan(&known, &wanted(Some("office"), "id-1")).unwrap() else {
        panic!()
    };
    assert_eq!(name, "office");
    assert_eq!(patch["spec"]["clusterIdentity"], json!({"clusterID": "id-1", "clusterName": "milan"}));
    assert_eq!(created(plan(&known, &wanted(None, "id-1"))).name_any(), "milan");
}

#[test]
fn one_that_is_going_away_comes_back_afterwards() {
    let mut known = cluster("milan", "id-1");
    known.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-03-01T12:00:00Z")).unwrap());
    assert_eq!(plan(&[known], &wanted(None, "id-1")), Ok(Plan::Wait { name: "milan".to_owned() }));
}

#[test]
fn names_that_are_none_are_refused() {
    for name in ["Milan", "mi lan", "-milan", "milan-", "", "a..b", &"x".repeat(254), "mi/lan", "../x"] {
        assert_eq!(plan(&[], &wanted(Some(name), "id-1")), Err(Refused::Name(name.to_owned())), "{name}");
    }
    let unknown = Wanted { cluster_name: None, ..wanted(None, "id-1") };
    assert_eq!(plan(&[], &unknown), Err(Refused::NoName));
}
