//! All that is known, under one lock.

use std::collections::BTreeSet;

use jiff::Timestamp;
use liqo_api::names::{ClusterId, Identity};
use liqo_kit::{Index, Key};
use tokio::time::Instant;

use crate::book::{Book, Claim, Named};
use crate::domains::{Domain, Domains, Problem};
use crate::peers::{Active, Incumbents, Peer, Peers, World};

/// What is known.
pub(crate) struct State {
    /// Who we are.
    pub(crate) own: Option<ClusterId>,
    pub(crate) book: Book,
    pub(crate) peers: Peers,
    pub(crate) domains: Domains,
    /// Those who hold an ID that another claims, as far as they were asked.
    pub(crate) incumbents: Incumbents,
    /// Those being asked.
    pub(crate) asking: BTreeSet<String>,
    /// ForeignClusters that this process made and has not told about.
    pub(crate) made: BTreeSet<String>,
    pub(crate) lan: Active,
    pub(crate) wan: Active,
}

impl State {
    pub(crate) fn new() -> Self {
        Self {
            own: None,
            book: Book::new(Instant::now()),
            peers: Peers::default(),
            domains: Domains::default(),
            incumbents: Incumbents::new(),
            asking: BTreeSet::new(),
            made: BTreeSet::new(),
            lan: Active::Elsewhere,
            wan: Active::Elsewhere,
        }
    }

    /// Begins to listen anew: what was heard before does not count, what watches told does.
    pub(crate) fn begin(&mut self, lan: bool, wan: bool) {
        let warming = |here| if here { Active::Warming } else { Active::Elsewhere };
        (self.lan, self.wan) = (warming(lan), warming(wan));
        self.book = Book::new(Instant::now());
        self.incumbents.clear();
        self.asking.clear();
        self.made.clear();
        self.domains.begin(Instant::now());
    }

    /// What the plan for the ForeignClusters looks at.
    pub(crate) fn world<'a>(&'a self, own: &'a ClusterId, claims: &'a [Claim], now: Timestamp) -> World<'a> {
        World {
            own,
            claims,
            peers: &self.peers,
            incumbents: &self.incumbents,
            made: &self.made,
            lan: self.lan,
            wan: self.wan,
            now,
        }
    }

    /// The records of a domain that are of no use, by DNS or by what answers there; nothing while some are being asked.
    pub(crate) fn problems(&self, domain: &Domain) -> Option<(Vec<Identity>, Vec<Problem>)> {
        let Named { mut found, refused } = self.book.of_domain(&domain.name)?;
        found.retain(|identity| Some(&identity.id) != self.own.as_ref());
        let broken =
            self.domains.search(&domain.name).map(|search| search.broken.clone()).unwrap_or_default();
        let mut problems: Vec<_> =
            broken.into_iter().chain(refused).map(|(record, refused)| Problem { record, refused }).collect();
        problems.sort_by(|one, other| one.record.cmp(&other.record));
        // A record that was good before may be known both ways for a while.
        problems.dedup_by(|later, first| later.record == first.record);
        Some((found, problems))
    }
}

impl Index<Peer> for State {
    fn apply(&mut self, key: &Key, object: Peer) {
        self.peers.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.peers.delete(key);
        self.incumbents.remove(key.name());
        self.made.remove(key.name());
    }

    fn synced(&mut self) {
        self.peers.synced();
    }
}

impl Index<Domain> for State {
    fn apply(&mut self, key: &Key, object: Domain) {
        self.domains.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.domains.delete(key);
    }

    fn synced(&mut self) {
        self.domains.synced();
    }
}
