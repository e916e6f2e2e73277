//! Emptying a node: nothing new comes, what is there is asked to leave, then must, and then the node goes.

use jiff::{SignedDuration, Timestamp};
use liqo_api::annotations;

use super::{Planned, Stand, Step, View, What, draining_since};
use crate::node::Facts;

/// How long pods that must leave are waited for before the node goes without them: longer than most of them take to end.
const END: SignedDuration = SignedDuration::from_secs(30);

/// A node that is being emptied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draining {
    /// Which.
    pub(crate) node: String,
    /// Since when.
    pub(crate) since: Timestamp,
    /// Whether pods must leave, whatever their budgets say.
    pub(crate) must: bool,
}

/// Whether a node is to be emptied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It stays.
    No,
    /// It may have to, at this time.
    Soon(Timestamp),
    /// Somebody wants it empty.
    Emptied,
    /// It goes.
    ForGood,
}

impl Leaving {
    /// Whether its pods have to leave.
    pub(super) const fn empties(self) -> bool {
        matches!(self, Self::Emptied | Self::ForGood)
    }
}

/// Whether this node is to be emptied, and why.
pub(super) fn leaving(view: &View<'_>, stand: &Stand<'_>, facts: &Facts) -> Leaving {
    let by_hand = || match facts.annotations.get(annotations::DRAIN) {
        Some(_) => Leaving::Emptied,
        None => Leaving::No,
    };
    match stand.lent {
        Some(part) if part.by.ending => Leaving::ForGood,
        Some(_) => by_hand(),
        None => {
            // Who leads anew has not noticed yet; it is noticed before anything is planned.
            let since = view.index.absent.get(stand.place).copied().unwrap_or(view.now);
            let end = since.saturating_add(view.settings.absence).unwrap_or(view.now);
            if end <= view.now { Leaving::ForGood } else { Leaving::Soon(end) }
        }
    }
}

/// How the emptying goes on, where it has begun.
pub(super) fn progress(view: &View<'_>, name: &str, facts: &Facts, leaving: &Leaving) -> Planned {
    if let Leaving::Soon(at) = leaving {
        return Planned { wake: Some(*at), ..Planned::default() };
    }
    let Some(since) = draining_since(facts).filter(|_| leaving.empties()) else { return Planned::default() };
    let must_at = since.saturating_add(view.settings.eviction).unwrap_or(view.now);
    let end = must_at.saturating_add(END).unwrap_or(view.now);
    let empty = view.index.emptied.get(name).is_some_and(|it| it.since == since && it.left == 0);
    let draining = Draining { node: name.to_owned(), since, must: view.now >= must_at };
    if *leaving != Leaving::ForGood {
        return Planned { draining: Some(draining), ..Planned::default() };
    }
    if empty || view.now >= end {
        let step = Step { node: name.to_owned(), what: What::Delete(facts.uid.clone()) };
        return Planned { steps: vec![step], ..Planned::default() };
    }
    Planned { draining: Some(draining), wake: Some(end), ..Planned::default() }
}
