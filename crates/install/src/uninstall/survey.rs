//! Looks what there is to take out.

use kube::api::ListParams;
use serde_json::Value;

use super::plan;
use crate::error::InstallError;
use crate::existing::{self, Existing};
use crate::inventory::{self, Inventory, Seen};
use crate::kinds::{Kind, Kinds};
use crate::names::{NAMESPACE, RELEASE};
use crate::objects::{Id, Owner, ours_selector};
use crate::target::Target;
use crate::trouble::{self, patiently};

/// What is in the cluster of ours.
pub struct Survey {
    pub(super) existing: Existing,
    pub(super) kinds: Vec<Kind>,
    /// Everything labelled ours.
    pub(super) labelled: Inventory,
    /// The objects of liqo's kinds.
    pub(super) custom: Vec<(Id, Value)>,
    /// Objects in the namespace that are not ours.
    pub(super) strangers: Vec<Id>,
    namespace: String,
}

/// Looks everywhere. Changes nothing.
pub async fn survey(target: &Target) -> Result<Survey, InstallError> {
    let (existing, kinds) =
        futures::join!(existing::read(&target.client, &target.namespace), Kinds::read(&target.client));
    let kinds = kinds
        .map_err(|error| InstallError::request("cannot ask the API server for its kinds", &error))?
        .all();
    let selector = ours_selector();
    let (labelled, custom, inside) = futures::join!(
        inventory::list(&target.client, &kinds, None, Some(&selector)),
        custom(target, &kinds),
        inside(target, &kinds, &existing),
    );
    let strangers = plan::strangers(&inside.objects, &target.namespace);
    Ok(Survey { existing, kinds, labelled, custom: custom?, strangers, namespace: target.namespace.clone() })
}

/// The objects of liqo's kinds, if those are ours.
async fn custom(target: &Target, kinds: &[Kind]) -> Result<Vec<(Id, Value)>, InstallError> {
    let mut found = Vec::new();
    for kind in kinds.iter().filter(|kind| plan::is_liqo_group(&kind.resource.group)) {
        let api = kind.api(&target.client, None);
        let list = match patiently(async || api.list(&ListParams::default()).await).await {
            Ok(list) => list,
            Err(error) if trouble::is_not_found(&error) || trouble::is_forbidden(&error) => continue,
            Err(error) => {
                return Err(InstallError::request(format!("cannot list {}", kind.resource.plural), &error));
            }
        };
        for object in list.items {
            let id = Id {
                api_version: kind.resource.api_version.clone(),
                kind: kind.resource.kind.clone(),
                namespace: object.metadata.namespace.clone(),
                name: object.metadata.name.clone().unwrap_or_default(),
            };
            found.push((id, serde_json::to_value(object).unwrap_or_default()));
        }
    }
    Ok(found)
}

/// Everything in the namespace, if it is ours.
async fn inside(target: &Target, kinds: &[Kind], existing: &Existing) -> Inventory {
    let ours = existing.namespace.as_ref().is_some_and(|namespace| namespace.owner == Owner::Ours);
    if !ours {
        return Inventory::default();
    }
    let namespaced: Vec<Kind> = kinds.iter().filter(|kind| kind.namespaced).cloned().collect();
    inventory::list(&target.client, &namespaced, Some(&target.namespace), None).await
}

impl Survey {
    /// Whether there is anything to take out.
    pub fn is_empty(&self, purge: bool) -> bool {
        let running =
            self.existing.notes.is_some() || !self.one_by_one(purge).is_empty() || self.manager_made();
        let rest = self.has_rest();
        !(running || purge && rest)
    }

    /// The manager told who the cluster is, and that is still there.
    fn manager_made(&self) -> bool {
        self.custom.iter().any(|(id, _)| id.kind == "ClusterConfig")
    }

    /// Whether something is there that only `--purge` takes out.
    pub fn has_rest(&self) -> bool {
        let kinds = self.existing.definitions.iter().any(|one| one.owner == Owner::Ours);
        let namespace = self.existing.namespace.as_ref().is_some_and(|one| one.owner == Owner::Ours);
        kinds
            || namespace
            || self.labelled.objects.iter().any(plan::is_of_peerings)
            || self.existing.identity.is_some()
    }

    /// Why nothing may be taken out by us; `--force` overrides it.
    pub fn refused(&self) -> Result<(), InstallError> {
        let managed = self.existing.managers.iter().find(|one| one.owner == Owner::Helm);
        let release = self
            .existing
            .releases
            .iter()
            .find(|one| managed.is_none_or(|manager| manager.namespace == one.namespace));
        let place = managed.map(|one| one.namespace.as_str()).or(release.map(|one| one.namespace.as_str()));
        if let Some(namespace) = place {
            let release = release.map_or(RELEASE, |one| one.name.as_str());
            return Err(InstallError::Undecided(format!(
                "liqo was installed with Helm: remove it with\n  helm uninstall {release} --namespace {namespace}\n\
                 and then, if the kinds and the identity are to go too, run liqoctl uninstall --purge"
            )));
        }
        let elsewhere = self.existing.managers.iter().find(|one| one.namespace != self.namespace);
        if let (Some(other), None) = (elsewhere.filter(|one| one.owner == Owner::Ours), &self.existing.notes)
        {
            let flag =
                if other.namespace == NAMESPACE { String::new() } else { format!(" -n {}", other.namespace) };
            return Err(InstallError::Undecided(format!(
                "liqo is installed in namespace {}, not in {}: liqoctl uninstall{flag}",
                other.namespace, self.namespace
            )));
        }
        Ok(())
    }

    /// Peerings and offloaded namespaces that would end, in words.
    pub fn in_use(&self) -> Vec<String> {
        plan::in_use(&self.custom)
    }

    pub(super) fn one_by_one(&self, purge: bool) -> Vec<Seen> {
        plan::one_by_one(&self.labelled.objects, &self.namespace, purge)
    }

    pub(super) fn can_be_locked(&self) -> bool {
        self.existing.namespace.as_ref().is_some_and(|namespace| !namespace.terminating)
    }
}
