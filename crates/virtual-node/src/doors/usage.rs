//! What pods use, as providers measure it, for `kubectl top` and autoscalers.
//!
//! Providers tell how fast time on a CPU is used, kubelets how much was used so far; so it is added up here. Where a
//! provider measures nothing, nothing is told. All nodes have one port: at the paths that a kubelet has, the pods of all of
//! them are told, and a node itself only if there is one alone. Each node has a path of its own besides, which its annotation
//! tells metrics-server.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use liqo_api::labels;
use liqo_core::Quantity;
use liqo_core::names::{ClusterId, PoolName};
use liqo_kit::ClientSource;
use liqo_providers::Link;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Doors, Refused, query};
use crate::index::Index;
use crate::node;
use crate::plan::cluster_of;

#[cfg(test)]
mod tests;

/// For how long what was measured is told again: monitoring asks once for each node, and gets the same.
const FRESH: Duration = Duration::from_secs(10);
/// How long a provider may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Namespaces asked about at once.
const AT_ONCE: usize = 8;
/// The longest time that a measured speed is taken to have lasted.
const LONGEST: Duration = Duration::from_secs(120);
/// Where the seconds of a container begin: metrics-server takes none for not measured, and no container starts without any.
const BEGINNING: f64 = 0.001;
/// Billionths in one.
const NANOS: f64 = 1e9;

/// A container: namespace and pod here, and its name.
type Place = (String, String, String);

/// What was measured, and added up so far.
#[derive(Default)]
pub(super) struct Usage {
    latest: tokio::sync::Mutex<Option<(Instant, Arc<Measured>)>>,
    totals: Mutex<Totals>,
}

/// What was measured at one time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Measured {
    /// Milliseconds since 1970.
    at: i64,
    containers: BTreeMap<Place, Used>,
    /// The nodes of pods, by namespace and name here.
    nodes: BTreeMap<(String, String), String>,
}

/// What was measured of one pod: its containers, and which pool it is in.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    containers: Vec<(Place, Used)>,
    pool: Option<PoolName>,
}

/// What one container uses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Used {
    /// Cores.
    cores: f64,
    /// Seconds on a CPU since it was first seen here.
    seconds: f64,
    /// Bytes.
    memory: i64,
}

/// Seconds on a CPU, added up.
#[derive(Default)]
struct Totals(HashMap<Place, (f64, Instant)>);

impl Totals {
    /// Adds what was used since the last time; who is gone is forgotten.
    fn add(&mut self, containers: &mut BTreeMap<Place, Used>, now: Instant) {
        self.0.retain(|place, _| containers.contains_key(place));
        for (place, used) in containers {
            let (total, at) = self.0.entry(place.clone()).or_insert((BEGINNING, now));
            *total += used.cores * now.duration_since(*at).min(LONGEST).as_secs_f64();
            *at = now;
            used.seconds = *total;
        }
    }
}

#[derive(Deserialize)]
struct PodMetricsList {
    #[serde(default)]
    items: Vec<PodMetrics>,
}

#[derive(Deserialize)]
struct PodMetrics {
    metadata: Metadata,
    #[serde(default)]
    containers: Vec<ContainerMetrics>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct ContainerMetrics {
    name: String,
    #[serde(default)]
    usage: BTreeMap<String, String>,
}

impl PodMetrics {
    /// The containers of a pod of `namespace` here. What comes from a provider is checked before it is told.
    fn read(self, namespace: &str) -> Option<Seen> {
        query::check_name(&self.metadata.name).ok()?;
        let pool = self.metadata.labels.get(labels::POOL).and_then(|pool| pool.parse().ok());
        let pod = self.metadata.name;
        let known = self.containers.into_iter().filter(|it| query::check_name(&it.name).is_ok());
        let containers = known
            .map(|container| {
                let amount =
                    |name: &str| container.usage.get(name).and_then(|it| it.parse::<Quantity>().ok());
                let used = Used {
                    cores: amount("cpu").map_or(0.0, |it| it.nanos() as f64 / NANOS).max(0.0),
                    seconds: 0.0,
                    memory: amount("memory").map_or(0, Quantity::value).max(0),
                };
                ((namespace.to_owned(), pod.clone(), container.name), used)
            })
            .collect();
        Some(Seen { containers, pool })
    }
}

impl Doors {
    /// The pods here that are on virtual nodes.
    pub(super) async fn pods_here(&self) -> Result<Vec<Pod>, Refused> {
        let pods: Api<Pod> = Api::all(self.0.client.clone());
        let params = ListParams::default().labels(&format!("{}={}", labels::SHADOW_POD, labels::TRUE));
        let busy = |why: String| Refused::new(StatusCode::SERVICE_UNAVAILABLE, why);
        let found = tokio::time::timeout(TIMEOUT, pods.list(&params)).await;
        let found = found.map_err(|_| busy("the API server does not answer".to_owned()))?;
        let found = found.map_err(|error| busy(error.to_string()))?;
        let index = self.0.index.read();
        let is_there = |pod: &Pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            node.is_some_and(|node| cluster_of(&index, node).is_some())
        };
        Ok(found.items.into_iter().filter(is_there).collect())
    }

    async fn measured(&self) -> Arc<Measured> {
        let mut latest = self.0.usage.latest.lock().await;
        if let Some((at, measured)) = latest.as_ref()
            && at.elapsed() < FRESH
        {
            return Arc::clone(measured);
        }
        let asked: Vec<_> = {
            let index = self.0.index.read();
            let providers = self.0.providers.current();
            let lending = providers.values().filter(|it| it.lent.is_some() && !it.health.is_gone());
            lending
                .filter_map(|provider| {
                    Some((provider.id.clone(), provider.link.clone().ok()?, &provider.local_namespace))
                })
                .flat_map(|(id, link, at)| {
                    let mapped = index.namespaces(at);
                    let mapped = mapped.map(move |(here, there)| {
                        (id.clone(), link.clone(), here.to_owned(), there.to_owned())
                    });
                    mapped.collect::<Vec<_>>()
                })
                .collect()
        };
        let asking = stream::iter(asked).map(|(id, link, here, there)| async move {
            let seen = ask(&link, &here, &there).await;
            (id, seen)
        });
        let found: Vec<_> = asking.buffer_unordered(AT_ONCE).collect().await;
        let mut measured =
            Measured { at: self.0.settings.clock.now().as_millisecond(), ..Measured::default() };
        {
            let index = self.0.index.read();
            for (cluster, seen) in found {
                seen.into_iter().for_each(|seen| measured.add(&index, &cluster, seen));
            }
        }
        self.0.usage.totals.lock().add(&mut measured.containers, Instant::now());
        let measured = Arc::new(measured);
        *latest = Some((Instant::now(), Arc::clone(&measured)));
        measured
    }

    /// The name of the only node there is.
    fn only_node(&self) -> Option<String> {
        let index = self.0.index.read();
        let mut nodes = index.ours().map(|(_, name, _)| name.to_owned());
        nodes.next().filter(|_| nodes.next().is_none())
    }

    /// What a kubelet tells at `/stats/summary`: of one node, or of all.
    pub(super) async fn summary(&self, node: Option<&str>) -> Result<Value, Refused> {
        let measured = self.measured().await;
        Ok(match node {
            Some(node) => measured.of(self.known(node)?).summary(Some(node)),
            None => measured.summary(self.only_node().as_deref()),
        })
    }

    /// What a kubelet tells at `/metrics/resource`: of one node, or of all.
    pub(super) async fn resource_metrics(&self, node: Option<&str>) -> Result<String, Refused> {
        let measured = self.measured().await;
        Ok(match node {
            Some(node) => measured.of(self.known(node)?).text(true),
            None => measured.text(self.only_node().is_some()),
        })
    }

    fn known<'a>(&self, node: &'a str) -> Result<&'a str, Refused> {
        let known = cluster_of(&self.0.index.read(), node).is_some();
        known
            .then_some(node)
            .ok_or_else(|| Refused::new(StatusCode::NOT_FOUND, "there is no such virtual node"))
    }
}

/// What the pods of one namespace use; nothing where that is not measured, or is not for us to know.
async fn ask(link: &Link, here: &str, there: &str) -> Vec<Seen> {
    let path = format!("/apis/metrics.k8s.io/v1beta1/namespaces/{there}/pods");
    let Ok(request) = http::Request::get(path).body(Vec::new()) else { return Vec::new() };
    let client = link.cluster.client();
    match tokio::time::timeout(TIMEOUT, client.request::<PodMetricsList>(request)).await {
        Ok(Ok(list)) => list.items.into_iter().filter_map(|pod| pod.read(here)).collect(),
        Ok(Err(error)) => {
            tracing::debug!(provider = link.cluster.id(), namespace = there, %error, "nothing is measured there");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

impl Measured {
    /// Adds a pod at `cluster`, which is on the node of its pool.
    fn add(&mut self, index: &Index, cluster: &ClusterId, seen: Seen) {
        let place = node::Place { cluster: cluster.clone(), pool: seen.pool };
        let node = index.node_of(&place).map(|(name, _)| name);
        for (place, used) in seen.containers {
            if let Some(node) = node {
                self.nodes.insert((place.0.clone(), place.1.clone()), node.to_owned());
            }
            self.containers.insert(place, used);
        }
    }

    /// What was measured of the pods on one node.
    fn of(&self, node: &str) -> Self {
        let is_there = |(namespace, pod, _): &Place| {
            self.nodes.get(&(namespace.clone(), pod.clone())).is_some_and(|it| it == node)
        };
        let containers = self.containers.iter().filter(|(place, _)| is_there(place));
        let containers = containers.map(|(place, used)| (place.clone(), *used)).collect();
        Self { at: self.at, containers, nodes: BTreeMap::new() }
    }

    /// What each pod uses in total.
    fn pods(&self) -> BTreeMap<(&str, &str), Used> {
        let mut pods: BTreeMap<_, Used> = BTreeMap::new();
        for ((namespace, pod, _), used) in &self.containers {
            let sum = pods.entry((namespace.as_str(), pod.as_str())).or_default();
            *sum = sum.and(used);
        }
        pods
    }

    fn all(&self) -> Used {
        self.containers.values().fold(Used::default(), |sum, used| sum.and(used))
    }

    fn time(&self) -> Value {
        json!(jiff::Timestamp::from_millisecond(self.at).unwrap_or_default())
    }

    fn summary(&self, node: Option<&str>) -> Value {
        let numbers = |used: &Used| {
            let nanos = |number: f64| (number * NANOS) as u64;
            json!({
                "cpu": {
                    "time": self.time(),
                    "usageNanoCores": nanos(used.cores),
                    "usageCoreNanoSeconds": nanos(used.seconds),
                },
                "memory": { "time": self.time(), "workingSetBytes": used.memory },
            })
        };
        let containers = |of: (&str, &str)| -> Vec<Value> {
            let own = self
                .containers
                .iter()
                .filter(|((namespace, pod, _), _)| (namespace.as_str(), pod.as_str()) == of);
            own.map(|((_, _, name), used)| merged(json!({ "name": name }), numbers(used))).collect()
        };
        let pods: Vec<Value> = self
            .pods()
            .into_iter()
            .map(|((namespace, pod), used)| {
                let about = json!({
                    "podRef": { "name": pod, "namespace": namespace },
                    "containers": containers((namespace, pod)),
                });
                merged(about, numbers(&used))
            })
            .collect();
        let node = node.map(|name| merged(json!({ "nodeName": name }), numbers(&self.all())));
        json!({ "node": node.unwrap_or_else(|| json!({ "nodeName": "" })), "pods": pods })
    }

    fn text(&self, alone: bool) -> String {
        let mut text = String::new();
        let mut metric = |name: &str, kind: &str, lines: Vec<(String, f64)>| {
            let _ = writeln!(text, "# TYPE {name} {kind}");
            for (labels, value) in lines {
                let _ = writeln!(text, "{name}{labels} {value} {}", self.at);
            }
        };
        let of_containers = |value: fn(&Used) -> f64| {
            let lines = self.containers.iter().map(|((namespace, pod, container), used)| {
                let labels = format!("{{container=\"{container}\",namespace=\"{namespace}\",pod=\"{pod}\"}}");
                (labels, value(used))
            });
            lines.collect()
        };
        let of_pods = |value: fn(&Used) -> f64| {
            let lines = self.pods().into_iter().map(|((namespace, pod), used)| {
                (format!("{{namespace=\"{namespace}\",pod=\"{pod}\"}}"), value(&used))
            });
            lines.collect()
        };
        let seconds: fn(&Used) -> f64 = |it| it.seconds;
        let memory: fn(&Used) -> f64 = |it| it.memory as f64;
        metric("container_cpu_usage_seconds_total", "counter", of_containers(seconds));
        metric("container_memory_working_set_bytes", "gauge", of_containers(memory));
        metric("pod_cpu_usage_seconds_total", "counter", of_pods(seconds));
        metric("pod_memory_working_set_bytes", "gauge", of_pods(memory));
        if alone {
            let all = self.all();
            metric("node_cpu_usage_seconds_total", "counter", vec![(String::new(), all.seconds)]);
            metric("node_memory_working_set_bytes", "gauge", vec![(String::new(), all.memory as f64)]);
        }
        text.push_str("# TYPE resource_scrape_error gauge\nresource_scrape_error 0\n");
        text
    }
}

impl Used {
    fn and(&self, other: &Self) -> Self {
        Self {
            cores: self.cores + other.cores,
            seconds: self.seconds + other.seconds,
            memory: self.memory.saturating_add(other.memory),
        }
    }
}

/// Both objects in one.
fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(fields), Value::Object(more)) = (one.as_object_mut(), other) {
        fields.extend(more);
    }
    one
}
