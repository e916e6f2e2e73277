//! Takes things out, one step after the other.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use super::plan;
use super::survey::Survey;
use crate::apply;
use crate::error::InstallError;
use crate::inventory::{self, Seen};
use crate::kinds::Kind;
use crate::names::{FIELD_MANAGER, INSTALLATION, MANAGER};
use crate::objects::{Id, Owner, ours_selector};
use crate::progress::Progress;
use crate::target::Target;
use crate::trouble::{self, patiently};

/// How often it is looked whether something is gone.
const LOOK: Duration = Duration::from_millis(200);
/// How long a living manager may take to end what it began, before that is ended without it.
const FAREWELL: Duration = Duration::from_secs(40);
/// A manager that ends nothing for this long will not.
const STANDSTILL: Duration = Duration::from_secs(10);
/// How long pods may take to end; longer than their own time of 30 s.
const PODS: Duration = Duration::from_secs(45);
/// What is deleted at last is gone within moments, or something holds it.
const LAST_LOOK: Duration = Duration::from_secs(10);
/// Kubernetes needs a moment for an empty namespace, however late it is.
const SETTLING: Duration = Duration::from_secs(8);
/// A ClusterConfig is the manager's own, and is made again by it: it goes after the manager.
const CLUSTER_CONFIG: &str = "ClusterConfig";

pub(super) struct Removing<'a> {
    pub(super) target: &'a Target,
    pub(super) survey: &'a Survey,
    pub(super) purge: bool,
    pub(super) deadline: Instant,
    pub(super) progress: &'a dyn Progress,
}

impl Removing<'_> {
    /// Everything but the namespace.
    pub(super) async fn everything(&self) -> Result<(), InstallError> {
        let (workloads, rest): (Vec<Seen>, Vec<Seen>) =
            self.others().into_iter().partition(|seen| plan::turn(&seen.id) == plan::WORKLOADS);
        if self.purge {
            self.end_peerings(!workloads.is_empty()).await?;
        }
        self.delete_all(&workloads).await?;
        self.wait_for_pods().await?;
        self.custom_objects().await?;
        self.delete_all(&rest).await?;
        self.made_at_run_time().await?;
        if self.purge {
            self.virtual_nodes().await?;
            self.definitions().await?;
            self.tenant_namespaces().await?;
        }
        let notes = Api::<Secret>::namespaced(self.target.client.clone(), &self.target.namespace);
        self.delete_named(&notes, "Secret", INSTALLATION).await
    }

    /// What calls the manager.
    pub(super) async fn webhooks(&self) -> Result<(), InstallError> {
        let mut webhooks = self.survey.one_by_one();
        webhooks.retain(|seen| plan::turn(&seen.id) == plan::WEBHOOKS);
        self.delete_all(&webhooks).await
    }

    /// Everything else that goes one by one.
    fn others(&self) -> Vec<Seen> {
        let mut others = self.survey.one_by_one();
        others.retain(|seen| plan::turn(&seen.id) != plan::WEBHOOKS);
        others
    }

    fn until(&self, at_most: Duration) -> Instant {
        (Instant::now() + at_most).min(self.deadline)
    }

    async fn delete_all(&self, objects: &[Seen]) -> Result<(), InstallError> {
        for seen in objects {
            self.progress.busy(&format!("removing {}", seen.id));
            apply::remove(&self.target.client, &seen.kind, &seen.id).await?;
            self.progress.done(&format!("{} removed", seen.id));
        }
        Ok(())
    }

    async fn delete_named<K>(&self, api: &Api<K>, kind: &str, name: &str) -> Result<(), InstallError>
    where
        K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let params = DeleteParams::default();
        match patiently(async || api.delete(name, &params).await).await {
            Ok(_) => {
                self.progress.done(&format!("{kind} {}/{name} removed", self.target.namespace));
                Ok(())
            }
            Err(error) if trouble::is_not_found(&error) => Ok(()),
            Err(error) => Err(InstallError::request(format!("cannot delete {kind} {name}"), &error)),
        }
    }

    fn custom_kinds(&self) -> Vec<Kind> {
        let ours = |kind: &&Kind| {
            let name = format!("{}.{}", kind.resource.plural, kind.resource.group);
            self.survey.existing.definitions.iter().any(|one| one.owner == Owner::Ours && one.name == name)
        };
        self.survey.kinds.iter().filter(ours).cloned().collect()
    }

    /// Lets a living manager end its peerings in good order, for a while.
    async fn end_peerings(&self, manager: bool) -> Result<(), InstallError> {
        let kinds: Vec<Kind> =
            self.custom_kinds().into_iter().filter(|kind| kind.resource.kind != CLUSTER_CONFIG).collect();
        let all = inventory::list(&self.target.client, &kinds, None, None).await.objects;
        for seen in &all {
            apply::remove(&self.target.client, &seen.kind, &seen.id).await?;
        }
        if all.is_empty() || !manager || !self.manager_lives().await {
            return Ok(());
        }
        let until = self.until(FAREWELL);
        let (mut count, mut since) = (all.len(), Instant::now());
        loop {
            let left = inventory::list(&self.target.client, &kinds, None, None).await.objects.len();
            if left == 0 {
                self.progress.done(&format!("{} objects of liqo's kinds removed", all.len()));
                return Ok(());
            }
            if left < count {
                (count, since) = (left, Instant::now());
            }
            if Instant::now() >= until || since.elapsed() >= STANDSTILL {
                return Ok(());
            }
            self.progress.busy(&format!("waiting for the manager to end peerings: {left} objects left"));
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn manager_lives(&self) -> bool {
        let api = Api::<k8s_openapi::api::apps::v1::Deployment>::namespaced(
            self.target.client.clone(),
            &self.target.namespace,
        );
        let found = patiently(async || api.get_opt(MANAGER).await).await;
        let status = found.ok().flatten().and_then(|deployment| deployment.status);
        status.and_then(|status| status.available_replicas).is_some_and(|available| available > 0)
    }

    /// Whoever still runs could write what is being removed.
    async fn wait_for_pods(&self) -> Result<(), InstallError> {
        let until = self.until(PODS);
        let api = Api::<Pod>::namespaced(self.target.client.clone(), &self.target.namespace);
        let params = ListParams::default().labels(&ours_selector());
        loop {
            let pods = match patiently(async || api.list_metadata(&params).await).await {
                Ok(pods) => pods.items,
                Err(error) if trouble::is_forbidden(&error) => return Ok(()),
                Err(error) => return Err(InstallError::request("cannot list the pods", &error)),
            };
            if pods.is_empty() {
                return Ok(());
            }
            if Instant::now() >= until {
                let names: Vec<String> = pods.into_iter().filter_map(|pod| pod.metadata.name).collect();
                self.progress.warn(&format!(
                    "pods are still ending: {}; going on without waiting for them",
                    names.join(", ")
                ));
                return Ok(());
            }
            self.progress.busy(&format!("waiting for {} pods to end", pods.len()));
            tokio::time::sleep(LOOK).await;
        }
    }

    /// With `--purge` all of them; else only what tells of a manager that is no more.
    async fn custom_objects(&self) -> Result<(), InstallError> {
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

    /// What the manager made besides, and nobody labelled.
    async fn made_at_run_time(&self) -> Result<(), InstallError> {
        let (client, namespace) = (&self.target.client, self.target.namespace.as_str());
        self.delete_named(&Api::<Lease>::namespaced(client.clone(), namespace), "Lease", MANAGER).await?;
        if !self.purge {
            return Ok(());
        }
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        self.delete_named(&secrets, "Secret", liqo_api::cluster_config::IDENTITY_SECRET).await?;
        let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
        self.delete_named(&maps, "ConfigMap", liqo_api::cluster_config::CLUSTER_ID_CONFIG_MAP).await
    }

    async fn definitions(&self) -> Result<(), InstallError> {
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

    async fn virtual_nodes(&self) -> Result<(), InstallError> {
        let label = format!("{}={}", liqo_api::labels::NODE_TYPE, liqo_api::labels::NODE_TYPE_VIRTUAL);
        self.delete_labelled::<Node>("Node", &label).await
    }

    async fn tenant_namespaces(&self) -> Result<(), InstallError> {
        let label = format!("{}={}", liqo_api::labels::TENANT_NAMESPACE, liqo_api::labels::TRUE);
        self.delete_labelled::<Namespace>("Namespace", &label).await
    }

    async fn delete_labelled<K>(&self, kind: &str, label: &str) -> Result<(), InstallError>
    where
        K: kube::Resource<Scope = kube::core::ClusterResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned,
        K::DynamicType: Default,
    {
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

    /// The namespace, if liqoctl made it and nothing else is in it.
    pub(super) async fn namespace(&self) -> Result<(), InstallError> {
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
        let until = self.deadline.max(Instant::now() + SETTLING);
        loop {
            let found = patiently(async || api.get_opt(name).await).await;
            let found = found.map_err(|error| {
                InstallError::request(format!("cannot look at the namespace {name}"), &error)
            })?;
            if found.is_none() {
                self.progress.done(&format!("Namespace {name} removed"));
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
        let labels = ["name", "instance", "component", "version", "part-of", "managed-by"];
        let labels: serde_json::Map<String, serde_json::Value> = labels
            .iter()
            .map(|label| (format!("app.kubernetes.io/{label}"), serde_json::Value::Null))
            .collect();
        let patch = json!({"metadata": {"labels": labels}});
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
    pub(super) async fn verify(&self) -> Result<(), InstallError> {
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
                || plan::is_identity(&seen.id, namespace);
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
