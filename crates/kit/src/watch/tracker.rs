//! Turns what the server sends into `apply` and `delete`. No IO: bytes in, calls on the sinks out.

use std::collections::HashMap;

use serde::de::Error as _;
use serde_json::Value;

use super::WatchStatus;
use super::inlet::{Inlet, Told};
use super::known::{Known, Sighting};
use super::metrics::{Counters, WatchMetrics};
use super::wire::{Bare, Event, Identity, Page, PageMeta};
use crate::key::Key;

/// How many unreadable objects are remembered, so that each is logged once; beyond that, they are counted only.
const UNREADABLE_REMEMBERED: usize = 1000;

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

/// One watch's picture of its objects, whatever their type is: that knows the [`Inlet`] alone.
pub(super) struct Tracker {
    inlet: Box<dyn Inlet>,
    books: Books,
    pub(super) status: WatchStatus,
}

impl Tracker {
    pub(super) fn new(
        name: String,
        inlet: Box<dyn Inlet>,
        metrics: &WatchMetrics,
        status: WatchStatus,
    ) -> Self {
        let books = Books {
            counters: metrics.of(&name),
            name,
            known: Known::default(),
            unreadable: HashMap::new(),
            listing: false,
            touched: false,
        };
        Self { inlet, books, status }
    }

    /// What is counted about this watch.
    pub(super) fn counters(&self) -> &Counters {
        &self.books.counters
    }

    /// A list begins, streamed or paged.
    pub(super) fn begin_list(&mut self) {
        self.books.known.begin_list();
        self.books.listing = true;
    }

    /// Whether a list is under way, or was cut off.
    pub(super) fn is_listing(&self) -> bool {
        self.books.listing
    }

    /// The list is complete up to this version: what was not in it is gone.
    pub(super) fn end_list(&mut self, resource_version: &str) {
        for key in self.books.known.end_list() {
            self.books.unreadable.remove(&key);
            self.books.deleted();
            self.inlet.delete(&key);
        }
        self.inlet.synced();
        self.books.listing = false;
        self.books.touched = true;
        self.books.counters.lists.inc();
        self.status.reach(resource_version);
        self.status.synced();
        self.flush();
    }

    /// Wakes the planners if something changed; not in the middle of a list, where the picture is mixed.
    pub(super) fn flush(&mut self) {
        if !self.books.listing && std::mem::take(&mut self.books.touched) {
            self.books.counters.objects.set(self.books.known.len() as i64);
            self.inlet.changed();
        }
    }

    /// One line of a watch stream.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<Line, LineError> {
        let text = text(line).map_err(LineError::Garbage)?;
        match self.inlet.line(text, &mut self.books) {
            Ok(Told::Object(version)) => Ok(self.moved(version)),
            Ok(Told::Bookmark(bookmark)) => {
                let ends = bookmark.metadata.ends_initial_events();
                let version = bookmark.metadata.resource_version;
                if ends && self.books.listing {
                    return Ok(Line::InitialEventsEnd(version));
                }
                Ok(self.moved(version))
            }
            Ok(Told::Error(status)) => Err(LineError::Refused(status)),
            Err(error) => self.unreadable_line(text, error),
        }
    }

    /// One page of a list.
    pub(super) fn page(&mut self, body: &[u8]) -> Result<PageMeta, serde_json::Error> {
        let text = text(body)?;
        if let Ok(page) = self.inlet.page(text, &mut self.books) {
            return Ok(page);
        }
        // One odd object spoils the page for the typed parser; take the others one by one.
        let page: Page<Value> = serde_json::from_str(text)?;
        for item in page.items.into_iter().flatten() {
            if let Err(error) = self.inlet.item(&item.to_string(), &mut self.books) {
                let bare: Bare = serde_json::from_value(item).unwrap_or_default();
                self.unreadable(bare.metadata.identity(), &error);
            }
        }
        Ok(page.metadata)
    }

    fn moved(&self, version: String) -> Line {
        // In the middle of a list, not everything up to this version has been seen.
        if !self.books.listing {
            self.status.reach(&version);
        }
        Line::Event(version)
    }

    fn unreadable_line(&mut self, line: &str, error: serde_json::Error) -> Result<Line, LineError> {
        match serde_json::from_str::<Event<Bare>>(line) {
            Ok(Event::Applied(bare)) => {
                self.unreadable(bare.metadata.identity(), &error);
                Ok(self.moved(bare.metadata.resource_version))
            }
            Ok(Event::Deleted(bare)) => {
                if let Some(key) = self.books.gone(bare.metadata.identity()) {
                    self.inlet.delete(&key);
                }
                Ok(self.moved(bare.metadata.resource_version))
            }
            _ => match serde_json::from_str::<kube::core::Status>(line) {
                Ok(status) if status.code != 0 => Err(LineError::Refused(Box::new(status))),
                _ => Err(LineError::Garbage(error)),
            },
        }
    }

    fn unreadable(&mut self, identity: Identity<'_>, error: &serde_json::Error) {
        if let Some(key) = self.books.unreadable(identity, error) {
            self.inlet.delete(&key);
        }
    }
}

/// What is remembered of objects apart from the objects.
pub(super) struct Books {
    name: String,
    known: Known,
    unreadable: HashMap<Key, String>,
    listing: bool,
    touched: bool,
    counters: Counters,
}

impl Books {
    /// An object that could be read: its key, if its name can be used.
    pub(super) fn enter(&mut self, identity: Identity<'_>) -> Option<Key> {
        let key = key_of(identity);
        match &key {
            Some(key) if !self.unreadable.is_empty() => drop(self.unreadable.remove(key)),
            Some(_) => {}
            None => drop(self.unreadable(identity, &serde_json::Error::custom("it has no usable name"))),
        }
        key
    }

    /// The object is of interest; whether the one that had its name before is gone.
    pub(super) fn kept(&mut self, key: &Key, uid: &str) -> bool {
        let replaced = self.known.seen(key, uid) == Sighting::Replaced;
        if replaced {
            self.deleted();
        }
        self.counters.applied.inc();
        self.touched = true;
        replaced
    }

    /// The object is not of interest now; whether one of this name was.
    pub(super) fn dropped(&mut self, key: &Key) -> bool {
        // Whoever had this name before, of whatever uid, is not of interest either.
        let was = self.known.gone(key, "");
        if was {
            self.deleted();
        }
        was
    }

    /// The object is gone; its key, if it was known.
    pub(super) fn gone(&mut self, identity: Identity<'_>) -> Option<Key> {
        let key = key_of(identity)?;
        self.unreadable.remove(&key);
        if !self.known.gone(&key, identity.uid) {
            return None;
        }
        self.deleted();
        Some(key)
    }

    /// The object cannot be read; the key, if another one that had its name is gone by that.
    fn unreadable(&mut self, identity: Identity<'_>, error: &serde_json::Error) -> Option<Key> {
        self.counters.unreadable.inc();
        let Some(key) = key_of(identity) else {
            tracing::debug!(watch = self.name, %error, "skipped an object without a usable name");
            return None;
        };
        let gone = self.known.seen_unreadable(&key, identity.uid).then(|| key.clone());
        if gone.is_some() {
            self.deleted();
        }
        let logged = self.unreadable.get(&key).is_some_and(|uid| uid == identity.uid);
        if !logged && self.unreadable.len() < UNREADABLE_REMEMBERED {
            tracing::warn!(
                watch = self.name, object = %key, %error,
                "cannot read this object; it is ignored until it changes, all others go on"
            );
            self.unreadable.insert(key, identity.uid.to_owned());
        }
        gone
    }

    fn deleted(&mut self) {
        self.counters.deleted.inc();
        self.touched = true;
    }
}

fn text(bytes: &[u8]) -> Result<&str, serde_json::Error> {
    std::str::from_utf8(bytes).map_err(serde_json::Error::custom)
}

/// The key, unless the name is missing or would be mistaken for another object's.
fn key_of(identity: Identity<'_>) -> Option<Key> {
    let usable = |part: &str| !part.is_empty() && !part.contains('/');
    let namespace = identity.namespace.filter(|namespace| !namespace.is_empty());
    (usable(identity.name) && namespace.is_none_or(usable)).then(|| Key::new(namespace, identity.name))
}
