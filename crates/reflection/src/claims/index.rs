//! What is known about claims of the virtual class and what is behind them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use liqo_kit::{Index, Key};

use super::facts::{Claim, Real, Volume};

/// Claims, volumes, and claims of real classes; the latter two by the claim that they were made for, and its uid.
#[derive(Default)]
pub(crate) struct Claims {
    claims: HashMap<Key, Claim>,
    volumes: Made<Volume>,
    reals: Made<Real>,
    dirty: BTreeSet<Key>,
}

impl Claims {
    pub(crate) fn claim(&self, key: &Key) -> Option<&Claim> {
        self.claims.get(key)
    }

    /// The volumes that were made for claims of this name: one, and those of earlier claims that are kept or on their way out.
    pub(crate) fn volumes(&self, key: &Key) -> impl Iterator<Item = &Volume> {
        self.volumes.of(key)
    }

    /// The same for claims of real classes.
    pub(crate) fn reals(&self, key: &Key) -> impl Iterator<Item = &Real> {
        self.reals.of(key)
    }

    /// Look at this claim.
    pub(crate) fn touch(&mut self, key: Key) {
        self.dirty.insert(key);
    }

    /// Look at all claims of a namespace, and at what is behind earlier ones.
    pub(crate) fn touch_namespace(&mut self, namespace: &str) {
        let keys = self.claims.keys().chain(self.volumes.keys()).chain(self.reals.keys());
        let inside: Vec<_> = keys.filter(|key| key.namespace() == Some(namespace)).cloned().collect();
        self.dirty.extend(inside);
    }

    pub(crate) fn touch_all(&mut self) {
        let keys = self.claims.keys().chain(self.volumes.keys()).chain(self.reals.keys());
        let all: Vec<_> = keys.cloned().collect();
        self.dirty.extend(all);
    }

    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.dirty)
    }
}

/// Things that were made for claims.
struct Made<T> {
    /// By the claim, then by their own name.
    by_claim: BTreeMap<Key, BTreeMap<Key, T>>,
    claims: HashMap<Key, Key>,
}

impl<T> Default for Made<T> {
    fn default() -> Self {
        Self { by_claim: BTreeMap::new(), claims: HashMap::new() }
    }
}

impl<T> Made<T> {
    fn of(&self, claim: &Key) -> impl Iterator<Item = &T> {
        self.by_claim.get(claim).into_iter().flat_map(BTreeMap::values)
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.by_claim.keys()
    }

    fn put(&mut self, key: &Key, claim: Key, thing: T) {
        self.take(key);
        self.claims.insert(key.clone(), claim.clone());
        self.by_claim.entry(claim).or_default().insert(key.clone(), thing);
    }

    /// Forgets a thing, and says for which claim it was.
    fn take(&mut self, key: &Key) -> Option<Key> {
        let claim = self.claims.remove(key)?;
        if let Some(things) = self.by_claim.get_mut(&claim) {
            things.remove(key);
            if things.is_empty() {
                self.by_claim.remove(&claim);
            }
        }
        Some(claim)
    }
}

impl Index<Claim> for Claims {
    fn apply(&mut self, key: &Key, claim: Claim) {
        self.claims.insert(key.clone(), claim);
        self.touch(key.clone());
    }

    fn delete(&mut self, key: &Key) {
        self.claims.remove(key);
        self.touch(key.clone());
    }
}

impl Index<Volume> for Claims {
    fn apply(&mut self, key: &Key, volume: Volume) {
        self.touch(volume.claim.clone());
        self.volumes.put(key, volume.claim.clone(), volume);
    }

    fn delete(&mut self, key: &Key) {
        let claim = self.volumes.take(key);
        self.dirty.extend(claim);
    }
}

impl Index<Real> for Claims {
    fn apply(&mut self, key: &Key, real: Real) {
        self.touch(real.claim.clone());
        self.reals.put(key, real.claim.clone(), real);
    }

    fn delete(&mut self, key: &Key) {
        let claim = self.reals.take(key);
        self.dirty.extend(claim);
    }
}
