//! What is put right in the memory before plans are made.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use liqo_core::ledger::Sale;
use liqo_core::names::{ClusterId, ContractId};

use super::{Deal, Index, is_copy};

/// How long a write may be under way of which nobody hears: longer than any API server works on a request.
const UNHEARD: SignedDuration = SignedDuration::from_secs(75);

/// A sale that is being signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reserved {
    pub(crate) sale: Sale,
    /// The version of the contract that is signed; of another one, nothing is.
    pub(crate) version: String,
    pub(crate) since: Timestamp,
}

impl Index {
    /// Draws IDs for the next contracts with these peers, where the last drawn one is used.
    pub(crate) fn draw_ids(&mut self, peers: &BTreeSet<ClusterId>) {
        let Self { here, links, memory, .. } = self;
        for peer in peers {
            let papers = links.get(peer).map(|link| &link.papers).into_iter().chain([&*here]);
            let used: BTreeSet<String> = papers
                .flat_map(|papers| papers.contracts.iter().map(|(_, deal)| deal.name_any()))
                .filter(|name| memory.fresh(peer).is_some_and(|id| id.as_str() == name))
                .collect();
            memory.draw(peer, |id| used.contains(id.as_str()));
        }
    }

    /// Forgets what was being signed and is seen to be signed, or cannot be any more.
    pub(crate) fn release_seen(&mut self, now: Timestamp) {
        if self.memory.reserved.is_empty() {
            return;
        }
        let over: BTreeSet<ContractId> = self
            .memory
            .reserved
            .values()
            .filter(|reserved| self.is_settled(reserved, now))
            .map(|reserved| reserved.sale.contract.clone())
            .collect();
        self.memory.release(|sale| over.contains(&sale.contract));
    }

    /// Whether a reservation is needed no more: the contract has another version than the one that was to be signed, so
    /// that either it is signed, which the contract itself says, or nothing was.
    fn is_settled(&self, reserved: &Reserved, now: Timestamp) -> bool {
        let Some(deal) = self.original(&reserved.sale) else { return true };
        let unheard = reserved.since.saturating_add(UNHEARD).is_ok_and(|until| until <= now);
        deal.is_over() || deal.resource_version().as_deref() != Some(&reserved.version) || unheard
    }

    fn original(&self, sale: &Sale) -> Option<&Deal> {
        let name = sale.contract.as_str();
        let lies_here = self.tenants.group(&sale.peer).find_map(|(_, tenant)| {
            let mut deals = self.here.contracts.in_namespace(&tenant.name).map(|(_, deal)| deal);
            deals.find(|deal| deal.name_any() == name && !is_copy(&***deal))
        });
        lies_here.or_else(|| {
            let link = self.links.get(&sale.peer)?;
            let mut deals = link.papers.contracts.iter().map(|(_, deal)| deal);
            deals.find(|deal| deal.name_any() == name)
        })
    }
}
