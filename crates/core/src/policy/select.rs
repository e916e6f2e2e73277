//! Which policy applies to a cluster, and if none does, what it lacks.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use jiff::Timestamp;

use super::explain::Lines;
use super::{Action, Cause, Peer, Policy, Refusal};
use crate::ledger::Pot;

/// Policies named in a refusal; more would not help.
const SHOWN_POLICIES: usize = 3;

/// What applies.
pub(super) enum Choice<'a> {
    /// A policy that permits.
    Policy(&'a Policy),
    /// The cluster's own percentage.
    Default,
    /// Nothing.
    Refuse(Refusal),
}

pub(super) fn select<'a>(
    policies: &'a [Policy],
    peer: &Peer,
    now: Timestamp,
    lines: &mut Lines,
) -> Choice<'a> {
    let mut about: Vec<&Policy> = policies.iter().filter(|policy| policy.lacking(peer).is_none()).collect();
    about.sort_by_key(|policy| (Reverse(policy.specificity()), policy.action, policy.name.clone()));
    let in_force = |policy: &&Policy| !policy.problems.is_empty() || policy.in_time(now);
    let Some(position) = about.iter().position(in_force) else {
        return nobody(policies, &about, peer, now, lines);
    };
    for policy in &about[..position] {
        lines.say(format!("{}, so that it does not apply now", policy.out_of_time(now)));
    }
    let chosen = about[position];
    lines.say(format!("policy {} applies: {}", chosen.name, chosen.because(about.len())));
    if let Some(problem) = chosen.problems.first() {
        let message = format!("policy {} is not valid: {problem}", chosen.name);
        return Choice::Refuse(Refusal { cause: Cause::InvalidPolicy, message });
    }
    match chosen.action {
        Action::Allow => Choice::Policy(chosen),
        Action::Deny => {
            let message = format!("policy {} denies this cluster", chosen.name);
            Choice::Refuse(Refusal { cause: Cause::Denied, message })
        }
    }
}

/// The pots that can be sold from.
pub(super) fn pots(policies: &[Policy]) -> BTreeSet<Pot> {
    let permitting = policies.iter().filter(|policy| policy.permits());
    let pots: BTreeSet<Pot> = permitting.map(|policy| Some(policy.name.clone())).collect();
    if pots.is_empty() { [None].into() } else { pots }
}

/// No policy applies.
fn nobody<'a>(
    policies: &[Policy],
    about: &[&Policy],
    peer: &Peer,
    now: Timestamp,
    lines: &mut Lines,
) -> Choice<'a> {
    if !policies.iter().any(Policy::permits) {
        lines.say(
            "no policy permits or denies anything for this cluster: the cluster's own percentage applies",
        );
        return Choice::Default;
    }
    let waiting: Vec<String> =
        about.iter().filter(|policy| policy.permits()).map(|policy| policy.out_of_time(now)).collect();
    let (cause, reasons) = if waiting.is_empty() {
        let permitting = policies.iter().filter(|policy| policy.permits());
        (Cause::NotSelected, permitting.filter_map(|policy| policy.lacking(peer)).collect())
    } else {
        (Cause::OutsideTime, waiting)
    };
    for reason in &reasons {
        lines.say(reason.clone());
    }
    Choice::Refuse(Refusal { cause, message: first_few(&reasons) })
}

fn first_few(reasons: &[String]) -> String {
    let shown = reasons.iter().take(SHOWN_POLICIES).cloned().collect::<Vec<_>>().join("; ");
    match reasons.len().saturating_sub(SHOWN_POLICIES) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

impl Policy {
    /// Whether anybody could get anything by it. One that is not valid is taken for one that could: as if it were
    /// not there, the cluster's own percentage would apply.
    fn permits(&self) -> bool {
        self.action == Action::Allow || !self.problems.is_empty()
    }

    /// Why the policy is not about this cluster; `None` if it is.
    fn lacking(&self, peer: &Peer) -> Option<String> {
        if !self.peers.ids.is_empty() && !self.peers.ids.contains(&peer.id) {
            // Whom else we deal with is none of the peer's business.
            return Some(format!("policy {} is for other clusters", self.name));
        }
        let unmet = self.peers.labels.first_unmet(&peer.labels)?;
        Some(format!("policy {} needs label {unmet}", self.name))
    }

    /// Larger for a policy that says more exactly whom it is about.
    fn specificity(&self) -> (bool, usize) {
        (!self.peers.ids.is_empty(), self.peers.labels.len())
    }

    fn because(&self, candidates: usize) -> String {
        let whom = match (self.peers.ids.is_empty(), self.peers.labels.is_empty()) {
            (false, true) => "it names this cluster's ID".to_owned(),
            (false, false) => format!("it names this cluster's ID and needs {}", self.peers.labels),
            (true, false) => format!("this cluster has {}", self.peers.labels),
            (true, true) => "it is for any cluster".to_owned(),
        };
        if candidates > 1 { format!("{whom}, the most specific of {candidates}") } else { whom }
    }
}
