//! Events: what people see in `kubectl describe`, in bounded number.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Resource;
use kube::api::ObjectMeta;
use liqo_api::labels;
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// Where events about objects without namespace must be.
const NAMESPACE: &str = "default";

/// The longest note of an event; the API server refuses longer ones.
const MAX_NOTE: usize = 1024;

/// The longest part of an object's name in an event's.
const MAX_NAME: usize = 200;

/// The same thing is not told again within this time; the API server keeps events for an hour.
const TOLD: Duration = Duration::from_secs(1800);

/// Things told that are remembered.
const MAX_TOLD: usize = 1024;

/// Events per minute, and how many at once after a pause.
const PER_MINUTE: f64 = 10.0;
const AT_ONCE: f64 = 30.0;

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) is_warning: bool,
}

/// Whether a statement is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// It is new.
    Tell,
    /// It was told not long ago.
    Told,
    /// Too much is being told.
    Withhold,
}

/// What was told.
pub(crate) struct Told {
    told: BTreeMap<String, Instant>,
    tokens: f64,
    filled: Instant,
}

impl Told {
    pub(crate) fn new(now: Instant) -> Self {
        Self { told: BTreeMap::new(), tokens: AT_ONCE, filled: now }
    }

    /// Whether to tell this now; if so, it counts as told.
    pub(crate) fn tell(&mut self, statement: &Statement, now: Instant) -> Telling {
        let name = statement.event_name();
        if self.told.get(&name).is_some_and(|at| now.saturating_duration_since(*at) < TOLD) {
            return Telling::Told;
        }
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * PER_MINUTE / 60.0).min(AT_ONCE);
        self.filled = now;
        if self.tokens < 1.0 {
            return Telling::Withhold;
        }
        self.tokens -= 1.0;
        if self.told.len() >= MAX_TOLD {
            let oldest = self.told.iter().min_by_key(|(_, at)| **at).map(|(name, _)| name.clone());
            oldest.map(|name| self.told.remove(&name));
        }
        self.told.insert(name, now);
        Telling::Tell
    }
}

impl Statement {
    /// The same for the same statement about the same object, so that nobody tells it twice.
    fn event_name(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.uid.as_str(), self.reason, &self.message] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let digits: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let object = self.name.get(..MAX_NAME).unwrap_or(&self.name).trim_end_matches(['.', '-']);
        format!("{object}.{digits}")
    }

    /// The write that makes the event, about an object of the kind `K`, which has no namespace.
    pub(crate) fn write<K: Resource<DynamicType = ()>>(
        &self,
        controller: &str,
        instance: &str,
        now: Timestamp,
    ) -> Result<Write, serde_json::Error> {
        let name = self.event_name();
        let part_of = (labels::PART_OF.to_owned(), labels::PART_OF_LIQO.to_owned());
        let event = Event {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(NAMESPACE.to_owned()),
                labels: Some([part_of].into()),
                ..ObjectMeta::default()
            },
            action: Some("Discover".to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(cut(&self.message)),
            reason: Some(self.reason.to_owned()),
            regarding: Some(ObjectReference {
                api_version: Some(K::api_version(&()).into_owned()),
                kind: Some(K::kind(&()).into_owned()),
                name: Some(self.name.clone()),
                uid: Some(self.uid.clone()),
                ..ObjectReference::default()
            }),
            reporting_controller: Some(format!("liqo.io/{controller}")),
            reporting_instance: Some(instance.to_owned()),
            type_: Some(if self.is_warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        Ok(Write::create(Target::of::<Event>(Key::namespaced(NAMESPACE, &name)), &event)?.or_exists())
    }
}

/// The beginning of a text, in as many bytes as a note may have.
fn cut(text: &str) -> String {
    const MORE: &str = "…";
    if text.len() <= MAX_NOTE {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_NOTE - MORE.len());
    format!("{}{MORE}", text.get(..end).unwrap_or_default())
}
