//! `liqoctl bundle`: everything is in it but what is secret, wherever that was put.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/archive.rs"]
mod archive;
#[path = "support/installed.rs"]
mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use archive::Archive;
use serde_json::{Value, json};
use support::{Installed, POD, liqoctl, put};

/// What must not be in a bundle. Each is planted where its name says.
const PLANTED: [&str; 22] = [
    "planted-secret-value-1",
    "planted-string-data-2",
    "planted-secret-annotation-3",
    "planted-config-password-4",
    "planted-config-file-5",
    "planted-config-json-6",
    "planted-config-yaml-7",
    "planted-annotation-8",
    "planted-last-applied-9",
    "planted-variable-10",
    "planted-argument-11",
    "planted-flag-12",
    "planted-url-13",
    "planted-event-14",
    "planted-header-15",
    "planted-peer-proxy-16",
    "planted-condition-17",
    "planted-status-18",
    "planted-known-value-19",
    "planted-webhook-url-20",
    "planted-template-21",
    "planted-binary-22",
];

#[tokio::test]
async fn a_bundle_has_everything_but_secrets() {
    let cluster = Installed::start().await;
    let files = Directory::new();
    without_an_installation(&cluster, &files);
    cluster.make_healthy().await;
    plant(&cluster).await;
    all_were_planted(&cluster);
    let bundle = collect(&cluster, &files);
    everything_is_in_it(&bundle);
    no_secret_is_in_it(&bundle);
    an_existing_file_is_not_replaced(&cluster, &files);
    programs_are_told_what_is_in_it(&cluster, &files);
    what_may_not_be_read_is_listed(&cluster, &files);
}

/// A directory of the test's own, gone with the value.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("bundle-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn without_an_installation(cluster: &Installed, files: &Directory) {
    let file = files.file("empty.tar.gz");
    let said = cluster.ends_with(0, &["bundle", "-o", &file]);
    assert_eq!(said.stdout, "", "{said:#?}");
    let bundle = Archive::read(&std::fs::read(&file).unwrap());
    assert!(bundle.text("check.txt").contains("✗ liqo is installed"), "{}", bundle.text("check.txt"));
    assert!(bundle.has("kinds.yaml"), "{:#?}", bundle.paths());
}

/// Puts secrets wherever people put them.
async fn plant(cluster: &Installed) {
    let client = cluster.cluster().client().await;
    let applied = json!({"data": {"x": "planted-last-applied-9"}}).to_string();
    let config = "server:\n  port: 1\n  credentials:\n    user: me\n    word: planted-config-yaml-7\n";
    for object in [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "planted", "namespace": "liqo", "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": applied, "note/token": "planted-secret-annotation-3"}},
               "stringData": {"a": "planted-secret-value-1", "b": "planted-string-data-2", "c": "planted-known-value-19"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "planted", "namespace": "liqo", "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": applied, "example.com/api-key": "planted-annotation-8"}},
               "data": {"password": "planted-config-password-4", "app.conf": "user=me\npassword = planted-config-file-5\n",
                        "app.json": "{\"db\": {\"token\": [\"planted-config-json-6\"]}}", "app.yaml": config,
                        "plain": "the value is planted-known-value-19"},
               "binaryData": {"x": base64("planted-binary-22")}}),
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "planted", "namespace": "liqo"}, "type": "Warning",
               "involvedObject": {"kind": "Pod", "name": POD, "namespace": "liqo"}, "reason": "Failed",
               "message": "cannot log in: Bearer planted-event-14"}),
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
               "metadata": {"name": "other", "annotations": {"note": "https://a/?token=planted-webhook-url-20"}}, "webhooks": [{"name": "a.example.com", "admissionReviewVersions": ["v1"],
               "sideEffects": "None", "clientConfig": {"url": "https://hook.example.com/"}}]}),
    ] {
        put(&client, &object).await;
    }
    let environment = json!([
        {"name": "DB_PASSWORD", "value": "planted-variable-10"}, {"name": "PROXY", "value": "https://me:planted-url-13@proxy:3128"}]);
    let mut pod = cluster_pod("planted");
    pod["spec"]["containers"][0]["env"] = environment.clone();
    pod["spec"]["containers"][0]["args"] =
        json!(["--token", "planted-argument-11", "--api-key=planted-flag-12"]);
    pod["spec"]["containers"][0]["livenessProbe"] = json!({"httpGet": {"port": 1, "httpHeaders": [
        {"name": "Authorization", "value": "planted-header-15"}]}});
    put(&client, &pod).await;
    cluster.patch_status("pod/planted", &json!({"message": "password: planted-status-18"}));
    let template = json!({"spec": {"template": {"spec": {"containers": [{"name": "controller-manager", "env": [
        {"name": "API_TOKEN", "value": "planted-template-21"}]}]}}}});
    cluster.kubectl(&[
        "-n",
        "liqo",
        "patch",
        "deployment",
        "liqo-controller-manager",
        "-p",
        &template.to_string(),
    ]);
    cluster.patch(
        "foreigncluster/provider-b",
        &json!({"metadata": {"annotations": {"proxy": "https://u:planted-peer-proxy-16@p:1"}}}),
    );
    cluster.patch_status("foreigncluster/provider-b", &json!({"peeringConditions": [
        {"type": "AuthenticationStatus", "status": "Error", "message": "refused token=planted-condition-17"}]}));
}

/// The test would prove nothing if the API server had dropped one.
fn all_were_planted(cluster: &Installed) {
    let kinds = "secrets,configmaps,pods,events,deployments,foreignclusters,validatingwebhookconfigurations";
    let all = cluster.kubectl(&["-n", "liqo", "get", kinds, "-o", "json"]);
    for planted in PLANTED {
        let encoded = base64(planted);
        assert!(
            all.contains(planted) || all.contains(encoded.as_str().unwrap()),
            "{planted} is not in the cluster"
        );
    }
}

fn cluster_pod(name: &str) -> Value {
    let pod = support::healthy().into_iter().find(|object| object["kind"] == "Pod").unwrap();
    let mut pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": pod["metadata"], "spec": pod["spec"]});
    pod["metadata"]["name"] = json!(name);
    pod
}

fn base64(text: &str) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap()
}

fn collect(cluster: &Installed, files: &Directory) -> Archive {
    let file = files.file("bundle.tar.gz");
    let said = cluster.ends_with(0, &["bundle", "-o", &file]);
    assert!(said.stderr.contains("✓ ") && said.stderr.contains(&file), "{said:#?}");
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let stdout = cluster.command(&["bundle", "-o", "-"]).output().unwrap();
    assert!(Archive::read(&stdout.stdout).has("manifest.json"));
    Archive::read(&std::fs::read(&file).unwrap())
}

fn everything_is_in_it(bundle: &Archive) {
    for path in [
        "manifest.json",
        "versions.json",
        "status.json",
        "check.json",
        "check.txt",
        "kinds.yaml",
        "namespace.yaml",
        "objects/pods.yaml",
        "objects/secrets.yaml",
        "objects/configmaps.yaml",
        "objects/events.yaml",
        "objects/deployments.apps.yaml",
        "objects/leases.coordination.k8s.io.yaml",
        "objects/clusterroles.rbac.authorization.k8s.io.yaml",
        "objects/networkpolicies.networking.k8s.io.yaml",
        "objects/validatingwebhookconfigurations.admissionregistration.k8s.io.yaml",
        "objects/clusterconfigs.config.liqo.io.yaml",
        "objects/foreignclusters.discovery.liqo.io.yaml",
    ] {
        assert!(bundle.has(path), "{path}: {:#?}", bundle.paths());
    }
    let manifest: Value = serde_json::from_str(bundle.text("manifest.json")).unwrap();
    let listed = manifest["files"].as_array().unwrap().len();
    assert_eq!(listed + 1, bundle.paths().len(), "the manifest lists all but itself");
    let problems = manifest["problems"].to_string();
    assert!(problems.contains(&format!("log of {POD}")), "there is no node to ask for it: {problems}");
    let secrets = bundle.text("objects/secrets.yaml");
    assert!(secrets.contains("<removed: 22 bytes>"), "{secrets}");
    for public in
        ["provider-a", "5edf17463346b793f4f74382200a963441649d95902546e302884f931c2506b1", "BEGIN PUBLIC KEY"]
    {
        assert!(bundle.text("objects/clusterconfigs.config.liqo.io.yaml").contains(public), "{public}");
    }
}

fn no_secret_is_in_it(bundle: &Archive) {
    let mut found = Vec::new();
    for planted in PLANTED {
        let encoded = base64(planted);
        for form in [planted, encoded.as_str().unwrap().trim_end_matches('=')] {
            found.extend(bundle.containing(form).into_iter().map(|path| format!("{form} in {path}")));
        }
    }
    // The identity's own key, in the file of the healthy installation.
    for key in ["MC4CAQAwBQYDK2VwBCIEIMru0cOzJfAI3uyuHN8HZiHugZQPygHyGLhh", "LS0tLS1CRUdJTiBQUklWQVRF"] {
        found.extend(bundle.containing(key));
    }
    assert!(found.is_empty(), "{found:#?}");
    let configs = bundle.text("objects/configmaps.yaml");
    assert!(configs.contains("port: 1") && configs.contains("user=me"), "what is no secret stays: {configs}");
}

fn an_existing_file_is_not_replaced(cluster: &Installed, files: &Directory) {
    let file = files.file("there.tar.gz");
    std::fs::write(&file, "mine").unwrap();
    let said = cluster.ends_with(1, &["bundle", "-o", &file]);
    assert!(said.stderr.contains("is there already; --force replaces it"), "{said:#?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
    cluster.ends_with(0, &["bundle", "-o", &file, "--force"]);
    assert!(Archive::read(&std::fs::read(&file).unwrap()).has("manifest.json"));
    let said = cluster.ends_with(1, &["bundle", "-o", "/no/such/directory/b.tar.gz"]);
    assert!(said.stderr.contains("cannot write /no/such/directory/b.tar.gz"), "{said:#?}");
}

fn programs_are_told_what_is_in_it(cluster: &Installed, files: &Directory) {
    let command = |format: &str| {
        let mut command = liqoctl(&["bundle", "-o", format]);
        command.current_dir(&files.0).env("KUBECONFIG", cluster.kubeconfig());
        command.output().unwrap()
    };
    let output = command("json");
    assert!(output.status.success(), "{output:?}");
    let manifest: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(manifest["files"].as_array().unwrap().len() > 10, "{manifest:#}");
    assert!(!files.0.join("json").exists(), "an archive by the name of a format");
    let written = std::fs::read_dir(&files.0).unwrap().filter_map(Result::ok);
    let bundles = written.filter(|it| it.file_name().to_string_lossy().starts_with("liqo-bundle-")).count();
    assert_eq!(bundles, 1);
}

fn what_may_not_be_read_is_listed(cluster: &Installed, files: &Directory) {
    cluster.kubectl(&["-n", "liqo", "create", "serviceaccount", "nobody"]);
    let token = cluster.kubectl(&["-n", "liqo", "create", "token", "nobody"]);
    let text = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    config["users"][0]["user"] = json!({"token": token.trim()});
    let kubeconfig = files.file("nobody");
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let file = files.file("nobody.tar.gz");
    let output = liqoctl(&["bundle", "--kubeconfig", &kubeconfig, "-o", &file]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("could not be read"));
    let bundle = Archive::read(&std::fs::read(&file).unwrap());
    let manifest: Value = serde_json::from_str(bundle.text("manifest.json")).unwrap();
    let problems = manifest["problems"].to_string();
    for what in ["secrets", "pods", "nodes", "cannot list resource"] {
        assert!(problems.contains(what), "{what}: {problems}");
    }
    assert_eq!(bundle.containing(token.trim()), Vec::<String>::new(), "nor our own credentials");
}
