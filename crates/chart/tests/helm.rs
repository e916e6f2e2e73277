//! The chart by the real Helm, and by us: the same objects, or the same refusal.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/helm.rs"]
#[expect(dead_code, reason = "files of the repository are read elsewhere")]
mod support;

use liqo_chart::{Chart, values};
use serde_json::{Value, json};
use support::{Set, chart_directory, find, helm, key, release, sets, template, text};

#[test]
fn helm_finds_nothing_to_complain_about() {
    for set in sets() {
        let chart = chart_directory();
        let output = helm([
            "lint".as_ref(),
            "--strict".as_ref(),
            chart.as_os_str(),
            "-f".as_ref(),
            set.path.as_os_str(),
        ]);
        assert!(output.status.success(), "{}: {}{}", set.name, text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn helm_and_we_render_the_same_objects_in_the_same_order() {
    let sets = sets();
    assert!(sets.len() >= 8, "too few value sets: {sets:?}");
    for set in &sets {
        for (name, namespace) in [("liqo", "liqo"), ("x-1", "123")] {
            same(set, name, namespace);
        }
    }
}

fn same(set: &Set, name: &str, namespace: &str) {
    let release = release(name, namespace);
    let theirs = template(&release, ["-f".as_ref(), set.path.as_os_str()])
        .unwrap_or_else(|error| panic!("{}: Helm cannot render it: {error}", set.name));
    let ours = ours(&release, &set.text)
        .unwrap_or_else(|error| panic!("{}: we cannot render it: {error}", set.name));
    compare(&set.name, &theirs, &ours);
}

fn ours(release: &liqo_chart::Release, text: &str) -> Result<Vec<Value>, String> {
    let given = values::load(text).expect("the value set is YAML");
    Chart::embedded().render(release, &given).map_err(|error| error.to_string())
}

fn compare(what: &str, theirs: &[Value], ours: &[Value]) {
    let keys = |objects: &[Value]| objects.iter().map(key).collect::<Vec<_>>();
    assert_eq!(keys(theirs), keys(ours), "{what}: objects or their order differ (Helm's left)");
    for (theirs, ours) in theirs.iter().zip(ours) {
        assert_eq!(theirs, ours, "{what}: {} differs (Helm's left)", key(theirs));
    }
}

#[test]
fn values_on_the_command_line_are_read_as_helm_reads_them() {
    let cases: &[&[&str]] = &[
        &["enableHA=true"],
        &["enableHA=true,controllerManager.replicas=3,image.tag=v1"],
        &["controllerManager.pod.extraArgs={--broker-mode=true,--foreign-cluster-workers=2}"],
        &["controllerManager.pod.extraArgs[0]=--a,controllerManager.pod.extraArgs[1]=--b=c\\,d"],
        &["image.pullSecrets[0].name=a,image.pullSecrets[1].name=b"],
        &["controllerManager.pod.resources.limits.cpu=null"],
        &["controllerManager.pod.annotations.example\\.com/list=a\\,b"],
        &["controllerManager.pod.annotations.x=", "controllerManager.pod.annotations.y=a=b"],
        &["controllerManager.pod.resources.limits.cpu=2", "controllerManager.pod.resources.limits.cpu=3"],
        &["networkManager.config.reservedSubnets={10.0.0.0/8}"],
        &["controllerManager.pod.nodeSelector.kubernetes\\.io/os=null"],
    ];
    for case in cases {
        let release = release("liqo", "liqo");
        let arguments = case.iter().flat_map(|expression| ["--set", expression]);
        let theirs = template(&release, arguments).unwrap_or_else(|error| panic!("{case:?}: {error}"));
        let mut given = json!({});
        for expression in *case {
            values::set(&mut given, expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        }
        let ours = Chart::embedded().render(&release, &given);
        compare(&format!("{case:?}"), &theirs, &ours.unwrap_or_else(|error| panic!("{case:?}: {error}")));
    }
}

#[test]
fn texts_on_the_command_line_stay_texts() {
    let expression = "discovery.config.clusterLabels.gpu=true,discovery.config.clusterLabels.count=12";
    let release = release("liqo", "liqo");
    let theirs = template(&release, ["--set-string", expression]).expect("Helm takes them");
    let mut given = json!({});
    values::set_string(&mut given, expression).expect("we take them");
    compare(expression, &theirs, &Chart::embedded().render(&release, &given).expect("we render them"));
    assert!(arguments(&theirs).contains(&"--cluster-labels=count=12,gpu=true".to_owned()));
}

/// Values that must be refused, and a word by which the user finds the place.
const REFUSED: &[(&str, &str)] = &[
    ("controlerManager: {replicas: 2}", "controlerManager"),
    ("controllerManager: {config: {resourceSharing: 5}}", "resourceSharing"),
    ("controllerManager: {config: {resourceSharingPercentage: 101}}", "resourceSharingPercentage"),
    ("controllerManager: {config: {resourceSharingPercentage: -1}}", "resourceSharingPercentage"),
    ("controllerManager: {config: {resourceSharingPercentage: 30%}}", "resourceSharingPercentage"),
    ("controllerManager: {config: {resourceSharingPercentage: 12.5}}", "resourceSharingPercentage"),
    ("controllerManager: {config: {resourceSharingPercentage: null}}", "resourceSharingPercentage"),
    ("controllerManager: {config: {brokerMode: 'yes'}}", "brokerMode"),
    ("controllerManager: {config: {externalMonitor: 'broker'}}", "externalMonitor"),
    ("controllerManager: {config: {externalMonitor: 'broker:70000'}}", "externalMonitor"),
    ("controllerManager: {replicas: 0}", "replicas"),
    ("controllerManager: {logFormat: xml}", "logFormat"),
    ("controllerManager: {logFilter: ''}", "logFilter"),
    ("controllerManager: {pod: {extraArgs: --broker-mode=true}}", "extraArgs"),
    ("controllerManager: {pod: {extraArgs: [1]}}", "extraArgs"),
    ("controllerManager: {pod: {labels: {gpu: true}}}", "gpu"),
    ("controllerManager: {pod: {labels: {'not a key': x}}}", "not a key"),
    ("controllerManager: {pod: {labels: {app.kubernetes.io/name: mine}}}", "app.kubernetes.io/name"),
    ("controllerManager: null", "controllerManager"),
    ("discovery: {config: {clusterName: Milan}}", "clusterName"),
    ("discovery: {config: {clusterName: -a}}", "clusterName"),
    ("discovery: {config: {clusterName: 123}}", "clusterName"),
    (
        "discovery: {config: {clusterName: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}}",
        "clusterName",
    ),
    ("discovery: {config: {clusterIDOverride: 'a b'}}", "clusterIDOverride"),
    ("discovery: {config: {clusterLabels: {a: 'b c'}}}", "clusterLabels"),
    ("discovery: {config: {ttl: 0}}", "ttl"),
    ("discovery: {config: {interfaces: ['a b']}}", "interfaces"),
    ("discovery: {config: {interfaces: [an-interface-with-a-long-name]}}", "interfaces"),
    ("discovery: {config: {ipFamilies: [ipv5]}}", "ipFamilies"),
    ("discovery: {config: {nameServers: ['dns.example.com:53']}}", "nameServers"),
    (
        "discovery: {pod: {labels: {app.kubernetes.io/name: mine}}, config: {enableDiscovery: true}}",
        "discovery.pod.labels",
    ),
    ("discovery: {metricsPort: 0}", "metricsPort"),
    ("auth: {service: {type: ExternalName}}", "type"),
    ("auth: {service: {nodePort: 70000}}", "nodePort"),
    ("auth: {service: {externalTrafficPolicy: Global}}", "externalTrafficPolicy"),
    ("auth: {config: {addressOverride: 'https://liqo.example.com'}}", "addressOverride"),
    ("auth: {config: {portOverride: 0}}", "portOverride"),
    ("auth: {config: {portOverride: https}}", "portOverride"),
    ("auth: {tls: false}", "tls"),
    ("apiServer: {trustedCA: 'yes'}", "trustedCA"),
    ("networkManager: {config: {podCIDR: 10.244.0.0}}", "podCIDR"),
    ("networkManager: {config: {podCIDR: 10.244.0.0/33}}", "podCIDR"),
    ("networkManager: {config: {podCIDR: 10.256.0.0/16}}", "podCIDR"),
    ("networkManager: {config: {serviceCIDR: 0.0.0.0/0}}", "serviceCIDR"),
    ("networkManager: {config: {reservedSubnets: [10.0.0.0/8, '']}}", "reservedSubnets"),
    ("networkConfig: {mtu: '1440'}", "mtu"),
    ("networkConfig: {mtu: 100}", "mtu"),
    ("gateway: {config: {listeningPort: 65536}}", "listeningPort"),
    ("image: {name: 'liqo:0.1.0'}", "name"),
    ("image: {tag: 'a b'}", "tag"),
    ("image: {tag: 0.1}", "tag"),
    ("image: {digest: 'sha256:abc'}", "digest"),
    ("image: {pullPolicy: Sometimes}", "pullPolicy"),
    ("image: {pullSecrets: [credentials]}", "pullSecrets"),
    ("podSecurity: strict", "podSecurity"),
    ("createNamespace: 1", "createNamespace"),
    ("apiServer: {address: 'https://a b:6443'}", "address"),
    ("metrics: {serviceMonitor: {interval: often}}", "interval"),
    (
        "metrics: {serviceMonitor: {enabled: true, labels: {app.kubernetes.io/part-of: x}}}",
        "metrics.serviceMonitor.labels",
    ),
    ("metrics: {grafanaDashboard: {namespace: Monitoring}}", "namespace"),
    ("networkPolicies: {metricsFrom: [prometheus]}", "metricsFrom"),
];

#[test]
fn what_makes_no_sense_is_refused_with_its_place_by_helm_and_by_us() {
    let directory = std::env::temp_dir().join(format!("liqo-chart-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for value files");
    let file = directory.join("values.yaml");
    let mut wrong = vec![];
    for (yaml, place) in REFUSED {
        std::fs::write(&file, yaml).expect("a value file can be written");
        let release = release("liqo", "liqo");
        let theirs = template(&release, ["-f".as_ref(), file.as_os_str()]);
        for (who, outcome) in [("Helm", theirs), ("we", ours(&release, yaml))] {
            match outcome {
                Ok(_) => wrong.push(format!("{who} accepted {yaml}")),
                Err(error) if !error.contains(place) => wrong.push(format!("{who}: {yaml}: {error}")),
                Err(_) => {}
            }
        }
    }
    std::fs::remove_dir_all(&directory).expect("the directory can be removed");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_old_kubernetes_is_refused_by_helm_and_by_us() {
    for (version, accepted) in
        [("1.31.9", false), ("1.32.0", true), ("1.33.5-gke.1162000", true), ("1.35.0", true)]
    {
        let mut release = release("liqo", "liqo");
        version.clone_into(&mut release.kubernetes_version);
        let (theirs, ours) = (template(&release, [""; 0]), ours(&release, "{}"));
        assert_eq!(theirs.is_ok(), accepted, "Helm, {version}: {theirs:?}");
        assert_eq!(ours.is_ok(), accepted, "we, {version}: {ours:?}");
        for error in [theirs.err(), ours.err()].into_iter().flatten() {
            assert!(error.contains("1.31.9") && error.contains("1.32.0"), "{error}");
        }
    }
}

/// Arguments of the manager.
fn arguments(objects: &[Value]) -> Vec<String> {
    let deployment = find(objects, "Deployment", "liqo-controller-manager");
    let arguments = deployment.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
    let arguments = arguments.expect("the manager has arguments").iter();
    arguments.map(|argument| argument.as_str().expect("an argument is a text").to_owned()).collect()
}

#[test]
fn arguments_given_by_hand_come_last_and_unchanged() {
    let set = sets().into_iter().find(|set| set.name == "extra-args").expect("the value set is there");
    let given = values::load(&set.text).expect("the value set is YAML");
    let given = given["controllerManager"]["pod"]["extraArgs"].as_array().expect("a list");
    let objects =
        template(&release("liqo", "liqo"), ["-f".as_ref(), set.path.as_os_str()]).expect("it renders");
    let arguments = arguments(&objects);
    let tail: Vec<Value> =
        arguments[arguments.len() - given.len()..].iter().map(|text| json!(text)).collect();
    assert_eq!(&tail, given);
    assert!(
        arguments.contains(&"--kubelet-image=capacitorset/liqo-broker-vk:latest".to_owned()),
        "{arguments:?}"
    );
}

#[test]
fn pods_start_anew_exactly_when_their_configuration_changed() {
    let pods = |more: &[&str]| {
        let objects = template(&release("liqo", "liqo"), more).expect("it renders");
        find(&objects, "Deployment", "liqo-controller-manager")["spec"]["template"].clone()
    };
    let before = pods(&[]);
    assert_eq!(before, pods(&["--set", "metrics.serviceMonitor.enabled=true,networkPolicies.enabled=false"]));
    assert_ne!(before, pods(&["--set", "networkConfig.mtu=1300"]));
    assert_ne!(before, pods(&["--set", "controllerManager.config.resourceSharingPercentage=31"]));
}

#[test]
fn selectors_are_the_same_whatever_the_values_are() {
    let selectors = |set: &Set| {
        let objects =
            template(&release("liqo", "liqo"), ["-f".as_ref(), set.path.as_os_str()]).expect("it renders");
        find(&objects, "Deployment", "liqo-controller-manager")["spec"]["selector"].clone()
    };
    // A Deployment's selector can never change: this is what clusters out there have.
    let expected = json!({"matchLabels": {
        "app.kubernetes.io/name": "liqo",
        "app.kubernetes.io/instance": "liqo",
        "app.kubernetes.io/component": "controller-manager",
    }});
    for set in sets() {
        assert_eq!(selectors(&set), expected, "{}", set.name);
    }
}
