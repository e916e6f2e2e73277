use serde_json::{Value, json};

use super::{Given, Set, Settings, Sources, Values, assemble, network};
use crate::detect::{Detected, Distribution, Found};

struct World {
    detected: Detected,
    stored: Option<Value>,
    files: Vec<(String, Value)>,
    given: Given,
    sets: Vec<Set>,
    identity: Option<&'static str>,
    distribution: Option<Distribution>,
}

fn world() -> World {
    World {
        detected: Detected {
            pod_cidr: Some(Found::new("10.1.0.0/16", "the nodes")),
            cluster_name: Some(Found::new("from-context", "the context")),
            ..Detected::default()
        },
        stored: None,
        files: vec![],
        given: Given::default(),
        sets: vec![],
        identity: None,
        distribution: None,
    }
}

impl World {
    fn values(&self) -> Values {
        assemble(&Sources {
            detected: &self.detected,
            distribution: self.distribution,
            identity_name: self.identity,
            stored: self.stored.as_ref(),
            files: &self.files,
            given: &self.given,
            sets: &self.sets,
        })
        .unwrap()
    }

    fn pods(&self) -> Value {
        self.values().overrides["networkManager"]["config"]["podCIDR"].clone()
    }
}

fn pods(cidr: &str) -> Value {
    json!({"networkManager": {"config": {"podCIDR": cidr}}})
}

#[test]
fn each_source_wins_over_the_one_before_it() {
    let mut world = world();
    assert_eq!(world.pods(), "10.1.0.0/16");
    world.stored = Some(pods("10.2.0.0/16"));
    assert_eq!(world.pods(), "10.2.0.0/16");
    world.files = vec![("a".into(), pods("10.3.0.0/16")), ("b".into(), pods("10.4.0.0/16"))];
    assert_eq!(world.pods(), "10.4.0.0/16");
    world.given.pod_cidr = Some("10.5.0.0/16".into());
    assert_eq!(world.pods(), "10.5.0.0/16");
    world.sets = vec![Set::Typed("networkManager.config.podCIDR=10.6.0.0/16".into())];
    assert_eq!(world.pods(), "10.6.0.0/16");
}

#[test]
fn what_was_found_is_not_kept_and_what_was_given_is() {
    let mut world = world();
    world.given.enable_ha = Some(true);
    world.sets = vec![Set::Text("image.tag=1".into())];
    assert_eq!(world.values().user, json!({"enableHA": true, "image": {"tag": "1"}}));
}

#[test]
fn flags_stand_for_values() {
    let mut world = world();
    world.given = Given {
        cluster_name: Some("turin".into()),
        cluster_id: Some("7".into()),
        cluster_labels: [("example.com/a.b".to_owned(), "c".to_owned())].into(),
        api_server_url: Some("https://turin:6443".into()),
        service_cidr: Some("10.9.0.0/16".into()),
        reserved_subnets: Some(vec!["192.168.0.0/24".into()]),
        sharing_percentage: Some(10),
        enable_ha: Some(false),
        lan_discovery: Some(true),
        broker: Some(true),
        mtu: Some(1300),
        listening_port: Some(6000),
        ..Given::default()
    };
    assert_eq!(
        world.values().user,
        json!({
            "discovery": {"config": {
                "clusterName": "turin", "clusterIDOverride": "7", "clusterLabels": {"example.com/a.b": "c"},
                "enableDiscovery": true, "enableAdvertisement": true,
            }},
            "apiServer": {"address": "https://turin:6443"},
            "networkManager": {"config": {"serviceCIDR": "10.9.0.0/16", "reservedSubnets": ["192.168.0.0/24"]}},
            "controllerManager": {"config": {"resourceSharingPercentage": 10, "brokerMode": true}},
            "enableHA": false,
            "networkConfig": {"mtu": 1300},
            "gateway": {"config": {"listeningPort": 6000}},
        })
    );
}

#[test]
fn ninety_per_cent_are_shared_unless_somebody_says_otherwise() {
    let share = |world: &World| {
        world.values().overrides["controllerManager"]["config"]["resourceSharingPercentage"].clone()
    };
    let mut world = world();
    assert_eq!(share(&world), 90);
    world.stored = Some(json!({"controllerManager": {"config": {"resourceSharingPercentage": 40}}}));
    assert_eq!(share(&world), 40);
}

#[test]
fn the_name_is_the_one_the_cluster_has() {
    let name = |world: &World| world.values().overrides["discovery"]["config"]["clusterName"].clone();
    let mut world = world();
    assert_eq!(name(&world), "from-context");
    world.given.provider_name = Some(Found::new("from-cloud", "--eks-cluster-name"));
    assert_eq!(name(&world), "from-cloud");
    world.identity = Some("since-ever");
    assert_eq!(name(&world), "since-ever");
    // A contradiction is for the checks to refuse.
    world.given.cluster_name = Some("new".into());
    assert_eq!(name(&world), "new");
}

#[test]
fn a_made_up_name_is_kept_for_the_next_time() {
    let mut world = world();
    world.detected.cluster_name = None;
    let first = world.values();
    let name = first.user["discovery"]["config"]["clusterName"].as_str().unwrap().to_owned();
    assert!(first.notes[0].contains(&name), "{:?}", first.notes);
    world.stored = Some(first.user.clone());
    let second = world.values();
    assert_eq!((second.user, second.notes), (first.user, vec![]));
    let (label, found) = &second.report[0];
    assert_eq!((*label, found.to_string()), ("cluster name", format!("{name} (from what was given before)")));
}

#[test]
fn a_name_that_was_asked_for_needs_no_note() {
    let mut world = world();
    world.given.generate_name = true;
    let values = world.values();
    assert_eq!(values.notes, Vec::<String>::new());
    assert_ne!(values.overrides["discovery"]["config"]["clusterName"], "from-context");
}

#[test]
fn the_report_says_where_each_value_came_from() {
    let mut world = world();
    world.given.pod_cidr = Some("10.5.0.0/16".into());
    let report: Vec<String> =
        world.values().report.iter().map(|(label, found)| format!("{label}: {found}")).collect();
    assert_eq!(
        report,
        ["cluster name: from-context (from the context)", "pod CIDR: 10.5.0.0/16 (from what was given)"]
    );
}

#[test]
fn values_from_before_are_named_and_not_shown() {
    let mut world = world();
    world.stored =
        Some(json!({"image": {"name": "secret.example.com/liqo", "pullSecrets": []}, "enableHA": true}));
    let (label, found) = world.values().report.pop().unwrap();
    assert_eq!(label, "values from before");
    assert_eq!(
        found.to_string(),
        "enableHA, image.name, image.pullSecrets (from the last installation; --reset-values forgets them)"
    );
}

#[test]
fn peers_see_distribution_and_region_beside_the_users_labels() {
    let mut world = world();
    world.distribution = Some(Distribution::Eks);
    world.given.region = Some(Found::new("eu-west-1", "--region"));
    world.given.cluster_labels = [("team".to_owned(), "a".to_owned())].into();
    assert_eq!(
        world.values().overrides["discovery"]["config"]["clusterLabels"],
        json!({"liqo.io/provider": "eks", "topology.kubernetes.io/region": "eu-west-1", "team": "a"})
    );
}

#[test]
fn openshift_chooses_the_user_id_itself() {
    let mut world = world();
    world.distribution = Some(Distribution::Openshift);
    assert_eq!(world.values().overrides["openshiftConfig"]["enable"], true);
}

#[test]
fn a_file_that_is_no_map_and_a_set_that_is_none_are_refused_by_name() {
    let mut world = world();
    world.files = vec![("bad.yaml".into(), json!([1]))];
    let sources = |world: &World| {
        assemble(&Sources {
            detected: &world.detected,
            distribution: None,
            identity_name: None,
            stored: None,
            files: &world.files,
            given: &world.given,
            sets: &world.sets,
        })
        .unwrap_err()
        .to_string()
    };
    assert!(sources(&world).contains("bad.yaml"), "{}", sources(&world));
    world.files.clear();
    world.sets = vec![Set::Typed("nonsense".into())];
    assert!(sources(&world).contains("--set nonsense"), "{}", sources(&world));
}

#[test]
fn settings_are_read_from_all_values() {
    let values = json!({
        "discovery": {"config": {"clusterName": "a", "clusterIDOverride": ""}},
        "networkManager": {"config": {"podCIDR": "10.0.0.0/8", "reservedSubnets": ["10.0.0.0/24"]}},
        "gateway": {"config": {"listeningPort": 5871}},
    });
    let settings = Settings::of(&values);
    assert_eq!(settings.cluster_name.as_deref(), Some("a"));
    assert_eq!(settings.cluster_id, None);
    assert_eq!(settings.reserved_subnets, ["10.0.0.0/24"]);
    assert_eq!(settings.listening_port, Some(5871));
    assert_eq!((settings.auth_node_port, settings.lan_ports), (None, vec![]));
}

#[test]
fn ports_of_nodes_count_only_when_they_are_asked_for() {
    let values = |lan: bool, port: u16| {
        json!({
            "auth": {"service": {"nodePort": port}},
            "discovery": {"config": {"enableAdvertisement": lan}, "metricsPort": 5872, "probesPort": 5873},
        })
    };
    let unasked = Settings::of(&values(false, 0));
    assert_eq!((unasked.auth_node_port, unasked.lan_ports), (None, vec![]));
    let asked = Settings::of(&values(true, 30443));
    assert_eq!((asked.auth_node_port, asked.lan_ports), (Some(30443), vec![5872, 5873]));
}

#[test]
fn who_gives_a_value_that_has_no_effect_is_told_so() {
    let mut world = world();
    world.given =
        Given { broker: Some(true), mtu: Some(1300), listening_port: Some(6000), ..Given::default() };
    world.sets = vec![Set::Text("controllerManager.config.externalMonitor=here:1".into())];
    let notes = world.values().notes;
    for words in [
        "brokerMode (--broker)",
        "networkConfig.mtu (--mtu)",
        "--vpn-listening-port",
        "externalMonitor is kept",
    ] {
        let told = notes.iter().filter(|note| note.contains(words) && note.contains("no effect")).count();
        assert_eq!(told, 1, "{words}: {notes:?}");
    }
    world.given = Given { broker: Some(false), ..Given::default() };
    world.sets = vec![Set::Text("controllerManager.config.externalMonitor=".into())];
    assert_eq!(world.values().notes, Vec::<String>::new());
}

#[test]
fn networks_are_refused_in_words() {
    assert!(network("10.0.0.0/8").is_ok());
    assert!(network("10.0.0.1").unwrap_err().contains("prefix is missing"));
    assert!(network("10.0.0.1/8").unwrap_err().contains("10.0.0.0/8"));
    assert!(network("pods").unwrap_err().contains("10.244.0.0/16"));
    assert!(network("10.0.0.0/33").is_err());
}
