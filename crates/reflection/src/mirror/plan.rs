//! What should happen about one object that is copied.

use std::sync::Arc;

use liqo_api::annotations;
use liqo_kit::Key;
use serde_json::{Value, json};

use super::index::Mirror;
use super::kinds::Kind;
use super::{Around, Here, There, content};
use crate::pods::plan::Standing;
use crate::reports::Report;
use crate::route::{Route, is_token_secret};

#[cfg(test)]
mod tests;

/// All that is known.
pub(crate) struct View<'a> {
    pub(crate) home: &'a str,
    /// Where liqo itself runs.
    pub(crate) own: Option<&'a str>,
    pub(crate) mirror: &'a Mirror,
    pub(crate) standing: &'a dyn Fn(&str) -> Option<Standing>,
    pub(crate) around: Around<'a>,
}

/// One thing to do at a provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Make the copy.
    Create { object: Value },
    /// Make it as it should be.
    Replace { uid: Box<str>, version: Box<str>, object: Value },
    /// Take it away.
    Delete { uid: Box<str> },
}

/// What should happen about one object, at each provider.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planned {
    /// The provider, the object there, and what to do.
    pub(crate) steps: Vec<(Arc<str>, Key, Step)>,
    /// What to tell about the original.
    pub(crate) report: Option<Report>,
}

/// What should happen about the object of this kind and name.
pub(crate) fn plan(view: &View<'_>, kind: Kind, key: &Key) -> Planned {
    let mut planned = Planned::default();
    let namespace = key.namespace().unwrap_or_default();
    for (provider, (remote, open)) in view.mirror.places(namespace) {
        let Some(standing) = (view.standing)(provider).filter(|standing| standing.gone.is_none()) else {
            continue;
        };
        if !view.mirror.is_known(kind, namespace, provider) {
            continue;
        }
        let route = Route {
            home: view.home,
            provider,
            namespace,
            remote,
            storage_class: standing.storage_class.as_deref(),
        };
        // Keys, tokens and accounts of liqo itself are nobody else's; its Services are there to be reached.
        let secret = view.own == Some(namespace) && !matches!(kind, Kind::Service | Kind::EndpointSlice);
        let here = view.mirror.here(kind, key).filter(|_| !secret);
        let here = here.filter(|here| here.only.as_ref().is_none_or(|only| only.contains(&**provider)));
        let there = view.mirror.there(kind, key, provider);
        let step = step(view, kind, key, &route, here, there, *open, &mut planned.report);
        if let Some(step) = step {
            planned.steps.push((Arc::clone(provider), Key::namespaced(remote, key.name()), step));
        }
    }
    planned
}

#[expect(clippy::too_many_arguments, reason = "it is the rule itself, and they are all that it depends on")]
fn step(
    view: &View<'_>,
    kind: Kind,
    key: &Key,
    route: &Route<'_>,
    here: Option<&Here>,
    there: Option<&There>,
    open: bool,
    report: &mut Option<Report>,
) -> Option<Step> {
    let ours = there.is_none_or(|there| there.origin.as_deref() == Some(view.home));
    match (here, there) {
        (None, None) => None,
        (None, Some(there)) => {
            // Tokens are asked for anew after a start; until then, those that are there are as good.
            let unknown = kind == Kind::Secret && is_token_secret(key.name()) && !view.mirror.tokens_known;
            let goes = ours && !there.deleting && !unknown;
            goes.then(|| Step::Delete { uid: there.uid.clone() })
        }
        (Some(here), None) => {
            let object = open.then(|| kind.forge(here, route, &view.around)).flatten()?;
            Some(Step::Create { object })
        }
        (Some(_), Some(_)) if !ours => {
            *report = Some(Report::warning(
                "NameTaken",
                &format!(
                    "not reflected to the provider {}: {} has an object of this name that is not ours, which is never touched",
                    route.provider, route.remote
                ),
            ));
            None
        }
        (Some(here), Some(there)) => change(view, kind, route, here, there),
    }
}

fn change(view: &View<'_>, kind: Kind, route: &Route<'_>, here: &Here, there: &There) -> Option<Step> {
    if kind == Kind::Claim {
        // A claim is what it was when it was made; one that was made for an earlier claim of this name goes first.
        let other = there.made_for.as_deref() != Some(&here.uid);
        return (other && !there.deleting).then(|| Step::Delete { uid: there.uid.clone() });
    }
    let kept = there.inside == here.inside;
    let same = || kept && *there.content == *content(&here.digest, route);
    if there.deleting || (kind != Kind::EndpointSlice && same()) {
        return None;
    }
    // Which endpoints go to a provider, and with which addresses, depends on nodes and networks as well.
    let Some(mut object) = kind.forge(here, route, &view.around) else {
        return Some(Step::Delete { uid: there.uid.clone() });
    };
    if kept && object["metadata"]["annotations"][annotations::CONTENT] == *there.content {
        return None;
    }
    if !there.finalizers.is_empty() {
        object["metadata"]["finalizers"] = json!(there.finalizers);
    }
    let (uid, version) = (there.uid.clone(), there.version.clone());
    Some(if there.immutable { Step::Delete { uid } } else { Step::Replace { uid, version, object } })
}
