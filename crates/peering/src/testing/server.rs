//! An API server in memory: versions, generations, uids, finalizers, and what happened in order.

use std::collections::BTreeMap;

use jiff::Timestamp;
use liqo_kit::Key;
use serde_json::{Value, json};

use super::merge;
use crate::steps::{Deed, Step};

/// What happened to one object; nothing is left of it if there is no value.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub(crate) plural: String,
    pub(crate) key: Key,
    pub(crate) object: Option<Value>,
}

/// An API server in memory.
#[derive(Default)]
pub(crate) struct Server {
    objects: BTreeMap<(String, Key), Value>,
    pub(crate) history: Vec<Happened>,
}

/// Why a write is not made.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict;

impl Server {
    /// All objects of a kind.
    pub(crate) fn all<'a>(&'a self, plural: &'a str) -> impl Iterator<Item = (&'a Key, &'a Value)> {
        self.objects
            .iter()
            .filter(move |((kind, _), _)| kind == plural)
            .map(|((_, key), object)| (key, object))
    }

    /// Everything that is there.
    pub(crate) fn everything(&self) -> impl Iterator<Item = (&str, &Key, &Value)> {
        self.objects.iter().map(|((plural, key), object)| (plural.as_str(), key, object))
    }

    pub(crate) fn get(&self, plural: &str, key: &Key) -> Option<&Value> {
        self.objects.get(&(plural.to_owned(), key.clone()))
    }

    /// Puts an object as a person does; an object of that name gets what is said, and keeps the rest.
    pub(crate) fn put(&mut self, plural: &str, key: &Key, said: &Value, now: Timestamp) {
        match self.get(plural, key).cloned() {
            None => self.create(plural, key, said.clone(), now),
            Some(mut object) => {
                merge(&mut object, said);
                self.keep(plural, key, object);
            }
        }
    }

    /// Deletes an object as a person does.
    pub(crate) fn delete(&mut self, plural: &str, key: &Key, now: Timestamp) {
        let Some(mut object) = self.get(plural, key).cloned() else { return };
        if object["metadata"]["deletionTimestamp"].is_null() {
            object["metadata"]["deletionTimestamp"] = json!(seconds(now));
            self.keep(plural, key, object);
        }
    }

    /// Removes everything in a namespace, as when it is deleted.
    pub(crate) fn purge(&mut self, namespace: &str) {
        let inside: Vec<(String, Key)> =
            self.objects.keys().filter(|(_, key)| key.namespace() == Some(namespace)).cloned().collect();
        for (plural, key) in inside {
            self.remove(&plural, &key);
        }
    }

    /// Makes a write.
    pub(crate) fn write(&mut self, step: &Step, now: Timestamp) -> Result<(), Conflict> {
        let (plural, key) = (super::plural(step), step.target.key().clone());
        let seen = self.get(&plural, &key).cloned();
        match (&step.deed, seen) {
            (Deed::Create(object) | Deed::Note(object), None) => {
                self.create(&plural, &key, object.clone(), now);
            }
            (Deed::Note(_), Some(_)) | (Deed::Delete { .. }, None) => {}
            (Deed::Create(_), Some(_)) | (_, None) => return Err(Conflict),
            (Deed::Merge { resource_version, patch }, Some(mut object)) => {
                check_version(&object, resource_version)?;
                assert_eq!(patch.get("status"), None, "{patch}");
                merge(&mut object, patch);
                self.keep(&plural, &key, object);
            }
            (Deed::MergeStatus { resource_version, patch }, Some(mut object)) => {
                check_version(&object, resource_version)?;
                merge(&mut object, &json!({ "status": patch }));
                self.keep(&plural, &key, object);
            }
            (Deed::ApplyStatus(said), Some(mut object)) => {
                apply_conditions(&mut object, said);
                self.keep(&plural, &key, object);
            }
            (Deed::Delete { uid }, Some(object)) => {
                if object["metadata"]["uid"] != json!(uid) {
                    return Err(Conflict);
                }
                self.delete(&plural, &key, now);
            }
        }
        Ok(())
    }

    fn create(&mut self, plural: &str, key: &Key, mut object: Value, now: Timestamp) {
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        object["metadata"]["name"] = json!(key.name());
        if let Some(namespace) = key.namespace() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        object["metadata"]["uid"] = json!(format!("uid-{}", self.history.len()));
        object["metadata"]["creationTimestamp"] = json!(seconds(now));
        object["metadata"]["generation"] = json!(1);
        self.store(plural, key, object);
    }

    /// Keeps a changed object: nothing happens if it is the same, and it goes if nothing holds it any more.
    fn keep(&mut self, plural: &str, key: &Key, mut object: Value) {
        let before = self.get(plural, key).cloned().unwrap_or_default();
        if before == object {
            return;
        }
        check_contract(plural, &before, &object);
        if before["spec"] != object["spec"] {
            let generation = before["metadata"]["generation"].as_i64().unwrap_or_default();
            object["metadata"]["generation"] = json!(generation + 1);
        }
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        if !object["metadata"]["deletionTimestamp"].is_null() && !held {
            self.remove(plural, key);
        } else {
            self.store(plural, key, object);
        }
    }

    fn store(&mut self, plural: &str, key: &Key, mut object: Value) {
        object["metadata"]["resourceVersion"] = json!((self.history.len() + 1).to_string());
        self.history.push(Happened {
            plural: plural.to_owned(),
            key: key.clone(),
            object: Some(object.clone()),
        });
        self.objects.insert((plural.to_owned(), key.clone()), object);
    }

    fn remove(&mut self, plural: &str, key: &Key) {
        if self.objects.remove(&(plural.to_owned(), key.clone())).is_some() {
            self.history.push(Happened { plural: plural.to_owned(), key: key.clone(), object: None });
        }
    }
}

fn check_version(object: &Value, version: &str) -> Result<(), Conflict> {
    if object["metadata"]["resourceVersion"] == json!(version) { Ok(()) } else { Err(Conflict) }
}

/// What the API server refuses to change of contracts.
fn check_contract(plural: &str, before: &Value, after: &Value) {
    if plural != "contracts" || before["spec"]["ended"].is_null() {
        return;
    }
    assert!(!after["spec"]["ended"].is_null(), "what is over begins again: {after}");
    assert_eq!(before["spec"]["terms"], after["spec"]["terms"], "what is over is amended");
}

/// Server-side apply of conditions that others write, too: each by its type.
fn apply_conditions(object: &mut Value, said: &Value) {
    let said = said["status"]["peeringConditions"].as_array().cloned().unwrap_or_default();
    let mut all = object["status"]["peeringConditions"].as_array().cloned().unwrap_or_default();
    for condition in said {
        all.retain(|earlier| earlier["type"] != condition["type"]);
        all.push(condition);
    }
    all.sort_by_key(|condition| condition["type"].to_string());
    object["status"]["peeringConditions"] = json!(all);
}

fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap()
}
