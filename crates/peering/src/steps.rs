//! One write to one object, here or at a peer, as the plans say it.

use kube::Resource;
use kube::ResourceExt;
use liqo_core::ledger::Sale;
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use serde::Serialize;
use serde_json::{Map, Value};

#[cfg(test)]
mod tests;

/// Whose API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Where {
    /// Ours.
    Here,
    /// The peer's.
    There,
}

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Where,
    pub(crate) target: Target,
    /// A few words for logs and tests.
    pub(crate) what: &'static str,
    pub(crate) deed: Deed,
    /// What the write sells.
    pub(crate) sale: Option<Sale>,
    /// What is not done too often.
    pub(crate) paced: Option<(Paced, String)>,
}

/// What is not done too often; with what tells one time from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paced {
    /// Changing an offer.
    Offer,
    /// Proposing a contract or an amendment.
    Proposal,
}

/// What is done to the object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Deed {
    Create(Value),
    /// Creates an object whose name follows from what it says, so that it need not be made twice.
    Note(Value),
    /// Changes the object if it is as it was seen.
    Merge {
        resource_version: String,
        patch: Value,
    },
    /// Changes the status of the object if it is as it was seen.
    MergeStatus {
        resource_version: String,
        patch: Value,
    },
    /// Says our part of a status that others write too.
    ApplyStatus(Value),
    Delete {
        uid: String,
    },
}

/// Kinds that are written.
pub(crate) trait Written: Resource<DynamicType = ()> + Serialize + Clone + PartialEq {}

impl<K: Resource<DynamicType = ()> + Serialize + Clone + PartialEq> Written for K {}

fn key<K: ResourceExt>(object: &K) -> Key {
    Key::new(object.namespace().as_deref(), &object.name_any())
}

fn value(object: &impl Serialize) -> Value {
    // The kinds are maps with text keys, which JSON can always say.
    serde_json::to_value(object).unwrap_or_default()
}

impl Step {
    fn new<K: Resource<DynamicType = ()>>(at: Where, key: Key, what: &'static str, deed: Deed) -> Self {
        Self { at, target: Target::of::<K>(key), what, deed, sale: None, paced: None }
    }

    /// Creates an object.
    pub(crate) fn create<K: Written>(at: Where, object: &K, what: &'static str) -> Self {
        Self::new::<K>(at, key(object), what, Deed::Create(value(object)))
    }

    /// Creates an object whose name follows from what it says.
    pub(crate) fn note<K: Written>(at: Where, object: &K, what: &'static str) -> Self {
        Self::new::<K>(at, key(object), what, Deed::Note(value(object)))
    }

    /// Makes the object as `wanted`, its status aside; nothing if it is.
    pub(crate) fn bring<K: Written>(at: Where, seen: &K, wanted: &K, what: &'static str) -> Option<Self> {
        if seen == wanted {
            return None;
        }
        let mut patch = difference(&value(seen), &value(wanted))?;
        patch.as_object_mut()?.remove("status");
        if patch.as_object()?.is_empty() {
            return None;
        }
        let resource_version = seen.resource_version().unwrap_or_default();
        Some(Self::new::<K>(at, key(seen), what, Deed::Merge { resource_version, patch }))
    }

    /// Makes the object's status as that of `wanted`; nothing if it is.
    pub(crate) fn bring_status<K: Written>(
        at: Where,
        seen: &K,
        wanted: &K,
        what: &'static str,
    ) -> Option<Self> {
        if seen == wanted {
            return None;
        }
        let status = |object: &K| value(object).get("status").cloned().unwrap_or(Value::Object(Map::new()));
        let patch = difference(&status(seen), &status(wanted))?;
        let resource_version = seen.resource_version().unwrap_or_default();
        Some(Self::new::<K>(at, key(seen), what, Deed::MergeStatus { resource_version, patch }))
    }

    /// Says our part of a status that others write too.
    pub(crate) fn apply_status<K: Resource<DynamicType = ()>>(
        key: Key,
        status: &Value,
        what: &'static str,
    ) -> Self {
        let object = serde_json::json!({
            "apiVersion": K::api_version(&()), "kind": K::kind(&()),
            "metadata": { "name": key.name() }, "status": status,
        });
        Self::new::<K>(Where::Here, key, what, Deed::ApplyStatus(object))
    }

    /// Deletes the object.
    pub(crate) fn delete<K: Written>(at: Where, seen: &K, what: &'static str) -> Self {
        Self::new::<K>(at, key(seen), what, Deed::Delete { uid: seen.uid().unwrap_or_default() })
    }

    /// The same, selling something.
    #[must_use]
    pub(crate) fn selling(mut self, sale: Sale) -> Self {
        self.sale = Some(sale);
        self
    }

    /// The same, not too often.
    #[must_use]
    pub(crate) fn paced(mut self, what: Paced, occasion: &str) -> Self {
        self.paced = Some((what, occasion.to_owned()));
        self
    }

    /// Whether it is about the object's status.
    pub(crate) fn is_status(&self) -> bool {
        matches!(self.deed, Deed::MergeStatus { .. } | Deed::ApplyStatus(_))
    }

    /// The version of the object that it is about, if only that one is meant.
    pub(crate) fn version(&self) -> Option<&str> {
        match &self.deed {
            Deed::Merge { resource_version, .. } | Deed::MergeStatus { resource_version, .. } => {
                Some(resource_version)
            }
            Deed::Create(_) | Deed::Note(_) | Deed::ApplyStatus(_) | Deed::Delete { .. } => None,
        }
    }

    /// Whether both are about the same part of the same object.
    pub(crate) fn same_slot(&self, other: &Self) -> bool {
        self.at == other.at && self.target == other.target && self.is_status() == other.is_status()
    }

    /// The write that does it.
    pub(crate) fn write(&self) -> Result<Write, serde_json::Error> {
        let target = self.target.clone();
        match &self.deed {
            Deed::Create(object) => Write::create(target, object),
            Deed::Note(object) => Ok(Write::create(target, object)?.or_exists()),
            Deed::Merge { resource_version, patch } => Write::merge(target, resource_version, patch),
            Deed::MergeStatus { resource_version, patch } => {
                Write::merge_status(target, resource_version, patch)
            }
            Deed::ApplyStatus(object) => Write::apply_status(target, object),
            Deed::Delete { uid } => Ok(Write::delete(target, uid)),
        }
    }
}

/// The merge patch that makes `new` of `old`; nothing if they are the same.
fn difference(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        _ if old == new => None,
        (Value::Object(old), Value::Object(new)) => {
            let gone = old.keys().filter(|key| !new.contains_key(*key));
            let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
            for (key, value) in new {
                let change = match old.get(key) {
                    Some(earlier) => difference(earlier, value),
                    None => Some(value.clone()),
                };
                patch.extend(change.map(|change| (key.clone(), change)));
            }
            Some(Value::Object(patch))
        }
        (_, new) => Some(new.clone()),
    }
}
