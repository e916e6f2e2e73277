//! The life of a contract: who has signed, what may happen next, and what is due.
//!
//! ```text
//!              consumer signs        provider signs          amendment proposed
//!  Proposed ──────────────▶ ConsumerSigned ──────▶ Active ◀──────────────────▶ Amending
//!     │                          │                   │      signed or dropped      │
//!     └──────────────────────────┴───── ended by either side, or ──────────────────┘
//!                                       expired at its end
//! ```
//!
//! Nothing comes after `Expired` and `Ended`. That somebody does not keep a contract is told, and ends nothing by itself.
//! Telling the same thing twice changes nothing, as a crash may come between an event and its being written down.

use jiff::Timestamp;

use super::Terms;
use crate::span::Span;

#[cfg(test)]
mod tests;

/// How long before its end a contract is renewed at the earliest: a third of its last stretch, at most a day. That
/// leaves time for a peer that is away for some hours.
const RENEWAL_FRACTION: u64 = 3;
const EARLIEST_RENEWAL: u64 = 86_400;

/// How far a contract is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The provider wrote it down; nobody has signed.
    Proposed,
    /// The consumer has signed.
    ConsumerSigned,
    /// Both have signed.
    Active,
    /// Both have signed, and an amendment waits for signatures.
    Amending,
    /// It came to its end.
    Expired,
    /// Somebody ended it, or it was never signed.
    Ended,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The consumer signed the proposal.
    ConsumerSigned,
    /// The provider signed what the consumer had signed.
    ProviderSigned,
    /// Somebody proposes other terms.
    AmendmentProposed,
    /// Both signed these other terms.
    AmendmentSigned(Terms),
    /// The other terms come to nothing; the old ones stand.
    AmendmentDropped,
    /// Somebody ends the contract.
    Ended,
}

/// A contract's state, with what its future depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifecycle {
    /// How far it is.
    pub state: State,
    /// Since when.
    pub since: Timestamp,
    /// From when on the terms are valid.
    pub not_before: Timestamp,
    /// Until when.
    pub not_after: Timestamp,
    /// For how long it goes on each time it ends.
    pub renewal: Option<Span>,
}

/// An event that does not fit the state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotPossible {
    /// It cannot happen in this state.
    #[error("a contract that is {state:?} cannot take {event}")]
    State {
        /// The state.
        state: State,
        /// The event.
        event: &'static str,
    },
    /// It comes after the contract's end.
    #[error("the contract ended at {0}; nobody can sign it any more")]
    Late(Timestamp),
}

/// What has to be done now, and when to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// What has to be done now.
    pub action: Option<Action>,
    /// When something else will have to be done, if nothing happens before.
    pub next: Option<Timestamp>,
}

/// What has to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It came to its end: [`Lifecycle::expire`].
    Expire,
    /// Propose the same terms until this later end.
    Renew(Timestamp),
    /// It was not signed in time: end it, and free what is reserved.
    Abandon,
    /// The amendment was not signed in time: drop it.
    DropAmendment,
}

impl State {
    /// Whether nothing can come any more; nothing is reserved for such a contract.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Expired | Self::Ended)
    }

    /// Whether both have signed and the contract is in force.
    pub const fn is_in_force(self) -> bool {
        matches!(self, Self::Active | Self::Amending)
    }
}

impl Event {
    const fn is_signature(&self) -> bool {
        matches!(self, Self::ConsumerSigned | Self::ProviderSigned | Self::AmendmentSigned(_))
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::ConsumerSigned => "the consumer's signature",
            Self::ProviderSigned => "the provider's signature",
            Self::AmendmentProposed => "a proposed amendment",
            Self::AmendmentSigned(_) => "a signed amendment",
            Self::AmendmentDropped => "a dropped amendment",
            Self::Ended => "an end",
        }
    }
}

impl Lifecycle {
    /// A contract that was just proposed.
    pub fn proposed(terms: &Terms, now: Timestamp) -> Self {
        Self {
            state: State::Proposed,
            since: now,
            not_before: terms.not_before,
            not_after: terms.not_after,
            renewal: terms.renewal,
        }
    }

    /// What the contract is after an event.
    pub fn after(&self, event: &Event, now: Timestamp) -> Result<Self, NotPossible> {
        let next = match (self.state, event) {
            (State::Proposed, Event::ConsumerSigned) => State::ConsumerSigned,
            (State::ConsumerSigned, Event::ProviderSigned) => State::Active,
            (State::Active, Event::AmendmentProposed) => State::Amending,
            (State::Amending, Event::AmendmentSigned(_) | Event::AmendmentDropped) => State::Active,
            (State::Active, Event::AmendmentSigned(terms)) if !self.is_valid_as(terms) => State::Active,
            (state, Event::Ended) if !state.is_over() => State::Ended,
            // What is so already was told twice.
            (State::ConsumerSigned, Event::ConsumerSigned)
            | (State::Active, Event::ProviderSigned | Event::AmendmentDropped | Event::AmendmentSigned(_))
            | (State::Amending, Event::AmendmentProposed)
            | (State::Ended, Event::Ended) => return Ok(*self),
            (state, event) => return Err(NotPossible::State { state, event: event.name() }),
        };
        if event.is_signature() && now >= self.not_after {
            return Err(NotPossible::Late(self.not_after));
        }
        let moved = Self { state: next, since: now, ..*self };
        Ok(match event {
            Event::AmendmentSigned(terms) => Self {
                not_before: terms.not_before,
                not_after: terms.not_after,
                renewal: terms.renewal,
                ..moved
            },
            _ => moved,
        })
    }

    fn is_valid_as(&self, terms: &Terms) -> bool {
        (self.not_before, self.not_after, self.renewal) == (terms.not_before, terms.not_after, terms.renewal)
    }

    /// The contract after its end.
    #[must_use]
    pub fn expire(&self, now: Timestamp) -> Self {
        if self.state.is_over() { *self } else { Self { state: State::Expired, since: now, ..*self } }
    }

    /// What is due now. `signing` is how long a signature may take.
    pub fn due(&self, signing: Span, now: Timestamp) -> Due {
        if self.state.is_over() {
            return Due { action: None, next: None };
        }
        let too_late = signing.after(self.since);
        let waiting = match self.state {
            State::Proposed | State::ConsumerSigned => Some((too_late, Action::Abandon)),
            State::Amending => Some((too_late, Action::DropAmendment)),
            _ => self.renewal.map(|renewal| {
                (self.renew_at(renewal, signing), Action::Renew(renewal.after(self.not_after)))
            }),
        };
        let end = (self.not_after, Action::Expire);
        match waiting {
            _ if now >= end.0 => Due { action: Some(end.1), next: None },
            Some((at, action)) if now >= at => Due { action: Some(action), next: Some(end.0) },
            Some((at, _)) => Due { action: None, next: Some(at.min(end.0)) },
            None => Due { action: None, next: Some(end.0) },
        }
    }

    /// When to propose the renewal. After one that came to nothing there is a pause, so that it is not tried without
    /// end.
    fn renew_at(&self, renewal: Span, signing: Span) -> Timestamp {
        let lead = Span::clamped((renewal.seconds() / RENEWAL_FRACTION).min(EARLIEST_RENEWAL));
        let pause = Span::clamped(signing.seconds().min(lead.seconds() / 4));
        lead.before(self.not_after).max(pause.after(self.since))
    }
}
