//! What this cluster has to share: nodes and their load, storage classes, services, images, and the policies.
//!
//! ```text
//! Node, Pod, Namespace ──read──▶ facts ──apply, delete──▶ Stock ──▶ Capacity, one load per node
//! StorageClass, Service            │                        │  └──▶ Goods: what an offer has besides resources
//! SharingPolicy ─────────read──▶ Policy                     └─────▶ a revision, which changes with the answers alone
//! ```
//!
//! [`Stock`] follows single objects: a pod that comes or goes changes the load of its node and nothing else, so that
//! ten thousand of them cost no more than their number. What does not matter to any offer (a heartbeat, a pod of this
//! cluster on a virtual node, an image while no policy tells about images) leaves the [revision](Stock::revision) as it
//! is.
//!
//! A watch reads the types whose names end in `OnWire` and keeps what `read` makes of them; [`gather`](mod@gather) fills a stock
//! by plain lists, for programs that look once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use liqo_core::capacity::{Capacity, Load, Owner};
use liqo_core::names::ClusterId;
use liqo_core::policy::Policy;
use liqo_kit::{Index, Key};

mod gather;
mod goods;
mod intern;
mod node;
mod others;
mod pod;
#[cfg(test)]
mod tests;

pub use gather::{NotGathered, gather};
pub use goods::Goods;
pub use node::{Image, NodeFacts, NodeOnWire};
pub use others::{
    ClassFacts, ClassOnWire, Lodging, PolicyOnWire, ServiceFacts, is_lodging_selector, read_policy,
};
pub use pod::{PodFacts, PodOnWire};

use intern::Interner;

/// What this cluster has to share.
#[derive(Debug, Default)]
pub struct Stock {
    capacity: Capacity,
    /// Loads of nodes that are not known yet, or not any more.
    elsewhere: BTreeMap<Arc<str>, Load>,
    pods: BTreeMap<Key, PodFacts>,
    /// The namespaces that belong to peers.
    lodgings: BTreeMap<Key, ClusterId>,
    images: BTreeMap<Key, Vec<Arc<Image>>>,
    classes: BTreeMap<Key, ClassFacts>,
    services: BTreeSet<Key>,
    /// In order of their names.
    policies: Vec<Policy>,
    known_images: Interner<Image>,
    known_requests: Interner<liqo_core::Resources>,
    known_names: Interner<str>,
    revision: u64,
}

impl Stock {
    /// Nodes and what their pods request.
    pub fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// The policies in order of their names.
    pub fn policies(&self) -> &[Policy] {
        &self.policies
    }

    /// Another number whenever something changed that an offer can depend on.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn changed(&mut self) {
        self.revision = self.revision.wrapping_add(1);
    }

    fn changed_if(&mut self, changed: bool) {
        if changed {
            self.changed();
        }
    }

    /// Whose pods those of a namespace are that do not say it themselves. The namespace comes first: its labels are not
    /// for peers to choose, those of a pod may be.
    fn owner(&self, key: &Key, pod: &PodFacts) -> Owner {
        let lodger = key.namespace().and_then(|namespace| self.lodgings.get(namespace));
        lodger.or(pod.peer.as_ref()).map_or(Owner::Local, |peer| Owner::Peer(peer.clone()))
    }

    /// Whether the pod decides about anything. One of our own on a virtual node is somebody else's burden.
    fn matters(&self, pod: &PodFacts, owner: &Owner) -> bool {
        *owner != Owner::Local || self.capacity.node(&pod.node).is_none_or(|node| !node.virtual_node)
    }

    fn load_of(&mut self, node: &Arc<str>) -> &mut Load {
        if self.capacity.node(node).is_none() {
            return self.elsewhere.entry(Arc::clone(node)).or_default();
        }
        // It is known, as was just seen; the other arm is never taken.
        match self.capacity.load_mut(node) {
            Some(load) => load,
            None => self.elsewhere.entry(Arc::clone(node)).or_default(),
        }
    }

    /// Puts a pod in that is not in.
    fn put(&mut self, key: &Key, pod: PodFacts) {
        let owner = self.owner(key, &pod);
        let matters = self.matters(&pod, &owner);
        self.load_of(&pod.node).add(&owner, &pod.requests);
        self.pods.insert(key.clone(), pod);
        self.changed_if(matters);
    }

    /// Takes a pod out.
    fn take(&mut self, key: &Key) -> Option<PodFacts> {
        let pod = self.pods.remove(key)?;
        let owner = self.owner(key, &pod);
        let matters = self.matters(&pod, &owner);
        if !self.load_of(&pod.node).remove(&owner, &pod.requests) {
            *self.load_of(&pod.node) = self.load_anew(&pod.node);
        }
        if self.elsewhere.get(&pod.node).is_some_and(|load| *load == Load::default()) {
            self.elsewhere.remove(&pod.node);
        }
        self.changed_if(matters);
        Some(pod)
    }

    /// The load of a node from all its pods: for the case that a sum was too large to take anything away from.
    fn load_anew(&self, node: &str) -> Load {
        let placed = self.pods.iter().filter(|(_, pod)| &*pod.node == node);
        placed.map(|(key, pod)| (self.owner(key, pod), pod.requests.as_ref().clone())).collect()
    }

    /// Has a namespace belong to a peer, or to nobody.
    fn lodge(&mut self, namespace: &Key, peer: Option<ClusterId>) {
        if self.lodgings.get(namespace) == peer.as_ref() {
            return;
        }
        let first = Key::namespaced(namespace.as_str(), "");
        let inside = self
            .pods
            .range((Bound::Included(first), Bound::Unbounded))
            .take_while(|(key, _)| key.namespace() == Some(namespace.as_str()));
        let keys: Vec<Key> = inside.map(|(key, _)| key.clone()).collect();
        let pods: Vec<(Key, PodFacts)> =
            keys.into_iter().filter_map(|key| self.take(&key).map(|pod| (key, pod))).collect();
        match peer {
            Some(peer) => drop(self.lodgings.insert(namespace.clone(), peer)),
            None => drop(self.lodgings.remove(namespace)),
        }
        for (key, pod) in pods {
            self.put(&key, pod);
        }
    }

    fn wants_images(&self) -> bool {
        self.policies.iter().any(|policy| !policy.extras().images.is_empty())
    }

    fn wants_service(&self, key: &Key) -> bool {
        self.policies.iter().any(|policy| policy.extras().services.matches(key.as_str()))
    }

    fn forget_images(&mut self, key: &Key) -> Vec<Arc<Image>> {
        let images = self.images.remove(key).unwrap_or_default();
        images.iter().for_each(|image| self.known_images.forget(image));
        images
    }
}

impl Index<NodeFacts> for Stock {
    fn apply(&mut self, key: &Key, NodeFacts { node, images }: NodeFacts) {
        let old = self.forget_images(key);
        let images: Vec<Arc<Image>> =
            images.into_iter().map(|image| self.known_images.intern(image)).collect();
        let other_images = old != images;
        if !images.is_empty() {
            self.images.insert(key.clone(), images);
        }
        let other_images_matter = other_images && self.wants_images();
        self.changed_if(other_images_matter);
        if self.capacity.node(key.name()) == Some(&node) {
            return;
        }
        let known = self.capacity.remove(key.name()).map(|(_, load)| load);
        let load = known.or_else(|| self.elsewhere.remove(key.name())).unwrap_or_default();
        self.capacity.insert(node, load);
        self.changed();
    }

    fn delete(&mut self, key: &Key) {
        self.forget_images(key);
        let Some((node, load)) = self.capacity.remove(key.name()) else { return };
        // Its pods are told about one by one, and may be moved to another object of that name before.
        if load != Load::default() {
            let name = self.known_names.intern(Arc::from(node.name.as_str()));
            self.elsewhere.insert(name, load);
        }
        self.changed();
    }
}

impl Index<PodFacts> for Stock {
    fn apply(&mut self, key: &Key, pod: PodFacts) {
        if self.pods.get(key) == Some(&pod) {
            return;
        }
        let pod = PodFacts {
            node: self.known_names.intern(pod.node),
            requests: self.known_requests.intern(pod.requests),
            peer: pod.peer,
        };
        self.delete_pod(key);
        self.put(key, pod);
    }

    fn delete(&mut self, key: &Key) {
        self.delete_pod(key);
    }
}

impl Stock {
    fn delete_pod(&mut self, key: &Key) {
        if let Some(pod) = self.take(key) {
            self.known_names.forget(&pod.node);
            self.known_requests.forget(&pod.requests);
        }
    }
}

impl Index<Lodging> for Stock {
    fn apply(&mut self, key: &Key, lodging: Lodging) {
        self.lodge(key, Some(lodging.peer));
    }

    fn delete(&mut self, key: &Key) {
        self.lodge(key, None);
    }
}

impl Index<ClassFacts> for Stock {
    fn apply(&mut self, key: &Key, class: ClassFacts) {
        let old = self.classes.insert(key.clone(), class);
        self.changed_if(old != Some(class));
    }

    fn delete(&mut self, key: &Key) {
        let old = self.classes.remove(key);
        self.changed_if(old.is_some());
    }
}

impl Index<ServiceFacts> for Stock {
    fn apply(&mut self, key: &Key, _: ServiceFacts) {
        let new = self.services.insert(key.clone());
        let matters = new && self.wants_service(key);
        self.changed_if(matters);
    }

    fn delete(&mut self, key: &Key) {
        let there = self.services.remove(key);
        let matters = there && self.wants_service(key);
        self.changed_if(matters);
    }
}

impl Index<Policy> for Stock {
    fn apply(&mut self, key: &Key, policy: Policy) {
        match self.policies.binary_search_by(|known| known.name().cmp(key.name())) {
            Ok(place) if self.policies[place] == policy => return,
            Ok(place) => self.policies[place] = policy,
            Err(place) => self.policies.insert(place, policy),
        }
        self.changed();
    }

    fn delete(&mut self, key: &Key) {
        if let Ok(place) = self.policies.binary_search_by(|known| known.name().cmp(key.name())) {
            self.policies.remove(place);
            self.changed();
        }
    }
}
