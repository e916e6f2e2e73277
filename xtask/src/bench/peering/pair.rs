//! Two installed clusters: how long peering takes as a person sees it, and how soon the local network tells.

use std::ops::Deref;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use kube::Client;
use tokio::time::Instant;

use super::manager::until;
use super::objects::{in_force, is_empty, known, sign_certificate};
use super::{Programs, measured};
use crate::bench::measure::{Measurement, Unit};
use crate::bench::two::{CONSUMER, PROVIDER, Two, said};

const PEERED: f64 = 2.0;
const FOUND: f64 = 2.0;

/// Where the metrics of `liqo discovery` are, on the node.
const DISCOVERY_METRICS: u16 = 5872;

/// Two clusters with liqo in pods; gone when it is let go of.
struct Pair(Two);

impl Deref for Pair {
    type Target = Two;

    fn deref(&self) -> &Two {
        &self.0
    }
}

/// The numbers of two clusters.
pub(super) async fn measure(programs: &Programs, rounds: usize) -> Result<Vec<Measurement>> {
    let pair = Pair::start(programs).await?;
    let (mut peered, mut told, mut parted, mut signed) = (vec![], vec![], vec![], vec![]);
    for round in 1..=rounds {
        signed.push(sign_certificate(&pair.provider, &format!("bench-{round}")).await?);
        let (both, command) = pair.peer().await?;
        peered.push(both);
        told.push(command);
        parted.push(pair.part().await?);
        eprintln!(
            "  peering, {round} of {rounds}: in force on both sides after {both:.2} s, `liqoctl add` returned after \
             {command:.2} s, gone {:.2} s after `liqoctl remove`; Kubernetes signs a certificate in {:.2} s",
            parted[round - 1],
            signed[round - 1]
        );
    }
    let mut found = vec![];
    for round in 1..=rounds {
        found.push(pair.find().await?);
        eprintln!("  local network, {round} of {rounds}: found after {:.2} s", found[round - 1]);
    }
    let kubernetes = ("Kubernetes signs one certificate", signed);
    let command = ("`liqoctl add` itself returns", told);
    let peering = ("peering itself", peered.clone());
    Ok(vec![
        measured("peer, contract in force on both sides", Unit::Seconds, peered, Some(PEERED), kubernetes)?,
        measured("part, nothing left on either side", Unit::Seconds, parted, None, command)?,
        measured("a cluster starts to tell, found on the LAN", Unit::Seconds, found, Some(FOUND), peering)?,
    ])
}

impl Pair {
    async fn start(programs: &Programs) -> Result<Self> {
        let pair = Self(Two::start(programs, &["--clusters", &format!("{CONSUMER},{PROVIDER}")]).await?);
        for cluster in [CONSUMER, PROVIDER] {
            pair.liqoctl(
                cluster,
                &["install", "sandbox", "--enable-lan-discovery", "--set", "discovery.config.autojoin=false"],
            )?;
            // What is found by itself would be in the way of what is measured.
            pair.scale_discovery(cluster, 0)?;
        }
        for (cluster, client) in [(CONSUMER, &pair.consumer), (PROVIDER, &pair.provider)] {
            pair.forget(cluster, client).await?;
        }
        Ok(pair)
    }

    /// Forgets what was found while the installation went on.
    async fn forget(&self, cluster: &str, client: &Client) -> Result<()> {
        self.kubectl(cluster, &["delete", "foreignclusters", "--all", "--timeout=60s"])?;
        until("something is still known", async || is_empty(client).await).await
    }

    /// Seconds until a contract is in force on both sides, and until the command that was pasted has returned.
    async fn peer(&self) -> Result<(f64, f64)> {
        let command = self.liqoctl(PROVIDER, &["generate-add-command", "--only-command"])?;
        let mut words = command.split_whitespace().skip(1).map(str::to_owned).collect::<Vec<_>>();
        words.extend(["--context".to_owned(), CONSUMER.to_owned()]);
        let started = Instant::now();
        let child = Command::new(&self.liqoctl)
            .args(&words)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let ended = tokio::task::spawn_blocking(move || {
            let output = child.wait_with_output();
            (Instant::now(), output)
        });
        until("there is no contract in force on both sides", async || {
            let (here, there) = tokio::try_join!(in_force(&self.consumer), in_force(&self.provider))?;
            if (here, there) == (1, 1) { Ok(()) } else { bail!("{here} here, {there} there") }
        })
        .await?;
        let both = started.elapsed().as_secs_f64();
        let (returned, output) = ended.await?;
        said(&output?)?;
        Ok((both, returned.duration_since(started).as_secs_f64()))
    }

    /// Seconds until nothing is left of it.
    async fn part(&self) -> Result<f64> {
        let started = Instant::now();
        self.liqoctl(CONSUMER, &["remove", "cluster", PROVIDER])?;
        until("something is left at the consumer", async || is_empty(&self.consumer).await).await?;
        until("something is left at the provider", async || is_empty(&self.provider).await).await?;
        Ok(started.elapsed().as_secs_f64())
    }

    /// Seconds from the start of the provider's process that tells the local network about it, until the consumer, which
    /// listens already, knows it.
    async fn find(&self) -> Result<f64> {
        self.scale_discovery(CONSUMER, 1)?;
        self.kubectl(
            CONSUMER,
            &["-n", "liqo", "rollout", "status", "deployment/liqo-discovery", "--timeout=60s"],
        )?;
        self.scale_discovery(PROVIDER, 1)?;
        until("the provider is not found", async || {
            let all = known(&self.consumer).await?;
            if all.is_empty() { bail!("nobody is known") } else { Ok(()) }
        })
        .await?;
        let found = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
        // It is found before the kubelet has told that its pod runs.
        let started =
            until("the discovery does not tell when it began", async || self.discovery_started()).await?;
        self.scale_discovery(PROVIDER, 0)?;
        self.forget(CONSUMER, &self.consumer).await?;
        self.scale_discovery(CONSUMER, 0)?;
        self.forget(PROVIDER, &self.provider).await?;
        Ok(found - started)
    }

    /// When the provider's `liqo discovery` began, by the kernel.
    fn discovery_started(&self) -> Result<f64> {
        let selector = "app.kubernetes.io/component=discovery";
        let path = "jsonpath={.items[?(@.status.phase==\"Running\")].metadata.name}";
        let pod = self.kubectl(PROVIDER, &["-n", "liqo", "get", "pods", "-l", selector, "-o", path])?;
        let pod = pod.split_whitespace().next().context("no pod of the discovery runs")?;
        let metrics = format!("/api/v1/namespaces/liqo/pods/{pod}:{DISCOVERY_METRICS}/proxy/metrics");
        let text = self.kubectl(PROVIDER, &["get", "--raw", &metrics])?;
        let line = text.lines().find_map(|line| line.strip_prefix("process_start_time_seconds "));
        line.and_then(|value| value.trim().parse().ok()).context("the discovery does not tell when it began")
    }

    fn scale_discovery(&self, cluster: &str, replicas: u32) -> Result<()> {
        let replicas = format!("--replicas={replicas}");
        self.kubectl(cluster, &["-n", "liqo", "scale", "deployment/liqo-discovery", &replicas])?;
        if replicas.ends_with("=0") {
            let selector = "app.kubernetes.io/component=discovery";
            self.kubectl(
                cluster,
                &["-n", "liqo", "wait", "--for=delete", "pod", "-l", selector, "--timeout=60s"],
            )?;
        }
        Ok(())
    }
}
