//! Renews our Leases at the providers where pods run that must never run twice.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::namespace_map::MappingPhase;
use liqo_api::{NamespaceMap, ShadowPod, annotations, fence, labels};
use liqo_kit::clusters::ClientSource;
use liqo_kit::{Key, watch::Chain};
use liqo_providers::Link;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Room;
use crate::fence::Next;

/// How long an answer may take: longer, and it is as good as none.
const ANSWER: Duration = Duration::from_secs(2);
/// How long it waits when nobody has such pods.
const IDLE: Duration = Duration::from_secs(30);
/// How long it waits at least before it looks again: pods come in bursts.
const PAUSE: Duration = Duration::from_millis(10);
/// The field manager of what makes the provider's API server note its time. Not the one that renews: what one manager
/// leaves out is removed.
const GREETER: &str = "liqo-reflection-clock";

impl Room {
    /// Keeps the Leases, until it is dropped.
    pub(super) async fn keep_fences(&self) {
        let mut changes = self.0.pods.subscribe();
        let mut providers = self.0.providers.clone();
        let mut busy = BTreeSet::new();
        let mut steps = FuturesUnordered::new();
        loop {
            changes.borrow_and_update();
            providers.borrow_and_update();
            let now = Instant::now();
            let mut wake = now + IDLE;
            for (provider, link) in self.tied() {
                if busy.contains(&provider) {
                    continue;
                }
                match self.0.ties.lock().at(&provider).next(now) {
                    Next::Wait(until) => wake = wake.min(until),
                    next => {
                        busy.insert(Arc::clone(&provider));
                        steps.push(self.clone().step(provider, link, next).boxed());
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
            tokio::select! {
                Some(provider) = steps.next() => drop(busy.remove(&provider)),
                _ = changes.changed() => {}
                _ = providers.changed() => {}
                () = tokio::time::sleep_until(wake) => {}
            }
        }
    }

    /// The providers with pods of ours that must never run twice. Also those that count as gone: they count as back only
    /// after they have answered for a while, and by then the Lease would have run out. They are asked before anything is
    /// tried, and what lies there is looked at before a Lease that has run out is renewed.
    fn tied(&self) -> Vec<(Arc<str>, Link)> {
        let needed = self.0.pods.read().providers_of_fenced();
        if needed.is_empty() || !self.leads() {
            return vec![];
        }
        let list = self.0.providers.borrow().clone();
        let needed = list.values().filter(|provider| needed.contains(provider.id.as_str()));
        needed.filter_map(|it| Some((Arc::from(it.id.as_str()), it.link.as_ref().ok()?.clone()))).collect()
    }

    /// Does the next thing about one Lease.
    async fn step(self, provider: Arc<str>, link: Link, next: Next) -> Arc<str> {
        let own = self.0.own.borrow().as_ref().map(|own| own.id.to_string());
        let Some(me) = own.filter(|_| self.leads()) else { return provider };
        if matches!(next, Next::Renew(_)) {
            self.0.ties.lock().at(&provider).try_now(Instant::now());
        }
        let asked = tokio::time::timeout(ANSWER, self.ask(&me, &provider, &link, &next)).await;
        let answer = asked.unwrap_or_else(|_| Err(format!("no answer within {} s", ANSWER.as_secs())));
        let now = Instant::now();
        let mut ties = self.0.ties.lock();
        let tie = ties.at(&provider);
        match (answer, next) {
            (Ok(Answer::Noted(noted)), Next::Renew(_)) => tie.renew(noted, now),
            (Ok(Answer::Noted(noted)), _) => tie.greet(noted, now),
            (Ok(Answer::Clear(clear)), _) => tie.look(clear, now),
            (Ok(Answer::There), _) => tie.answer(),
            (Err(why), next) => {
                if tie.fail(now) {
                    tracing::warn!(%provider, why, ?next, "cannot say at a provider that we are there");
                }
            }
        }
        drop(ties);
        provider
    }

    async fn ask(&self, me: &str, provider: &str, link: &Link, next: &Next) -> Result<Answer, String> {
        let leases: Api<Lease> = Api::namespaced(link.cluster.client(), link.place.as_str());
        match next {
            Next::Wait(_) => Ok(Answer::There),
            Next::Ask => {
                // Only reads: should it arrive late, nothing comes of it.
                let asked = leases.get_opt(fence::LEASE).await;
                asked.map(|_| Answer::There).map_err(|error| told(&error))
            }
            Next::Look => self.is_clear(me, provider, link).await.map(Answer::Clear),
            Next::Greet => {
                let spec = json!({ "holderIdentity": me, "acquireTime": in_microseconds(Timestamp::now()) });
                apply(&leases, GREETER, &spec).await
            }
            Next::Renew(time) => {
                let duration = fence::DURATION.as_secs();
                let renew = in_microseconds(*time);
                let spec =
                    json!({ "holderIdentity": me, "leaseDurationSeconds": duration, "renewTime": renew });
                apply(&leases, fence::RENEWER, &spec).await
            }
        }
    }

    /// Whether all that must never run twice and lies at this provider is wanted there, as its API server says now: what
    /// watches tell may be late.
    async fn is_clear(&self, me: &str, provider: &str, link: &Link) -> Result<bool, String> {
        if !self.0.pods.read().knows(provider) {
            return Ok(false);
        }
        let maps: Api<NamespaceMap> = Api::namespaced(link.cluster.client(), link.place.as_str());
        let ours = ListParams::default().labels(&format!("{}={me}", labels::REPLICATION_ORIGIN));
        let maps = maps.list(&ours).await.map_err(|error| told(&error))?;
        let given = maps.into_iter().filter_map(|map| map.status).flat_map(|status| status.current_mapping);
        let given = given.filter(|(_, it)| it.phase == MappingPhase::Accepted);
        let fenced = ListParams::default().labels(&format!("{}={}", labels::FENCED, labels::TRUE));
        for (_, there) in given {
            let shadows: Api<ShadowPod> = Api::namespaced(link.cluster.client(), &there.remote_namespace);
            let shadows = shadows.list_metadata(&fenced).await.map_err(|error| told(&error))?;
            let mut ours = shadows.iter().filter(|it| is(it.labels(), labels::REFLECTION_ORIGIN, me));
            let unwanted = ours.find(|it| !self.is_wanted(provider, &there.remote_namespace, &it.metadata));
            if let Some(shadow) = unwanted {
                let namespace = &there.remote_namespace;
                tracing::info!(provider, %namespace, pod = shadow.name_any(), "waits until it is taken back there");
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the pod still belongs there that a ShadowPod was made for. One that is being deleted does not: it may be
    /// gone the next moment, and then run elsewhere.
    fn is_wanted(&self, provider: &str, remote: &str, shadow: &ObjectMeta) -> bool {
        let pods = self.0.pods.read();
        let name = shadow.name.as_deref().unwrap_or_default();
        let key = pods.home_of(provider, remote).map(|namespace| Key::namespaced(namespace, name));
        let Some(home) = key.and_then(|key| pods.home(&key)) else { return false };
        let notes = shadow.annotations.as_ref().and_then(|notes| notes.get(annotations::POD_UID));
        let there = pods.node(&home.node).is_some_and(|node| &*node.provider == provider);
        there && !home.deleting && notes.is_some_and(|uid| **uid == *home.uid)
    }
}

/// What came of a step.
enum Answer {
    /// The provider answers.
    There,
    /// Whether all that lies there is wanted.
    Clear(bool),
    /// The time that its API server noted.
    Noted(Option<Timestamp>),
}

async fn apply(leases: &Api<Lease>, manager: &str, spec: &Value) -> Result<Answer, String> {
    let lease = json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": fence::LEASE }, "spec": spec });
    let params = PatchParams::apply(manager).force();
    let lease =
        leases.patch(fence::LEASE, &params, &Patch::Apply(&lease)).await.map_err(|error| told(&error))?;
    let entries = lease.managed_fields().iter().filter(|entry| entry.manager.as_deref() == Some(manager));
    Ok(Answer::Noted(entries.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()))
}

fn is(labels: &std::collections::BTreeMap<String, String>, key: &str, value: &str) -> bool {
    labels.get(key).is_some_and(|found| found == value)
}

fn told(error: &kube::Error) -> String {
    Chain(error).to_string()
}

/// As the API server writes it down: always with six digits.
fn in_microseconds(time: Timestamp) -> String {
    format!("{time:.6}")
}
