//! What monitoring sees of the room.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use liqo_api::contract::{CAPACITY_BACKED, ContractPhase, WITHIN_AGREED};
use liqo_api::foreign_cluster::{PeeringConditionStatus as Status, PeeringConditionType as Part};
use liqo_core::Resources;
use liqo_core::names::ClusterId;
use liqo_core::policy::{self, Verdict};
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::index::{Deal, Index};
use crate::lending::ledger;
use crate::places::Me;
use crate::settings::Settings;
use crate::standing::is_true;
use crate::status;

#[cfg(test)]
mod tests;

/// How long amounts are shown at least before they are reckoned anew.
const REST: Duration = Duration::from_secs(1);
/// Billionths in one.
const NANOS: f64 = 1e9;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabels {
    direction: &'static str,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ContractLabels {
    role: &'static str,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BrokenLabels {
    role: &'static str,
    obligation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: String,
}

type Amounts = Family<ResourceLabel, Gauge<f64, AtomicU64>>;

/// What the room counts. Clones share it.
#[derive(Clone)]
pub struct PeeringMetrics {
    peers: Family<PhaseLabels, Gauge>,
    durations: Family<PhaseLabels, Histogram>,
    contracts: Family<ContractLabels, Gauge>,
    broken: Family<BrokenLabels, Gauge>,
    unreachable: Gauge,
    sold: Amounts,
    free: Amounts,
    seen: Arc<Mutex<BTreeMap<(ClusterId, &'static str), Seen>>>,
    reckoned: Arc<Mutex<Option<Reckoned>>>,
}

/// What the amounts were reckoned from, and when.
#[derive(Clone, Copy)]
struct Reckoned {
    stock: u64,
    book: u64,
    at: Instant,
}

/// The phase that a peer was last seen in.
#[derive(Clone, Copy)]
struct Seen {
    phase: &'static str,
    /// Since when; nothing if that was before anybody looked.
    since: Option<Instant>,
}

impl Default for PeeringMetrics {
    fn default() -> Self {
        Self {
            peers: Family::default(),
            // 10 ms to 80 s, and what takes longer.
            durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.01, 2.0, 14))),
            contracts: Family::default(),
            broken: Family::default(),
            unreachable: Gauge::default(),
            sold: Family::default(),
            free: Family::default(),
            seen: Arc::default(),
            reckoned: Arc::default(),
        }
    }
}

impl PeeringMetrics {
    /// Registers the numbers under the prefix `liqo_peering`. Only the leader's are other than zero.
    pub fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("liqo_peering");
        let peers = "Other clusters by direction and by how far peering with them is";
        registry.register("peers", peers, self.peers.clone());
        let durations = "How long peers were in a phase that they have left";
        registry.register("phase_duration_seconds", durations, self.durations.clone());
        let contracts = "Contracts by our part in them and by phase";
        registry.register("contracts", contracts, self.contracts.clone());
        let broken = "Contracts in force that are not kept, by our part in them: promised capacity is missing, or more is used";
        registry.register("contracts_broken", broken, self.broken.clone());
        let unreachable = "Other clusters that should be reached and do not answer";
        registry.register("peers_unreachable", unreachable, self.unreachable.clone());
        let sold = "What is promised to other clusters by contracts, by resource";
        registry.register("ledger_sold", sold, self.sold.clone());
        let free = "What could still be promised to a cluster that nothing is known of, by resource";
        registry.register("ledger_free", free, self.free.clone());
    }

    /// Shows what is known, and returns for how long that need not be done again; nothing if it was done.
    pub(crate) fn show(&self, index: &Index, me: &Me, settings: &Settings) -> Duration {
        self.show_peers(index);
        self.show_contracts(index, me);
        self.show_broken(index, me);
        let troubled = index.links.values().filter(|link| link.trouble.is_some()).count();
        self.unreachable.set(i64::try_from(troubled).unwrap_or(i64::MAX));
        let rest = self.rest(index);
        if rest.is_zero() {
            show_amounts(&self.sold, &ledger(index, me).sold());
            show_amounts(&self.free, &free(index, me, settings));
        }
        rest
    }

    /// For how long the amounts are not reckoned anew: until something changed, and not for each pod that comes and goes.
    fn rest(&self, index: &Index) -> Duration {
        let mut reckoned = self.reckoned.lock();
        let now =
            Reckoned { stock: index.stock.revision(), book: index.memory.revision(), at: Instant::now() };
        let rest = match *reckoned {
            Some(before) if (before.stock, before.book) == (now.stock, now.book) => Duration::MAX,
            Some(before) => REST.saturating_sub(before.at.elapsed()),
            None => Duration::ZERO,
        };
        if rest.is_zero() {
            *reckoned = Some(now);
        }
        rest
    }

    /// Shows that nobody looks any more.
    pub(crate) fn clear(&self) {
        self.peers.clear();
        self.contracts.clear();
        self.broken.clear();
        self.unreachable.set(0);
        self.sold.clear();
        self.free.clear();
        self.seen.lock().clear();
        *self.reckoned.lock() = None;
    }

    fn show_peers(&self, index: &Index) {
        let now = Instant::now();
        let mut counts: BTreeMap<(&'static str, &'static str), i64> = BTreeMap::new();
        let mut seen = self.seen.lock();
        let first = seen.is_empty();
        let mut present = BTreeMap::new();
        for peer in index.peers() {
            let Some(cluster) = index.cluster_of(&peer) else { continue };
            for (part, direction) in
                [(Part::OutgoingPeering, "outgoing"), (Part::IncomingPeering, "incoming")]
            {
                let status = status::current(cluster, part).map_or(Status::None, |told| told.status);
                let phase = phase_word(status);
                *counts.entry((direction, phase)).or_default() += 1;
                let key = (peer.clone(), direction);
                let before = seen.get(&key).copied();
                let now = match before {
                    Some(before) if before.phase == phase => before,
                    Some(before) => {
                        self.left(direction, before, now);
                        Seen { phase, since: Some(now) }
                    }
                    None => Seen { phase, since: (!first).then_some(now) },
                };
                present.insert(key, now);
            }
        }
        *seen = present;
        drop(seen);
        for direction in ["outgoing", "incoming"] {
            for phase in PHASES.map(|(_, word)| word) {
                let count = counts.get(&(direction, phase)).copied().unwrap_or_default();
                self.peers.get_or_create(&PhaseLabels { direction, phase }).set(count);
            }
        }
    }

    fn left(&self, direction: &'static str, before: Seen, now: Instant) {
        if let Some(since) = before.since {
            let labels = PhaseLabels { direction, phase: before.phase };
            self.durations.get_or_create(&labels).observe(now.duration_since(since).as_secs_f64());
        }
    }

    fn show_contracts(&self, index: &Index, me: &Me) {
        let mut counts: BTreeMap<(&'static str, &'static str), i64> = BTreeMap::new();
        for (_, deal) in index.here.contracts.iter() {
            *counts.entry((role(deal, me), contract_word(deal.phase()))).or_default() += 1;
        }
        for role in ["provider", "consumer"] {
            for phase in CONTRACT_PHASES.map(contract_word) {
                let count = counts.get(&(role, phase)).copied().unwrap_or_default();
                self.contracts.get_or_create(&ContractLabels { role, phase }).set(count);
            }
        }
    }

    fn show_broken(&self, index: &Index, me: &Me) {
        let in_force =
            || index.here.contracts.iter().map(|(_, deal)| deal).filter(|it| it.phase().is_in_force());
        for role_ in ["provider", "consumer"] {
            for (kind, obligation) in [(CAPACITY_BACKED, "capacity"), (WITHIN_AGREED, "use")] {
                let is_broken = |deal: &Deal| deal.condition(kind).is_some_and(|it| !is_true(it));
                let count = in_force().filter(|deal| role(deal, me) == role_ && is_broken(deal)).count();
                let labels = BrokenLabels { role: role_, obligation };
                self.broken.get_or_create(&labels).set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
    }
}

/// Our part in a contract.
fn role(deal: &Deal, me: &Me) -> &'static str {
    if deal.spec.provider_id == me.id().as_str() { "provider" } else { "consumer" }
}

/// What a cluster would be offered that has no labels and nothing yet.
fn free(index: &Index, me: &Me, settings: &Settings) -> Resources {
    let stranger = policy::Peer {
        id: me.id().clone(),
        labels: liqo_core::selector::Labels::default(),
        approved: true,
        wants: Resources::new(),
    };
    let (stock, now) = (&index.stock, settings.clock.now());
    let ledger = ledger(index, me);
    let asked =
        policy::evaluate(stock.policies(), settings.percentage, &stranger, stock.capacity(), &ledger, now);
    match asked.verdict {
        Verdict::Offer(offer) => offer.resources,
        Verdict::Refuse(_) | Verdict::NeedsApproval(_) => Resources::new(),
    }
}

fn show_amounts(family: &Amounts, amounts: &Resources) {
    family.clear();
    for (name, amount) in amounts.iter() {
        #[expect(clippy::cast_precision_loss, reason = "monitoring needs no more than 52 bits")]
        let units = amount.nanos() as f64 / NANOS;
        family.get_or_create(&ResourceLabel { resource: name.to_string() }).set(units);
    }
}

const PHASES: [(Status, &str); 8] = [
    (Status::None, "none"),
    (Status::Pending, "pending"),
    (Status::Established, "established"),
    (Status::Disconnecting, "disconnecting"),
    (Status::Denied, "denied"),
    (Status::EmptyDenied, "empty_denied"),
    (Status::Error, "error"),
    (Status::Success, "success"),
];

fn phase_word(status: Status) -> &'static str {
    PHASES.iter().find(|(known, _)| *known == status).map_or("none", |(_, word)| word)
}

const CONTRACT_PHASES: [ContractPhase; 6] = [
    ContractPhase::Proposed,
    ContractPhase::Active,
    ContractPhase::Amending,
    ContractPhase::Refused,
    ContractPhase::Expired,
    ContractPhase::Ended,
];

fn contract_word(phase: ContractPhase) -> &'static str {
    match phase {
        ContractPhase::Proposed => "proposed",
        ContractPhase::Active => "active",
        ContractPhase::Amending => "amending",
        ContractPhase::Refused => "refused",
        ContractPhase::Expired => "expired",
        ContractPhase::Ended => "ended",
    }
}
