use serde_json::json;

use super::*;
use crate::testing::{foreign_cluster, later, now};

fn cluster() -> ForeignCluster {
    foreign_cluster("milan", json!({}), json!({ "foreignAuthUrl": "https://b" }))
}

/// What the API server has after the write.
fn after(cluster: &ForeignCluster, status: &serde_json::Value) -> ForeignCluster {
    ForeignCluster { status: serde_json::from_value(status.clone()).unwrap(), ..cluster.clone() }
}

#[test]
fn what_is_told_once_is_not_told_again() {
    let told = Told::new(Status::Established, "Authenticated", "until then");
    let (status, reports) = missing(&cluster(), &told, now()).unwrap();
    assert_eq!(reports.len(), 1);
    let cluster = after(&cluster(), &status);
    assert_eq!(missing(&cluster, &told, later(100)), None);
    // Another message under the same status keeps the time since when it is so.
    let renewed = Told::new(Status::Established, "Authenticated", "until later");
    let (status, reports) = missing(&cluster, &renewed, later(100)).unwrap();
    assert_eq!(reports[0].since, now().as_second());
    let condition = &status["peeringConditions"][0];
    assert_eq!(condition["lastTransitionTime"], json!("2026-01-02T03:04:05Z"));
}

#[test]
fn conditions_of_others_are_neither_repeated_nor_removed() {
    let mut cluster = cluster();
    cluster.status = serde_json::from_value(json!({ "peeringConditions": [
        { "type": "OutgoingPeering", "status": "Established" },
        { "type": "ProcessForeignClusterStatus", "status": "Success", "reason": "SomebodyElse" },
    ] }))
    .unwrap();
    let told = Told::new(Status::Pending, "Authenticating", "");
    let (status, _) = missing(&cluster, &told, now()).unwrap();
    let types: Vec<_> =
        status["peeringConditions"].as_array().unwrap().iter().map(|it| it["type"].clone()).collect();
    assert_eq!(types, [json!("AuthenticationStatus")]);
}

#[test]
fn a_claim_is_told_for_an_hour() {
    let refused = Claim { at: now(), fingerprint: "ab".repeat(32) };
    let ((reason, message), until) = claim(&refused, later(10)).unwrap();
    assert_eq!((reason, until), (CLAIMED_TWICE, later(3600)));
    assert!(message.contains("abab"));
    assert_eq!(claim(&refused, later(3600)), None);
    // Told, and then taken back.
    let told = Told { trouble: Some((reason, message)), ..Told::new(Status::None, "NotCalled", "") };
    let (status, reports) = missing(&cluster(), &told, now()).unwrap();
    assert_eq!(status["peeringConditions"][1]["status"], json!("Error"));
    assert!(reports.is_empty(), "whoever refused it has told: {reports:?}");
    let cluster = after(&cluster(), &status);
    let (status, _) = missing(&cluster, &Told { trouble: None, ..told }, now()).unwrap();
    assert_eq!(status["peeringConditions"].as_array().unwrap().len(), 1);
}
