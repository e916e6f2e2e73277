//! A log that cannot be changed unnoticed: every entry holds the hash of the one before.
//!
//! Each cluster keeps one log of what happened to its contracts. Whoever has seen the hash of the last entry once can
//! tell later whether anything before it was changed, left out or put in between.
//!
//! # The bytes
//!
//! An entry's hash is a [`canonical`] digest with the domain `liqo.io/contract-log/v1` of the object
//! with these fields, all of them texts:
//!
//! | field | what |
//! |---|---|
//! | `index` | `0`, `1`, `2`, … |
//! | `time` | RFC 3339 in UTC, whole seconds; never earlier than that of the entry before |
//! | `contract` | the contract's ID |
//! | `digest` | the digest of the terms that it is about |
//! | `event` | `proposed`, `signed`, `amended`, `renewed`, `expired`, `ended`, `breached` or `kept` |
//! | `previous` | the hash of the entry before; of the first one [`genesis`] |
//!
//! The log of a cluster begins with the digest, with the domain `liqo.io/contract-log-genesis/v1`, of its cluster ID, so
//! that the log of one cluster cannot be passed off as another's.

use jiff::Timestamp;

use crate::canonical::{self, Digest};
use crate::names::{ClusterId, ContractId};

#[cfg(test)]
mod tests;
mod text;

pub use text::InvalidEntry;

const ENTRY_DOMAIN: &str = "liqo.io/contract-log/v1";
const GENESIS_DOMAIN: &str = "liqo.io/contract-log-genesis/v1";

/// What happened to a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// It was proposed.
    Proposed,
    /// Both have signed.
    Signed,
    /// Both have signed other amounts or terms.
    Amended,
    /// Both have signed a later end.
    Renewed,
    /// It came to its end.
    Expired,
    /// Somebody ended it.
    Ended,
    /// It is not kept.
    Breached,
    /// It is kept again.
    Kept,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number, from 0.
    pub index: u64,
    /// When, in whole seconds.
    pub time: Timestamp,
    /// The contract.
    pub contract: ContractId,
    /// The digest of the terms.
    pub digest: Digest,
    /// What happened.
    pub event: Event,
    /// The hash of the entry before.
    pub previous: Digest,
    /// The hash of all of the above.
    pub hash: Digest,
}

/// Where a log ends: what the next entry ties in with, and what a witness keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many entries there are.
    pub length: u64,
    /// The hash of the last one.
    pub hash: Digest,
    /// When that was; the beginning of time if there is none.
    pub time: Timestamp,
}

/// Where a log is broken first, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log is broken at entry {index}: {problem}")]
pub struct Broken {
    /// The index at which it is broken.
    pub index: u64,
    /// Why.
    pub problem: Problem,
}

/// Why a log is broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// An entry is missing, double or in the wrong place.
    #[error("an entry numbered {0} is in its place")]
    Number(u64),
    /// An entry was changed.
    #[error("it was changed: its hash is not that of what it says")]
    Changed,
    /// The entry before was changed together with its hash, or another one was put in its place.
    #[error("the entry before was replaced: its hash is not the one that was written down here")]
    Replaced,
    /// Time went backwards.
    #[error("it is earlier than the entry before")]
    Time,
    /// A time that has no canonical form.
    #[error("its time is not a whole second")]
    Fraction,
    /// The end is not the one that was seen before.
    #[error(
        "the log ended there with another entry when it was last seen, or entries are missing at the end"
    )]
    End,
}

/// What the first entry of a cluster's log holds as the hash of the one before.
pub fn genesis(cluster: &ClusterId) -> Digest {
    Digest::of(GENESIS_DOMAIN, cluster.as_str().as_bytes())
}

impl Event {
    const ALL: [Self; 8] = [
        Self::Proposed,
        Self::Signed,
        Self::Amended,
        Self::Renewed,
        Self::Expired,
        Self::Ended,
        Self::Breached,
        Self::Kept,
    ];

    /// The event as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::Signed => "signed",
            Self::Amended => "amended",
            Self::Renewed => "renewed",
            Self::Expired => "expired",
            Self::Ended => "ended",
            Self::Breached => "breached",
            Self::Kept => "kept",
        }
    }

    /// The event that is written so.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == text)
    }
}

impl Entry {
    /// The hash of what the entry says, whatever hash it holds.
    pub fn compute_hash(&self) -> Digest {
        let text = canonical::text_object([
            ("index", self.index.to_string()),
            ("time", self.time.to_string()),
            ("contract", self.contract.to_string()),
            ("digest", self.digest.to_string()),
            ("event", self.event.as_str().to_owned()),
            ("previous", self.previous.to_string()),
        ]);
        Digest::of(ENTRY_DOMAIN, &text)
    }
}

impl Head {
    /// The end of a log without entries.
    pub fn start(cluster: &ClusterId) -> Self {
        Self { length: 0, hash: genesis(cluster), time: Timestamp::MIN }
    }

    /// The next entry, which ties in with this end. A clock that was put back does not put the log back.
    pub fn append(&self, contract: ContractId, digest: Digest, event: Event, now: Timestamp) -> Entry {
        let time = now.max(self.time);
        let time = Timestamp::from_second(time.as_second()).unwrap_or(time);
        let entry =
            Entry { index: self.length, time, contract, digest, event, previous: self.hash, hash: self.hash };
        Entry { hash: entry.compute_hash(), ..entry }
    }

    /// The end of the log after `entry`, if it ties in.
    pub fn follow(&self, entry: &Entry) -> Result<Self, Broken> {
        let broken = |problem| Err(Broken { index: self.length, problem });
        if entry.index != self.length {
            return broken(Problem::Number(entry.index));
        }
        if entry.previous != self.hash {
            return broken(Problem::Replaced);
        }
        if entry.hash != entry.compute_hash() {
            return broken(Problem::Changed);
        }
        if entry.time.subsec_nanosecond() != 0 {
            return broken(Problem::Fraction);
        }
        if entry.time < self.time {
            return broken(Problem::Time);
        }
        Ok(Self { length: self.length.saturating_add(1), hash: entry.hash, time: entry.time })
    }
}

/// Checks entries that follow on `start`, and gives the end. `seen` is an end that somebody saw before; the entries must
/// still have it.
pub fn verify<'a>(
    start: Head,
    entries: impl IntoIterator<Item = &'a Entry>,
    seen: Option<Head>,
) -> Result<Head, Broken> {
    let mut head = start;
    let mut found = seen.is_none_or(|seen| seen == head);
    for entry in entries {
        head = head.follow(entry)?;
        found |= seen == Some(head);
    }
    match seen {
        Some(seen) if !found => Err(Broken { index: seen.length.saturating_sub(1), problem: Problem::End }),
        _ => Ok(head),
    }
}
