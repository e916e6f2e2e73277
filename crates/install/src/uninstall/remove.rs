//! Takes things out, one step after the other.

mod beyond;
mod custom;
mod end;
mod farewell;

use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::plan;
use super::survey::Survey;
use crate::apply;
use crate::error::InstallError;
use crate::inventory::Seen;
use crate::names::{INSTALLATION, MANAGER, SERVING_REQUESTS};
use crate::objects::ours_selector;
use crate::progress::{Progress, with_time};
use crate::target::Target;
use crate::trouble::{self, patiently};

/// How often it is looked whether something is gone.
const LOOK: Duration = Duration::from_millis(200);
/// How long pods may take to end; longer than their own time of 30 s.
const PODS: Duration = Duration::from_secs(45);
/// What is deleted at last is gone within moments, or something holds it.
const LAST_LOOK: Duration = Duration::from_secs(10);

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
            // What finds clusters would find again those that are being parted from.
            let (manager, finders): (Vec<Seen>, Vec<Seen>) =
                workloads.iter().cloned().partition(|seen| seen.id.name == MANAGER);
            self.delete_all(&finders).await?;
            self.end_peerings(!manager.is_empty()).await?;
        }
        self.delete_all(&workloads).await?;
        self.wait_for_pods().await?;
        self.custom_objects().await?;
        self.delete_all(&rest).await?;
        self.made_at_run_time().await?;
        if self.purge {
            self.virtual_nodes().await?;
            self.definitions().await?;
            self.hosted_namespaces().await?;
            self.storage_namespaces().await?;
            self.tenant_namespaces().await?;
        }
        let notes = Api::<Secret>::namespaced(self.target.client.clone(), &self.target.namespace);
        self.delete_named(&notes, "Secret", INSTALLATION).await
    }

    /// What calls the manager.
    pub(super) async fn webhooks(&self) -> Result<(), InstallError> {
        let mut webhooks = self.survey.one_by_one(self.purge);
        webhooks.retain(|seen| plan::turn(&seen.id) == plan::WEBHOOKS);
        self.delete_all(&webhooks).await
    }

    /// Everything else that goes one by one.
    fn others(&self) -> Vec<Seen> {
        let mut others = self.survey.one_by_one(self.purge);
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

    /// Whoever still runs could write what is being removed.
    async fn wait_for_pods(&self) -> Result<(), InstallError> {
        let (until, started) = (self.until(PODS), Instant::now());
        let mut some = false;
        let api = Api::<Pod>::namespaced(self.target.client.clone(), &self.target.namespace);
        let params = ListParams::default().labels(&ours_selector());
        loop {
            let pods = match patiently(async || api.list_metadata(&params).await).await {
                Ok(pods) => pods.items,
                Err(error) if trouble::is_forbidden(&error) => return Ok(()),
                Err(error) => return Err(InstallError::request("cannot list the pods", &error)),
            };
            if pods.is_empty() {
                if some {
                    self.progress.done(&with_time("the manager's pods have ended", started));
                }
                return Ok(());
            }
            some = true;
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

    /// Kubernetes would forget them after an hour; nobody needs them any more.
    async fn serving_requests(&self) -> Result<(), InstallError> {
        let requests = Api::<CertificateSigningRequest>::all(self.target.client.clone());
        let list = ListParams::default();
        let found = patiently(async || requests.list_metadata(&list).await).await;
        let found = match found {
            Ok(found) => found,
            Err(error) if trouble::is_not_found(&error) => return Ok(()),
            Err(error) => {
                return Err(InstallError::request("cannot list CertificateSigningRequests", &error));
            }
        };
        for name in
            found.items.iter().map(ResourceExt::name_any).filter(|it| it.starts_with(SERVING_REQUESTS))
        {
            self.delete_named(&requests, "CertificateSigningRequest", &name).await?;
        }
        Ok(())
    }

    /// What the manager made besides, and nobody labelled.
    async fn made_at_run_time(&self) -> Result<(), InstallError> {
        let (client, namespace) = (&self.target.client, self.target.namespace.as_str());
        self.delete_named(&Api::<Lease>::namespaced(client.clone(), namespace), "Lease", MANAGER).await?;
        self.serving_requests().await?;
        if !self.purge {
            return Ok(());
        }
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        self.delete_named(&secrets, "Secret", liqo_api::cluster_config::IDENTITY_SECRET).await?;
        let maps = Api::<ConfigMap>::namespaced(client.clone(), namespace);
        self.delete_named(&maps, "ConfigMap", liqo_api::cluster_config::CLUSTER_ID_CONFIG_MAP).await
    }
}
