//! A consumer and its providers in memory, in which plans are carried out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, Node, NodeSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use liqo_api::names::Identity;
use liqo_api::namespace_map::{MappingPhase, RemoteNamespace};
use liqo_api::namespace_offloading::{
    OffloadingPhase, RemoteNamespaceCondition, RemoteNamespaceConditionType,
};
use liqo_api::outage::Outage;
use liqo_api::{NamespaceMap, NamespaceOffloading};
use liqo_core::names::ClusterId;
use liqo_kit::{Index as _, Key};
use liqo_providers::Health;
use serde_json::{Value, json};

use crate::index::{Index, NodeFacts, Peer, Place, Subject};
use crate::plan::{View, plan};
use crate::settings::Settings;
use crate::steps::{Deed, Step, Where};

type Answer = Box<dyn Fn(&str) -> RemoteNamespace>;

/// A provider.
struct Provider {
    peer: Peer,
    labels: BTreeMap<String, String>,
    node: bool,
    /// Further nodes of it, for its pools, with their labels.
    pools: BTreeMap<String, BTreeMap<String, String>>,
    /// What its node notes, and whether it is kept from being used.
    notes: BTreeMap<String, String>,
    cordoned: bool,
    known: bool,
    /// Whether it does what it is asked for.
    works: bool,
    answer: Answer,
}

/// The world.
pub(crate) struct World {
    me: Identity,
    settings: Settings,
    now: Timestamp,
    version: u64,
    /// Objects by whose they are (`None`: ours) and by path.
    objects: BTreeMap<(Option<ClusterId>, String), Value>,
    providers: BTreeMap<ClusterId, Provider>,
    index: Index,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((cluster, path), object) in &self.objects {
            writeln!(f, "{}{path}: {object:#}", cluster.as_ref().map_or("", ClusterId::as_str))?;
        }
        Ok(())
    }
}

const NAMESPACES: &str = "/api/v1/namespaces";

fn offloading_path(namespace: &str) -> String {
    format!("/apis/offloading.liqo.io/v1alpha1/namespaces/{namespace}/namespaceoffloadings/offloading")
}

impl World {
    pub(crate) fn new() -> Self {
        let me = Identity { id: "home-id".parse().unwrap(), name: "home".parse().unwrap() };
        Self {
            me,
            settings: Settings::new("liqo".parse().unwrap(), "manager-0"),
            now: Timestamp::from_second(1_800_000_000).unwrap(),
            version: 0,
            objects: BTreeMap::new(),
            providers: BTreeMap::new(),
            index: Index::default(),
        }
    }

    pub(crate) fn with_provider(mut self, name: &str, labels: &[(&str, &str)]) -> Self {
        let id: ClusterId = name.parse().unwrap();
        let peer = Peer {
            unique_name: Some(name.to_owned()),
            local_namespace: format!("liqo-tenant-{name}").into(),
            place: Ok("liqo-tenant-home".to_owned()),
            lends: true,
            ending: false,
            health: Health::Reachable,
        };
        let accept: Answer = Box::new(|name| RemoteNamespace {
            remote_namespace: name.to_owned(),
            phase: MappingPhase::Accepted,
            reason: None,
            message: None,
        });
        let mut labels: BTreeMap<_, _> =
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        labels.insert("liqo.io/type".to_owned(), "virtual-node".to_owned());
        labels.insert("liqo.io/remote-cluster-id".to_owned(), name.to_owned());
        let provider = Provider {
            peer,
            labels,
            node: true,
            pools: BTreeMap::new(),
            notes: BTreeMap::new(),
            cordoned: false,
            known: true,
            works: true,
            answer: accept,
        };
        self.providers.insert(id, provider);
        self.restart();
        self
    }

    /// One more node of a provider.
    pub(crate) fn with_pool(mut self, name: &str, pool: &str) -> Self {
        let provider = self.provider(name);
        let mut labels = provider.labels.clone();
        labels.insert("liqo.io/pool".to_owned(), pool.to_owned());
        provider.pools.insert(format!("liqo-{name}-{pool}"), labels);
        self.restart();
        self
    }

    pub(crate) fn view(&self) -> View<'_> {
        View { index: &self.index, me: &self.me, settings: &self.settings, now: self.now }
    }

    /// Forgets all that is not in an object, and sees everything anew.
    pub(crate) fn restart(&mut self) {
        self.index = Index::default();
        for (id, provider) in &self.providers {
            if provider.known {
                self.index.peers.insert(id.clone(), provider.peer.clone());
                self.index.places.insert(id.clone(), Place { synced: true, ..Place::default() });
            }
            if provider.node {
                let mut node = Node::default();
                node.metadata.labels = Some(provider.labels.clone());
                node.metadata.annotations = Some(provider.notes.clone());
                node.spec = Some(NodeSpec { unschedulable: Some(provider.cordoned), ..NodeSpec::default() });
                self.index.apply(&Key::cluster(&format!("liqo-{id}")), NodeFacts::read(&node).unwrap());
            }
            for (name, labels) in &provider.pools {
                let mut node = Node::default();
                node.metadata.labels = Some(labels.clone());
                self.index.apply(&Key::cluster(name), NodeFacts::read(&node).unwrap());
            }
        }
        for ((cluster, path), object) in self.objects.clone() {
            self.see(cluster.as_ref(), &path, Some(object));
        }
    }

    /// Carries out all plans until nothing is missing. Returns how many writes it took.
    pub(crate) fn settle(&mut self) -> usize {
        let mut writes = 0;
        for _ in 0..50 {
            self.work();
            self.index.touch_all();
            let mut done = 0;
            for subject in self.index.take_dirty() {
                // The webhook's certificate has tests of its own.
                if subject == Subject::House {
                    continue;
                }
                for step in plan(&self.view(), &subject).steps {
                    done += usize::from(self.carry_out(&subject, &step));
                }
            }
            writes += done;
            if done == 0 {
                return writes;
            }
        }
        panic!("no end of writing: {self:?}");
    }

    /// What providers do with what lies there.
    fn work(&mut self) {
        let copies: Vec<_> = self.objects.keys().filter(|(cluster, _)| cluster.is_some()).cloned().collect();
        for key in copies {
            let provider = &self.providers[key.0.as_ref().unwrap()];
            if !provider.works {
                continue;
            }
            let map: NamespaceMap = serde_json::from_value(self.objects[&key].clone()).unwrap();
            let current: BTreeMap<_, _> = map
                .spec
                .desired_mapping
                .iter()
                .map(|(local, remote)| (local.clone(), (provider.answer)(remote)))
                .collect();
            let mut object = self.objects[&key].clone();
            object["status"] = json!({ "currentMapping": current });
            self.put(&key, object);
        }
    }

    fn carry_out(&mut self, subject: &Subject, step: &Step) -> bool {
        let cluster = match (step.at, subject) {
            (Where::Here, _) => None,
            (Where::There, Subject::Peer(id)) => Some(id.clone()),
            other => panic!("{other:?}"),
        };
        let key = (cluster, step.target.to_string());
        let seen = self.objects.get(&key).cloned();
        match &step.deed {
            Deed::Create(object) => {
                assert!(seen.is_none(), "{step:?} exists");
                self.put(&key, object.clone());
            }
            Deed::Note(object) => {
                if seen.is_some() {
                    return false;
                }
                self.put(&key, object.clone());
            }
            Deed::Merge { patch, .. } => {
                let mut object = seen.unwrap_or_else(|| panic!("{step:?} is not there"));
                let spec = object["spec"].clone();
                merge(&mut object, patch);
                if object["spec"] != spec {
                    let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
                    object["metadata"]["generation"] = json!(generation + 1);
                }
                self.put(&key, object);
            }
            Deed::MergeStatus { patch, .. } => {
                let mut object = seen.unwrap_or_else(|| panic!("{step:?} is not there"));
                merge(&mut object["status"], patch);
                self.put(&key, object);
            }
            Deed::Delete { .. } => self.remove(&key),
            other => panic!("{other:?}"),
        }
        true
    }

    /// Deletes an object, as an API server does: with a finalizer it stays for a while.
    fn remove(&mut self, key: &(Option<ClusterId>, String)) {
        let mut object = self.objects[key].clone();
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        if held {
            object["metadata"]["deletionTimestamp"] = json!(Time(self.now));
            self.put(key, object);
        } else {
            self.objects.remove(key);
            self.see(key.0.as_ref(), &key.1, None);
        }
    }

    fn put(&mut self, key: &(Option<ClusterId>, String), mut object: Value) {
        if self.objects.get(key).is_some_and(|before| *before == object) {
            return;
        }
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = json!(format!("uid-{}", self.version));
            object["metadata"]["generation"] = json!(1);
        }
        let gone = !object["metadata"]["deletionTimestamp"].is_null()
            && object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if gone {
            self.objects.remove(key);
            self.see(key.0.as_ref(), &key.1, None);
        } else {
            self.objects.insert(key.clone(), object.clone());
            self.see(key.0.as_ref(), &key.1, Some(object));
        }
    }

    /// What a watch tells.
    fn see(&mut self, cluster: Option<&ClusterId>, path: &str, object: Option<Value>) {
        let parts: Vec<_> = path.rsplit('/').take(4).collect();
        let (name, kind) = (parts[0], parts[1]);
        let key = if parts[3] == "namespaces" { Key::namespaced(parts[2], name) } else { Key::cluster(name) };
        fn read<T: serde::de::DeserializeOwned>(object: Value) -> T {
            serde_json::from_value(object).unwrap()
        }
        match (cluster, kind, object) {
            (Some(id), "namespacemaps", object) => {
                let Some(place) = self.index.places.get_mut(id) else { return };
                match object {
                    Some(object) => drop(place.maps.insert(name.to_owned(), read(object))),
                    None => drop(place.maps.remove(name)),
                }
            }
            (None, "namespacemaps", Some(object)) => self.index.apply(&key, read::<NamespaceMap>(object)),
            (None, "namespacemaps", None) => liqo_kit::Index::<NamespaceMap>::delete(&mut self.index, &key),
            (None, "namespaceoffloadings", Some(object)) => {
                self.index.apply(&key, read::<NamespaceOffloading>(object));
            }
            (None, "namespaceoffloadings", None) => {
                liqo_kit::Index::<NamespaceOffloading>::delete(&mut self.index, &key);
            }
            (None, "namespaces", Some(object)) => {
                self.index.apply(&Key::cluster(name), read::<Namespace>(object));
            }
            (_, "events", _) => {}
            other => panic!("{other:?}"),
        }
    }

    // What people do.

    pub(crate) fn label(&mut self, namespace: &str, label: &str, value: Option<&str>) {
        let key = (None, format!("{NAMESPACES}/{namespace}"));
        let mut object = self
            .objects
            .get(&key)
            .cloned()
            .unwrap_or(json!({ "metadata": { "name": namespace, "labels": {} } }));
        merge(&mut object["metadata"]["labels"], &json!({ label: value }));
        self.put(&key, object);
    }

    pub(crate) fn offload(&mut self, namespace: &str, spec: &Value) {
        self.label(namespace, "kubernetes.io/metadata.name", Some(namespace));
        let object = json!({
            "apiVersion": "offloading.liqo.io/v1alpha1", "kind": "NamespaceOffloading",
            "metadata": { "name": "offloading", "namespace": namespace }, "spec": spec,
        });
        self.put(&(None, offloading_path(namespace)), object);
    }

    pub(crate) fn change(&mut self, namespace: &str, spec: &Value) {
        let key = (None, offloading_path(namespace));
        let mut object = self.objects[&key].clone();
        merge(&mut object["spec"], spec);
        self.put(&key, object);
    }

    pub(crate) fn delete(&mut self, namespace: &str) {
        self.remove(&(None, offloading_path(namespace)));
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(crate) fn drained(&mut self, namespace: &str, cluster: &str) {
        let cluster: ClusterId = cluster.parse().unwrap();
        let nodes: Vec<_> = self.index.nodes_of(&cluster).map(|(name, _)| name.to_owned()).collect();
        self.left(namespace, cluster.as_str(), &nodes);
    }

    /// The namespace's pods have left these nodes.
    pub(crate) fn left(&mut self, namespace: &str, cluster: &str, nodes: &[impl ToString]) {
        let nodes = nodes.iter().map(ToString::to_string).collect();
        self.index.drained.insert((Arc::from(namespace), cluster.parse().unwrap()), nodes);
    }

    fn provider(&mut self, name: &str) -> &mut Provider {
        self.providers.get_mut(name).unwrap()
    }

    pub(crate) fn slow(&mut self, name: &str) {
        self.provider(name).works = false;
    }

    pub(crate) fn quick(&mut self, name: &str) {
        self.provider(name).works = true;
    }

    pub(crate) fn answer(&mut self, name: &str, answer: impl Fn(&str) -> RemoteNamespace + 'static) {
        self.provider(name).answer = Box::new(answer);
    }

    pub(crate) fn unreachable(&mut self, name: &str) {
        let since = self.now;
        let provider = self.provider(name);
        provider.peer.health = Health::Unreachable { since, why: "no route".into() };
        provider.works = false;
        self.restart();
    }

    /// It answers again, after so many seconds.
    pub(crate) fn back_after(&mut self, name: &str, seconds: i64) -> Outage {
        self.pass(seconds);
        let outage = Outage::new(self.now - SignedDuration::from_secs(seconds), self.now, None);
        let provider = self.provider(name);
        provider.peer.health = Health::Reachable;
        provider.works = true;
        provider.notes.insert(liqo_api::annotations::LAST_OUTAGE.to_owned(), outage.to_string());
        self.restart();
        outage
    }

    pub(crate) fn cordon(&mut self, name: &str, cordoned: bool) {
        self.provider(name).cordoned = cordoned;
        self.restart();
    }

    pub(crate) fn annotate(&mut self, namespace: &str, key: &str, value: &str) {
        let key_of = (None, offloading_path(namespace));
        let mut object = self.objects[&key_of].clone();
        merge(&mut object["metadata"], &json!({ "annotations": { key: value } }));
        self.put(&key_of, object);
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.provider(name).node = false;
        self.restart();
    }

    pub(crate) fn forget(&mut self, name: &str) {
        self.provider(name).known = false;
        self.restart();
    }

    // What there is.

    pub(crate) fn offloading(&self, namespace: &str) -> Option<&NamespaceOffloading> {
        self.index.offloadings.get(namespace)
    }

    pub(crate) fn phase(&self, namespace: &str) -> Option<OffloadingPhase> {
        self.offloading(namespace)?.status.as_ref()?.offloading_phase
    }

    pub(crate) fn condition(
        &self,
        namespace: &str,
        cluster: &str,
        type_: RemoteNamespaceConditionType,
    ) -> RemoteNamespaceCondition {
        let status = self.offloading(namespace).and_then(|it| it.status.clone()).unwrap_or_default();
        let all = status.remote_namespaces_conditions.get(cluster).cloned().unwrap_or_default();
        all.0
            .into_iter()
            .find(|it| it.type_ == type_)
            .unwrap_or_else(|| panic!("nothing of {cluster}: {self:?}"))
    }

    pub(crate) fn valid(&self, namespace: &str) -> Condition {
        let status = self.offloading(namespace).and_then(|it| it.status.clone()).unwrap_or_default();
        status.conditions.into_iter().find(|it| it.type_ == "Valid").unwrap()
    }

    pub(crate) fn labels(&self, namespace: &str) -> BTreeMap<String, String> {
        self.index.namespaces[namespace].metadata.labels.clone().unwrap_or_default()
    }

    pub(crate) fn mapping(&self, at: Where, cluster: &str) -> BTreeMap<String, String> {
        let id: ClusterId = cluster.parse().unwrap();
        let map = match at {
            Where::Here => self.index.original(&id),
            Where::There => self.index.copy(&id),
        };
        map.map(|map| map.spec.desired_mapping.clone()).unwrap_or_default()
    }

    pub(crate) fn maps(&self) -> usize {
        self.objects.keys().filter(|(_, path)| path.contains("namespacemaps")).count()
    }

    pub(crate) fn events(&self) -> Vec<String> {
        let events = self.objects.iter().filter(|((_, path), _)| path.contains("/events/"));
        events.map(|(_, event)| format!("{}: {}", event["reason"], event["note"])).collect()
    }
}

/// Merges as an API server does.
fn merge(object: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = json!({});
    }
    for (key, change) in changes {
        if change.is_null() {
            object.as_object_mut().unwrap().remove(key);
        } else {
            merge(&mut object[key], change);
        }
    }
}
