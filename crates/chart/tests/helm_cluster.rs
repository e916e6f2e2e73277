//! What the chart and `k8s/` say, told to a real API server.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/helm.rs"]
#[expect(dead_code, reason = "only their paths are needed of the value sets")]
mod support;

use std::path::Path;
use std::process::Output;

use liqo_chart::{Chart, values};
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use serde_json::{Value, json};
use support::{chart_directory, find, helm, key, release, repository, sets, template, text};

const MANAGER: &str = "system:serviceaccount:liqo:liqo-controller-manager";
/// Kinds that a cluster has only with the Prometheus operator.
const FOREIGN: &[&str] = &["ServiceMonitor"];

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_takes_what_the_chart_renders_and_helm_installs_upgrades_and_removes_it() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let cluster = sandbox.cluster("a");
    prepare(cluster);

    every_value_set_is_accepted(cluster);
    the_manifests_of_k8s_apply_as_they_are(cluster);
    the_kinds_of_the_chart_are_those_of_deploy(cluster);

    let kubeconfig = cluster.kubeconfig();
    helm_installs_and_tells_what_we_tell(&kubeconfig);
    the_managers_requests_go_to_its_own_level_and_its_lease_ahead_of_them(cluster);
    pods_pass_the_restricted_level_and_others_do_not(cluster);
    a_second_release_is_refused(&kubeconfig);
    helm_upgrades(cluster, &kubeconfig);
    helm_removes_everything_it_made(cluster, &kubeconfig);
}

/// The output, or a panic with what was said.
fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn helm_at(kubeconfig: &Path, arguments: &[&str]) -> Output {
    let arguments = arguments.iter().map(AsRef::as_ref);
    helm(arguments.chain(["--kubeconfig".as_ref(), kubeconfig.as_os_str()]))
}

/// The kinds, and namespaces that hold their pods to the strictest level.
fn prepare(cluster: TestCluster<'_>) {
    let crds = repository().join("deploy/crds");
    stdout(&cluster.kubectl(["apply".as_ref(), "--server-side".as_ref(), "-f".as_ref(), crds.as_os_str()]));
    stdout(&cluster.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]));
    for namespace in ["liqo", "monitoring"] {
        stdout(&cluster.kubectl(["create", "namespace", namespace]));
        enforce(cluster, namespace, "restricted");
    }
}

/// Holds the pods of a namespace to a level.
fn enforce(cluster: TestCluster<'_>, namespace: &str, level: &str) {
    let label = format!("pod-security.kubernetes.io/enforce={level}");
    stdout(&cluster.kubectl(["label", "--overwrite", "namespace", namespace, &label]));
}

fn dry_run(cluster: TestCluster<'_>, file: &Path, how: &[&str]) -> String {
    let options = ["apply", "--dry-run=server", "--validate=strict"].iter().chain(how).map(AsRef::as_ref);
    let output = cluster.kubectl(options.chain(["-f".as_ref(), file.as_os_str()]));
    assert!(output.status.success(), "{}: {}", file.display(), text(&output.stderr));
    let complaints = text(&output.stderr);
    assert!(!complaints.contains("Warning"), "{}: {complaints}", file.display());
    text(&output.stdout)
}

fn every_value_set_is_accepted(cluster: TestCluster<'_>) {
    let file = std::env::temp_dir().join(format!("liqo-chart-objects-{}.json", std::process::id()));
    for set in sets() {
        let mut objects =
            template(&release("liqo", "liqo"), ["-f".as_ref(), set.path.as_os_str()]).expect("it renders");
        objects.retain(|object| !FOREIGN.iter().any(|kind| object["kind"] == *kind));
        // What the chart says of its namespace where it makes it.
        let on_a_node = |object: &Value| object["spec"]["template"]["spec"]["hostNetwork"] == json!(true);
        enforce(cluster, "liqo", if objects.iter().any(on_a_node) { "privileged" } else { "restricted" });
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        std::fs::write(&file, list.to_string()).expect("a file can be written");
        let accepted = dry_run(cluster, &file, &["--server-side", "--force-conflicts"]);
        assert_eq!(accepted.lines().count(), objects.len(), "{}: {accepted}", set.name);
    }
    enforce(cluster, "liqo", "restricted");
    std::fs::remove_file(&file).expect("the file can be removed");
}

fn the_manifests_of_k8s_apply_as_they_are(cluster: TestCluster<'_>) {
    let accepted: Vec<String> = ["pod.yml", "http-svc.yml", "nsoffloading.yml"]
        .iter()
        .flat_map(|name| {
            let said = dry_run(cluster, &repository().join("k8s").join(name), &[]);
            said.lines().map(str::to_owned).collect::<Vec<_>>()
        })
        .collect();
    let expected = [
        "serviceaccount/liqo-broker",
        "clusterrole.rbac.authorization.k8s.io/liqo-broker",
        "clusterrolebinding.rbac.authorization.k8s.io/liqo-broker",
        "deployment.apps/liqo-broker",
        "service/liqo-broker",
        "namespaceoffloading.offloading.liqo.io/offloading",
    ];
    assert_eq!(accepted, expected.map(|object| format!("{object} created (server dry run)")));
}

fn the_kinds_of_the_chart_are_those_of_deploy(cluster: TestCluster<'_>) {
    let said = dry_run(cluster, &chart_directory().join("crds"), &["--server-side"]);
    let installed = stdout(&cluster.kubectl(["get", "crd", "-o", "name"]));
    assert_eq!(said.lines().count(), installed.lines().count(), "{said}\n{installed}");
}

fn helm_installs_and_tells_what_we_tell(kubeconfig: &Path) {
    let chart = chart_directory();
    let chart = chart.to_str().expect("a path of ordinary characters");
    let set = "discovery.config.clusterName=milan,virtualKubelet.imageName=example.org/vk:1";
    let said = stdout(&helm_at(kubeconfig, &["install", "liqo", chart, "--namespace", "liqo", "--set", set]));
    let mut given = json!({});
    values::set(&mut given, set).expect("we take them");
    let notes = Chart::embedded().notes(&release("liqo", "liqo"), &given).expect("we have notes");
    assert!(said.contains(notes.trim()), "Helm said:\n{said}\nwe say:\n{notes}");
    assert!(notes.contains("milan") && notes.contains("virtualKubelet.imageName is accepted"), "{notes}");
}

/// Which FlowSchema a request of the manager falls under.
fn flow_schema_of(cluster: TestCluster<'_>, request: &[&str]) -> String {
    let output = cluster.kubectl(request.iter().copied().chain(["--as", MANAGER, "-v=8"]));
    let log = text(&output.stderr);
    let header = "X-Kubernetes-Pf-Flowschema-Uid: ";
    let uids = log.lines().filter_map(|line| line.split_once(header));
    // The request itself comes first, what kubectl asks after an error later.
    let uid = uids.map(|(_, uid)| uid.trim().to_owned()).next();
    let uid = uid.unwrap_or_else(|| panic!("the server does not tell the FlowSchema: {log}"));
    let schemas = stdout(&cluster.kubectl(["get", "flowschemas", "-o", "json"]));
    let schemas: Value = serde_json::from_str(&schemas).expect("JSON");
    let schemas = schemas["items"].as_array().expect("a list");
    let schema = schemas.iter().find(|schema| schema["metadata"]["uid"] == uid.as_str());
    schema
        .and_then(|schema| schema["metadata"]["name"].as_str())
        .expect("a FlowSchema that exists")
        .to_owned()
}

fn the_managers_requests_go_to_its_own_level_and_its_lease_ahead_of_them(cluster: TestCluster<'_>) {
    // The server takes new FlowSchemas over in its own time.
    let own = |request: &[&str], expected: &str| {
        let deadline = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
        loop {
            let found = flow_schema_of(cluster, request);
            if found == expected {
                return;
            }
            assert!(
                std::time::SystemTime::now() < deadline,
                "{request:?} falls under {found}, not {expected}"
            );
        }
    };
    own(&["get", "--raw", "/apis/discovery.liqo.io/v1alpha1/foreignclusters"], "liqo-controller-manager");
    own(&["get", "--raw", "/version"], "liqo-controller-manager");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/liqo/leases/liqo-controller-manager";
    own(&["get", "--raw", lease], "liqo-controller-manager-lease");
}

fn pods_pass_the_restricted_level_and_others_do_not(cluster: TestCluster<'_>) {
    let pod = |objects: &[Value], name: &str| {
        let template = find(objects, "Deployment", name)["spec"]["template"].clone();
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
        pod["metadata"]["name"] = json!(name);
        pod["metadata"]["namespace"] = json!("liqo");
        pod
    };
    let broker = support::documents(&support::read("k8s/pod.yml"));
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "liqo-broker", "namespace": "liqo"}});
    stdout(&cluster.kubectl_apply(&account.to_string()));
    let manager = template(&release("liqo", "liqo"), [""; 0]).expect("it renders");
    let pods = [pod(&manager, "liqo-controller-manager"), pod(&broker, "liqo-broker")];
    for pod in &pods {
        stdout(&cluster.kubectl_apply(&pod.to_string()));
    }
    // The control: without it, a level that is not enforced would go unnoticed.
    let mut weak = pods[0].clone();
    weak["metadata"]["name"] = json!("weak");
    weak["spec"]["containers"][0]["securityContext"] = json!({});
    let refused = cluster.kubectl_apply(&weak.to_string());
    assert!(text(&refused.stderr).contains("violates PodSecurity \"restricted"), "{}", text(&refused.stderr));
    for pod in &pods {
        let name = pod["metadata"]["name"].as_str().expect("a name");
        stdout(&cluster.kubectl(["delete", "pod", name, "-n", "liqo", "--now"]));
    }
    stdout(&cluster.kubectl(["delete", "serviceaccount", "liqo-broker", "-n", "liqo"]));
}

fn a_second_release_is_refused(kubeconfig: &Path) {
    let chart = chart_directory();
    let chart = chart.to_str().expect("a path of ordinary characters");
    for namespace in ["liqo", "monitoring"] {
        let second = helm_at(kubeconfig, &["install", "second", chart, "--namespace", namespace]);
        let said = text(&second.stderr);
        assert!(
            !second.status.success() && said.contains("cannot be imported into the current release"),
            "{said}"
        );
    }
}

fn helm_upgrades(cluster: TestCluster<'_>, kubeconfig: &Path) {
    let chart = chart_directory();
    let chart = chart.to_str().expect("a path of ordinary characters");
    let more =
        ["--namespace", "liqo", "--reset-then-reuse-values", "--set", "enableHA=true,networkConfig.mtu=1300"];
    let said = stdout(&helm_at(kubeconfig, &[&["upgrade", "liqo", chart][..], &more].concat()));
    assert!(said.contains("kubectl apply --server-side -f deploy/crds"), "{said}");
    let path = "jsonpath={.spec.replicas} {.spec.template.spec.containers[0].args[2]}";
    let deployment = ["get", "deployment", "-n", "liqo", "liqo-controller-manager", "-o", path];
    assert_eq!(stdout(&cluster.kubectl(deployment)), "2 --cluster-name=milan");
}

fn helm_removes_everything_it_made(cluster: TestCluster<'_>, kubeconfig: &Path) {
    stdout(&helm_at(kubeconfig, &["uninstall", "liqo", "--namespace", "liqo"]));
    let rendered = template(&release("liqo", "liqo"), [""; 0]).expect("it renders");
    for object in rendered {
        let kind = object["kind"].as_str().expect("a kind").to_lowercase();
        let name = object["metadata"]["name"].as_str().expect("a name");
        let left =
            stdout(&cluster.kubectl(["get", &kind, name, "-n", "liqo", "--ignore-not-found", "-o", "name"]));
        assert_eq!(left, "", "{} is left", key(&object));
    }
}
