//! Keeps one copy of what many objects have alike: a thousand replicas request the same.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

/// The copies in use.
#[derive(Debug)]
pub(super) struct Interner<T: ?Sized>(HashSet<Arc<T>>);

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Self(HashSet::new())
    }
}

/// The copy here, and the one of who asks.
const LAST_TWO: usize = 2;

impl<T: ?Sized + Eq + Hash> Interner<T>
where
    Arc<T>: Borrow<T>,
{
    /// The copy that equals `value`.
    pub(super) fn intern(&mut self, value: Arc<T>) -> Arc<T> {
        if let Some(known) = self.0.get(&*value) {
            return Arc::clone(known);
        }
        self.0.insert(Arc::clone(&value));
        value
    }

    /// Lets go of the copy if `value` is the last one outside.
    pub(super) fn forget(&mut self, value: &Arc<T>) {
        if Arc::strong_count(value) <= LAST_TWO {
            self.0.remove(&**value);
        }
    }
}

#[cfg(test)]
impl<T: ?Sized> Interner<T> {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
