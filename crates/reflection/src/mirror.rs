//! What pods need: copied one way, from home to the namespaces at providers.
//!
//! ```text
//!  home: ConfigMap ──strip──▶ body (JSON) ──adapt to the route──▶ copy with our labels at the provider
//!                               └─ digest ─ annotation on the copy: equal means nothing to do
//! ```
//!
//! What is at a provider without our label is never touched, and what is changed there comes back only where a copy is
//! looked into (ConfigMaps and Secrets).

pub(crate) mod index;
pub(crate) mod kinds;
pub(crate) mod plan;
mod slices;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::route::{self, Route, digest, digest_of};
use crate::translate::Translate;
use liqo_api::{annotations, labels};

/// Grows when the same object is translated to something else than before.
const TRANSLATION: u32 = 1;

/// What a copy depends on besides its original and the route.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    /// How addresses are seen from the other side.
    pub(crate) translate: &'a dyn Translate,
    /// The provider that a node stands for.
    pub(crate) provider_of: &'a dyn Fn(&str) -> Option<String>,
}

/// A kind that is copied.
pub(crate) trait Mirrored:
    kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
    + Clone
    + Default
    + DeserializeOwned
    + Serialize
    + Send
    + Sync
    + 'static
{
    /// Takes away what the API server or others fill in; `None` if the object stays at home.
    fn strip(self) -> Option<Self>;

    /// Makes it fit for the provider; `None` if it does not go there.
    fn adapt(self, route: &Route<'_>, around: &Around<'_>) -> Option<Self>;

    /// The name of the copy.
    fn remote_name(name: &str, _home: &str) -> String {
        name.to_owned()
    }

    /// What of a copy is compared with the original, beside the annotation.
    fn looked_into(&self) -> Option<Value> {
        None
    }

    /// What of a copy depends on more than its original and the route.
    fn around(&self) -> Option<Value> {
        None
    }

    /// Whether a change is made by deleting the copy and making another.
    fn is_immutable(&self) -> bool {
        false
    }
}

/// What is kept of an original: without what identifies it here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Here {
    pub(crate) uid: Box<str>,
    pub(crate) body: Box<[u8]>,
    pub(crate) digest: Box<str>,
    /// What must be in the copy.
    pub(crate) inside: Option<Box<str>>,
    /// The only providers that it goes to, if not to all.
    pub(crate) only: Option<std::collections::BTreeSet<Box<str>>>,
}

impl Here {
    /// The same, for this provider alone.
    pub(crate) fn only(mut self, provider: &str) -> Self {
        self.only = Some([Box::from(provider)].into());
        self
    }

    /// Something that is at this provider and stays there; it is not made if it is not.
    pub(crate) fn kept(uid: &str, provider: &str) -> Self {
        let nothing =
            Self { uid: uid.into(), body: Box::default(), digest: Box::default(), inside: None, only: None };
        nothing.only(provider)
    }
}

/// What is kept of a copy, or of what has its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct There {
    pub(crate) uid: Box<str>,
    pub(crate) version: Box<str>,
    pub(crate) deleting: bool,
    pub(crate) origin: Option<Box<str>>,
    pub(crate) content: Box<str>,
    /// The uid of the claim that it was made for, on claims.
    pub(crate) made_for: Option<Box<str>>,
    pub(crate) inside: Option<Box<str>>,
    pub(crate) immutable: bool,
    /// Set there by others, who need them: a change of ours leaves them.
    pub(crate) finalizers: Box<[String]>,
}

/// Reads an original; `None` if it stays at home.
pub(crate) fn read_here<K: Mirrored>(object: K) -> Option<Here> {
    let notes = object.meta().annotations.as_ref();
    if notes.and_then(|notes| notes.get(annotations::SKIP_REFLECTION)).is_some_and(|it| it == labels::TRUE) {
        return None;
    }
    let uid = object.meta().uid.clone().unwrap_or_default().into();
    let mut object = object.strip()?;
    let meta = std::mem::take(object.meta_mut());
    object.meta_mut().labels = meta.labels;
    object.meta_mut().annotations = Some(route::annotations(meta.annotations.as_ref()));
    object.meta_mut().name = meta.name;
    let inside = object.looked_into().map(|inside| digest(&inside).into());
    let body = serde_json::to_vec(&object).ok()?;
    Some(Here { uid, digest: digest_of(&body).into(), body: body.into(), inside, only: None })
}

/// Reads a copy, or what has its name.
pub(crate) fn read_there<K: Mirrored>(object: K) -> There {
    let meta = object.meta();
    let note = |key: &str| meta.annotations.as_ref().and_then(|notes| notes.get(key)).cloned();
    There {
        uid: meta.uid.clone().unwrap_or_default().into(),
        version: meta.resource_version.clone().unwrap_or_default().into(),
        deleting: meta.deletion_timestamp.is_some(),
        origin: meta
            .labels
            .as_ref()
            .and_then(|all| all.get(labels::REFLECTION_ORIGIN))
            .map(|it| it.as_str().into()),
        content: note(annotations::CONTENT).unwrap_or_default().into(),
        made_for: note(annotations::VIRTUAL_CLAIM_UID).map(Into::into),
        immutable: object.is_immutable(),
        finalizers: meta.finalizers.clone().unwrap_or_default().into(),
        inside: object.strip().and_then(|it| it.looked_into()).map(|inside| digest(&inside).into()),
    }
}

/// What a copy's annotation says if it was made from this original for this route, and depends on nothing else.
pub(crate) fn content(original: &str, route: &Route<'_>) -> String {
    digest(&(TRANSLATION, original, route.home, route.provider, route.namespace, route.storage_class))
}

/// The copy of an original; `None` if it does not go there.
pub(crate) fn forge<K: Mirrored>(here: &Here, route: &Route<'_>, around: &Around<'_>) -> Option<Value> {
    let object: K = serde_json::from_slice(&here.body).ok()?;
    let mut object = object.adapt(route, around)?;
    let content = match object.around() {
        Some(around) => digest(&(content(&here.digest, route), around)),
        None => content(&here.digest, route),
    };
    let meta = object.meta_mut();
    let name = meta.name.take().unwrap_or_default();
    meta.name = Some(K::remote_name(&name, route.home));
    meta.namespace = Some(route.remote.to_owned());
    meta.labels = Some(route.labels(meta.labels.as_ref()));
    let notes = meta.annotations.get_or_insert_default();
    notes.insert(annotations::CONTENT.to_owned(), content);
    serde_json::to_value(&object).ok()
}
