//! Kinds that are looked at for a while: they come and go as the owner of a namespace wishes.

use std::sync::Arc;

use super::Mirror;
use crate::mirror::kinds::Kind;

impl Mirror {
    /// Whether all originals of this kind have been seen.
    pub(crate) fn is_seen_here(&self, kind: Kind, namespace: &Arc<str>) -> bool {
        self.here_seen.contains(&(kind, Arc::clone(namespace)))
    }

    /// Whether all copies of this kind at a provider have been seen.
    pub(crate) fn is_seen_there(&self, kind: Kind, namespace: &Arc<str>, provider: &Arc<str>) -> bool {
        self.there_seen.contains(&(kind, Arc::clone(namespace), Arc::clone(provider)))
    }

    /// Whether copies of this kind that came from `home` are at a provider.
    pub(crate) fn has_copies(&self, kind: Kind, namespace: &str, provider: &str, home: &str) -> bool {
        self.there.iter().any(|((of, key), copies)| {
            let inside = *of == kind && key.namespace() == Some(namespace);
            inside && copies.get(provider).is_some_and(|copy| copy.origin.as_deref() == Some(home))
        })
    }

    /// Nothing of this kind is wanted elsewhere any more: its copies go.
    pub(crate) fn want_none(&mut self, kind: Kind, namespace: &Arc<str>) {
        let before = self.here.len();
        self.here.retain(|(of, key), _| *of != kind || key.namespace() != Some(&**namespace));
        let unseen = self.here_seen.insert((kind, Arc::clone(namespace)));
        if unseen || before != self.here.len() {
            let inside =
                self.there.keys().filter(|(of, key)| *of == kind && key.namespace() == Some(&**namespace));
            self.dirty.extend(inside.cloned());
        }
    }

    /// Nobody looks at the originals of this kind any more.
    pub(crate) fn forget_here(&mut self, kind: Kind, namespace: &Arc<str>) {
        self.here.retain(|(of, key), _| *of != kind || key.namespace() != Some(&**namespace));
        self.here_seen.remove(&(kind, Arc::clone(namespace)));
    }

    /// Nobody looks at the copies of this kind at a provider any more.
    pub(crate) fn forget_there(&mut self, kind: Kind, namespace: &Arc<str>, provider: &Arc<str>) {
        self.there_seen.remove(&(kind, Arc::clone(namespace), Arc::clone(provider)));
        self.there.retain(|(of, key), copies| {
            if *of == kind && key.namespace() == Some(&**namespace) {
                copies.remove(provider);
            }
            !copies.is_empty()
        });
    }
}
