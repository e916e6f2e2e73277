//! How watches fill the index, and what each change concerns.

use super::{
    Bid, Binding, Deal, House, Index, Indexed, Key, Map, PodFacts, Priority, Quota, Shadow, Space, Tenant,
};
use crate::pods::Loss;

/// Kinds of which every change may change who gets what.
macro_rules! paper {
    ($type:ty, $($store:ident).+) => {
        impl Indexed<$type> for Index {
            fn apply(&mut self, key: &Key, object: $type) {
                if self.$($store).+.get(key) != Some(&object) {
                    self.changed.papers = true;
                }
                self.$($store).+.apply(key, object);
            }

            fn delete(&mut self, key: &Key) {
                self.changed.papers = true;
                self.$($store).+.delete(key);
            }
        }
    };
}

paper!(Deal, contracts);
paper!(Bid, offers);
paper!(House, houses);

impl Indexed<Tenant> for Index {
    fn apply(&mut self, key: &Key, object: Tenant) {
        self.changed.papers = true;
        self.tenants.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.changed.papers = true;
        self.tenants.delete(key);
    }
}

impl Indexed<Priority> for Index {
    fn apply(&mut self, key: &Key, object: Priority) {
        if self.priorities.get(key) != Some(&object) {
            self.changed.all = true;
        }
        self.priorities.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.changed.all = true;
        self.priorities.delete(key);
    }
}

impl Indexed<Map> for Index {
    fn apply(&mut self, key: &Key, object: Map) {
        self.maps.apply(key, object);
        self.touch_map(key);
    }

    fn delete(&mut self, key: &Key) {
        self.maps.delete(key);
        self.touch_map(key);
    }
}

impl Index {
    /// A namespace came, changed or went.
    fn space_changed(&mut self, key: &Key, before: Option<&Space>) {
        let name = key.name();
        let now = self.space(name);
        // Who else wanted this name may have it now, or not any more.
        let other = before.map(Space::holder) != now.map(Space::holder);
        let map = now.or(before).and_then(|space| space.map.clone());
        let claim = self.claims.wanted.get(name).map(|claim| claim.map.clone());
        self.changed.maps.extend(map.into_iter().chain(claim));
        self.changed.spaces.insert(name.to_owned());
        if other {
            self.changed.papers = true;
            self.touch_pods(name);
            let keys: Vec<Key> = self.pods.in_namespace(name).map(|(key, _)| key.clone()).collect();
            keys.iter().for_each(|key| self.settle(key));
        }
    }

    /// Something in a namespace changed that must be there.
    fn inside_changed(&mut self, key: &Key) {
        let Some(name) = key.namespace() else { return };
        let claim = self.claims.wanted.get(name).map(|claim| claim.map.clone());
        self.changed.maps.extend(claim);
        self.changed.spaces.insert(name.to_owned());
    }
}

impl Indexed<Space> for Index {
    fn apply(&mut self, key: &Key, object: Space) {
        let before = self.space(key.name()).cloned();
        if before.as_ref() == Some(&object) {
            return;
        }
        self.spaces.apply(key, object);
        self.space_changed(key, before.as_ref());
    }

    fn delete(&mut self, key: &Key) {
        let before = self.space(key.name()).cloned();
        self.spaces.delete(key);
        self.space_changed(key, before.as_ref());
    }
}

impl Indexed<Quota> for Index {
    fn apply(&mut self, key: &Key, object: Quota) {
        // Its status changes with every pod.
        let same = self.quotas.get(key).is_some_and(|before| before.is_like(&object));
        self.quotas.apply(key, object);
        if !same {
            self.inside_changed(key);
        }
    }

    fn delete(&mut self, key: &Key) {
        self.quotas.delete(key);
        self.inside_changed(key);
    }
}

impl Indexed<Binding> for Index {
    fn apply(&mut self, key: &Key, object: Binding) {
        self.bindings.apply(key, object);
        self.inside_changed(key);
    }

    fn delete(&mut self, key: &Key) {
        self.bindings.delete(key);
        self.inside_changed(key);
    }
}

impl Indexed<Shadow> for Index {
    fn apply(&mut self, key: &Key, object: Shadow) {
        let before = self.shadows.get(key);
        // What was wrong with another one says nothing about this one.
        if before.is_none_or(|before| before.uid != object.uid) {
            self.memory.forget(key);
        } else if before.is_some_and(|before| !before.wants_the_same(&object)) {
            self.memory.begin_anew(key);
        }
        if object.is_fenced() && before.is_none() {
            self.fence.expect(key, object.created);
        }
        self.shadows.apply(key, object);
        self.note_fence(key);
        self.changed.pods.insert(key.clone());
    }

    fn delete(&mut self, key: &Key) {
        self.memory.forget(key);
        self.shadows.delete(key);
        self.note_fence(key);
        self.changed.pods.insert(key.clone());
    }
}

impl Indexed<PodFacts> for Index {
    fn apply(&mut self, key: &Key, object: PodFacts) {
        let before = self.pods.get(key);
        // Most changes of a pod are the kubelet's, and concern nobody here.
        if before == Some(&object) && !self.ledger.is_reserved(key) {
            return;
        }
        // One that is being made larger counts as such until it is.
        let same_size = before.is_some_and(|it| it.uid == object.uid && it.requests == object.requests);
        if !same_size {
            self.ledger.release_growth(key);
        }
        self.memory.recover(key);
        self.ledger.release(key);
        self.pods.apply(key, object);
        self.note_fence(key);
        self.settle(key);
        self.changed.pods.insert(key.clone());
    }

    fn delete(&mut self, key: &Key) {
        let shadow = self.shadows.get(key);
        let restarts = shadow.is_none_or(|shadow| shadow.restarts);
        if let Some(pod) = self.pods.get(key) {
            if let Some(phase) = pod.end(restarts) {
                self.memory.finished.insert(key.clone(), (pod.owner.clone(), phase, pod.uid.clone()));
            } else if shadow.is_some_and(|shadow| shadow.uid == pod.owner && !shadow.deleting) {
                self.memory.lose(key, Loss::of(pod));
            }
        }
        self.ledger.release_growth(key);
        self.pods.delete(key);
        self.note_fence(key);
        self.settle(key);
        self.changed.pods.insert(key.clone());
    }
}
