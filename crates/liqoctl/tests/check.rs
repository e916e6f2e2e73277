//! `liqoctl check`, `status` and `version` on a real API server whose objects are made by hand: healthy, and each way
//! to be unhealthy.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/installed.rs"]
mod support;

use serde_json::{Value, json};
use support::{Installed, POD, VERSION};

#[tokio::test]
async fn an_installation_is_judged_as_it_is() {
    let cluster = Installed::start().await;
    nothing_is_installed(&cluster);
    cluster.make_healthy().await;
    all_is_well(&cluster);
    status_tells_everything(&cluster);
    versions_of_both_sides(&cluster);
    each_fault_has_its_line(&cluster).await;
    waiting_ends_when_it_is_repaired(&cluster);
    a_viewer_is_told_which_right_is_missing(&cluster);
    the_documented_rights_are_enough_to_look(&cluster);
    the_same_as_a_plugin_of_kubectl(&cluster);
}

fn nothing_is_installed(cluster: &Installed) {
    let said = cluster.ends_with(1, &["check"]);
    assert!(said.stdout.contains("✗ liqo is installed: there is no Deployment"), "{said:#?}");
    assert!(said.stdout.contains("Install it: liqoctl install"), "{said:#?}");
    let said = cluster.ends_with(1, &["status"]);
    assert!(said.stdout.starts_with("liqo is not installed in namespace liqo\n"), "{said:#?}");
    let version = cluster.ends_with(0, &["version"]);
    assert!(version.stdout.contains("Cluster:    not installed"), "{version:#?}");
}

/// The answer of a command about a cluster in which somebody leads, however long the commands before took.
fn well(cluster: &Installed, arguments: &[&str]) -> support::Said {
    cluster.renew_lease();
    cluster.ends_with(0, arguments)
}

fn all_is_well(cluster: &Installed) {
    let said = well(cluster, &["check"]);
    assert_eq!(said.stderr, "", "{said:#?}");
    assert!(!said.stdout.contains('\x1b'), "no colours into a pipe");
    for line in [
        "kubernetes-api\n✓ the API server answers: https://",
        "✓ the credentials are accepted: as ",
        "✓ Kubernetes is 1.32 or later: v1.",
        "✓ the API server serves all kinds",
        "✓ the kinds are those of",
        "✓ one manager leads: liqo-controller-manager-7d9f8-x2k4q",
        "✓ all objects tell the same identity",
        "✓ Ready is true",
        "✓ the cluster's networks are known and distinct: pods 10.200.0.0/16",
    ] {
        assert!(said.stdout.contains(line), "{line}: {}", said.stdout);
    }
    assert!(!said.stdout.contains('✗') && !said.stdout.contains("\n! "), "{}", said.stdout);
    let coloured = well(cluster, &["check", "--color", "always"]);
    assert!(coloured.stdout.contains("\x1b[32m✓\x1b[0m"), "{}", coloured.stdout);
    let report: Value = serde_json::from_str(&well(cluster, &["check", "-o", "json"]).stdout).unwrap();
    assert_eq!(report["healthy"], true, "{report}");
    let yaml = well(cluster, &["check", "-o", "yaml"]).stdout;
    assert!(yaml.starts_with("healthy: true\nsections:\n"), "{yaml}");
}

fn status_tells_everything(cluster: &Installed) {
    let said = well(cluster, &["status"]);
    for line in [
        "Cluster:       provider-a (ID 0b1c6f3e-7a52-4c8d-9a53-2f9f3d3f6a10)",
        "Fingerprint:   5edf17463346b793",
        "Working mode:  Autonomous",
        &format!("Versions:      liqoctl {VERSION}, manager {VERSION}, Kubernetes v1."),
        &format!("Leader:        {POD}, seen "),
        "Networks:      pods 10.200.0.0/16, Services 10.80.0.0/16, MTU 1440, port 5871",
        &format!("{POD}   1/1     Running   0 "),
        "IdentityReady   True     10h     Established",
        "NAME         OUTGOING      INCOMING   NETWORK   AUTHENTICATION\nprovider-b   Established   None       None      Established",
    ] {
        assert!(said.stdout.contains(line), "{line}: {}", said.stdout);
    }
    assert!(!said.stdout.contains("PROBLEMS"), "{}", said.stdout);
    let wide = well(cluster, &["status", "-o", "wide"]).stdout;
    assert!(wide.contains("CLUSTER ID") && wide.contains("Capabilities:  identity"), "{wide}");
    let json: Value = serde_json::from_str(&well(cluster, &["status", "-o", "json"]).stdout).unwrap();
    assert_eq!(json["pods"][0]["name"], POD, "{json}");
    assert!(well(cluster, &["status", "-o", "yaml"]).stdout.contains("workingMode: Autonomous"));
}

fn versions_of_both_sides(cluster: &Installed) {
    let said = cluster.ends_with(0, &["version", "-o", "json"]);
    let versions: Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(versions["client"]["version"], VERSION);
    assert_eq!(versions["cluster"]["liqo"], VERSION);
    assert_eq!(versions["cluster"]["image"], format!("liqo:{VERSION}"));
    assert!(versions["cluster"]["kubernetes"].as_str().unwrap().starts_with("v1."), "{versions}");
}

/// What is done to the cluster, and the line and the hint that must be there afterwards.
type Fault = (&'static str, fn(&Installed), &'static str, &'static str);

async fn each_fault_has_its_line(cluster: &Installed) {
    let faults: [Fault; 14] = [
        (
            "a kind was deleted",
            |it| drop(it.kubectl(&["delete", "crd", "searchdomains.discovery.liqo.io"])),
            "✗ kind SearchDomain is served: CustomResourceDefinition searchdomains.discovery.liqo.io is not there",
            "Run liqoctl install again",
        ),
        (
            "a kind was changed",
            |it| {
                let patch = r#"[{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]"#;
                it.kubectl(&[
                    "patch",
                    "crd",
                    "foreignclusters.discovery.liqo.io",
                    "--type=json",
                    "-p",
                    patch,
                ]);
            },
            "✗ the kinds are those of",
            "Run liqoctl install again",
        ),
        (
            "no replica",
            |it| it.patch_status("deployment/liqo-controller-manager", &json!({"availableReplicas": null})),
            "✗ the manager is available: 0 of 1 replicas are available",
            "The lines below tell",
        ),
        (
            "the image is not there",
            |it| {
                container(
                    it,
                    &json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}),
                );
            },
            "✗ pod liqo-controller-manager-7d9f8-x2k4q is ready: ImagePullBackOff: Back-off pulling image",
            "push it to a registry",
        ),
        (
            "it crashes",
            |it| container(it, &json!({"waiting": {"reason": "CrashLoopBackOff"}})),
            "✗ pod liqo-controller-manager-7d9f8-x2k4q is ready: CrashLoopBackOff",
            "liqoctl logs --previous",
        ),
        (
            "nobody leads",
            |it| {
                it.patch(
                    "lease/liqo-controller-manager",
                    &json!({"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}),
                );
            },
            "✗ one manager leads: liqo-controller-manager-7d9f8-x2k4q held the lease",
            "liqoctl logs --all",
        ),
        (
            "the key is lost",
            |it| drop(it.kubectl(&["-n", "liqo", "delete", "secret", "liqo-identity"])),
            "✗ the cluster has the key that proves its identity: Secret liqo-identity is gone",
            "Restore the Secret from a backup",
        ),
        (
            "another identity",
            |it| it.patch("configmap/clusterid-configmap", &json!({"data": {"CLUSTER_ID": "other"}})),
            "✗ all objects tell the same identity: ID: the ConfigMap says other",
            "delete the ConfigMap",
        ),
        (
            "not ready",
            |it| {
                let sad = json!([{"type": "Ready", "status": "False", "reason": "Why", "message": "do that",
                                  "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
                it.patch_status("clusterconfig/liqo", &json!({"conditions": sad}));
            },
            "✗ Ready is true: it is False: Why: do that",
            "liqoctl logs",
        ),
        (
            "networks overlap",
            |it| it.patch("configmap/liqo-network", &json!({"data": {"serviceCIDR": "10.200.128.0/20"}})),
            "✗ the cluster's networks are known and distinct: 10.200.0.0/16 (pods) and 10.200.128.0/20 (Services) overlap",
            "--pod-cidr",
        ),
        (
            "rights were taken",
            |it| drop(it.kubectl(&["delete", "clusterrolebinding", "liqo-controller-manager"])),
            "✗ the manager's account has its rights: ClusterRoleBinding liqo-controller-manager is not there",
            "Run liqoctl install again",
        ),
        (
            "no Pod Security",
            |it| drop(it.kubectl(&["label", "namespace", "liqo", "pod-security.kubernetes.io/enforce-"])),
            "! the namespace has a Pod Security level",
            "kubectl label namespace liqo",
        ),
        (
            "a webhook stayed",
            webhook,
            "✗ webhook pods.liqo.io is answered",
            "kubectl delete mutatingwebhookconfiguration liqo-pods",
        ),
        (
            "a peer is in trouble",
            |it| {
                let denied =
                    json!([{"type": "AuthenticationStatus", "status": "Denied", "message": "token expired"}]);
                it.patch_status("foreigncluster/provider-b", &json!({"peeringConditions": denied}));
            },
            "! peer provider-b is well: AuthenticationStatus is Denied: token expired",
            "kubectl describe foreigncluster provider-b",
        ),
    ];
    for (what, spoil, line, hint) in faults {
        cluster.renew_lease();
        spoil(cluster);
        let code = i32::from(line.starts_with('✗'));
        let said = cluster.ends_with(code, &["check"]);
        let rest =
            said.stdout.split_once(line).unwrap_or_else(|| panic!("{what}: no {line}\n{}", said.stdout)).1;
        let below: Vec<&str> = rest.lines().skip(1).take_while(|line| line.starts_with("    ")).collect();
        assert!(below.iter().any(|line| line.contains(hint)), "{what}: {below:#?}");
        assert!(below.iter().any(|line| line.contains("see docs/troubleshooting.md#")), "{what}: {below:#?}");
        // Nobody renews it, and the faults are looked at one by one.
        if what != "nobody leads" {
            cluster.renew_lease();
        }
        let status = cluster.ends_with(code, &["status"]);
        assert!(
            status.stdout.contains("PROBLEMS\n") && status.stdout.contains(line),
            "{what}: {}",
            status.stdout
        );
        repair(cluster).await;
    }
    well(cluster, &["check"]);
}

fn container(cluster: &Installed, state: &Value) {
    let container = json!([{"name": "controller-manager", "image": "liqo", "imageID": "", "ready": false,
                            "restartCount": 0, "state": state}]);
    cluster.patch_status(&format!("pod/{POD}"), &json!({"containerStatuses": container}));
}

fn webhook(cluster: &Installed) {
    let output = cluster.cluster().kubectl_apply(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: liqo-pods}
webhooks:
- name: pods.liqo.io
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: liqo-webhook, namespace: liqo}}
  rules: [{apiGroups: [none.example.com], apiVersions: [v1], resources: [nothings], operations: [CREATE]}]
",
    );
    assert!(output.status.success(), "{output:?}");
}

async fn repair(cluster: &Installed) {
    cluster.install_kinds().await;
    cluster.make_healthy().await;
    cluster.kubectl(&["delete", "mutatingwebhookconfiguration", "liqo-pods", "--ignore-not-found"]);
}

fn waiting_ends_when_it_is_repaired(cluster: &Installed) {
    cluster.patch(
        "lease/liqo-controller-manager",
        &json!({"spec": {"renewTime": "2020-01-01T00:00:00.000000Z"}}),
    );
    let said = cluster.ends_with(1, &["check", "--wait", "2s"]);
    assert!(said.stdout.contains("✗ one manager leads"), "{said:#?}");
    let mut waiting =
        cluster.command(&["check", "--wait", "60s"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    // As a manager does: again and again.
    while waiting.try_wait().unwrap().is_none() {
        cluster.renew_lease();
    }
    let output = waiting.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// A kubeconfig for a new service account, gone with the value.
struct Visitor(std::path::PathBuf);

impl Visitor {
    fn new(cluster: &Installed, name: &str) -> Self {
        cluster.kubectl(&["-n", "liqo", "create", "serviceaccount", name]);
        let token = cluster.kubectl(&["-n", "liqo", "create", "token", name]);
        let text = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
        let mut config: Value = serde_saphyr::from_str(&text).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        let file = std::env::temp_dir().join(format!("liqoctl-{name}-{}", std::process::id()));
        std::fs::write(&file, config.to_string()).unwrap();
        Self(file)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Visitor {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap();
    }
}

fn a_viewer_is_told_which_right_is_missing(cluster: &Installed) {
    cluster.renew_lease();
    let viewer = Visitor::new(cluster, "viewer");
    let may = ["--verb=get,list", "--resource=pods,configmaps,deployments.apps"];
    cluster.kubectl(&["-n", "liqo", "create", "role", "viewer", may[0], may[1]]);
    let whom = ["--role=viewer", "--serviceaccount=liqo:viewer"];
    cluster.kubectl(&["-n", "liqo", "create", "rolebinding", "viewer", whom[0], whom[1]]);
    cluster.until_may("viewer", &["list", "pods", "-n", "liqo"]);
    let said = cluster.ends_with(1, &["check", "--kubeconfig", viewer.path()]);
    for line in [
        "✓ the credentials are accepted: as system:serviceaccount:liqo:viewer",
        "✗ you may read everything that is looked at",
        "list customresourcedefinitions.apiextensions.k8s.io, list events in namespace liqo",
        "✓ all pods are ready",
        "! the cluster has the key that proves its identity: not looked at: no permission to read Secret",
    ] {
        assert!(said.stdout.contains(line), "{line}: {}", said.stdout);
    }
}

/// Runs the block of the document that gives somebody the right to look.
fn the_documented_rights_are_enough_to_look(cluster: &Installed) {
    let reader = Visitor::new(cluster, "reader");
    let document = include_str!("../../../docs/troubleshooting.md");
    let block = document.split("```").find(|block| block.contains("create clusterrole liqo-viewer")).unwrap();
    let script = block.trim_start_matches("sh").replace("NAME", "system:serviceaccount:liqo:reader");
    let bin = cluster.sandbox().sandbox().place().root().join("bin");
    let output = std::process::Command::new("bash")
        .args(["-euc", &script])
        .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
        .env("KUBECONFIG", cluster.kubeconfig())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    cluster.until_may("reader", &["list", "nodes"]);
    cluster.renew_lease();
    let said = cluster.ends_with(0, &["check", "--kubeconfig", reader.path()]);
    assert_eq!(said.stdout.matches("\n! ").count(), 1, "only the Secret is left out: {}", said.stdout);
}

fn the_same_as_a_plugin_of_kubectl(cluster: &Installed) {
    let directory = std::env::temp_dir().join(format!("liqoctl-plugin-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["kubectl-liqo", "kubectl_complete-liqo"] {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_liqoctl"), directory.join(name)).unwrap();
    }
    let kubectl = |arguments: &[&str]| -> support::Said {
        let mut command = cluster.cluster().kubectl_command();
        command.env("PATH", format!("{}:/usr/bin:/bin", directory.display())).args(arguments);
        command.output().unwrap().into()
    };
    let version = kubectl(&["liqo", "version", "--context", "one", "-o", "json"]);
    let versions: Value = serde_json::from_str(&version.stdout).unwrap_or_else(|_| panic!("{version:#?}"));
    assert_eq!(versions["cluster"]["liqo"], VERSION);
    let help = kubectl(&["liqo", "status", "--help"]);
    assert!(
        help.stdout.contains("Usage: kubectl liqo status") && !help.stdout.contains("liqoctl "),
        "{help:#?}"
    );
    let wrong = kubectl(&["liqo", "fly"]);
    assert!(wrong.code != 0 && wrong.stderr.contains("Usage: kubectl liqo"), "{wrong:#?}");
    let suggested = kubectl(&["__complete", "liqo", "sta"]);
    assert!(suggested.stdout.contains("status\t"), "{suggested:#?}");
    std::fs::remove_dir_all(directory).unwrap();
}
