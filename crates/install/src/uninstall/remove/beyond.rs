//! What the manager made outside its own namespace, for and with peers: nodes and namespaces.

use std::collections::BTreeSet;

use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Node, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use liqo_api::labels;
use serde_json::json;
use tokio::time::Instant;

use super::super::plan;
use super::{LOOK, PODS, Removing};
use crate::apply;
use crate::error::InstallError;
use crate::inventory::{self, Seen};
use crate::kinds::Kind;
use crate::progress::with_time;
use crate::trouble::{self, patiently};

/// Pods that are deleted at the same time.
const AT_ONCE: usize = 16;

impl Removing<'_> {
    pub(super) async fn virtual_nodes(&self) -> Result<(), InstallError> {
        self.delete_labelled("Node", &plan::virtual_nodes()).await?;
        self.stranded_pods().await
    }

    /// Pods on virtual nodes that are no more: nobody is left who would end them, and Kubernetes takes a minute to see that.
    async fn stranded_pods(&self) -> Result<(), InstallError> {
        let nodes = Api::<Node>::all(self.target.client.clone());
        let pods = Api::<Pod>::all(self.target.client.clone());
        let ours = ListParams::default().labels(&format!("{}={}", labels::SHADOW_POD, labels::TRUE));
        let found = patiently(async || {
            let pods = pods.list(&ours).await?.items;
            let nodes = nodes.list_metadata(&ListParams::default()).await?.items;
            Ok((pods, nodes.iter().map(ResourceExt::name_any).collect::<BTreeSet<_>>()))
        });
        let (pods, nodes) = found.await.map_err(|error| {
            InstallError::request("cannot list the pods that ran at peers".to_owned(), &error)
        })?;
        let stranded: Vec<Pod> = pods.into_iter().filter(|pod| plan::is_stranded(pod, &nodes)).collect();
        let count = stranded.len();
        let ended: Vec<_> =
            stream::iter(stranded).map(|pod| self.end(pod)).buffer_unordered(AT_ONCE).collect().await;
        ended.into_iter().collect::<Result<(), _>>()?;
        if count > 0 {
            self.progress
                .done(&format!("{count} pods that ran at peers are gone; their controllers make others"));
        }
        Ok(())
    }

    async fn end(&self, pod: Pod) -> Result<(), InstallError> {
        let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
        let pods = Api::<Pod>::namespaced(self.target.client.clone(), &namespace);
        let this = Preconditions { uid: pod.metadata.uid, resource_version: None };
        let params = DeleteParams::default().grace_period(0).preconditions(this);
        match patiently(async || pods.delete(&name, &params).await).await {
            Ok(_) => Ok(()),
            Err(error) if trouble::is_not_found(&error) || trouble::is_conflict(&error) => Ok(()),
            Err(error) => {
                Err(InstallError::request(format!("cannot delete the pod {namespace}/{name}"), &error))
            }
        }
    }

    pub(super) async fn tenant_namespaces(&self) -> Result<(), InstallError> {
        self.delete_labelled("Namespace", &plan::tenant_namespaces()).await.map(drop)
    }

    /// Peers' namespaces with their pods, which a dead manager left, or which a living one has not seen go yet.
    pub(super) async fn hosted_namespaces(&self) -> Result<(), InstallError> {
        let label = plan::hosted_namespaces();
        if !self.delete_labelled("Namespace", &label).await? {
            return Ok(());
        }
        let (until, started) = (self.until(PODS), Instant::now());
        loop {
            let left = self.labelled("Namespace", &label).await;
            if left.is_empty() {
                self.progress.done(&with_time("the namespaces of peers have gone, with their pods", started));
                return Ok(());
            }
            // What is left is told at the end.
            if Instant::now() >= until {
                return Ok(());
            }
            self.progress.busy(&format!("waiting for {} namespaces of peers to go", left.len()));
            tokio::time::sleep(LOOK).await;
        }
    }

    /// The namespace behind claims of the StorageClass `liqo`. What somebody stored is theirs, and outlives us.
    pub(super) async fn storage_namespaces(&self) -> Result<(), InstallError> {
        for seen in self.labelled("Namespace", &plan::storage_namespaces()).await {
            let held = self.held_by(&seen.id.name).await?;
            if held.is_empty() {
                self.remove_seen(&seen).await?;
            } else {
                self.leave_storage(&seen.id.name, &held).await?;
            }
        }
        Ok(())
    }

    /// Claims in a namespace, and what is not ours there.
    async fn held_by(&self, namespace: &str) -> Result<Vec<String>, InstallError> {
        let api = Api::<PersistentVolumeClaim>::namespaced(self.target.client.clone(), namespace);
        let params = ListParams::default();
        let claims = patiently(async || api.list_metadata(&params).await).await.map_err(|error| {
            InstallError::request(format!("cannot list the claims in namespace {namespace}"), &error)
        })?;
        let mut held: Vec<String> = claims
            .items
            .iter()
            .map(|claim| format!("PersistentVolumeClaim {namespace}/{}", claim.name_any()))
            .collect();
        let kinds: Vec<Kind> = self.survey.kinds.iter().filter(|kind| kind.namespaced).cloned().collect();
        let inside = inventory::list(&self.target.client, &kinds, Some(namespace), None).await.objects;
        let strangers = plan::strangers(&inside, namespace);
        let strangers = strangers.iter().filter(|id| id.kind != "PersistentVolumeClaim");
        held.extend(strangers.map(ToString::to_string));
        Ok(held)
    }

    /// It stays, is no longer marked as ours, and its owner is told what is in it.
    async fn leave_storage(&self, name: &str, held: &[String]) -> Result<(), InstallError> {
        let api = Api::<Namespace>::all(self.target.client.clone());
        let patch = json!({"metadata": {"labels": plan::no_labels()}});
        match patiently(async || api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await).await
        {
            Ok(_) => {}
            Err(error) if trouble::is_not_found(&error) => return Ok(()),
            Err(error) => {
                return Err(InstallError::request(
                    format!("cannot take our labels off the namespace {name}"),
                    &error,
                ));
            }
        }
        self.progress.warn(&format!(
            "Namespace {name} stays, as data is behind it: {}. Nobody provides for these any more; when the data is no \
             longer needed: kubectl delete namespace {name}",
            held.join(", ")
        ));
        Ok(())
    }

    pub(super) async fn labelled(&self, kind: &str, label: &str) -> Vec<Seen> {
        let known =
            self.survey.kinds.iter().find(|one| one.resource.kind == kind && one.resource.group.is_empty());
        let Some(known) = known else { return vec![] };
        inventory::list(&self.target.client, std::slice::from_ref(known), None, Some(label)).await.objects
    }

    /// Whether there were any.
    async fn delete_labelled(&self, kind: &str, label: &str) -> Result<bool, InstallError> {
        let found = self.labelled(kind, label).await;
        for seen in &found {
            self.remove_seen(seen).await?;
        }
        Ok(!found.is_empty())
    }

    async fn remove_seen(&self, seen: &Seen) -> Result<(), InstallError> {
        self.take_off_finalizers(seen).await?;
        apply::remove(&self.target.client, &seen.kind, &seen.id).await?;
        self.progress.done(&format!("{} removed", seen.id));
        Ok(())
    }
}
