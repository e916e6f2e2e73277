//! What each party owes, and whether it is kept.
//!
//! The provider owes capacity: of each resource at least what was agreed must be backed by nodes. The consumer owes
//! restraint: it must not use more than was agreed, and nothing that was not.
//!
//! A node that restarts is no breach. An [`Alarm`] is raised when something is wrong for a while without a break, and
//! cleared when it is right for a while without a break.

use jiff::Timestamp;

use crate::resources::Resources;
use crate::span::Span;

#[cfg(test)]
mod tests;

/// What is not kept at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Promised by the provider and not there.
    pub missing: Resources,
    /// Used by the consumer and not agreed.
    pub overuse: Resources,
}

/// What is not kept of a contract about `agreed`, when `backed` of it is there and `used` is used.
pub fn findings(agreed: &Resources, backed: &Resources, used: &Resources) -> Findings {
    Findings { missing: agreed.lacking_in(backed).capped_by(agreed), overuse: used.lacking_in(agreed) }
}

/// How long something must be so before it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delays {
    /// Wrong for so long: raised.
    pub raise_after: Span,
    /// Right for so long: cleared.
    pub clear_after: Span,
}

impl Default for Delays {
    fn default() -> Self {
        // A node's restart takes a minute or two; whoever watches should not wait longer than that for the all-clear.
        Self { raise_after: Span::clamped(120), clear_after: Span::clamped(60) }
    }
}

/// Whether one party's obligation is told as broken. Part of a contract's state; small enough for a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Alarm {
    /// Whether it is raised.
    pub raised: bool,
    /// Since when what is seen speaks against that, without a break.
    pub doubted_since: Option<Timestamp>,
}

/// What became of an alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was raised.
    Raised,
    /// It was cleared.
    Cleared,
}

impl Alarm {
    /// The alarm after something was seen, and whether it was raised or cleared by that.
    pub fn observe(self, broken: bool, delays: Delays, now: Timestamp) -> (Self, Option<Change>) {
        if broken == self.raised {
            return (Self { doubted_since: None, ..self }, None);
        }
        // A clock that was put back must not make anybody wait.
        let since = self.doubted_since.map_or(now, |since| since.min(now));
        let doubted = Self { doubted_since: Some(since), ..self };
        match doubted.settles(delays) {
            Some(at) if at <= now => {
                let change = if broken { Change::Raised } else { Change::Cleared };
                (Self { raised: broken, doubted_since: None }, Some(change))
            }
            _ => (doubted, None),
        }
    }

    /// When the alarm changes if nothing else is seen until then.
    pub fn settles(&self, delays: Delays) -> Option<Timestamp> {
        let delay = if self.raised { delays.clear_after } else { delays.raise_after };
        self.doubted_since.map(|since| delay.after(since))
    }
}
