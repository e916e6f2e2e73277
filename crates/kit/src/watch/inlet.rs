//! The one part of a watch that knows the type of its objects.
//!
//! A manager has a hundred watches, and all code that is generic over their types is there a hundred times: in the program,
//! and in the memory of every manager. So this is all of it that there is.

use std::sync::Arc;

use super::tracker::Books;
use super::wire::{Bare, Event, Page, PageMeta, Wire};
use crate::index::Sink;
use crate::key::Key;

pub(super) type Project<W, T> = Box<dyn Fn(W) -> Option<T> + Send + Sync>;

/// What a line of a watch stream told.
pub(super) enum Told {
    /// An object came, changed or went, at this version.
    Object(String),
    Bookmark(Bare),
    Error(Box<kube::core::Status>),
}

/// Reads objects, and hands them to whoever keeps them.
pub(super) trait Inlet: Send {
    /// One line of a watch stream.
    fn line(&self, line: &str, books: &mut Books) -> Result<Told, serde_json::Error>;
    /// A page of a list: all its objects, or none.
    fn page(&self, body: &str, books: &mut Books) -> Result<PageMeta, serde_json::Error>;
    /// A single object.
    fn item(&self, item: &str, books: &mut Books) -> Result<(), serde_json::Error>;
    /// See [`Sink::delete`].
    fn delete(&self, key: &Key);
    /// See [`Sink::synced`].
    fn synced(&self);
    /// See [`Sink::changed`].
    fn changed(&self);
}

/// Reads `W`, hands on `T`.
pub(super) struct Typed<W, T> {
    pub(super) project: Project<W, T>,
    pub(super) sink: Arc<dyn Sink<T>>,
}

impl<W: Wire, T> Typed<W, T> {
    fn seen(&self, mut object: W, books: &mut Books) {
        let identity = object.identity();
        let Some(key) = books.enter(identity) else { return };
        let uid: Box<str> = identity.uid.into();
        object.strip();
        match (self.project)(object) {
            Some(object) => {
                if books.kept(&key, &uid) {
                    self.sink.delete(&key);
                }
                self.sink.apply(&key, object);
            }
            None => {
                if books.dropped(&key) {
                    self.sink.delete(&key);
                }
            }
        }
    }
}

impl<W: Wire, T> Inlet for Typed<W, T> {
    fn line(&self, line: &str, books: &mut Books) -> Result<Told, serde_json::Error> {
        Ok(match serde_json::from_str::<Event<W>>(line)? {
            Event::Applied(object) => {
                let version = object.identity().resource_version.to_owned();
                self.seen(object, books);
                Told::Object(version)
            }
            Event::Deleted(object) => {
                let identity = object.identity();
                if let Some(key) = books.gone(identity) {
                    self.sink.delete(&key);
                }
                Told::Object(identity.resource_version.to_owned())
            }
            Event::Bookmark(bookmark) => Told::Bookmark(bookmark),
            Event::Error(status) => Told::Error(status),
        })
    }

    fn page(&self, body: &str, books: &mut Books) -> Result<PageMeta, serde_json::Error> {
        let page: Page<W> = serde_json::from_str(body)?;
        page.items.into_iter().flatten().for_each(|object| self.seen(object, books));
        Ok(page.metadata)
    }

    fn item(&self, item: &str, books: &mut Books) -> Result<(), serde_json::Error> {
        self.seen(serde_json::from_str(item)?, books);
        Ok(())
    }

    fn delete(&self, key: &Key) {
        self.sink.delete(key);
    }

    fn synced(&self) {
        self.sink.synced();
    }

    fn changed(&self) {
        self.sink.changed();
    }
}
