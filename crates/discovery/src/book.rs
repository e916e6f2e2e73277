//! Who has been heard of, and what became of asking them who they are. Plain data of bounded size: time is an argument.
//!
//! ```text
//!  record ──see──▶ candidate ──next──▶ asked ──answer──▶ verified: a claim, for the plan
//!                     ▲  each sender in turn,      └──▶ refused: asked again, ever more seldom
//!                     │  a few at once, so many a second
//!          of too many, the oldest goes, of one sender first, and never one that is verified
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_api::Fingerprint;
use liqo_api::names::Identity;
use tokio::time::Instant;

use crate::advert::{Advert, Host, Origin, Refusal, Refused, Sender, Source};

#[cfg(test)]
mod tests;

/// Candidates of one machine on the local network.
const MAX_OF_NEIGHBOUR: usize = 16;

/// Candidates of one search domain.
pub(crate) const MAX_OF_DOMAIN: usize = 256;

/// Candidates in all that are not verified.
const MAX_UNVERIFIED: usize = 1024;

/// Clusters in all that are; as many peers as a cluster may have.
const MAX_VERIFIED: usize = 4096;

/// Candidates asked at once, and of those of one sender.
const MAX_ASKING: usize = 32;
const MAX_ASKING_OF_SENDER: usize = 4;

/// Candidates asked per second, and how many at once after a pause.
const ASKED_PER_SECOND: f64 = 32.0;
const ASKED_AT_ONCE: f64 = 64.0;

/// How long an answer is believed before the cluster is asked again.
const ASK_AGAIN: Duration = Duration::from_secs(300);

/// The wait after a first failure, which doubles up to the last.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_LAST: Duration = Duration::from_secs(60);

/// Failures in a row after which a cluster that did answer counts as silent: one lost packet is none.
const SILENT_AFTER: u32 = 3;

/// What a cluster has said about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) identity: Identity,
    /// The URL at which it did.
    pub(crate) url: String,
    /// Of the certificate that it showed.
    pub(crate) fingerprint: Fingerprint,
}

/// A cluster that was found and has said who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) source: Source,
    pub(crate) answer: Answer,
    /// Whether the record carried the certificate's fingerprint, too.
    pub(crate) is_pinned: bool,
    pub(crate) ttl: u32,
    /// When the record was last seen.
    pub(crate) seen: Timestamp,
    /// Which claim was first, counted.
    pub(crate) order: u64,
    /// Since when it says nothing any more, where it said goodbye.
    pub(crate) withdrawn: Option<Duration>,
}

/// What a sighting changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Nothing but the time.
    Again,
    /// Somebody is to be asked.
    News,
}

/// Whom a search domain names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// Those who said who they are.
    pub(crate) found: Vec<Identity>,
    /// Those who were refused, by their records.
    pub(crate) refused: Vec<(Arc<str>, Refused)>,
}

struct Candidate {
    advert: Advert,
    order: u64,
    seen: Timestamp,
    expires: Instant,
    withdrawn: Option<Instant>,
    answer: Option<Answer>,
    refused: Option<Refused>,
    failures: u32,
    /// Whether the advert is another one than what was answered to.
    changed: bool,
    asking: bool,
    due: Instant,
}

impl Candidate {
    fn is_verified(&self) -> bool {
        self.answer.is_some()
    }
}

/// All candidates.
pub(crate) struct Book {
    candidates: BTreeMap<Origin, Candidate>,
    /// Those that are not verified, the oldest first.
    unverified: BTreeMap<u64, Origin>,
    /// When each sender was last served; those served longest ago come first.
    served: BTreeMap<Sender, u64>,
    count: u64,
    tokens: f64,
    filled: Instant,
}

impl Book {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            candidates: BTreeMap::new(),
            unverified: BTreeMap::new(),
            served: BTreeMap::new(),
            count: 0,
            tokens: ASKED_AT_ONCE,
            filled: now,
        }
    }

    /// A record was seen; it may be believed for `lifetime`.
    pub(crate) fn see(
        &mut self,
        origin: Origin,
        advert: Advert,
        lifetime: Duration,
        seen: Timestamp,
        now: Instant,
    ) -> Result<Seen, Refused> {
        let expires = now + lifetime;
        if let Some(known) = self.candidates.get_mut(&origin) {
            let same = Advert { ttl: advert.ttl, ..known.advert.clone() } == advert;
            let returned = known.withdrawn.take().is_some();
            (known.seen, known.expires) = (seen, expires);
            known.advert = advert;
            if !same {
                (known.changed, known.due, known.failures) = (true, now, 0);
            }
            return Ok(if same && !returned { Seen::Again } else { Seen::News });
        }
        self.make_room(&origin.sender)?;
        self.count += 1;
        let candidate = Candidate {
            advert,
            order: self.count,
            seen,
            expires,
            withdrawn: None,
            answer: None,
            refused: None,
            failures: 0,
            changed: false,
            asking: false,
            due: now,
        };
        self.unverified.insert(candidate.order, origin.clone());
        self.candidates.insert(origin, candidate);
        Ok(Seen::News)
    }

    /// Lets go of the oldest that is not verified if there are too many: of this sender, or in all.
    fn make_room(&mut self, sender: &Sender) -> Result<(), Refused> {
        let most = match sender {
            Sender::Neighbour { .. } => MAX_OF_NEIGHBOUR,
            Sender::Domain(_) => MAX_OF_DOMAIN,
        };
        if self.candidates.len() - self.unverified.len() >= MAX_VERIFIED {
            return Err(too_many(format!("{MAX_VERIFIED} clusters are known already")));
        }
        let idle = |candidate: &Candidate| !candidate.is_verified() && !candidate.asking;
        let oldest = if self.of(sender).count() >= most {
            let of_sender = self.of(sender).filter(|(_, candidate)| idle(candidate));
            of_sender.min_by_key(|(_, candidate)| candidate.order).map(|(origin, _)| origin)
        } else if self.unverified.len() >= MAX_UNVERIFIED {
            self.unverified.values().find(|origin| self.candidates.get(origin).is_some_and(idle))
        } else {
            return Ok(());
        };
        let oldest =
            oldest.cloned().ok_or_else(|| too_many(format!("{sender} names more than {most} clusters")))?;
        self.remove(&oldest);
        Ok(())
    }

    fn remove(&mut self, origin: &Origin) {
        if let Some(removed) = self.candidates.remove(origin) {
            self.unverified.remove(&removed.order);
        }
    }

    fn of<'a>(&'a self, sender: &'a Sender) -> impl Iterator<Item = (&'a Origin, &'a Candidate)> {
        let first = Origin { sender: sender.clone(), record: Arc::from("") };
        self.candidates.range(first..).take_while(move |(origin, _)| origin.sender == *sender)
    }

    /// A cluster said goodbye.
    pub(crate) fn withdraw(&mut self, origin: &Origin, now: Instant) {
        if let Some(candidate) = self.candidates.get_mut(origin) {
            candidate.withdrawn.get_or_insert(now);
        }
    }

    /// Nothing of this sender counts any more.
    pub(crate) fn forget(&mut self, sender: &Sender) {
        let gone: Vec<_> = self.of(sender).map(|(origin, _)| origin.clone()).collect();
        gone.iter().for_each(|origin| self.remove(origin));
        self.served.remove(sender);
    }

    /// Of this sender only these records are left. Who was verified lives on for the lifetime of its record.
    pub(crate) fn keep_only(&mut self, sender: &Sender, records: &BTreeSet<Arc<str>>) {
        let is_gone = |(origin, candidate): &(&Origin, &Candidate)| {
            !candidate.is_verified() && !records.contains(&origin.record)
        };
        let gone: Vec<_> = self.of(sender).filter(is_gone).map(|(origin, _)| origin.clone()).collect();
        gone.iter().for_each(|origin| self.remove(origin));
    }

    /// Forgets who was not heard of for the lifetime of its record.
    pub(crate) fn expire(&mut self, now: Instant) {
        let is_gone = |candidate: &Candidate| candidate.expires <= now && !candidate.asking;
        let gone: Vec<_> = self
            .candidates
            .iter()
            .filter(|(_, candidate)| is_gone(candidate))
            .map(|(origin, _)| origin.clone())
            .collect();
        gone.iter().for_each(|origin| self.remove(origin));
        if self.served.len() > self.candidates.len() {
            let candidates = &self.candidates;
            self.served.retain(|sender, _| candidates.keys().any(|origin| origin.sender == *sender));
        }
    }

    pub(crate) fn is_verified(&self, origin: &Origin) -> bool {
        self.candidates.get(origin).is_some_and(Candidate::is_verified)
    }

    /// Somebody to ask now: of the sender that waits longest, who was never asked before who was.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Origin, Advert)> {
        self.fill(now);
        let asking: Vec<&Sender> = self
            .candidates
            .iter()
            .filter(|(_, candidate)| candidate.asking)
            .map(|(origin, _)| &origin.sender)
            .collect();
        if self.tokens < 1.0 || asking.len() >= MAX_ASKING {
            return None;
        }
        let is_free = |sender: &Sender| {
            let most = match sender {
                Sender::Neighbour { .. } => MAX_ASKING_OF_SENDER,
                // Who may edit SearchDomains is trusted more than the network is.
                Sender::Domain(_) => MAX_ASKING,
            };
            asking.iter().filter(|one| **one == sender).count() < most
        };
        let waiting = self.candidates.iter().filter(|(origin, candidate)| {
            !candidate.asking && candidate.due <= now && candidate.expires > now && is_free(&origin.sender)
        });
        let turn = |(origin, candidate): &(&Origin, &Candidate)| {
            let served = self.served.get(&origin.sender).copied().unwrap_or_default();
            (served, candidate.failures.min(1), candidate.due)
        };
        let origin = waiting.min_by_key(turn).map(|(origin, _)| origin.clone())?;
        self.tokens -= 1.0;
        self.count += 1;
        self.served.insert(origin.sender.clone(), self.count);
        let candidate = self.candidates.get_mut(&origin)?;
        candidate.asking = true;
        Some((origin, candidate.advert.clone()))
    }

    fn fill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * ASKED_PER_SECOND).min(ASKED_AT_ONCE);
        self.filled = now;
    }

    /// When somebody is to be asked or forgotten, if nothing is seen before.
    pub(crate) fn next_time(&self, now: Instant) -> Option<Instant> {
        let soon = now + Duration::from_secs_f64(1.0 / ASKED_PER_SECOND);
        let idle = self.candidates.values().filter(|candidate| !candidate.asking);
        idle.map(|candidate| candidate.due.min(candidate.expires).max(soon)).min()
    }

    /// What became of asking. Returns whether that changed what is known.
    pub(crate) fn answered(
        &mut self,
        origin: &Origin,
        asked: &Advert,
        result: Result<Answer, Refused>,
        now: Instant,
    ) -> bool {
        let Some(candidate) = self.candidates.get_mut(origin) else { return false };
        candidate.asking = false;
        let current = Advert { ttl: asked.ttl, ..candidate.advert.clone() } == *asked;
        if !current {
            // The record changed meanwhile; it is due again already.
            return false;
        }
        let before = (candidate.answer.clone(), candidate.refused.clone());
        match result {
            Ok(answer) => {
                candidate.answer = Some(answer);
                (candidate.refused, candidate.failures, candidate.changed) = (None, 0, false);
                candidate.due = now + ASK_AGAIN;
            }
            Err(refused) => {
                candidate.failures += 1;
                let wait = RETRY_FIRST.saturating_mul(1 << (candidate.failures - 1).min(16)).min(RETRY_LAST);
                candidate.due = now + wait;
                let silent = matches!(refused.why, Refusal::Unreachable | Refusal::NotIdentified);
                let patience = silent && !candidate.changed && candidate.failures < SILENT_AFTER;
                if candidate.answer.is_none() || !patience {
                    candidate.answer = None;
                    candidate.refused = Some(refused);
                }
            }
        }
        match candidate.is_verified() {
            true => drop(self.unverified.remove(&candidate.order)),
            false => drop(self.unverified.insert(candidate.order, origin.clone())),
        }
        before != (candidate.answer.clone(), candidate.refused.clone())
    }

    /// Everybody who has said who it is, the first claim first.
    pub(crate) fn claims(&self, now: Instant) -> Vec<Claim> {
        let mut claims: Vec<_> = self
            .candidates
            .iter()
            .filter(|(_, candidate)| candidate.expires > now)
            .filter_map(|(origin, candidate)| {
                Some(Claim {
                    source: origin.sender.source(),
                    answer: candidate.answer.clone()?,
                    is_pinned: candidate.advert.fingerprint.is_some(),
                    ttl: candidate.advert.ttl,
                    seen: candidate.seen,
                    order: candidate.order,
                    withdrawn: candidate.withdrawn.map(|since| now.saturating_duration_since(since)),
                })
            })
            .collect();
        claims.sort_by_key(|claim| claim.order);
        claims
    }

    /// What one search domain names, if everybody there has been asked: who they are, and who was refused and why.
    pub(crate) fn of_domain(&self, domain: &Arc<str>) -> Option<Named> {
        let sender = Sender::Domain(Arc::clone(domain));
        let mut named = Named::default();
        for (origin, candidate) in self.of(&sender) {
            match (&candidate.answer, &candidate.refused) {
                (Some(answer), _) => named.found.push(answer.identity.clone()),
                (None, Some(why)) => named.refused.push((Arc::clone(&origin.record), why.clone())),
                (None, None) => return None,
            }
        }
        Some(named)
    }

    /// How many candidates there are of each source and how many of those are verified: local network, then DNS.
    pub(crate) fn counts(&self) -> [(usize, usize); 2] {
        let mut counts = [(0, 0); 2];
        for (origin, candidate) in &self.candidates {
            let of_source = &mut counts[usize::from(origin.sender.source() != Source::Lan)];
            of_source.0 += 1;
            of_source.1 += usize::from(candidate.is_verified());
        }
        counts
    }
}

fn too_many(detail: String) -> Refused {
    Refused::new(Refusal::TooMany, detail)
}

/// The port that a URL need not name.
const HTTPS: u16 = 443;

impl Advert {
    /// The URL of the authentication service, where this address answers.
    pub(crate) fn url(&self, address: IpAddr) -> String {
        let host = match (&self.host, address) {
            (Host::Name(name), _) => name.to_string(),
            (Host::Address, IpAddr::V4(v4)) => v4.to_string(),
            (Host::Address, IpAddr::V6(v6)) => format!("[{v6}]"),
        };
        match self.port {
            HTTPS => format!("https://{host}"),
            port => format!("https://{host}:{port}"),
        }
    }
}
