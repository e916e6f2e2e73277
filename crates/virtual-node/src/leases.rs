//! Tells Kubernetes that the nodes live, evenly over time.
//!
//! Each node has its own moment within the interval, which follows from its name: a thousand nodes are a hundred small
//! requests a second, never a thousand at once, also right after a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::metrics::VirtualNodeMetrics;

#[cfg(test)]
mod tests;

/// Where Kubernetes looks for them.
const NAMESPACE: &str = "kube-node-lease";
/// The name under which this room owns fields.
const FIELD_MANAGER: &str = "liqo-virtual-node";
/// How often a lease is renewed while it lasts, as kubelets do.
const TIMES: u32 = 4;
/// Renewals under way at once.
const AT_ONCE: usize = 16;
/// How long one may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Moments closer together than this are one: waking up costs more than a few requests at once.
const GRAIN: Duration = Duration::from_millis(50);
/// How soon one that failed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Which node is due when.
pub(crate) struct Schedule {
    interval: Duration,
    start: Instant,
    queue: BTreeSet<(Instant, String)>,
    nodes: BTreeMap<String, (String, Instant)>,
}

impl Schedule {
    /// Nobody yet.
    pub(crate) fn new(lease: Duration, now: Instant) -> Self {
        let interval = (lease / TIMES).max(GRAIN);
        Self { interval, start: now, queue: BTreeSet::new(), nodes: BTreeMap::new() }
    }

    /// These nodes with these uids, and no others. Who is new is due at once.
    pub(crate) fn set<'a>(&mut self, nodes: impl IntoIterator<Item = (&'a str, &'a str)>, now: Instant) {
        let wanted: BTreeMap<_, _> = nodes.into_iter().collect();
        let queue = &mut self.queue;
        self.nodes.retain(|name, (uid, at)| {
            let stays = wanted.get(name.as_str()) == Some(&uid.as_str());
            if !stays {
                queue.remove(&(*at, name.clone()));
            }
            stays
        });
        for (name, uid) in wanted {
            if !self.nodes.contains_key(name) {
                self.nodes.insert(name.to_owned(), (uid.to_owned(), now));
                self.queue.insert((now, name.to_owned()));
            }
        }
    }

    /// When somebody is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Who is due, with their uids. They are due again at their moment in the next interval.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<(String, String)> {
        let mut due = Vec::new();
        while let Some((at, _)) = self.queue.first()
            && *at <= now
            && let Some((_, name)) = self.queue.pop_first()
        {
            let next = self.moment(&name, now);
            if let Some((uid, at)) = self.nodes.get_mut(&name) {
                *at = next;
                due.push((name.clone(), uid.clone()));
                self.queue.insert((next, name));
            }
        }
        due
    }

    /// Has one tried again soon.
    pub(crate) fn again(&mut self, name: &str, now: Instant) {
        if let Some((_, at)) = self.nodes.get_mut(name) {
            self.queue.remove(&(*at, name.to_owned()));
            *at = now + AGAIN;
            self.queue.insert((*at, name.to_owned()));
        }
    }

    /// The node's moment after `now`.
    fn moment(&self, name: &str, now: Instant) -> Instant {
        let slots = (self.interval.as_millis() / GRAIN.as_millis()).max(1);
        let phase = GRAIN.saturating_mul(u32::try_from(u128::from(hash(name)) % slots).unwrap_or(0));
        let rounds = now.duration_since(self.start).as_millis() / self.interval.as_millis().max(1);
        let base =
            self.start + self.interval.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX)) + phase;
        // Who was renewed just before its first moment waits for the second: an interval and a half at most.
        if base > now + self.interval / 2 { base } else { base + self.interval }
    }
}

/// FNV-1a: the same in every process, and even enough.
fn hash(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Renews.
pub(crate) struct Renewal<'a> {
    pub(crate) client: kube::Client,
    pub(crate) duration: Duration,
    pub(crate) metrics: &'a VirtualNodeMetrics,
}

impl Renewal<'_> {
    /// Renews these, and returns which could not be.
    pub(crate) async fn renew(&self, due: Vec<(String, String)>, now: Timestamp) -> Vec<String> {
        let renewing = stream::iter(due).map(|(name, uid)| async move {
            let started = Instant::now();
            let renewed = tokio::time::timeout(TIMEOUT, self.renew_one(&name, &uid, now)).await;
            self.metrics.lease_seconds.observe(started.elapsed().as_secs_f64());
            match renewed {
                Ok(Ok(outcome)) => {
                    self.metrics.renewed(outcome);
                    return None;
                }
                Ok(Err(error)) => {
                    tracing::warn!(node = name, %error, "cannot renew the lease of a virtual node");
                }
                Err(_) => tracing::warn!(node = name, "no answer when renewing the lease of a virtual node"),
            }
            self.metrics.renewed("failed");
            Some(name)
        });
        renewing.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
    }

    async fn renew_one(&self, name: &str, uid: &str, now: Timestamp) -> Result<&'static str, kube::Error> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let patch = json!({ "spec": { "renewTime": micros(now) } });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        match leases.patch_metadata(name, &params, &Patch::Merge(&patch)).await {
            Ok(_) => Ok("renewed"),
            Err(kube::Error::Api(status)) if status.code == 404 => {
                let lease =
                    serde_json::from_value(self.lease(name, uid, now)).map_err(kube::Error::SerdeError)?;
                let params =
                    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
                leases.create(&params, &lease).await.map(|_| "created")
            }
            Err(error) => Err(error),
        }
    }

    /// Kubernetes removes it when the node goes.
    fn lease(&self, name: &str, uid: &str, now: Timestamp) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": name, "uid": uid }],
            },
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": self.duration.as_secs(),
                "renewTime": micros(now),
            },
        })
    }
}

fn micros(time: Timestamp) -> String {
    time.strftime("%FT%T.%6fZ").to_string()
}
