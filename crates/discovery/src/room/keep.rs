//! Keeping the ForeignClusters and the status of the SearchDomains as they should be.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_api::{DiscoveryType, ForeignCluster, SearchDomain, SearchDomainStatus};
use liqo_kit::write::{Enqueued, Outcome, QueueConfig, Target, Worker, Write, WriteMetrics};
use liqo_kit::{BackoffPolicy, Key, Queue};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Room;
use crate::advert::Source;
use crate::domains::{self, Domain};
use crate::events::{Statement, Telling};
use crate::peers::{self, Active, Incumbent, Peer, Step};
use crate::state::State;
use crate::wan::propagate;

/// Changes that come within this time are looked at together.
const GATHER: Duration = Duration::from_millis(50);

/// How often to look though nothing changed: lifetimes end by themselves.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// Those who hold a claimed ID that are asked at once.
const MAX_ASKING: usize = 8;

/// What a write is for, for the metrics.
#[derive(Clone, Debug)]
pub(super) enum Writing {
    Create(Source),
    Delete(DiscoveryType),
}

impl Room {
    /// The queue that is written through, and the worker that drains it, to be run in every process.
    pub fn queue(&self, metrics: &WriteMetrics) -> (Queue, Worker) {
        let (gate, observer) = (self.clone(), self.clone());
        let config = QueueConfig {
            // A found cluster should be there at once.
            backoff: BackoffPolicy { min: Duration::from_millis(100), ..BackoffPolicy::default() },
            field_manager: self.0.settings.controller.clone(),
            gate: Some(Arc::new(move || gate.0.gate.lock().as_ref().is_some_and(|gate| gate()))),
            observer: Some(Arc::new(move |target, outcome| observer.note_write(target, outcome))),
            ..QueueConfig::default()
        };
        Queue::new("discovery", self.0.client.clone(), config, metrics)
    }

    fn note_write(&self, target: &Target, outcome: &Outcome) {
        let name = target.key().name();
        let is_peer = *target == Target::of::<ForeignCluster>(Key::cluster(name));
        let Some(writing) = is_peer.then(|| self.0.writing.lock().remove(name)).flatten() else { return };
        if !matches!(outcome, Outcome::Written { .. }) {
            return;
        }
        match writing {
            Writing::Create(source) => {
                self.0.metrics.created(&source);
                self.0.state.write().made.insert(name.to_owned());
                self.0.state.notify();
            }
            Writing::Delete(kind) => self.0.metrics.expired(kind == DiscoveryType::Lan),
        }
    }

    /// Writes what is missing until it is stopped.
    pub(super) async fn keep_for_ever(self, queue: Queue, stop: CancellationToken) {
        let mut changes = self.0.state.subscribe();
        let mut asking: JoinSet<(String, Incumbent)> = JoinSet::new();
        loop {
            changes.borrow_and_update();
            self.keep(&queue, &mut asking);
            tokio::select! {
                () = stop.cancelled() => return,
                Some(asked) = asking.join_next(), if !asking.is_empty() => match asked {
                    Ok((name, incumbent)) => {
                        let mut state = self.0.state.write();
                        state.asking.remove(&name);
                        state.incumbents.insert(name, incumbent);
                    }
                    Err(error) => propagate(error),
                },
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    tokio::time::sleep(GATHER).await;
                }
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    fn keep(&self, queue: &Queue, asking: &mut JoinSet<(String, Incumbent)>) {
        self.tidy();
        let now = Timestamp::now();
        let state = self.0.state.read();
        let unadvertised = state.peers.iter().filter(|peer| peer.unadvertised).count();
        self.0.metrics.show(state.book.counts(), unadvertised);
        let Some(own) = state.own.clone() else { return };
        let claims = state.book.claims(Instant::now());
        let (steps, reports) = peers::plan(state.world(&own, &claims, now));
        let domains: Vec<Arc<str>> = state.domains.iter().map(|domain| Arc::clone(&domain.name)).collect();
        drop(state);
        for step in steps {
            match step {
                Step::Ask { peer } => self.ask_about(peer, asking),
                step => self.enqueue(queue, step),
            }
        }
        for report in reports {
            let peers::Report { peer: name, uid, reason, message, refusal } = report;
            self.0.state.write().made.remove(&name);
            let is_warning = reason != peers::DISCOVERED;
            let told =
                self.tell::<ForeignCluster>(queue, &Statement { name, uid, reason, message, is_warning });
            if let (Telling::Tell, Some((source, why))) = (told, refusal) {
                self.0.metrics.refuse(&source, why);
            }
        }
        domains.into_iter().for_each(|name| self.keep_domain(queue, &name));
    }

    /// Forgets what left search domains named, and notices when all have been searched.
    fn tidy(&self) {
        let mut state = self.0.state.write();
        for domain in state.domains.take_left() {
            state.book.forget(&crate::advert::Sender::Domain(domain));
        }
        if state.wan == Active::Warming && state.domains.is_warm() {
            let asked = state.domains.iter().all(|domain| state.book.of_domain(&domain.name).is_some());
            if asked {
                state.wan = Active::Listening;
            }
        }
    }

    fn ask_about(&self, peer: Peer, asking: &mut JoinSet<(String, Incumbent)>) {
        if asking.len() >= MAX_ASKING || !self.0.state.write().asking.insert(peer.name.clone()) {
            return;
        }
        let room = self.clone();
        asking.spawn(async move {
            let incumbent = room.ask_incumbent(&peer).await;
            (peer.name, incumbent)
        });
    }

    fn enqueue(&self, queue: &Queue, step: Step) {
        let writing = match &step {
            Step::Create { found, .. } => Some(Writing::Create(found.source.clone())),
            Step::Delete { peer } => Some(Writing::Delete(peer.kind)),
            _ => None,
        };
        let name = step.name().to_owned();
        let (room, written) = (self.clone(), queue.written().clone());
        let target = Target::of::<ForeignCluster>(Key::cluster(&name));
        let enqueued = queue.enqueue(move || {
            let seen = written.has_seen(&target, room.position());
            if seen { room.still_missing(&step) } else { None }
        });
        match enqueued {
            Enqueued::Queued | Enqueued::Coalesced => {
                if let Some(writing) = writing {
                    self.0.writing.lock().insert(name, writing);
                }
            }
            Enqueued::Equal => {}
            Enqueued::Full => tracing::warn!("too many writes wait; this one is asked for again"),
        }
    }

    /// How far the watch of the ForeignClusters has come.
    fn position(&self) -> u64 {
        self.0.watches.lock().first().map_or(0, liqo_kit::watch::WatchStatus::position)
    }

    /// The write of a step, if everything is still as it was when the step was planned.
    fn still_missing(&self, step: &Step) -> Option<Write> {
        let now = Timestamp::now();
        let state = self.0.state.read();
        let current = state.peers.get(step.name());
        let holds = match step {
            Step::Create { found, .. } => {
                let holder = state.peers.holders().of(&found.id, std::iter::once(found.url.as_str()));
                current.is_none() && holder.is_none()
            }
            Step::Refresh { peer, .. } | Step::Mark { peer } => current == Some(peer),
            // It may have been heard of meanwhile.
            Step::Delete { peer } => current == Some(peer) && self.is_still_planned(&state, step, now),
            Step::Ask { .. } => false,
        };
        drop(state);
        if !holds {
            return None;
        }
        peers::write(step, now)
            .inspect_err(
                |error| tracing::error!(%error, name = step.name(), "this cannot be written as JSON"),
            )
            .ok()?
    }

    fn is_still_planned(&self, state: &State, step: &Step, now: Timestamp) -> bool {
        let Some(own) = &state.own else { return false };
        let claims = state.book.claims(Instant::now());
        peers::plan(state.world(own, &claims, now)).0.contains(step)
    }

    /// Makes an event, if it is to be made.
    fn tell<K: kube::Resource<DynamicType = ()>>(&self, queue: &Queue, statement: &Statement) -> Telling {
        let telling = self.0.told.lock().tell(statement, Instant::now());
        match telling {
            Telling::Tell => {}
            Telling::Told => return telling,
            Telling::Withhold => {
                self.0.metrics.withheld();
                return telling;
            }
        }
        let Statement { name, reason, message, .. } = statement;
        tracing::info!(name, reason, "{message}");
        let settings = &self.0.settings;
        match statement.write::<K>(&settings.controller, &settings.pod, Timestamp::now()) {
            Ok(write) => {
                if queue.write(&write) == Enqueued::Full {
                    self.0.metrics.withheld();
                }
            }
            Err(error) => tracing::error!(%error, "an event cannot be written as JSON"),
        }
        telling
    }

    /// Keeps the status of a SearchDomain, and tells about its broken records.
    fn keep_domain(&self, queue: &Queue, name: &Arc<str>) {
        let (statements, target) = {
            let state = self.0.state.read();
            let Some(domain) = state.domains.get(name) else { return };
            let Some((_, problems)) = state.problems(domain) else { return };
            let statement = |record: &str, why: String| Statement {
                name: name.to_string(),
                uid: domain.uid.clone(),
                reason: "BrokenRecord",
                message: format!("The record {record} is of no use: {why}."),
                is_warning: true,
            };
            let statements: Vec<_> = problems
                .iter()
                .map(|problem| statement(&problem.record, problem.refused.to_string()))
                .collect();
            (statements, Target::of::<SearchDomain>(Key::cluster(name)))
        };
        for statement in statements {
            self.tell::<SearchDomain>(queue, &statement);
        }
        let (room, name, written) = (self.clone(), Arc::clone(name), queue.written().clone());
        let enqueued = queue.enqueue(move || {
            let position = room.0.watches.lock().get(1).map_or(0, liqo_kit::watch::WatchStatus::position);
            written.has_seen(&target, position).then(|| room.missing_status(&name, &target)).flatten()
        });
        if enqueued == Enqueued::Full {
            tracing::warn!("too many writes wait; this one is asked for again");
        }
    }

    fn missing_status(&self, name: &Arc<str>, target: &Target) -> Option<Write> {
        let state = self.0.state.read();
        let domain = state.domains.get(name).filter(|domain| !domain.deleting)?;
        let (found, problems) = state.problems(domain)?;
        let search = state.domains.search(name);
        let status = domains::status(domain, search, &found, &problems, Timestamp::now())?;
        write_status(domain, target, &status)
    }
}

fn write_status(domain: &Domain, target: &Target, status: &SearchDomainStatus) -> Option<Write> {
    // With the empty ones: what is left out of a merge stays.
    let whole = json!({
        "found": status.found,
        "clusters": status.clusters,
        "lastQuery": status.last_query,
        "conditions": status.conditions,
    });
    Write::merge_status(target.clone(), &domain.resource_version, &whole)
        .inspect_err(|error| tracing::error!(%error, "a status cannot be written as JSON"))
        .ok()
}
