use std::collections::BTreeMap;

use tokio::time::Instant;

use super::*;
use crate::advert::Refusal;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn domain(status: SearchDomainStatus) -> Domain {
    Domain {
        name: "example".into(),
        uid: "uid".to_owned(),
        resource_version: "1".to_owned(),
        generation: Some(3),
        domain: "liqo.example.com".to_owned(),
        status,
        deleting: false,
    }
}

fn search(asked: Option<i64>, trouble: Option<Trouble>) -> Search {
    Search {
        domain: "liqo.example.com".to_owned(),
        asked: asked.map(at),
        trouble,
        broken: BTreeMap::new(),
        running: false,
        next: Instant::now(),
    }
}

fn identity(id: &str, name: &str) -> Identity {
    Identity { id: id.parse().unwrap(), name: name.parse().unwrap() }
}

fn problem(record: &str) -> Problem {
    Problem { record: record.into(), refused: Refused::new(Refusal::NotResolved, "it has no SRV record") }
}

fn condition(status: &SearchDomainStatus, kind: &str) -> String {
    let found = status.conditions.iter().find(|condition| condition.type_ == kind).unwrap();
    assert_eq!(found.observed_generation, Some(3));
    format!("{} {}: {}", found.status, found.reason, found.message)
}

#[tokio::test]
async fn the_status_names_what_was_found_and_when() {
    let found = [identity("b", "two"), identity("a", "one"), identity("a", "one")];
    let written =
        status(&domain(Default::default()), Some(&search(Some(100), None)), &found, &[], at(101)).unwrap();
    assert_eq!(written.found, Some(2));
    let names: Vec<_> = written.clusters.iter().map(|cluster| cluster.cluster_name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert_eq!(written.last_query.as_ref().unwrap().0, at(100));
    assert_eq!(condition(&written, READY), "True Searched: The domain was searched.");
    assert_eq!(
        condition(&written, RECORDS_VALID),
        "True AllValid: Every record names a cluster that answers."
    );
}

#[tokio::test]
async fn nothing_is_written_when_nothing_changed_but_the_time_and_that_seldom() {
    let found = [identity("a", "one")];
    let first =
        status(&domain(Default::default()), Some(&search(Some(100), None)), &found, &[], at(100)).unwrap();
    let again =
        |asked, now| status(&domain(first.clone()), Some(&search(Some(asked), None)), &found, &[], at(now));
    assert_eq!(again(110, 110), None);
    assert_eq!(again(690, 699), None);
    let noted = again(695, 700).unwrap();
    assert_eq!(noted.last_query.unwrap().0, at(695));
    // After a restart, nothing is known before the first search.
    assert_eq!(status(&domain(first), Some(&search(None, None)), &[], &[], at(9999)), None);
}

#[tokio::test]
async fn broken_records_are_named_with_their_reason() {
    let problems = [problem("x.liqo.example.com"), problem("y.liqo.example.com")];
    let search = search(Some(100), None);
    let written = status(&domain(Default::default()), Some(&search), &[], &problems, at(100)).unwrap();
    assert_eq!(
        condition(&written, RECORDS_VALID),
        "False BrokenRecords: x.liqo.example.com: it has no SRV record; y.liqo.example.com: it has no SRV record."
    );
    let many: Vec<_> = (0..10_000).map(|number| problem(&format!("{number}.example.com"))).collect();
    let written = status(&domain(Default::default()), Some(&search), &[], &many, at(100)).unwrap();
    assert!(condition(&written, RECORDS_VALID).ends_with("; and 9992 more."));
    let repaired = status(&domain(written), Some(&search), &[], &[], at(101)).unwrap();
    assert!(condition(&repaired, RECORDS_VALID).starts_with("True"));
}

#[tokio::test]
async fn a_domain_that_cannot_be_searched_says_why_and_keeps_what_it_had() {
    let found = [identity("a", "one")];
    let trouble = Trouble::Failed("liqo.example.com cannot be asked for: request timed out".to_owned());
    let written =
        status(&domain(Default::default()), Some(&search(Some(1), Some(trouble))), &found, &[], at(1))
            .unwrap();
    assert_eq!(
        condition(&written, READY),
        "False SearchFailed: liqo.example.com cannot be asked for: request timed out."
    );
    assert_eq!(written.found, Some(1));
}

#[tokio::test]
async fn a_name_that_is_too_long_is_explained() {
    let long = Domain { name: "a".repeat(64).into(), ..domain(Default::default()) };
    let written = status(&long, None, &[], &[], at(1)).unwrap();
    assert!(condition(&written, READY).starts_with("False NameTooLong: "));
    let told = Domain { status: written, ..long };
    assert_eq!(status(&told, None, &[], &[], at(9999)), None);
}

#[tokio::test]
async fn very_many_clusters_are_counted_and_some_named() {
    let found: Vec<_> = (0..1000).map(|number| identity(&format!("c{number}"), "edge")).collect();
    let written =
        status(&domain(Default::default()), Some(&search(Some(1), None)), &found, &[], at(1)).unwrap();
    assert_eq!((written.found, written.clusters.len()), (Some(1000), MAX_CLUSTERS));
}
