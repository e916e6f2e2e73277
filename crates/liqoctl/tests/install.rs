//! `liqoctl install` against an API server: what it checks, refuses, writes and leaves alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod support;

use liqo_sandbox::{ClusterSpec, Component};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use support::{CLUSTER, Manager, World, difference, everything, settled, until, until_as_before};

#[tokio::test(flavor = "multi_thread")]
async fn installing_to_an_api_server() {
    let world = World::start(ClusterSpec::api_only(CLUSTER)).await;
    what_only_looks_changes_nothing(&world).await;
    values_go_to_a_file_that_is_not_overwritten(&world);
    bad_values_are_refused_before_anything_is_written(&world).await;
    without_rights_the_missing_ones_are_named(&world).await;
    another_liqo_is_refused(&world).await;
    a_dead_webhook_of_others_is_named_and_forced_away(&world);
    without_controllers_it_says_so_and_goes_on_later(&world).await;
    again_changes_nothing(&world).await;
    definitions_are_put_right(&world);
    values_are_kept_and_can_be_forgotten(&world);
    what_is_no_longer_needed_goes(&world);
    a_namespace_of_somebody_else_stays_theirs(&world);
    a_downgrade_is_refused_unless_forced(&world);
    the_cluster_keeps_its_name(&world);
}

async fn what_only_looks_changes_nothing(world: &World) {
    let client = world.client().await;
    let before = settled(&client).await;
    let dry = world.ok(&["install", "--dry-run"]);
    assert!(dry.out.contains("create  Deployment liqo/liqo-controller-manager"), "{dry}");
    dry.tells(&[
        "pod CIDR: 10.200.0.0/16 (from the running sandbox",
        "service CIDR: 10.80.0.0/16 (from ServiceCIDR objects)",
        "nothing was done",
    ]);
    let list: Value = serde_json::from_str(&world.ok(&["install", "--dry-run", "-o", "json"]).out).unwrap();
    assert!(list["items"].as_array().unwrap().iter().any(|one| one["kind"] == "ClusterRole"), "{list}");
    let documents = world.ok(&["install", "--dry-run", "-o", "yaml"]).out;
    assert!(documents.split("---\n").count() > 10, "{documents}");
    let values = world.ok(&["install", "--only-output-values"]);
    let values: Value = serde_saphyr::from_str(&values.out).unwrap();
    assert_eq!(values["controllerManager"]["config"]["resourceSharingPercentage"], 90);
    assert_eq!(values["discovery"]["config"]["clusterName"], CLUSTER);
    assert_eq!(values["createNamespace"], false, "Helm makes the namespace itself");
    assert_eq!(difference(&before, &everything(&client).await), Vec::<String>::new());
}

fn values_go_to_a_file_that_is_not_overwritten(world: &World) {
    let path = world.sandbox.sandbox().place().root().join("values.yaml");
    let file = path.to_str().unwrap();
    world.ok(&["install", "--dump-values-path", file, "--mtu", "1300"]).tells(&["nothing was changed"]);
    let mut text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("mtu: 1300"), "{text}");
    text += "# edited\n";
    std::fs::write(&path, &text).unwrap();
    world.fails(&["install", "--dump-values-path", file, "--only-output-values"]).tells(&["--force"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    // And it is a values file.
    let dry = world.ok(&["install", "--dry-run", "-o", "json", "-f", file]);
    assert!(dry.out.contains(r#""mtu": "1300""#), "{dry}");
}

async fn bad_values_are_refused_before_anything_is_written(world: &World) {
    let client = world.client().await;
    world.kubectl(&["create", "service", "nodeport", "taken", "--tcp=80:80", "--node-port=30443"]);
    let before = everything(&client).await;
    let cases: [(&[&str], &str); 11] = [
        (&["--set", "auth.service.nodePort=30443"], "30443/TCP is used by Service default/taken"),
        (&["--cluster-name", "Not_A_Name"], "is not a cluster name"),
        (&["--cluster-id", "no id"], "is not a cluster ID"),
        (&["--pod-cidr", "10.80.0.0/17"], "overlap"),
        (&["--reserved-subnets", "10.200.4.0/24"], "overlap"),
        (&["--service-cidr", "10.0.0.0/99"], "is no network"),
        (&["--service-cidr", "10.77.0.0/16"], "the Service kubernetes has the address"),
        (&["--api-server-url", "here"], "no address of an API server"),
        (&["--set", "controllerManager.config.resourceSharingPercentage=200"], "resourceSharingPercentage"),
        (&["--set", "nonsense.value=1"], "nonsense"),
        (&["--version", "9.9.9"], "--chart-path"),
    ];
    for (arguments, word) in cases {
        let arguments: Vec<&str> = std::iter::once("install").chain(arguments.iter().copied()).collect();
        world.fails(&arguments).tells(&[word]);
    }
    assert_eq!(difference(&before, &everything(&client).await), Vec::<String>::new());
    world.kubectl(&["delete", "service", "taken"]);
}

async fn without_rights_the_missing_ones_are_named(world: &World) {
    let rules = json!([{"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": ["get", "list"]}]);
    let kubeconfig = world.restricted("visitor", &rules).await;
    let client = world.client().await;
    let before = everything(&client).await;
    let run =
        |arguments: &[&str]| support::Said::of(&world.command_as(&kubeconfig, arguments).output().unwrap());
    let refused = run(&["install"]);
    assert_eq!(refused.code, Some(1), "{refused}");
    refused.tells(&[
        "service account default/visitor may not",
        "customresourcedefinitions",
        "kubectl create namespace liqo",
        "kubectl apply -f -",
        "kind: ClusterRole",
        "escalate",
        "nothing was changed",
    ]);
    // Looking still works, with a note.
    let dry = run(&["install", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{dry}");
    assert!(dry.out.contains("create  ClusterRole liqo-controller-manager"), "{dry}");
    dry.tells(&["could not be asked", "may not"]);
    assert_eq!(difference(&before, &everything(&client).await), Vec::<String>::new());
    // What it prints for the administrator is enough.
    let text = &refused.err;
    let yaml = text.split("<<'EOF'\n").nth(1).unwrap().split("    EOF").next().unwrap();
    let yaml: String =
        yaml.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    world.kubectl(&["create", "namespace", "liqo"]);
    world.apply(&yaml);
    // A right of each role.
    let visitor = "system:serviceaccount:default:visitor";
    world.until_may(visitor, &["create", "customresourcedefinitions.apiextensions.k8s.io"]);
    world.until_may(visitor, &["create", "deployments.apps", "-n", "liqo"]);
    let manager = Manager::start(client.clone(), false);
    let installed = run(&["install", "--timeout", "60"]);
    assert_eq!(installed.code, Some(0), "{installed}");
    drop(manager);
    world.ok(&["uninstall", "--purge"]).tells(&["liqo is gone"]);
    world.kubectl(&["delete", "clusterrole,clusterrolebinding", "liqo-installer", "visitor"]);
    world.kubectl(&["get", "namespace", "liqo"]);
    world.kubectl(&["delete", "namespace", "liqo", "--wait=false"]);
    finish_namespace(world, "liqo");
}

/// Where no controller deletes namespaces, this does.
fn finish_namespace(world: &World, name: &str) {
    world.kubectl(&[
        "delete",
        "all,configmaps,secrets,roles,rolebindings,leases,serviceaccounts",
        "--all",
        "-n",
        name,
    ]);
    let namespace = world.kubectl(&["get", "namespace", name, "-o", "json"]);
    let mut namespace: Value = serde_json::from_str(&namespace).unwrap();
    namespace["spec"]["finalizers"] = json!([]);
    let path = world.sandbox.sandbox().place().root().join("namespace.json");
    std::fs::write(&path, namespace.to_string()).unwrap();
    let raw = format!("/api/v1/namespaces/{name}/finalize");
    world.kubectl(&["replace", "--raw", &raw, "-f", path.to_str().unwrap()]);
}

async fn another_liqo_is_refused(world: &World) {
    let client = world.client().await;
    let foreign = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: foreignclusters.discovery.liqo.io}
spec:
  group: discovery.liqo.io
  scope: Cluster
  names: {plural: foreignclusters, kind: ForeignCluster}
  versions:
  - {name: v1alpha1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";
    let before = everything(&client).await;
    world.apply(foreign);
    world
        .fails(&["install"])
        .tells(&["kinds of another Liqo are there", "foreignclusters.discovery.liqo.io"]);
    world.kubectl(&["delete", "crd", "foreignclusters.discovery.liqo.io"]);

    let deployment = |namespace: &str, labels: &str| {
        format!(
            "apiVersion: apps/v1
kind: Deployment
metadata: {{name: liqo-controller-manager, namespace: {namespace}, labels: {{{labels}}}}}
spec:
  selector: {{matchLabels: {{a: b}}}}
  template: {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: a, image: a}}]}}}}
"
        )
    };
    world.apply(&deployment("default", "app: liqo"));
    world.fails(&["install"]).tells(&["another Liqo runs in namespace default"]);
    world.kubectl(&["delete", "deployment", "-n", "default", "liqo-controller-manager"]);
    world.apply(&deployment("default", "app.kubernetes.io/part-of: liqo-rs"));
    world
        .fails(&["install"])
        .tells(&["liqo is installed in namespace default", "liqoctl install -n default"]);
    world.kubectl(&["delete", "deployment", "-n", "default", "liqo-controller-manager"]);
    world.apply(&deployment(
        "default",
        "app.kubernetes.io/part-of: liqo-rs, app.kubernetes.io/managed-by: Helm",
    ));
    world.fails(&["install"]).tells(&["installed with Helm", "helm upgrade liqo"]);
    world.fails(&["uninstall"]).tells(&["helm uninstall liqo"]);
    world.kubectl(&["delete", "deployment", "-n", "default", "liqo-controller-manager"]);
    world.apply(
        "apiVersion: v1
kind: Secret
metadata: {name: sh.helm.release.v1.liqo.v1, namespace: default, labels: {owner: helm, name: liqo}}
type: helm.sh/release.v1
",
    );
    world.fails(&["install"]).tells(&["Helm release liqo in namespace default"]);
    world.kubectl(&["delete", "secret", "-n", "default", "sh.helm.release.v1.liqo.v1"]);

    world.apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: liqo-controller-manager}\n");
    world.fails(&["install"]).tells(&["ClusterRole liqo-controller-manager", "--force"]);
    world.kubectl(&["delete", "clusterrole", "liqo-controller-manager"]);
    until_as_before(&client, &before).await;
}

fn a_dead_webhook_of_others_is_named_and_forced_away(world: &World) {
    world.apply(
        "apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: liqo-webhook}
webhooks:
- name: pods.liqo.io
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: liqo-webhook, namespace: liqo}}
  rules: [{apiGroups: ['apps'], apiVersions: ['*'], resources: [deployments], operations: [CREATE]}]
",
    );
    world.fails(&["install"]).tells(&[
        "MutatingWebhookConfiguration liqo-webhook calls liqo/liqo-webhook, where nobody is",
        "kubectl delete",
    ]);
    world
        .fails(&["install", "--force", "--timeout", "2"])
        .tells(&["MutatingWebhookConfiguration liqo-webhook removed", "not ready"]);
    // What is left is our own.
    let ours = "mutatingwebhookconfiguration.admissionregistration.k8s.io/liqo\n";
    assert_eq!(world.kubectl(&["get", "mutatingwebhookconfigurations", "-o", "name"]), ours);
}

async fn without_controllers_it_says_so_and_goes_on_later(world: &World) {
    world
        .fails(&["install", "--timeout", "2"])
        .tells(&["controller manager has not looked at it", "run the same command again"]);
    let _manager = Manager::start(world.client().await, false);
    world
        .ok(&["install", "--timeout", "60"])
        .tells(&["the manager is ready", "is installed in namespace liqo and ready"]);
    let secret =
        world.kubectl(&["get", "secret", "-n", "liqo", "liqo-installation", "-o", "jsonpath={.type}"]);
    assert_eq!(secret, "liqo.io/installation");
    assert_eq!(world.kubectl(&["get", "lease", "-n", "liqo", "-o", "name"]), "", "the hold is given back");
}

async fn again_changes_nothing(world: &World) {
    let client = world.client().await;
    let before = everything(&client).await;
    world.ok(&["install"]).tells(&["nothing to change"]);
    world.ok(&["install", "sandbox", "-o", "json"]).tells(&["nothing to change"]);
    world.ok(&["install", "--dry-run"]).tells(&["nothing to change"]);
    assert_eq!(difference(&before, &everything(&client).await), Vec::<String>::new());
}

fn argument(world: &World, flag: &str) -> String {
    let path = "jsonpath={.spec.template.spec.containers[0].args}";
    let arguments =
        world.kubectl(&["get", "deployment", "-n", "liqo", "liqo-controller-manager", "-o", path]);
    let arguments: Vec<String> = serde_json::from_str(&arguments).unwrap();
    arguments.iter().find_map(|one| one.strip_prefix(flag)).unwrap_or_default().to_owned()
}

fn values_are_kept_and_can_be_forgotten(world: &World) {
    let runtime = tokio::runtime::Handle::current();
    let client = tokio::task::block_in_place(|| runtime.block_on(world.client()));
    let _manager = Manager::start(client, false);
    let percentage = "--resource-sharing-percentage=";
    world
        .ok(&["install", "--resource-sharing-percentage", "40", "--cluster-labels", "team=a"])
        .tells(&["Deployment liqo/liqo-controller-manager changed"]);
    assert_eq!(argument(world, percentage), "40");
    assert_eq!(argument(world, "--cluster-labels="), "liqo.io/provider=sandbox,team=a");
    world.ok(&["install", "--set", "networkConfig.mtu=1300"]);
    assert_eq!(argument(world, percentage), "40");
    let map =
        world.kubectl(&["get", "configmap", "-n", "liqo", "liqo-network", "-o", "jsonpath={.data.mtu}"]);
    assert_eq!(map, "1300");
    world.ok(&["install", "--reset-values"]);
    assert_eq!(argument(world, percentage), "90");
}

fn what_is_no_longer_needed_goes(world: &World) {
    let runtime = tokio::runtime::Handle::current();
    let client = tokio::task::block_in_place(|| runtime.block_on(world.client()));
    let _manager = Manager::start(client, false);
    world.apply(
        "apiVersion: v1
kind: ConfigMap
metadata:
  name: of-an-older-version
  namespace: liqo
  labels: {app.kubernetes.io/part-of: liqo-rs, app.kubernetes.io/managed-by: liqoctl}
",
    );
    world.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-somebody-else, namespace: liqo}\n");
    world.ok(&["install", "--dry-run"]).tells(&["1 removed"]);
    world.ok(&["install"]).tells(&["ConfigMap liqo/of-an-older-version removed"]);
    world.kubectl(&["get", "configmap", "-n", "liqo", "of-somebody-else"]);
    world.kubectl(&["delete", "configmap", "-n", "liqo", "of-somebody-else"]);

    world.kubectl(&["create", "namespace", "monitoring"]);
    let dashboard = "metrics.grafanaDashboard.enabled=true,metrics.grafanaDashboard.namespace=monitoring";
    world.ok(&["install", "--set", dashboard]).tells(&["ConfigMap monitoring/"]);
    world
        .ok(&["install", "--reset-values"])
        .tells(&["ConfigMap monitoring/", "removed, as this version does not need it"]);
    world.ok(&["install"]).tells(&["nothing to change"]);
}

fn a_namespace_of_somebody_else_stays_theirs(world: &World) {
    let labels = world.kubectl(&["get", "namespace", "liqo", "-o", "jsonpath={.metadata.labels}"]);
    assert!(labels.contains("liqo-rs"), "{labels}");
    world.fails(&["install", "-n", "monitoring"]).tells(&["liqo is installed in namespace liqo"]);
    world
        .fails(&["uninstall", "-n", "monitoring"])
        .tells(&["liqo is installed in namespace liqo, not in monitoring"]);
}

fn set_version(world: &World, version: &str) {
    let patch = json!({"stringData": {"version": version}}).to_string();
    world.kubectl(&["patch", "secret", "-n", "liqo", "liqo-installation", "--type=merge", "-p", &patch]);
}

/// Installing again is an upgrade, the kinds included.
fn definitions_are_put_right(world: &World) {
    const GONE: &str = "searchdomains.discovery.liqo.io";
    const CHANGED: &str = "foreignclusters.discovery.liqo.io";
    let schema = ["get", "crd", CHANGED, "-o", "jsonpath={.spec.versions[0].schema.openAPIV3Schema}"];
    let right = world.kubectl(&schema);
    world.kubectl(&["delete", "crd", GONE]);
    let older =
        json!([{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/status"}]);
    world.kubectl(&["patch", "crd", CHANGED, "--type=json", "-p", &older.to_string()]);
    assert_ne!(world.kubectl(&schema), right);
    let dry = world.ok(&["install", "--dry-run"]);
    for line in [
        format!("create  CustomResourceDefinition {GONE}"),
        format!("change  CustomResourceDefinition {CHANGED}"),
    ] {
        assert!(dry.out.contains(&line), "{line}: {dry}");
    }
    world.ok(&["install"]).tells(&["2 of ", "definitions of kinds applied"]);
    assert_eq!(world.kubectl(&schema), right);
    // A definition is served a moment after it says so.
    until("the kind is served", || {
        let said = support::Said::of(&world.cluster().kubectl(["get", "searchdomains"]));
        if said.code == Some(0) && said.out.is_empty() { Ok(()) } else { Err(said.to_string()) }
    });
    world.ok(&["install"]).tells(&["nothing to change"]);
}

fn a_downgrade_is_refused_unless_forced(world: &World) {
    set_version(world, "9.9.9");
    world.fails(&["install"]).tells(&["9.9.9 is installed", "--force", "nothing was changed"]);
    world.ok(&["install", "--force"]).tells(&["going on, as --force says"]);
    set_version(world, "0.0.1");
    world.ok(&["install"]).tells(&["up to date"]);
    world.ok(&["install"]).tells(&["nothing to change"]);
}

fn the_cluster_keeps_its_name(world: &World) {
    world
        .fails(&["install", "--cluster-name", "other"])
        .tells(&["is called alpha since it was first installed", "uninstall --purge"]);
    world.ok(&["install"]).tells(&["cluster name: alpha"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_and_at_the_same_time() {
    let world = World::start(ClusterSpec::api_only(CLUSTER)).await;
    interrupted_at_any_moment_the_next_one_goes_on(&world).await;
    two_at_once_the_second_is_refused(&world);
    a_killed_one_does_not_keep_the_next_waiting(&world);
    a_holder_that_died_elsewhere_is_waited_for(&world);
    an_api_server_that_goes_away_is_waited_for(&world).await;
}

async fn interrupted_at_any_moment_the_next_one_goes_on(world: &World) {
    // None of them becomes ready, as no manager runs.
    for (moment, signal) in [
        ("distribution:", Signal::SIGINT),
        ("Namespace liqo created", Signal::SIGTERM),
        ("definitions of kinds", Signal::SIGINT),
        ("ServiceAccount", Signal::SIGINT),
        ("PriorityLevelConfiguration", Signal::SIGHUP),
    ] {
        let mut running = world.start_command(&["install"]);
        running.until_it_says(moment);
        running.send(signal);
        let said = running.end();
        assert_eq!(said.code, Some(130), "{moment}: {said}");
        said.tells(&["interrupted", "run the same command again"]);
        // Begin anew for the next moment, but keep the last for the one that goes on.
        if moment != "PriorityLevelConfiguration" {
            // It ends without success, as nobody deletes the namespace; on a busy machine also before the kinds are gone.
            until("the kinds are gone", || {
                let said = support::Said::of(&world.run(&["uninstall", "--purge", "--timeout", "3"]));
                let kinds = world.kubectl(&["get", "crd", "-o", "name"]);
                if kinds.contains("liqo.io") { Err(format!("{kinds}{said}")) } else { Ok(()) }
            });
            tidy_namespace(world);
        }
    }
    let _manager = Manager::start(world.client().await, false);
    world.ok(&["install", "--timeout", "60"]).tells(&["the manager is ready"]);
    world.ok(&["install"]).tells(&["nothing to change"]);
}

/// Nobody deletes namespaces here.
fn tidy_namespace(world: &World) {
    let names = world.kubectl(&["get", "namespace", "liqo", "-o", "name", "--ignore-not-found"]);
    if !names.is_empty() {
        world.kubectl(&["delete", "namespace", "liqo", "--wait=false"]);
        let namespace = world.kubectl(&["get", "namespace", "liqo", "-o", "json"]);
        let mut namespace: Value = serde_json::from_str(&namespace).unwrap();
        namespace["spec"]["finalizers"] = json!([]);
        let path = world.sandbox.sandbox().place().root().join("namespace.json");
        std::fs::write(&path, namespace.to_string()).unwrap();
        world.kubectl(&[
            "replace",
            "--raw",
            "/api/v1/namespaces/liqo/finalize",
            "-f",
            path.to_str().unwrap(),
        ]);
    }
}

/// An installation that is never ready.
fn endless(world: &World) -> support::Running {
    world.kubectl(&["delete", "clusterconfig", "liqo", "--ignore-not-found"]);
    let mut running = world.start_command(&["install", "--set", "controllerManager.logFilter=debug"]);
    running.until_it_says("Deployment liqo/liqo-controller-manager changed");
    running
}

fn two_at_once_the_second_is_refused(world: &World) {
    let first = endless(world);
    world.fails(&["install"]).tells(&["liqoctl install of", "is changing this installation", "process"]);
    world.fails(&["uninstall"]).tells(&["is changing this installation"]);
    first.send(Signal::SIGINT);
    assert_eq!(first.end().code, Some(130));
    assert_eq!(world.kubectl(&["get", "lease", "-n", "liqo", "-o", "name"]), "", "the hold is given back");
}

fn a_killed_one_does_not_keep_the_next_waiting(world: &World) {
    world.kubectl(&["delete", "deployment", "-n", "liqo", "liqo-controller-manager"]);
    let mut running = world.start_command(&["install"]);
    running.until_it_says("Deployment liqo/liqo-controller-manager created");
    running.send(Signal::SIGKILL);
    let _ = running.end();
    let started = std::time::SystemTime::now();
    world.fails(&["install", "--timeout", "3"]).tells(&["not ready"]);
    assert!(started.elapsed().unwrap().as_secs() < 20, "the dead one's hold was waited for");
}

fn a_holder_that_died_elsewhere_is_waited_for(world: &World) {
    world.apply(
        "apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: liqo-installation, namespace: liqo}
spec: {holderIdentity: 'liqoctl install of jane on laptop (process 7)#elsewhere/1/7/9', leaseDurationSeconds: 4}
",
    );
    world.fails(&["install", "--timeout", "3"]).tells(&["not ready"]);
    assert_eq!(world.kubectl(&["get", "lease", "-n", "liqo", "-o", "name"]), "");
}

async fn an_api_server_that_goes_away_is_waited_for(world: &World) {
    world.kubectl(&["delete", "deployment", "-n", "liqo", "liqo-controller-manager"]);
    let mut running = world.start_command(&["install", "--timeout", "120"]);
    running.until_it_says("Deployment liqo/liqo-controller-manager created");
    world.cluster().kill(Component::Apiserver).await;
    world.cluster().start(Component::Apiserver).await;
    world.cluster().wait_ready().await;
    let _manager = Manager::start(world.client().await, false);
    let said = running.end();
    assert_eq!(said.code, Some(0), "{said}");
}
