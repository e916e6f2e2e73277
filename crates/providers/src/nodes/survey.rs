//! Of which virtual nodes nothing is left: none of the nodes behind them answers.
//!
//! Such a virtual node is benched: it takes no pods, and those there leave. Nodes of the provider on which nothing of ours
//! ran may be fine, and nobody tells us. So it is tried again after a while; if pods are not placed there then, it is benched
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::later;
use crate::health::Health;

/// For how long a virtual node gets no pods if nothing else is heard.
const BENCHED: SignedDuration = SignedDuration::from_secs(60);

/// What is behind a virtual node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// The nodes on which its pods run, those aside that never answered.
    pub nodes: Vec<Health>,
    /// Whether the provider has found no node for one of its pods.
    pub unplaced: bool,
}

/// What is known of the virtual nodes, by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Whether anybody has looked yet.
    pub complete: bool,
    /// Those of which nothing is left.
    gone: BTreeMap<Arc<str>, Health>,
    /// Those behind which nobody has been asked yet.
    unsure: BTreeSet<Arc<str>>,
}

impl Survey {
    /// Whether something is left behind this virtual node.
    pub fn of(&self, virtual_node: &str) -> Health {
        match self.gone.get(virtual_node) {
            Some(gone) => gone.clone(),
            None if !self.complete || self.unsure.contains(virtual_node) => Health::Unknown,
            None => Health::Reachable,
        }
    }

    /// Those of which two surveys say something else.
    pub fn differing(&self, other: &Self) -> BTreeSet<Arc<str>> {
        let named = [self, other].into_iter().flat_map(|it| it.gone.keys().chain(&it.unsure));
        named.filter(|name| self.of(name) != other.of(name)).cloned().collect()
    }
}

/// The virtual nodes that are benched, or were and are tried.
#[derive(Default)]
pub struct Bench(BTreeMap<Arc<str>, Seat>);

enum Seat {
    Benched { until: Timestamp, gone: Health },
    Tried,
}

impl Bench {
    /// What follows from what is behind each virtual node.
    pub fn judge(&mut self, behind: &BTreeMap<Arc<str>, Behind>, now: Timestamp) -> Survey {
        let mut survey = Survey { complete: true, ..Survey::default() };
        self.0.retain(|name, _| behind.contains_key(name));
        for (name, behind) in behind {
            match self.sit(name, behind, now) {
                Health::Reachable => {}
                Health::Unknown => drop(survey.unsure.insert(Arc::clone(name))),
                gone @ Health::Unreachable { .. } => drop(survey.gone.insert(Arc::clone(name), gone)),
            }
        }
        survey
    }

    fn sit(&mut self, name: &Arc<str>, behind: &Behind, now: Timestamp) -> Health {
        if behind.nodes.contains(&Health::Reachable) {
            self.0.remove(name);
            return Health::Reachable;
        }
        let all_gone = behind.nodes.iter().all(Health::is_gone);
        let last = last(&behind.nodes);
        match (self.0.get(name), last) {
            (Some(Seat::Benched { until, gone }), _) if now < *until => gone.clone(),
            (Some(Seat::Tried), Some(gone)) if all_gone && behind.unplaced => self.bench(name, gone, now),
            (Some(_), Some(_)) => {
                self.0.insert(Arc::clone(name), Seat::Tried);
                Health::Reachable
            }
            (None, Some(gone)) if all_gone => self.bench(name, gone, now),
            (_, None) if behind.nodes.is_empty() => {
                self.0.remove(name);
                Health::Reachable
            }
            _ => Health::Unknown,
        }
    }

    fn bench(&mut self, name: &Arc<str>, gone: Health, now: Timestamp) -> Health {
        self.0.insert(Arc::clone(name), Seat::Benched { until: later(now, BENCHED), gone: gone.clone() });
        gone
    }
}

/// That of the nodes that answered last.
fn last(nodes: &[Health]) -> Option<Health> {
    let since = |health: &&Health| match health {
        Health::Unreachable { since, .. } => Some(*since),
        Health::Unknown | Health::Reachable => None,
    };
    nodes.iter().filter(|health| health.is_gone()).max_by_key(since).cloned()
}
