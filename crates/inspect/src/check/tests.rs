mod anchors;
mod pods;

use serde_json::{Value, json};

use super::worlds::{Cluster, healthy};
use crate::webhook::{Answer, Webhook};
use liqo_install::finding::Outcome::{self, Failed, Ok as Good, Warning};

/// The one line that is not as it should be.
fn problem(cluster: &Cluster) -> (Outcome, String, String) {
    let finding = cluster.only_problem();
    (finding.result, format!("{}: {}", finding.name, finding.why), finding.hint)
}

/// Asserts the mark, words of the line and words of the hint.
fn expect(cluster: &Cluster, outcome: Outcome, line: &[&str], hint: &str) {
    let (found, text, said) = problem(cluster);
    assert_eq!(found, outcome, "{text}");
    for words in line {
        assert!(text.contains(words), "{words:?} is not in {text:?}");
    }
    assert!(said.contains(hint), "{hint:?} is not in {said:?}");
}

#[test]
fn a_healthy_installation_has_only_good_findings() {
    let report = healthy().report();
    assert!(report.healthy && report.problems().is_empty(), "{:#?}", report.problems());
    let names: Vec<&str> = report.sections.iter().map(|section| section.name.as_str()).collect();
    let expected = [
        "kubernetes-api",
        "kubernetes-version",
        "permissions",
        "namespace",
        "kinds",
        "control-plane",
        "identity",
        "configuration",
        "network",
        "authentication",
        "webhooks",
        "peers",
    ];
    assert_eq!(names, expected);
    assert!(
        report.sections.iter().flat_map(|it| &it.findings).all(|it| it.result == Good && it.hint.is_empty())
    );
}

#[test]
fn an_old_kubernetes_and_clocks_that_differ_are_seen() {
    let mut cluster = healthy();
    cluster.version = "v1.31.9+k3s1".into();
    expect(&cluster, Failed, &["1.32 or later", "v1.31.9+k3s1"], "Upgrade the cluster");
    cluster.version = "v1.32.0-gke.100".into();
    cluster.ahead = -95;
    expect(&cluster, Warning, &["agree on the time", "95 s behind"], "NTP");
}

#[test]
fn an_absent_manager_is_one_failure_that_says_where_it_is_instead() {
    let mut cluster = healthy().without("Deployment", "liqo-controller-manager");
    expect(&cluster, Failed, &["liqo is installed", "namespace liqo"], "liqoctl install");
    cluster.elsewhere = vec!["liqo-system".into()];
    expect(&cluster, Failed, &["liqo is installed"], "-n liqo-system");
}

#[test]
fn a_missing_right_is_named_and_nothing_else_is_claimed() {
    let report = healthy().forbid("Pod").report();
    assert!(!report.healthy);
    let problems = report.problems();
    assert!(problems[0].why.contains("missing: list Pod.g in namespace liqo"), "{problems:#?}");
    assert!(
        problems[1..].iter().all(|it| it.result == Warning && it.why.starts_with("not looked at")),
        "{problems:#?}"
    );
    let secret = healthy().forbid("Secret");
    expect(&secret, Warning, &["the key that proves", "not looked at"], "");
}

#[test]
fn the_manager_s_account_must_be_bound_to_its_roles() {
    expect(
        &healthy().without("RoleBinding", "liqo-controller-manager"),
        Failed,
        &["account has its rights", "RoleBinding liqo-controller-manager is not there"],
        "liqoctl install again",
    );
    let other = healthy().set("ClusterRoleBinding", "/subjects/0/namespace", &json!("elsewhere"));
    expect(&other, Failed, &["does not name ServiceAccount"], "liqoctl install again");
    let view = healthy().set("ClusterRoleBinding", "/roleRef/name", &json!("view"));
    expect(&view, Failed, &["gives ClusterRole view instead"], "liqoctl install again");
}

#[test]
fn a_role_must_allow_what_this_version_does_and_nothing_is_said_about_others() {
    let short = healthy().set("Role", "/rules", &json!([]));
    expect(
        &short,
        Failed,
        &["Role liqo-controller-manager lacks: ", "get leases.coordination.k8s.io"],
        "liqoctl install again",
    );
    let other = short.set("ClusterConfig", "/status/version", &json!("0.0.9"));
    assert!(other.report().problems().iter().all(|it| !it.why.contains("lacks")));
}

#[test]
fn the_namespace_must_stay_and_have_a_level() {
    let going = healthy()
        .set("Namespace", "/metadata/deletionTimestamp", &json!("2030-06-01T11:00:00Z"))
        .set("Namespace", "/status", &json!({"phase": "Terminating", "conditions": [
            {"type": "NamespaceContentRemaining", "status": "True", "message": "Some resources are remaining: pods."}
        ]}));
    expect(&going, Failed, &["being deleted", "Some resources are remaining"], "Wait until it is gone");
    let none = healthy().set("Namespace", "/metadata/labels", &json!({}));
    expect(
        &none,
        Warning,
        &["Pod Security"],
        "kubectl label namespace liqo pod-security.kubernetes.io/enforce=restricted",
    );
    let unknown = healthy().set(
        "Namespace",
        "/metadata/labels",
        &json!({"pod-security.kubernetes.io/enforce": "strict"}),
    );
    expect(&unknown, Warning, &["\"strict\""], "--overwrite");
}

#[test]
fn other_clusters_must_be_able_to_come() {
    let report = healthy().report();
    let shown: Vec<_> =
        report.sections.iter().flat_map(|it| &it.findings).map(|it| it.why.as_str()).collect();
    assert!(shown.contains(&"https://192.0.2.7:31520"), "{shown:?}");
    assert_eq!(healthy().status().auth_url.as_deref(), Some("https://192.0.2.7:31520"));

    expect(&healthy().without("Service", "liqo-auth"), Failed, &["is not there"], "liqoctl install again");
    let waiting = healthy().set("Service", "/spec/type", &json!("LoadBalancer"));
    expect(&waiting, Warning, &["no load balancer", "https://192.0.2.7:31520"], "auth.service.type=NodePort");
    let inside = healthy().set("Service", "/spec/type", &json!("ClusterIP"));
    expect(&inside, Warning, &["inside the cluster only"], "Only this cluster can call others");
    let forwarded = inside.set(
        "Deployment",
        "/spec/template/spec/containers/0/args",
        &json!([
            "manager",
            "--auth-service-address-override=old.example.com",
            "--auth-service-address-override=liqo.example.com",
            "--auth-service-port-override=8443"
        ]),
    );
    assert_eq!(forwarded.status().auth_url.as_deref(), Some("https://liqo.example.com:8443"));
    assert!(forwarded.report().problems().is_empty());
    let unseen = healthy().forbid("Node");
    expect(&unseen, Warning, &["no permission to read Node"], "");
}

#[test]
fn what_is_on_the_local_network_must_run() {
    let discovery = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "liqo-discovery", "namespace": "liqo" },
        "spec": { "replicas": 1, "selector": {}, "template": { "spec": { "containers": [
            { "name": "discovery", "args": ["discovery", "--mdns-enable-discovery=true", "--mdns-enable-advertisement=false"] }
        ] } } },
        "status": { "availableReplicas": 1 },
    });
    let found = healthy().with(discovery.clone());
    assert!(found.report().problems().is_empty());
    let local = found.status().local_network.unwrap();
    assert!(local.discovery && !local.advertisement);
    let mut refused = discovery.clone();
    refused["status"] = json!({ "conditions": [
        { "type": "ReplicaFailure", "status": "True", "message": "violates PodSecurity \"restricted:latest\"" }
    ] });
    expect(&healthy().with(refused), Failed, &["0 of 1", "violates PodSecurity"], "The lines below");
    let none = healthy().with(discovery).set("Namespace", "/metadata/labels", &json!({}));
    expect(&none, Warning, &["Pod Security"], "enforce=privileged");
}

#[test]
fn kinds_must_be_there_established_and_of_this_version() {
    let mut missing = healthy();
    missing.definitions.retain(|it| it.spec.names.kind != "ShadowPod");
    expect(
        &missing,
        Failed,
        &["kind ShadowPod", "shadowpods.virtualkubelet.liqo.io is not there"],
        "liqoctl install again",
    );

    let mut refused = healthy();
    refused.definitions[0].status = serde_json::from_value(json!({"conditions": [
        {"type": "NamesAccepted", "status": "False", "message": "\"lcc\" is already in use"}
    ]}))
    .unwrap();
    expect(&refused, Failed, &["kind ClusterConfig", "\"lcc\" is already in use"], "taken its names");

    let mut different = healthy();
    let at = different.definitions.iter().position(|it| it.spec.names.kind == "ForeignCluster").unwrap();
    let schema = different.definitions[at].spec.versions[0].schema.as_mut().unwrap();
    schema.open_api_v3_schema.as_mut().unwrap().description = Some("another".into());
    expect(&different, Failed, &["the kinds are those of 0.1.0", "ForeignCluster"], "liqoctl install again");
    different.definitions[at].metadata.deletion_timestamp =
        serde_json::from_value(json!("2030-06-01T11:00:00Z")).unwrap();
    assert!(different.report().problems().iter().any(|it| it.why.contains("being deleted")));
}

#[test]
fn another_version_s_kinds_beside_its_manager_are_only_worth_a_look() {
    let mut other =
        healthy().set("ClusterConfig", "/status/version", &json!("0.2.0")).change("Deployment", |it| {
            it["metadata"]["labels"]["app.kubernetes.io/version"] = json!("0.2.0");
        });
    other.definitions[0].spec.versions[0].schema = None;
    let report = other.report();
    assert!(report.healthy, "{:#?}", report.problems());
    let lines: Vec<String> = report.problems().iter().map(ToString::to_string).collect();
    assert!(lines.iter().any(|it| it.contains("liqoctl is 0.1.0, the manager 0.2.0")), "{lines:#?}");
    assert!(
        lines.iter().any(|it| it.contains("different: ClusterConfig; the manager is 0.2.0")),
        "{lines:#?}"
    );
}

#[test]
fn an_upgrade_that_is_stuck_is_seen() {
    let stuck = healthy()
        .change("Deployment", |it| it["metadata"]["labels"]["app.kubernetes.io/version"] = json!("0.2.0"));
    expect(&stuck, Warning, &["0.2.0 is installed, but 0.1.0 leads"], "whether the new pod starts");
}

fn replicas(wanted: u32, available: u32, conditions: &Value) -> Cluster {
    healthy()
        .set("Deployment", "/spec/replicas", &json!(wanted))
        .set("Deployment", "/status/availableReplicas", &json!(available))
        .set("Deployment", "/status/conditions", conditions)
}

#[test]
fn the_deployment_must_be_available() {
    expect(
        &replicas(0, 0, &json!([])),
        Failed,
        &["scaled to 0"],
        "scale deployment liqo-controller-manager --replicas=1",
    );
    let quota = json!([{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: small"}]);
    expect(&replicas(2, 1, &quota), Failed, &["1 of 2 replicas", "exceeded quota: small"], "below");
    expect(&replicas(1, 1, &quota), Warning, &["does not get through", "exceeded quota"], "rollout status");
}

#[test]
fn somebody_must_lead() {
    expect(
        &healthy().later(16),
        Failed,
        &["one manager leads", "renewed it 16s ago; it was good for 15 s"],
        "liqoctl logs --all",
    );
    assert!(healthy().later(14).report().healthy);
    expect(
        &healthy().set("Lease", "/spec/holderIdentity", &json!("")),
        Failed,
        &["the lease is free"],
        "liqoctl logs --all",
    );
    let none = healthy().without("Lease", "liqo-controller-manager");
    expect(&none, Failed, &["no lease has been taken"], "liqoctl logs --all");
}

#[test]
fn the_identity_must_be_whole() {
    let lost = healthy().without("Secret", "liqo-identity");
    expect(&lost, Failed, &["Secret liqo-identity is gone"], "delete configmap clusterid-configmap");
    let no_map = healthy().without("ConfigMap", "clusterid-configmap");
    expect(&no_map, Failed, &["a name and an ID", "clusterid-configmap is not there"], "liqoctl logs");
    let half = healthy().set("Secret", "/data", &json!({"public-key": "eA=="}));
    expect(&half, Failed, &["has no private-key"], "backup");
}

#[test]
fn the_identity_must_be_the_same_everywhere() {
    let id = healthy().set("ClusterConfig", "/status/clusterIdentity/clusterID", &json!("other"));
    expect(
        &id,
        Failed,
        &["the same identity", "ID: ", "the ClusterConfig says other"],
        "delete the ConfigMap",
    );
    let key = healthy().set("ClusterConfig", "/status/fingerprint", &json!("00"));
    expect(&key, Failed, &["fingerprint: ", "5edf1746"], "backup");
    let wrong = healthy().change("ConfigMap", |map| map["data"]["CLUSTER_NAME"] = json!("Not A Name"));
    let report = wrong.report();
    assert!(
        report.problems().iter().any(|it| it.why.contains("\"Not A Name\" is not a cluster name")),
        "{:#?}",
        report.problems()
    );
}

#[test]
fn conditions_must_be_true() {
    let sad = healthy().set(
        "ClusterConfig",
        "/status/conditions/1",
        &json!({
            "type": "Ready", "status": "False", "reason": "KeyLost", "message": "restore the Secret"
        }),
    );
    expect(&sad, Failed, &["Ready is true", "it is False: KeyLost: restore the Secret"], "liqoctl logs");
    let none = healthy().set("ClusterConfig", "/status/conditions", &json!([]));
    expect(&none, Failed, &["no conditions yet"], "liqoctl logs");
    let absent = healthy().without("ClusterConfig", "liqo");
    let report = absent.report();
    assert!(
        report.problems().iter().any(|it| it.why.contains("ClusterConfig liqo is not there")),
        "{:#?}",
        report.problems()
    );
}

fn network(key: &str, value: &str) -> Cluster {
    healthy().change("ConfigMap", |map| {
        if map["metadata"]["name"] == "liqo-network" {
            map["data"][key] = json!(value);
        }
    })
}

#[test]
fn networks_must_be_known_legal_and_distinct() {
    expect(
        &network("podCIDR", "10.80.128.0/17"),
        Failed,
        &["10.80.128.0/17 (pods) and 10.80.0.0/16 (Services) overlap"],
        "--pod-cidr",
    );
    expect(
        &network("reservedSubnets", "192.168.0.0/16, 10.0.0.0/8"),
        Failed,
        &["reserved networks) overlap"],
        "--pod-cidr",
    );
    expect(&network("podCIDR", "10.200.0.0"), Failed, &["podCIDR has \"10.200.0.0\""], "liqo-network");
    expect(
        &network("serviceCIDR", ""),
        Warning,
        &["not known: the network of the Services"],
        "--service-cidr",
    );
    assert!(network("podCIDR", "10.200.0.0/17,10.200.128.0/17,fd00::/48").report().problems().is_empty());
    expect(
        &healthy().without("ConfigMap", "liqo-network"),
        Failed,
        &["liqo-network is not there"],
        "liqoctl install again",
    );
}

#[test]
fn policies_that_restrict_what_goes_out_are_worth_a_look() {
    let policy = |spec: Value| {
        healthy().with(json!({"kind": "NetworkPolicy", "apiVersion": "networking.k8s.io/v1",
                              "metadata": {"name": "deny-all", "namespace": "liqo"}, "spec": spec}))
    };
    let all = json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]});
    expect(&policy(all), Warning, &["deny-all restricts"], "API servers");
    for harmless in [
        json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}),
        json!({"podSelector": {"matchLabels": {"app": "other"}}, "policyTypes": ["Egress"]}),
        json!({"podSelector": {"matchExpressions": [{"key": "app.kubernetes.io/name", "operator": "NotIn", "values": ["liqo"]}]},
               "policyTypes": ["Egress"]}),
        json!({"podSelector": {}}),
    ] {
        assert!(policy(harmless.clone()).report().problems().is_empty(), "{harmless}");
    }
}

#[test]
fn a_flow_schema_without_its_level_is_worth_a_look() {
    let schema = |status: &str| {
        healthy().with(json!({"kind": "FlowSchema", "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "metadata": {"name": "liqo-controller-manager", "labels": {"app.kubernetes.io/part-of": "liqo-rs"}},
            "status": {"conditions": [{"type": "Dangling", "status": status}]}}))
    };
    expect(&schema("True"), Warning, &["FlowSchema liqo-controller-manager"], "liqoctl install again");
    assert!(schema("False").report().problems().is_empty());
}

#[test]
fn a_webhook_without_its_service_is_told_with_the_command_that_removes_it() {
    let mut left = healthy();
    left.webhooks = vec![Webhook {
        kind: "mutatingwebhookconfiguration",
        configuration: "liqo-pods".into(),
        name: "pods.liqo.io".into(),
        failure_policy: "Fail".into(),
        namespace: "liqo".into(),
        service: "liqo-webhook".into(),
        answer: Answer::NoService,
    }];
    expect(
        &left,
        Failed,
        &["pods.liqo.io is answered", "Service liqo-webhook"],
        "kubectl delete mutatingwebhookconfiguration liqo-pods",
    );
    left.webhooks[0].failure_policy = "Ignore".into();
    expect(&left, Warning, &["pods.liqo.io"], "kubectl delete");
    left.webhooks[0].answer = Answer::Nobody;
    expect(&left, Warning, &["behind which no pod is ready"], "kubectl delete");
    left.webhooks[0].answer = Answer::Somebody;
    assert!(left.report().problems().is_empty());
}

#[test]
fn a_webhook_that_outlived_everything_else_is_seen_too() {
    let mut left = healthy().without("Deployment", "liqo-controller-manager");
    left.webhooks = vec![Webhook {
        kind: "validatingwebhookconfiguration",
        configuration: "liqo".into(),
        name: "v.liqo.io".into(),
        failure_policy: "Fail".into(),
        namespace: "liqo".into(),
        service: "gone".into(),
        answer: Answer::NoService,
    }];
    let lines: Vec<String> = left.report().problems().iter().map(ToString::to_string).collect();
    assert!(lines.iter().any(|line| line.contains("v.liqo.io")), "{lines:#?}");
}

#[test]
fn a_cluster_that_was_only_found_is_no_trouble() {
    let conditions = |outgoing: &str| {
        json!([
            { "type": "OutgoingPeering", "status": outgoing },
            { "type": "AuthenticationStatus", "status": "EmptyDenied", "message": "there is no token" },
        ])
    };
    let world =
        |outgoing| healthy().set("ForeignCluster", "/status/peeringConditions", &conditions(outgoing));
    assert!(world("None").report().problems().is_empty());
    expect(&world("Pending"), Warning, &["EmptyDenied: there is no token"], "provider-b");
}

#[test]
fn a_peer_in_trouble_is_named_with_its_message() {
    let denied = healthy().set(
        "ForeignCluster",
        "/status/peeringConditions/1",
        &json!({
            "type": "AuthenticationStatus", "status": "Denied", "message": "the token has expired"
        }),
    );
    expect(
        &denied,
        Warning,
        &["peer provider-b", "AuthenticationStatus is Denied: the token has expired"],
        "provider-b",
    );
}

#[test]
fn an_unreachable_cluster_is_a_finding() {
    let report = super::unreachable("connection refused", "Is it running?", false);
    assert!(!report.healthy);
    assert_eq!(report.problems()[0].docs_anchor, super::docs::API_SERVER);
}

#[test]
fn a_status_has_everything_and_the_problems_at_the_end() {
    let status = healthy().status();
    let value = serde_json::to_value(&status).unwrap();
    for (pointer, expected) in [
        ("/installed", json!(true)),
        ("/healthy", json!(true)),
        ("/cluster/name", json!("provider-a")),
        ("/cluster/id", json!("0b1c6f3e-7a52-4c8d-9a53-2f9f3d3f6a10")),
        ("/workingMode", json!("Autonomous")),
        ("/versions/manager", json!("0.1.0")),
        ("/versions/kubernetes", json!("v1.34.4")),
        ("/leader/name", json!("liqo-controller-manager-7d9f8-x2k4q")),
        ("/network/podCIDR", json!("10.200.0.0/16")),
        ("/conditions/1/type", json!("Ready")),
        ("/pods/0/readyContainers", json!(1)),
        ("/pods/0/node", json!("node-1")),
        ("/pods/0/image", json!("liqo:0.1.0")),
        ("/peers/0/outgoing", json!("Established")),
        ("/peers/0/incoming", json!("None")),
        ("/problems", json!([])),
    ] {
        assert_eq!(value.pointer(pointer), Some(&expected), "{pointer}");
    }
    let bad = pods::waiting("ImagePullBackOff", "no").status();
    assert!(!bad.healthy && bad.installed);
    assert_eq!(bad.problems[0].name, "pod liqo-controller-manager-7d9f8-x2k4q is ready");
    let absent = healthy().without("Deployment", "liqo-controller-manager").status();
    assert!(!absent.installed && absent.versions.manager.is_none());
}
