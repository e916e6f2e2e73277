//! One write to one object, here or at a provider, as the plans say it.

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::settings::Settings;
use crate::webhook::{self, CertificateError};

/// Whose API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Where {
    /// Ours.
    Here,
    /// The provider's.
    There,
}

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub(crate) at: Where,
    pub(crate) target: Target,
    /// A few words for logs and tests.
    pub(crate) what: &'static str,
    pub(crate) deed: Deed,
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
    /// Says our part of an object that others write too.
    Apply(Value),
    Delete {
        uid: String,
    },
    /// Creates the webhook's certificate. What is in it is made when it is written, so that no plan depends on chance.
    CreateCertificate,
    /// Replaces the webhook's certificate, which cannot be used.
    ReplaceCertificate {
        resource_version: String,
    },
    /// Adds the next certificate of the webhook.
    StageCertificate {
        resource_version: String,
        authorities: Vec<u8>,
    },
}

/// Why a write cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("the object cannot be put into JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
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
    pub(crate) fn new<K: Resource<DynamicType = ()>>(
        at: Where,
        key: Key,
        what: &'static str,
        deed: Deed,
    ) -> Self {
        Self { at, target: Target::of::<K>(key), what, deed }
    }

    /// Creates an object.
    pub(crate) fn create<K: Written>(at: Where, object: &K, what: &'static str) -> Self {
        Self::new::<K>(at, key(object), what, Deed::Create(value(object)))
    }

    /// Creates an object whose name follows from what it says.
    pub(crate) fn note<K: Written>(object: &K, what: &'static str) -> Self {
        Self::new::<K>(Where::Here, key(object), what, Deed::Note(value(object)))
    }

    /// Makes the object as `wanted`, its status aside; nothing if it is.
    pub(crate) fn bring<K: Written>(at: Where, seen: &K, wanted: &K, what: &'static str) -> Option<Self> {
        let mut patch = difference(&value(seen), &value(wanted))?;
        patch.as_object_mut()?.remove("status");
        if patch.as_object()?.is_empty() {
            return None;
        }
        let resource_version = seen.resource_version().unwrap_or_default();
        Some(Self::new::<K>(at, key(seen), what, Deed::Merge { resource_version, patch }))
    }

    /// Makes the object's status as that of `wanted`; nothing if it is.
    pub(crate) fn bring_status<K: Written>(seen: &K, wanted: &K, what: &'static str) -> Option<Self> {
        let status = |object: &K| value(object).get("status").cloned().unwrap_or(Value::Object(Map::new()));
        let patch = difference(&status(seen), &status(wanted))?;
        let resource_version = seen.resource_version().unwrap_or_default();
        let deed = Deed::MergeStatus { resource_version, patch };
        Some(Self::new::<K>(Where::Here, key(seen), what, deed))
    }

    /// Deletes the object.
    pub(crate) fn delete<K: Written>(at: Where, seen: &K, what: &'static str) -> Self {
        Self::new::<K>(at, key(seen), what, Deed::Delete { uid: seen.uid().unwrap_or_default() })
    }

    /// Whether it is about the object's status.
    pub(crate) fn is_status(&self) -> bool {
        matches!(self.deed, Deed::MergeStatus { .. })
    }

    /// The write that does it.
    pub(crate) fn write(&self, settings: &Settings, now: Timestamp) -> Result<Write, StepError> {
        let target = self.target.clone();
        Ok(match &self.deed {
            Deed::Create(object) => Write::create(target, object)?,
            Deed::Note(object) => Write::create(target, object)?.or_exists(),
            Deed::Merge { resource_version, patch } => Write::merge(target, resource_version, patch)?,
            Deed::MergeStatus { resource_version, patch } => {
                Write::merge_status(target, resource_version, patch)?
            }
            Deed::Apply(object) => Write::apply(target, object)?,
            Deed::Delete { uid } => Write::delete(target, uid),
            Deed::CreateCertificate => Write::create(target, &webhook::create(settings, now)?)?.or_exists(),
            Deed::ReplaceCertificate { resource_version } => {
                Write::merge(target, resource_version, &webhook::replace(settings, now)?)?
            }
            Deed::StageCertificate { resource_version, authorities } => {
                Write::merge(target, resource_version, &webhook::stage(settings, authorities, now)?)?
            }
        })
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
