//! What should happen to the ForeignClusters: pure, from who was found, what there is, and the time.
//!
//! - A cluster that nobody stands for yet gets a ForeignCluster; there is never a second one for an ID.
//! - One that was found is refreshed when half its lifetime has passed, and deleted when all of it has, unless a peering
//!   is there: then it is marked.
//! - Whoever claims the ID of another cluster that is alive is refused and reported. Which certificate a cluster shows
//!   tells it from others; while we do not know it, the one that was first is asked.
//! - What people or peers created is never touched.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use liqo_api::names::{ClusterId, Identity};
use liqo_api::{DiscoveryType, Fingerprint};
use sha2::{Digest, Sha256};

use super::index::{Peer, Peers};
use crate::advert::{Refusal, Source};
use crate::book::Claim;
use crate::lan::DEFAULT_TTL;

mod relation;
#[cfg(test)]
mod tests;

pub(super) use relation::normal;
use relation::{ASK_AGAIN, Relation};

/// The shortest lifetime of a ForeignCluster, whatever its record says: each one costs a write per half lifetime.
const MIN_TTL: u32 = 10;

/// How long after its end a lifetime that another process looks after is taken for ended here: that one may be slow, or
/// not be there any more.
const ELSEWHERE: i64 = 60;

/// How long after a goodbye a cluster is forgotten. A discovery that restarts says goodbye, and is back by then.
const GOODBYE: Duration = Duration::from_secs(5);

/// A lifetime is shortened only if it is less than this part of the former one: caches of name servers count theirs down,
/// and each step would be a write.
const SHORTENED: u32 = 4;

/// Hex digits in the name where the usual name is taken by another cluster: 64 bits, which nobody tries out.
const LONG_HASH_DIGITS: usize = 16;

/// Reason of the event that tells about a new ForeignCluster; all others are warnings.
pub(crate) const DISCOVERED: &str = "Discovered";

/// Whether a source is listened to by this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Active {
    /// Not here.
    Elsewhere,
    /// Here, but not for long enough to say that somebody is missing.
    Warming,
    /// Here.
    Listening,
}

/// What was found out about the one that holds an ID, because another claims it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Incumbent {
    /// Where it was asked.
    pub(crate) url: String,
    /// The certificate it showed; nothing if it did not answer as the cluster that it should be.
    pub(crate) shown: Option<Fingerprint>,
    /// How often in a row it did not.
    pub(crate) deaths: u32,
    pub(crate) asked: Timestamp,
}

/// By the names of their ForeignClusters.
pub(crate) type Incumbents = BTreeMap<String, Incumbent>;

/// All that the plan looks at.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    pub(crate) own: &'a ClusterId,
    pub(crate) claims: &'a [Claim],
    pub(crate) peers: &'a Peers,
    pub(crate) incumbents: &'a Incumbents,
    /// Objects that this process made and has not told about.
    pub(crate) made: &'a BTreeSet<String>,
    pub(crate) lan: Active,
    pub(crate) wan: Active,
    pub(crate) now: Timestamp,
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Make a ForeignCluster.
    Create { name: String, identity: Identity, found: Found },
    /// Bring one up to date.
    Refresh { peer: Peer, found: Found },
    /// Mark one that stays though it is advertised no longer.
    Mark { peer: Peer },
    /// Delete one that is not advertised any more.
    Delete { peer: Peer },
    /// Ask the one that holds an ID whether it is alive.
    Ask { peer: Peer },
}

impl Step {
    /// The object that it is about.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Create { name, .. } => name,
            Self::Refresh { peer, .. } | Self::Mark { peer } | Self::Delete { peer } | Self::Ask { peer } => {
                &peer.name
            }
        }
    }
}

/// What a ForeignCluster should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) id: String,
    pub(crate) source: Source,
    pub(crate) url: String,
    pub(crate) fingerprint: Option<String>,
    pub(crate) ttl: u32,
    pub(crate) heard: i64,
}

/// Something that people should know about a ForeignCluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) peer: String,
    pub(crate) uid: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// What was refused, if something was: found where, and why.
    pub(crate) refusal: Option<(Source, Refusal)>,
}

/// What is to be done, and to be told.
pub(crate) fn plan(world: World<'_>) -> (Vec<Step>, Vec<Report>) {
    let mut plan = Plan { world, steps: Vec::new(), reports: Vec::new(), settled: BTreeSet::new() };
    if world.peers.is_synced() {
        plan.meet_claims();
        plan.end_lifetimes();
        plan.introduce();
    }
    (plan.steps, plan.reports)
}

struct Plan<'a> {
    world: World<'a>,
    steps: Vec<Step>,
    reports: Vec<Report>,
    /// The objects whose clusters are advertised.
    settled: BTreeSet<&'a str>,
}

/// Which of several claims counts: of the object's own source rather than of another, where it is rather than elsewhere,
/// the latest; and so that the order in which they came does not matter, by the URL.
type Rank<'a> = (bool, bool, Timestamp, &'a str);

impl<'a> Plan<'a> {
    fn meet_claims(&mut self) {
        let holders = self.world.peers.holders();
        let mut by_id: BTreeMap<&ClusterId, Vec<&'a Claim>> = BTreeMap::new();
        for claim in self.world.claims {
            by_id.entry(&claim.answer.identity.id).or_default().push(claim);
        }
        by_id.remove(self.world.own);
        for (id, claims) in by_id {
            match holders.of(id.as_str(), claims.iter().map(|claim| claim.answer.url.as_str())) {
                Some(peer) => self.meet(peer, &claims),
                None => self.create(&claims),
            }
        }
    }

    /// The first claim makes the object; others are compared with it afterwards.
    fn create(&mut self, claims: &[&Claim]) {
        let Some(claim) = claims.iter().find(|claim| claim.withdrawn.is_none()) else { return };
        let identity = &claim.answer.identity;
        let is_free = |name: &String| {
            self.world.peers.get(name).is_none() && !self.steps.iter().any(|step| step.name() == name)
        };
        let names = [identity.unique_name(), long_name(identity)];
        let Some(name) = names.into_iter().find(is_free) else { return };
        let found = Found {
            id: identity.id.to_string(),
            source: claim.source.clone(),
            url: claim.answer.url.clone(),
            fingerprint: claim.is_pinned.then(|| claim.answer.fingerprint.to_string()),
            ttl: claim.ttl.max(MIN_TTL),
            heard: claim.seen.as_second(),
        };
        self.steps.push(Step::Create { name, identity: identity.clone(), found });
    }

    fn meet(&mut self, peer: &'a Peer, claims: &[&'a Claim]) {
        // Right after a start, not everybody has been heard yet who would speak against it.
        let is_clear = self.active(peer) != Active::Warming;
        let expired = self.is_over(peer) && is_clear;
        let mut best: Option<(Rank<'_>, &Claim)> = None;
        let mut heard = Timestamp::MIN;
        for claim in claims {
            let (keeps, moves) = match self.world.relation(peer, claim, claims) {
                Relation::Same => (true, false),
                Relation::Renewed if peer.trusted || peer.engaged => {
                    self.refuse(peer, claim, Refusal::CertificateChanged);
                    continue;
                }
                Relation::Renewed => (is_clear, true),
                Relation::Elsewhere(Some(alive)) => (true, !alive && is_clear),
                Relation::Elsewhere(None) => {
                    self.ask(peer);
                    (true, false)
                }
                Relation::Successor => (is_clear && !peer.trusted && !peer.engaged, true),
                Relation::Other => {
                    self.refuse(peer, claim, Refusal::IdTaken);
                    continue;
                }
                Relation::Unknown => {
                    self.ask(peer);
                    continue;
                }
            };
            // Another source takes over only what its own has let go.
            let is_source = is_source(peer, &claim.source);
            if !keeps || claim.withdrawn.is_some() || !(is_source || expired) {
                continue;
            }
            heard = heard.max(claim.seen);
            let rank = (is_source, !moves, claim.seen, claim.answer.url.as_str());
            if best.is_none_or(|(other, _)| rank > other) {
                best = Some((rank, claim));
            }
        }
        if let Some(((_, stays, ..), claim)) = best.filter(|_| peer.is_found() && !peer.deleting) {
            self.settled.insert(&peer.name);
            self.refresh(peer, claim, heard, !stays);
        }
    }

    fn ask(&mut self, peer: &Peer) {
        let is_too_soon = self
            .world
            .incumbent(peer)
            .is_some_and(|incumbent| self.world.now.as_second() - incumbent.asked.as_second() < ASK_AGAIN);
        let step = Step::Ask { peer: peer.clone() };
        if !is_too_soon && !self.steps.contains(&step) {
            self.steps.push(step);
        }
    }

    fn refuse(&mut self, peer: &Peer, claim: &Claim, why: Refusal) {
        let (id, url) = (&claim.answer.identity.id, &claim.answer.url);
        let shown = claim.answer.fingerprint;
        let (reason, message) = match why {
            Refusal::CertificateChanged => (
                "CertificateChanged",
                format!(
                    "{url} shows another certificate than before ({shown}) and is not trusted with it. If it was \
                     renewed there, delete this ForeignCluster, or set spec.authFingerprint."
                ),
            ),
            _ => (
                "ClusterIDTaken",
                format!(
                    "{url} claims the cluster ID {id}, which {} has. It is refused: it shows another certificate \
                     ({shown}). One of the two clusters must be installed again with another ID.",
                    peer.url
                ),
            ),
        };
        self.report(peer, reason, message, Some((claim.source.clone(), why)));
    }

    fn report(
        &mut self,
        peer: &Peer,
        reason: &'static str,
        message: String,
        refusal: Option<(Source, Refusal)>,
    ) {
        let report = Report { peer: peer.name.clone(), uid: peer.uid.clone(), reason, message, refusal };
        if !self.reports.contains(&report) {
            self.reports.push(report);
        }
    }

    fn refresh(&mut self, peer: &Peer, claim: &Claim, heard: Timestamp, moves: bool) {
        let is_pinned = claim.is_pinned && !peer.vouched;
        let shown = is_pinned.then(|| claim.answer.fingerprint.to_string());
        let known = peer.ttl.unwrap_or(0);
        let told = claim.ttl.max(MIN_TTL);
        let found = Found {
            id: claim.answer.identity.id.to_string(),
            source: claim.source.clone(),
            url: if moves { claim.answer.url.clone() } else { peer.url.clone() },
            fingerprint: if moves { shown } else { peer.fingerprint.clone().or(shown) },
            ttl: if told > known || told < known / SHORTENED { told } else { known },
            heard: heard.as_second().max(peer.heard_by(self.world.now)),
        };
        let half = i64::from(found.ttl.min(known) / 2).max(1);
        let is_due = found.heard - peer.heard_by(self.world.now) >= half;
        let differs = found.url != peer.url
            || found.fingerprint != peer.fingerprint
            || found.ttl != known
            || peer.unadvertised
            || !peer.labelled
            || !is_source(peer, &found.source);
        if is_due || differs {
            self.steps.push(Step::Refresh { peer: peer.clone(), found });
        }
    }

    /// Whether the source of an object is listened to.
    fn active(&self, peer: &Peer) -> Active {
        if peer.kind == DiscoveryType::Lan { self.world.lan } else { self.world.wan }
    }

    /// Whether the lifetime of an object that was found has ended.
    fn is_over(&self, peer: &Peer) -> bool {
        let ttl = peer.ttl.filter(|ttl| *ttl > 0).unwrap_or(DEFAULT_TTL);
        let patience = if self.active(peer) == Active::Elsewhere { ELSEWHERE } else { 0 };
        peer.is_found()
            && self.world.now.as_second() - peer.heard_by(self.world.now) >= i64::from(ttl) + patience
    }

    fn end_lifetimes(&mut self) {
        for peer in self.world.peers.iter() {
            let settled = self.settled.contains(peer.name.as_str());
            let is_clear = self.active(peer) != Active::Warming;
            let is_over = self.said_goodbye(peer) || is_clear && self.is_over(peer);
            if !peer.is_found() || peer.deleting || settled || !is_over {
                continue;
            }
            if !peer.engaged {
                self.steps.push(Step::Delete { peer: peer.clone() });
            } else if !peer.unadvertised {
                let message = "The cluster is no longer advertised. The ForeignCluster stays as long as a peering is \
                               active, and is deleted then.";
                self.report(peer, "NoLongerAdvertised", message.to_owned(), None);
                self.steps.push(Step::Mark { peer: peer.clone() });
            }
        }
    }

    fn said_goodbye(&self, peer: &Peer) -> bool {
        self.world.claims.iter().any(|claim| {
            is_source(peer, &claim.source)
                && claim.withdrawn.is_some_and(|since| since >= GOODBYE)
                && claim.answer.url == normal(&peer.url)
                && peer.id.as_deref() == Some(claim.answer.identity.id.as_str())
        })
    }

    /// Tells about what this process made, once it is there.
    fn introduce(&mut self) {
        for name in self.world.made {
            let Some(peer) = self.world.peers.get(name) else { continue };
            let how = match (&peer.kind, &peer.domain) {
                (DiscoveryType::Wan, Some(domain)) => format!("by DNS, through the SearchDomain {domain}"),
                _ => "on the local network".to_owned(),
            };
            let message = format!("Found {how}, at {}.", peer.url);
            self.report(peer, DISCOVERED, message, None);
        }
    }
}

/// Whether an object came from this source.
fn is_source(peer: &Peer, source: &Source) -> bool {
    match source {
        Source::Lan => peer.kind == DiscoveryType::Lan,
        Source::Wan(domain) => {
            peer.kind == DiscoveryType::Wan && peer.domain.as_deref() == Some(domain.as_ref())
        }
    }
}

/// The name where another cluster has the usual one: six hex digits are soon tried out.
fn long_name(identity: &Identity) -> String {
    let digest = Sha256::digest(identity.id.as_str().as_bytes());
    let mut hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hash.truncate(LONG_HASH_DIGITS);
    format!("{}-{hash}", identity.name)
}
