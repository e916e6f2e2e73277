use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Detected, Distribution, detect, generated_name, only_here};
use crate::facts::{Facts, NodeFacts};

/// What a cluster says, and what must be concluded: value and source of each conclusion.
#[derive(Deserialize)]
struct Case {
    facts: Facts,
    expected: BTreeMap<String, (String, String)>,
}

fn conclusions(detected: &Detected) -> BTreeMap<String, (String, String)> {
    let serde_json::Value::Object(found) = serde_json::to_value(detected).unwrap() else { unreachable!() };
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let known = found.into_iter().filter(|(_, found)| !found.is_null());
    known.map(|(name, found)| (name, (text(&found["value"]), text(&found["source"])))).collect()
}

#[test]
fn clusters_are_recognised_and_every_conclusion_says_where_from() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/facts");
    let mut names = Vec::new();
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let case: Case = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(conclusions(&detect(&case.facts, None)), case.expected, "{}", path.display());
        names.extend(case.expected.get("distribution").map(|(name, _)| name.clone()));
    }
    for distribution in Distribution::ALL {
        assert!(names.iter().any(|name| name == distribution.name()), "no facts of {distribution}");
    }
}

#[test]
fn a_named_distribution_gives_its_defaults_where_nothing_is_found() {
    let facts = Facts { server: "https://k3s:6443".into(), ..Facts::default() };
    let detected = detect(&facts, Some(Distribution::K3s));
    assert_eq!(detected.distribution, None);
    assert_eq!(detected.pod_cidr.unwrap().to_string(), "10.42.0.0/16 (from the defaults of k3s)");
    assert_eq!(detected.service_cidr.unwrap().to_string(), "10.43.0.0/16 (from the defaults of k3s)");
}

#[test]
fn a_default_network_that_the_clusters_own_service_is_not_in_is_not_taken() {
    let facts = Facts { kubernetes_service: Some("10.99.0.1".into()), ..Facts::default() };
    assert_eq!(detect(&facts, Some(Distribution::K3s)).service_cidr, None);
}

#[test]
fn the_room_for_more_nodes_does_not_swallow_the_services() {
    let node = |cidr: &str| NodeFacts { pod_cidrs: vec![cidr.into()], ..NodeFacts::default() };
    let facts = Facts {
        nodes: vec![node("10.96.0.0/24"), node("10.96.1.0/24")],
        service_cidrs: vec!["10.96.128.0/17".into()],
        ..Facts::default()
    };
    assert_eq!(detect(&facts, None).pod_cidr.unwrap().value, "10.96.0.0/23");
}

#[test]
fn regions_that_differ_are_no_region() {
    let node = |region: &str| NodeFacts {
        labels: BTreeMap::from([(liqo_api::labels::REGION.to_owned(), region.to_owned())]),
        ..NodeFacts::default()
    };
    let facts = Facts { nodes: vec![node("a"), node("b")], ..Facts::default() };
    assert_eq!(detect(&facts, None).region, None);
}

#[test]
fn addresses_that_only_mean_something_here() {
    for here in [
        "https://127.0.0.1:6443",
        "https://0.0.0.0:6443",
        "https://[::1]:6443",
        "https://localhost",
        "https://kubernetes.default.svc",
    ] {
        assert!(only_here(here), "{here}");
    }
    for elsewhere in ["https://10.0.0.1:6443", "https://api.example.com", "https://[2001:db8::1]:6443"] {
        assert!(!only_here(elsewhere), "{elsewhere}");
    }
}

#[test]
fn made_up_names_are_legal_and_differ() {
    let names: std::collections::BTreeSet<String> = (0..50).map(|_| generated_name()).collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        name.parse::<liqo_api::names::ClusterName>().unwrap();
    }
}

#[test]
fn names_of_distributions_are_read_as_they_are_written() {
    for distribution in Distribution::ALL {
        assert_eq!(distribution.name().parse(), Ok(distribution));
    }
    assert!("minikube".parse::<Distribution>().unwrap_err().contains("kubeadm, kind, k3s"));
}
