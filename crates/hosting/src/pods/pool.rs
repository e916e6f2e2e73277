//! Pools: parts of our nodes that are lent apart from each other. A pod says for which it is.

use k8s_openapi::api::core::v1::Affinity;
use liqo_core::Resources;
use liqo_core::names::{ClusterId, PoolName};

use super::translate::{HouseRules, on_nodes};
use super::{Refusal, Shadow};
use crate::index::{Account, Grant, Index};

#[cfg(test)]
mod tests;

/// The contract, or the policy, has no such pool.
pub(crate) const UNKNOWN_POOL: &str = "UnknownPool";

/// The pool of the contract that a pod is for; none where the contract has none.
pub(super) fn of<'a>(grant: &'a Grant, shadow: &Shadow) -> Result<Option<&'a PoolName>, Refusal> {
    let asked = shadow.pool();
    match asked {
        None if grant.pools.is_empty() => Ok(None),
        None => {
            let message = "the contract is about pools, and the pod says for none that it is";
            Err(Refusal::new(UNKNOWN_POOL, message))
        }
        Some(asked) => match grant.pools.get_key_value(&asked) {
            Some((name, _)) => Ok(Some(name)),
            None => Err(Refusal::new(UNKNOWN_POOL, format!("the contract has no pool {asked}"))),
        },
    }
}

/// What of the contract, or of its part for the pool, a further pod would exceed.
pub(super) fn exceeded(
    index: &Index,
    grant: &Grant,
    peer: &ClusterId,
    pool: Option<&PoolName>,
    wanted: &Resources,
) -> Option<Refusal> {
    let of_pool = || {
        let account = Account { peer: peer.clone(), pool: pool.cloned() };
        let agreed = grant.pools.get(pool?)?;
        let mut refusal = super::exceeded(agreed, index.ledger.used_in(&account), wanted)?;
        refusal.message = format!("in pool {}, {}", pool?, refusal.message);
        Some(refusal)
    };
    super::exceeded(&grant.resources, index.ledger.used(peer), wanted).or_else(of_pool)
}

/// Has a pod run on the nodes of its pool.
pub(super) fn nodes(rules: &HouseRules, pool: &PoolName) -> Result<Affinity, Refusal> {
    match rules.pools.get(pool) {
        Some(terms) => Ok(on_nodes(terms.clone())),
        None => Err(Refusal::new(UNKNOWN_POOL, format!("the provider's policy has no pool {pool} any more"))),
    }
}
