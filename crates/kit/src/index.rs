//! What a controller knows: plain data that watches fill, synchronously.
//!
//! An [`Index`] is ordinary code without async. [`Shared`] puts one behind a lock, lets any number of watches
//! feed it, and tells planners that something changed (many changes, one wake-up).

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::sync::{Notify, watch};

use crate::key::Key;

#[cfg(test)]
mod tests;

/// Something a watch can fill with objects of type `T`.
///
/// One type may implement this for several `T`, so that one index joins several kinds under one lock.
pub trait Index<T> {
    /// The object is new or changed.
    fn apply(&mut self, key: &Key, object: T);

    /// The object is gone. Called exactly once for each object that vanished, also when it vanished while
    /// nobody was looking, and before `apply` when another object took its name.
    fn delete(&mut self, key: &Key);

    /// A full list has just been taken over: what the index holds is now complete.
    fn synced(&mut self) {}
}

/// Where a watch puts what it sees. [`Shared`] is the usual one.
pub trait Sink<T>: Send + Sync {
    /// See [`Index::apply`].
    fn apply(&self, key: &Key, object: T);
    /// See [`Index::delete`].
    fn delete(&self, key: &Key);
    /// See [`Index::synced`].
    fn synced(&self);
    /// Several changes were made; wake whoever plans with them.
    fn changed(&self);
}

/// Several sinks that share one watch: all but the last get a clone of each object.
pub struct Fan<T>(Vec<Box<dyn Sink<T>>>);

impl<T: Clone> Fan<T> {
    /// Feeds `sink`.
    pub fn to(sink: impl Sink<T> + 'static) -> Self {
        Self(vec![Box::new(sink)])
    }

    /// Feeds `sink` as well.
    #[must_use]
    pub fn and(mut self, sink: impl Sink<T> + 'static) -> Self {
        self.0.push(Box::new(sink));
        self
    }
}

impl<T: Clone> Sink<T> for Fan<T> {
    fn apply(&self, key: &Key, object: T) {
        if let Some((last, others)) = self.0.split_last() {
            others.iter().for_each(|sink| sink.apply(key, object.clone()));
            last.apply(key, object);
        }
    }

    fn delete(&self, key: &Key) {
        self.0.iter().for_each(|sink| sink.delete(key));
    }

    fn synced(&self) {
        self.0.iter().for_each(|sink| sink.synced());
    }

    fn changed(&self) {
        self.0.iter().for_each(|sink| sink.changed());
    }
}

/// Where the objects of a watch go that feeds nobody.
pub(crate) struct Nowhere;

impl<T> Sink<T> for Nowhere {
    fn apply(&self, _: &Key, _: T) {}
    fn delete(&self, _: &Key) {}
    fn synced(&self) {}
    fn changed(&self) {}
}

/// An index behind a lock, with a wake-up for those who plan with it.
pub struct Shared<I>(Arc<Inner<I>>);

struct Inner<I> {
    index: RwLock<I>,
    changes: watch::Sender<u64>,
}

impl<I> Shared<I> {
    /// Shares `index`.
    pub fn new(index: I) -> Self {
        Self(Arc::new(Inner { index: RwLock::new(index), changes: watch::Sender::new(0) }))
    }

    /// Looks at the index. Do not hold the guard across an await: watches wait for it.
    pub fn read(&self) -> RwLockReadGuard<'_, I> {
        self.0.index.read()
    }

    /// Changes the index by hand (results of writes, timers); call [`Shared::notify`] afterwards if planners
    /// should look.
    pub fn write(&self) -> RwLockWriteGuard<'_, I> {
        self.0.index.write()
    }

    /// Wakes the planners.
    pub fn notify(&self) {
        self.0.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A receiver whose `changed()` resolves once after any number of changes since it was last seen.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }
}

impl<I> Clone for Shared<I> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<I: Default> Default for Shared<I> {
    fn default() -> Self {
        Self::new(I::default())
    }
}

impl<T, I: Index<T> + Send + Sync> Sink<T> for Shared<I> {
    fn apply(&self, key: &Key, object: T) {
        self.0.index.write().apply(key, object);
    }

    fn delete(&self, key: &Key) {
        self.0.index.write().delete(key);
    }

    fn synced(&self) {
        self.0.index.write().synced();
    }

    fn changed(&self) {
        self.notify();
    }
}

/// A sink for what changes all the time and is needed now and then: the index always has the latest, and whoever plans is
/// woken at once, and then not again for a while.
pub struct Seldom<I> {
    shared: Shared<I>,
    news: Arc<Notify>,
}

impl<I> Seldom<I> {
    /// Feeds `shared`; the second wakes its planners, and has to be run.
    pub fn new(shared: Shared<I>, pause: Duration) -> (Self, impl Future<Output = Infallible>) {
        let news = Arc::new(Notify::new());
        let (told, index) = (Arc::clone(&news), shared.clone());
        let waking = async move {
            loop {
                told.notified().await;
                index.notify();
                tokio::time::sleep(pause).await;
            }
        };
        (Self { shared, news }, waking)
    }
}

impl<T, I: Index<T> + Send + Sync> Sink<T> for Seldom<I> {
    fn apply(&self, key: &Key, object: T) {
        Sink::apply(&self.shared, key, object);
    }

    fn delete(&self, key: &Key) {
        Sink::<T>::delete(&self.shared, key);
    }

    fn synced(&self) {
        Sink::<T>::synced(&self.shared);
    }

    fn changed(&self) {
        self.news.notify_one();
    }
}

/// The simplest index: the objects by key, in order.
#[derive(Debug, Clone)]
pub struct Store<T> {
    // Boxed: the tree keeps room for twice as many entries as it has, which should be small.
    objects: BTreeMap<Key, Box<T>>,
    synced: bool,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), synced: false }
    }
}

impl<T> Store<T> {
    /// The object with this key.
    pub fn get(&self, key: &Key) -> Option<&T> {
        self.objects.get(key).map(|object| &**object)
    }

    /// All objects in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &T)> {
        self.objects.iter().map(|(key, object)| (key, &**object))
    }

    /// The objects of one namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a T)> {
        let first = Key::namespaced(namespace, "");
        self.objects
            .range((Bound::Included(first), Bound::Unbounded))
            .take_while(move |(key, _)| key.namespace() == Some(namespace))
            .map(|(key, object)| (key, &**object))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Whether a full list has been seen at least once.
    pub fn is_synced(&self) -> bool {
        self.synced
    }
}

impl<T> Index<T> for Store<T> {
    fn apply(&mut self, key: &Key, object: T) {
        self.objects.insert(key.clone(), Box::new(object));
    }

    fn delete(&mut self, key: &Key) {
        self.objects.remove(key);
    }

    fn synced(&mut self) {
        self.synced = true;
    }
}

/// A [`Store`] that also finds objects by what they point to (pods by node, by owner, …).
pub struct Grouped<T, G: Ord> {
    store: Store<T>,
    groups: BTreeMap<G, BTreeSet<Key>>,
    group_of: fn(&Key, &T) -> Option<G>,
}

impl<T, G: Ord> Grouped<T, G> {
    /// A store whose objects belong to the group that `group_of` names, or to none.
    pub fn by(group_of: fn(&Key, &T) -> Option<G>) -> Self {
        Self { store: Store::default(), groups: BTreeMap::new(), group_of }
    }

    /// The store itself.
    pub fn store(&self) -> &Store<T> {
        &self.store
    }

    /// The objects of one group, in the order of their keys.
    pub fn group<'a>(&'a self, group: &G) -> impl Iterator<Item = (&'a Key, &'a T)> {
        self.groups
            .get(group)
            .into_iter()
            .flatten()
            .filter_map(|key| self.store.get(key).map(|object| (key, object)))
    }

    /// The groups that have members.
    pub fn groups(&self) -> impl Iterator<Item = &G> {
        self.groups.keys()
    }

    fn leave(&mut self, key: &Key) {
        let Some(group) = self.store.get(key).and_then(|object| (self.group_of)(key, object)) else { return };
        if let Some(members) = self.groups.get_mut(&group) {
            members.remove(key);
            if members.is_empty() {
                self.groups.remove(&group);
            }
        }
    }
}

impl<T, G: Ord> Index<T> for Grouped<T, G> {
    fn apply(&mut self, key: &Key, object: T) {
        self.leave(key);
        if let Some(group) = (self.group_of)(key, &object) {
            self.groups.entry(group).or_default().insert(key.clone());
        }
        self.store.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.leave(key);
        self.store.delete(key);
    }

    fn synced(&mut self) {
        self.store.synced();
    }
}
