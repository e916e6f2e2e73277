//! Whose turn it is to be asked.

use std::collections::BTreeMap;
use std::time::Duration;

use liqo_core::names::ClusterId;
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// How soon a provider is asked again that is new, has just not answered, or answers again: so that it is known in time.
const IN_DOUBT: Duration = Duration::from_millis(500);

/// When each was asked last.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    turns: BTreeMap<ClusterId, Turn>,
    busy: usize,
}

/// When one was asked last, and when that ended.
#[derive(Clone, Copy, Debug)]
struct Turn {
    began: Instant,
    ended: Option<Instant>,
}

impl Turns {
    /// How many are being asked.
    pub(crate) const fn busy(&self) -> usize {
        self.busy
    }

    /// When it is this one's turn, in a round of so long; `None` while it is being asked.
    pub(crate) fn due(
        &self,
        id: &ClusterId,
        in_doubt: bool,
        round: Duration,
        now: Instant,
    ) -> Option<Instant> {
        let Some(Turn { began, ended }) = self.turns.get(id) else { return Some(now) };
        let ended = (*ended)?;
        Some(if in_doubt { ended + IN_DOUBT } else { *began + round })
    }

    /// When it was asked last; `None` sorts first, and is who never was.
    pub(crate) fn last(&self, id: &ClusterId) -> Option<Instant> {
        self.turns.get(id).map(|turn| turn.began)
    }

    /// It is asked now.
    pub(crate) fn begin(&mut self, id: &ClusterId, now: Instant) {
        self.busy += 1;
        self.turns.insert(id.clone(), Turn { began: now, ended: None });
    }

    /// It has answered, or has not for too long.
    pub(crate) fn end(&mut self, id: &ClusterId, now: Instant) {
        self.busy = self.busy.saturating_sub(1);
        if let Some(turn) = self.turns.get_mut(id) {
            turn.ended = Some(now);
        }
    }

    /// Forgets all others that are not being asked.
    pub(crate) fn keep(&mut self, lends: impl Fn(&ClusterId) -> bool) {
        self.turns.retain(|id, turn| turn.ended.is_none() || lends(id));
    }
}
