//! Turns what the server sends into `apply` and `delete`. No IO: bytes in, calls on the sinks out.

use std::collections::HashMap;
use std::sync::Arc;

use super::WatchStatus;
use super::known::{Known, Sighting};
use super::metrics::{Counters, WatchMetrics};
use super::wire::{Bare, Event, Identity, Page, PageMeta, Wire};
use crate::index::Sink;
use crate::key::Key;

/// How many unreadable objects are remembered, so that each is logged once; beyond that, they are counted only.
const UNREADABLE_REMEMBERED: usize = 1000;

pub(super) type Project<W, T> = Box<dyn Fn(W) -> Option<T> + Send + Sync>;

/// What a line meant for the stream.
pub(super) enum Line {
    /// The stream goes on from this version.
    Event(String),
    /// The initial events of a streaming list are complete, up to this version.
    InitialEventsEnd(String),
}

/// Why a line ends the stream.
#[derive(Debug)]
pub(super) enum LineError {
    /// The server says so.
    Refused(Box<kube::core::Status>),
    /// Not an event at all.
    Garbage(serde_json::Error),
}

pub(super) struct Tracker<W, T> {
    name: String,
    known: Known,
    project: Project<W, T>,
    sink: Arc<dyn Sink<T>>,
    unreadable: HashMap<Key, String>,
    listing: bool,
    touched: bool,
    pub(super) counters: Counters,
    pub(super) status: WatchStatus,
}

impl<W: Wire, T> Tracker<W, T> {
    pub(super) fn new(
        name: String,
        project: Project<W, T>,
        sink: Arc<dyn Sink<T>>,
        metrics: &WatchMetrics,
        status: WatchStatus,
    ) -> Self {
        Self {
            counters: metrics.of(&name),
            name,
            known: Known::default(),
            project,
            sink,
            unreadable: HashMap::new(),
            listing: false,
            touched: false,
            status,
        }
    }

    /// A list begins, streamed or paged.
    pub(super) fn begin_list(&mut self) {
        self.known.begin_list();
        self.listing = true;
    }

    /// Whether a list is under way, or was cut off.
    pub(super) fn is_listing(&self) -> bool {
        self.listing
    }

    /// The list is complete up to this version: what was not in it is gone.
    pub(super) fn end_list(&mut self, resource_version: &str) {
        for key in self.known.end_list() {
            self.unreadable.remove(&key);
            self.tell_deleted(&key);
        }
        self.sink.synced();
        self.listing = false;
        self.touched = true;
        self.counters.lists.inc();
        self.status.reach(resource_version);
        self.status.synced();
        self.flush();
    }

    /// Wakes the planners if something changed; not in the middle of a list, where the picture is mixed.
    pub(super) fn flush(&mut self) {
        if !self.listing && std::mem::take(&mut self.touched) {
            self.counters.objects.set(self.known.len() as i64);
            self.sink.changed();
        }
    }

    /// One line of a watch stream.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<Line, LineError> {
        match serde_json::from_slice::<Event<W>>(line) {
            Ok(Event::Added(object) | Event::Modified(object)) => {
                let version = object.identity().resource_version.to_owned();
                self.seen(object);
                Ok(self.moved(version))
            }
            Ok(Event::Deleted(object)) => {
                let identity = object.identity();
                let version = identity.resource_version.to_owned();
                self.gone(identity);
                Ok(self.moved(version))
            }
            Ok(Event::Bookmark(bookmark)) => {
                let ends = bookmark.metadata.ends_initial_events();
                let version = bookmark.metadata.resource_version;
                if ends && self.listing {
                    return Ok(Line::InitialEventsEnd(version));
                }
                Ok(self.moved(version))
            }
            Ok(Event::Error(status)) => Err(LineError::Refused(status)),
            Err(error) => self.unreadable_line(line, error),
        }
    }

    /// One page of a list.
    pub(super) fn page(&mut self, body: &[u8]) -> Result<PageMeta, serde_json::Error> {
        match serde_json::from_slice::<Page<W>>(body) {
            Ok(page) => {
                page.items.into_iter().flatten().for_each(|object| self.seen(object));
                Ok(page.metadata)
            }
            // One odd object spoils the page for the typed parser; take the others one by one.
            Err(_) => {
                let page: Page<serde_json::Value> = serde_json::from_slice(body)?;
                for item in page.items.into_iter().flatten() {
                    let bare = serde_json::from_value::<Bare>(item.clone()).unwrap_or_default();
                    match serde_json::from_value::<W>(item) {
                        Ok(object) => self.seen(object),
                        Err(error) => self.seen_unreadable(bare.metadata.identity(), &error),
                    }
                }
                Ok(page.metadata)
            }
        }
    }

    fn moved(&self, version: String) -> Line {
        // In the middle of a list, not everything up to this version has been seen.
        if !self.listing {
            self.status.reach(&version);
        }
        Line::Event(version)
    }

    fn seen(&mut self, mut object: W) {
        let identity = object.identity();
        let Some(key) = key_of(identity) else {
            let error = serde::de::Error::custom("it has no usable name");
            return self.seen_unreadable(identity, &error);
        };
        let uid: Box<str> = identity.uid.into();
        if !self.unreadable.is_empty() {
            self.unreadable.remove(&key);
        }
        object.strip();
        let Some(object) = (self.project)(object) else {
            // Not of interest now; whoever had this name before, of whatever uid, is not either.
            if self.known.gone(&key, "") {
                self.tell_deleted(&key);
            }
            return;
        };
        if self.known.seen(&key, &uid) == Sighting::Replaced {
            self.tell_deleted(&key);
        }
        self.tell_applied(&key, object);
    }

    fn gone(&mut self, identity: Identity<'_>) {
        let Some(key) = key_of(identity) else { return };
        self.unreadable.remove(&key);
        if self.known.gone(&key, identity.uid) {
            self.tell_deleted(&key);
        }
    }

    fn unreadable_line(&mut self, line: &[u8], error: serde_json::Error) -> Result<Line, LineError> {
        match serde_json::from_slice::<Event<Bare>>(line) {
            Ok(Event::Added(bare) | Event::Modified(bare)) => {
                self.seen_unreadable(bare.metadata.identity(), &error);
                Ok(self.moved(bare.metadata.resource_version))
            }
            Ok(Event::Deleted(bare)) => {
                self.gone(bare.metadata.identity());
                Ok(self.moved(bare.metadata.resource_version))
            }
            _ => match serde_json::from_slice::<kube::core::Status>(line) {
                Ok(status) if status.code != 0 => Err(LineError::Refused(Box::new(status))),
                _ => Err(LineError::Garbage(error)),
            },
        }
    }

    fn seen_unreadable(&mut self, identity: Identity<'_>, error: &serde_json::Error) {
        self.counters.unreadable.inc();
        let Some(key) = key_of(identity) else {
            tracing::debug!(watch = self.name, %error, "skipped an object without a usable name");
            return;
        };
        if self.known.seen_unreadable(&key, identity.uid) {
            self.tell_deleted(&key);
        }
        let logged = self.unreadable.get(&key).is_some_and(|uid| uid == identity.uid);
        if !logged && self.unreadable.len() < UNREADABLE_REMEMBERED {
            tracing::warn!(
                watch = self.name, object = %key, %error,
                "cannot read this object; it is ignored until it changes, all others go on"
            );
            self.unreadable.insert(key, identity.uid.to_owned());
        }
    }

    fn tell_applied(&mut self, key: &Key, object: T) {
        self.counters.applied.inc();
        self.touched = true;
        self.sink.apply(key, object);
    }

    fn tell_deleted(&mut self, key: &Key) {
        self.counters.deleted.inc();
        self.touched = true;
        self.sink.delete(key);
    }
}

/// The key, unless the name is missing or would be mistaken for another object's.
fn key_of(identity: Identity<'_>) -> Option<Key> {
    let usable = |part: &str| !part.is_empty() && !part.contains('/');
    let namespace = identity.namespace.filter(|namespace| !namespace.is_empty());
    (usable(identity.name) && namespace.is_none_or(usable)).then(|| Key::new(namespace, identity.name))
}
