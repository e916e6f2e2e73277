//! Which custom resources the owners of namespaces want elsewhere, and what was noted about them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use liqo_api::NamespaceOffloading;
use liqo_api::namespace_offloading::{KindName, ReflectedKind};
use liqo_kit::{Index, Key};

/// What is wanted of one namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wish {
    /// The kinds that are wanted.
    pub(crate) wanted: BTreeSet<KindName>,
    /// What the status says.
    pub(crate) told: Vec<ReflectedKind>,
    /// The version of the object that all this was read from.
    pub(crate) version: String,
}

impl Wish {
    /// Reads a NamespaceOffloading; `None` where there is nothing to do.
    pub(crate) fn read(offloading: NamespaceOffloading) -> Option<Self> {
        // One that is being deleted takes the namespaces at providers along, with all that is in them.
        if offloading.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let told = offloading.status.map(|status| status.reflected).unwrap_or_default();
        let wanted: BTreeSet<_> = offloading.spec.reflect.into_iter().collect();
        let version = offloading.metadata.resource_version.unwrap_or_default();
        (!wanted.is_empty() || !told.is_empty()).then_some(Self { wanted, told, version })
    }

    /// The kinds that have to do with the namespace: wanted, or wanted once and not cleaned up yet.
    pub(crate) fn kinds(&self) -> BTreeSet<KindName> {
        self.wanted.iter().cloned().chain(self.told.iter().map(ReflectedKind::name)).collect()
    }

    /// What the status says about this kind.
    pub(crate) fn said(&self, name: &KindName) -> Option<&ReflectedKind> {
        self.told.iter().find(|it| it.group == name.group && it.kind == name.kind)
    }
}

/// The wishes of all namespaces.
#[derive(Default)]
pub(crate) struct Wishes(pub(crate) BTreeMap<Arc<str>, Wish>);

impl Index<Wish> for Wishes {
    fn apply(&mut self, key: &Key, wish: Wish) {
        if let Some(namespace) = key.namespace() {
            self.0.insert(namespace.into(), wish);
        }
    }

    fn delete(&mut self, key: &Key) {
        if let Some(namespace) = key.namespace() {
            self.0.remove(namespace);
        }
    }
}
