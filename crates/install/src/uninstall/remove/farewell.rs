//! A living manager parts from its peers before it is taken away.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use tokio::time::Instant;

use super::super::plan;
use super::custom::CLUSTER_CONFIG;
use super::{LOOK, Removing};
use crate::apply;
use crate::error::InstallError;
use crate::inventory;
use crate::kinds::Kind;
use crate::names::MANAGER;
use crate::trouble::patiently;

/// How long a living manager may take to end what it began, before that is ended without it. It gives up by itself 70 s
/// after a ForeignCluster was deleted; taken away earlier, it would leave pods and papers of ours with the peer.
const FAREWELL: Duration = Duration::from_secs(80);
/// A manager that changes nothing for this long, and has no pods to wait for, will not.
const STANDSTILL: Duration = Duration::from_secs(10);

impl Removing<'_> {
    /// Lets a living manager end its peerings in good order, for a while: first nothing new is found, then it parts from
    /// its peers, and what is left then has no meaning any more.
    pub(super) async fn end_peerings(&self, manager: bool) -> Result<(), InstallError> {
        let kinds: Vec<Kind> =
            self.custom_kinds().into_iter().filter(|kind| kind.resource.kind != CLUSTER_CONFIG).collect();
        let alive = manager && self.manager_lives().await;
        let until = self.until(FAREWELL);
        let mut removed = 0;
        for step in [plan::Ending::Finding, plan::Ending::Parting, plan::Ending::Rest] {
            let of_step: Vec<Kind> = kinds
                .iter()
                .filter(|kind| step == plan::Ending::Rest || plan::ending(&kind.resource.kind) == step)
                .cloned()
                .collect();
            let all = inventory::list(&self.target.client, &of_step, None, None).await.objects;
            for seen in &all {
                apply::remove(&self.target.client, &seen.kind, &seen.id).await?;
            }
            if !all.is_empty() && alive {
                self.wait_for_farewell(&kinds, &of_step, until).await;
            }
            removed += all.len();
        }
        if removed > 0 && alive {
            self.progress.done(&format!("{removed} objects of liqo's kinds removed"));
        }
        Ok(())
    }

    /// Waits until those of the step are gone, or it is clear that the manager does not let them go.
    async fn wait_for_farewell(&self, kinds: &[Kind], of_step: &[Kind], until: Instant) {
        let (mut last, mut since) = (Vec::new(), Instant::now());
        loop {
            let all = inventory::list(&self.target.client, kinds, None, None).await.objects;
            let left = all
                .iter()
                .filter(|seen| of_step.iter().any(|kind| kind.resource == seen.kind.resource))
                .count();
            let now = plan::fingerprint(&all);
            if now != last || self.pods_are_elsewhere().await {
                (last, since) = (now, Instant::now());
            }
            if left == 0 || Instant::now() >= until || since.elapsed() >= STANDSTILL {
                return;
            }
            self.progress.busy(&format!("waiting for the manager to end peerings: {left} objects left"));
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether pods may still have to end: ours at a peer, or a peer's here. While they use their time for it, nothing of
    /// liqo's kinds changes.
    async fn pods_are_elsewhere(&self) -> bool {
        !self.labelled("Node", &plan::virtual_nodes()).await.is_empty()
            || !self.labelled("Namespace", &plan::hosted_namespaces()).await.is_empty()
    }

    async fn manager_lives(&self) -> bool {
        let api = Api::<Deployment>::namespaced(self.target.client.clone(), &self.target.namespace);
        let found = patiently(async || api.get_opt(MANAGER).await).await;
        let status = found.ok().flatten().and_then(|deployment| deployment.status);
        status.and_then(|status| status.available_replicas).is_some_and(|available| available > 0)
    }
}
