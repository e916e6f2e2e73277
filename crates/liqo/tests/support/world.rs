//! A cluster with our definitions, and managers that run in it with no more rights than their rules give them.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::ClusterConfig;
use liqo_kit::rbac::{NODE_LEASES, Rule, Scope};
use liqo_sandbox::{TestCluster, TestSandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::process::Manager;

pub(crate) const NAMESPACE: &str = "liqo";
const ACCOUNT: &str = "liqo-controller-manager";

/// Room for a machine that is ten times busier than ours.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Waits for what `look` finds, and shows the state if it never does.
pub(crate) async fn eventually<T, F: Future<Output = Result<T, String>>>(
    what: &str,
    look: impl Fn() -> F,
) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(state) if Instant::now() > deadline => panic!("not within {SOON:?}: {what}; now: {state}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

pub(crate) fn ok(output: &std::process::Output) -> String {
    assert!(output.status.success(), "kubectl failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) struct World<'a> {
    pub(crate) cluster: TestCluster<'a>,
    pub(crate) client: kube::Client,
    pub(crate) kubeconfig: PathBuf,
}

impl<'a> World<'a> {
    /// Installs the definitions, the namespace, and an account with exactly the manager's rules.
    pub(crate) async fn new(sandbox: &'a TestSandbox, name: &str) -> Self {
        let cluster = sandbox.cluster(name);
        let client = cluster.client().await;
        ok(&cluster.kubectl(["create", "namespace", NAMESPACE]));
        ok(&cluster.kubectl(["create", "serviceaccount", "-n", NAMESPACE, ACCOUNT]));
        let world = Self { kubeconfig: account_kubeconfig(cluster), cluster, client };
        world.install_definitions();
        world.allow(|_| true).await;
        world
    }

    pub(crate) fn install_definitions(&self) {
        let crds: Vec<_> = liqo_api::crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect();
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": crds });
        ok(&self.cluster.kubectl_apply(&list.to_string()));
        ok(&self.cluster.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]));
    }

    /// Gives the account the rules that `keep` keeps, and takes away the others; in force when this returns.
    pub(crate) async fn allow(&self, keep: impl Fn(&Rule) -> bool) {
        static TIMES: AtomicUsize = AtomicUsize::new(0);
        // A right to nothing, by which it is seen that the server, which watches roles, knows these.
        let mark = format!("rights-{}", TIMES.fetch_add(1, Ordering::Relaxed));
        let rules = |scope: Scope| -> Vec<Value> {
            let rules = liqo::manager::rules().into_iter().filter(|rule| rule.scope == scope && keep(rule));
            let mark = json!({ "apiGroups": ["test.liqo.io"], "resources": [format!("{scope:?}").to_lowercase()],
                "resourceNames": [mark], "verbs": ["get"] });
            rules.map(|rule| rule_json(&rule)).chain([mark]).collect()
        };
        let subject = json!([{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }]);
        let group = "rbac.authorization.k8s.io";
        let version = format!("{group}/v1");
        let objects = json!([
            { "apiVersion": version, "kind": "ClusterRole", "metadata": { "name": ACCOUNT },
              "rules": rules(Scope::Cluster) },
            { "apiVersion": version, "kind": "Role", "metadata": { "name": ACCOUNT, "namespace": NAMESPACE },
              "rules": rules(Scope::Namespace) },
            { "apiVersion": version, "kind": "Role", "metadata": { "name": ACCOUNT, "namespace": NODE_LEASES },
              "rules": rules(Scope::NodeLeases) },
            { "apiVersion": version, "kind": "RoleBinding", "metadata": { "name": ACCOUNT, "namespace": NODE_LEASES },
              "roleRef": { "apiGroup": group, "kind": "Role", "name": ACCOUNT }, "subjects": subject },
            { "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": { "name": ACCOUNT },
              "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": ACCOUNT }, "subjects": subject },
            { "apiVersion": version, "kind": "RoleBinding", "metadata": { "name": ACCOUNT, "namespace": NAMESPACE },
              "roleRef": { "apiGroup": group, "kind": "Role", "name": ACCOUNT }, "subjects": subject },
        ]);
        let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
        ok(&self.cluster.kubectl_apply(&list.to_string()));
        let known = [
            (Scope::Cluster, None),
            (Scope::Namespace, Some(NAMESPACE)),
            (Scope::NodeLeases, Some(NODE_LEASES)),
        ];
        for (scope, namespace) in known {
            self.wait_allowed(&format!("{scope:?}").to_lowercase(), namespace, &mark).await;
        }
    }

    /// Waits until the server lets the account get this.
    async fn wait_allowed(&self, resource: &str, namespace: Option<&str>, name: &str) {
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let question = json!({ "metadata": {}, "spec": {
            "user": format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}"),
            "resourceAttributes": { "group": "test.liqo.io", "resource": resource, "namespace": namespace,
                "name": name, "verb": "get" },
        } });
        let question: SubjectAccessReview = serde_json::from_value(question).unwrap();
        eventually("the server knows the rights", || async {
            let answer = reviews.create(&PostParams::default(), &question).await;
            let status = answer.map_err(|error| error.to_string())?.status;
            if status.as_ref().is_some_and(|it| it.allowed) { Ok(()) } else { Err(format!("{status:?}")) }
        })
        .await;
    }

    /// Starts a manager as this pod.
    pub(crate) fn manager(&self, pod: &str, more: &[&str]) -> Manager {
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig.display());
        let mut arguments = vec![
            kubeconfig.as_str(),
            "--metrics-address=127.0.0.1:0",
            "--health-probe-address=127.0.0.1:0",
            "--auth-address=127.0.0.1:0",
            "--webhook-address=127.0.0.1:0",
            // Short, because tests wait for it.
            "--lease-duration=3s",
            "--lease-renew-deadline=2s",
            "--lease-retry-period=300ms",
        ];
        let pod = format!("--pod-name={pod}");
        arguments.push(&pod);
        arguments.extend(more);
        Manager::start(&arguments)
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) fn cluster_configs(&self) -> Api<ClusterConfig> {
        Api::all(self.client.clone())
    }

    pub(crate) async fn secret(&self) -> Option<Secret> {
        self.secrets().get_opt("liqo-identity").await.unwrap()
    }

    pub(crate) async fn config_map(&self) -> Option<ConfigMap> {
        self.config_maps().get_opt("clusterid-configmap").await.unwrap()
    }

    pub(crate) async fn cluster_config(&self) -> Option<ClusterConfig> {
        self.cluster_configs().get_opt("liqo").await.unwrap()
    }

    pub(crate) async fn events(&self) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        let all = events.list(&ListParams::default()).await.unwrap().items;
        all.into_iter()
            .filter(|event| {
                event.metadata.name.as_ref().is_some_and(|name| name.starts_with("liqo-identity."))
            })
            .collect()
    }

    /// A condition of the ClusterConfig as `status reason`, and its message.
    pub(crate) async fn condition(&self, aspect: &str) -> (String, String) {
        let status = self.cluster_config().await.and_then(|config| config.status).unwrap_or_default();
        let found = status.conditions.into_iter().find(|condition| condition.type_ == aspect);
        found.map(|it| (format!("{} {}", it.status, it.reason), it.message)).unwrap_or_default()
    }

    pub(crate) async fn wait_condition(&self, aspect: &str, expected: &str) -> String {
        eventually(&format!("{aspect} is {expected}"), || async {
            let (found, message) = self.condition(aspect).await;
            if found == expected { Ok(message) } else { Err(format!("{found:?} {message}")) }
        })
        .await
    }

    /// Who the objects say that the cluster is, once all three agree: they are written one after the other.
    pub(crate) async fn identity(&self) -> Who {
        eventually("Secret, ConfigMap and ClusterConfig agree", || self.agreed()).await
    }

    async fn agreed(&self) -> Result<Who, String> {
        let secret = self.secret().await.ok_or("no Secret")?;
        let data = |key: &str| {
            let bytes =
                secret.data.as_ref().and_then(|data| data.get(key)).ok_or_else(|| format!("no {key}"))?;
            String::from_utf8(bytes.0.clone()).map_err(|error| error.to_string())
        };
        let who = Who { id: data("cluster-id")?, name: data("cluster-name")?, key: data("private-key")? };
        let config_map = self.config_map().await.ok_or("no ConfigMap")?;
        let published = |key: &str| config_map.data.as_ref().and_then(|data| data.get(key)).cloned();
        let config = self.cluster_config().await.ok_or("no ClusterConfig")?;
        let status = config.status.unwrap_or_default();
        let told = status.cluster_identity.clone().unwrap_or_default();
        let agree = published("CLUSTER_ID").as_ref() == Some(&who.id)
            && published("CLUSTER_NAME").as_ref() == Some(&who.name)
            && (&told.cluster_id, &told.cluster_name) == (&who.id, &who.name)
            && status.public_key == Some(data("public-key")?)
            && status.fingerprint.as_ref() == config_map.annotations().get("liqo.io/key-fingerprint");
        let found = || format!("{} ({}), {config_map:?}, {status:?}", who.name, who.id);
        if agree { Ok(who.clone()) } else { Err(found()) }
    }

    /// The versions of all our objects, to see whether anything was written.
    pub(crate) async fn versions(&self) -> Vec<Option<String>> {
        vec![
            self.secret().await.and_then(|object| object.resource_version()),
            self.config_map().await.and_then(|object| object.resource_version()),
            self.cluster_config().await.and_then(|object| object.resource_version()),
            Some(format!("{} events", self.events().await.len())),
        ]
    }

    /// As if nothing had ever been installed.
    pub(crate) async fn forget(&self) {
        let delete = [
            "delete",
            "--ignore-not-found",
            "-n",
            NAMESPACE,
            "secret/liqo-identity",
            "configmap/clusterid-configmap",
            "lease/liqo-controller-manager",
        ];
        ok(&self.cluster.kubectl(delete));
        ok(&self.cluster.kubectl(["delete", "--ignore-not-found", "clusterconfig/liqo"]));
        ok(&self.cluster.kubectl(["delete", "--all", "-n", NAMESPACE, "events.events.k8s.io"]));
    }

    pub(crate) async fn patch_secret(&self, patch: Value) {
        self.secrets().patch("liqo-identity", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn patch_config_map(&self, patch: Value) {
        self.config_maps()
            .patch("clusterid-configmap", &PatchParams::default(), &Patch::Merge(patch))
            .await
            .unwrap();
    }

    /// Runs a command that a message told us to run.
    pub(crate) fn run_advice(&self, command: &str) {
        let words = command.strip_prefix("kubectl ").expect("a kubectl command").split_whitespace();
        ok(&self.cluster.kubectl(words));
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Who {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) key: String,
}

fn rule_json(rule: &Rule) -> Value {
    let mut json = json!({ "apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs });
    if !rule.names.is_empty() {
        json["resourceNames"] = json!(rule.names);
    }
    json
}

/// The administrator's kubeconfig with the account's token instead of the certificate.
fn account_kubeconfig(cluster: TestCluster<'_>) -> PathBuf {
    let token = ok(&cluster.kubectl(["create", "token", "-n", NAMESPACE, ACCOUNT, "--duration=2h"]));
    let text = ok(&cluster.kubectl(["config", "view", "--raw", "--minify", "-o", "json"]));
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"] = json!({ "token": token.trim() });
    let path = cluster.kubeconfig().with_file_name("manager.kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}
