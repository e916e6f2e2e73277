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
use liqo_kit::rbac::NODE_LEASES;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::metrics::VirtualNodeMetrics;

#[cfg(test)]
mod tests;

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

/// A node whose lease is to be renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Whether the node was just made, so that there is no lease yet.
    pub(crate) new: bool,
}

/// Which node is due when.
pub(crate) struct Schedule {
    interval: Duration,
    start: Instant,
    queue: BTreeSet<(Instant, String)>,
    nodes: BTreeMap<String, Entry>,
    /// Whether it was told once which nodes there are: those that come later are new.
    begun: bool,
}

struct Entry {
    uid: String,
    at: Instant,
    new: bool,
}

impl Schedule {
    /// Nobody yet.
    pub(crate) fn new(lease: Duration, now: Instant) -> Self {
        let interval = (lease / TIMES).max(GRAIN);
        Self { interval, start: now, queue: BTreeSet::new(), nodes: BTreeMap::new(), begun: false }
    }

    /// These nodes with these uids, and no others. Who is new is due at once.
    pub(crate) fn set<'a>(&mut self, nodes: impl IntoIterator<Item = (&'a str, &'a str)>, now: Instant) {
        let wanted: BTreeMap<_, _> = nodes.into_iter().collect();
        let queue = &mut self.queue;
        self.nodes.retain(|name, entry| {
            let stays = wanted.get(name.as_str()) == Some(&entry.uid.as_str());
            if !stays {
                queue.remove(&(entry.at, name.clone()));
            }
            stays
        });
        for (name, uid) in wanted {
            if !self.nodes.contains_key(name) {
                let entry = Entry { uid: uid.to_owned(), at: now, new: self.begun };
                self.nodes.insert(name.to_owned(), entry);
                self.queue.insert((now, name.to_owned()));
            }
        }
        self.begun = true;
    }

    /// When somebody is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Who is due. They are due again at their moment in the next interval.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<Due> {
        let mut due = Vec::new();
        while let Some((at, _)) = self.queue.first()
            && *at <= now
            && let Some((_, name)) = self.queue.pop_first()
        {
            let next = self.moment(&name, now);
            if let Some(entry) = self.nodes.get_mut(&name) {
                entry.at = next;
                let new = std::mem::take(&mut entry.new);
                due.push(Due { name: name.clone(), uid: entry.uid.clone(), new });
                self.queue.insert((next, name));
            }
        }
        due
    }

    /// Has one tried again soon.
    pub(crate) fn again(&mut self, name: &str, now: Instant) {
        if let Some(entry) = self.nodes.get_mut(name) {
            self.queue.remove(&(entry.at, name.to_owned()));
            entry.at = now + AGAIN;
            self.queue.insert((entry.at, name.to_owned()));
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
    pub(crate) async fn renew(&self, due: Vec<Due>, now: Timestamp) -> Vec<String> {
        let renewing = stream::iter(due).map(|due| async move {
            let started = Instant::now();
            let renewed = tokio::time::timeout(TIMEOUT, self.renew_one(&due, now)).await;
            let name = due.name;
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

    /// A node that was just made has no lease yet, and others have: which of the two is tried first saves a request.
    async fn renew_one(&self, due: &Due, now: Timestamp) -> Result<&'static str, kube::Error> {
        let Due { name, uid, new } = due;
        if *new {
            return match self.create(name, uid, now).await {
                Err(kube::Error::Api(status)) if status.code == 409 => self.patch(name, now).await,
                other => other,
            };
        }
        match self.patch(name, now).await {
            Err(kube::Error::Api(status)) if status.code == 404 => self.create(name, uid, now).await,
            other => other,
        }
    }

    fn leases(&self) -> Api<Lease> {
        Api::namespaced(self.client.clone(), NODE_LEASES)
    }

    async fn patch(&self, name: &str, now: Timestamp) -> Result<&'static str, kube::Error> {
        let patch = json!({ "spec": { "renewTime": micros(now) } });
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        self.leases().patch_metadata(name, &params, &Patch::Merge(&patch)).await.map(|_| "renewed")
    }

    async fn create(&self, name: &str, uid: &str, now: Timestamp) -> Result<&'static str, kube::Error> {
        let lease = serde_json::from_value(self.lease(name, uid, now)).map_err(kube::Error::SerdeError)?;
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        self.leases().create(&params, &lease).await.map(|_| "created")
    }

    /// Kubernetes removes it when the node goes.
    fn lease(&self, name: &str, uid: &str, now: Timestamp) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "namespace": NODE_LEASES,
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
