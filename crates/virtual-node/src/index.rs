//! What is known: the nodes of this cluster, which namespaces are where, and what this process remembers.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use liqo_api::NamespaceMap;
use liqo_api::namespace_map::MappingPhase;
use liqo_core::names::ClusterId;
use liqo_kit::Key;
use liqo_kit::index::Grouped;

use crate::node::{Facts, Known, Place};

/// The namespaces at one provider, by their names here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mapping(BTreeMap<String, String>);

impl Mapping {
    /// Reads a map; what the provider has not accepted is not there.
    pub(crate) fn read(map: NamespaceMap) -> Self {
        let current = map.status.unwrap_or_default().current_mapping;
        let there = current.into_iter().filter(|(_, remote)| remote.phase == MappingPhase::Accepted);
        Self(there.map(|(local, remote)| (local, remote.remote_namespace)).collect())
    }
}

/// How far emptying a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Emptied {
    /// Since when it is emptied.
    pub(crate) since: Timestamp,
    /// Pods that are still there.
    pub(crate) left: usize,
}

/// All of it.
pub(crate) struct Index {
    nodes: Grouped<Known, Place>,
    maps: BTreeMap<Key, Mapping>,
    touched: BTreeSet<Place>,
    members: u64,
    /// Since when nothing is lent of what has a node; remembered by the leader.
    pub(crate) absent: BTreeMap<Place, Timestamp>,
    /// How far emptying nodes is; remembered by the leader.
    pub(crate) emptied: BTreeMap<String, Emptied>,
}

impl Default for Index {
    fn default() -> Self {
        let place_of = |_: &Key, known: &Known| match known {
            Known::Ours(facts) => facts.place.clone(),
            Known::Other => None,
        };
        Self {
            nodes: Grouped::by(place_of),
            maps: BTreeMap::new(),
            touched: BTreeSet::new(),
            members: 0,
            absent: BTreeMap::new(),
            emptied: BTreeMap::new(),
        }
    }
}

impl Index {
    /// A node by its name.
    pub(crate) fn node(&self, name: &str) -> Option<&Known> {
        self.nodes.store().get(&Key::cluster(name))
    }

    /// The node that stands for a provider, or for a pool.
    pub(crate) fn node_of(&self, place: &Place) -> Option<(&str, &Facts)> {
        self.nodes.group(place).find_map(|(key, known)| match known {
            Known::Ours(facts) => Some((key.name(), &**facts)),
            Known::Other => None,
        })
    }

    /// The nodes of ours.
    pub(crate) fn ours(&self) -> impl Iterator<Item = (&Place, &str, &Facts)> {
        self.nodes.groups().filter_map(|place| {
            let (name, facts) = self.node_of(place)?;
            Some((place, name, facts))
        })
    }

    /// Counts how often a node of ours came, went, or began to go.
    pub(crate) const fn members(&self) -> u64 {
        self.members
    }

    /// What `namespace` is called at the provider whose objects lie in `at`.
    pub(crate) fn remote_namespace(&self, at: &str, namespace: &str) -> Option<&str> {
        let maps = self.maps.iter().filter(|(key, _)| key.namespace() == Some(at));
        maps.filter_map(|(_, mapping)| mapping.0.get(namespace)).map(String::as_str).next()
    }

    /// The namespaces at the provider whose objects lie in `at`: here, there.
    pub(crate) fn namespaces<'a>(&'a self, at: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let maps = self.maps.iter().filter(move |(key, _)| key.namespace() == Some(at));
        maps.flat_map(|(_, mapping)| mapping.0.iter()).map(|(here, there)| (here.as_str(), there.as_str()))
    }

    /// Whose nodes changed since this was last asked.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<Place> {
        std::mem::take(&mut self.touched)
    }

    /// Has this one looked at.
    pub(crate) fn touch(&mut self, place: Place) {
        self.touched.insert(place);
    }

    /// Has the nodes looked at that stand for these providers.
    pub(crate) fn touch_nodes_of(&mut self, clusters: &BTreeSet<ClusterId>) {
        let there = self.nodes.groups().filter(|place| clusters.contains(&place.cluster));
        self.touched.extend(there.cloned());
    }

    fn touch_node(&mut self, key: &Key) {
        if let Some(Known::Ours(facts)) = self.nodes.store().get(key)
            && let Some(place) = facts.place.clone()
        {
            self.touched.insert(place);
        }
    }
}

impl liqo_kit::Index<Known> for Index {
    fn apply(&mut self, key: &Key, known: Known) {
        self.touch_node(key);
        let life = |known: Option<&Known>| match known {
            Some(Known::Ours(facts)) => Some((facts.uid.clone(), facts.deleting)),
            Some(Known::Other) | None => None,
        };
        if life(self.nodes.store().get(key)) != life(Some(&known)) {
            self.members += 1;
        }
        liqo_kit::Index::apply(&mut self.nodes, key, known);
        self.touch_node(key);
    }

    fn delete(&mut self, key: &Key) {
        self.touch_node(key);
        self.members += 1;
        liqo_kit::Index::<Known>::delete(&mut self.nodes, key);
    }
}

impl liqo_kit::Index<Mapping> for Index {
    fn apply(&mut self, key: &Key, mapping: Mapping) {
        self.maps.insert(key.clone(), mapping);
    }

    fn delete(&mut self, key: &Key) {
        self.maps.remove(key);
    }
}
