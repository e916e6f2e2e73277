//! What this process remembers. All of it may be lost at any time: it only saves work, and keeps what was just sold from
//! being sold again before the watch tells of it.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use liqo_core::Resources;
use liqo_core::canonical::Digest;
use liqo_core::contract::Alarm;
use liqo_core::ledger::{Ledger, Sale};
use liqo_core::names::{ClusterId, ContractId};
use liqo_core::policy::{Peer, Verdict};
use liqo_core::threshold::{Limiter, Pace};
use liqo_kit::write::Target;
use parking_lot::Mutex;

use super::Reserved;
use crate::paper::new_contract_id;

/// Signatures that are remembered to be right.
const VERIFIED: usize = 8192;
/// Events that are remembered to be made.
const REPORTED: usize = 512;

/// What this process remembers.
#[derive(Default)]
pub(crate) struct Memory {
    /// What is being signed, until the watch has told of it.
    pub(crate) reserved: BTreeMap<ContractId, Reserved>,
    /// The ID of the next contract with each peer.
    fresh: BTreeMap<ClusterId, ContractId>,
    /// How often offers changed lately.
    pub(crate) offers: Paces,
    /// How often contracts were proposed lately.
    pub(crate) proposals: Paces,
    /// What speaks against the contracts in force.
    pub(crate) doubts: BTreeMap<ContractId, Doubt>,
    /// Events that were made lately, as no watch tells of them.
    pub(crate) reported: VecDeque<Target>,
    /// Objects that could not be written, and why; until they are.
    pub(crate) failures: BTreeMap<(Option<ClusterId>, Target), String>,
    /// Another number whenever something changed that the ledger depends on.
    revision: u64,
    verified: Mutex<HashSet<Digest>>,
    ledger: Mutex<Option<(u64, Arc<Ledger>)>>,
    evaluations: Mutex<BTreeMap<ClusterId, Evaluated>>,
}

/// Keeps a pace with each peer.
#[derive(Debug, Default)]
pub(crate) struct Paces(BTreeMap<ClusterId, (Limiter, String)>);

impl Paces {
    /// When it may be done: what was granted for this `occasion` already, at once.
    pub(crate) fn allowed_at(
        &self,
        peer: &ClusterId,
        occasion: &str,
        pace: Pace,
        now: Timestamp,
    ) -> Timestamp {
        match self.0.get(peer) {
            None => now,
            Some((_, granted)) if granted == occasion => now,
            Some((limiter, _)) => limiter.next_allowed(pace, now),
        }
    }

    /// Remembers that it is done.
    pub(crate) fn grant(&mut self, peer: &ClusterId, occasion: &str, pace: Pace, now: Timestamp) {
        let entry = self.0.entry(peer.clone()).or_default();
        if entry.1 != occasion {
            *entry = (entry.0.taken(pace, now), occasion.to_owned());
        }
    }
}

/// What is not kept of one contract, and since when.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Doubt {
    pub(crate) missing: Resources,
    pub(crate) overuse: Resources,
    pub(crate) backing: Alarm,
    pub(crate) restraint: Alarm,
}

/// An answer of the policies, and what it was an answer to.
struct Evaluated {
    question: Question,
    answer: Arc<Verdict>,
}

/// What an answer of the policies depends on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Question {
    pub(crate) peer: Peer,
    pub(crate) stock: u64,
    pub(crate) book: u64,
    /// From when to when time alone changes nothing.
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

impl Memory {
    /// Something changed that the ledger depends on.
    pub(crate) fn booked(&mut self) {
        self.revision = self.revision.wrapping_add(1);
    }

    /// Another number whenever something changed that the ledger depends on.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Remembers that something is being signed.
    pub(crate) fn reserve(&mut self, reserved: Reserved) {
        let contract = reserved.sale.contract.clone();
        let sale = reserved.sale.clone();
        let former = self.reserved.insert(contract, reserved);
        if former.is_none_or(|former| former.sale != sale) {
            self.booked();
        }
    }

    /// Forgets what is not being signed any more.
    pub(crate) fn release(&mut self, mut over: impl FnMut(&Sale) -> bool) {
        let before = self.reserved.len();
        self.reserved.retain(|_, reserved| !over(&reserved.sale));
        if self.reserved.len() != before {
            self.booked();
        }
    }

    /// The ID of the next contract with this peer, unless none was drawn.
    pub(crate) fn fresh(&self, peer: &ClusterId) -> Option<&ContractId> {
        self.fresh.get(peer)
    }

    /// Draws an ID for the next contract with this peer, if there is none or it `is_used`.
    pub(crate) fn draw(&mut self, peer: &ClusterId, is_used: impl Fn(&ContractId) -> bool) {
        if self.fresh.get(peer).is_none_or(is_used)
            && let Some(id) = new_contract_id()
        {
            self.fresh.insert(peer.clone(), id);
        }
    }

    /// Whether a signature is right, asking `verify` only if that is not known yet.
    pub(crate) fn is_verified(&self, of: Digest, verify: impl FnOnce() -> bool) -> bool {
        if self.verified.lock().contains(&of) {
            return true;
        }
        let right = verify();
        if right {
            let mut verified = self.verified.lock();
            if verified.len() >= VERIFIED {
                verified.clear();
            }
            verified.insert(of);
        }
        right
    }

    /// The ledger, made by `make` unless nothing changed since it was made last.
    pub(crate) fn ledger(&self, make: impl FnOnce() -> Ledger) -> Arc<Ledger> {
        let mut known = self.ledger.lock();
        match &*known {
            Some((revision, ledger)) if *revision == self.revision => Arc::clone(ledger),
            _ => {
                let ledger = Arc::new(make());
                *known = Some((self.revision, Arc::clone(&ledger)));
                ledger
            }
        }
    }

    /// The answer of the policies, found by `ask` unless the same was asked before.
    pub(crate) fn evaluation(
        &self,
        question: Question,
        now: Timestamp,
        ask: impl FnOnce() -> Verdict,
    ) -> Arc<Verdict> {
        let mut known = self.evaluations.lock();
        let earlier = known.get(&question.peer.id).filter(|earlier| {
            let asked = &earlier.question;
            (asked.stock, asked.book, &asked.peer) == (question.stock, question.book, &question.peer)
                && (asked.from..asked.until).contains(&now)
        });
        if let Some(earlier) = earlier {
            return Arc::clone(&earlier.answer);
        }
        let answer = Arc::new(ask());
        known.insert(question.peer.id.clone(), Evaluated { question, answer: Arc::clone(&answer) });
        answer
    }

    /// Remembers that an event is made.
    pub(crate) fn report(&mut self, event: Target) {
        self.reported.push_back(event);
        if self.reported.len() > REPORTED {
            self.reported.pop_front();
        }
    }

    /// Forgets peers that are gone.
    pub(crate) fn forget(&mut self, is_known: impl Fn(&ClusterId) -> bool) {
        self.fresh.retain(|peer, _| is_known(peer));
        self.offers.0.retain(|peer, _| is_known(peer));
        self.proposals.0.retain(|peer, _| is_known(peer));
        self.evaluations.lock().retain(|peer, _| is_known(peer));
        self.failures.retain(|(peer, _), _| peer.as_ref().is_none_or(&is_known));
    }
}
