//! One ConfigMap of the log.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::labels;
use liqo_core::canonical::Digest;
use liqo_core::chain::{Entry, Event, Head, verify};
use liqo_core::names::ClusterId;

use super::{Agreed, Noted, PAGE_LABEL, Tail, Tails};

/// The key under which a page says whose log it is.
const CLUSTER_ID: &str = "cluster-id";
/// What the keys of entries begin with; the number follows, in as many digits as make their order that of the numbers.
const ENTRY_PREFIX: &str = "entry-";
const ENTRY_DIGITS: usize = 10;

/// A page that can be read.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) resource_version: String,
    pub(super) cluster: String,
    /// What its first entry ties in with.
    start: Head,
    /// When its first entry was made.
    begins: Timestamp,
    end: Head,
    /// Digests of terms that were agreed on.
    pub(super) agreed: Agreed,
    pub(super) tails: Tails,
}

impl Page {
    /// Reads a page, whose entries must tie in with each other.
    pub(super) fn read(object: &ConfigMap) -> Result<Self, String> {
        let mut data = object.data.clone().unwrap_or_default();
        let cluster = data.remove(CLUSTER_ID).ok_or_else(|| format!("{CLUSTER_ID} is missing"))?;
        let entries = data.iter().map(|(key, line)| read_entry(key, line)).collect::<Result<Vec<_>, _>>()?;
        let first = entries.first().ok_or("it has no entries")?;
        // Where it begins is for the page before to say; its own time is no earlier than that one's.
        let start = Head { length: first.index, hash: first.previous, time: Timestamp::MIN };
        let end = verify(start, &entries, None).map_err(|broken| broken.to_string())?;
        let mut page = Self {
            resource_version: object.resource_version().unwrap_or_default(),
            cluster,
            start,
            begins: first.time,
            end,
            agreed: Agreed::new(),
            tails: Tails::new(),
        };
        entries.iter().for_each(|entry| page.note(entry));
        Ok(page)
    }

    fn note(&mut self, entry: &Entry) {
        let nothing = Tail { agreed: None, over: false, broken: None };
        let tail = self.tails.entry(entry.contract.clone()).or_insert(nothing);
        match entry.event {
            Event::Proposed => {}
            Event::Signed | Event::Amended | Event::Renewed => {
                tail.agreed = Some(entry.time);
                self.agreed.insert(entry.digest);
            }
            Event::Expired | Event::Ended => tail.over = true,
            Event::Breached => tail.broken = Some(true),
            Event::Kept => tail.broken = Some(false),
        }
    }

    pub(super) fn length(&self) -> u64 {
        self.end.length - self.start.length
    }

    /// The end of the log after this page, if it ties in.
    pub(super) fn follow(&self, head: Head) -> Result<Head, String> {
        if self.start.length != head.length {
            let (found, expected) = (self.start.length, head.length);
            return Err(format!("it begins with entry {found}, expected was {expected}"));
        }
        if self.start.hash != head.hash {
            return Err("its first entry holds another hash than that of the entry before".to_owned());
        }
        if self.begins < head.time {
            return Err("its first entry is earlier than the entry before".to_owned());
        }
        Ok(self.end)
    }
}

fn read_entry(key: &str, line: &str) -> Result<Entry, String> {
    let entry = Entry::parse(line).map_err(|error| format!("{key:.80}: {error}"))?;
    if entry_key(entry.index) == key {
        Ok(entry)
    } else {
        Err(format!("{key:.80}: entry {} is there", entry.index))
    }
}

fn entry_key(index: u64) -> String {
    format!("{ENTRY_PREFIX}{index:0ENTRY_DIGITS$}")
}

/// The lines of some entries that follow on `head`, at most `room` of them.
pub(super) fn lines(mut head: Head, entries: &[Noted], room: u64, now: Timestamp) -> Lines {
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let mut lines = Lines::new();
    for noted in entries.iter().take(room) {
        let entry = head.append(noted.contract.clone(), noted.digest, noted.event, now);
        lines.insert(entry_key(entry.index), entry.to_line());
        head = Head { length: entry.index.saturating_add(1), hash: entry.hash, time: entry.time };
    }
    lines
}

type Lines = BTreeMap<String, String>;

/// A write to the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The ConfigMap.
    pub name: String,
    /// The version of it that the entries follow on; `None` if it is to be created.
    pub resource_version: Option<String>,
    /// What is to be in it.
    pub data: Lines,
}

impl Append {
    pub(super) fn new(
        name: String,
        resource_version: Option<String>,
        cluster: &ClusterId,
        mut data: Lines,
    ) -> Self {
        if resource_version.is_none() {
            data.insert(CLUSTER_ID.to_owned(), cluster.to_string());
        }
        Self { name, resource_version, data }
    }

    /// The page, to be created in this namespace with these labels.
    pub fn page(&self, namespace: &str, mut all_labels: BTreeMap<String, String>) -> ConfigMap {
        all_labels.insert(PAGE_LABEL.to_owned(), labels::TRUE.to_owned());
        ConfigMap {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(namespace.to_owned()),
                labels: Some(all_labels),
                ..ObjectMeta::default()
            },
            data: Some(self.data.clone()),
            ..ConfigMap::default()
        }
    }

    /// The merge patch that adds the entries, and only to what was seen.
    pub fn patch(&self) -> serde_json::Value {
        serde_json::json!({ "metadata": { "resourceVersion": self.resource_version }, "data": self.data })
    }

    /// The hash of the last entry that is added.
    pub fn last(&self) -> Option<Digest> {
        let line = self.data.iter().rev().find(|(key, _)| key.starts_with(ENTRY_PREFIX))?.1;
        Entry::parse(line).ok().map(|entry| entry.hash)
    }
}
