//! A real metrics-server for a cluster: a process on this machine, with the rights that its own manifests give it, behind
//! the cluster's aggregation layer.

use std::net::{IpAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use liqo_sandbox::TestCluster;
use serde_json::{Value, json};

use crate::world::{address_for, bind, eventually, put};

/// Where `tools/install metrics` puts it, in the cache.
const PROGRAM: &str = "metrics-server-v0.9.0/metrics-server";
const NAMESPACE: &str = "kube-system";
const NAME: &str = "metrics-server";
/// How often it looks; the shortest time that it takes.
const RESOLUTION: &str = "10s";

/// Dropping it ends it.
pub(crate) struct MetricsServer(Child);

impl MetricsServer {
    /// Starts it, and waits until the cluster's API server passes questions on to it.
    pub(crate) async fn start(cluster: &TestCluster<'_>) -> Self {
        let client = cluster.client().await;
        let address = address_for(cluster).await.ip();
        let port = free_port(address);
        grant(&client).await;
        register(&client, &address.to_string(), port).await;
        let directory = cluster.plan().dir.join(NAME);
        std::fs::create_dir_all(&directory).unwrap();
        let kubeconfig = kubeconfig(cluster, &directory);
        let log = std::fs::File::create(directory.join("metrics-server.log")).unwrap();
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let child = Command::new(program())
            .arg(flag("kubeconfig", &kubeconfig))
            .arg(flag("authentication-kubeconfig", &kubeconfig))
            .arg(flag("authorization-kubeconfig", &kubeconfig))
            .arg(flag("cert-dir", &directory))
            // The doors and the kubelets show certificates of their cluster: nothing is taken on trust.
            .arg(flag("kubelet-certificate-authority", &cluster.plan().dir.join("pki/ca.crt")))
            .args(["--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port"])
            .args([format!("--metric-resolution={RESOLUTION}"), "--kubelet-request-timeout=5s".to_owned()])
            .args([format!("--bind-address={address}"), format!("--secure-port={port}")])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut running = Self(child);
        eventually("the aggregation layer finds metrics-server", || {
            let ended = running.0.try_wait().unwrap();
            assert!(ended.is_none(), "metrics-server: {ended:?}, see {}", directory.display());
            answers(cluster)
        })
        .await;
        running
    }
}

/// Whether the API server passes questions on.
async fn answers(cluster: &TestCluster<'_>) -> Result<(), String> {
    let output = cluster.kubectl(["get", "--raw", "/apis/metrics.k8s.io/v1beta1"]);
    output.status.success().then_some(()).ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test has no argument struct")]
fn program() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = variable("HOME").unwrap_or_default();
    let cache = variable("XDG_CACHE_HOME").unwrap_or_else(|| home.join(".cache")).join("liqo-rs");
    let program = variable("LIQO_TOOLS_DIR").unwrap_or(cache).join(PROGRAM);
    assert!(program.exists(), "no {}; `tools/install metrics` builds it", program.display());
    program
}

/// One that the kernel gives to nobody else before it is used: not among those that connections begin from.
fn free_port(address: IpAddr) -> u16 {
    let is_free = |port: &u16| TcpListener::bind((address, *port)).is_ok();
    let first = 20_000 + u16::try_from(std::process::id() % 8_000).unwrap();
    (first..30_000).find(is_free).unwrap()
}

/// What metrics-server's manifests let it do, and no more.
async fn grant(client: &kube::Client) {
    let metadata = json!({ "name": NAME, "namespace": NAMESPACE });
    put(client, &json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata })).await;
    let subjects = json!([{ "kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE }]);
    let rules = json!([
        { "apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"] },
        { "apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["get", "list", "watch"] },
    ]);
    bind(client, None, "system:metrics-server", &rules, &subjects).await;
    let binding = |kind: &str, name: &str, at: Option<&str>, role: (&str, &str)| {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1 },
            "subjects": subjects,
        });
        if let Some(at) = at {
            object["metadata"]["namespace"] = json!(at);
        }
        object
    };
    let reader = ("Role", "extension-apiserver-authentication-reader");
    let delegator = ("ClusterRole", "system:auth-delegator");
    put(client, &binding("RoleBinding", "metrics-server-auth-reader", Some(NAMESPACE), reader)).await;
    put(client, &binding("ClusterRoleBinding", "metrics-server:auth-delegator", None, delegator)).await;
}

/// Tells the API server who answers for `metrics.k8s.io`, and where.
async fn register(client: &kube::Client, address: &str, port: u16) {
    let metadata = json!({ "name": NAME, "namespace": NAMESPACE });
    let ports = json!([{ "name": "https", "port": port, "protocol": "TCP" }]);
    let objects: [Value; 3] = [
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": { "ports": ports } }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "ports": ports,
            "metadata": { "name": NAME, "namespace": NAMESPACE, "labels": { "kubernetes.io/service-name": NAME } },
            "endpoints": [{ "addresses": [address], "conditions": { "ready": true } }],
        }),
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": "v1beta1.metrics.k8s.io" },
            "spec": {
                "group": "metrics.k8s.io", "version": "v1beta1", "insecureSkipTLSVerify": true,
                "groupPriorityMinimum": 100, "versionPriority": 100,
                "service": { "name": NAME, "namespace": NAMESPACE, "port": port },
            },
        }),
    ];
    for object in &objects {
        put(client, object).await;
    }
}

/// A kubeconfig with a token of metrics-server's account instead of the administrator's certificate.
fn kubeconfig(cluster: &TestCluster<'_>, directory: &Path) -> PathBuf {
    let run = |arguments: &[&str]| {
        let output = cluster.kubectl(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let token = run(&["create", "token", NAME, "-n", NAMESPACE]);
    let view = run(&["config", "view", "--raw", "--flatten", "--minify", "-o", "json"]);
    let mut config: Value = serde_json::from_str(&view).unwrap();
    config["users"][0]["user"] = json!({ "token": token.trim() });
    let path = directory.join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}
