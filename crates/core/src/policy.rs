//! Sharing policies: what is shared, how much, with whom, at what price and when.
//!
//! ```text
//! Spec ──read──▶ Policy ─┐
//!    (all problems,      ├─▶ evaluate ──▶ Offer | Refuse | NeedsApproval
//!     with their fields) │                and line by line how it came about
//! Peer, Capacity, Ledger ┘
//! ```
//!
//! # Which policy applies
//!
//! A policy is about the clusters in its list and with its labels. Of those that are about a cluster **and in their
//! time**, the most specific one applies: a list of IDs before labels, more label requirements before fewer, anything
//! before nothing; among equals a denial before a permission, then the first name in the alphabet.
//!
//! - There is no policy that permits anything: the cluster's own percentage applies to everybody who is not denied.
//! - There is one, but none that is about this cluster: it is refused, and told what it lacks.
//! - Those about this cluster are out of their time: it is refused until the first of them opens. Another policy that
//!   is about it and in its time steps in; the cluster's own percentage never does, as whoever writes "at night"
//!   means "not by day".
//! - A policy that is not valid is in force nevertheless, and refuses: a mistake must not open what was closed.
//!
//! # How much
//!
//! Every policy is a pot that its clusters share, resource by resource:
//!
//! ```text
//! what is free on the policy's nodes              ready, schedulable, physical; use by the pot's clusters is free
//! + autoscaled − reserve                          never below zero
//! × percentage × overcommit, rounded once         to millicores, MiB, huge pages, whole pods and GPUs
//! at most cap                                     ── this is the pot
//! − sold or used by the pot's other clusters      whichever is more
//! at most what the whole cluster has not sold yet
//! at most per-peer percentage, per-peer cap, and what the cluster asks for
//! ```
//!
//! Where the policy has pools, each of them has its own pot, of its own nodes, beside the one for all: what is offered is at
//! most what the pools have left together, and is shared out over them in proportion to that. Sold is by pool, so that no
//! pool is sold twice.
//!
//! So 90 % of one GPU is none, or one where the policy rounds up. A resource of which nothing comes out is not in the
//! offer; `pods` is always shared, because nothing runs without. An offer of no resource but pods is a refusal.
//!
//! Labels must be those that this cluster's administrators gave the peer. What a peer says of itself proves nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use crate::capacity::LargestPod;
use crate::contract::{Enforcement, Renewal, ServiceLevel};
use crate::field::FieldProblem;
use crate::ledger::Limits;
use crate::money::Prices;
use crate::names::{ClusterId, PoolName};
use crate::pattern::Patterns;
use crate::pools::Pools;
use crate::quantity::{Quantity, Ratio, Rounding};
use crate::resources::{ResourceName, Resources};
use crate::selector::{Labels, Selector};
use crate::span::Span;

mod amounts;
mod backing;
mod evaluate;
mod explain;
mod nodes;
mod read;
mod select;
pub mod spec;
mod time;
mod window;

#[cfg(test)]
mod tests;

pub use backing::shortages;
pub use evaluate::evaluate;
pub use explain::Line;
pub use nodes::dropped;
pub use spec::Spec;
pub use time::next_change;

use window::Window;

/// How long a contract lasts unless the policy says so. What is reserved for a consumer that is gone for ever is free
/// again after at most this long; one that is there renews long before.
const DEFAULT_DURATION: Span = Span::clamped(86_400);

/// A policy that is in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    name: String,
    peers: Peers,
    action: Action,
    needs_approval: bool,
    sharing: Sharing,
    extras: Extras,
    prices: Option<Prices>,
    windows: Vec<Window>,
    not_before: Option<Timestamp>,
    not_after: Option<Timestamp>,
    conditions: Conditions,
    kept_annotations: Patterns,
    problems: Vec<FieldProblem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Action {
    // The order matters: among equals a denial comes first.
    Deny,
    Allow,
}

/// Whom a policy is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Peers {
    ids: BTreeSet<ClusterId>,
    labels: Selector,
}

/// Which resources of which nodes, and how much of each.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sharing {
    names: Patterns,
    nodes: Selector,
    pools: Vec<SharedPool>,
    every: Share,
    particular: BTreeMap<ResourceName, Share>,
}

/// A part of the nodes that is lent apart from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SharedPool {
    name: PoolName,
    nodes: Selector,
    labels: Labels,
}

/// How much of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    percentage: Option<Percent>,
    overcommit: Ratio,
    rounding: Rounding,
    per_peer: Option<Percent>,
    cap: Option<Quantity>,
    per_peer_cap: Option<Quantity>,
    reserve: Quantity,
    autoscaled: Quantity,
}

/// What an offer has besides resources; names are looked up by whoever knows what there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extras {
    /// Storage classes that may be used.
    pub storage_classes: Patterns,
    /// The storage class of volumes that name none.
    pub default_storage_class: Option<String>,
    /// Exported services, as `namespace/name`.
    pub services: Patterns,
    /// Images that are told about.
    pub images: Patterns,
}

/// What a contract under the policy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    /// How long an offer stands.
    pub offer_validity: Span,
    /// How long a contract lasts.
    pub duration: Span,
    /// What happens at its end.
    pub renewal: Renewal,
    /// Whether use beyond the agreed is refused or reported.
    pub enforcement: Enforcement,
    /// What else is promised.
    pub service_level: ServiceLevel,
}

/// Hundredths, from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Percent(u8);

/// A cluster that asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// What identifies it.
    pub id: ClusterId,
    /// Labels that **this** cluster's administrators gave it.
    pub labels: Labels,
    /// Whether somebody said yes to it, where that is required.
    pub approved: bool,
    /// The most it wants of some resources; of others it takes what it gets.
    pub wants: Resources,
}

/// What comes out of a question, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The answer.
    pub verdict: Verdict,
    /// How it came about, step by step.
    pub lines: Vec<Line>,
}

/// The answer to a cluster that asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is offered this.
    Offer(Box<Offer>),
    /// It gets nothing.
    Refuse(Refusal),
    /// It gets something as soon as somebody says yes; the sentence says what is waited for.
    NeedsApproval(String),
}

/// Why a cluster gets nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why, for programs.
    pub cause: Cause,
    /// Why, as a sentence for the person at the other end: "policy gold-only needs label tier=gold".
    pub message: String,
}

/// Why a cluster gets nothing, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A policy denies it.
    Denied,
    /// No policy is about it.
    NotSelected,
    /// Not at this time.
    OutsideTime,
    /// The policy that applies is not valid.
    InvalidPolicy,
    /// Nothing is left.
    NothingLeft,
}

/// What a cluster is offered. Equal worlds give equal offers: nothing in it depends on when it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// The policy that it comes from; `None` if there is none.
    pub policy: Option<String>,
    /// How much, all in all, what the cluster has already included.
    pub resources: Resources,
    /// The same by pool; nothing where the policy has none.
    pub pools: Pools,
    /// The largest pods that fit now.
    pub largest_pod: LargestPod,
    /// The largest pods that fit now into each pool.
    pub largest_pods: BTreeMap<PoolName, LargestPod>,
    /// What it costs; `None` if it is free.
    pub prices: Option<Prices>,
    /// What there is besides resources.
    pub extras: Extras,
    /// What a contract says.
    pub conditions: Conditions,
    /// When it ends at the latest: the window closes, or the policy ends.
    pub ends: Option<Timestamp>,
    /// What may be sold, for [`Ledger::admit`](crate::ledger::Ledger::admit).
    pub limits: Limits,
}

impl Percent {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// Everything.
    pub const ALL: Self = Self(100);

    /// So many hundredths; `None` unless 0 to 100.
    pub fn new(percent: i64) -> Option<Self> {
        u8::try_from(percent).ok().filter(|percent| *percent <= 100).map(Self)
    }

    /// The hundredths.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} %", self.0)
    }
}

impl Policy {
    /// The policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong with it; a policy with problems refuses whom it is about.
    pub fn problems(&self) -> &[FieldProblem] {
        &self.problems
    }

    /// What it shares besides resources.
    pub const fn extras(&self) -> &Extras {
        &self.extras
    }

    /// The annotations that pods of other clusters keep besides the harmless ones.
    pub const fn kept_annotations(&self) -> &Patterns {
        &self.kept_annotations
    }
}

impl Offer {
    /// From when to when a contract that is proposed now is valid, in whole seconds.
    pub fn validity(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let begin = whole_second(now);
        let end = whole_second(self.end_by(self.conditions.duration.after(begin)));
        (begin, end.max(Span::clamped(1).after(begin)))
    }

    /// The end that a contract can have if it should have `end`: that one, or when the offer ends.
    pub fn end_by(&self, end: Timestamp) -> Timestamp {
        self.ends.map_or(end, |ends| ends.min(end))
    }

    /// For how long a contract goes on each time it ends.
    pub fn renewal(&self) -> Option<Span> {
        (self.conditions.renewal == Renewal::Auto).then_some(self.conditions.duration)
    }
}

fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

impl Default for Share {
    fn default() -> Self {
        Self {
            percentage: None,
            overcommit: Ratio::ONE,
            rounding: Rounding::TowardZero,
            per_peer: None,
            cap: None,
            per_peer_cap: None,
            reserve: Quantity::ZERO,
            autoscaled: Quantity::ZERO,
        }
    }
}

impl Default for Sharing {
    fn default() -> Self {
        Self {
            names: Patterns::everything(),
            nodes: Selector::everything(),
            pools: Vec::new(),
            every: Share::default(),
            particular: BTreeMap::new(),
        }
    }
}

impl Default for Extras {
    fn default() -> Self {
        Self {
            storage_classes: Patterns::everything(),
            default_storage_class: None,
            services: Patterns::nothing(),
            images: Patterns::nothing(),
        }
    }
}

impl Default for Conditions {
    fn default() -> Self {
        Self {
            offer_validity: Span::clamped(3_600),
            duration: DEFAULT_DURATION,
            renewal: Renewal::Auto,
            enforcement: Enforcement::Hard,
            service_level: ServiceLevel::default(),
        }
    }
}
