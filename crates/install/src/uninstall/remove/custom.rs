//! Objects of liqo's kinds, and the kinds themselves.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use super::super::plan;
use super::{LAST_LOOK, LOOK, Removing};
use crate::apply;
use crate::error::InstallError;
use crate::inventory::{self, Seen};
use crate::kinds::Kind;
use crate::names::{FIELD_MANAGER, MANAGER};
use crate::objects::Owner;
use crate::trouble::{self, patiently};

/// How long a living manager may take to end what it began, before that is ended without it.
const FAREWELL: Duration = Duration::from_secs(40);
/// A manager that ends nothing for this long will not.
const STANDSTILL: Duration = Duration::from_secs(10);
/// A ClusterConfig is the manager's own, and is made again by it: it goes after the manager.
const CLUSTER_CONFIG: &str = "ClusterConfig";

impl Removing<'_> {
    fn custom_kinds(&self) -> Vec<Kind> {
        let ours = |kind: &&Kind| {
            let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
            self.survey.existing.definitions.iter().any(|one| one.owner == Owner::Ours && one.name == name)
        };
        self.survey.kinds.iter().filter(ours).cloned().collect()
    }

    /// Lets a living manager end its peerings in good order, for a while: first nothing new is found, then it parts from
    /// its peers, and what is left then has no meaning any more.
    pub(super) async fn end_peerings(&self, manager: bool) -> Result<(), InstallError> {
        let kinds: Vec<Kind> =
            self.custom_kinds().into_iter().filter(|kind| kind.resource.kind != CLUSTER_CONFIG).collect();
        let alive = manager && self.manager_lives().await;
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
                self.wait_for_farewell(&of_step, all.len()).await;
            }
            removed += all.len();
        }
        if removed > 0 && alive {
            self.progress.done(&format!("{removed} objects of liqo's kinds removed"));
        }
        Ok(())
    }

    /// Waits until they are gone, or it is clear that the manager does not let them go.
    async fn wait_for_farewell(&self, kinds: &[Kind], all: usize) {
        let until = self.until(FAREWELL);
        let (mut count, mut since) = (all, Instant::now());
        loop {
            let left = inventory::list(&self.target.client, kinds, None, None).await.objects.len();
            if left < count {
                (count, since) = (left, Instant::now());
            }
            if left == 0 || Instant::now() >= until || since.elapsed() >= STANDSTILL {
                return;
            }
            self.progress.busy(&format!("waiting for the manager to end peerings: {left} objects left"));
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn manager_lives(&self) -> bool {
        let api = Api::<Deployment>::namespaced(self.target.client.clone(), &self.target.namespace);
        let found = patiently(async || api.get_opt(MANAGER).await).await;
        let status = found.ok().flatten().and_then(|deployment| deployment.status);
        status.and_then(|status| status.available_replicas).is_some_and(|available| available > 0)
    }

    /// With `--purge` all of them; else only what tells of a manager that is no more.
    pub(super) async fn custom_objects(&self) -> Result<(), InstallError> {
        let kinds: Vec<Kind> = self
            .custom_kinds()
            .into_iter()
            .filter(|kind| self.purge || kind.resource.kind == CLUSTER_CONFIG)
            .collect();
        let mut removed = 0;
        let until = self.until(LAST_LOOK);
        loop {
            let left = inventory::list(&self.target.client, &kinds, None, None).await.objects;
            for seen in &left {
                if !seen.terminating {
                    apply::remove(&self.target.client, &seen.kind, &seen.id).await?;
                    removed += 1;
                }
                self.take_off_finalizers(seen).await?;
            }
            if left.is_empty() || Instant::now() >= until {
                break;
            }
            tokio::time::sleep(LOOK).await;
        }
        if removed > 0 {
            self.progress.done(&format!("{removed} objects of liqo's kinds removed"));
        }
        Ok(())
    }

    /// The manager who would have handled them is gone.
    async fn take_off_finalizers(&self, seen: &Seen) -> Result<(), InstallError> {
        let keep = plan::foreign_finalizers(&seen.finalizers);
        if keep.len() == seen.finalizers.len() {
            return Ok(());
        }
        let api = seen.kind.api(&self.target.client, seen.id.namespace.as_deref());
        let patch = json!({"metadata": {"finalizers": keep}});
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        match patiently(async || api.patch_metadata(&seen.id.name, &params, &Patch::Merge(&patch)).await)
            .await
        {
            Ok(_) => {
                let names =
                    seen.finalizers.iter().filter(|name| !keep.contains(name)).cloned().collect::<Vec<_>>();
                self.progress.warn(&format!(
                    "{}: nobody is left who would handle its finalizers, so they were taken off ({})",
                    seen.id,
                    names.join(", ")
                ));
                Ok(())
            }
            Err(error) if trouble::is_not_found(&error) => Ok(()),
            Err(error) => {
                Err(InstallError::request(format!("cannot take the finalizers off {}", seen.id), &error))
            }
        }
    }

    pub(super) async fn definitions(&self) -> Result<(), InstallError> {
        let api = Api::<CustomResourceDefinition>::all(self.target.client.clone());
        let ours: Vec<String> = self
            .survey
            .existing
            .definitions
            .iter()
            .filter(|one| one.owner == Owner::Ours)
            .map(|one| one.name.clone())
            .collect();
        let params = DeleteParams::default();
        for name in &ours {
            self.progress.busy(&format!("removing CustomResourceDefinition {name}"));
            match patiently(async || api.delete(name, &params).await).await {
                Ok(_) => {}
                Err(error) if trouble::is_not_found(&error) => {}
                Err(error) => {
                    return Err(InstallError::request(
                        format!("cannot delete the definition {name}"),
                        &error,
                    ));
                }
            }
        }
        if !ours.is_empty() {
            self.progress.done(&format!("{} definitions of kinds removed", ours.len()));
        }
        Ok(())
    }

    pub(super) async fn virtual_nodes(&self) -> Result<(), InstallError> {
        let label = format!("{}={}", liqo_api::labels::NODE_TYPE, liqo_api::labels::NODE_TYPE_VIRTUAL);
        self.delete_labelled("Node", &label).await
    }

    pub(super) async fn tenant_namespaces(&self) -> Result<(), InstallError> {
        let label = format!("{}={}", liqo_api::labels::TENANT_NAMESPACE, liqo_api::labels::TRUE);
        self.delete_labelled("Namespace", &label).await
    }

    async fn delete_labelled(&self, kind: &str, label: &str) -> Result<(), InstallError> {
        let Some(known) =
            self.survey.kinds.iter().find(|one| one.resource.kind == kind && one.resource.group.is_empty())
        else {
            return Ok(());
        };
        for seen in
            inventory::list(&self.target.client, std::slice::from_ref(known), None, Some(label)).await.objects
        {
            self.take_off_finalizers(&seen).await?;
            apply::remove(&self.target.client, known, &seen.id).await?;
            self.progress.done(&format!("{} removed", seen.id));
        }
        Ok(())
    }
}
