//! What only the leader does: look at peers, plan, and write what is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_core::ledger::Ledger;
use liqo_core::names::ClusterId;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::WatchStatus;
use liqo_kit::write::{Enqueued, Outcome, QueueConfig, Target, Worker, Write, WriteMetrics, Written};
use liqo_kit::{BackoffPolicy, Queue};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Room;
use crate::house;
use crate::index::Reserved;
use crate::lending::{ledger, obligations};
use crate::parting;
use crate::places::{Me, Planned, View};
use crate::steps::{Paced, Step, Where};

/// The name under which this room owns fields.
pub(super) const FIELD_MANAGER: &str = "liqo-peering";
/// How long a write may take. Shorter than a successor waits before it leads (15 s − 10 s), so that nothing that this
/// process sells arrives after another one began to sell.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(4);

/// How often all peers are looked at though nobody told of a change: what was given up is asked for again this way.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How often it is noticed that peers do not answer.
const NOTICE: Duration = Duration::from_secs(2);
/// How long it waits at least before it looks again.
const PAUSE: Duration = Duration::from_millis(2);
/// The plural of events.
const EVENTS: &str = "events";

/// What a plan is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    Peer(ClusterId),
    House,
}

/// Where a write goes.
#[derive(Clone, Debug)]
struct Slot {
    subject: Subject,
    at: Where,
    target: Target,
    status: bool,
}

/// What the leader remembers between two looks.
struct Round {
    wakes: BTreeMap<ClusterId, Timestamp>,
    house_wake: Option<Timestamp>,
    alarm: Option<Timestamp>,
    looked_at_all: Instant,
    stock: u64,
    stock_looked_at: Option<Instant>,
    book: Option<u64>,
    ledger: Arc<Ledger>,
}

impl Round {
    fn new() -> Self {
        Self {
            wakes: BTreeMap::new(),
            house_wake: None,
            alarm: None,
            looked_at_all: Instant::now(),
            stock: 0,
            stock_looked_at: None,
            book: None,
            ledger: Arc::default(),
        }
    }
}

impl Room {
    /// The queue that the leader writes to this cluster through, and the worker that drains it, to be run in every process.
    pub fn queue(&self, metrics: &WriteMetrics) -> (Queue, Worker) {
        *self.0.write_metrics.lock() = metrics.clone();
        let (gate, observer) = (self.clone(), self.clone());
        let config = QueueConfig {
            concurrency: self.0.settings.writes,
            timeout: WRITE_TIMEOUT,
            // Somebody waits for a peering.
            backoff: BackoffPolicy { min: Duration::from_millis(50), ..BackoffPolicy::default() },
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            observer: Some(Arc::new(move |target, outcome| observer.note(None, target, outcome))),
            ..QueueConfig::default()
        };
        Queue::new("peering", self.0.client.clone(), config, metrics)
    }

    /// Looks at peers and writes what is missing, here through `queue`, until the leadership ends.
    pub async fn lead(&self, queue: &Queue, leadership: Leadership) {
        *self.0.leading.lock() = Some(leadership.clone());
        let watches = self.0.watches.lock().clone();
        let ready = async {
            for watch in &watches {
                watch.ready().await;
            }
        };
        if leadership.ended().run_until_cancelled(ready).await.is_some() {
            let stop = leadership.ended().child_token();
            leadership.ended().run_until_cancelled(self.work(queue, &stop)).await;
            stop.cancel();
        }
        self.unlink_all();
        self.0.metrics.clear();
        // What a later leadership remembers must be its own.
        self.0.index.write().memory = crate::index::Memory::default();
        *self.0.leading.lock() = None;
    }

    pub(super) fn leads(&self) -> bool {
        self.0.leading.lock().as_ref().is_some_and(Leadership::is_valid)
    }

    async fn work(&self, queue: &Queue, stop: &CancellationToken) {
        let mut changes = self.0.index.subscribe();
        let mut identity = self.0.identity.clone();
        let mut clock = self.0.settings.clock.clone();
        let mut round = Round::new();
        self.0.index.write().touch_all();
        loop {
            changes.borrow_and_update();
            let me = identity.borrow_and_update().clone().and_then(Me::new);
            let wait = match &me {
                Some(me) => self.look(queue, me, stop, &mut round),
                None => LOOK_AGAIN,
            };
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                _ = changes.changed() => {}
                _ = identity.changed() => self.0.index.write().touch_all(),
                () = clock.changed() => self.0.index.write().touch_all(),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Plans for whom something changed or is due, hands in the writes, and returns for how long nothing else is due.
    fn look(&self, queue: &Queue, me: &Me, stop: &CancellationToken, round: &mut Round) -> Duration {
        let now = self.0.settings.clock.now();
        let (peers, soon) = self.prepare(me, round, now);
        self.keep_links(me, &peers, stop, now);
        for peer in &peers {
            let planned = {
                let index = self.0.index.read();
                parting::plan(&View { index: &index, me, settings: &self.0.settings, now }, peer)
            };
            self.hand_in(queue, &Subject::Peer(peer.clone()), planned.steps);
            match planned.wake {
                Some(wake) => drop(round.wakes.insert(peer.clone(), wake)),
                None => drop(round.wakes.remove(peer)),
            }
        }
        let planned = {
            let index = self.0.index.read();
            house::plan(&View { index: &index, me, settings: &self.0.settings, now })
        };
        self.hand_in(queue, &Subject::House, planned.steps);
        round.house_wake = planned.wake;
        let shown = self.show(me);
        let soon = if shown.is_zero() { soon } else { soon.min(shown) };
        let due = round.wakes.values().copied().chain(round.house_wake).chain(round.alarm).min();
        let linked = if self.0.links.lock().peers().is_empty() { LOOK_AGAIN } else { NOTICE };
        due.map_or(LOOK_AGAIN, |due| until(due, now)).min(soon).min(linked)
    }

    /// Brings up to date what plans depend on, and says for whom to plan, and when to do this again at the latest.
    fn prepare(&self, me: &Me, round: &mut Round, now: Timestamp) -> (BTreeSet<ClusterId>, Duration) {
        let troubles = self.0.links.lock().troubles();
        let mut index = self.0.index.write();
        for (peer, trouble, forbidden) in troubles {
            if let Some(link) = index.links.get_mut(&peer)
                && (link.trouble != trouble || link.forbidden.is_some() != forbidden)
            {
                link.trouble = trouble;
                link.forbidden = forbidden.then(|| link.forbidden.unwrap_or(now));
                index.touch(&peer);
            }
        }
        let mut soon = LOOK_AGAIN;
        let mut reckon = round.alarm.is_some_and(|alarm| alarm <= now);
        if round.stock != index.stock.revision() || round.stock_looked_at.is_none() {
            let rest = round
                .stock_looked_at
                .map(|at| self.0.settings.stock_pause.saturating_sub(at.elapsed()))
                .filter(|rest| !rest.is_zero());
            match rest {
                Some(rest) => soon = soon.min(rest),
                None => {
                    round.stock = index.stock.revision();
                    round.stock_looked_at = Some(Instant::now());
                    index.touch_all();
                    reckon = true;
                }
            }
        }
        index.release_seen(now);
        if round.book != Some(index.memory.revision()) {
            round.book = Some(index.memory.revision());
            let ledger = ledger(&index, me);
            if *ledger != *round.ledger {
                round.ledger = ledger;
                index.touch_all();
                reckon = true;
            }
        }
        if reckon {
            round.alarm = obligations::observe(&mut index, me, &self.0.settings, now);
        }
        let changed = index.take_changed();
        let mut peers = changed.peers;
        if changed.all || round.looked_at_all.elapsed() >= LOOK_AGAIN {
            round.looked_at_all = Instant::now();
            peers.extend(index.peers());
            let known = index.peers();
            index.memory.forget(|peer| known.contains(peer));
            round.wakes.retain(|peer, _| known.contains(peer));
        }
        peers.extend(round.wakes.iter().filter(|(_, wake)| **wake <= now).map(|(peer, _)| peer.clone()));
        index.draw_ids(&peers);
        (peers, soon)
    }

    /// Looks at the places that must be looked at, and at no others.
    fn keep_links(&self, me: &Me, peers: &BTreeSet<ClusterId>, stop: &CancellationToken, now: Timestamp) {
        for peer in peers {
            let access = {
                let index = self.0.index.read();
                let view = View { index: &index, me, settings: &self.0.settings, now };
                let held = index.held_at(peer).and_then(|held| held.access.as_ref().ok()).cloned();
                held.zip(parting::needs_link(&view, peer))
            };
            match access {
                Some((access, purpose)) => self.link(peer, &access, purpose, stop),
                None => self.unlink(peer),
            }
        }
    }

    fn hand_in(&self, queue: &Queue, subject: &Subject, steps: Vec<Step>) {
        for step in steps {
            let there = match (step.at, subject) {
                (Where::There, Subject::Peer(peer)) => self.0.links.lock().queue(peer).cloned(),
                _ => None,
            };
            let queue = match (step.at, &there) {
                (Where::Here, _) => queue,
                (Where::There, Some(queue)) => queue,
                (Where::There, None) => continue,
            };
            tracing::debug!(object = %step.target, step = step.what, at = ?step.at, "missing");
            if plural(&step.target) == EVENTS {
                self.report(queue, &step);
                continue;
            }
            let status = step.is_status();
            let slot = Slot { subject: subject.clone(), at: step.at, target: step.target, status };
            let (room, written) = (self.clone(), queue.written().clone());
            match queue.enqueue(move || room.missing(&slot, &written)) {
                Enqueued::Full => tracing::warn!("too many writes wait; this one is asked for again"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {}
            }
        }
    }

    /// Tells something. What it tells of may be true before it is told, so that it is not planned again; and while it is being
    /// told, it may be planned again, and must not be told twice.
    fn report(&self, queue: &Queue, step: &Step) {
        if self.0.index.read().memory.reported.contains(&step.target) {
            return;
        }
        match step.write() {
            Ok(write) => match queue.write(&write) {
                Enqueued::Full => tracing::warn!("too many writes wait; this event is lost"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {
                    self.0.index.write().memory.report(step.target.clone());
                }
            },
            Err(error) => tracing::error!(object = %step.target, %error, "this event cannot be made"),
        }
    }

    /// What is still missing of this object, once the watch has shown what we wrote to it last.
    fn missing(&self, slot: &Slot, written: &Written) -> Option<Write> {
        if !written.has_seen(&slot.target, self.position(slot)) {
            return None;
        }
        let me = self.0.identity.borrow().clone().and_then(Me::new)?;
        let step = {
            let index = self.0.index.read();
            self.find(&index, &me, slot)?
        };
        let step = if step.sale.is_some() || step.paced.is_some() { self.claim(&me, slot)? } else { step };
        step.write()
            .inspect_err(|error| tracing::error!(object = %slot.target, %error, "this object cannot be made"))
            .ok()
    }

    /// Plans again with the index to itself, and remembers what is sold or done at a pace before anybody else plans.
    fn claim(&self, me: &Me, slot: &Slot) -> Option<Step> {
        let settings = &self.0.settings;
        let mut index = self.0.index.write();
        let step = self.find(&index, me, slot)?;
        if let Some(sale) = &step.sale {
            let version = step.version().unwrap_or_default().to_owned();
            index.memory.reserve(Reserved { sale: sale.clone(), version, since: settings.clock.now() });
        }
        if let (Some((what, occasion)), Subject::Peer(peer)) = (&step.paced, &slot.subject) {
            let now = settings.clock.now();
            match what {
                Paced::Offer => index.memory.offers.grant(peer, occasion, settings.offers, now),
                Paced::Proposal => index.memory.proposals.grant(peer, occasion, settings.proposals, now),
            }
        }
        Some(step)
    }

    fn find(&self, index: &crate::index::Index, me: &Me, slot: &Slot) -> Option<Step> {
        let view = View { index, me, settings: &self.0.settings, now: self.0.settings.clock.now() };
        let Planned { steps, .. } = match &slot.subject {
            Subject::Peer(peer) => parting::plan(&view, peer),
            Subject::House => house::plan(&view),
        };
        let meant =
            |step: &Step| step.at == slot.at && step.target == slot.target && step.is_status() == slot.status;
        steps.into_iter().find(meant)
    }

    /// How far the watch of this object has come; events are not watched.
    fn position(&self, slot: &Slot) -> u64 {
        let plural = plural(&slot.target);
        match (slot.at, &slot.subject) {
            (Where::There, Subject::Peer(peer)) => self.0.links.lock().position(peer, &plural),
            _ => {
                let name = format!("peering-{plural}");
                let watches = self.0.watches.lock();
                watches.iter().find(|watch| watch.name() == name).map_or(u64::MAX, WatchStatus::position)
            }
        }
    }

    /// Remembers what became of a write.
    pub(super) fn note(&self, peer: Option<&ClusterId>, target: &Target, outcome: &Outcome) {
        let mut index = self.0.index.write();
        let key = (peer.cloned(), target.clone());
        match outcome {
            Outcome::Failed(failed) => {
                index.memory.failures.insert(key, failed.message.clone());
                // What was not told may be told again.
                index.memory.reported.retain(|event| event != target);
            }
            Outcome::Written { .. } | Outcome::Unneeded => {
                index.memory.failures.remove(&key);
            }
        }
    }

    fn show(&self, me: &Me) -> Duration {
        let index = self.0.index.read();
        self.0.metrics.show(&index, me, &self.0.settings)
    }
}

/// The kind of a target, in the plural.
fn plural(target: &Target) -> String {
    target.to_string().rsplit('/').nth(1).unwrap_or_default().to_owned()
}

fn until(wake: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(wake.duration_since(now)).unwrap_or(Duration::ZERO)
}
