//! Bringing a cluster up: what is started in which order, and what is waited for in between.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use tokio::time::Instant;

use crate::component::{Component, Part};
use crate::control_plane::HOLLOW_ANNOTATION;
use crate::error::{Result, SandboxError, log_tail};
use crate::plan::{ClusterPlan, MachinePlan, Place};
use crate::process::{self, Inside};
use crate::{client, image, network, node, parts};

/// Several clusters start at once on few cores; alone, an API server needs about two seconds.
const API_DEADLINE: Duration = Duration::from_secs(90);
/// The same for containerd, which needs a fraction of a second.
const CONTAINERD_DEADLINE: Duration = Duration::from_secs(60);
/// The same for a node, which needs about six seconds.
const NODE_DEADLINE: Duration = Duration::from_secs(120);
/// What a hollow node adds to that, created one after the other on a busy machine.
const HOLLOW_NODE_DEADLINE: Duration = Duration::from_millis(50);
/// Between two questions whether something is ready.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// What a hollow node adds to that: listing thousands of them keeps the API server from making them ready.
const ASK_AGAIN_HOLLOW: Duration = Duration::from_millis(1);
/// Nobody should wonder for longer than this what is being waited for.
const SAY_AGAIN: Duration = Duration::from_secs(5);
/// Hollow nodes are created this many at a time.
const HOLLOW_CONCURRENCY: usize = 32;

/// Says how far a cluster has come; called with the cluster's name and what has happened.
pub type Progress<'a> = &'a (dyn Fn(&str, &str) + Sync);

/// One cluster being brought up.
pub(crate) struct BringUp<'a> {
    pub(crate) place: &'a Place,
    pub(crate) cluster: &'a ClusterPlan,
    pub(crate) progress: Progress<'a>,
}

impl BringUp<'_> {
    /// Everything, for the first time.
    pub(crate) async fn whole_cluster(&self) -> Result<()> {
        let machines = self.cluster.nodes();
        let prepared = async {
            futures::future::try_join_all(machines.iter().map(|machine| self.prepare_node(machine))).await
        };
        let (client, _) = tokio::try_join!(self.control_plane(), prepared)?;
        self.hollow_nodes(&client).await?;
        for machine in machines {
            self.start(Part { component: Component::Kubelet, node: Some(machine.number) })?;
            self.start(Part { component: Component::KubeProxy, node: Some(machine.number) })?;
        }
        if !machines.is_empty() {
            self.apply(&coredns_manifest(self.cluster)).await?;
        }
        self.nodes_ready(&client).await?;
        self.routes(&client).await?;
        if !machines.is_empty() {
            self.dns_ready(&client).await?;
        }
        self.say("ready");
        Ok(())
    }

    /// Starts the given parts again after they were stopped, or lets them go on after a pause, in order, and waits.
    pub(crate) async fn again(&self, chosen: &[Part]) -> Result<()> {
        let has = |component| chosen.iter().any(|part| part.component == component);
        let paused = self.in_state(chosen, parts::PartState::Paused);
        if !paused.is_empty() {
            parts::resume(self.place, self.cluster, &paused)?;
        }
        for part in self.down(chosen, &[Component::Etcd, Component::Apiserver]) {
            self.start(part)?;
        }
        if has(Component::Apiserver) || has(Component::Etcd) {
            self.api_ready().await?;
        }
        for part in self.down(chosen, &[Component::ControllerManager, Component::Scheduler, Component::Kwok])
        {
            self.start(part)?;
        }
        for part in self.down(chosen, &[Component::Node]) {
            self.start(part)?;
            // A node without its components is of no use to anyone.
            for component in [Component::Containerd, Component::Kubelet, Component::KubeProxy] {
                self.start_when_possible(Part { component, ..part }).await?;
            }
        }
        for part in self.down(chosen, &[Component::Containerd, Component::Kubelet, Component::KubeProxy]) {
            self.start_when_possible(part).await?;
        }
        Ok(())
    }

    fn in_state(&self, chosen: &[Part], state: parts::PartState) -> Vec<Part> {
        let all = process::of(&self.place.root());
        chosen.iter().copied().filter(|part| parts::state(&all, self.cluster, *part) == state).collect()
    }

    fn down(&self, chosen: &[Part], components: &[Component]) -> Vec<Part> {
        let stopped = self.in_state(chosen, parts::PartState::Stopped);
        stopped.into_iter().filter(|part| components.contains(&part.component)).collect()
    }

    async fn start_when_possible(&self, part: Part) -> Result<()> {
        if part.component != Component::Containerd
            && let Some(machine) =
                self.cluster.nodes().iter().find(|machine| Some(machine.number) == part.node)
        {
            self.containerd_ready(machine).await?;
        }
        self.start(part)
    }

    fn say(&self, what: &str) {
        (self.progress)(self.cluster.name(), what);
    }

    fn start(&self, part: Part) -> Result<()> {
        parts::start(self.place, self.cluster, part)
    }

    async fn control_plane(&self) -> Result<Client> {
        let control = |component| Part { component, node: None };
        self.start(control(Component::Etcd))?;
        self.start(control(Component::Apiserver))?;
        let client = self.api_ready().await?;
        self.say("API server ready");
        if self.cluster.spec.is_api_only() {
            return Ok(client);
        }
        // Earlier they would exit: they do not wait for an API server.
        self.start(control(Component::ControllerManager))?;
        self.start(control(Component::Scheduler))?;
        Ok(client)
    }

    async fn api_ready(&self) -> Result<Client> {
        let client = client::client(self.cluster).await?;
        let part = Part { component: Component::Apiserver, node: None };
        self.until("API server", API_DEADLINE, Some(part), async || client::ready(&client).await).await?;
        Ok(client)
    }

    /// Everything of a node that needs no API server: namespaces, containerd, images.
    async fn prepare_node(&self, machine: &MachinePlan) -> Result<()> {
        crate::cgroups::create(self.place, machine)?;
        self.start(Part { component: Component::Node, node: Some(machine.number) })?;
        self.start(Part { component: Component::Containerd, node: Some(machine.number) })?;
        self.containerd_ready(machine).await?;
        let inside = node::inside(self.place, self.cluster, machine)?;
        let archives = builtin_images(self.place);
        tokio::task::spawn_blocking(move || {
            archives.iter().try_for_each(|archive| node::load_image(inside, archive))
        })
        .await
        .map_err(|error| SandboxError::Command {
            what: "loading images".into(),
            reason: error.to_string(),
        })??;
        self.say(&format!("node {} has its images", machine.node_name));
        Ok(())
    }

    async fn containerd_ready(&self, machine: &MachinePlan) -> Result<()> {
        let part = Part { component: Component::Containerd, node: Some(machine.number) };
        let what = format!("containerd of {}", machine.node_name);
        self.until(&what, CONTAINERD_DEADLINE, Some(part), async || {
            let init = node::init(self.place, self.cluster, machine).ok_or("the node is down")?;
            let socket = format!("/proc/{init}/root{}", node::CONTAINERD_SOCKET);
            if Path::new(&socket).exists() { Ok(()) } else { Err("no socket yet".to_owned()) }
        })
        .await
    }

    async fn hollow_nodes(&self, client: &Client) -> Result<()> {
        let count = self.cluster.spec.hollow_nodes;
        if count == 0 {
            return Ok(());
        }
        self.apply(include_str!("../manifests/kwok.yaml")).await?;
        self.start(Part { component: Component::Kwok, node: None })?;
        let api: Api<Node> = Api::all(client.clone());
        stream::iter(1..=count)
            .map(|number| {
                let api = api.clone();
                async move {
                    let node = hollow_node(self.cluster, number);
                    api.create(&PostParams::default(), &node)
                        .await
                        .map_err(|source| self.api_error("create a hollow node", source))
                }
            })
            .buffer_unordered(HOLLOW_CONCURRENCY)
            .try_for_each(|_| async { Ok(()) })
            .await?;
        self.say(&format!("{count} hollow nodes created"));
        Ok(())
    }

    async fn nodes_ready(&self, client: &Client) -> Result<()> {
        let wanted = self.cluster.nodes().len() + self.cluster.spec.hollow_nodes as usize;
        if wanted == 0 {
            return Ok(());
        }
        let api: Api<Node> = Api::all(client.clone());
        let part = match self.cluster.nodes().first() {
            Some(node) => Part { component: Component::Kubelet, node: Some(node.number) },
            None => Part { component: Component::Kwok, node: None },
        };
        let deadline = NODE_DEADLINE + HOLLOW_NODE_DEADLINE * self.cluster.spec.hollow_nodes;
        self.until("nodes", deadline, Some(part), async || {
            let nodes = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
            let unready: Vec<String> = nodes.items.iter().filter_map(why_unready).collect();
            match (nodes.items.len(), unready.first()) {
                (there, None) if there >= wanted => Ok(()),
                (there, None) => Err(format!("{there} of {wanted} nodes have registered")),
                (_, Some(first)) => {
                    Err(format!("{} of {wanted} nodes not ready, e.g. {first}", unready.len()))
                }
            }
        })
        .await?;
        self.say(&format!("{wanted} node{} ready", if wanted == 1 { "" } else { "s" }));
        Ok(())
    }

    /// Pods of different nodes reach each other by plain routes.
    async fn routes(&self, client: &Client) -> Result<()> {
        let machines = self.cluster.nodes();
        if machines.len() < 2 {
            return Ok(());
        }
        let api: Api<Node> = Api::all(client.clone());
        let nodes =
            api.list(&ListParams::default()).await.map_err(|source| self.api_error("list nodes", source))?;
        let pods_of = |machine: &MachinePlan| {
            let node =
                nodes.items.iter().find(|node| node.metadata.name.as_deref() == Some(&machine.node_name))?;
            node.spec.as_ref()?.pod_cidr.clone()
        };
        for machine in machines {
            let others = machines.iter().filter(|other| other.number != machine.number);
            let routes: Vec<_> = others.filter_map(|other| Some((pods_of(other)?, other.address))).collect();
            let holder = network::holder(&self.place.root(), &network::holder_part(self.cluster, machine))?;
            network::route_pods(Inside::Network(holder), &routes)?;
        }
        Ok(())
    }

    async fn dns_ready(&self, client: &Client) -> Result<()> {
        let api: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
        self.until("cluster DNS", NODE_DEADLINE, None, async || {
            let dns = api.get("coredns").await.map_err(|error| error.to_string())?;
            let status = dns.status.unwrap_or_default();
            match status.available_replicas {
                Some(1..) => Ok(()),
                _ => Err(format!("no CoreDNS pod is available ({} exist)", status.replicas.unwrap_or(0))),
            }
        })
        .await
    }

    /// Applies manifests with the cluster's own kubectl.
    async fn apply(&self, manifest: &str) -> Result<()> {
        let kubectl = self.place.bin().join("kubectl");
        let kubeconfig = format!("--kubeconfig={}", self.cluster.kubeconfig().display());
        let manifest = manifest.as_bytes().to_vec();
        let run = move || {
            let argv = [kubectl.as_os_str(), kubeconfig.as_ref(), "apply".as_ref(), "--server-side".as_ref()];
            let more = ["--validate=false", "-f", "-"].map(std::ffi::OsStr::new);
            Inside::Host.run("applying the cluster's manifests", argv.into_iter().chain(more), &manifest)
        };
        tokio::task::spawn_blocking(run)
            .await
            .map_err(|error| SandboxError::Command {
                what: "applying manifests".into(),
                reason: error.to_string(),
            })?
            .map(drop)
    }

    fn api_error(&self, what: &str, source: kube::Error) -> SandboxError {
        SandboxError::Api { cluster: self.cluster.name().into(), what: what.into(), source: Box::new(source) }
    }

    /// Asks until the answer is yes, the deadline has come, or the process that should get ready has died.
    async fn until(
        &self,
        what: &str,
        deadline: Duration,
        part: Option<Part>,
        mut ask: impl AsyncFnMut() -> Result<(), String>,
    ) -> Result<()> {
        let started = Instant::now();
        let mut said = started;
        loop {
            let Err(mut state) = ask().await else { return Ok(()) };
            let died = part.is_some_and(|part| {
                parts::state(&process::of(&self.place.root()), self.cluster, part)
                    == parts::PartState::Stopped
            });
            // A process that was started a moment ago may not have become its program yet.
            let died = died && started.elapsed() > Duration::from_secs(1);
            if died {
                state = format!("it ended ({state})");
            }
            if died || started.elapsed() > deadline {
                return Err(SandboxError::NotReady {
                    what: format!("cluster {}: {what}", self.cluster.name()),
                    seconds: started.elapsed().as_secs(),
                    state,
                    log: part.map(|part| log_tail(&part.log(self.cluster))).unwrap_or_default(),
                });
            }
            if said.elapsed() > SAY_AGAIN {
                said = Instant::now();
                self.say(&format!("waiting for {what}: {state}"));
            }
            tokio::time::sleep(ASK_AGAIN + ASK_AGAIN_HOLLOW * self.cluster.spec.hollow_nodes).await;
        }
    }
}

/// The archives that every node gets.
pub(crate) fn builtin_images(place: &Place) -> Vec<PathBuf> {
    ["pause", "coredns", "sandbox-app"].map(|name| place.images().join(format!("{name}.tar"))).to_vec()
}

fn coredns_manifest(cluster: &ClusterPlan) -> String {
    include_str!("../manifests/coredns.yaml")
        .replace("clusterIP: DNS_ADDRESS", &format!("clusterIP: {}", cluster.dns_service()))
        .replace("image: IMAGE", &format!("image: {}", image::COREDNS_NAME))
        .replace("sandbox-cluster: CLUSTER", &format!("sandbox-cluster: {}", cluster.name()))
}

fn why_unready(node: &Node) -> Option<String> {
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready");
    match ready {
        Some(condition) if condition.status == "True" => None,
        Some(condition) => Some(format!("{name}: {}", condition.message.as_deref().unwrap_or("no message"))),
        None => Some(format!("{name}: no condition yet")),
    }
}

fn hollow_node(cluster: &ClusterPlan, number: u32) -> Node {
    let name = format!("{}-hollow-{number}", cluster.name());
    let (key, value) = HOLLOW_ANNOTATION;
    // Beside real nodes, hollow ones take only pods that ask for them.
    let taints = if cluster.nodes().is_empty() {
        serde_json::json!([])
    } else {
        serde_json::json!([{"key": key, "value": value, "effect": "NoSchedule"}])
    };
    let capacity =
        serde_json::json!({"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "500Gi"});
    let node = serde_json::json!({
        "metadata": {
            "name": name,
            "annotations": {key: value, "node.alpha.kubernetes.io/ttl": "0"},
            "labels": {
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
                "type": "kwok",
            },
        },
        "spec": {"taints": taints},
        "status": {"allocatable": capacity, "capacity": capacity, "nodeInfo": {
            "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "kwok",
            "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
            "machineID": "", "osImage": "", "systemUUID": "",
        }},
    });
    serde_json::from_value(node).unwrap_or_default()
}
