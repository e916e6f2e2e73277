//! Makes one change at a time. Each may be done twice, and each is a place where a crash may come.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use tokio::time::Instant;

use crate::changes::{Planned, is_immutable};
use crate::error::InstallError;
use crate::kinds::Kind;
use crate::names::FIELD_MANAGER;
use crate::objects::Id;
use crate::trouble::{self, patiently};

/// A definition is served within moments, unless its names are taken.
const ESTABLISHED: Duration = Duration::from_secs(60);
/// An object that is replaced as a whole must be gone within this time.
const GONE: Duration = Duration::from_secs(30);
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(100);

/// Applies an object as it is wanted.
pub(crate) async fn apply(client: &Client, planned: &Planned) -> Result<(), InstallError> {
    let Some(wanted) = &planned.wanted else { return Ok(()) };
    let api = planned.kind.api(client, planned.id.namespace.as_deref());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let put = async || api.patch(&planned.id.name, &params, &Patch::Apply(wanted)).await;
    let failed = |error: kube::Error| InstallError::request(format!("cannot apply {}", planned.id), &error);
    match patiently(put).await {
        Ok(_) => Ok(()),
        Err(error) if is_immutable(&error) => {
            remove(client, &planned.kind, &planned.id).await?;
            wait_until_gone(&api, &planned.id).await?;
            patiently(put).await.map(drop).map_err(failed)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Deletes an object; one that is gone already is fine.
pub(crate) async fn remove(client: &Client, kind: &Kind, id: &Id) -> Result<(), InstallError> {
    let api = kind.api(client, id.namespace.as_deref());
    let params = DeleteParams::background();
    match patiently(async || api.delete(&id.name, &params).await).await {
        Ok(_) => Ok(()),
        Err(error) if trouble::is_not_found(&error) => Ok(()),
        Err(error) => Err(InstallError::request(format!("cannot delete {id}"), &error)),
    }
}

async fn wait_until_gone(api: &Api<DynamicObject>, id: &Id) -> Result<(), InstallError> {
    let deadline = Instant::now() + GONE;
    loop {
        let there = patiently(async || api.get_metadata_opt(&id.name).await).await;
        let there = there.map_err(|error| InstallError::request(format!("cannot look at {id}"), &error))?;
        let Some(there) = there else { return Ok(()) };
        if Instant::now() >= deadline {
            let finalizers = there.metadata.finalizers.unwrap_or_default().join(", ");
            return Err(InstallError::Late(format!(
                "{id} must be replaced and is still being deleted after {} s (finalizers: {finalizers}). Remove it, \
                 then run the same command again",
                GONE.as_secs()
            )));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until these definitions are served.
pub(crate) async fn served(client: &Client, names: &[String]) -> Result<(), InstallError> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let deadline = Instant::now() + ESTABLISHED;
    for name in names {
        loop {
            let found = patiently(async || api.get(name).await).await;
            let found =
                found.map_err(|error| InstallError::request(format!("cannot look at {name}"), &error))?;
            let Some(why) = unserved(&found) else { break };
            if Instant::now() >= deadline {
                return Err(InstallError::Late(format!(
                    "CustomResourceDefinition {name} is not served after {} s: {why}. Put that right and run the same \
                     command again, it goes on",
                    ESTABLISHED.as_secs()
                )));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(())
}

/// Why a definition is not served; `None` if it is.
fn unserved(definition: &CustomResourceDefinition) -> Option<String> {
    let conditions = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let find = |kind: &str, status: &str| {
        let found = conditions.clone().find(|one| one.type_ == kind && one.status == status)?;
        Some(found.message.clone().unwrap_or_default())
    };
    if let Some(message) = find("Terminating", "True") {
        return Some(format!("it is being deleted ({message})"));
    }
    if find("Established", "True").is_some() {
        return None;
    }
    Some(find("NamesAccepted", "False").unwrap_or_else(|| "the API server has not taken it up yet".into()))
}
