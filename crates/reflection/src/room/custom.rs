//! Custom resources: which kinds are looked at, here and at providers, and what is told about them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use liqo_api::NamespaceOffloading;
use liqo_api::names::{Identity, NAMESPACE_OFFLOADING};
use liqo_api::namespace_offloading::{KindName, NotReflected, ReflectedKind};
use liqo_kit::clusters::{ClientSource, Cluster};
use liqo_kit::watch::{Scope, WatchStatus};
use liqo_kit::write::{Target, Write};
use liqo_kit::{Key, Queue, Watch};
use liqo_providers::Provider;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Room;
use super::copies::Spot;
use crate::custom::report::{Side, State, WAITING, told};
use crate::custom::wishes::Wish;
use crate::custom::{CustomKind, discover, read_here, read_there};
use crate::mirror::kinds::Kind;

/// How often it is looked whether what is watched is what should be, while anybody wants custom resources at all.
const LOOK: Duration = Duration::from_millis(500);
/// How long an answer about a kind holds: definitions hardly ever change, but who waits for one does not like to.
const KNOWN: Duration = Duration::from_secs(300);
const MISSING: Duration = Duration::from_secs(5);
/// How long a refusal is told: longer than it takes until the write is tried again.
const REFUSED: Duration = Duration::from_secs(45);

/// A kind in a namespace at home.
type Spring = (CustomKind, Arc<str>);
/// A kind of a namespace at home, at a provider.
type Mouth = (CustomKind, Arc<str>, Arc<str>);
/// What an API server said about a kind, and when.
type Said<T> = (Instant, Result<T, NotReflected>);

/// What is looked at.
#[derive(Default)]
pub(super) struct Customs {
    here: BTreeMap<Spring, Live>,
    there: BTreeMap<Mouth, Live>,
    /// What providers did not take, and when they last did not.
    refused: BTreeMap<Mouth, (Instant, String)>,
    /// What this cluster says about kinds.
    known: HashMap<KindName, Said<CustomKind>>,
    /// What providers say about kinds.
    served: HashMap<(Arc<str>, CustomKind), Said<()>>,
}

/// A watch that runs.
struct Live {
    /// The namespace as it is called there.
    within: Arc<str>,
    status: WatchStatus,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A namespace at a provider.
#[derive(Clone)]
struct Place {
    provider: Arc<str>,
    /// What the status calls it.
    title: String,
    remote: Arc<str>,
    cluster: Cluster,
    answers: bool,
}

impl Customs {
    /// How far the watch of copies of this kind has come.
    pub(super) fn position(&self, kind: CustomKind, namespace: &str, provider: &str) -> u64 {
        let mouth = (kind, Arc::from(namespace), Arc::from(provider));
        self.there.get(&mouth).map_or(0, |live| live.status.position())
    }

    /// The kinds that are copied to this provider.
    pub(super) fn kinds(&self, namespace: &str, provider: &str) -> Vec<CustomKind> {
        let is_there = |(_, of, at): &&Mouth| **of == *namespace && **at == *provider;
        self.there.keys().filter(is_there).map(|(kind, ..)| *kind).collect()
    }

    /// A provider did not take a copy.
    pub(super) fn refuse(&mut self, kind: CustomKind, namespace: &str, provider: &str, why: &str) {
        let mouth = (kind, Arc::from(namespace), Arc::from(provider));
        let refusal = self.refused.entry(mouth).or_insert_with(|| (Instant::now(), why.to_owned()));
        // The words may be about another object each time; those that were told stay.
        refusal.0 = Instant::now();
    }
}

impl Room {
    /// Keeps looking at custom resources that are wanted elsewhere, until dropped.
    pub(super) async fn keep_customs(&self, queue: &Queue, stop: &CancellationToken) {
        let mut wishes = self.0.wishes.subscribe();
        loop {
            wishes.borrow_and_update();
            let me = self.0.own.borrow().as_ref().map(|own| Arc::from(own.id.as_str()));
            let idle = match &me {
                Some(me) => self.look_at_customs(queue, me, stop).await,
                None => false,
            };
            let next =
                async { if idle { std::future::pending().await } else { tokio::time::sleep(LOOK).await } };
            tokio::select! {
                _ = wishes.changed() => {}
                () = next => {}
            }
        }
    }

    /// Looks nowhere any more.
    pub(super) fn leave_customs(&self) {
        *self.0.customs.lock() = Customs::default();
    }

    /// Looks at all kinds that are wanted, and returns whether none is.
    async fn look_at_customs(&self, queue: &Queue, me: &Arc<str>, stop: &CancellationToken) -> bool {
        let wishes: Vec<(Arc<str>, Wish)> =
            self.0.wishes.read().0.iter().map(|(of, wish)| (Arc::clone(of), wish.clone())).collect();
        let mut kept = Kept::default();
        for (namespace, wish) in &wishes {
            let places = self.custom_places(namespace);
            let mut reflected = Vec::new();
            for name in wish.kinds() {
                let look = Look { room: self, me, stop, namespace, wish, places: &places };
                reflected.extend(look.at(&name, &mut kept).await);
            }
            if reflected != wish.told {
                let key = Key::namespaced(namespace, NAMESPACE_OFFLOADING);
                tell(queue, key, &wish.version, &reflected);
            }
        }
        self.end_customs(&kept);
        wishes.is_empty()
    }

    /// Where the things of a namespace go.
    fn custom_places(&self, namespace: &str) -> Vec<Place> {
        let list = self.0.providers.borrow().clone();
        let of = |id: &str| list.get(id);
        let mirror = self.0.mirror.read();
        let places = mirror.places(namespace).filter_map(|(provider, (remote, _))| {
            let found = of(provider)?;
            Some(Place {
                provider: Arc::clone(provider),
                title: title_of(found),
                remote: Arc::clone(remote),
                cluster: found.link.as_ref().ok()?.cluster.clone(),
                answers: !found.health.is_gone(),
            })
        });
        places.collect()
    }

    /// Ends the watches of what nobody wants.
    fn end_customs(&self, kept: &Kept) {
        let mut customs = self.0.customs.lock();
        let mut mirror = self.0.mirror.write();
        customs.here.retain(|spring, _| {
            let stays = kept.here.contains(spring);
            if !stays {
                mirror.forget_here(Kind::Custom(spring.0), &spring.1);
            }
            stays
        });
        customs.there.retain(|mouth, _| {
            let stays = kept.there.contains(mouth);
            if !stays {
                mirror.forget_there(Kind::Custom(mouth.0), &mouth.1, &mouth.2);
            }
            stays
        });
        customs.refused.retain(|mouth, (at, _)| kept.there.contains(mouth) && at.elapsed() < REFUSED);
        customs.known.retain(|_, (at, _)| at.elapsed() < KNOWN);
        customs.served.retain(|_, (at, _)| at.elapsed() < KNOWN);
    }

    /// What this cluster says about a kind; `None` while it could not be asked.
    async fn known_kind(&self, name: &KindName) -> discover::Answer<CustomKind> {
        let before = self.0.customs.lock().known.get(name).cloned();
        if let Some((at, answer)) = &before
            && at.elapsed() < if answer.is_ok() { KNOWN } else { MISSING }
        {
            return Some(answer.clone());
        }
        let answer = discover::preferred(&self.0.client, name).await?;
        self.0.customs.lock().known.insert(name.clone(), (Instant::now(), answer.clone()));
        Some(answer)
    }

    /// Whether a provider serves a kind; `None` while it could not be asked.
    async fn served_kind(&self, place: &Place, kind: CustomKind) -> discover::Answer<()> {
        let key = (Arc::clone(&place.provider), kind);
        let before = self.0.customs.lock().served.get(&key).cloned();
        if let Some((at, answer)) = &before
            && at.elapsed() < if answer.is_ok() { KNOWN } else { MISSING }
        {
            return Some(answer.clone());
        }
        let answer = discover::serves(&place.cluster.client(), kind).await?;
        self.0.customs.lock().served.insert(key, (Instant::now(), answer.clone()));
        Some(answer)
    }
}

/// What goes on being looked at.
#[derive(Default)]
struct Kept {
    here: BTreeSet<Spring>,
    there: BTreeSet<Mouth>,
}

/// A look at one namespace.
struct Look<'a> {
    room: &'a Room,
    me: &'a Arc<str>,
    stop: &'a CancellationToken,
    namespace: &'a Arc<str>,
    wish: &'a Wish,
    places: &'a [Place],
}

impl Look<'_> {
    /// Looks at one kind; returns what is to be told about it, if anything.
    async fn at(&self, name: &KindName, kept: &mut Kept) -> Option<ReflectedKind> {
        let said = self.wish.said(name);
        let noted =
            said.and_then(|it| Some(CustomKind::noted(name, it.version.as_deref()?, it.plural.as_deref()?)));
        if !self.wish.wanted.contains(name) {
            let kind = noted?;
            return self.withdraw(kind, kept).await.then(|| told(name, Some(kind), State::Leaving));
        }
        let kind = match (self.room.known_kind(name).await, noted) {
            (Some(Ok(kind)), _) => kind,
            // Its definition may be on its way back; what was copied stays until somebody says otherwise.
            (Some(Err(why)), noted) => return Some(told(name, noted, State::Unknown(why))),
            (None, Some(kind)) => kind,
            (None, None) => return said.cloned(),
        };
        if noted != Some(kind) {
            // It is noted first: copies that nobody knows of would stay for ever.
            let (here, there) = (Side::Waiting, BTreeMap::new());
            return Some(told(name, Some(kind), State::Wanted { here, there }));
        }
        // Where nothing goes, nothing is looked at.
        let here = match (self.places.is_empty(), self.is_mapped_elsewhere()) {
            (true, false) => Side::Seen,
            (true, true) => Side::Waiting,
            (false, _) => self.look_here(kind, kept),
        };
        let mut there = BTreeMap::new();
        for place in self.places {
            there.insert(place.title.clone(), self.look_there(kind, place, kept).await);
        }
        let told = told(name, Some(kind), State::Wanted { here, there });
        // What was found out before a restart holds until something else is.
        let known = said.filter(|said| told.reason == WAITING && said.version == told.version);
        Some(known.cloned().unwrap_or(told))
    }

    /// Whether the namespace is at a provider that cannot be looked at now, or not yet.
    fn is_mapped_elsewhere(&self) -> bool {
        let pods = self.room.0.pods.read();
        let mut maps = pods.maps().filter(|(_, map)| map.namespaces.contains_key(self.namespace));
        maps.any(|(_, map)| self.places.iter().all(|place| *place.provider != *map.provider))
    }

    /// Takes back all copies of a kind; returns whether some are left, or may be.
    async fn withdraw(&self, kind: CustomKind, kept: &mut Kept) -> bool {
        // The originals are not looked at any more: nothing is wanted.
        if self.room.0.customs.lock().here.remove(&(kind, Arc::clone(self.namespace))).is_some() {
            self.room.0.mirror.write().forget_here(Kind::Custom(kind), self.namespace);
        }
        let mut left = self.is_mapped_elsewhere();
        for place in self.places {
            match self.look_there(kind, place, kept).await {
                Side::Seen => {
                    let mirror = self.room.0.mirror.read();
                    left |= mirror.has_copies(Kind::Custom(kind), self.namespace, &place.provider, self.me);
                }
                // There are none where there is no such kind.
                Side::Failing(why) if why.reason == "KindMissing" => {}
                // Copies that we may not see may be there; who took the right away is the one to remove them.
                Side::Failing(why) if why.reason == "Forbidden" => {}
                Side::Failing(_) | Side::Waiting => left = true,
            }
        }
        let mut mirror = self.room.0.mirror.write();
        if left {
            mirror.want_none(Kind::Custom(kind), self.namespace);
        } else {
            mirror.forget_here(Kind::Custom(kind), self.namespace);
        }
        drop(mirror);
        self.room.0.mirror.notify();
        left
    }

    fn look_here(&self, kind: CustomKind, kept: &mut Kept) -> Side {
        let spring = (kind, Arc::clone(self.namespace));
        kept.here.insert(spring.clone());
        let mut customs = self.room.0.customs.lock();
        let forgotten = !self.room.0.mirror.read().is_seen_here(Kind::Custom(kind), self.namespace);
        if customs.here.get(&spring).is_some_and(|live| live.status.is_ready() && forgotten) {
            customs.here.remove(&spring);
        }
        let live = customs.here.entry(spring).or_insert_with(|| {
            let source = self.room.0.client.clone();
            self.watch(kind, source, self.namespace, None)
        });
        side(&live.status, || Side::forbidden_here(kind))
    }

    async fn look_there(&self, kind: CustomKind, place: &Place, kept: &mut Kept) -> Side {
        let mouth = (kind, Arc::clone(self.namespace), Arc::clone(&place.provider));
        if !place.answers {
            // What is watched goes on being watched, for when it is back.
            kept.there.insert(mouth);
            return Side::failing("ProviderUnreachable", "the provider does not answer");
        }
        match self.room.served_kind(place, kind).await {
            Some(Ok(())) => {}
            Some(Err(why)) => return Side::Failing(why),
            None => return Side::Waiting,
        }
        kept.there.insert(mouth.clone());
        let mut customs = self.room.0.customs.lock();
        if customs.there.get(&mouth).is_some_and(|live| self.is_outdated(kind, place, live)) {
            customs.there.remove(&mouth);
            self.room.0.mirror.write().forget_there(Kind::Custom(kind), self.namespace, &place.provider);
        }
        let live = customs
            .there
            .entry(mouth.clone())
            .or_insert_with(|| self.watch(kind, place.cluster.clone(), &place.remote, Some(&place.provider)));
        let side = side(&live.status, || Side::forbidden_there(kind));
        match customs.refused.get(&mouth) {
            Some((_, why)) if side == Side::Seen => Side::failing("Refused", why),
            _ => side,
        }
    }

    /// Whether a watch is about a namespace that was left meanwhile, and what it said is forgotten.
    fn is_outdated(&self, kind: CustomKind, place: &Place, live: &Live) -> bool {
        let mirror = self.room.0.mirror.read();
        let forgotten = !mirror.is_seen_there(Kind::Custom(kind), self.namespace, &place.provider);
        live.within != place.remote
            || place.cluster.removed().is_cancelled()
            || (live.status.is_ready() && forgotten)
    }

    fn watch<S: ClientSource>(
        &self,
        kind: CustomKind,
        source: S,
        within: &Arc<str>,
        provider: Option<&Arc<str>>,
    ) -> Live {
        let stop = self.stop.child_token();
        let spot = Spot {
            mirror: self.room.0.mirror.clone(),
            kind: Kind::Custom(kind),
            namespace: Arc::clone(self.namespace),
            provider: provider.cloned(),
            home: Arc::clone(self.me),
            rename: |name, _| name.to_owned(),
            stop: stop.clone(),
        };
        let scope = Scope::dynamic(kind.resource(), Some(within));
        let metrics = self.room.0.watch_metrics.lock().clone();
        let mut tasks = JoinSet::new();
        let status = if provider.is_some() {
            let watch = Watch::projected(source, scope, |it: DynamicObject| Some(read_there(it)));
            let watch = watch.named("reflection-at-providers-customresources").metrics(&metrics).feed(spot);
            let status = watch.status();
            tasks.spawn(watch.run(stop.clone()));
            status
        } else {
            let watch = Watch::projected(source, scope, read_here);
            let watch = watch.named("reflection-customresources").metrics(&metrics).feed(spot);
            let status = watch.status();
            tasks.spawn(watch.run(stop.clone()));
            status
        };
        Live { within: Arc::clone(within), status, stop, _tasks: tasks }
    }
}

/// How far a watch is.
fn side(status: &WatchStatus, forbidden: impl FnOnce() -> Side) -> Side {
    match (status.is_forbidden(), status.is_ready()) {
        (true, _) => forbidden(),
        (false, true) => Side::Seen,
        (false, false) => Side::Waiting,
    }
}

/// What the status calls a provider.
fn title_of(provider: &Provider) -> String {
    let parsed = provider.name.as_ref().and_then(|name| {
        let (id, name) = (provider.id.as_str().parse().ok()?, name.as_str().parse().ok()?);
        Some(Identity { id, name }.unique_name())
    });
    parsed.unwrap_or_else(|| provider.id.to_string())
}

/// Writes what there is to tell; who else writes to the status meanwhile makes us look again.
fn tell(queue: &Queue, key: Key, version: &str, reflected: &[ReflectedKind]) {
    let target = Target::of::<NamespaceOffloading>(key);
    match Write::merge_status(target, version, &json!({ "reflected": reflected })) {
        // A full queue is asked again with the next look.
        Ok(write) => drop(queue.write(&write)),
        Err(error) => tracing::error!(%error, "what is reflected cannot be written down"),
    }
}
