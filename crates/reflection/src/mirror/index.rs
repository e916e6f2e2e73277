//! What is known about originals here and copies there.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use liqo_kit::Key;

use super::kinds::Kind;
use super::{Here, There};

mod one_kind;

/// A kind in a namespace at home.
type Room = (Kind, Arc<str>);

/// The name of a namespace at a provider, and whether new things may be sent there.
pub(crate) type Place = (Arc<str>, bool);

/// Originals and copies. Keys have the namespace at home and the name that the copy has.
#[derive(Default)]
pub(crate) struct Mirror {
    here: HashMap<(Kind, Key), Here>,
    there: HashMap<(Kind, Key), BTreeMap<Arc<str>, There>>,
    here_seen: BTreeSet<Room>,
    there_seen: BTreeSet<(Kind, Arc<str>, Arc<str>)>,
    /// The namespaces at providers: by namespace at home, then by provider; with whether new things may be sent there.
    places: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Place>>,
    dirty: BTreeSet<(Kind, Key)>,
    refused: Vec<(Kind, Key, String)>,
    /// Whether all tokens that are needed are known.
    pub(crate) tokens_known: bool,
}

impl Mirror {
    pub(crate) fn here(&self, kind: Kind, key: &Key) -> Option<&Here> {
        self.here.get(&(kind, key.clone()))
    }

    pub(crate) fn there(&self, kind: Kind, key: &Key, provider: &str) -> Option<&There> {
        self.there.get(&(kind, key.clone()))?.get(provider)
    }

    /// The namespaces at providers that things of this namespace go to.
    pub(crate) fn places(&self, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Place)> {
        self.places.get(namespace).into_iter().flatten()
    }

    /// Whether all of this kind is known on both sides.
    pub(crate) fn is_known(&self, kind: Kind, namespace: &str, provider: &str) -> bool {
        let namespace: Arc<str> = namespace.into();
        self.here_seen.contains(&(kind, Arc::clone(&namespace)))
            && self.there_seen.contains(&(kind, namespace, provider.into()))
    }

    pub(crate) fn open(&mut self, namespace: &Arc<str>, provider: &Arc<str>, remote: &Arc<str>, open: bool) {
        let places = self.places.entry(Arc::clone(namespace)).or_default();
        places.insert(Arc::clone(provider), (Arc::clone(remote), open));
        self.touch_namespace(namespace);
    }

    pub(crate) fn close(&mut self, namespace: &Arc<str>, provider: &Arc<str>) {
        if let Some(places) = self.places.get_mut(namespace) {
            places.remove(provider);
            if places.is_empty() {
                self.places.remove(namespace);
            }
        }
        self.there_seen.retain(|(_, of, at)| of != namespace || at != provider);
        let inside = |key: &Key| key.namespace() == Some(namespace);
        self.there.retain(|(_, key), copies| {
            if inside(key) {
                copies.remove(provider);
            }
            !copies.is_empty()
        });
    }

    /// Nobody looks at this namespace at home any more.
    pub(crate) fn leave(&mut self, namespace: &str) {
        self.here.retain(|(_, key), _| key.namespace() != Some(namespace));
        self.here_seen.retain(|(_, of)| &**of != namespace);
    }

    /// The namespaces of which the originals of this kind have not been told yet.
    pub(crate) fn unseen(&self, kind: Kind) -> Vec<Arc<str>> {
        let unseen = |namespace: &&Arc<str>| !self.here_seen.contains(&(kind, Arc::clone(namespace)));
        self.places.keys().filter(unseen).cloned().collect()
    }

    /// The namespaces at home that are copied from.
    pub(crate) fn namespaces(&self) -> BTreeSet<Arc<str>> {
        self.places.keys().cloned().collect()
    }

    pub(crate) fn put_here(&mut self, kind: Kind, key: Key, here: Here) {
        let known = self.here.get(&(kind, key.clone()));
        if known.is_none_or(|known| known.digest != here.digest || known.only != here.only) {
            self.dirty.insert((kind, key.clone()));
        }
        self.here.insert((kind, key), here);
    }

    pub(crate) fn drop_here(&mut self, kind: Kind, key: Key) {
        self.here.remove(&(kind, key.clone()));
        self.dirty.insert((kind, key));
    }

    pub(crate) fn put_there(&mut self, kind: Kind, key: Key, provider: &Arc<str>, there: There) {
        let copies = self.there.entry((kind, key.clone())).or_default();
        copies.insert(Arc::clone(provider), there);
        self.dirty.insert((kind, key));
    }

    pub(crate) fn drop_there(&mut self, kind: Kind, key: Key, provider: &str) {
        if let Some(copies) = self.there.get_mut(&(kind, key.clone())) {
            copies.remove(provider);
            if copies.is_empty() {
                self.there.remove(&(kind, key.clone()));
            }
        }
        self.dirty.insert((kind, key));
    }

    pub(crate) fn seen_here(&mut self, kind: Kind, namespace: &Arc<str>) {
        self.here_seen.insert((kind, Arc::clone(namespace)));
        self.touch_namespace(namespace);
    }

    pub(crate) fn seen_there(&mut self, kind: Kind, namespace: &Arc<str>, provider: &Arc<str>) {
        self.there_seen.insert((kind, Arc::clone(namespace), Arc::clone(provider)));
        self.touch_namespace(namespace);
    }

    pub(crate) fn touch(&mut self, kind: Kind, key: Key) {
        self.dirty.insert((kind, key));
    }

    /// All of a kind should be looked at.
    pub(crate) fn touch_kind(&mut self, kind: Kind) {
        self.dirty.extend(self.here.keys().filter(|(of, _)| *of == kind).cloned());
    }

    fn touch_namespace(&mut self, namespace: &str) {
        let inside = |(_, key): &&(Kind, Key)| key.namespace() == Some(namespace);
        self.dirty.extend(self.here.keys().chain(self.there.keys()).filter(inside).cloned());
    }

    pub(crate) fn touch_all(&mut self) {
        self.dirty.extend(self.here.keys().chain(self.there.keys()).cloned());
    }

    /// A provider does not take this; it is tried again when everything is.
    pub(crate) fn refuse(&mut self, kind: Kind, key: Key, message: String) {
        self.refused.push((kind, key, message));
    }

    /// What was refused since this was asked last.
    pub(crate) fn take_refused(&mut self) -> Vec<(Kind, Key, String)> {
        std::mem::take(&mut self.refused)
    }

    pub(crate) fn take_dirty(&mut self) -> BTreeSet<(Kind, Key)> {
        std::mem::take(&mut self.dirty)
    }

    /// The tokens here, by namespace and the name of their Secret.
    pub(crate) fn secrets_named(&self, prefix: &str) -> Vec<Key> {
        let is = |(kind, key): &&(Kind, Key)| *kind == Kind::Secret && key.name().starts_with(prefix);
        self.here.keys().filter(is).map(|(_, key)| key.clone()).collect()
    }
}
