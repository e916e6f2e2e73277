//! What of an object is read from the wire.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde::de::{DeserializeOwned, Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::pairs::Pairs;

/// The part of an object's metadata that a watch itself needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// Namespace, where the kind has one.
    pub namespace: Option<&'a str>,
    /// Name.
    pub name: &'a str,
    /// Unique id, by which a recreated object differs from the one that had its name before.
    pub uid: &'a str,
    /// Version, the place in the stream from which to go on.
    pub resource_version: &'a str,
}

/// A type that a watch can read from the wire.
///
/// All Kubernetes types are; their `managedFields` are dropped before anything is kept. For kinds with many
/// objects write a struct with the fields that matter (metadata as [`Meta`]) and implement this for it: what
/// it does not name is skipped by the parser and never allocated.
pub trait Wire: DeserializeOwned + Send + 'static {
    /// Who this is.
    fn identity(&self) -> Identity<'_>;

    /// Drops what nobody should keep.
    fn strip(&mut self) {}
}

impl<K: kube::Resource + DeserializeOwned + Send + 'static> Wire for K {
    fn identity(&self) -> Identity<'_> {
        let meta = self.meta();
        Identity {
            namespace: meta.namespace.as_deref(),
            name: meta.name.as_deref().unwrap_or_default(),
            uid: meta.uid.as_deref().unwrap_or_default(),
            resource_version: meta.resource_version.as_deref().unwrap_or_default(),
        }
    }

    fn strip(&mut self) {
        self.meta_mut().managed_fields = None;
    }
}

/// Trimmed metadata for trimmed types: no annotations, no managed fields, no owner references.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Namespace, where the kind has one.
    pub namespace: Option<Box<str>>,
    /// Name.
    pub name: Box<str>,
    /// Unique id.
    #[serde(default)]
    pub uid: Box<str>,
    /// Version.
    #[serde(default)]
    pub resource_version: Box<str>,
    /// Counts the changes of the spec.
    pub generation: Option<i64>,
    /// Set once the object is being deleted.
    pub deletion_timestamp: Option<Time>,
    /// Labels.
    #[serde(default)]
    pub labels: Pairs,
}

impl Meta {
    /// The identity in the shape [`Wire`] asks for.
    pub fn identity(&self) -> Identity<'_> {
        Identity {
            namespace: self.namespace.as_deref(),
            name: &self.name,
            uid: &self.uid,
            resource_version: &self.resource_version,
        }
    }
}

/// Metadata with what else is often needed. Not a [`Meta`] with more beside it: serde would keep all there is, managed fields
/// too, before it looks which part each takes.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
pub struct NotedMeta {
    /// Namespace, where the kind has one.
    pub namespace: Option<Box<str>>,
    /// Name.
    pub name: Box<str>,
    /// Unique id.
    #[serde(default)]
    pub uid: Box<str>,
    /// Version.
    #[serde(default)]
    pub resource_version: Box<str>,
    /// When it was made.
    pub creation_timestamp: Option<Time>,
    /// Set once the object is being deleted.
    pub deletion_timestamp: Option<Time>,
    /// How many seconds it has to end.
    pub deletion_grace_period_seconds: Option<i64>,
    /// Labels.
    #[serde(default)]
    pub labels: Pairs,
    /// Annotations.
    #[serde(default)]
    pub annotations: Pairs,
    /// What it goes with.
    #[serde(default)]
    pub owner_references: Vec<OwnerReference>,
}

impl NotedMeta {
    /// The identity in the shape [`Wire`] asks for.
    pub fn identity(&self) -> Identity<'_> {
        Identity {
            namespace: self.namespace.as_deref(),
            name: &self.name,
            uid: &self.uid,
            resource_version: &self.resource_version,
        }
    }
}

/// An object of which only the trimmed metadata is kept.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct MetaOnly {
    /// The metadata.
    pub metadata: Meta,
}

impl Wire for MetaOnly {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// One line of a watch stream.
pub(super) enum Event<W> {
    /// Added or modified.
    Applied(W),
    Deleted(W),
    Bookmark(Bare),
    Error(Box<kube::core::Status>),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum EventField {
    Type,
    Object,
    #[serde(other)]
    Other,
}

/// By hand, because what serde would derive keeps the object in case its type follows, and so has every Kubernetes type
/// in the program a second time. The server writes `type` first, and the object is read in place.
impl<'de, W: Deserialize<'de>> Deserialize<'de> for Event<W> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EventVisitor(PhantomData))
    }
}

struct EventVisitor<W>(PhantomData<W>);

impl<'de, W: Deserialize<'de>> Visitor<'de> for EventVisitor<W> {
    type Value = Event<W>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an event of a watch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event<W>, A::Error> {
        let (mut kind, mut event) = (None, None);
        while let Some(field) = map.next_key()? {
            match (field, kind) {
                (EventField::Type, _) => kind = Some(map.next_value()?),
                (EventField::Object, None) => {
                    return Err(A::Error::custom("an event whose object comes before its type"));
                }
                (EventField::Object, Some(EventType::Bookmark)) => {
                    event = Some(Event::Bookmark(map.next_value()?));
                }
                (EventField::Object, Some(EventType::Error)) => event = Some(Event::Error(map.next_value()?)),
                (EventField::Object, Some(kind)) => {
                    let object = map.next_value()?;
                    let gone = matches!(kind, EventType::Deleted);
                    event = Some(if gone { Event::Deleted(object) } else { Event::Applied(object) });
                }
                (EventField::Other, _) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        event.ok_or_else(|| A::Error::missing_field("object"))
    }
}

/// Enough of any object to say which one it is; read when the object itself cannot be.
#[derive(Default, Deserialize)]
pub(super) struct Bare {
    #[serde(default)]
    pub(super) metadata: BareMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct BareMeta {
    pub(super) namespace: Option<String>,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) annotations: BTreeMap<String, String>,
}

impl BareMeta {
    pub(super) fn identity(&self) -> Identity<'_> {
        Identity {
            namespace: self.namespace.as_deref(),
            name: &self.name,
            uid: &self.uid,
            resource_version: &self.resource_version,
        }
    }

    /// Whether this bookmark ends the initial events of a streaming list.
    pub(super) fn ends_initial_events(&self) -> bool {
        self.annotations.get("k8s.io/initial-events-end").is_some_and(|value| value == "true")
    }
}

/// One page of a list.
#[derive(Deserialize)]
pub(super) struct Page<W> {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    /// `null` for an empty list on some servers.
    pub(super) items: Option<Vec<W>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PageMeta {
    pub(super) resource_version: String,
    #[serde(rename = "continue")]
    pub(super) continue_token: Option<String>,
}
