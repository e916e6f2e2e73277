//! Whether what was signed is kept: capacity by us, restraint by the peer.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::ResourceExt;
use liqo_api::conditions;
use liqo_api::contract::{CAPACITY_BACKED, ContractStatus, WITHIN_AGREED};
use liqo_core::Resources;
use liqo_core::contract::{Alarm, findings};
use liqo_core::ledger::Sale;
use liqo_core::names::{ClusterId, ContractId};
use liqo_core::policy::shortages;

use super::{Lending, ledger};
use crate::Settings;
use crate::events::Report;
use crate::index::{Deal, Doubt, Index};
use crate::places::{Me, Planned};
use crate::standing::{condition, is_true};

/// Looks at what is promised, there and used, and remembers what speaks against the contracts in force. Returns when
/// something will have been wrong, or right, for long enough; peers of whom there is something to tell are touched.
pub(crate) fn observe(index: &mut Index, me: &Me, settings: &Settings, now: Timestamp) -> Option<Timestamp> {
    let ledger = ledger(index, me);
    let (policies, capacity) = (index.stock.policies(), index.stock.capacity());
    let missing: BTreeMap<ContractId, Resources> = shortages(policies, capacity, &ledger)
        .into_iter()
        .map(|shortage| (shortage.contract, shortage.missing))
        .collect();
    let told = told(index, me);
    let mut doubts = BTreeMap::new();
    let mut touched: BTreeSet<ClusterId> = BTreeSet::new();
    let mut next: Option<Timestamp> = None;
    for sale in ledger.sales() {
        let Some((backed, restrained)) = told.get(&sale.contract) else { continue };
        let missing = missing.get(&sale.contract).cloned().unwrap_or_default();
        let doubt = observe_one(index, sale, missing, (*backed, *restrained), settings, now);
        let settles = [doubt.backing, doubt.restraint].map(|alarm| alarm.settles(settings.delays));
        next = next.into_iter().chain(settles.into_iter().flatten()).min();
        if index.memory.doubts.get(&sale.contract) != Some(&doubt) {
            touched.insert(sale.peer.clone());
        }
        doubts.insert(sale.contract.clone(), doubt);
    }
    index.memory.doubts = doubts;
    touched.iter().for_each(|peer| index.touch(peer));
    next
}

/// What the contracts in force tell: whether both sides keep them.
fn told(index: &Index, me: &Me) -> BTreeMap<ContractId, (bool, bool)> {
    let deals = index.here.contracts.iter().map(|(_, deal)| deal);
    let ours = deals.filter(|deal| deal.spec.provider_id == me.id().as_str() && deal.agreed.is_some());
    let is = |deal: &Deal, kind: &str| deal.condition(kind).is_none_or(is_true);
    ours.filter_map(|deal| Some((deal.id()?, (is(deal, CAPACITY_BACKED), is(deal, WITHIN_AGREED))))).collect()
}

fn observe_one(
    index: &Index,
    sale: &Sale,
    missing: Resources,
    (backed, restrained): (bool, bool),
    settings: &Settings,
    now: Timestamp,
) -> Doubt {
    let used = index.stock.capacity().used_anywhere_by(sale.peer.as_str());
    // What is missing is known already, node by node; here only the use is held against the contract.
    let overuse = findings(&sale.resources, &sale.resources, &used).overuse;
    let before = index.memory.doubts.get(&sale.contract);
    let alarm = |told: bool, before: Option<Alarm>| Alarm {
        raised: !told,
        doubted_since: before.and_then(|before| before.doubted_since),
    };
    let backing = alarm(backed, before.map(|doubt| doubt.backing));
    let restraint = alarm(restrained, before.map(|doubt| doubt.restraint));
    let (backing, _) = backing.observe(!missing.is_empty(), settings.delays, now);
    let (restraint, _) = restraint.observe(!overuse.is_empty(), settings.delays, now);
    Doubt { missing, overuse, backing, restraint }
}

/// What the condition says while all is well.
pub(super) fn kept(kind: &str) -> &'static str {
    if kind == CAPACITY_BACKED {
        "the provider has what it promised"
    } else {
        "no more is used than was agreed on"
    }
}

/// Puts into the contract's status what is known of its being kept.
pub(super) fn tell(lending: &Lending<'_>, deal: &Deal, status: &mut ContractStatus, planned: &mut Planned) {
    let Some(id) = deal.id() else { return };
    let Some(doubt) = lending.view.index.memory.doubts.get(&id) else { return };
    let aspects = [
        (CAPACITY_BACKED, doubt.backing, &doubt.missing, "CapacityMissing", "is promised and not there"),
        (WITHIN_AGREED, doubt.restraint, &doubt.overuse, "UsedBeyond", "is used beyond what was agreed on"),
    ];
    for (kind, alarm, what, reason, words) in aspects {
        let earlier = status.conditions.iter().find(|it| it.type_ == kind);
        let was = earlier.is_none_or(is_true);
        if was != alarm.raised {
            // It is told already; how much of it there is changes all the time.
            continue;
        }
        let (reason, message) =
            if alarm.raised { (reason, format!("{what} {words}")) } else { ("Kept", kept(kind).to_owned()) };
        let since = earlier.map_or(Timestamp::UNIX_EPOCH, |it| it.last_transition_time.0);
        conditions::set(
            &mut status.conditions,
            condition(kind, !alarm.raised, reason, &message, None),
            lending.view.now,
        );
        planned.step(report(lending, deal, kind, alarm.raised, &message, since));
    }
}

fn report(
    lending: &Lending<'_>,
    deal: &Deal,
    kind: &str,
    raised: bool,
    message: &str,
    since: Timestamp,
) -> crate::steps::Step {
    let (name, peer) = (deal.name_any(), lending.peer.name());
    let report = match (kind == CAPACITY_BACKED, raised) {
        (true, true) => {
            Report::new("CapacityMissing", format!("contract {name} with {peer}: {message}"), since)
        }
        (false, true) => {
            Report::new("UsedBeyondAgreed", format!("contract {name} with {peer}: {message}"), since)
        }
        (true, false) => {
            Report::new("CapacityBack", format!("contract {name} with {peer} is backed again"), since)
        }
        (false, false) => {
            Report::new("UsedAsAgreed", format!("contract {name} with {peer} is kept again"), since)
        }
    };
    if raised { report.warning() } else { report }.about(lending.view, lending.peer.cluster)
}
