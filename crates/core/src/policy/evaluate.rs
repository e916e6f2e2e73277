//! The whole question: what is this cluster offered now?

use jiff::Timestamp;

use super::amounts::{PODS, Question};
use super::explain::Lines;
use super::nodes::Nodes;
use super::select::{self, Choice};
use super::{Cause, Conditions, Evaluation, Extras, Offer, Peer, Percent, Policy, Refusal, Sharing, Verdict};
use crate::capacity::Capacity;
use crate::ledger::{Ledger, Pot};
use crate::names::PoolName;
use crate::pools::Pool;
use crate::resources::Resources;

/// What `peer` is offered now, and how that comes about.
///
/// `default_percentage` is what is shared where there is no policy at all.
pub fn evaluate(
    policies: &[Policy],
    default_percentage: Percent,
    peer: &Peer,
    capacity: &Capacity,
    ledger: &Ledger,
    now: Timestamp,
) -> Evaluation {
    let mut lines = Lines::default();
    let choice = select::select(policies, peer, now, &mut lines);
    let sharing_without_policy = Sharing::default();
    let (policy, sharing) = match choice {
        Choice::Refuse(refusal) => return refused(refusal, lines),
        Choice::Default => (None, &sharing_without_policy),
        Choice::Policy(policy) => (Some(policy), &policy.sharing),
    };
    let pot: Pot = policy.map(|policy| policy.name.clone());
    let pots = select::pots(policies);
    let question = Question { sharing, default_percentage, pot: pot.clone(), pots, peer, capacity, ledger };
    let amounts = question.answer(&mut lines);
    if is_nothing(&amounts.offered) {
        let of = pot.map_or_else(String::new, |name| format!(" by policy {name}"));
        let message = format!("nothing is left to share{of}: no free capacity, or all of it is sold");
        return refused(Refusal { cause: Cause::NothingLeft, message }, lines);
    }
    if let Some(policy) = policy.filter(|policy| policy.needs_approval && !peer.approved) {
        let message = format!("policy {} needs somebody's approval for this cluster", policy.name);
        lines.say(message.clone());
        return Evaluation { verdict: Verdict::NeedsApproval(message), lines: lines.into_vec() };
    }
    let ends = policy.and_then(|policy| policy.ends(now));
    let offered = amounts.offered;
    let of_pool = |(name, pool): (&PoolName, &Pool)| {
        (name.clone(), capacity.largest_pod(&Nodes::Pool(sharing, name), &pool.resources))
    };
    let largest_pods = amounts.pools.iter().map(of_pool).collect();
    let prices = policy.and_then(|policy| policy.prices.as_ref());
    let offer = Offer {
        policy: pot,
        pools: amounts.pools,
        largest_pod: capacity.largest_pod(&Nodes::Shared(sharing), &offered),
        largest_pods,
        prices: prices.map(|prices| prices.only(|name| offered.get(name.as_str()).is_some())),
        extras: policy.map_or_else(Extras::default, |policy| policy.extras.clone()),
        conditions: policy.map_or_else(Conditions::default, |policy| policy.conditions.clone()),
        ends,
        limits: amounts.limits,
        resources: offered,
    };
    explain_terms(&offer, &mut lines);
    Evaluation { verdict: Verdict::Offer(Box::new(offer)), lines: lines.into_vec() }
}

fn refused(refusal: Refusal, mut lines: Lines) -> Evaluation {
    lines.say(format!("refused: {}", refusal.message));
    Evaluation { verdict: Verdict::Refuse(refusal), lines: lines.into_vec() }
}

/// Places for pods alone are no offer.
fn is_nothing(offered: &Resources) -> bool {
    offered.iter().all(|(name, amount)| name.as_str() == PODS || amount.is_zero())
}

fn explain_terms(offer: &Offer, lines: &mut Lines) {
    lines.say(format!("largest single pod that fits now: {}", offer.largest_pod.on_one_node));
    for (name, largest) in &offer.largest_pods {
        lines.say(format!("largest single pod that fits into pool {name} now: {}", largest.on_one_node));
    }
    match &offer.prices {
        None => lines.say("free of charge"),
        Some(prices) => match prices.total(&offer.resources) {
            Ok(total) => lines.say(format!("costs {} {total} if all is taken", prices.currency())),
            Err(problem) => lines.say(problem.to_string()),
        },
    }
    if let Some(ends) = offer.ends {
        lines.say(format!("ends at {ends} at the latest: the window closes, or the policy ends"));
    }
}
