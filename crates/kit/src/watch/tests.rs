//! The watch against a scripted server, and its memory against random histories.

mod driver;
mod history;
mod tracker;

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::{Identity, Meta, Wire};
use crate::index::Sink;
use crate::key::Key;

/// A trimmed object with one number in it.
#[derive(Clone, Debug, Deserialize)]
struct Thing {
    metadata: Meta,
    value: u32,
}

impl Wire for Thing {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

fn thing(name: &str, uid: &str, version: u64, value: impl Into<Value>) -> Value {
    let metadata = json!({
        "namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string(),
        "managedFields": [{"manager": "someone", "fieldsV1": {"f:value": {}}}],
    });
    json!({ "metadata": metadata, "value": value.into() })
}

fn event(kind: &str, object: &Value) -> String {
    // By hand, because the server writes the type first and a map of ours would not.
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn bookmark(version: u64, ends_initial_events: bool) -> String {
    let annotations =
        if ends_initial_events { json!({"k8s.io/initial-events-end": "true"}) } else { json!({}) };
    let metadata = json!({"resourceVersion": version.to_string(), "annotations": annotations});
    event("BOOKMARK", &json!({"kind": "Thing", "apiVersion": "v1", "metadata": metadata}))
}

fn gone() -> String {
    event(
        "ERROR",
        &json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired",
        "message": "too old resource version"}),
    )
}

fn page(objects: &[Value], version: u64, token: Option<&str>) -> String {
    json!({"metadata": {"resourceVersion": version.to_string(), "continue": token}, "items": objects})
        .to_string()
}

/// Writes down every call, and keeps what an index would keep.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    calls: Vec<String>,
    objects: BTreeMap<Key, Thing>,
    changes: usize,
    deletes: BTreeMap<String, usize>,
    mistakes: Vec<String>,
}

impl Recorder {
    fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().calls)
    }

    fn values(&self) -> BTreeMap<String, u32> {
        self.0.lock().objects.iter().map(|(key, thing)| (key.name().to_owned(), thing.value)).collect()
    }
}

impl Sink<Thing> for Recorder {
    fn apply(&self, key: &Key, object: Thing) {
        let mut record = self.0.lock();
        record.calls.push(format!("apply {}={}", key.name(), object.value));
        let uid = object.metadata.uid.clone();
        if let Some(earlier) = record.objects.insert(key.clone(), object)
            && earlier.metadata.uid != uid
        {
            record.mistakes.push(format!("{key} changed its uid without a delete"));
        }
    }

    fn delete(&self, key: &Key) {
        let mut record = self.0.lock();
        record.calls.push(format!("delete {}", key.name()));
        match record.objects.remove(key) {
            Some(thing) => *record.deletes.entry(thing.metadata.uid.into()).or_default() += 1,
            None => record.mistakes.push(format!("{key} was deleted but not there")),
        }
    }

    fn synced(&self) {
        self.0.lock().calls.push("synced".to_owned());
    }

    fn changed(&self) {
        self.0.lock().changes += 1;
    }
}
