//! When a provider did not answer, as its virtual node notes it.
//!
//! The room that shows providers as nodes writes it, the one that brings pods back to them reads it.

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::annotations::LAST_OUTAGE;

#[cfg(test)]
mod tests;

/// Outages that are nearer to each other than this count as one: pods that were moved in the first had no time to go back.
const ONE_OUTAGE: SignedDuration = SignedDuration::from_mins(10);

/// When a provider did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outage {
    /// From when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

impl Outage {
    /// One that is over, in whole seconds, together with the `former` one if that was just before.
    pub fn new(from: Timestamp, until: Timestamp, former: Option<Self>) -> Self {
        let second = |time: Timestamp| Timestamp::from_second(time.as_second()).unwrap_or(time);
        let soon = |former: &Self| from.duration_since(former.until) < ONE_OUTAGE;
        let begin = former.filter(soon).map_or(from, |former| former.from.min(from));
        Self { from: second(begin).min(second(until)), until: second(until) }
    }

    /// The one that the annotations of a node tell of.
    pub fn read(annotations: &BTreeMap<String, String>) -> Option<Self> {
        let (from, until) = annotations.get(LAST_OUTAGE)?.split_once('/')?;
        let (from, until) = (from.parse().ok()?, until.parse().ok()?);
        (from <= until).then_some(Self { from, until })
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.from, self.until)
    }
}
