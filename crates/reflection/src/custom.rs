//! Custom resources that the owner of a namespace wants at providers as well.
//!
//! ```text
//!  NamespaceOffloading.spec.reflect ──discovery──▶ version and plural, noted in the status ──▶ watches here and there
//!                                                      (so that copies are found again after a restart)
//!  spec.reflect without the kind ──▶ nothing is wanted ──▶ copies go ──▶ the note goes
//! ```
//!
//! They are copied by the rules of everything else that is: `mirror` plans and writes them.

pub(crate) mod discover;
pub(crate) mod report;
pub(crate) mod wishes;

use kube::Resource as _;
use kube::api::{ApiResource, DynamicObject};
use liqo_api::namespace_offloading::KindName;
use liqo_api::{annotations, labels};
use parking_lot::Mutex;
use serde_json::Value;

use crate::mirror::{Here, There, content};
use crate::route::{self, Route, digest_of};

#[cfg(test)]
mod tests;

/// A kind of custom resources, in one version.
///
/// Small enough to be part of keys: each kind is kept once and for as long as the process lives. Only kinds that an API
/// server knows become one, so there are not many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CustomKind(&'static ApiResource);

impl CustomKind {
    /// The kind of this resource.
    pub(crate) fn of(resource: &ApiResource) -> Self {
        static KNOWN: Mutex<Vec<&'static ApiResource>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock();
        if let Some(found) = known.iter().find(|it| **it == resource) {
            return Self(found);
        }
        let kept: &'static ApiResource = Box::leak(Box::new(resource.clone()));
        known.push(kept);
        Self(kept)
    }

    /// The kind of this name, as it was noted.
    pub(crate) fn noted(name: &KindName, version: &str, plural: &str) -> Self {
        Self::of(&ApiResource {
            group: name.group.clone(),
            version: version.to_owned(),
            api_version: format!("{}/{version}", name.group),
            kind: name.kind.clone(),
            plural: plural.to_owned(),
        })
    }

    /// What requests need to know.
    pub(crate) fn resource(self) -> &'static ApiResource {
        self.0
    }

    /// As roles and people call it: `widgets.example.com`.
    pub(crate) fn title(self) -> String {
        format!("{}.{}", self.0.plural, self.0.group)
    }

    fn parts(&self) -> [&str; 4] {
        [&self.0.group, &self.0.kind, &self.0.version, &self.0.plural]
    }
}

impl PartialOrd for CustomKind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CustomKind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.parts().cmp(&other.parts())
    }
}

/// Reads an original; `None` if it stays at home.
pub(crate) fn read_here(mut object: DynamicObject) -> Option<Here> {
    let notes = object.metadata.annotations.as_ref();
    if notes.and_then(|notes| notes.get(annotations::SKIP_REFLECTION)).is_some_and(|it| it == labels::TRUE) {
        return None;
    }
    let meta = std::mem::take(object.meta_mut());
    let uid = meta.uid.unwrap_or_default().into();
    object.metadata.labels = meta.labels;
    object.metadata.annotations = Some(route::annotations(meta.annotations.as_ref()));
    object.metadata.name = meta.name;
    if let Some(fields) = object.data.as_object_mut() {
        // Each side has controllers of its own that tell how it is there.
        fields.remove("status");
    }
    // Said by the kind, and not always by the server.
    object.types = None;
    let body = serde_json::to_vec(&object).ok()?;
    Some(Here { uid, digest: digest_of(&body).into(), body: body.into(), inside: None, only: None })
}

/// Reads a copy, or what has its name.
pub(crate) fn read_there(object: DynamicObject) -> There {
    let meta = object.metadata;
    let label = |key: &str| meta.labels.as_ref().and_then(|all| all.get(key));
    let note = |key: &str| meta.annotations.as_ref().and_then(|notes| notes.get(key));
    There {
        origin: label(labels::REFLECTION_ORIGIN).map(|it| it.as_str().into()),
        content: note(annotations::CONTENT).cloned().unwrap_or_default().into(),
        deleting: meta.deletion_timestamp.is_some(),
        finalizers: meta.finalizers.clone().unwrap_or_default().into(),
        uid: meta.uid.unwrap_or_default().into(),
        version: meta.resource_version.unwrap_or_default().into(),
        inside: None,
        immutable: false,
        made_for: None,
    }
}

/// The copy of an original.
pub(crate) fn forge(kind: CustomKind, here: &Here, route: &Route<'_>) -> Option<Value> {
    let mut object: DynamicObject = serde_json::from_slice(&here.body).ok()?;
    object.types = Some(kube::api::TypeMeta {
        api_version: kind.resource().api_version.clone(),
        kind: kind.resource().kind.clone(),
    });
    object.metadata.namespace = Some(route.remote.to_owned());
    object.metadata.labels = Some(route.labels(object.metadata.labels.as_ref()));
    let notes = object.metadata.annotations.get_or_insert_default();
    notes.insert(annotations::CONTENT.to_owned(), content(&here.digest, route));
    serde_json::to_value(&object).ok()
}
