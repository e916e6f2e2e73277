//! A sink that keeps books: what is there, and how often each object was deleted.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use liqo_kit::watch::{Meta, Wire};
use liqo_kit::{Key, Sink};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

/// A config map, trimmed to what the tests look at.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Entry {
    pub(crate) metadata: Meta,
    #[serde(default)]
    pub(crate) data: BTreeMap<String, String>,
}

impl Wire for Entry {
    fn identity(&self) -> liqo_kit::watch::Identity<'_> {
        self.metadata.identity()
    }
}

#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Books>>);

#[derive(Default)]
struct Books {
    /// Name to uid and version.
    objects: BTreeMap<String, (String, String)>,
    /// Uid to number of deletes.
    deletes: BTreeMap<String, u32>,
    mistakes: Vec<String>,
}

impl Recorder {
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.lock().objects.keys().cloned().collect()
    }

    pub(crate) fn uid(&self, name: &str) -> Option<String> {
        self.0.lock().objects.get(name).map(|(uid, _)| uid.clone())
    }

    pub(crate) fn version(&self, name: &str) -> Option<String> {
        self.0.lock().objects.get(name).map(|(_, version)| version.clone())
    }

    pub(crate) fn deletes(&self, uid: &str) -> u32 {
        self.0.lock().deletes.get(uid).copied().unwrap_or(0)
    }

    pub(crate) fn total_deletes(&self) -> u32 {
        self.0.lock().deletes.values().sum()
    }

    pub(crate) fn mistakes(&self) -> Vec<String> {
        self.0.lock().mistakes.clone()
    }
}

impl Sink<Entry> for Recorder {
    fn apply(&self, key: &Key, entry: Entry) {
        let mut books = self.0.lock();
        let uid = String::from(entry.metadata.uid);
        let version = String::from(entry.metadata.resource_version);
        if let Some((earlier, _)) = books.objects.insert(key.name().to_owned(), (uid.clone(), version))
            && earlier != uid
        {
            books.mistakes.push(format!("{key} changed its uid without a delete"));
        }
    }

    fn delete(&self, key: &Key) {
        let mut books = self.0.lock();
        match books.objects.remove(key.name()) {
            Some((uid, _)) => *books.deletes.entry(uid).or_default() += 1,
            None => books.mistakes.push(format!("{key} was deleted but not there")),
        }
    }

    fn synced(&self) {}

    fn changed(&self) {}
}

/// Waits until `state` says `Ok`, and prints its last word when it does not in time.
pub(crate) async fn wait_for<T>(
    what: &str,
    within: Duration,
    mut state: impl FnMut() -> Result<T, String>,
) -> T {
    let deadline = Instant::now() + within;
    loop {
        match state() {
            Ok(value) => return value,
            Err(now) if Instant::now() >= deadline => panic!("not within {within:?}: {what}; now: {now}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// Waits until the recorder holds exactly these names.
pub(crate) async fn wait_for_names(recorder: &Recorder, expected: &[String], within: Duration) {
    wait_for("the index holds what the server holds", within, || {
        let names = recorder.names();
        if names == expected { Ok(()) } else { Err(format!("index {names:?}, server {expected:?}")) }
    })
    .await;
}

/// Asserts that a command went well.
pub(crate) fn ok(output: &std::process::Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

/// A config map with one entry.
pub(crate) fn config_map(name: &str, value: &str) -> ConfigMap {
    let mut object = ConfigMap::default();
    object.metadata.name = Some(name.to_owned());
    object.data = Some(BTreeMap::from([("value".to_owned(), value.to_owned())]));
    object
}
