//! An API server that holds the objects of an installation, made by hand, and `liqoctl` to look at them.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::runtime::conditions;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use liqo_chart::{Chart, Release};
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

/// A machine may be ten times busier than ours.
const SOON: Duration = Duration::from_secs(60);
/// The only pod of the installation.
pub const POD: &str = "liqo-controller-manager-7d9f8-x2k4q";
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A cluster of the test's own.
pub struct Installed {
    sandbox: TestSandbox,
    name: String,
}

/// What a command wrote and how it ended.
#[derive(Debug)]
pub struct Said {
    pub stdout: String,
    pub stderr: String,
    pub code: i32,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

/// `liqoctl` as a person without any kubeconfig or sandbox of their own has it.
pub fn liqoctl(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_liqoctl"));
    command.args(arguments).stdin(Stdio::null());
    for variable in
        ["KUBECONFIG", "LIQO_SANDBOX_NAME", "HTTPS_PROXY", "https_proxy", "KUBERNETES_SERVICE_HOST"]
    {
        command.env_remove(variable);
    }
    command.env("HOME", "/nonexistent").env("LIQO_SANDBOX_STATE_DIR", "/nonexistent");
    command
}

impl Installed {
    /// An API server with the kinds, and nothing else.
    pub async fn start() -> Self {
        Self::start_with(ClusterSpec::api_only("one")).await
    }

    pub async fn start_with(cluster: ClusterSpec) -> Self {
        let name = cluster.name.clone();
        let installed = Self { sandbox: TestSandbox::start([cluster]).await, name };
        installed.install_kinds().await;
        installed
    }

    pub fn cluster(&self) -> TestCluster<'_> {
        self.sandbox.cluster(&self.name)
    }

    pub fn sandbox(&self) -> &TestSandbox {
        &self.sandbox
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.cluster().kubeconfig()
    }

    pub async fn install_kinds(&self) {
        let client = self.cluster().client().await;
        let api: Api<CustomResourceDefinition> = Api::all(client);
        for kind in liqo_api::crds() {
            let name = kind.metadata.name.clone().unwrap();
            api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&kind)).await.unwrap();
            let wait = await_condition(api.clone(), &name, conditions::is_crd_established());
            tokio::time::timeout(SOON, wait).await.unwrap().unwrap();
            self.until_served(&kind).await;
        }
    }

    /// A definition is served a moment after it says so.
    async fn until_served(&self, kind: &CustomResourceDefinition) {
        let (spec, version) = (&kind.spec, &kind.spec.versions[0].name);
        let gvk = GroupVersionKind::gvk(&spec.group, version, &spec.names.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &spec.names.plural);
        let api: Api<DynamicObject> = Api::all_with(self.cluster().client().await, &resource);
        let deadline = Instant::now() + SOON;
        while let Err(error) = api.list(&ListParams::default().limit(1)).await {
            assert!(Instant::now() < deadline, "{} is not served: {error}", spec.names.plural);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits until the API server knows that an account of the namespace may do this: it learns of roles and bindings a moment
    /// after they were made.
    pub fn until_may(&self, account: &str, what: &[&str]) {
        let account = format!("--as=system:serviceaccount:liqo:{account}");
        let words = [&["auth", "can-i"][..], what, &[account.as_str()]].concat();
        let deadline = Instant::now() + SOON;
        loop {
            let output = self.cluster().kubectl(&words);
            if output.status.success() {
                return;
            }
            assert!(Instant::now() < deadline, "kubectl {words:?}: {output:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Puts everything into the state of `healthy.yaml`.
    pub async fn make_healthy(&self) {
        let client = self.cluster().client().await;
        for object in healthy() {
            put(&client, &object).await;
        }
    }

    /// Renews the lease, as the manager would.
    pub fn renew_lease(&self) {
        self.patch("lease/liqo-controller-manager", &json!({"spec": {"renewTime": now()}}));
    }

    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.cluster().kubectl(arguments);
        assert!(output.status.success(), "kubectl {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Changes an object, named like `pod/x`, by a merge patch.
    pub fn patch(&self, target: &str, patch: &Value) {
        self.kubectl(&["-n", "liqo", "patch", target, "--type=merge", "-p", &patch.to_string()]);
    }

    pub fn patch_status(&self, target: &str, status: &Value) {
        let patch = json!({"status": status}).to_string();
        self.kubectl(&["-n", "liqo", "patch", target, "--subresource=status", "--type=merge", "-p", &patch]);
    }

    /// `liqoctl` with this cluster's kubeconfig.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = liqoctl(arguments);
        command.env("KUBECONFIG", self.kubeconfig());
        command
    }

    pub fn liqoctl(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().unwrap().into()
    }

    /// The answer of a command that must end with `code`.
    pub fn ends_with(&self, code: i32, arguments: &[&str]) -> Said {
        let said = self.liqoctl(arguments);
        assert_eq!(said.code, code, "liqoctl {arguments:?}: {said:#?}");
        said
    }
}

/// Makes an object what it should be, its status too.
pub async fn put(client: &Client, object: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let version = text(&object["apiVersion"]);
    let (group, version) = version.rsplit_once('/').unwrap_or(("", &version));
    let kind = text(&object["kind"]);
    let plural = match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies").to_lowercase(),
        None => format!("{kind}s").to_lowercase(),
    };
    let kind = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &kind), &plural);
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let name = text(&object["metadata"]["name"]);
    let patched = api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(object)).await;
    patched.unwrap_or_else(|error| panic!("{plural}/{name}: {error}"));
    if let Some(status) = object.get("status") {
        let patch = Patch::Merge(json!({"status": status}));
        let patched = api.patch_status(&name, &PatchParams::default(), &patch).await;
        patched.unwrap_or_else(|error| panic!("status of {plural}/{name}: {error}"));
    }
}

pub fn now() -> String {
    format!("{:.6}", Timestamp::now())
}

/// The objects of a healthy installation, with the times of now.
pub fn healthy() -> Vec<Value> {
    let old = Timestamp::now() - SignedDuration::from_hours(10);
    let text = include_str!("../../../inspect/testdata/healthy.yaml")
        .replace("VERSION", VERSION)
        .replace("OLD", &format!("{old:.0}"))
        .replace("NOW", &now());
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    for object in objects.iter_mut().filter(|object| object.get("rules").is_some()) {
        object["rules"] = rules(object["kind"].as_str().unwrap());
    }
    objects
}

/// The rules of the manager's roles, as the chart has them.
fn rules(kind: &str) -> Value {
    let release = Release {
        name: "liqo".into(),
        namespace: "liqo".into(),
        service: "liqoctl".into(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: String::new(),
        api_versions: vec![],
    };
    let objects = Chart::embedded().render(&release, &json!({})).unwrap();
    objects.iter().find(|object| object["kind"] == kind).unwrap()["rules"].clone()
}
