//! Two installed clusters of which one lends to the other.

use std::ops::Deref;

use anyhow::{Context, Result};
use kube::Client;

use super::load::{self, Load};
use super::{Memory, Run, Vanilla};
use crate::bench::peering::Programs;
use crate::bench::two::{CONSUMER, PROVIDER, Two, sandbox};

/// The namespace of the measured Deployment, in both clusters.
pub(super) const NAMESPACE: &str = "load";
const METRICS: u16 = 8080;
/// The nodes that run nothing.
const HOLLOW: &str = "type=kwok";
/// Pods of one hollow node that are offered, a little less than it has room for.
const PODS_PER_NODE: u32 = 90;

/// What the two clusters have room for, and where pods of the consumer may go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Requests a second of Kubernetes' controllers, where not their own.
    pub(super) rate: Option<u32>,
    /// Pods on hollow nodes of the provider.
    pub(super) lent: u32,
    /// Pods on hollow nodes of the consumer.
    pub(super) own: u32,
}

/// Two clusters with liqo in pods; gone when it is let go of.
pub(super) struct Pair(Two);

impl Deref for Pair {
    type Target = Two;

    fn deref(&self) -> &Two {
        &self.0
    }
}

impl Pair {
    /// Two clusters with nothing of ours in them.
    pub(super) async fn start(programs: &Programs, shape: Shape) -> Result<Self> {
        let file = programs.out.join("offloading-bench.yaml");
        let rate = shape.rate.map(|rate| format!("\n  clientRate: {rate}")).unwrap_or_default();
        let hollow = |pods: u32| pods.div_ceil(PODS_PER_NODE);
        let spec = format!(
            "clusters:\n- name: {CONSUMER}\n  hollowNodes: {}{rate}\n- name: {PROVIDER}\n  hollowNodes: {}{rate}\n",
            hollow(shape.own),
            hollow(shape.lent).max(20),
        );
        std::fs::write(&file, spec).with_context(|| format!("cannot write {}", file.display()))?;
        let pair = Self(Two::start(programs, &["--file", &file.display().to_string()]).await?);
        pair.prepare(shape)?;
        Ok(pair)
    }

    fn prepare(&self, shape: Shape) -> Result<()> {
        for cluster in [CONSUMER, PROVIDER] {
            self.kubectl(cluster, &["create", "namespace", NAMESPACE])?;
        }
        self.kubectl(PROVIDER, &["taint", "nodes", "-l", HOLLOW, "kwok.x-k8s.io/node-"])?;
        if shape.own > 0 {
            self.kubectl(CONSUMER, &["taint", "nodes", "-l", HOLLOW, "kwok.x-k8s.io/node-"])?;
        }
        self.hollow_only()
    }

    /// What is measured runs on hollow nodes alone.
    fn hollow_only(&self) -> Result<()> {
        for cluster in [CONSUMER, PROVIDER] {
            self.kubectl(cluster, &["cordon", &format!("{cluster}-1")])?;
        }
        Ok(())
    }

    /// Installs liqo in both, and has one lend to the other.
    pub(super) fn peer(&self, strategy: &str) -> Result<()> {
        for cluster in [CONSUMER, PROVIDER] {
            // A manager runs on a real node.
            self.kubectl(cluster, &["cordon", "-l", HOLLOW])?;
            self.kubectl(cluster, &["uncordon", &format!("{cluster}-1")])?;
            self.liqoctl(cluster, &["install", "sandbox"])?;
            self.kubectl(cluster, &["uncordon", "-l", HOLLOW])?;
        }
        self.hollow_only()?;
        let command = self.liqoctl(PROVIDER, &["generate-add-command", "--only-command"])?;
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        self.liqoctl(CONSUMER, &words)?;
        self.kubectl(CONSUMER, &["wait", "--for=create", "node/liqo-provider", "--timeout=60s"])?;
        self.kubectl(CONSUMER, &["wait", "--for=condition=Ready", "node/liqo-provider", "--timeout=60s"])?;
        let offload = ["offload", "namespace", NAMESPACE, "--pod-offloading-strategy", strategy];
        self.liqoctl(CONSUMER, &offload)?;
        Ok(())
    }

    /// Nothing is placed on nodes of the consumer any more.
    pub(super) fn only_remote(&self) -> Result<()> {
        self.kubectl(CONSUMER, &["cordon", "-l", HOLLOW]).map(drop)
    }

    /// Stops a whole cluster.
    pub(super) async fn stop(&self, cluster: &'static str) -> Result<()> {
        let liqoctl = self.liqoctl.clone();
        tokio::task::spawn_blocking(move || sandbox(&liqoctl, &["stop", cluster])).await?.map(drop)
    }

    /// The Deployment directly in the provider, before anything of ours is installed.
    pub(super) async fn vanilla(&self, pods: u32) -> Result<Vanilla> {
        let (seconds, requests_per_pod) = self.deploy(&self.provider, pods).await?;
        load::remove(&self.provider, NAMESPACE).await?;
        Ok(Vanilla { seconds, requests_per_pod })
    }

    /// The same from the consumer.
    pub(super) async fn offloaded(&self, pods: u32) -> Result<Run> {
        let (before, cpu) = (self.memory()?, self.cpu()?);
        let (seconds, requests_per_pod) = self.deploy(&self.consumer, pods).await?;
        let own_milliseconds_per_pod = (self.cpu()? - cpu) * 1e3 / f64::from(pods);
        let with = self.memory()?;
        load::remove(&self.consumer, NAMESPACE).await?;
        let memory = Memory { before, with, after: self.memory()? };
        Ok(Run { seconds, requests_per_pod, own_milliseconds_per_pod, memory })
    }

    /// Seconds until all pods are ready, and requests for each.
    async fn deploy(&self, client: &Client, pods: u32) -> Result<(f64, f64)> {
        let requests = self.requests().await?;
        let seconds = load::deploy(client, NAMESPACE, &Load { pods, at_home: false }).await?;
        Ok((seconds, (self.requests().await? - requests) / f64::from(pods)))
    }

    async fn requests(&self) -> Result<f64> {
        Ok(load::requests(&self.consumer).await? + load::requests(&self.provider).await?)
    }

    fn cpu(&self) -> Result<f64> {
        let of = |cluster| self.metric(cluster, "process_cpu_seconds_total");
        Ok(of(CONSUMER)? + of(PROVIDER)?)
    }

    /// Memory of the consumer's and the provider's manager in millions of bytes.
    fn memory(&self) -> Result<(f64, f64)> {
        let of =
            |cluster| Ok::<_, anyhow::Error>(self.metric(cluster, "process_resident_memory_bytes")? / 1e6);
        Ok((of(CONSUMER)?, of(PROVIDER)?))
    }

    fn metric(&self, cluster: &str, name: &str) -> Result<f64> {
        let selector = "app.kubernetes.io/component=controller-manager";
        let path = "jsonpath={.items[0].metadata.name}";
        let pod = self.kubectl(cluster, &["-n", "liqo", "get", "pods", "-l", selector, "-o", path])?;
        let metrics = format!("/api/v1/namespaces/liqo/pods/{pod}:{METRICS}/proxy/metrics");
        let text = self.kubectl(cluster, &["get", "--raw", &metrics])?;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse().ok())
            .with_context(|| format!("the manager does not tell {name}"))
    }
}
