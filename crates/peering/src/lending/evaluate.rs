//! What the policies say, and what is sold.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use liqo_api::annotations;
use liqo_core::Resources;
use liqo_core::ledger::{Ledger, Pot, Sale};
use liqo_core::names::ClusterId;
use liqo_core::policy::{self, Peer as Asker, Verdict};

use crate::copies;
use crate::index::{Deal, Index, created, is_copy};
use crate::places::{Me, Peer, View};

/// Annotation on our copy of a contract at a peer: our signature of what it proposes, from before it is given.
const RESERVED: &str = "sharing.liqo.io/provider-signature";

/// Annotation on our copy of a contract at a peer: the policy that it is sold by, for when the peer is out of reach.
pub const SOLD_BY: &str = "sharing.liqo.io/policy";

/// What our copy of a contract notes before we sign the original.
pub(crate) fn reservation(signature: &str, pot: &Pot) -> Vec<(String, String)> {
    let policy = pot.iter().map(|policy| (SOLD_BY.to_owned(), policy.clone()));
    policy.chain([(RESERVED.to_owned(), signature.to_owned())]).collect()
}

/// What the policies say about this peer.
pub(crate) fn evaluate(view: &View<'_>, peer: &Peer<'_>, wants: &Resources) -> Arc<Verdict> {
    let asker = Asker {
        id: peer.id.clone(),
        labels: peer.cluster.labels().clone().into_iter().collect(),
        approved: peer.is(annotations::APPROVED),
        wants: wants.clone(),
    };
    let (index, now) = (view.index, view.now);
    let stock = &index.stock;
    let question = crate::index::Question {
        peer: asker.clone(),
        stock: stock.revision(),
        book: index.memory.revision(),
        from: now,
        until: policy::next_change(stock.policies(), now).unwrap_or(Timestamp::MAX),
    };
    index.memory.evaluation(question, now, || {
        let ledger = ledger(view.index, view.me);
        let percentage = view.settings.percentage;
        policy::evaluate(stock.policies(), percentage, &asker, stock.capacity(), &ledger, now).verdict
    })
}

/// What is sold: what both signed, what we are about to sign, and what we signed and nobody has told us of yet.
pub(crate) fn ledger(index: &Index, me: &Me) -> Arc<Ledger> {
    index.memory.ledger(|| {
        let pots = pots(index, me);
        let pot_of = |peer: &ClusterId, deal: &Deal| {
            let noted = || deal.annotations().get(SOLD_BY).filter(|_| is_copy(&**deal)).cloned();
            pots.get(peer).cloned().unwrap_or_else(noted)
        };
        let deals = index.here.contracts.iter().map(|(_, deal)| deal);
        let known = deals.flat_map(|deal| sales(index, me, deal, &pot_of));
        let reserved = index.memory.reserved.values().map(|reserved| (reserved.sale.clone(), false));
        known.chain(reserved).collect()
    })
}

/// The policy that each peer is offered something by.
pub(crate) fn pots(index: &Index, me: &Me) -> BTreeMap<ClusterId, Pot> {
    let here = index.tenants.store().iter().filter_map(|(_, tenant)| {
        let mut offers = index.here.offers.in_namespace(&tenant.name).map(|(_, bid)| bid);
        let ours = offers.find(|bid| bid.is_from(me.id()) && !is_copy(&***bid))?;
        Some((tenant.peer.clone(), ours.spec.policy.clone()))
    });
    let there = index.links.iter().filter_map(|(peer, link)| {
        let mut offers = link.papers.offers.in_namespace(&link.namespace).map(|(_, bid)| bid);
        let ours = offers.find(|bid| bid.is_from(me.id()))?;
        Some((peer.clone(), ours.spec.policy.clone()))
    });
    there.chain(here).collect()
}

/// What a contract has sold, standing or about to be.
fn sales(
    index: &Index,
    me: &Me,
    deal: &Deal,
    pot_of: &impl Fn(&ClusterId, &Deal) -> Pot,
) -> Vec<(Sale, bool)> {
    if deal.is_over() || deal.spec.provider_id != me.id().as_str() {
        return Vec::new();
    }
    let since = created(&**deal);
    let sale = |terms: &liqo_core::contract::Terms| Sale::of(terms, pot_of(&terms.consumer.id, deal), since);
    let agreed = deal.agreed_terms().zip(deal.signed()).filter(|(terms, signed)| {
        is_of(deal, terms) && is_ours(index, me, terms, &signed.provider_signature)
    });
    let reserved = deal.annotations().get(RESERVED).filter(|_| is_copy(&**deal));
    let reserved = deal
        .proposed
        .as_ref()
        .ok()
        .zip(reserved)
        .filter(|(terms, signature)| is_of(deal, terms) && is_ours(index, me, terms, signature));
    let standing = agreed.map(|(terms, _)| (sale(terms), true));
    let coming = reserved.map(|(terms, _)| (sale(terms), false));
    standing.into_iter().chain(coming).collect()
}

/// Whether the terms are those of this object and this peer: what we signed elsewhere sells nothing here.
fn is_of(deal: &Deal, terms: &liqo_core::contract::Terms) -> bool {
    terms.contract.as_str() == deal.name_any() && terms.consumer.id.as_str() == deal.spec.consumer_id
}

/// Whether we signed this.
fn is_ours(index: &Index, me: &Me, terms: &liqo_core::contract::Terms, signature: &str) -> bool {
    copies::is_signed_by(&index.memory, &me.party.key, terms, signature)
}
