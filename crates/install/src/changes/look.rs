//! Asks the API server what would happen.

use futures::{StreamExt, stream};
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::Value;

use super::compare::is_part_of;
use super::{Action, Planned, differences};
use crate::error::InstallError;
use crate::kinds::{Kind, Kinds};
use crate::names::FIELD_MANAGER;
use crate::objects::{self, Id};
use crate::trouble::{self, patiently};

/// Requests at a time: fast enough for a person, slow enough for an API server.
pub(crate) const AT_ONCE: usize = 8;

/// How objects are looked at.
pub(crate) struct Look<'a> {
    pub(crate) kinds: &'a Kinds,
    /// Where objects are that do not say where.
    pub(crate) namespace: &'a str,
    /// The namespace is not there yet, hence nothing in it.
    pub(crate) fresh: bool,
    /// Ask the server also about objects that are not there, so that it may refuse them.
    pub(crate) thorough: bool,
}

impl Look<'_> {
    /// What applying these objects would do, in their order.
    pub(crate) async fn at(&self, wanted: Vec<Value>) -> Result<Vec<Planned>, InstallError> {
        stream::iter(wanted.into_iter().map(|object| self.one(object)))
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .collect()
    }

    async fn one(&self, wanted: Value) -> Result<Planned, InstallError> {
        let api_version = wanted["apiVersion"].as_str().unwrap_or_default();
        let kind_name = wanted["kind"].as_str().unwrap_or_default();
        let kind = self.kinds.find(api_version, kind_name).ok_or_else(|| {
            InstallError::Values(format!(
                "the API server does not know the kind {kind_name} of {api_version}, which these values ask for. \
                 Install what brings that kind first, or turn it off"
            ))
        })?;
        let id = Id::of(&wanted, kind.namespaced.then_some(self.namespace));
        let absent = self.fresh && id.namespace.as_deref() == Some(self.namespace);
        let live = if absent { Ok(None) } else { self.live(&kind, &id).await };
        let mut planned = Planned {
            id,
            action: Action::Create,
            differences: vec![],
            object: Some(wanted.clone()),
            unasked: None,
            wanted: Some(wanted),
            kind,
            owner: None,
            terminating: false,
        };
        match live {
            Ok(None) if self.thorough && !absent => self.ask(&mut planned, None).await?,
            Ok(None) => {}
            Ok(Some(live)) => {
                planned.owner = Some(objects::owner(live.metadata.labels.as_ref()));
                planned.terminating = live.metadata.deletion_timestamp.is_some();
                self.ask(&mut planned, Some(live)).await?;
            }
            // Without the right to look, everything may be new.
            Err(error) if trouble::is_forbidden(&error) => planned.unasked = Some(trouble::text(&error)),
            Err(error) => {
                return Err(InstallError::request(format!("cannot look at {}", planned.id), &error));
            }
        }
        Ok(planned)
    }

    async fn live(&self, kind: &Kind, id: &Id) -> Result<Option<DynamicObject>, kube::Error> {
        let api = kind.api(self.kinds.client(), id.namespace.as_deref());
        patiently(async || api.get_opt(&id.name).await).await
    }

    /// Lets the server apply the object for show, and compares.
    async fn ask(&self, planned: &mut Planned, live: Option<DynamicObject>) -> Result<(), InstallError> {
        let Some(wanted) = planned.wanted.clone() else { return Ok(()) };
        let api = planned.kind.api(self.kinds.client(), planned.id.namespace.as_deref());
        let params = PatchParams { dry_run: true, ..PatchParams::apply(FIELD_MANAGER).force() };
        let answer =
            patiently(async || api.patch(&planned.id.name, &params, &Patch::Apply(&wanted)).await).await;
        let before = live.as_ref().and_then(|live| serde_json::to_value(live).ok());
        match (answer, before) {
            (Ok(after), before) => {
                let after = serde_json::to_value(after).unwrap_or_default();
                if let Some(before) = before {
                    planned.differences = differences(&before, &after);
                    planned.action = action(planned.differences.is_empty());
                }
                planned.object = Some(super::without_bookkeeping(&after));
            }
            // What cannot be changed is deleted and made anew.
            (Err(error), Some(_)) if is_immutable(&error) => {
                planned.differences = vec![format!("cannot be changed in place: {}", trouble::text(&error))];
                planned.action = Action::Change;
            }
            (Err(error), before) if trouble::is_forbidden(&error) || !self.thorough => {
                planned.unasked = Some(trouble::text(&error));
                if let Some(before) = before {
                    planned.action = action(is_part_of(&wanted, &before));
                }
            }
            (Err(error), _) => {
                return Err(InstallError::request(
                    format!("the API server would refuse {}", planned.id),
                    &error,
                ));
            }
        }
        Ok(())
    }
}

fn action(is_same: bool) -> Action {
    if is_same { Action::Keep } else { Action::Change }
}

/// Whether an object can only be replaced as a whole.
pub(crate) fn is_immutable(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status)
        if status.code == 422 && (status.message.contains("immutable") || status.message.contains("cannot change roleRef")))
}

/// Objects that liqoctl installed before, of the kinds that charts use, in the release's namespace and outside of any.
async fn labelled(kinds: &Kinds, used: &[Kind], namespace: &str) -> Result<Vec<(Id, Kind)>, InstallError> {
    let params = ListParams::default().labels(&objects::installed_selector());
    let lists = used.iter().map(async |kind| {
        let api = kind.api(kinds.client(), Some(namespace));
        let list = match patiently(async || api.list_metadata(&params).await).await {
            Ok(list) => list.items,
            // Named by the check of rights, where it matters.
            Err(error) if trouble::is_forbidden(&error) || trouble::is_not_found(&error) => vec![],
            Err(error) => {
                let what = format!("cannot list the {} of this installation", kind.resource.plural);
                return Err(InstallError::request(what, &error));
            }
        };
        let id = |name: Option<String>| Id {
            api_version: kind.resource.api_version.clone(),
            kind: kind.resource.kind.clone(),
            namespace: kind.namespaced.then(|| namespace.to_owned()),
            name: name.unwrap_or_default(),
        };
        // What another object of ours owns goes with its owner.
        let own = list.into_iter().filter(|one| one.metadata.owner_references.is_none());
        Ok(own.map(|one| (id(one.metadata.name), kind.clone())).collect::<Vec<_>>())
    });
    let found: Vec<_> = stream::iter(lists).buffered(AT_ONCE).collect::<Vec<_>>().await;
    Ok(found.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// What is there of this installation and no longer wanted.
pub(crate) async fn removals(
    kinds: &Kinds,
    planned: &[Planned],
    noted: &[Id],
    namespace: &str,
    keep: impl Fn(&Id) -> bool,
) -> Result<Vec<Planned>, InstallError> {
    let wanted: Vec<Id> = planned.iter().map(|one| one.id.clone()).collect();
    let mut used: Vec<Kind> = planned.iter().map(|one| one.kind.clone()).collect();
    used.extend(objects::CHART_KINDS.into_iter().filter_map(|(version, kind)| kinds.find(version, kind)));
    used.sort_by(|a, b| (&a.resource.group, &a.resource.kind).cmp(&(&b.resource.group, &b.resource.kind)));
    used.dedup_by(|a, b| (&a.resource.group, &a.resource.kind) == (&b.resource.group, &b.resource.kind));
    let labelled = labelled(kinds, &used, namespace).await?;
    let ids: Vec<Id> = labelled.iter().map(|(id, _)| id.clone()).collect();
    let mut removals = Vec::new();
    for id in objects::superfluous(&wanted, noted, &ids, keep) {
        let Some(kind) = kinds.find(&id.api_version, &id.kind) else { continue };
        // What the notes list may be gone already.
        let api = kind.api(kinds.client(), id.namespace.as_deref());
        if !ids.contains(&id) {
            match patiently(async || api.get_metadata_opt(&id.name).await).await {
                Ok(Some(there)) if objects::owner(there.metadata.labels.as_ref()) == objects::Owner::Ours => {
                }
                Ok(_) => continue,
                Err(error) if trouble::is_not_found(&error) => continue,
                Err(error) => return Err(InstallError::request(format!("cannot look at {id}"), &error)),
            }
        }
        removals.push(removal(id, kind));
    }
    Ok(removals)
}

fn removal(id: Id, kind: Kind) -> Planned {
    Planned {
        id,
        action: Action::Remove,
        differences: vec![],
        object: None,
        unasked: None,
        wanted: None,
        kind,
        owner: Some(objects::Owner::Ours),
        terminating: false,
    }
}
