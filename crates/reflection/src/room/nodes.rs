//! Asks the providers' nodes on which pods of ours run whether they answer.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use jiff::{SignedDuration, Timestamp};
use liqo_core::names::ClusterId;
use liqo_providers::nodes::{self, Answer, Bench, NodeKey, Nodes, ROUND, Survey};
use liqo_providers::{Health, Link};

use super::Room;
use crate::pods::footprint::Footprint;

/// How often it is looked where pods are, though nothing changed: time passes for those that wait for a node.
const LOOK: SignedDuration = SignedDuration::from_secs(2);
/// How often it is looked at most: a node must have answered before it dies, or it is not missed.
const REST: SignedDuration = SignedDuration::from_millis(400);

/// How a node can be asked.
struct Way {
    link: Link,
    namespace: String,
    pod: String,
    container: String,
}

impl Room {
    /// Asks nodes, until it is dropped.
    pub(super) async fn keep_nodes(&self) {
        *self.0.nodes.write() = Nodes::default();
        let mut bench = Bench::default();
        let mut footprint = Footprint::default();
        let mut changes = self.0.pods.subscribe();
        let (mut looked, mut news) = (Timestamp::MIN, false);
        let mut asking = FuturesUnordered::new();
        let mut rounds = tokio::time::interval(ROUND);
        rounds.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = rounds.tick() => {
                    let now = self.0.settings.clock.now();
                    let rest = if changes.has_changed().unwrap_or(true) { REST } else { LOOK };
                    if now.duration_since(looked) >= rest || now < looked {
                        changes.borrow_and_update();
                        footprint = Footprint::of(&self.0.pods.read(), now);
                        self.0.nodes.write().use_only(&footprint.used(), now);
                        (looked, news) = (now, true);
                    }
                    asking.extend(self.nodes_due(&footprint, now).into_iter().map(|(node, way)| way.ask(node)));
                    if std::mem::take(&mut news) {
                        self.publish(&mut bench, &footprint, now);
                    }
                }
                Some((node, answer)) = asking.next() => {
                    self.hear(&node, answer);
                    news = true;
                }
            }
        }
    }

    /// Whom to ask now, and how.
    fn nodes_due(&self, footprint: &Footprint, now: Timestamp) -> Vec<(NodeKey, Way)> {
        let due = self.0.nodes.write().take_due(now);
        let mut ways = vec![];
        for (node, failures) in due {
            match self.link(&node) {
                None => self.hear(&node, Answer::Unclear),
                Some(link) => match self.way(link, footprint, &node, failures) {
                    Some(way) => ways.push((node, way)),
                    None => self.0.nodes.write().postpone(&node, now),
                },
            }
        }
        ways
    }

    /// Takes in an answer; pods of the node are looked at if something follows from it.
    fn hear(&self, node: &NodeKey, answer: Answer) {
        tracing::debug!(provider = %node.0, node = %node.1, ?answer, "a node was asked");
        let now = self.0.settings.clock.now();
        if self.0.nodes.write().observe(node, answer, now) {
            let health = self.0.nodes.read().health(&node.0, &node.1);
            tracing::info!(provider = %node.0, node = %node.1, ?health, "what is thought of a provider's node changed");
            self.0.pods.write().touch_remote_node(&node.0, &node.1);
            self.0.pods.notify();
        }
    }

    /// Tells the room that keeps the virtual nodes what is behind them, and who looks at numbers.
    fn publish(&self, bench: &mut Bench, footprint: &Footprint, now: Timestamp) {
        let nodes = self.0.nodes.read();
        let survey = bench.judge(&footprint.behind(&nodes), now);
        self.0.metrics.show_nodes(nodes.counts());
        drop(nodes);
        self.0.settings.survey.send_if_modified(|known| {
            let changed = **known != survey;
            if changed {
                *known = Arc::new(survey);
            }
            changed
        });
    }

    /// Nobody knows any more.
    pub(super) fn leave_nodes(&self) {
        self.0.settings.survey.send_replace(Arc::new(Survey::default()));
        *self.0.nodes.write() = Nodes::default();
        self.0.metrics.show_nodes(std::iter::empty());
    }

    /// The way to the provider of this node. Of one that does not answer itself, nothing can be told.
    fn link(&self, node: &NodeKey) -> Option<Link> {
        let id: ClusterId = node.0.parse().ok()?;
        let list = self.0.providers.borrow().clone();
        let provider = list.get(&id).filter(|provider| provider.health == Health::Reachable)?;
        provider.link.as_ref().ok().cloned()
    }

    /// How to ask this node, if something of ours runs there: by another pod after each failure.
    fn way(&self, link: Link, footprint: &Footprint, node: &NodeKey, failures: u32) -> Option<Way> {
        let (namespace, pod) = footprint.pod(node, failures)?;
        let pods = self.0.pods.read();
        let place = pods.place(namespace, &node.0)?;
        let status = place.pods.get(pod)?.status();
        let containers = status.container_statuses.unwrap_or_default();
        let runs = containers.iter().find(|it| it.state.as_ref().is_some_and(|it| it.running.is_some()));
        let container = runs.or_else(|| containers.first())?.name.clone();
        Some(Way { link, namespace: place.remote.to_string(), pod: pod.to_owned(), container })
    }
}

impl Way {
    async fn ask(self, node: NodeKey) -> (NodeKey, Answer) {
        let answer = nodes::ask(&self.link, &self.namespace, &self.pod, &self.container).await;
        (node, answer)
    }
}
