//! Has pods leave a cluster: asks first, as their disruption budgets allow, and insists in the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams, ListParams, Preconditions};
use kube::{Api, ResourceExt};
use liqo_core::names::ClusterId;
use tokio::task::{AbortHandle, JoinSet};

use super::Room;
use crate::plan::drain::Drain;

/// How long one request may take.
const REQUEST: Duration = Duration::from_secs(10);

/// The departures under way.
#[derive(Default)]
pub(super) struct Drains {
    tasks: JoinSet<()>,
    running: BTreeMap<(Arc<str>, ClusterId), (Drain, AbortHandle)>,
}

impl Drains {
    /// Has those leave who have to, and nobody else.
    pub(super) fn keep(&mut self, room: &Room, wanted: Vec<Drain>) {
        while self.tasks.try_join_next().is_some() {}
        let wanted: BTreeMap<_, _> = wanted
            .into_iter()
            .map(|drain| ((Arc::clone(&drain.namespace), drain.cluster.clone()), drain))
            .collect();
        self.running.retain(|key, (drain, task)| {
            // Who must leave other nodes begins anew. The time that was set first counts.
            let stays = wanted.get(key).is_some_and(|wanted| wanted.nodes == drain.nodes);
            if !stays {
                task.abort();
            }
            stays
        });
        {
            let mut index = room.0.index.write();
            index.drained.retain(|key, emptied| {
                // Nodes that went meanwhile need not be left again.
                wanted.get(key).is_some_and(|drain| drain.nodes.iter().all(|node| emptied.contains(node)))
            });
        }
        for (key, drain) in wanted {
            let over = room.0.index.read().drained.contains_key(&key);
            if over || self.running.contains_key(&key) {
                continue;
            }
            let (room, task) = (room.clone(), drain.clone());
            let handle = self.tasks.spawn(async move { room.drain(&task).await });
            self.running.insert(key, (drain, handle));
        }
    }
}

impl Room {
    /// Returns when no pod is left, or the time is over; then the namespace may leave too.
    async fn drain(&self, drain: &Drain) {
        let pods: Api<Pod> = Api::namespaced(self.0.client.clone(), &drain.namespace);
        loop {
            let now = self.0.settings.clock.now();
            match self.left(&pods, drain).await {
                Ok(left) if left.is_empty() => break,
                Ok(left) if now >= drain.end => {
                    left.iter().for_each(|_| self.0.metrics.departed("abandoned"));
                    break;
                }
                Ok(left) => {
                    for pod in left.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                        self.send_off(&pods, pod, now >= drain.until).await;
                    }
                }
                Err(error) => {
                    tracing::warn!(namespace = %drain.namespace, %error, "cannot see which pods are left");
                    if now >= drain.end {
                        break;
                    }
                }
            }
            tokio::time::sleep(self.0.settings.look).await;
        }
        let mut index = self.0.index.write();
        let emptied = drain.nodes.iter().cloned().collect();
        index.drained.insert((Arc::clone(&drain.namespace), drain.cluster.clone()), emptied);
        index.touch_peer(&drain.cluster);
        drop(index);
        self.0.index.notify();
    }

    async fn left(&self, pods: &Api<Pod>, drain: &Drain) -> Result<Vec<Pod>, String> {
        let mut all = Vec::new();
        for node in &drain.nodes {
            let here = ListParams::default().fields(&format!("spec.nodeName={node}"));
            let listed = tokio::time::timeout(REQUEST, pods.list(&here)).await;
            let listed =
                listed.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())?;
            all.extend(listed.items);
        }
        Ok(all)
    }

    async fn send_off(&self, pods: &Api<Pod>, pod: &Pod, insist: bool) {
        let (name, uid) = (pod.name_any(), pod.uid());
        let this_one = DeleteParams {
            preconditions: Some(Preconditions { uid, resource_version: None }),
            ..DeleteParams::default()
        };
        let sent = async {
            if insist {
                pods.delete(&name, &this_one).await.map(|_| ())
            } else {
                let params = EvictParams { delete_options: Some(this_one), ..EvictParams::default() };
                pods.evict(&name, &params).await.map(|_| ())
            }
        };
        match tokio::time::timeout(REQUEST, sent).await {
            Ok(Ok(())) => self.0.metrics.departed(if insist { "deleted" } else { "evicted" }),
            // A disruption budget says not now; or it is gone already, or another took its name.
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409 | 429) => {
                tracing::debug!(pod = name, code = status.code, "does not leave yet");
            }
            Ok(Err(error)) => tracing::warn!(pod = name, %error, "cannot be asked to leave"),
            Err(_) => tracing::warn!(pod = name, "no answer when asked to leave"),
        }
    }
}
