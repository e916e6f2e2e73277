//! Objects of liqo's kinds, and the kinds themselves.

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
use crate::names::FIELD_MANAGER;
use crate::objects::Owner;
use crate::trouble::{self, patiently};

/// A ClusterConfig is the manager's own, and is made again by it: it goes after the manager.
pub(super) const CLUSTER_CONFIG: &str = "ClusterConfig";

impl Removing<'_> {
    pub(super) fn custom_kinds(&self) -> Vec<Kind> {
        let ours = |kind: &&Kind| {
            let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
            self.survey.existing.definitions.iter().any(|one| one.owner == Owner::Ours && one.name == name)
        };
        self.survey.kinds.iter().filter(ours).cloned().collect()
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
    pub(super) async fn take_off_finalizers(&self, seen: &Seen) -> Result<(), InstallError> {
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
}
