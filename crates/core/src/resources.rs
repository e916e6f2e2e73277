//! Resource lists: how much of each resource, such as `cpu=2, memory=4Gi, nvidia.com/gpu=1`.
//!
//! A resource that a list does not name is one it has nothing of. Every operation treats each resource for
//! itself: what overflows, is missing or cannot be read is reported in a [`Partial`] and leaves the others right.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::fmt;

use crate::quantity::Quantity;

mod arithmetic;
mod door;
mod name;
mod problem;
mod text;

#[cfg(test)]
mod tests;

pub use name::{InvalidResourceName, ResourceName};
pub use problem::{Partial, ResourceProblem, ResourceProblems};

/// How much of each resource, ordered by name.
///
/// Two lists are equal when they name the same resources with the same amounts; a resource named with zero is
/// not the same as one not named, because Kubernetes shows the difference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Resources(BTreeMap<ResourceName, Quantity>);

impl Resources {
    /// A list that names nothing.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// How much there is, or `None` if the list does not name the resource.
    pub fn get(&self, name: &str) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    /// How much there is; zero if the list does not name the resource.
    pub fn amount(&self, name: &str) -> Quantity {
        self.get(name).unwrap_or_default()
    }

    /// Sets how much there is of one resource, and returns what was said before.
    pub fn insert(&mut self, name: ResourceName, amount: Quantity) -> Option<Quantity> {
        self.0.insert(name, amount)
    }

    /// Stops naming a resource, and returns what was said before.
    pub fn remove(&mut self, name: &str) -> Option<Quantity> {
        self.0.remove(name)
    }

    /// Keeps the resources that `keep` says yes to.
    pub fn retain(&mut self, mut keep: impl FnMut(&ResourceName, Quantity) -> bool) {
        self.0.retain(|name, amount| keep(name, *amount));
    }

    /// The resources in order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ResourceName, Quantity)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// How many resources are named.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no resource is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is nothing of any resource, named or not.
    pub fn is_zero(&self) -> bool {
        self.0.values().all(|amount| amount.is_zero())
    }
}

impl FromIterator<(ResourceName, Quantity)> for Resources {
    fn from_iter<I: IntoIterator<Item = (ResourceName, Quantity)>>(amounts: I) -> Self {
        Self(amounts.into_iter().collect())
    }
}

impl Extend<(ResourceName, Quantity)> for Resources {
    fn extend<I: IntoIterator<Item = (ResourceName, Quantity)>>(&mut self, amounts: I) {
        self.0.extend(amounts);
    }
}

impl IntoIterator for Resources {
    type Item = (ResourceName, Quantity);
    type IntoIter = btree_map::IntoIter<ResourceName, Quantity>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return formatter.pad("nothing");
        }
        let amounts: Vec<String> = self.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
        formatter.pad(&amounts.join(", "))
    }
}
