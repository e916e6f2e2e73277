//! Tells owners of namespaces what cannot be watched, since what is not seen is not reflected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::ListParams;
use liqo_api::NamespaceOffloading;
use liqo_api::names::NAMESPACE_OFFLOADING;
use liqo_kit::{Key, Queue};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Links, Room, WRITE_TIMEOUT};
use crate::reports::Report;

/// How often it is looked.
const PERIOD: Duration = Duration::from_secs(10);
/// How long a watch may take to come back before it is told.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is wrong: the namespace, and the words.
type Trouble = (Arc<str>, String);

/// What was told, and who tells more.
#[derive(Default)]
pub(super) struct Blind {
    looked: Option<Instant>,
    told: BTreeSet<Trouble>,
    tasks: JoinSet<()>,
}

impl Room {
    /// Tells, once each, which watches do not come about though the cluster that is watched answers.
    pub(in crate::room) fn tell_blind(&self, queue: &Queue) {
        let mut links = self.0.links.lock();
        if links.blind.looked.is_some_and(|at| at.elapsed() < PERIOD) {
            return;
        }
        links.blind.looked = Some(Instant::now());
        let troubles = self.troubles(&links);
        let new: Vec<Trouble> = troubles.difference(&links.blind.told).cloned().collect();
        links.blind.told = troubles;
        while links.blind.tasks.try_join_next().is_some() {}
        if !new.is_empty() {
            let (room, queue) = (self.clone(), queue.clone());
            links.blind.tasks.spawn(async move {
                for (namespace, message) in new {
                    room.tell_owner(&queue, &namespace, &message).await;
                }
            });
        }
    }

    fn troubles(&self, links: &Links) -> BTreeSet<Trouble> {
        let standings = self.0.standings.read();
        let answers =
            |provider: &str| standings.get(provider).is_some_and(|standing| standing.gone.is_none());
        let mut found: BTreeMap<_, (BTreeSet<&str>, String)> = BTreeMap::new();
        for (namespace, provider, watch) in links.watches() {
            // Of a provider that does not answer, its node tells.
            if provider.is_some_and(|it| !answers(it)) || watch.staleness() < PATIENCE {
                continue;
            }
            if let Some(why) = watch.failure() {
                let kind = watch.name().rsplit('-').next().unwrap_or_default();
                let entry = found.entry((namespace, provider)).or_insert_with(|| (BTreeSet::new(), why));
                entry.0.insert(kind);
            }
        }
        let words = found.into_iter().map(|((namespace, provider), (kinds, why))| {
            let kinds = kinds.into_iter().collect::<Vec<_>>().join(", ");
            let place = provider.map_or_else(|| "here".to_owned(), |it| format!("at the provider {it}"));
            let message = format!(
                "{kinds} of this namespace cannot be watched {place}, so that changes are not seen: {why}"
            );
            (Arc::clone(namespace), message)
        });
        words.collect()
    }

    async fn tell_owner(&self, queue: &Queue, namespace: &str, message: &str) {
        tracing::warn!(namespace, message, "not reflected");
        let api: Api<NamespaceOffloading> = Api::namespaced(self.0.client.clone(), namespace);
        let this = ListParams::default().fields(&format!("metadata.name={NAMESPACE_OFFLOADING}"));
        let found = tokio::time::timeout(WRITE_TIMEOUT, api.list(&this)).await;
        let Ok(Ok(found)) = found else {
            return tracing::warn!(namespace, "cannot find out whom to tell that something is not reflected");
        };
        let Some(uid) = found.items.into_iter().find_map(|it| it.metadata.uid) else { return };
        let key = Key::namespaced(namespace, NAMESPACE_OFFLOADING);
        let kind = ("offloading.liqo.io/v1alpha1", "NamespaceOffloading");
        let (pod, now) = (&self.0.settings.pod, self.0.settings.clock.now());
        if let Some(write) = Report::warning("NotWatched", message).about_kind(kind, &key, &uid, pod, now) {
            // One of many; a full queue has better things to do.
            let _ = queue.write(&write);
        }
    }
}
