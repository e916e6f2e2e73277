//! The SearchDomains: what there is, when each is to be searched, and what its status should say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use liqo_api::names::MAX_LABEL;
use liqo_api::{SearchDomain, SearchDomainStatus};
use liqo_kit::{Index, Key};
use tokio::time::Instant;

use crate::advert::Refused;
use crate::wan::search::{Findings, Trouble};

mod plan;

pub(crate) use plan::{Problem, status};

/// The shortest and the longest time between two searches of a domain, whatever the lifetimes of its records.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(3600);

/// When a domain is searched again that has broken records, or none, or does not answer.
const TROUBLED: Duration = Duration::from_secs(60);
const FAILED: Duration = Duration::from_secs(15);

/// The shortest lifetime of a cluster that was found; each costs a write per half lifetime.
const SHORTEST_LIFE: u32 = 30;

/// One SearchDomain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Domain {
    pub(crate) name: Arc<str>,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) generation: Option<i64>,
    pub(crate) domain: String,
    pub(crate) status: SearchDomainStatus,
    pub(crate) deleting: bool,
}

impl Domain {
    pub(crate) fn read(object: SearchDomain) -> Self {
        Self {
            name: object.name_any().into(),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            resource_version: object.metadata.resource_version.clone().unwrap_or_default(),
            generation: object.metadata.generation,
            domain: object.spec.domain,
            deleting: object.metadata.deletion_timestamp.is_some(),
            status: object.status.unwrap_or_default(),
        }
    }

    /// Found clusters carry the name as a label, which is shorter than a name may be.
    pub(crate) fn is_nameable(&self) -> bool {
        self.name.len() <= MAX_LABEL
    }
}

/// What is known of one search.
#[derive(Debug)]
pub(crate) struct Search {
    /// What was searched.
    domain: String,
    /// The last time, and what came of it.
    pub(crate) asked: Option<Timestamp>,
    pub(crate) trouble: Option<Trouble>,
    /// Records that could not be read, by name.
    pub(crate) broken: BTreeMap<Arc<str>, Refused>,
    running: bool,
    next: Instant,
}

impl Search {
    fn new(domain: &Domain, now: Instant) -> Self {
        let domain = domain.domain.clone();
        Self { domain, asked: None, trouble: None, broken: BTreeMap::new(), running: false, next: now }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Domains {
    domains: BTreeMap<Arc<str>, Domain>,
    searches: BTreeMap<Arc<str>, Search>,
    /// Those whose clusters are to be forgotten, as they are gone or search elsewhere.
    left: BTreeSet<Arc<str>>,
    synced: bool,
}

impl Domains {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Domain> {
        self.domains.values()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Domain> {
        self.domains.get(name)
    }

    pub(crate) fn search(&self, name: &str) -> Option<&Search> {
        self.searches.get(name)
    }

    /// Whether every domain has been searched once.
    pub(crate) fn is_warm(&self) -> bool {
        let searched = |name: &Arc<str>| self.searches.get(name).is_some_and(|search| search.asked.is_some());
        self.synced && self.domains.values().all(|domain| !domain.is_nameable() || searched(&domain.name))
    }

    /// Searches all of them anew.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.left.clear();
        let searches =
            self.domains.values().map(|domain| (Arc::clone(&domain.name), Search::new(domain, now)));
        self.searches = searches.collect();
    }

    /// Those whose clusters do not count any more.
    pub(crate) fn take_left(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.left)
    }

    /// A domain to be searched now; it counts as being searched until [`Domains::searched`].
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Arc<str>, String)> {
        let due = self.domains.values().find(|domain| {
            let search = self.searches.get(&domain.name);
            domain.is_nameable() && search.is_some_and(|search| !search.running && search.next <= now)
        })?;
        let search = self.searches.get_mut(&due.name)?;
        search.running = true;
        Some((Arc::clone(&due.name), search.domain.clone()))
    }

    /// When the next is to be searched.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        self.searches.values().filter(|search| !search.running).map(|search| search.next).min()
    }

    /// What came of a search. Returns how long to believe what was found; nothing, if something else is searched by now.
    pub(crate) fn searched(
        &mut self,
        name: &str,
        domain: &str,
        result: &Result<Findings, Trouble>,
        at: Timestamp,
        now: Instant,
    ) -> Option<u32> {
        let search = self.searches.get_mut(name)?;
        search.running = false;
        if search.domain != domain {
            return None;
        }
        search.asked = Some(at);
        let pause = match result {
            Ok(findings) => {
                let broken = findings
                    .records
                    .iter()
                    .filter_map(|(name, found)| Some((Arc::clone(name), found.as_ref().err()?.clone())));
                (search.trouble, search.broken) = (None, broken.collect());
                let pause = Duration::from_secs(findings.ttl.into()).clamp(SHORTEST, LONGEST);
                if search.broken.is_empty() { pause } else { pause.min(TROUBLED) }
            }
            Err(trouble) => {
                // What was found before counts until its end.
                search.trouble = Some(trouble.clone());
                match trouble {
                    Trouble::NoRecords(_, ttl) => {
                        let told = ttl.map_or(TROUBLED, |ttl| Duration::from_secs(ttl.into()));
                        told.clamp(SHORTEST, TROUBLED)
                    }
                    Trouble::Failed(_) => FAILED,
                }
            }
        };
        search.next = now + pause;
        let findings = result.as_ref().ok()?;
        Some(life(findings.ttl))
    }
}

/// How long a found cluster lives without being found again: one search may fail without an end to it.
fn life(ttl: u32) -> u32 {
    let pause = Duration::from_secs(ttl.into()).clamp(SHORTEST, LONGEST);
    u32::try_from(pause.as_secs() * 2).unwrap_or(u32::MAX).max(SHORTEST_LIFE)
}

impl Index<Domain> for Domains {
    fn apply(&mut self, key: &Key, object: Domain) {
        let name: Arc<str> = key.name().into();
        let same = self.searches.get(&name).is_some_and(|search| search.domain == object.domain);
        if !same {
            let search = Search::new(&object, Instant::now());
            if self.searches.insert(Arc::clone(&name), search).is_some() {
                self.left.insert(Arc::clone(&name));
            }
        }
        self.domains.insert(name, object);
    }

    fn delete(&mut self, key: &Key) {
        self.domains.remove(key.name());
        if let Some((name, _)) = self.searches.remove_entry(key.name()) {
            self.left.insert(name);
        }
    }

    fn synced(&mut self) {
        self.synced = true;
    }
}

#[cfg(test)]
mod tests;
