//! Worlds for the tests of plans.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use liqo_api::annotations::{PASSED_METADATA, PASSED_SPEC};
use liqo_core::Resources;
use liqo_core::contract::Enforcement;
use liqo_core::names::ClusterId;
use liqo_kit::{Index as _, Key};
use serde_json::{Value, json};

use super::{Bid, Binding, Deal, Grant, House, Index, Map, Quota, Space, Tenant};
use crate::claims::claims;
use crate::objects;
use crate::pods::{PodFacts, Shadow};
use crate::settings::Settings;

/// A provider's index, filled by hand.
pub(crate) struct World {
    pub(crate) index: Index,
    pub(crate) settings: Settings,
    pub(crate) now: Timestamp,
}

impl World {
    pub(crate) fn new() -> Self {
        let index = Index { me: Some("provider-id".parse().unwrap()), ..Index::default() };
        let settings = Settings::new("liqo".parse().unwrap(), "manager-0");
        Self { index, settings, now: Timestamp::from_second(1_000_000).unwrap() }
    }

    pub(crate) fn peer(id: &str) -> ClusterId {
        id.parse().unwrap()
    }

    /// A consumer with a place and a contract.
    pub(crate) fn consumer(mut self, id: &str, resources: &[(&str, &str)]) -> Self {
        self.place(id);
        self.contract(id, resources, Enforcement::Hard);
        self
    }

    pub(crate) fn place(&mut self, id: &str) {
        let name = format!("liqo-tenant-{id}");
        let tenant = Tenant { name: name.clone(), peer: Self::peer(id), deleting: false, put_out: false };
        self.index.apply(&Key::cluster(&name), tenant);
    }

    /// The peer is put out, or let in again.
    pub(crate) fn put_out(&mut self, id: &str, put_out: bool) {
        let name = format!("liqo-tenant-{id}");
        let tenant = Tenant { name: name.clone(), peer: Self::peer(id), deleting: false, put_out };
        self.index.apply(&Key::cluster(&name), tenant);
        self.reckon();
    }

    pub(crate) fn contract(&mut self, id: &str, resources: &[(&str, &str)], enforcement: Enforcement) {
        let resources = Resources::parse(resources.iter().copied()).resources;
        let grant = Grant { resources, pools: [].into(), enforcement };
        let key = Key::namespaced(&format!("liqo-tenant-{id}"), "c-one");
        self.index.apply(&key, Deal::test(Self::peer("provider-id"), Self::peer(id), grant));
        self.reckon();
    }

    pub(crate) fn end(&mut self, id: &str) {
        let key = Key::namespaced(&format!("liqo-tenant-{id}"), "c-one");
        liqo_kit::Index::<Deal>::delete(&mut self.index, &key);
        self.reckon();
    }

    /// A map, as a consumer wrote it.
    pub(crate) fn map(mut self, id: &str, name: &str, wanted: &[(&str, &str)]) -> Self {
        self.ask(id, name, wanted);
        self
    }

    pub(crate) fn ask(&mut self, id: &str, name: &str, wanted: &[(&str, &str)]) {
        let map = Map {
            resource_version: "1".into(),
            origin: id.into(),
            deleting: false,
            wanted: wanted.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            told: Default::default(),
        };
        self.index.apply(&Self::map_key(id, name), map);
        self.reckon();
    }

    pub(crate) fn map_key(id: &str, name: &str) -> Key {
        Key::namespaced(&format!("liqo-tenant-{id}"), name)
    }

    /// A namespace that is nobody's.
    pub(crate) fn namespace(mut self, name: &str) -> Self {
        self.put_namespace(&json!({ "metadata": { "name": name, "uid": format!("uid-{name}") } }));
        self.reckon();
        self
    }

    pub(crate) fn put_namespace(&mut self, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let space = Space::read(serde_json::from_value(object.clone()).unwrap()).unwrap();
        self.index.apply(&Key::cluster(name), space);
    }

    /// The policy by which offers are made.
    pub(crate) fn policy(&mut self, spec: &Value) {
        let policy = json!({
            "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "SharingPolicy", "metadata": { "name": "policy" }, "spec": spec,
        });
        let house = House::read(&serde_json::from_value(policy).unwrap());
        self.index.apply(&Key::cluster("policy"), house);
        self.reckon();
    }

    /// An offer to a consumer.
    pub(crate) fn offer(&mut self, id: &str) {
        let bid = Bid { from: "provider-id".into(), policy: Some("policy".into()) };
        self.index.apply(&Self::map_key(id, "provider"), bid);
        self.reckon();
    }

    pub(crate) fn withdraw(&mut self, id: &str) {
        liqo_kit::Index::<Bid>::delete(&mut self.index, &Self::map_key(id, "provider"));
        self.reckon();
    }

    /// The namespace as the plan makes it, with all that must be in it.
    pub(crate) fn build(&mut self, name: &str) {
        let claim = self.index.claims.wanted.get(name).cloned().expect("nobody wants it");
        let mut object =
            serde_json::to_value(objects::namespace(name, &claim, &self.index.rules(&claim.peer))).unwrap();
        object["metadata"]["uid"] = json!(format!("uid-{name}"));
        object["metadata"]["resourceVersion"] = json!("7");
        let _: Namespace = serde_json::from_value(object.clone()).unwrap();
        self.put_namespace(&object);
        let grant = self.index.grant(&claim.peer).unwrap();
        let hard = objects::hard(&grant.resources);
        let quota = |hard| Quota { uid: "q".into(), resource_version: "1".into(), hard, counted: true };
        self.index.apply(&Key::namespaced(name, "liqo-contract"), quota(hard));
        let limits = self.index.limits.hard();
        self.index.apply(&Key::namespaced(name, "liqo-objects"), quota(limits));
        let binding = Binding::read(objects::binding(name, &claim.peer));
        self.index.apply(&Key::namespaced(name, "liqo-tenant"), binding);
        self.reckon();
    }

    pub(crate) fn reckon(&mut self) {
        self.index.reckon_grants();
        self.index.note_lapses(self.now);
        self.index.claims = claims(&self.index, &self.settings, self.now);
    }

    /// A ShadowPod of a namespace.
    pub(crate) fn shadow(&mut self, key: &str, pod: &Value, status: &Value) -> Key {
        let key = Self::key(key);
        let object = json!({
            "metadata": { "name": key.name(), "namespace": key.namespace(), "uid": format!("shadow-{}", key.name()),
                          "resourceVersion": "3", "labels": { "app": "web" } },
            "spec": { "pod": pod }, "status": status,
        });
        let shadow = Shadow::read(serde_json::from_value(object).unwrap()).unwrap();
        self.index.apply(&key, shadow);
        key
    }

    /// The pod of a ShadowPod, in this phase.
    pub(crate) fn pod(&mut self, key: &Key, cpu: &str, phase: &str, deleting: bool) {
        let mut object = json!({
            "metadata": { "name": key.name(), "namespace": key.namespace(), "uid": format!("pod-{}", key.name()),
                          "ownerReferences": [{ "uid": format!("shadow-{}", key.name()), "controller": true }] },
            "spec": sized(cpu), "status": { "phase": phase },
        });
        if let Some(notes) = self.notes(key) {
            object["metadata"]["annotations"] = notes;
        }
        if deleting {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        }
        let pod = PodFacts::read(serde_json::from_value(object).unwrap()).unwrap();
        self.index.apply(key, pod);
    }

    /// What a pod of the consumer `milan` has noted that was made from its ShadowPod as it is now.
    fn notes(&self, key: &Key) -> Option<Value> {
        let shadow = self.index.shadows.get(key)?;
        let passed = crate::pods::passed(&self.index, shadow, &Self::peer("milan"));
        Some(json!({ PASSED_METADATA: passed.record(), PASSED_SPEC: shadow.changeable }))
    }

    /// A pod that was made as the plan says.
    pub(crate) fn make(&mut self, key: &Key, pod: &Pod) {
        let mut object = serde_json::to_value(pod).unwrap();
        object["metadata"]["uid"] = json!(format!("pod-{}", key.name()));
        object["metadata"]["creationTimestamp"] = json!(self.now);
        object["status"] = json!({ "phase": "Running" });
        self.index.apply(key, PodFacts::read(serde_json::from_value(object).unwrap()).unwrap());
    }

    pub(crate) fn key(text: &str) -> Key {
        let (namespace, name) = text.split_once('/').unwrap();
        Key::namespaced(namespace, name)
    }
}

/// A pod that requests this much.
pub(crate) fn sized(cpu: &str) -> Value {
    json!({ "containers": [{ "name": "main", "image": "app", "resources": { "requests": { "cpu": cpu } } }] })
}
