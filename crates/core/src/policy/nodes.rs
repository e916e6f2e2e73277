//! Which nodes a policy shares, and which of them belong to which pool.

use std::collections::BTreeSet;

use super::{Policy, SharedPool, Sharing};
use crate::capacity::Picks;
use crate::names::PoolName;
use crate::selector::{Labels, Requirement, Selector};

/// Combinations of requirements by which the nodes of a pool are told; more than a person writes by intent.
pub(super) const MOST_TERMS: usize = 64;

/// Nodes of a policy.
#[derive(Clone, Copy, Debug)]
pub(super) enum Nodes<'a> {
    /// All that it shares.
    Shared(&'a Sharing),
    /// Those of one of its pools.
    Pool(&'a Sharing, &'a PoolName),
}

impl Picks for Nodes<'_> {
    fn picks(&self, labels: &Labels) -> bool {
        match self {
            Self::Shared(sharing) if sharing.pools.is_empty() => sharing.nodes.matches(labels),
            Self::Shared(sharing) => sharing.pool_of(labels).is_some(),
            Self::Pool(sharing, name) => sharing.pool_of(labels).is_some_and(|pool| pool.name == **name),
        }
    }
}

impl Sharing {
    /// The pool that a node with these labels belongs to.
    fn pool_of(&self, labels: &Labels) -> Option<&SharedPool> {
        self.nodes.matches(labels).then(|| self.pools.iter().find(|pool| pool.nodes.matches(labels)))?
    }

    /// The nodes of the pool at `index` as requirements: all of those in one of the lists must hold. `None` if these are too
    /// many.
    pub(super) fn terms_of(&self, index: usize) -> Option<Vec<Vec<Requirement>>> {
        let pool = self.pools.get(index)?;
        let own = self.nodes.requirements().chain(pool.nodes.requirements()).cloned().collect();
        let mut terms: Vec<Vec<Requirement>> = vec![own];
        for before in self.pools.iter().take(index) {
            // It is not of the pool before if it lacks any one thing that this one asks for.
            let lacks: Vec<Requirement> = before.nodes.requirements().map(Requirement::negated).collect();
            if terms.len().saturating_mul(lacks.len()) > MOST_TERMS {
                return None;
            }
            terms = terms.iter().flat_map(|term| lacks.iter().map(|lack| with(term, lack))).collect();
        }
        Some(terms)
    }
}

fn with(term: &[Requirement], more: &Requirement) -> Vec<Requirement> {
    let mut term = term.to_vec();
    if !term.contains(more) {
        term.push(more.clone());
    }
    term
}

/// Whether nodes are lent by pool, and no policy has any of these pools: what was promised of them is taken back on purpose,
/// and not missing.
pub fn dropped<'a>(policies: &[Policy], pools: impl IntoIterator<Item = &'a PoolName>) -> bool {
    let there: BTreeSet<&PoolName> =
        policies.iter().flat_map(|policy| &policy.sharing.pools).map(|pool| &pool.name).collect();
    let mut pools = pools.into_iter().peekable();
    !there.is_empty() && pools.peek().is_some() && !pools.any(|pool| there.contains(pool))
}

impl Policy {
    /// The pools, each with the nodes that belong to it and to none before it: a node is one of these if all requirements
    /// of one of the lists hold.
    pub fn pool_nodes(&self) -> impl Iterator<Item = (&PoolName, Vec<Vec<Requirement>>)> {
        let pools = self.sharing.pools.iter().enumerate();
        pools.filter_map(|(index, pool)| Some((&pool.name, self.sharing.terms_of(index)?)))
    }

    /// The nodes that are shared at all, in pools or not.
    pub const fn nodes(&self) -> &Selector {
        &self.sharing.nodes
    }
}
