//! The watches of what is copied, on both sides, and the writes that follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::Ingress;
use liqo_api::ShadowPod;
use liqo_kit::clusters::{ClientSource, Cluster};
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus};
use liqo_kit::write::{Enqueued, Failed, Plan, Reason, Target, Write};
use liqo_kit::{Key, Queue, Shared, Sink, Watch};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Room;
use super::lead::Round;
use super::links::{Links, Originals};
use crate::mirror::index::Mirror;
use crate::mirror::kinds::Kind;
use crate::mirror::plan::{Planned, Step, View, plan};
use crate::mirror::{Around, Here, Mirrored, There, read_here, read_there};
use crate::reports::Report;

/// Where watches of one kind in one namespace put what they see.
#[derive(Clone)]
pub(super) struct Spot {
    pub(super) mirror: Shared<Mirror>,
    pub(super) kind: Kind,
    pub(super) namespace: Arc<str>,
    /// The provider, or at home nobody.
    pub(super) provider: Option<Arc<str>>,
    /// The ID of this cluster, and what names become with it.
    pub(super) home: Arc<str>,
    pub(super) rename: fn(&str, &str) -> String,
    pub(super) stop: CancellationToken,
}

impl Spot {
    fn change(&self, key: &Key, change: impl FnOnce(&mut Mirror, Kind, Key)) {
        // What a watch says that was stopped is about a namespace that is not looked at any more.
        if self.stop.is_cancelled() {
            return;
        }
        let name = match self.provider {
            Some(_) => key.name().to_owned(),
            None => (self.rename)(key.name(), &self.home),
        };
        change(&mut self.mirror.write(), self.kind, Key::namespaced(&self.namespace, &name));
    }

    fn seen(&self) {
        if !self.stop.is_cancelled() {
            let mut mirror = self.mirror.write();
            match &self.provider {
                Some(provider) => mirror.seen_there(self.kind, &self.namespace, provider),
                None => mirror.seen_here(self.kind, &self.namespace),
            }
        }
    }
}

impl Sink<Here> for Spot {
    fn apply(&self, key: &Key, here: Here) {
        self.change(key, |mirror, kind, key| mirror.put_here(kind, key, here));
    }

    fn delete(&self, key: &Key) {
        self.change(key, Mirror::drop_here);
    }

    fn synced(&self) {
        self.seen();
    }

    fn changed(&self) {
        self.mirror.notify();
    }
}

impl Sink<There> for Spot {
    fn apply(&self, key: &Key, there: There) {
        if let Some(provider) = &self.provider {
            self.change(key, |mirror, kind, key| mirror.put_there(kind, key, provider, there));
        }
    }

    fn delete(&self, key: &Key) {
        if let Some(provider) = &self.provider {
            self.change(key, |mirror, kind, key| mirror.drop_there(kind, key, provider));
        }
    }

    fn synced(&self) {
        self.seen();
    }

    fn changed(&self) {
        self.mirror.notify();
    }
}

/// Starts the watches of one namespace, at home or at a provider.
struct Watching<'a, S> {
    room: &'a Room,
    source: S,
    /// The namespace as it is called there.
    within: &'a str,
    namespace: &'a Arc<str>,
    provider: Option<&'a Arc<str>>,
    home: Arc<str>,
    stop: &'a CancellationToken,
    metrics: WatchMetrics,
}

impl<S: ClientSource + Clone> Watching<'_, S> {
    fn all(&self, tasks: &mut JoinSet<()>) -> BTreeMap<Kind, WatchStatus> {
        let watch = |kind: Kind, tasks: &mut JoinSet<()>| match kind {
            Kind::ConfigMap => Some(self.one::<ConfigMap>(kind, tasks)),
            Kind::Secret => Some(self.one::<Secret>(kind, tasks)),
            Kind::Service => Some(self.one::<Service>(kind, tasks)),
            Kind::EndpointSlice => Some(self.one::<EndpointSlice>(kind, tasks)),
            Kind::Ingress => Some(self.one::<Ingress>(kind, tasks)),
            Kind::Claim => Some(self.one::<PersistentVolumeClaim>(kind, tasks)),
            // Looked at when somebody wants them.
            Kind::Custom(_) => None,
        };
        // Claims at home are looked at in all namespaces, and not only because they are copied.
        let watched = |kind: &Kind| self.provider.is_some() || *kind != Kind::Claim;
        Kind::ALL.into_iter().filter(watched).filter_map(|kind| Some((kind, watch(kind, tasks)?))).collect()
    }

    fn one<K: Mirrored>(&self, kind: Kind, tasks: &mut JoinSet<()>) -> WatchStatus {
        let spot = Spot {
            mirror: self.room.0.mirror.clone(),
            kind,
            namespace: Arc::clone(self.namespace),
            provider: self.provider.cloned(),
            home: Arc::clone(&self.home),
            rename: K::remote_name,
            stop: self.stop.clone(),
        };
        let scope = Scope::namespaced::<K>(self.within);
        let stop = self.stop.clone();
        // One name for all namespaces: which one it is, is told by other numbers.
        if self.provider.is_some() {
            let watch = Watch::projected(self.source.clone(), scope, |it: K| Some(read_there(it)));
            let watch = watch.named(format!("reflection-at-providers-{}", K::plural(&())));
            let watch = watch.metrics(&self.metrics).feed(spot);
            let status = watch.status();
            tasks.spawn(watch.run(stop));
            return status;
        }
        let policy = self.room.0.settings.policies.of(&K::kind(&()));
        let allowed = move |it: &K| policy.lets(it.meta().name.as_deref(), it.meta().annotations.as_ref());
        let read = move |it: K| if allowed(&it) { read_here(it) } else { None };
        let watch = Watch::projected(self.source.clone(), scope, read);
        let watch = watch.named(format!("reflection-{}", K::plural(&()))).metrics(&self.metrics).feed(spot);
        let status = watch.status();
        tasks.spawn(watch.run(stop));
        status
    }
}

impl Room {
    /// Looks at what is copied of a namespace at a provider.
    pub(super) fn watch_copies(
        &self,
        namespace: &Arc<str>,
        provider: &Arc<str>,
        remote: &str,
        cluster: &Cluster,
        stop: &CancellationToken,
        tasks: &mut JoinSet<()>,
    ) -> BTreeMap<Kind, WatchStatus> {
        let watching = Watching {
            room: self,
            source: cluster.clone(),
            within: remote,
            namespace,
            provider: Some(provider),
            home: Arc::from(""),
            stop,
            metrics: self.0.watch_metrics.lock().clone(),
        };
        watching.all(tasks)
    }

    /// Looks at the namespaces at home that are copied from, and at no others.
    pub(super) fn keep_originals(&self, links: &mut Links, me: &str, leading: &CancellationToken) {
        let wanted = self.0.mirror.read().namespaces();
        links.homes.retain(|namespace, home| {
            let stays = wanted.contains(namespace);
            if !stays {
                home.stop.cancel();
                self.0.mirror.write().leave(namespace);
            }
            stays
        });
        for namespace in wanted {
            if links.homes.contains_key(&namespace) {
                continue;
            }
            let (stop, mut tasks) = (leading.child_token(), JoinSet::new());
            let watching = Watching {
                room: self,
                source: self.0.client.clone(),
                within: &namespace,
                namespace: &namespace,
                provider: None,
                home: me.into(),
                stop: &stop,
                metrics: self.0.watch_metrics.lock().clone(),
            };
            let watches = watching.all(&mut tasks).into_values().collect();
            links.homes.insert(namespace, Originals { watches, stop, _tasks: tasks });
        }
    }

    fn planned_copy(&self, me: &str, kind: Kind, key: &Key) -> Planned {
        let standings = self.0.standings.read();
        let standing = |provider: &str| standings.get(provider).cloned();
        let pods = self.0.pods.read();
        let provider_of = |node: &str| pods.node(node).map(|node| node.provider.to_string());
        let around = Around { translate: &*self.0.settings.translate, provider_of: &provider_of };
        let mirror = self.0.mirror.read();
        let own = self.0.settings.namespace.as_deref();
        plan(&View { home: me, own, mirror: &mirror, standing: &standing, around }, kind, key)
    }

    /// Looks at all copies that changed or whose originals did.
    pub(super) fn look_at_copies(&self, queue: &Queue, me: &str, round: &mut Round) {
        self.tell_blind(queue);
        let refused = self.0.mirror.write().take_refused();
        for (kind, key, message) in refused {
            self.tell_once(queue, kind, &key, &Report::warning("NotReflected", &message));
        }
        let due = self.0.mirror.write().take_dirty();
        for (kind, key) in due {
            if kind == Kind::Claim {
                // What is there decides what there may be here.
                self.touch_claims(Some(&key));
            }
            let planned = self.planned_copy(me, kind, &key);
            if let Some(report) = &planned.report {
                self.tell_once(queue, kind, &key, report);
            }
            for (provider, remote, step) in planned.steps {
                let Some(to) = self.0.links.lock().queue(&provider).cloned() else { continue };
                let copy = Copy {
                    room: self.clone(),
                    me: me.into(),
                    kind,
                    key: key.clone(),
                    provider,
                    queue: to.clone(),
                };
                let Some(write) = copy.write(remote, &step) else { continue };
                self.0.metrics.begin(write.target());
                let again = Again { copy, first: Mutex::new(Some(write)) };
                if to.enqueue(again) == Enqueued::Full {
                    self.0.mirror.write().touch(kind, key.clone());
                    round.full = true;
                }
            }
        }
    }

    /// Tells it in an event, unless this process did already.
    fn tell_once(&self, queue: &Queue, kind: Kind, key: &Key, report: &Report) {
        let Some(uid) = self.0.mirror.read().here(kind, key).map(|here| here.uid.clone()) else { return };
        if !self.is_news(&uid, &report.message) {
            return;
        }
        let now = self.0.settings.clock.now();
        let write = report.about_kind(kind.names(), key, &uid, &self.0.settings.pod, now);
        if let Some(write) = write {
            // The next look tells it again if there is no room now.
            let _ = queue.write(&write);
        }
    }
}

impl Room {
    /// A write at a provider was given up: what was refused is told, what failed is asked for again.
    pub(super) fn not_taken(&self, provider: &str, target: &Target, failed: &Failed) {
        let remote = target.key();
        let namespace = remote
            .namespace()
            .and_then(|remote| self.0.pods.read().home_of(provider, remote).map(Arc::clone));
        let Some(namespace) = namespace else { return };
        let key = Key::namespaced(&namespace, remote.name());
        let refused = match failed.reason {
            Reason::Forbidden => Some("Forbidden"),
            Reason::Refused => Some("Invalid"),
            _ => None,
        };
        if *target == Target::of::<ShadowPod>(remote.clone()) {
            let mut pods = self.0.pods.write();
            match refused {
                Some(reason) => pods.refuse(key, reason, failed.message.clone()),
                None => pods.touch(key),
            }
            drop(pods);
            return self.0.pods.notify();
        }
        let customs = self.0.customs.lock().kinds(&namespace, provider);
        let mut kinds = Kind::ALL.into_iter().chain(customs.into_iter().map(Kind::Custom));
        let Some(kind) = kinds.find(|kind| kind.target(remote.clone()) == *target) else { return };
        if refused.is_some() {
            if let Kind::Custom(custom) = kind {
                self.0.customs.lock().refuse(custom, &namespace, provider, &failed.message);
            }
            let message = format!("the provider {provider} does not take it: {}", failed.message);
            self.0.mirror.write().refuse(kind, key, message);
        } else {
            self.0.mirror.write().touch(kind, key);
        }
        self.0.mirror.notify();
    }
}

/// A copy at a provider.
struct Copy {
    room: Room,
    me: Arc<str>,
    kind: Kind,
    key: Key,
    provider: Arc<str>,
    queue: Queue,
}

impl Copy {
    /// The write that makes the step, unless our last one has not been seen yet.
    fn write(&self, remote: Key, step: &Step) -> Option<Write> {
        let target = self.kind.target(remote);
        let namespace = self.key.namespace().unwrap_or_default();
        let position = match self.kind {
            Kind::Custom(kind) => self.room.0.customs.lock().position(kind, namespace, &self.provider),
            kind => self.room.0.links.lock().copies_position(kind, namespace, &self.provider),
        };
        if !self.queue.written().has_seen(&target, position) {
            return None;
        }
        let write = match step {
            Step::Create { object } => Write::create(target, object),
            Step::Replace { uid, version, object } => Write::replace(target, uid, version, object),
            Step::Delete { uid } => Ok(Write::delete(target, uid)),
        };
        write.inspect_err(|error| tracing::error!(object = %self.key, %error, "cannot write this down")).ok()
    }
}

/// A write that is planned again when its turn comes, but for the first time.
struct Again {
    copy: Copy,
    first: Mutex<Option<Write>>,
}

impl Plan for Again {
    fn plan(&self) -> Option<Write> {
        if let Some(write) = self.first.lock().take() {
            return Some(write);
        }
        let copy = &self.copy;
        let planned = copy.room.planned_copy(&copy.me, copy.kind, &copy.key);
        let mut steps = planned.steps.into_iter();
        let (_, remote, step) = steps.find(|(provider, _, _)| *provider == copy.provider)?;
        copy.write(remote, &step)
    }
}
