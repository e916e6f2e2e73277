//! The namespace, and whether anything is left.

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use super::super::plan;
use super::{LAST_LOOK, LOOK, Removing};
use crate::error::InstallError;
use crate::inventory::{self, Seen};
use crate::kinds::Kind;
use crate::objects::{Id, Owner, ours_selector};
use crate::progress::with_time;
use crate::trouble::{self, patiently};

/// Kubernetes needs a moment for an empty namespace, however late it is.
const SETTLING: Duration = Duration::from_secs(8);

impl Removing<'_> {
    /// The namespace, if liqoctl made it and nothing else is in it.
    pub(in crate::uninstall) async fn namespace(&self) -> Result<(), InstallError> {
        let ours = self.survey.existing.namespace.as_ref().is_some_and(|one| one.owner == Owner::Ours);
        if !self.purge || !ours {
            return Ok(());
        }
        let name = &self.target.namespace;
        let api = Api::<Namespace>::all(self.target.client.clone());
        if !self.survey.strangers.is_empty() {
            return self.leave_namespace(&api).await;
        }
        self.progress.busy(&format!("removing Namespace {name}"));
        let params = DeleteParams::default();
        match patiently(async || api.delete(name, &params).await).await {
            Ok(_) => {}
            Err(error) if trouble::is_not_found(&error) => return Ok(()),
            // It is being deleted already.
            Err(error) if trouble::is_conflict(&error) => {}
            Err(error) => {
                return Err(InstallError::request(format!("cannot delete the namespace {name}"), &error));
            }
        }
        let started = Instant::now();
        let until = self.deadline.max(started + SETTLING);
        loop {
            let found = patiently(async || api.get_opt(name).await).await;
            let found = found.map_err(|error| {
                InstallError::request(format!("cannot look at the namespace {name}"), &error)
            })?;
            if found.is_none() {
                self.progress.done(&with_time(&format!("Namespace {name} removed"), started));
                return Ok(());
            }
            // What holds it is told at the end, with everything else that is left.
            if Instant::now() >= until {
                return Ok(());
            }
            self.progress.busy(&format!("waiting for Namespace {name} to go"));
            tokio::time::sleep(LOOK).await;
        }
    }

    /// It holds something that is not ours: it stays, and is no longer marked as ours.
    async fn leave_namespace(&self, api: &Api<Namespace>) -> Result<(), InstallError> {
        const SHOWN: usize = 5;
        let name = &self.target.namespace;
        let strangers = &self.survey.strangers;
        let patch = json!({"metadata": {"labels": plan::no_labels()}});
        patiently(async || api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await)
            .await
            .map_err(|error| {
                InstallError::request(format!("cannot take our labels off the namespace {name}"), &error)
            })?;
        let shown: Vec<String> = strangers.iter().take(SHOWN).map(ToString::to_string).collect();
        let more = if strangers.len() > SHOWN {
            format!(" and {} more", strangers.len() - SHOWN)
        } else {
            String::new()
        };
        self.progress.warn(&format!(
            "Namespace {name} stays, as it holds what is not ours: {}{more}. If it is to go: kubectl delete namespace {name}",
            shown.join(", ")
        ));
        Ok(())
    }

    /// Looks whether anything of ours is left.
    pub(in crate::uninstall) async fn verify(&self) -> Result<(), InstallError> {
        let until = self.until(LAST_LOOK).max(Instant::now() + LOOK);
        loop {
            let left = self.left().await;
            if left.objects.is_empty() {
                for one in &left.unread {
                    self.progress
                        .warn(&format!("could not look whether any {} are left: {}", one.what, one.why));
                }
                return Ok(());
            }
            if Instant::now() >= until {
                let mut lines: Vec<String> = left.objects.iter().map(why_left).collect();
                lines.extend(self.what_holds_the_namespace().await);
                return Err(InstallError::Left(format!(
                    "this is left of liqo:\n{}\nRun the same command again, or remove it by hand",
                    lines.join("\n")
                )));
            }
            self.progress.busy(&format!("waiting for {} objects to go", left.objects.len()));
            tokio::time::sleep(LOOK).await;
        }
    }

    /// What Kubernetes says of a namespace that does not go.
    async fn what_holds_the_namespace(&self) -> Vec<String> {
        let api = Api::<Namespace>::all(self.target.client.clone());
        let Ok(Some(found)) = api.get_opt(&self.target.namespace).await else { return vec![] };
        let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
        let told = conditions.into_iter().filter(|one| one.status == "True").filter_map(|one| one.message);
        told.map(|message| format!("    {message}")).collect()
    }

    async fn left(&self) -> inventory::Inventory {
        let kinds: Vec<Kind> = self
            .survey
            .kinds
            .iter()
            .filter(|kind| self.purge || !plan::is_liqo_group(&kind.resource.group))
            .cloned()
            .collect();
        let mut left = inventory::list(&self.target.client, &kinds, None, Some(&ours_selector())).await;
        let purge = self.purge;
        let namespace = self.target.namespace.as_str();
        left.objects.retain(|seen| {
            let kept = matches!(seen.id.kind.as_str(), "Namespace" | "CustomResourceDefinition")
                || plan::is_identity(&seen.id, namespace)
                || plan::is_of_peerings(seen);
            seen.id.kind != "Event" && (purge || !kept)
        });
        left
    }
}

fn why_left(seen: &Seen) -> String {
    let id: &Id = &seen.id;
    match (seen.terminating, seen.finalizers.as_slice()) {
        (true, []) => format!("  {id}: it is being deleted"),
        (true, finalizers) => format!("  {id}: it is being deleted, and waits for {}", finalizers.join(", ")),
        (false, _) => format!("  {id}: it was made again since, or could not be deleted"),
    }
}
