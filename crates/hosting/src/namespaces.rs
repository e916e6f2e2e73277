//! What is missing of the namespaces of consumers, and what their maps should say.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use k8s_openapi::api::rbac::v1::RoleBinding;
use liqo_api::names::{CONTRACT_QUOTA, REMOTE_TENANT_BINDING, REMOTE_TENANT_ROLE};
use liqo_api::namespace_map::{MappingPhase, RemoteNamespace};
use liqo_api::{NamespaceMap, annotations};
use liqo_core::Quantity;
use liqo_core::contract::Enforcement;
use liqo_core::names::ClusterId;
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use serde_json::{Value, json};

use crate::claims::{Claim, holds};
use crate::index::{Index, Map, Quota, Space};
use crate::limits::OBJECT_QUOTA;
use crate::objects;
use crate::pods::HouseRules;

#[cfg(test)]
mod tests;

/// The API server did not take it.
const FAILED: &str = "Failed";
/// It is being removed.
const REMOVED: &str = "Removed";
/// A message that goes into a map of thousands is short.
const MAX_MESSAGE: usize = 256;

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// A few words for logs and tests.
    pub(crate) what: &'static str,
    pub(crate) write: Write,
}

/// What can be said in JSON; everything here can.
type Made = Result<Write, serde_json::Error>;

fn step(what: &'static str, write: Made) -> Option<Step> {
    let write = write.inspect_err(|error| tracing::error!(what, %error, "an object cannot be made")).ok()?;
    Some(Step { what, write })
}

/// What is missing of a namespace, the namespace itself first.
pub(crate) fn plan(index: &Index, name: &str) -> Vec<Step> {
    let space = index.space(name);
    let Some(claim) = index.claims.wanted.get(name) else {
        let rights = space.and_then(|space| shut_out(index, name, space));
        let removed = space.and_then(|space| remove(index, name, space));
        return rights.into_iter().chain(removed).collect();
    };
    let rules = index.rules(&claim.peer);
    match space {
        None => {
            let target = Target::of::<Namespace>(Key::cluster(name));
            let object = objects::namespace(name, claim, &rules);
            step("create the namespace", Write::create(target, &object)).into_iter().collect()
        }
        Some(space) if space.deleting => Vec::new(),
        Some(space) if holds(index, name, claim) => {
            let quotas = quota(index, name, claim).into_iter().chain(object_quota(index, name, claim));
            let binding = binding(index, name, claim);
            let kinds = note_kinds(index, name, space, claim, &rules);
            let house = relabel(name, space, &rules).or(kinds);
            house.into_iter().chain(quotas).chain(binding).collect()
        }
        // The consumer's, for another of its namespaces: what is in it is not this one's.
        Some(space) => remove(index, name, space).into_iter().collect(),
    }
}

/// Takes the rights of a consumer that is put out, at once: its namespaces go a little later, as after any contract.
fn shut_out(index: &Index, name: &str, space: &Space) -> Option<Step> {
    space.peer.as_ref().filter(|peer| index.is_put_out(peer))?;
    let key = Key::namespaced(name, REMOTE_TENANT_BINDING);
    let found = index.bindings.get(&key)?;
    step("shut the consumer out", Ok(Write::delete(Target::of::<RoleBinding>(key), &found.uid)))
}

/// Takes away a namespace that was made for a consumer and that nobody wants.
fn remove(index: &Index, name: &str, space: &Space) -> Option<Step> {
    let peer = space.peer.as_ref()?;
    if space.deleting || index.claims.spared.contains(peer) {
        return None;
    }
    let target = Target::of::<Namespace>(Key::cluster(name));
    step("delete the namespace", Ok(Write::delete(target, &space.uid)))
}

fn relabel(name: &str, space: &Space, rules: &HouseRules) -> Option<Step> {
    let level = rules.level.as_label();
    if space.level.as_deref() == Some(level) {
        return None;
    }
    let patch = json!({ "metadata": { "labels": { objects::POD_SECURITY: level } } });
    let target = Target::of::<Namespace>(Key::cluster(name));
    step("set the Pod Security level", Write::merge(target, &space.resource_version, &patch))
}

/// Notes which custom kinds the consumer may bring along. While it is offered nothing, no policy says so, and what was
/// noted before holds.
fn note_kinds(index: &Index, name: &str, space: &Space, claim: &Claim, rules: &HouseRules) -> Option<Step> {
    if space.custom_kinds.as_deref() == rules.custom_kinds.as_deref() || !index.is_offered(&claim.peer) {
        return None;
    }
    let patch = json!({ "metadata": { "annotations": { annotations::CUSTOM_KINDS: rules.custom_kinds } } });
    let target = Target::of::<Namespace>(Key::cluster(name));
    step("note the custom kinds", Write::merge(target, &space.resource_version, &patch))
}

fn quota(index: &Index, name: &str, claim: &Claim) -> Option<Step> {
    let grant = index.grant(&claim.peer)?;
    let key = Key::namespaced(name, CONTRACT_QUOTA);
    let found = index.quotas.get(&key);
    let target = Target::of::<ResourceQuota>(key);
    let hard = objects::hard(&grant.resources);
    match (grant.enforcement, found) {
        (Enforcement::Hard, None) => {
            let object = objects::quota(CONTRACT_QUOTA, name, &claim.peer, &hard);
            step("create the quota", Write::create(target, &object))
        }
        (Enforcement::Hard, Some(found)) => change_quota("change the quota", target, found, &hard),
        // More than agreed is told, not refused.
        (Enforcement::Soft, Some(found)) => step("delete the quota", Ok(Write::delete(target, &found.uid))),
        (Enforcement::Soft, None) => None,
    }
}

/// How many objects there may be, whatever the contract.
fn object_quota(index: &Index, name: &str, claim: &Claim) -> Option<Step> {
    let key = Key::namespaced(name, OBJECT_QUOTA);
    let found = index.quotas.get(&key);
    let target = Target::of::<ResourceQuota>(key);
    let hard = index.limits.hard();
    let Some(found) = found else {
        let object = objects::quota(OBJECT_QUOTA, name, &claim.peer, &hard);
        return step("limit the objects", Write::create(target, &object));
    };
    change_quota("change the limits of objects", target, found, &hard)
}

fn change_quota(
    what: &'static str,
    target: Target,
    found: &Quota,
    hard: &BTreeMap<String, String>,
) -> Option<Step> {
    if are_equal(&found.hard, hard) {
        return None;
    }
    let mut amounts: BTreeMap<&String, Value> =
        hard.iter().map(|(name, amount)| (name, json!(amount))).collect();
    amounts.extend(found.hard.keys().filter(|name| !hard.contains_key(*name)).map(|it| (it, Value::Null)));
    let patch = json!({ "spec": { "hard": amounts } });
    step(what, Write::merge(target, &found.resource_version, &patch))
}

/// Whether both say the same amounts, in whatever words.
fn are_equal(found: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    let same = |(name, amount): (&String, &String)| {
        let read = |text: &str| text.parse::<Quantity>().ok();
        found.get(name).is_some_and(|found| found == amount || read(found) == read(amount))
    };
    found.len() == wanted.len() && wanted.iter().all(same)
}

fn binding(index: &Index, name: &str, claim: &Claim) -> Option<Step> {
    let key = Key::namespaced(name, REMOTE_TENANT_BINDING);
    let found = index.bindings.get(&key);
    let target = Target::of::<RoleBinding>(key);
    let subjects = objects::subjects(&claim.peer);
    match found {
        None => step("let the consumer in", Write::create(target, &objects::binding(name, &claim.peer))),
        // The role of a binding cannot be changed.
        Some(found) if found.role != format!("ClusterRole/{REMOTE_TENANT_ROLE}") => {
            step("take away another role", Ok(Write::delete(target, &found.uid)))
        }
        Some(found) if found.subjects != subjects => {
            let patch = json!({ "subjects": subjects });
            step("let in the consumer and nobody else", Write::merge(target, &found.resource_version, &patch))
        }
        Some(_) => None,
    }
}

/// What is missing of what a map says.
pub(crate) fn answer(index: &Index, key: &Key) -> Option<Step> {
    let map = index.maps.get(key).filter(|map| !map.deleting)?;
    let place = index.tenants.store().get(&Key::cluster(key.namespace()?))?;
    if place.peer.as_str() != &*map.origin {
        return None;
    }
    let said = mapping(index, key, map, &place.peer);
    if said == map.told {
        return None;
    }
    let gone = map.told.keys().filter(|name| !said.contains_key(*name)).map(|name| (name, Value::Null));
    let changed = said.iter().filter(|(name, it)| map.told.get(*name) != Some(it));
    let changed = changed.map(|(name, it)| (name, replaced(it)));
    let patch: BTreeMap<&String, Value> = gone.chain(changed).collect();
    let status = json!({ "currentMapping": patch });
    let target = Target::of::<NamespaceMap>(key.clone());
    step("tell which namespaces there are", Write::merge_status(target, &map.resource_version, &status))
}

/// As a merge patch, which leaves alone what it does not name.
fn replaced(it: &RemoteNamespace) -> Value {
    json!({
        "remoteNamespace": it.remote_namespace, "phase": it.phase, "reason": it.reason, "message": it.message,
    })
}

/// The state of each namespace that a map asks for, or asked for and that is not gone yet.
fn mapping(index: &Index, key: &Key, map: &Map, peer: &ClusterId) -> BTreeMap<String, RemoteNamespace> {
    let wanted = map
        .wanted
        .iter()
        .filter_map(|(original, name)| Some((original.clone(), state(index, key, original, name, peer)?)));
    let leaving = index.spaces.group(key).filter(|(_, space)| space.peer.as_ref() == Some(peer));
    let leaving = leaving.filter_map(|(name, space)| {
        let original = space.original.as_deref().filter(|original| !map.wanted.contains_key(*original))?;
        Some((original.to_owned(), terminating(name.name())))
    });
    leaving.chain(wanted).collect()
}

fn terminating(name: &str) -> RemoteNamespace {
    RemoteNamespace {
        remote_namespace: name.to_owned(),
        phase: MappingPhase::Terminating,
        reason: Some(REMOVED.to_owned()),
        message: None,
    }
}

/// The state of one namespace; nothing while it is being made.
fn state(index: &Index, map: &Key, original: &str, name: &str, peer: &ClusterId) -> Option<RemoteNamespace> {
    let not_given = |reason: &str, message: &str| RemoteNamespace {
        remote_namespace: name.to_owned(),
        phase: MappingPhase::CreationLoopBackOff,
        reason: Some(reason.to_owned()),
        message: Some(message[..message.floor_char_boundary(MAX_MESSAGE)].to_owned()),
    };
    let space = index.space(name).filter(|space| space.peer.as_ref() == Some(peer));
    let is_its_own = space.is_some_and(|space| space.original.as_deref() == Some(original));
    if let Some(denial) = index.claims.denied.get(map).and_then(|denied| denied.get(original)) {
        let goes = is_its_own && !index.claims.spared.contains(peer);
        let denied = not_given(denial.reason, &denial.message);
        let phase = if goes { MappingPhase::Terminating } else { denied.phase };
        return Some(RemoteNamespace { phase, ..denied });
    }
    if space.is_some_and(|space| space.deleting || !is_its_own) {
        return Some(terminating(name));
    }
    let missing = plan(index, name);
    if space.is_some() && missing.is_empty() && takes_objects(index, map, original, name) {
        return Some(RemoteNamespace {
            remote_namespace: name.to_owned(),
            phase: MappingPhase::Accepted,
            reason: None,
            message: None,
        });
    }
    let trouble = missing.iter().find_map(|step| index.memory.troubles.get(step.write.target()));
    trouble.map(|trouble| not_given(FAILED, trouble))
}

/// Whether the API server takes what the consumer makes in the namespace: not before it has counted what is there. One that was
/// given stays given while it counts anew.
fn takes_objects(index: &Index, map: &Key, original: &str, name: &str) -> bool {
    let told = index.maps.get(map).and_then(|map| map.told.get(original));
    let given = told.is_some_and(|told| told.phase == MappingPhase::Accepted);
    given || index.quotas.get(&Key::namespaced(name, OBJECT_QUOTA)).is_some_and(|quota| quota.counted)
}
