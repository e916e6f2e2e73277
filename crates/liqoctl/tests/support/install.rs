//! `liqoctl install` and `uninstall` against a test's own cluster, and a look at everything in it.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test can do nothing else about it"
)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use kube::api::{DynamicObject, ListParams, ObjectList, PartialObjectMeta};
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, Client};
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::time::Instant;

#[path = "said.rs"]
mod said;

pub use said::Said;

pub const CLUSTER: &str = "alpha";
/// Where test sandboxes live.
const BASE: &str = "/var/lib/liqo-sandbox-tests";
/// A machine may be ten times busier than ours.
pub const SOON: Duration = Duration::from_secs(60);

/// A cluster, and the command line for it.
pub struct World {
    pub sandbox: TestSandbox,
}

impl World {
    pub async fn start(cluster: ClusterSpec) -> Self {
        Self { sandbox: TestSandbox::start([cluster]).await }
    }

    pub fn cluster(&self) -> TestCluster<'_> {
        self.sandbox.cluster(CLUSTER)
    }

    pub async fn client(&self) -> Client {
        self.cluster().client().await
    }

    /// The program with the administrator's kubeconfig.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_as(&self.cluster().kubeconfig(), arguments)
    }

    pub fn command_as(&self, kubeconfig: &std::path::Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_liqoctl"));
        command
            .env("KUBECONFIG", kubeconfig)
            .env("LIQO_SANDBOX_STATE_DIR", BASE)
            .env("LIQO_SANDBOX_NAME", self.sandbox.sandbox().place().name())
            .env_remove("LIQO_IMAGE_ARCHIVE")
            .stdin(Stdio::null());
        command.args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        let started = Instant::now();
        let output = self.command(arguments).output().unwrap();
        // Shown when a test fails, and tells which step is slow.
        eprintln!("liqoctl {} took {:.1} s", arguments.join(" "), started.elapsed().as_secs_f64());
        output
    }

    /// Runs a command that must succeed; both streams.
    pub fn ok(&self, arguments: &[&str]) -> Said {
        let said = Said::of(&self.run(arguments));
        assert_eq!(said.code, Some(0), "liqoctl {arguments:?}: {said}");
        said
    }

    /// Runs a command that must fail with code 1.
    pub fn fails(&self, arguments: &[&str]) -> Said {
        let said = Said::of(&self.run(arguments));
        assert_eq!(said.code, Some(1), "liqoctl {arguments:?}: {said}");
        said
    }

    /// Runs a command that must fail with code 1, until it has told all these words: how soon Kubernetes itself notices what
    /// is wrong depends on the machine, and until then nobody can tell it.
    pub fn fails_telling(&self, arguments: &[&str], words: &[&str]) {
        let deadline = Instant::now() + SOON;
        loop {
            let said = self.fails(arguments);
            if words.iter().all(|word| said.err.contains(word)) || Instant::now() >= deadline {
                return said.tells(words);
            }
        }
    }

    /// Waits until the API server knows that somebody may do this: it learns of roles and bindings a moment after they
    /// were made.
    pub fn until_may(&self, who: &str, what: &[&str]) {
        let who = format!("--as={who}");
        let arguments = [&["auth", "can-i"][..], what, &[who.as_str()]].concat();
        until(&format!("{arguments:?}"), || {
            let said = Said::of(&self.cluster().kubectl(&arguments));
            if said.code == Some(0) { Ok(()) } else { Err(said.to_string()) }
        });
    }

    /// kubectl, which must succeed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        let output = self.cluster().kubectl(arguments);
        let said = Said::of(&output);
        assert!(output.status.success(), "kubectl {arguments:?}: {said}");
        said.out
    }

    pub fn apply(&self, yaml: &str) {
        let output = self.cluster().kubectl_apply(yaml);
        assert!(output.status.success(), "kubectl apply: {}", Said::of(&output));
    }

    /// Starts a command and gives its lines of standard error as they come.
    pub fn start_command(&self, arguments: &[&str]) -> Running {
        let mut child = self.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let reader = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = sync_channel(10_000);
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Running { child, lines, seen: Vec::new() }
    }

    /// A kubeconfig for a service account with these rules, made by the administrator.
    pub async fn restricted(&self, name: &str, rules: &Value) -> PathBuf {
        self.kubectl(&["create", "serviceaccount", name, "-n", "default"]);
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules,
        });
        self.apply(&role.to_string());
        let account = format!("--serviceaccount=default:{name}");
        self.kubectl(&["create", "clusterrolebinding", name, &format!("--clusterrole={name}"), &account]);
        for (verb, resource) in pairs(rules) {
            self.until_may(&format!("system:serviceaccount:default:{name}"), &[&verb, &resource]);
        }
        let token = self.kubectl(&["create", "token", name, "-n", "default"]);
        let admin = std::fs::read_to_string(self.cluster().kubeconfig()).unwrap();
        let mut config: Value = serde_saphyr::from_str(&admin).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        let path = self.sandbox.sandbox().place().root().join(format!("{name}.kubeconfig"));
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }
}

/// Each verb with each resource of rules for the core group.
fn pairs(rules: &Value) -> Vec<(String, String)> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
    };
    let of_rule = |rule: &Value| -> Vec<(String, String)> {
        let (verbs, resources) = (texts(&rule["verbs"]), texts(&rule["resources"]));
        verbs.iter().flat_map(|verb| resources.iter().map(move |it| (verb.clone(), it.clone()))).collect()
    };
    rules.as_array().unwrap().iter().flat_map(of_rule).collect()
}

/// Asks until the answer is yes, or the deadline has come; then shows the last answer.
pub fn until(what: &str, mut ask: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + SOON;
    while let Err(state) = ask() {
        assert!(Instant::now() < deadline, "{what}: not within {SOON:?}: {state}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A command under way.
pub struct Running {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    /// Waits for a line with this text.
    pub fn until_it_says(&mut self, text: &str) {
        let deadline = Instant::now() + SOON;
        while !self.seen.iter().any(|line| line.contains(text)) {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(_) => panic!("it did not say {text:?}, only:\n{}", self.seen.join("\n")),
            }
        }
    }

    pub fn send(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    /// Waits for its end.
    pub fn end(mut self) -> Said {
        let deadline = Instant::now() + SOON;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() >= deadline {
                self.child.kill().unwrap();
                panic!("it does not end; it said:\n{}", self.seen.join("\n"));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut seen = std::mem::take(&mut self.seen);
        seen.extend(self.lines.iter());
        Said { code: status.code(), out: String::new(), err: seen.join("\n") }
    }
}

/// Every object of every kind with its resource version, but what Kubernetes itself writes all the time.
pub async fn everything(client: &Client) -> BTreeMap<String, String> {
    let discovery = Discovery::new(client.clone()).run_aggregated().await.unwrap();
    let mut found = BTreeMap::new();
    for group in discovery.groups() {
        for (resource, capabilities) in group.recommended_resources() {
            if !capabilities.supports_operation(verbs::LIST) || resource.kind == "Event" {
                continue;
            }
            let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
            let Some(list) = listed(&api).await else { continue };
            for object in list.items {
                let namespace = object.metadata.namespace.clone().unwrap_or_default();
                let place =
                    if capabilities.scope == Scope::Namespaced { namespace.clone() } else { String::new() };
                if resource.kind == "Lease" && namespace == "kube-system" {
                    continue;
                }
                let name = object.metadata.name.unwrap_or_default();
                // Nodes write these every few seconds: that they are there counts.
                let busy = resource.kind == "Node" || namespace == "kube-node-lease";
                let version = object.metadata.resource_version.filter(|_| !busy).unwrap_or_default();
                found.insert(format!("{} {}/{place}/{name}", resource.kind, resource.group), version);
            }
        }
    }
    found
}

/// All objects of a kind; nothing where it has just gone, or cannot be listed. A server that is busy with a kind is asked
/// again.
async fn listed(api: &Api<DynamicObject>) -> Option<ObjectList<PartialObjectMeta<DynamicObject>>> {
    let deadline = Instant::now() + SOON;
    loop {
        match api.list_metadata(&ListParams::default()).await {
            Ok(list) => return Some(list),
            Err(kube::Error::Api(status)) if status.code < 500 && status.code != 429 => return None,
            Err(error) => assert!(Instant::now() < deadline, "cannot list {}: {error}", api.resource_url()),
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Whether two looks show the same; pods and leases are written without anything having been done.
fn is_quiet(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> bool {
    let busy = |line: &String| line.starts_with("~ Pod ") || line.starts_with("~ Lease ");
    difference(one, other).iter().all(busy)
}

/// Everything, once a young cluster has stopped making things of its own.
pub async fn settled(client: &Client) -> BTreeMap<String, String> {
    const QUIET: Duration = Duration::from_secs(3);
    let deadline = Instant::now() + SOON;
    let (mut now, mut since) = (everything(client).await, Instant::now());
    while since.elapsed() < QUIET {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let next = everything(client).await;
        if !is_quiet(&now, &next) || lacks(&next).is_some() {
            let differs = difference(&now, &next);
            assert!(
                Instant::now() < deadline,
                "the cluster does not settle; it lacks {:?}, and this changed last:\n{}",
                lacks(&next),
                differs.join("\n")
            );
            since = Instant::now();
        }
        now = next;
    }
    now
}

/// What controllers make in every namespace, and have not made yet. Where there is no node, there are no controllers.
fn lacks(all: &BTreeMap<String, String>) -> Option<String> {
    if !all.keys().any(|name| name.starts_with("Node /")) {
        return None;
    }
    let namespaces = all.keys().filter_map(|name| name.strip_prefix("Namespace //"));
    let mut made = namespaces.flat_map(|name| {
        [format!("ServiceAccount /{name}/default"), format!("ConfigMap /{name}/kube-root-ca.crt")]
    });
    made.find(|name| !all.contains_key(name))
}

/// The names only.
pub async fn names(client: &Client) -> Vec<String> {
    everything(client).await.into_keys().collect()
}

/// What is in one of them only.
pub fn difference(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key)).map(|(key, _)| format!("- {key}"));
    let new = after.iter().filter(|(key, _)| !before.contains_key(*key)).map(|(key, _)| format!("+ {key}"));
    let changed = before
        .iter()
        .filter(|(key, version)| after.get(*key).is_some_and(|now| now != *version))
        .map(|(key, _)| format!("~ {key}"));
    gone.chain(new).chain(changed).collect()
}

/// Waits until the cluster has what it had before, and nothing else.
pub async fn until_as_before(client: &Client, before: &BTreeMap<String, String>) {
    let deadline = Instant::now() + SOON;
    loop {
        let now = everything(client).await;
        let differs: Vec<String> =
            difference(before, &now).into_iter().filter(|line| !line.starts_with('~')).collect();
        if differs.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "not as before:\n{}", differs.join("\n"));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Stands for the manager where none runs: tells who the cluster is, and in clusters without controllers that its pods
/// run. Ends with the value.
pub struct Manager(#[expect(dead_code, reason = "held, not read")] tokio::task::JoinSet<()>);

impl Manager {
    pub fn start(client: Client, controllers: bool) -> Self {
        let mut tasks = tokio::task::JoinSet::new();
        tasks.spawn(async move {
            loop {
                // Whatever fails is tried again: the API server may be away, or the kind not be there yet.
                let _ = play(&client, controllers).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
        Self(tasks)
    }
}

async fn play(client: &Client, controllers: bool) -> Result<(), kube::Error> {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::api::{Patch, PatchParams, PostParams};
    use liqo_api::ClusterConfig;

    let deployments = Api::<Deployment>::namespaced(client.clone(), "liqo");
    let Some(deployment) = deployments.get_opt("liqo-controller-manager").await? else { return Ok(()) };
    let merge = PatchParams::default();
    if deployment.metadata.deletion_timestamp.is_some() {
        return Ok(());
    }
    let ready = deployment.status.as_ref().and_then(|status| status.observed_generation)
        == deployment.metadata.generation;
    if !controllers && !ready {
        let status = json!({"status": {"observedGeneration": deployment.metadata.generation, "replicas": 1,
            "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}});
        deployments.patch_status("liqo-controller-manager", &merge, &Patch::Merge(&status)).await?;
    }
    if controllers && deployment.status.and_then(|status| status.available_replicas).unwrap_or(0) == 0 {
        return Ok(());
    }
    let configs = Api::<ClusterConfig>::all(client.clone());
    if configs.get_opt("liqo").await?.is_some_and(|config| config.status.is_some()) {
        return Ok(());
    }
    let arguments =
        deployment.spec.unwrap().template.spec.unwrap().containers[0].args.clone().unwrap_or_default();
    let name = arguments.iter().find_map(|one| one.strip_prefix("--cluster-name=")).unwrap_or("unnamed");
    let map: ConfigMap = from(json!({"metadata": {"name": "clusterid-configmap"},
        "data": {"CLUSTER_ID": "5d1f9c3e-0000-4000-8000-000000000001", "CLUSTER_NAME": name}}));
    let secret: Secret = from(json!({"metadata": {"name": "liqo-identity"}, "type": "liqo.io/identity"}));
    let config: ClusterConfig =
        from(json!({"apiVersion": "config.liqo.io/v1alpha1", "kind": "ClusterConfig",
        "metadata": {"name": "liqo"}, "spec": {"workingMode": "Autonomous"}}));
    let post = PostParams::default();
    let _ = Api::<ConfigMap>::namespaced(client.clone(), "liqo").create(&post, &map).await;
    let _ = Api::<Secret>::namespaced(client.clone(), "liqo").create(&post, &secret).await;
    let _ = configs.create(&post, &config).await;
    let condition = json!({"type": "Ready", "status": "True", "reason": "Ready", "message": "all is well",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"version": env!("CARGO_PKG_VERSION"), "conditions": [condition]}});
    configs.patch_status("liqo", &merge, &Patch::Merge(&status)).await.map(drop)
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}
