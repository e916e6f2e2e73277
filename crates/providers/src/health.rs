//! Whether a provider answers, judged with patience in both directions.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

#[cfg(test)]
mod tests;

/// Who was given up is asked as often as one in doubt for so long after its last answer: pods wait 12 s for a provider that
/// counts as gone, and one that was silent for 10 s must count as back before that.
const LATELY: Duration = Duration::from_secs(20);

/// How patient we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// How long nothing may succeed before a provider counts as gone. A blip of less moves nothing.
    pub(crate) down_after: Duration,
    /// How long everything must succeed before one that was gone counts as back.
    pub(crate) up_after: Duration,
}

/// Whether a provider answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Not asked yet, or not for long enough to say.
    #[default]
    Unknown,
    /// It does.
    Reachable,
    /// It does not.
    Unreachable {
        /// When it last did, or when we began to ask.
        since: Timestamp,
        /// What happens when it is asked.
        why: Arc<str>,
    },
}

impl Health {
    /// Whether it certainly does not answer.
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

/// What was measured of one provider.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// When it last answered, or when we began to ask.
    answered: Timestamp,
    /// Since when every answer was good; `None` if the last was not.
    steady: Option<Timestamp>,
    /// Why the last one was not.
    why: Arc<str>,
    health: Health,
}

impl Record {
    /// Nothing yet; asking begins now.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self { answered: now, steady: None, why: Arc::from("not asked yet"), health: Health::Unknown }
    }

    /// What follows from all that was measured.
    pub(crate) const fn health(&self) -> &Health {
        &self.health
    }

    /// Whether the next answer may change what is thought of it: it has just not answered, or was given up not long ago, or
    /// answers again and must do so for a while.
    pub(crate) fn is_in_doubt(&self, now: Timestamp) -> bool {
        let lately = || Duration::try_from(now.duration_since(self.answered)).is_ok_and(|it| it < LATELY);
        match (self.health.is_gone(), self.steady) {
            (false, steady) => steady.is_none(),
            (true, steady) => steady.is_some() || lately(),
        }
    }

    /// Nobody could ask: that silence is not held against it.
    pub(crate) fn excuse(&mut self, now: Timestamp) {
        self.answered = self.answered.max(now);
    }

    /// Takes in how a request ended. Returns whether the judgement changed.
    pub(crate) fn observe(&mut self, answer: Result<(), String>, now: Timestamp, patience: Patience) -> bool {
        match answer {
            Ok(()) => {
                self.answered = self.answered.max(now);
                self.steady.get_or_insert(now);
            }
            Err(why) => {
                self.steady = None;
                if *self.why != *why {
                    self.why = why.into();
                }
            }
        }
        let judged = self.judge(now, patience);
        let changed = judged.is_gone() != self.health.is_gone() || self.health == Health::Unknown;
        // While it is gone, the first reason and time stay: what changes every second tells nobody more.
        if changed && judged != self.health {
            self.health = judged;
            return true;
        }
        false
    }

    fn judge(&self, now: Timestamp, patience: Patience) -> Health {
        let for_at_least = |since: Timestamp, span: Duration| {
            Duration::try_from(now.duration_since(since)).is_ok_and(|passed| passed >= span)
        };
        let gone = || Health::Unreachable { since: self.answered, why: Arc::clone(&self.why) };
        match (&self.health, self.steady) {
            (Health::Unreachable { .. }, Some(since)) if for_at_least(since, patience.up_after) => {
                Health::Reachable
            }
            (Health::Unreachable { .. }, _) => self.health.clone(),
            (_, Some(_)) => Health::Reachable,
            (_, None) if for_at_least(self.answered, patience.down_after) => gone(),
            (health, None) => health.clone(),
        }
    }
}
