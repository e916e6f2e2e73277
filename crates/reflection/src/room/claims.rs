//! Gives claims of the virtual class their volumes, and takes these away again.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::Api;
use liqo_api::labels;
use liqo_kit::watch::{Scope, WatchMetrics};
use liqo_kit::write::{Target, Write};
use liqo_kit::{Key, Queue, Supervisor, Watch};
use serde::Serialize;
use serde_json::json;

use super::Room;
use super::lead::WRITE_TIMEOUT;
use crate::claims::SELECTED_NODE;
use crate::claims::facts::{Claim, Real, Volume};
use crate::claims::objects::{Order, namespace, real_name};
use crate::claims::plan::{Planned, Step, View, plan};
use crate::mirror::kinds::Kind;
use crate::reports::Report;
use crate::settings::Storage;

/// How long claims that come together are collected.
const PAUSE: Duration = Duration::from_millis(20);
/// How soon what failed is tried again, and how often all is looked at though nobody told of a change.
const AGAIN: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_secs(30);

impl Room {
    /// Watches what volumes of the virtual class are made of.
    pub(super) fn watch_claims(&self, storage: &Storage, supervisor: &Supervisor, metrics: &WatchMetrics) {
        let client = || self.0.client.clone();
        let ours = format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_STORAGE);
        let (class, policy) = (storage.class.clone(), self.0.settings.policies.of("PersistentVolumeClaim"));
        let claims = Scope::all::<PersistentVolumeClaim>();
        let claims = Watch::projected(client(), claims, move |it| Claim::read(it, &class, policy));
        self.watch("claims", claims, self.0.claims.clone(), supervisor, metrics);
        let volumes = Scope::all::<PersistentVolume>().labels(ours.clone());
        let volumes = Watch::projected(client(), volumes, |it: PersistentVolume| Volume::read(&it));
        self.watch("volumes", volumes, self.0.claims.clone(), supervisor, metrics);
        let reals = Scope::namespaced::<PersistentVolumeClaim>(&storage.namespace).labels(ours);
        let reals = Watch::projected(client(), reals, |it: PersistentVolumeClaim| Real::read(&it));
        self.watch("real-claims", reals, self.0.claims.clone(), supervisor, metrics);
    }

    /// Keeps the volumes, until it is dropped.
    pub(super) async fn keep_claims(&self, queue: &Queue) {
        let Some(storage) = &self.0.settings.storage else { return std::future::pending().await };
        let mut changes = self.0.claims.subscribe();
        self.0.claims.write().touch_all();
        loop {
            changes.borrow_and_update();
            let failed = self.look_at_claims(storage, queue).await;
            let wait = if failed.is_empty() { LOOK_AGAIN } else { AGAIN };
            tokio::time::sleep(PAUSE).await;
            let quiet = tokio::select! {
                _ = changes.changed() => false,
                () = tokio::time::sleep(wait) => true,
            };
            let mut claims = self.0.claims.write();
            failed.into_iter().for_each(|key| claims.touch(key));
            if quiet && wait == LOOK_AGAIN {
                claims.touch_all();
            }
        }
    }

    /// Looks at all claims that changed or whose copies did; returns those that must be looked at again.
    async fn look_at_claims(&self, storage: &Storage, queue: &Queue) -> Vec<Key> {
        let me = self.0.own.borrow().as_ref().map(|own| own.id.to_string());
        let Some(me) = me else { return vec![] };
        // What is at providers is taken away only where all is known that should be there.
        let fresh = self.0.mirror.read().unseen(Kind::Claim);
        fresh.iter().for_each(|namespace| self.0.claims.write().touch_namespace(namespace));
        let due = self.0.claims.write().take_dirty();
        let mut failed = vec![];
        for key in due {
            let planned = self.planned_claim(&me, &key);
            self.send_claim(&key, &planned);
            if let Err(why) = self.settle(storage, queue, &key, planned).await {
                tracing::warn!(claim = %key, why, "cannot give a claim its volume; it is tried again");
                failed.push(key);
            }
        }
        if !fresh.is_empty() {
            let mut mirror = self.0.mirror.write();
            fresh.iter().for_each(|namespace| mirror.seen_here(Kind::Claim, namespace));
            drop(mirror);
            self.0.mirror.notify();
        }
        failed
    }

    fn planned_claim(&self, me: &str, key: &Key) -> Planned {
        let standings = self.0.standings.read();
        let standing = |provider: &str| standings.get(provider).cloned();
        let (pods, claims, mirror) = (self.0.pods.read(), self.0.claims.read(), self.0.mirror.read());
        plan(&View { home: me, claims: &claims, mirror: &mirror, pods: &pods, standing: &standing }, key)
    }

    /// Says what there should be at providers.
    fn send_claim(&self, key: &Key, planned: &Planned) {
        let mut mirror = self.0.mirror.write();
        match &planned.sent {
            Some(here) => mirror.put_here(Kind::Claim, key.clone(), here.clone()),
            None if mirror.here(Kind::Claim, key).is_some() => mirror.drop_here(Kind::Claim, key.clone()),
            None => return,
        }
        drop(mirror);
        self.0.mirror.notify();
    }

    async fn settle(
        &self,
        storage: &Storage,
        queue: &Queue,
        key: &Key,
        planned: Planned,
    ) -> Result<(), String> {
        let claim = self.0.claims.read().claim(key).cloned();
        if let (Some(report), Some(claim)) = (&planned.report, &claim) {
            self.tell_claim(queue, key, claim, report);
        }
        for step in planned.steps {
            match (step, &claim) {
                (Step::DropReal { key, uid }, _) => {
                    put(queue, &Write::delete(Target::of::<PersistentVolumeClaim>(key), &uid))?;
                }
                (Step::DropVolume { name, uid }, _) => {
                    let target = Target::of::<PersistentVolume>(Key::cluster(&name));
                    put(queue, &Write::delete(target, &uid))?;
                }
                (Step::Unselect { version }, _) => put(queue, &unselect(key, &version)?)?,
                (Step::Ask { node }, Some(claim)) => self.ask_real(storage, queue, key, claim, &node).await?,
                (Step::Stand { provider, pool, remote }, Some(claim)) => {
                    let class = self.class(storage).await?;
                    let order = Order { key, claim, class: class.as_ref(), class_name: &storage.class };
                    self.create(queue, Key::cluster, &order.stand(&provider, pool.as_deref(), &remote))?;
                }
                (Step::Twin { volume, real }, Some(claim)) => {
                    let class = self.class(storage).await?;
                    let order = Order { key, claim, class: class.as_ref(), class_name: &storage.class };
                    let found: PersistentVolume = read(&Api::all(self.0.client.clone()), &volume)
                        .await?
                        .ok_or_else(|| format!("the volume {volume} is gone"))?;
                    let spec = found.spec.unwrap_or_default();
                    let owner = spec.claim_ref.as_ref().and_then(|claim| claim.uid.as_deref());
                    if owner != Some(&*real) {
                        return Err(format!("the volume {volume} is another claim's"));
                    }
                    self.create(queue, Key::cluster, &order.twin(spec))?;
                }
                (Step::Ask { .. } | Step::Stand { .. } | Step::Twin { .. }, None) => {}
            }
        }
        Ok(())
    }

    /// Asks for a volume of a real class on this node.
    async fn ask_real(
        &self,
        storage: &Storage,
        queue: &Queue,
        key: &Key,
        claim: &Claim,
        node: &str,
    ) -> Result<(), String> {
        let nodes: Api<Node> = Api::all(self.0.client.clone());
        if read(&nodes, node).await?.is_none() {
            let message = format!("the node {node}, where its first consumer was placed, is gone");
            self.tell_claim(queue, key, claim, &Report::warning("ProvisioningFailed", &message));
            return put(queue, &unselect(key, &claim.version)?);
        }
        self.create(queue, Key::cluster, &namespace(&storage.namespace))?;
        let order = Order { key, claim, class: None, class_name: &storage.class };
        let real = order.real(&storage.namespace, storage.real_class.as_deref(), node);
        self.create(queue, |name| Key::namespaced(&storage.namespace, name), &real)?;
        let class = storage.real_class.as_deref().unwrap_or("default");
        let message = format!(
            "on the node {node}, a volume of the class {class} is asked for by the claim {}/{}, whose events say more",
            storage.namespace,
            real_name(claim)
        );
        self.tell_claim(queue, key, claim, &Report::normal("Provisioning", &message));
        Ok(())
    }

    /// The virtual class, which says what becomes of volumes without claims.
    async fn class(&self, storage: &Storage) -> Result<Option<StorageClass>, String> {
        read(&Api::all(self.0.client.clone()), &storage.class).await
    }

    /// Tells it in an event, unless this process did already.
    fn tell_claim(&self, queue: &Queue, key: &Key, claim: &Claim, report: &Report) {
        if !self.is_news(&claim.uid, &report.message) {
            return;
        }
        let now = self.0.settings.clock.now();
        let names = Kind::Claim.names();
        if let Some(write) = report.about_kind(names, key, &claim.uid, &self.0.settings.pod, now) {
            // What matters is in the claim's status.
            let _ = queue.write(&write);
        }
    }

    /// Makes an object whose name follows from what it is for.
    fn create<K>(&self, queue: &Queue, key: impl Fn(&str) -> Key, object: &K) -> Result<(), String>
    where
        K: kube::Resource<DynamicType = ()> + Serialize,
    {
        let target = Target::of::<K>(key(object.meta().name.as_deref().unwrap_or_default()));
        self.0.metrics.begin(&target);
        put(queue, &Write::create(target, object).map_err(|error| error.to_string())?.or_exists())
    }

    /// Something that claims depend on has changed.
    pub(super) fn touch_claims(&self, which: Option<&Key>) {
        let mut claims = self.0.claims.write();
        match which {
            Some(key) => claims.touch(key.clone()),
            None => claims.touch_all(),
        }
        drop(claims);
        self.0.claims.notify();
    }
}

/// The patch after which the scheduler chooses a node again.
fn unselect(key: &Key, version: &str) -> Result<Write, String> {
    let patch = json!({ "metadata": { "annotations": { SELECTED_NODE: null } } });
    let target = Target::of::<PersistentVolumeClaim>(key.clone());
    Write::merge(target, version, &patch).map_err(|error| error.to_string())
}

fn put(queue: &Queue, write: &Write) -> Result<(), String> {
    match queue.write(write) {
        liqo_kit::write::Enqueued::Full => Err("too much is waiting to be written".to_owned()),
        _ => Ok(()),
    }
}

async fn read<K>(api: &Api<K>, name: &str) -> Result<Option<K>, String>
where
    K: Clone + serde::de::DeserializeOwned + std::fmt::Debug,
{
    let found = tokio::time::timeout(WRITE_TIMEOUT, api.get_opt(name)).await;
    found.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())
}
