//! Whether the nodes behind a provider's API server answer.
//!
//! Kubernetes at the provider notices a dead node after 40 s, and whoever could tell us may have been on it. So the nodes on
//! which our pods run are asked through the provider's API server: a line of a pod's log comes from its kubelet.
//!
//! What is here is pure: who is asked when, what follows from the answers, and of which virtual nodes nothing is left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::health::{Health, Patience, Record};

mod ask;
mod survey;
#[cfg(test)]
mod tests;

pub use ask::{Answer, ask};
pub use survey::{Behind, Bench, Survey};

/// How often a node is asked.
const EVERY: SignedDuration = SignedDuration::from_secs(2);
/// How soon one is asked again that has just not answered, so that it is known in time.
const IN_DOUBT: SignedDuration = SignedDuration::from_millis(500);
/// How often one is asked that has not answered yet: its kubelet may just be starting.
const AT_FIRST: SignedDuration = SignedDuration::from_secs(5);
/// After so many attempts it is not about to answer any more: about a minute.
const FIRST_ATTEMPTS: u32 = 12;
/// How often one is asked that never answered: its provider may not let anybody through to its kubelets.
const SELDOM: SignedDuration = SignedDuration::from_secs(60);
/// How often in a row a node must not have answered.
const LEAST_FAILURES: u32 = 3;
/// How long is remembered what was found out about a node on which nothing of ours runs any more.
const REMEMBERED: SignedDuration = SignedDuration::from_secs(60);
/// As patient as with the providers themselves.
const PATIENCE: Patience = Patience { down_after: Duration::from_secs(8), up_after: Duration::from_secs(4) };
/// The same before there were enough attempts.
const NOT_YET: Patience = Patience { down_after: Duration::MAX, ..PATIENCE };
/// How many nodes are asked in a second, however many there are.
const MOST_IN_A_SECOND: usize = 20;
/// How often somebody looks at who is due.
pub const ROUND: Duration = Duration::from_millis(250);
const MOST_IN_A_ROUND: usize = MOST_IN_A_SECOND / 4;

/// A provider and one of its nodes.
pub type NodeKey = (Arc<str>, Arc<str>);

/// The nodes on which pods of ours run.
#[derive(Default)]
pub struct Nodes(BTreeMap<Arc<str>, BTreeMap<Arc<str>, Node>>);

/// What is known of one node.
struct Node {
    /// What was measured; nothing before it answered for the first time.
    record: Option<Record>,
    /// How often it did not answer since it last did.
    failures: u32,
    /// When it was found out that it is gone.
    noticed: Option<Timestamp>,
    /// Whether it was said to be gone before anything was measured.
    said_gone: bool,
    /// When pods of ours were last there.
    used: Timestamp,
    due: Timestamp,
    asking: bool,
}

impl Node {
    /// One of which nothing is known, or that is said to have been gone: then it did answer before.
    fn new(said_gone: bool, now: Timestamp) -> Self {
        let record = said_gone.then(|| Record::new(now));
        Self { record, failures: 0, noticed: None, said_gone, used: now, due: now, asking: false }
    }

    fn health(&self) -> Health {
        self.record.as_ref().map_or(Health::Unknown, |record| record.health().clone())
    }

    fn is_gone(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.health().is_gone())
    }

    /// Whether it never answered, though it was asked often enough.
    const fn is_mute(&self) -> bool {
        self.record.is_none() && self.failures >= LEAST_FAILURES
    }

    /// What matters for the pods there: whether it is gone, and whether that is found out where it was said.
    fn judgement(&self) -> (bool, bool) {
        (self.is_gone(), self.said_gone && self.health() == Health::Unknown)
    }

    /// Nobody got as far as the node: an API server that was away must be given time to find its nodes.
    fn excuse(&mut self, now: Timestamp) {
        if let Some(record) = self.record.as_mut().filter(|record| !record.health().is_gone()) {
            self.failures = 0;
            record.excuse(now);
        }
    }

    fn observe(&mut self, answer: Answer, now: Timestamp) -> bool {
        let before = self.judgement();
        let wait = match answer {
            Answer::Lives => {
                self.failures = 0;
                self.record.get_or_insert_with(|| Record::new(now)).observe(Ok(()), now, PATIENCE);
                EVERY
            }
            Answer::Silent(why) => {
                self.failures = self.failures.saturating_add(1);
                let patience = if self.failures < LEAST_FAILURES { NOT_YET } else { PATIENCE };
                if let Some(record) = &mut self.record {
                    record.observe(Err(why), now, patience);
                }
                match (self.is_mute(), self.is_gone()) {
                    (true, _) if self.failures < FIRST_ATTEMPTS => AT_FIRST,
                    (true, _) => SELDOM,
                    (false, true) => EVERY,
                    (false, false) => IN_DOUBT,
                }
            }
            Answer::Refused => {
                // Of one that never answered, it is found out less often whether it may be asked.
                self.failures = self.failures.saturating_add(u32::from(self.record.is_none()));
                if self.is_mute() { SELDOM } else { EVERY }
            }
            Answer::Unclear => {
                self.excuse(now);
                EVERY
            }
        };
        (self.asking, self.due) = (false, later(now, wait));
        self.noticed = self.is_gone().then(|| self.noticed.unwrap_or(now));
        before != self.judgement()
    }
}

impl Nodes {
    /// Pods of ours run on these nodes now; with each, whether it was said before that it is gone.
    pub fn use_only(&mut self, used: &BTreeMap<NodeKey, bool>, now: Timestamp) {
        for ((provider, name), said_gone) in used {
            let nodes = self.0.entry(Arc::clone(provider)).or_default();
            nodes.entry(Arc::clone(name)).or_insert_with(|| Node::new(*said_gone, now)).used = now;
        }
        self.0.retain(|_, nodes| {
            nodes.retain(|_, node| node.asking || now.duration_since(node.used) < REMEMBERED);
            !nodes.is_empty()
        });
    }

    /// Those to be asked now, with how often each did not answer. Those in doubt come first, then who waits longest; the
    /// others are asked in the next round.
    pub fn take_due(&mut self, now: Timestamp) -> Vec<(NodeKey, u32)> {
        let all = self.0.iter_mut().flat_map(|(provider, nodes)| {
            nodes.iter_mut().map(move |(name, node)| ((Arc::clone(provider), Arc::clone(name)), node))
        });
        let mut due: Vec<_> = all.filter(|(_, node)| !node.asking && node.due <= now).collect();
        due.sort_by_key(|(_, node)| (node.failures == 0 || node.is_gone(), node.due));
        let asked = due.into_iter().take(MOST_IN_A_ROUND).map(|(key, node)| {
            node.asking = true;
            (key, node.failures)
        });
        asked.collect()
    }

    /// Takes in an answer. Returns whether that matters for the pods there.
    pub fn observe(&mut self, (provider, name): &NodeKey, answer: Answer, now: Timestamp) -> bool {
        let node = self.0.get_mut(provider).and_then(|nodes| nodes.get_mut(name));
        node.is_some_and(|node| node.observe(answer, now))
    }

    /// Nobody can ask this node now: nothing of ours runs there any more, or yet.
    pub fn postpone(&mut self, (provider, name): &NodeKey, now: Timestamp) {
        if let Some(node) = self.0.get_mut(provider).and_then(|nodes| nodes.get_mut(name)) {
            (node.asking, node.due) = (false, later(now, IN_DOUBT));
        }
    }

    /// How a node is.
    pub fn health(&self, provider: &str, name: &str) -> Health {
        self.node(provider, name).map_or(Health::Unknown, Node::health)
    }

    /// Whether a node never answered, though it was asked often enough: nothing can be told of it.
    pub fn is_mute(&self, provider: &str, name: &str) -> bool {
        self.node(provider, name).is_some_and(Node::is_mute)
    }

    /// When it was noticed that this node is gone.
    pub fn noticed(&self, provider: &str, name: &str) -> Option<Timestamp> {
        self.node(provider, name)?.noticed
    }

    /// The nodes of this provider that are gone.
    pub fn gone(&self, provider: &str) -> impl Iterator<Item = &Arc<str>> {
        let nodes = self.0.get(provider).into_iter().flatten();
        nodes.filter(|(_, node)| node.is_gone()).map(|(name, _)| name)
    }

    /// The providers, with how many of their nodes are gone.
    pub fn counts(&self) -> impl Iterator<Item = (&Arc<str>, usize)> {
        self.0.keys().map(|provider| (provider, self.gone(provider).count()))
    }

    fn node(&self, provider: &str, name: &str) -> Option<&Node> {
        self.0.get(provider)?.get(name)
    }
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
