//! How a claim relates to the ForeignCluster that has the claimed ID.

use super::{Incumbent, World};
use crate::book::Claim;
use crate::peers::Peer;

/// For how many seconds it is believed that the first holder of an ID is alive or dead, and when it is asked again while
/// that is not clear.
const CLEAR_FOR: i64 = 60;
pub(super) const ASK_AGAIN: i64 = 5;

/// How often in a row it must have been silent for another to take its place.
const DEATHS: u32 = 2;

/// How a claim relates to the one that holds the ID.
pub(super) enum Relation {
    /// The same cluster, where the object says it is.
    Same,
    /// The same cluster at another place; whether it is still at the former one is known, or not yet.
    Elsewhere(Option<bool>),
    /// It has another certificate now.
    Renewed,
    /// Another cluster, and the first one is alive.
    Other,
    /// Another cluster or the same; the first one does not answer.
    Successor,
    /// Not known before the first one was asked.
    Unknown,
}

impl World<'_> {
    /// Compares a claim with the one that holds the ID; `claims` are all claims of that ID.
    pub(super) fn relation(&self, peer: &Peer, claim: &Claim, claims: &[&Claim]) -> Relation {
        let pinned = peer.fingerprint.as_deref();
        let is_pinned = |claim: &Claim| pinned == Some(claim.answer.fingerprint.to_string().as_str());
        let shown = claim.answer.fingerprint;
        let url = normal(&peer.url);
        // Who shows the known certificate is the cluster, wherever it is, and who does not is another.
        let is_known = is_pinned(claim);
        let is_other = !is_known && claims.iter().any(|other| is_pinned(other) && other.withdrawn.is_none());
        if claim.answer.url == url {
            return match pinned {
                _ if is_known => Relation::Same,
                None => Relation::Same,
                Some(_) if is_other => Relation::Other,
                Some(_) => Relation::Renewed,
            };
        }
        // Whoever was found at the former place told who is there.
        let there = claims.iter().filter(|other| other.answer.url == url);
        let there = there.map(|other| (other.seen, other.answer.fingerprint)).max().map(|(_, shown)| shown);
        let asked = self.incumbent(peer);
        let is_dead = there.is_none() && asked.is_some_and(|incumbent| incumbent.deaths >= DEATHS);
        match there.or(asked.and_then(|incumbent| incumbent.shown)) {
            _ if is_other => Relation::Other,
            Some(alive) if is_known => Relation::Elsewhere(Some(alive == shown)),
            Some(alive) if alive != shown => Relation::Other,
            Some(_) if pinned.is_some() => Relation::Renewed,
            Some(_) => Relation::Elsewhere(Some(true)),
            None if is_known => Relation::Elsewhere(is_dead.then_some(false)),
            None if is_dead => Relation::Successor,
            None => Relation::Unknown,
        }
    }

    /// What is known about the one that holds the ID, if it was asked where it is now, and not long ago.
    pub(super) fn incumbent(&self, peer: &Peer) -> Option<&Incumbent> {
        self.incumbents.get(&peer.name).filter(|incumbent| {
            let age = self.now.as_second() - incumbent.asked.as_second();
            incumbent.url == peer.url && (0..CLEAR_FOR).contains(&age)
        })
    }
}

/// A URL as claims have it.
pub(in crate::peers) fn normal(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix(":443").unwrap_or(url)
}
