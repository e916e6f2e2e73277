//! The contract log: what was agreed on, in order, and nothing changed afterwards.
//!
//! ```text
//! ConfigMap liqo-contract-log-0   cluster-id, entry-0000000000 … entry-0000000499
//! ConfigMap liqo-contract-log-1   cluster-id, entry-0000000500 …          ◀── the next entry goes here
//! ```
//!
//! Each entry is a line of [`liqo_core::chain`] and holds the hash of the one before, over all pages. Who has seen the
//! last hash once can tell whether anything before it was changed.
//!
//! What belongs into the log follows from the contracts ([`Account`]): what is agreed, over or broken and not in the log
//! yet is [missing](Log::missing), so that nothing is lost when the program ends between two writes.
//!
//! What is garbled is told ([`Trouble`]) and never written over: a log that repairs itself proves nothing.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use liqo_core::canonical::Digest;
use liqo_core::chain::{Event, Head};
use liqo_core::names::{ClusterId, ContractId};
use liqo_kit::{Index, Key};

mod account;
mod page;
#[cfg(test)]
mod tests;

pub use account::{Account, Noted};
pub use page::Append;

use page::Page;

/// What the names of the pages begin with; the number follows.
pub const PAGE_PREFIX: &str = "liqo-contract-log-";

/// On the pages, with the value `true`.
pub const PAGE_LABEL: &str = "sharing.liqo.io/contract-log";

/// Entries on a page: a fifth of what a ConfigMap can hold.
pub const MOST_ENTRIES: u64 = 500;

/// By how much the clocks of two clusters may differ.
const SKEW: SignedDuration = SignedDuration::from_mins(5);

/// The log, as far as it is known.
#[derive(Debug, Default)]
pub struct Log {
    pages: BTreeMap<u64, Result<Page, String>>,
}

/// Why nothing can be added to the log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the contract log is not what was written: ConfigMap {page}: {problem}")]
pub struct Trouble {
    /// The page at which it is broken first.
    pub page: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What a contract's latest entries say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tail {
    /// When the latest agreement was noted.
    agreed: Option<Timestamp>,
    over: bool,
    /// Whether it was noted as broken last, or as kept.
    broken: Option<bool>,
}

impl Log {
    /// Whether it is noted that terms with this digest were agreed on.
    pub fn has(&self, digest: &Digest) -> bool {
        self.read().any(|page| page.agreed.contains(digest))
    }

    /// Whether it is noted that this contract is over.
    pub fn is_over(&self, contract: &ContractId) -> bool {
        self.read().any(|page| page.tails.get(contract).is_some_and(|tail| tail.over))
    }

    /// Whether it was noted last that somebody does not keep this contract.
    pub fn is_broken(&self, contract: &ContractId) -> bool {
        self.tail(contract).broken == Some(true)
    }

    /// Checks that all pages are there and tie in with each other, and gives the end.
    pub fn check(&self, cluster: &ClusterId) -> Result<Head, Trouble> {
        let mut head = Head::start(cluster);
        for (expected, (number, page)) in (0..).zip(&self.pages) {
            let trouble = |problem: String| Trouble { page: page_name(*number), problem };
            if *number != expected {
                let problem = "it is missing".to_owned();
                return Err(Trouble { page: page_name(expected), problem });
            }
            let page = page.as_ref().map_err(|problem| trouble(problem.clone()))?;
            if page.cluster != cluster.as_str() {
                return Err(trouble(format!(
                    "it is the log of cluster {:.63}, this is {cluster}",
                    page.cluster
                )));
            }
            head = page.follow(head).map_err(trouble)?;
        }
        Ok(head)
    }

    /// What the contracts say and the log does not.
    pub fn missing<'a>(&self, accounts: impl IntoIterator<Item = &'a Account>) -> Vec<Noted> {
        accounts.into_iter().flat_map(|account| self.missing_of(account)).collect()
    }

    /// What a contract says and the log does not.
    pub fn missing_of(&self, account: &Account) -> Vec<Noted> {
        let tail = self.tail(&account.contract);
        let noted = |event| Noted { contract: account.contract.clone(), digest: account.digest, event };
        let mut missing = Vec::new();
        if !self.has(&account.digest) {
            missing.push(noted(account.agreement(tail.agreed)));
        }
        match account.over {
            Some(over) if !tail.over => missing.push(noted(over)),
            Some(_) => {}
            None if account.broken && tail.broken != Some(true) => missing.push(noted(Event::Breached)),
            None if !account.broken && tail.broken == Some(true) => missing.push(noted(Event::Kept)),
            None => {}
        }
        missing
    }

    /// The next write: as many of the entries as fit on one page. `None` if there is none.
    pub fn append(
        &self,
        cluster: &ClusterId,
        entries: &[Noted],
        now: Timestamp,
    ) -> Result<Option<Append>, Trouble> {
        let head = self.check(cluster)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let last =
            self.pages.last_key_value().and_then(|(number, page)| Some((*number, page.as_ref().ok()?)));
        Ok(Some(match last {
            Some((number, page)) if page.length() < MOST_ENTRIES => {
                let room = MOST_ENTRIES - page.length();
                let version = Some(page.resource_version.clone());
                Append::new(page_name(number), version, cluster, page::lines(head, entries, room, now))
            }
            last => {
                let number = last.map_or(0, |(number, _)| number + 1);
                Append::new(page_name(number), None, cluster, page::lines(head, entries, MOST_ENTRIES, now))
            }
        }))
    }

    fn tail(&self, contract: &ContractId) -> Tail {
        let mut tail = Tail { agreed: None, over: false, broken: None };
        for found in self.read().filter_map(|page| page.tails.get(contract)) {
            tail = Tail {
                agreed: found.agreed.or(tail.agreed),
                over: found.over || tail.over,
                broken: found.broken.or(tail.broken),
            };
        }
        tail
    }

    fn read(&self) -> impl Iterator<Item = &Page> {
        self.pages.values().filter_map(|page| page.as_ref().ok())
    }
}

/// The pages are told about like any other object; what has another name is none.
impl Index<ConfigMap> for Log {
    fn apply(&mut self, key: &Key, object: ConfigMap) {
        if let Some(number) = page_number(key.name()) {
            self.pages.insert(number, Page::read(&object));
        }
    }

    fn delete(&mut self, key: &Key) {
        if let Some(number) = page_number(key.name()) {
            self.pages.remove(&number);
        }
    }
}

fn page_name(number: u64) -> String {
    format!("{PAGE_PREFIX}{number}")
}

/// The number of a page; `None` for all other names, also for those that only look like one (`…-007`).
fn page_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PAGE_PREFIX)?.parse().ok()?;
    (page_name(number) == name).then_some(number)
}

type Tails = BTreeMap<ContractId, Tail>;
type Agreed = BTreeSet<Digest>;
