use super::{World, findings, mistyped};
use crate::changes::testing::planned;
use crate::changes::{Action, Planned};
use crate::detect::{Detected, Distribution, Found};
use crate::existing::{Definition, Existing, Identity, Manager, Namespace, Port, Release, Webhook};
use crate::facts::{Facts, NodeFacts, Unread};
use crate::finding::{Finding, Outcome};
use crate::notes::{Notes, State};
use crate::objects::Owner;
use crate::permissions::{Rights, Subject};
use crate::values::Settings;

/// A cluster in which all is well; tests break one thing each.
struct Cluster {
    facts: Facts,
    detected: Detected,
    told: Option<Distribution>,
    existing: Existing,
    settings: Settings,
    planned: Vec<Planned>,
    rights: Rights,
    unreachable: Option<String>,
    force: bool,
}

fn cluster() -> Cluster {
    let node = NodeFacts { name: "n1".into(), ready: true, schedulable: true, ..NodeFacts::default() };
    Cluster {
        facts: Facts {
            version: "v1.34.1".into(),
            nodes: vec![node],
            kubernetes_service: Some("10.96.0.1".into()),
            pod_addresses: vec!["10.244.0.7".into()],
            ..Facts::default()
        },
        detected: Detected::default(),
        told: None,
        existing: Existing::default(),
        settings: Settings {
            cluster_name: Some("turin".into()),
            api_server: Some("https://turin.example.com:6443".into()),
            pod_cidr: Some("10.244.0.0/16".into()),
            service_cidr: Some("10.96.0.0/12".into()),
            listening_port: Some(5871),
            ..Settings::default()
        },
        planned: vec![],
        rights: Rights::default(),
        unreachable: None,
        force: false,
    }
}

impl Cluster {
    fn findings(&self) -> Vec<Finding> {
        findings(&World {
            facts: &self.facts,
            detected: &self.detected,
            told: self.told,
            existing: &self.existing,
            settings: &self.settings,
            planned: &self.planned,
            rights: &self.rights,
            unreachable: self.unreachable.as_deref(),
            version: "0.2.0",
            namespace: "liqo",
            flags: "",
            force: self.force,
        })
    }

    /// The only finding that is not fine.
    fn only(&self) -> Finding {
        let mut bad: Vec<Finding> =
            self.findings().into_iter().filter(|one| one.result != Outcome::Ok).collect();
        assert_eq!(bad.len(), 1, "{bad:#?}");
        let one = bad.remove(0);
        assert!(!one.docs_anchor.is_empty(), "{one}");
        assert!(one.result == Outcome::Warning || !one.hint.is_empty(), "{one}");
        one
    }

    fn fails(&self, word: &str) {
        let one = self.only();
        assert!(one.result == Outcome::Failed && one.to_string().contains(word), "{word}: {one}");
    }

    fn warns(&self, word: &str) {
        let one = self.only();
        assert!(one.result == Outcome::Warning && one.to_string().contains(word), "{word}: {one}");
    }

    fn is_forced(&mut self) {
        self.force = true;
        self.warns("--force");
    }
}

#[test]
fn all_is_well() {
    let bad: Vec<Finding> =
        cluster().findings().into_iter().filter(|one| one.result != Outcome::Ok).collect();
    assert_eq!(bad, []);
}

#[test]
fn kubernetes_must_be_new_enough() {
    for (version, fine) in [
        ("v1.32.0", true),
        ("v1.33.2-gke.1111000", true),
        ("v2.0.0", true),
        ("v1.31.9", false),
        ("v1.29.3+k3s1", false),
    ] {
        let mut cluster = cluster();
        cluster.facts.version = version.into();
        match fine {
            true => assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok), "{version}"),
            false => cluster.fails(version),
        }
    }
    let mut cluster = cluster();
    cluster.facts.version = "dev".into();
    cluster.warns("dev");
}

#[test]
fn a_distribution_that_it_is_not_is_told() {
    let mut cluster = cluster();
    cluster.told = Some(Distribution::Kind);
    cluster.detected.distribution = Some(Found::new(Distribution::Gke, "its version"));
    cluster.warns("it looks like gke");
}

#[test]
fn missing_rights_come_with_what_the_administrator_must_do() {
    let mut cluster = cluster();
    let all = [planned("v1", "ServiceAccount", Some("liqo"), "a", Action::Create)];
    cluster.rights.missing = crate::permissions::needed(&all, "liqo");
    cluster.rights.subject = Some(Subject::User("jane".into()));
    let text = cluster.only().to_string();
    for word in
        ["user jane may not", "kubectl create namespace liqo", "kind: Role", "serviceaccounts", "more", "EOF"]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn rights_that_cannot_be_asked_stop_nothing() {
    let mut cluster = cluster();
    cluster.rights.unasked = Some("no such API".into());
    cluster.warns("no such API");
}

#[test]
fn what_could_not_be_read_is_named() {
    let mut cluster = cluster();
    cluster.facts.unread = vec![Unread { what: "pods of kube-system".into(), why: "forbidden".into() }];
    cluster.warns("pods of kube-system (forbidden)");
}

#[test]
fn nodes_must_be_there_ready_and_at_ease() {
    let mut cluster = cluster();
    cluster.facts.nodes.clear();
    cluster.warns("has no node");
    let mut cluster = self::cluster();
    cluster.facts.nodes[0].ready = false;
    cluster.warns("0 of 1 ready");
    let mut cluster = self::cluster();
    cluster.facts.nodes[0].pressures = vec!["DiskPressure".into()];
    cluster.warns("DiskPressure on n1");
    cluster.warns("make room");
    let mut cluster = self::cluster();
    cluster.facts.nodes[0].schedulable = false;
    cluster.warns("none that takes ordinary pods");
}

#[test]
fn networks_must_be_networks_and_apart() {
    let cases: [(&str, &str, &[&str], &str); 8] = [
        ("10.244.0.0/16", "10.96.0.0/12", &["10.244.3.0/24"], "reserved subnet 10.244.3.0/24 overlap"),
        ("10.0.0.0/8", "10.96.0.0/12", &[], "pod CIDR 10.0.0.0/8 and service CIDR 10.96.0.0/12 overlap"),
        ("10.244.0.0", "10.96.0.0/12", &[], "prefix is missing"),
        ("10.244.0.1/16", "10.96.0.0/12", &[], "10.244.0.0/16"),
        ("pods", "10.96.0.0/12", &[], "is no network"),
        ("10.244.0.0/16", "10.96.0.0/99", &[], "is no network"),
        ("10.244.0.0/16", "10.96.0.0/12", &["nonsense"], "is no network"),
        ("10.244.0.0/16", "10.30.0.0/16", &[], "the Service kubernetes has the address 10.96.0.1"),
    ];
    for (pods, services, reserved, word) in cases {
        let mut cluster = cluster();
        cluster.settings.pod_cidr = Some(pods.into());
        cluster.settings.service_cidr = Some(services.into());
        cluster.settings.reserved_subnets = reserved.iter().map(|&text| text.to_owned()).collect();
        cluster.fails(word);
    }
}

#[test]
fn reserved_networks_may_be_one_in_the_other() {
    let mut cluster = cluster();
    cluster.settings.reserved_subnets = vec!["192.168.0.0/16".into(), "192.168.1.0/24".into()];
    assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok));
}

#[test]
fn unknown_networks_and_stray_pods_are_told() {
    let mut cluster = cluster();
    cluster.settings.pod_cidr = None;
    cluster.warns("--pod-cidr");
    let mut cluster = self::cluster();
    cluster.facts.pod_addresses = vec!["192.168.7.7".into()];
    cluster.warns("192.168.7.7");
}

#[test]
fn peers_must_be_told_a_usable_address() {
    let mut cluster = cluster();
    cluster.settings.api_server = None;
    cluster.warns("--api-server-url");
    cluster.settings.api_server = Some("https://127.0.0.1:6443".into());
    cluster.warns("means another machine");
    cluster.settings.api_server = Some("turin:6443".into());
    cluster.fails("no address of an API server");
    let mut cluster = self::cluster();
    cluster.unreachable = Some("connection refused".into());
    cluster.warns("connection refused");
}

fn used(number: i32, protocol: &str, by: &str) -> Port {
    Port::of(number, Some(protocol), by).unwrap()
}

#[test]
fn the_tunnels_port_must_be_free() {
    let mut cluster = cluster();
    cluster.existing.ports = vec![
        used(5871, "UDP", "DaemonSet vpn/other"),
        used(53, "UDP", "DaemonSet kube-system/dns"),
        used(5874, "TCP", "DaemonSet web/server"),
    ];
    cluster.fails("5871/UDP is used by DaemonSet vpn/other");
    cluster.settings.listening_port = Some(5874);
    assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok));
    cluster.settings.listening_port = None;
    cluster.fails("between 1 and 65535");
}

#[test]
fn ports_that_somebody_chose_must_be_free() {
    let mut cluster = cluster();
    cluster.existing.ports =
        vec![used(30443, "TCP", "Service shop/web"), used(5873, "TCP", "DaemonSet logs/agent")];
    assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok), "nobody asked for them");
    cluster.settings.auth_node_port = Some(30443);
    cluster.fails("30443/TCP is used by Service shop/web");
    cluster.settings.auth_node_port = Some(30444);
    assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok));
    cluster.settings.lan_ports = vec![5872, 5873];
    cluster.fails("5873/TCP is used by DaemonSet logs/agent");
}

fn manager(namespace: &str, owner: Owner) -> Manager {
    Manager { namespace: namespace.into(), owner }
}

#[test]
fn another_liqo_is_refused_with_the_reason() {
    let mut cluster = cluster();
    cluster.existing.definitions = vec![Definition {
        name: "foreignclusters.discovery.liqo.io".into(),
        owner: Owner::Foreign,
        terminating: false,
    }];
    cluster.fails("kinds of another Liqo are there: foreignclusters.discovery.liqo.io");
    cluster.is_forced();

    let mut cluster = self::cluster();
    cluster.existing.managers = vec![manager("liqo", Owner::Foreign)];
    cluster.fails("another Liqo runs in namespace liqo");

    let mut cluster = self::cluster();
    cluster.existing.managers = vec![manager("mine", Owner::Ours)];
    cluster.fails("liqoctl install -n mine");

    let mut cluster = self::cluster();
    cluster.existing.managers = vec![manager("liqo", Owner::Helm)];
    cluster.fails("helm upgrade liqo");

    let mut cluster = self::cluster();
    cluster.existing.releases = vec![Release { namespace: "liqo".into(), name: "liqo".into() }];
    cluster.fails("Helm release liqo in namespace liqo");
    cluster.is_forced();
}

#[test]
fn an_own_installation_is_an_upgrade() {
    let mut cluster = cluster();
    cluster.existing.managers = vec![manager("liqo", Owner::Ours)];
    cluster.existing.notes = Some(notes("0.1.0"));
    let texts: Vec<String> = cluster.findings().iter().map(ToString::to_string).collect();
    assert!(
        texts.iter().any(|text| text.contains("version 0.1.0 is installed: this is an upgrade")),
        "{texts:#?}"
    );
}

#[test]
fn what_we_installed_is_ours_also_without_its_labels() {
    let mut cluster = cluster();
    let name = "foreignclusters.discovery.liqo.io";
    let mut definition =
        planned("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, name, Action::Change);
    let mut role = planned("rbac.authorization.k8s.io/v1", "ClusterRole", None, "m", Action::Change);
    (definition.owner, role.owner) = (Some(Owner::Foreign), Some(Owner::Foreign));
    cluster.existing.definitions =
        vec![Definition { name: name.into(), owner: Owner::Foreign, terminating: false }];
    cluster.existing.notes = Some(Notes { objects: vec![role.id.clone()], ..notes("0.1.0") });
    cluster.planned = vec![definition, role];
    assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok), "{:#?}", cluster.findings());
}

#[test]
fn names_that_others_use_are_refused() {
    let mut cluster = cluster();
    let mut taken = planned(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        None,
        "liqo-controller-manager",
        Action::Change,
    );
    taken.owner = Some(Owner::Foreign);
    cluster.planned = vec![taken.clone()];
    cluster.fails("ClusterRole liqo-controller-manager");
    cluster.is_forced();
    let mut cluster = self::cluster();
    taken.owner = Some(Owner::Helm);
    cluster.planned = vec![taken];
    cluster.fails("Helm installed ClusterRole");
}

fn webhook(owner: Owner, closed: bool) -> Webhook {
    Webhook {
        kind: "MutatingWebhookConfiguration",
        name: "liqo-pods".into(),
        owner,
        dead: vec!["liqo/liqo-webhook".into()],
        closed,
    }
}

#[test]
fn a_dead_webhook_of_ours_is_put_right_and_one_of_others_is_named() {
    let mut cluster = cluster();
    cluster.existing.webhooks = vec![webhook(Owner::Ours, true)];
    cluster.warns("put right by this installation");
    cluster.existing.webhooks = vec![webhook(Owner::Foreign, true)];
    cluster.fails("kubectl delete mutatingwebhookconfiguration liqo-pods");
    cluster.existing.webhooks = vec![webhook(Owner::Foreign, false)];
    cluster.warns("liqo/liqo-webhook, where nobody is");
    cluster.existing.webhooks = vec![Webhook { dead: vec![], ..webhook(Owner::Foreign, true) }];
    assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok));
}

#[test]
fn what_is_still_being_deleted_is_waited_for() {
    let mut cluster = cluster();
    cluster.existing.namespace = Some(Namespace { owner: Owner::Ours, terminating: true });
    cluster.fails("Namespace liqo");
    let mut cluster = self::cluster();
    let mut going = planned("apps/v1", "Deployment", Some("liqo"), "a", Action::Keep);
    going.terminating = true;
    cluster.planned = vec![going];
    cluster.fails("Deployment liqo/a");
}

#[test]
fn a_name_must_be_legal_and_stay() {
    for name in ["Turin", "a_b", "-a", "a.b", &"a".repeat(64)] {
        let mut cluster = cluster();
        cluster.settings.cluster_name = Some(name.into());
        cluster.fails("is not a cluster name");
    }
    let mut cluster = cluster();
    let identity = |name: &str, id: &str| Identity {
        id: Some(id.into()),
        name: Some(name.into()),
        source: "ConfigMap liqo/clusterid-configmap".into(),
    };
    cluster.existing.identity = Some(identity("rome", "1"));
    cluster.fails("is called rome since it was first installed");
    cluster.existing.identity = Some(identity("turin", "1"));
    assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok));
    cluster.settings.cluster_id = Some("2".into());
    cluster.fails("has the ID 1");
}

fn notes(version: &str) -> Notes {
    Notes {
        state: State::Installed,
        version: version.into(),
        values: serde_json::json!({}),
        objects: vec![],
        revision: 1,
    }
}

#[test]
fn a_downgrade_is_refused_unless_forced() {
    for (version, older) in [
        ("0.1.0", false),
        ("0.2.0", false),
        ("0.2.0-rc.1", false),
        ("0.2.1", true),
        ("0.10.0", true),
        ("1.0.0", true),
        ("junk", false),
    ] {
        let mut cluster = cluster();
        cluster.existing.notes = Some(notes(version));
        if older {
            cluster.fails(&format!("{version} is installed, this liqoctl brings 0.2.0"));
            cluster.is_forced();
        } else {
            assert!(cluster.findings().iter().all(|one| one.result == Outcome::Ok), "{version}");
        }
    }
}

#[test]
fn mistyped_values_are_found_before_anything_is_rendered() {
    let settings = Settings {
        cluster_name: Some("Not A Name".into()),
        pod_cidr: Some("10.0.0.0/40".into()),
        ..cluster().settings
    };
    assert_eq!(mistyped(&settings, &Existing::default()).len(), 2);
    assert_eq!(mistyped(&cluster().settings, &Existing::default()), []);
}
