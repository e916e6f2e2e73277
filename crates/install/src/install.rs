//! Makes an installation true: definitions, objects, what is left over, and then waits until it runs.

use std::time::Duration;

use futures::{StreamExt, stream};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::apply;
use crate::changes::{AT_ONCE, Action, Planned};
use crate::error::InstallError;
use crate::names::MANAGER;
use crate::notes::State;
use crate::objects::{Id, Owner};
use crate::prepare::Prepared;
use crate::progress::{Progress, with_time};
use crate::rollout::{Wait, is_workload, wait};
use crate::target::Target;
use crate::trouble::patiently;
use crate::{lock, values};

/// How an installation is made.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long it may take to become ready.
    pub timeout: Duration,
    /// The nodes have another image under the same name now: pods that run must be replaced.
    pub restart: bool,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It was all there already.
    Nothing,
    /// It is installed now.
    Installed,
    /// It was installed, and is changed now.
    Upgraded,
}

/// Makes it so. When it fails or is interrupted, the next run goes on.
pub async fn install(
    target: &Target,
    prepared: &Prepared,
    options: &Options,
    stop: &CancellationToken,
    progress: &dyn Progress,
) -> Result<Done, InstallError> {
    prepared.refused()?;
    let began = Instant::now();
    let installation = Installation { target, prepared, progress, began, deadline: began + options.timeout };
    if prepared.is_done() && !options.restart && leftovers(prepared).next().is_none() {
        progress.done("nothing to change");
        stop.run_until_cancelled(installation.wait()).await.ok_or(InstallError::Interrupted)??;
        return Ok(Done::Nothing);
    }
    // Webhooks of a dead manager would refuse what comes now, the Lease included; the Lease needs its namespace.
    let first = async {
        installation.webhooks().await?;
        installation.namespace().await
    };
    stop.run_until_cancelled(first).await.ok_or(InstallError::Interrupted)??;
    let work = Box::pin(installation.write(options));
    lock::holding(&target.client, &target.namespace, "liqoctl install", stop, progress, work).await?;
    Ok(if prepared.is_upgrade() { Done::Upgraded } else { Done::Installed })
}

/// Webhooks behind which nobody is: those of ours, and with `--force` others. One that this version has is put right where it
/// is: it asks about the pods of offloaded namespaces alone, and stands in nobody's way here.
fn leftovers(prepared: &Prepared) -> impl Iterator<Item = Id> {
    let wanted = |id: &Id| prepared.objects.iter().any(|one| one.id == *id);
    let dead = prepared.outlook.existing.webhooks.iter().filter(|one| one.is_dead());
    let ours = dead.filter(|one| one.owner == Owner::Ours || prepared.force);
    ours.map(|one| Id {
        api_version: "admissionregistration.k8s.io/v1".into(),
        kind: one.kind.into(),
        namespace: None,
        name: one.name.clone(),
    })
    .filter(move |id| !wanted(id))
}

struct Installation<'a> {
    target: &'a Target,
    prepared: &'a Prepared,
    progress: &'a dyn Progress,
    began: Instant,
    deadline: Instant,
}

impl Installation<'_> {
    async fn namespace(&self) -> Result<(), InstallError> {
        let namespace = self.prepared.objects.iter().find(|one| one.id.kind == "Namespace");
        let Some(namespace) = namespace.filter(|one| one.is_change()) else { return Ok(()) };
        self.progress.busy(&format!("applying {}", namespace.id));
        apply::apply(&self.target.client, namespace).await?;
        self.progress.done(&told(namespace));
        Ok(())
    }

    async fn write(&self, options: &Options) -> Result<(), InstallError> {
        self.note(State::Installing).await?;
        self.definitions().await?;
        self.objects().await?;
        self.leftover_objects().await?;
        if options.restart {
            self.restart().await?;
        }
        self.wait().await?;
        self.note(State::Installed).await
    }

    async fn note(&self, state: State) -> Result<(), InstallError> {
        let notes = self.prepared.notes(state);
        notes
            .write(&self.target.client, &self.target.namespace)
            .await
            .map_err(|error| InstallError::request("cannot write down what is installed", &error))
    }

    async fn webhooks(&self) -> Result<(), InstallError> {
        let superfluous =
            self.prepared.removals.iter().filter(|one| is_webhook(&one.id)).map(|one| one.id.clone());
        let mut ids: Vec<Id> = leftovers(self.prepared).chain(superfluous).collect();
        ids.sort();
        ids.dedup();
        for id in ids {
            self.progress.busy(&format!("removing {id}"));
            let kind = crate::kinds::Kind::webhook(&id.kind);
            apply::remove(&self.target.client, &kind, &id).await?;
            self.progress.done(&format!("{id} removed, as nobody answers it any more"));
        }
        Ok(())
    }

    async fn definitions(&self) -> Result<(), InstallError> {
        let started = Instant::now();
        let changing: Vec<&Planned> =
            self.prepared.definitions.iter().filter(|one| one.is_change()).collect();
        self.progress.busy(&format!("applying the definitions of {} kinds", self.prepared.definitions.len()));
        let applied = changing.iter().map(async |one| apply::apply(&self.target.client, one).await);
        let applied: Vec<_> = stream::iter(applied).buffered(AT_ONCE).collect().await;
        applied.into_iter().collect::<Result<Vec<()>, _>>()?;
        let names: Vec<String> = self.prepared.definitions.iter().map(|one| one.id.name.clone()).collect();
        apply::served(&self.target.client, &names).await?;
        let done = match changing.len() {
            0 => format!("the definitions of {} kinds are as they should be", names.len()),
            changed => format!("{changed} of {} definitions of kinds applied", names.len()),
        };
        self.progress.done(&with_time(&done, started));
        Ok(())
    }

    async fn objects(&self) -> Result<(), InstallError> {
        let removed: Vec<Id> = leftovers(self.prepared).collect();
        for one in self.prepared.objects.iter().filter(|one| one.id.kind != "Namespace") {
            if !one.is_change() && !removed.iter().any(|id| id.is_same(&one.id)) {
                continue;
            }
            let started = Instant::now();
            self.progress.busy(&format!("applying {}", one.id));
            apply::apply(&self.target.client, one).await?;
            self.progress.done(&with_time(&told(one), started));
        }
        Ok(())
    }

    async fn leftover_objects(&self) -> Result<(), InstallError> {
        for one in self.prepared.removals.iter().filter(|one| !is_webhook(&one.id)) {
            self.progress.busy(&format!("removing {}", one.id));
            apply::remove(&self.target.client, &one.kind, &one.id).await?;
            self.progress.done(&format!("{} removed, as this version does not need it", one.id));
        }
        Ok(())
    }

    /// Replaces the manager's pods, as `kubectl rollout restart` does.
    async fn restart(&self) -> Result<(), InstallError> {
        let running =
            self.prepared.objects.iter().any(|one| one.id.name == MANAGER && one.action == Action::Keep);
        if !running {
            return Ok(());
        }
        let now = jiff::Timestamp::now().to_string();
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": now}}}}});
        let api = Api::<Deployment>::namespaced(self.target.client.clone(), &self.target.namespace);
        let params = PatchParams { field_manager: Some("liqoctl-restart".into()), ..PatchParams::default() };
        patiently(async || api.patch(MANAGER, &params, &Patch::Merge(&patch)).await)
            .await
            .map_err(|error| InstallError::request("cannot restart the manager", &error))?;
        self.progress.done("the manager is started again, as the image under its name is another one now");
        Ok(())
    }

    async fn wait(&self) -> Result<(), InstallError> {
        let started = Instant::now();
        let workloads: Vec<Id> =
            self.prepared.objects.iter().map(|one| one.id.clone()).filter(is_workload).collect();
        let speaks =
            self.prepared.definitions.iter().any(|one| one.id.name == "clusterconfigs.config.liqo.io");
        // An image that somebody chose tells its own version.
        let chosen = values::text(&self.prepared.outlook.all_values, "image.tag").is_some()
            || values::text(&self.prepared.outlook.all_values, "image.digest").is_some();
        let version = (!chosen).then_some(self.prepared.version.as_str());
        let wanted = Wait {
            client: &self.target.client,
            workloads: &workloads,
            word: speaks.then_some(version),
            began: self.began,
            deadline: self.deadline,
        };
        wait(&wanted, self.progress).await?;
        self.progress.done(&with_time("the manager is ready", started));
        Ok(())
    }
}

fn is_webhook(id: &Id) -> bool {
    id.kind.ends_with("WebhookConfiguration")
}

fn told(planned: &Planned) -> String {
    match planned.action {
        Action::Create => format!("{} created", planned.id),
        Action::Change => format!("{} changed", planned.id),
        Action::Keep => format!("{} is as it should be", planned.id),
        Action::Remove => format!("{} removed", planned.id),
    }
}
