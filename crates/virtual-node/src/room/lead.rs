//! What only the leader does: keep the nodes, renew their leases, empty those whose providers leave.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_core::names::ClusterId;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::WatchStatus;
use liqo_kit::write::{Enqueued, QueueConfig, Worker, Write, WriteMetrics, Written};
use liqo_kit::{BackoffPolicy, Queue, Shared};
use liqo_providers::nodes::Survey;
use liqo_providers::{ByCluster, Provider};
use tokio::sync::watch;
use tokio::time::Instant;

use super::{NODES, Room};
use crate::evict;
use crate::index::{Emptied, Index};
use crate::leases::{Renewal, Schedule};
use crate::node::Place;
use crate::plan::{Draining, Planned, Step, View, notice, place_of, places, plan};

/// The name under which this room owns fields.
const FIELD_MANAGER: &str = "liqo-virtual-node";
/// How long a write may take: shorter than a successor waits before it leads.
const WRITE_TIMEOUT: Duration = Duration::from_secs(4);
/// How often all nodes are looked at though nobody told of a change: what was given up is asked for again this way.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// How long it waits at least before it looks again: many changes at once are one.
const PAUSE: Duration = Duration::from_millis(2);
/// How often the numbers about nodes change at most.
const REST: Duration = Duration::from_secs(1);
/// How often pods that do not leave are asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Where a write goes.
#[derive(Clone, Debug)]
struct Slot {
    place: Place,
    node: String,
    status: bool,
}

/// What the leader remembers between two looks.
#[derive(Default)]
struct Round {
    wakes: BTreeMap<Place, Timestamp>,
    draining: BTreeMap<Place, Draining>,
    /// When all were last looked at; nothing if that must be done now.
    looked_at_all: Option<Instant>,
    /// Whether the list of providers is complete.
    complete: bool,
    /// The list as it was last looked at.
    providers: Arc<ByCluster>,
    /// What was last told of what is behind the nodes.
    survey: Arc<Survey>,
    /// When numbers were last shown.
    shown: Option<Instant>,
}

impl Round {
    /// Takes in a new list, and has those looked at of whom it says something new.
    fn note(&mut self, index: &Shared<Index>, providers: Arc<ByCluster>) {
        if Arc::ptr_eq(&self.providers, &providers) {
            return;
        }
        let before = std::mem::replace(&mut self.providers, providers);
        let is_news = |id: &&ClusterId| match (before.get(*id), self.providers.get(*id)) {
            (Some(before), Some(now)) => !says_the_same(before, now),
            _ => true,
        };
        let news: BTreeSet<ClusterId> =
            before.keys().chain(self.providers.keys()).filter(is_news).cloned().collect();
        let mut index = index.write();
        index.touch_nodes_of(&news);
        let lent = news.iter().filter_map(|id| self.providers.get(id)).flat_map(places);
        lent.for_each(|place| index.touch(place));
    }
}

impl Round {
    /// Takes in what is left behind the nodes, and has those looked at of which it says something new.
    fn note_survey(&mut self, index: &Shared<Index>, survey: Arc<Survey>) {
        if Arc::ptr_eq(&self.survey, &survey) {
            return;
        }
        let before = std::mem::replace(&mut self.survey, survey);
        if before.complete != self.survey.complete {
            self.looked_at_all = None;
        }
        let mut index = index.write();
        let places: Vec<Place> = before
            .differing(&self.survey)
            .iter()
            .filter_map(|name| place_of(&index, name).cloned())
            .collect();
        places.into_iter().for_each(|place| index.touch(place));
    }
}

/// Whether two entries mean the same for a node.
fn says_the_same(one: &Provider, other: &Provider) -> bool {
    let refused = |it: &Provider| it.link.as_ref().err().cloned();
    one.health == other.health
        && one.lent == other.lent
        && one.name == other.name
        && refused(one) == refused(other)
}

impl Room {
    /// The queue that the leader writes through, and the worker that drains it, to be run in every process.
    pub fn queue(&self, metrics: &WriteMetrics) -> (Queue, Worker) {
        let gate = self.clone();
        let config = QueueConfig {
            concurrency: self.0.settings.writes,
            timeout: WRITE_TIMEOUT,
            backoff: BackoffPolicy { min: Duration::from_millis(50), ..BackoffPolicy::default() },
            field_manager: FIELD_MANAGER.to_owned(),
            gate: Some(Arc::new(move || gate.leads())),
            ..QueueConfig::default()
        };
        Queue::new("virtual-node", self.0.client.clone(), config, metrics)
    }

    /// Keeps the nodes until the leadership ends.
    pub async fn lead(&self, queue: &Queue, leadership: Leadership) {
        *self.0.leading.lock() = Some(leadership.clone());
        let work = async {
            let watches = self.0.watches.lock().clone();
            for watch in &watches {
                watch.ready().await;
            }
            let (draining, drained) = watch::channel(Vec::new());
            tokio::join!(self.keep(queue, &draining), self.renew(), self.empty(drained));
        };
        leadership.ended().run_until_cancelled(work).await;
        self.0.metrics.clear();
        // What a later leadership remembers must be its own.
        let mut index = self.0.index.write();
        index.absent.clear();
        index.emptied.clear();
        drop(index);
        *self.0.leading.lock() = None;
    }

    fn leads(&self) -> bool {
        self.0.leading.lock().as_ref().is_some_and(Leadership::is_valid)
    }

    async fn keep(&self, queue: &Queue, draining: &watch::Sender<Vec<Draining>>) {
        let mut changes = self.0.index.subscribe();
        let mut news = self.0.providers.subscribe();
        let mut own = self.0.own.clone();
        let mut surveys = self.0.settings.survey.subscribe();
        let mut round = Round::default();
        loop {
            // Who is not in the list does not lend, but only once the list is complete and we know who we are.
            if own.wait_for(Option::is_some).await.is_err() {
                std::future::pending::<()>().await;
            }
            if !round.complete {
                self.0.providers.complete().await;
                round.complete = true;
            }
            changes.borrow_and_update();
            let providers = news.borrow_and_update().clone();
            round.note(&self.0.index, providers);
            round.note_survey(&self.0.index, surveys.borrow_and_update().clone());
            let wait = self.look(queue, &mut round);
            let all: Vec<_> = round.draining.values().cloned().collect();
            draining.send_if_modified(|known| std::mem::replace(known, all.clone()) != all);
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                _ = changes.changed() => {}
                _ = news.changed() => {}
                _ = surveys.changed() => {}
                _ = own.changed() => (round.looked_at_all, round.complete) = (None, false),
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Plans for whom something changed or is due, hands in the writes, and returns for how long nothing else is due.
    fn look(&self, queue: &Queue, round: &mut Round) -> Duration {
        let now = self.0.settings.clock.now();
        for place in self.prepare(round, now) {
            let planned = self.plan(&round.providers, &place, now);
            match planned.wake {
                Some(wake) => drop(round.wakes.insert(place.clone(), wake)),
                None => drop(round.wakes.remove(&place)),
            }
            match planned.draining {
                Some(draining) => drop(round.draining.insert(place.clone(), draining)),
                None => drop(round.draining.remove(&place)),
            }
            self.hand_in(queue, &place, planned.steps);
        }
        let due = round.wakes.values().min().map_or(LOOK_AGAIN, |wake| until(*wake, now));
        due.min(LOOK_AGAIN).min(self.show(round))
    }

    /// Shows how the nodes are, not more often than anybody can see; returns how soon that must be done again.
    fn show(&self, round: &mut Round) -> Duration {
        match round.shown.map(|at| at.elapsed()) {
            Some(ago) if ago < REST => REST - ago,
            _ => {
                self.0.metrics.show(&self.0.index.read());
                round.shown = Some(Instant::now());
                LOOK_AGAIN
            }
        }
    }

    /// Brings up to date what plans depend on, and says for what to plan.
    fn prepare(&self, round: &mut Round, now: Timestamp) -> BTreeSet<Place> {
        let providers = Arc::clone(&round.providers);
        let mut index = self.0.index.write();
        let mut touched = index.take_touched();
        touched.extend(round.wakes.iter().filter(|(_, wake)| **wake <= now).map(|(place, _)| place.clone()));
        if round.looked_at_all.is_none_or(|at| at.elapsed() >= LOOK_AGAIN) {
            round.looked_at_all = Some(Instant::now());
            touched.extend(providers.values().flat_map(places));
            touched.extend(index.ours().map(|(place, ..)| place.clone()));
        }
        for place in &touched {
            notice(&mut index, &providers, place, now);
        }
        touched
    }

    fn plan(&self, providers: &ByCluster, place: &Place, now: Timestamp) -> Planned {
        let index = self.0.index.read();
        let survey = self.0.settings.survey.borrow().clone();
        plan(&View { index: &index, providers, settings: &self.0.settings, survey: &survey, now }, place)
    }

    fn hand_in(&self, queue: &Queue, place: &Place, steps: Vec<Step>) {
        for step in steps {
            tracing::debug!(node = step.node, what = ?step.what, "missing");
            let slot = Slot { place: place.clone(), status: step.is_status(), node: step.node };
            let (room, written) = (self.clone(), queue.written().clone());
            match queue.enqueue(move || room.missing(&slot, &written)) {
                Enqueued::Full => tracing::warn!("too many writes wait; this one is asked for again"),
                Enqueued::Queued | Enqueued::Coalesced | Enqueued::Equal => {}
            }
        }
    }

    /// What is still missing of this node, once the watch has shown what we wrote to it last.
    fn missing(&self, slot: &Slot, written: &Written) -> Option<Write> {
        let providers = self.0.providers.current();
        let planned = self.plan(&providers, &slot.place, self.0.settings.clock.now());
        let meant = |step: &Step| step.node == slot.node && step.is_status() == slot.status;
        let step = planned.steps.into_iter().find(meant)?;
        if !written.has_seen(&step.target(), self.position()) {
            return None;
        }
        step.write()
            .inspect_err(|error| tracing::error!(node = slot.node, %error, "this node cannot be made"))
            .ok()
    }

    /// How far the watch of nodes has come.
    fn position(&self) -> u64 {
        let watches = self.0.watches.lock();
        watches.iter().find(|watch| watch.name() == NODES).map_or(u64::MAX, WatchStatus::position)
    }

    async fn renew(&self) {
        let settings = &self.0.settings;
        let renewal =
            Renewal { client: self.0.client.clone(), duration: settings.lease, metrics: &self.0.metrics };
        let mut changes = self.0.index.subscribe();
        let mut schedule = Schedule::new(settings.lease, Instant::now());
        let mut members = None;
        loop {
            changes.borrow_and_update();
            {
                let index = self.0.index.read();
                if members.replace(index.members()) != Some(index.members()) {
                    let living = index.ours().filter(|(_, _, facts)| !facts.deleting);
                    schedule.set(living.map(|(_, name, facts)| (name, facts.uid.as_str())), Instant::now());
                }
            }
            let due = schedule.take(Instant::now());
            if !due.is_empty() && self.leads() {
                for failed in renewal.renew(due, settings.clock.now()).await {
                    schedule.again(&failed, Instant::now());
                }
            }
            tokio::time::sleep(PAUSE).await;
            let next = async {
                match schedule.next() {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = next => {}
                _ = changes.changed() => {}
            }
        }
    }

    /// Asks the pods of these nodes to leave, again and again, until nobody wants that any more.
    async fn empty(&self, mut wanted: watch::Receiver<Vec<Draining>>) {
        loop {
            let nodes = wanted.borrow_and_update().clone();
            for draining in &nodes {
                if !self.leads() {
                    break;
                }
                match evict::sweep(&self.0.client, draining, &self.0.metrics).await {
                    Ok(left) => self.note(draining, left),
                    Err(error) => {
                        tracing::warn!(node = draining.node, error, "pods of a node cannot be listed");
                    }
                }
            }
            let pause = async {
                if nodes.is_empty() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(ASK_AGAIN).await;
            };
            tokio::select! {
                told = wanted.changed() => if told.is_err() {
                    return;
                },
                () = pause => {}
            }
        }
    }

    fn note(&self, draining: &Draining, left: usize) {
        let mut index = self.0.index.write();
        index.emptied.insert(draining.node.clone(), Emptied { since: draining.since, left });
        let place = place_of(&index, &draining.node).cloned();
        if let Some(place) = place {
            index.touch(place);
        }
        drop(index);
        self.0.index.notify();
    }
}

fn until(wake: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(wake.duration_since(now)).unwrap_or(Duration::ZERO)
}
