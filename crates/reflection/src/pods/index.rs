//! What is known about pods here, and about those that run for them elsewhere.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use liqo_kit::Key;

use crate::fence::Guard;

use super::facts::{Home, Mapping, Remote, Shadow, VirtualNode};

/// Bits of what a place has seen a full list of.
pub(crate) const SHADOWS: u8 = 1;
/// See [`SHADOWS`].
pub(crate) const PODS: u8 = 2;
/// Both.
const ALL: u8 = SHADOWS | PODS;

/// Pods here and elsewhere.
#[derive(Default)]
pub(crate) struct Pods {
    home: HashMap<Key, Home>,
    by_node: HashMap<Arc<str>, BTreeSet<Key>>,
    /// Those of home that must never run twice, and have not ended.
    fenced: BTreeSet<Key>,
    nodes: BTreeMap<Box<str>, VirtualNode>,
    maps: BTreeMap<Key, Mapping>,
    /// The namespaces at providers: by namespace at home, then by provider.
    places: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Place>>,
    dirty: BTreeSet<Key>,
    refused: HashMap<Key, Refused>,
    /// Whether somebody sends pods, and what is sent must be kept until it is there.
    pub(crate) sending: bool,
    /// Whether all pods of home are known.
    pub(crate) synced: bool,
    /// Changes when pods that read tokens come or go.
    pub(crate) token_users: u64,
    /// Changes when nodes or maps do.
    pub(crate) topology: u64,
}

/// What the API server of a provider said when a pod was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The digest of what was sent.
    pub(crate) source: Box<str>,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// What tokens of an account are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenNeed {
    /// For whom; none is the API server itself.
    pub(crate) audiences: BTreeSet<Option<Box<str>>>,
    /// Where.
    pub(crate) providers: BTreeSet<Box<str>>,
}

/// A namespace at a provider.
#[derive(Default)]
pub(crate) struct Place {
    /// Its name there.
    pub(crate) remote: Arc<str>,
    /// Whether new pods may be sent there.
    pub(crate) open: bool,
    pub(crate) shadows: HashMap<Box<str>, Shadow>,
    pub(crate) pods: HashMap<Box<str>, Remote>,
    pub(crate) seen: u8,
}

impl Place {
    /// Whether all that is there is known.
    pub(crate) const fn is_known(&self) -> bool {
        self.seen == ALL
    }
}

impl Pods {
    /// The pod of this name.
    pub(crate) fn home(&self, key: &Key) -> Option<&Home> {
        self.home.get(key)
    }

    /// The node of this name, if it stands for a provider.
    pub(crate) fn node(&self, name: &str) -> Option<&VirtualNode> {
        self.nodes.get(name)
    }

    /// The nodes that stand for providers.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (&Box<str>, &VirtualNode)> {
        self.nodes.iter()
    }

    /// The pods of home.
    pub(crate) fn homes(&self) -> impl Iterator<Item = (&Key, &Home)> {
        self.home.iter()
    }

    /// The providers of which not all is known that is there; all of them while not all of home is.
    pub(crate) fn unseen_providers(&self) -> BTreeSet<&str> {
        let places = self.places.values().flatten().filter(|(_, place)| !place.is_known());
        let mapped = self.maps.values().filter(|map| !self.is_looked_at(map)).map(|map| &*map.provider);
        let nodes = self.nodes.values().filter(|_| !self.synced).map(|node| &*node.provider);
        places.map(|(provider, _)| &**provider).chain(mapped).chain(nodes).collect()
    }

    /// Whether all namespaces of a map are looked at.
    fn is_looked_at(&self, map: &Mapping) -> bool {
        map.namespaces.keys().all(|namespace| self.place(namespace, &map.provider).is_some())
    }

    /// What is at the providers that this namespace is mapped to.
    pub(crate) fn places(&self, namespace: &str) -> impl Iterator<Item = (&Arc<str>, &Place)> {
        self.places.get(namespace).into_iter().flatten()
    }

    /// What is at this provider for this namespace.
    pub(crate) fn place(&self, namespace: &str, provider: &str) -> Option<&Place> {
        self.places.get(namespace)?.get(provider)
    }

    /// All maps.
    pub(crate) fn maps(&self) -> impl Iterator<Item = (&Key, &Mapping)> {
        self.maps.iter()
    }

    /// Whether a map says that this namespace is at this provider, or goes from there.
    pub(crate) fn is_mapped(&self, namespace: &str, provider: &str) -> bool {
        self.maps.values().any(|map| &*map.provider == provider && map.namespaces.contains_key(namespace))
    }

    /// The namespace `remote` at `provider` is where things of `namespace` are; a place of another name is forgotten.
    pub(crate) fn open(&mut self, namespace: &Arc<str>, provider: &Arc<str>, remote: &Arc<str>, open: bool) {
        let places = self.places.entry(Arc::clone(namespace)).or_default();
        let place = places.entry(Arc::clone(provider)).or_default();
        if place.remote != *remote {
            *place = Place { remote: Arc::clone(remote), ..Place::default() };
        }
        place.open = open;
        self.touch_namespace(namespace);
    }

    /// Nothing of `namespace` is at `provider` any more, as far as we may see.
    pub(crate) fn close(&mut self, namespace: &str, provider: &str) {
        if let Some(places) = self.places.get_mut(namespace) {
            places.remove(provider);
            if places.is_empty() {
                self.places.remove(namespace);
            }
        }
        self.touch_namespace(namespace);
    }

    /// Changes what is known of a place, if it is still looked at.
    pub(crate) fn at(&mut self, namespace: &str, provider: &str, change: impl FnOnce(&mut Place)) {
        if let Some(place) = self.places.get_mut(namespace).and_then(|places| places.get_mut(provider)) {
            change(place);
        }
    }

    /// The providers where something runs that must never run twice.
    pub(crate) fn providers_of_fenced(&self) -> BTreeSet<Box<str>> {
        let homes = self.fenced.iter().filter_map(|key| self.home.get(key));
        let nodes: BTreeSet<&str> = homes.map(|home| &*home.node).collect();
        nodes.into_iter().filter_map(|node| self.nodes.get(node)).map(|node| node.provider.clone()).collect()
    }

    /// Whether all that is here is known, and all that is at this provider.
    pub(crate) fn knows(&self, provider: &str) -> bool {
        let mut places = self.places.values().filter_map(|places| places.get(provider));
        self.synced && places.all(Place::is_known)
    }

    /// The namespace at home that this one at a provider is for.
    pub(crate) fn home_of(&self, provider: &str, remote: &str) -> Option<&Arc<str>> {
        let is_it =
            |places: &BTreeMap<Arc<str>, Place>| places.get(provider).is_some_and(|it| &*it.remote == remote);
        self.places.iter().find(|(_, places)| is_it(places)).map(|(namespace, _)| namespace)
    }

    /// The provider's API server does not take this pod as it is.
    pub(crate) fn refuse(&mut self, key: Key, reason: &'static str, message: String) {
        if let Some(home) = self.home.get(&key) {
            let refused = Refused { source: home.source.clone(), reason, message };
            self.refused.insert(key.clone(), refused);
        }
        self.dirty.insert(key);
    }

    /// What was said when this pod was sent as it is, if it was refused.
    pub(crate) fn refusal(&self, key: &Key, source: &str) -> Option<&Refused> {
        self.refused.get(key).filter(|refused| &*refused.source == source)
    }

    /// What was refused is tried again: whoever refused it may have changed.
    pub(crate) fn try_refused_again(&mut self) {
        self.refused.clear();
    }

    /// The pod should be looked at.
    pub(crate) fn touch(&mut self, key: Key) {
        self.dirty.insert(key);
    }

    /// All pods of these providers' nodes, and all that is there, should be looked at.
    pub(crate) fn touch_provider(&mut self, provider: &str) {
        let nodes = self.nodes.iter().filter(|(_, node)| &*node.provider == provider).map(|(name, _)| name);
        let pods = nodes.filter_map(|node| self.by_node.get(&**node)).flatten().cloned();
        self.dirty.extend(pods);
        for (namespace, places) in &self.places {
            let names = places.get(provider).into_iter().flat_map(|place| place.shadows.keys());
            self.dirty.extend(names.map(|name| Key::namespaced(namespace, name)));
        }
    }

    /// The pods on this node of this provider should be looked at.
    pub(crate) fn touch_remote_node(&mut self, provider: &str, node: &str) {
        for (namespace, places) in &self.places {
            let pods = places.get(provider).into_iter().flat_map(|place| &place.pods);
            let there = pods.filter(|(_, remote)| remote.node.as_deref() == Some(node));
            self.dirty.extend(there.map(|(name, _)| Key::namespaced(namespace, name)));
        }
    }

    fn touch_namespace(&mut self, namespace: &str) {
        let pods = self.home.keys().filter(|key| key.namespace() == Some(namespace)).cloned();
        self.dirty.extend(pods);
        for place in self.places.get(namespace).into_iter().flat_map(BTreeMap::values) {
            self.dirty.extend(place.shadows.keys().map(|name| Key::namespaced(namespace, name)));
        }
    }

    /// Everything of a namespace should be looked at: a list was taken over.
    pub(crate) fn seen_all(&mut self, namespace: &str, provider: &str, bit: u8) {
        self.at(namespace, provider, |place| place.seen |= bit);
        self.touch_namespace(namespace);
    }

    /// Everything should be looked at.
    pub(crate) fn touch_all(&mut self) {
        self.dirty.extend(self.home.keys().cloned());
        for (namespace, places) in &self.places {
            for place in places.values() {
                self.dirty.extend(place.shadows.keys().map(|name| Key::namespaced(namespace, name)));
            }
        }
    }

    /// What should be looked at.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Key> {
        std::mem::take(&mut self.dirty)
    }

    /// Forgets all that is elsewhere.
    pub(crate) fn forget_places(&mut self) {
        self.places.clear();
        self.dirty.clear();
    }

    /// The pod was read again because what should be sent had been dropped.
    pub(crate) fn recall(&mut self, key: &Key, found: Home) {
        if let Some(home) = self.home.get_mut(key)
            && home.uid == found.uid
        {
            home.source = found.source;
            home.draft = found.draft;
            self.dirty.insert(key.clone());
        }
    }

    /// What should be sent is there: it need not be kept.
    pub(crate) fn drop_draft(&mut self, key: &Key) {
        if let Some(home) = self.home.get_mut(key) {
            home.draft = None;
        }
    }

    /// The tokens that pods at providers read, by namespace and account.
    pub(crate) fn tokens(&self) -> BTreeMap<Key, TokenNeed> {
        let mut all: BTreeMap<Key, TokenNeed> = BTreeMap::new();
        for (key, pod) in self.home.iter().filter(|(_, pod)| !pod.finished) {
            let (Some(tokens), Some(node)) = (&pod.tokens, self.nodes.get(&*pod.node)) else { continue };
            let need = all.entry(Key::new(key.namespace(), &tokens.account)).or_default();
            need.providers.insert(node.provider.clone());
            need.audiences.extend(tokens.audiences.iter().cloned());
        }
        all
    }

    fn leave_node(&mut self, key: &Key, node: &Arc<str>) {
        if let Some(pods) = self.by_node.get_mut(node) {
            pods.remove(key);
            if pods.is_empty() {
                self.by_node.remove(node);
            }
        }
    }

    fn touch_node(&mut self, name: &str) {
        self.topology = self.topology.wrapping_add(1);
        self.dirty.extend(self.by_node.get(name).into_iter().flatten().cloned());
    }
}

impl liqo_kit::Index<Home> for Pods {
    fn apply(&mut self, key: &Key, mut pod: Home) {
        if !self.sending {
            pod.draft = None;
        }
        if let Some(before) = self.home.get(key) {
            pod.since = before.since;
            if before.node != pod.node {
                let node = Arc::clone(&before.node);
                self.leave_node(key, &node);
            }
        }
        let known =
            self.home.get(key).is_some_and(|before| before.uid == pod.uid && before.finished == pod.finished);
        if pod.tokens.is_some() && !known {
            self.token_users = self.token_users.wrapping_add(1);
        }
        self.by_node.entry(Arc::clone(&pod.node)).or_default().insert(key.clone());
        if pod.guard == Guard::Fenced && !pod.finished {
            self.fenced.insert(key.clone());
        } else {
            self.fenced.remove(key);
        }
        self.home.insert(key.clone(), pod);
        self.touch(key.clone());
    }

    fn delete(&mut self, key: &Key) {
        self.refused.remove(key);
        self.fenced.remove(key);
        if let Some(pod) = self.home.remove(key) {
            self.leave_node(key, &pod.node);
            if pod.tokens.is_some() {
                self.token_users = self.token_users.wrapping_add(1);
            }
        }
        self.touch(key.clone());
    }

    fn synced(&mut self) {
        self.synced = true;
    }
}

impl liqo_kit::Index<VirtualNode> for Pods {
    fn apply(&mut self, key: &Key, node: VirtualNode) {
        if self.nodes.get(key.name()) != Some(&node) {
            self.nodes.insert(key.name().into(), node);
            self.touch_node(key.name());
        }
    }

    fn delete(&mut self, key: &Key) {
        self.nodes.remove(key.name());
        self.touch_node(key.name());
    }
}

impl liqo_kit::Index<Mapping> for Pods {
    fn apply(&mut self, key: &Key, map: Mapping) {
        if self.maps.get(key) != Some(&map) {
            self.maps.insert(key.clone(), map);
            self.topology = self.topology.wrapping_add(1);
        }
    }

    fn delete(&mut self, key: &Key) {
        self.maps.remove(key);
        self.topology = self.topology.wrapping_add(1);
    }
}
