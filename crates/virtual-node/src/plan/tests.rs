use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use liqo_core::Resources;
use liqo_kit::Index as _;
use liqo_kit::clusters::{ClientConfig, Clusters, Credentials};
use liqo_providers::{Lent, Link};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::index::Emptied;

mod draining;
mod nodes;
mod pools;
mod random;
mod survey;

const ID: &str = "11111111-0000-4000-8000-000000000001";
const OTHER_ID: &str = "22222222-0000-4000-8000-000000000002";

/// Clients need threads to run on, though nobody calls.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn link(id: &str) -> Link {
    let key = rcgen::KeyPair::generate().unwrap();
    let ca = rcgen::CertificateParams::new(vec!["ca".into()]).unwrap().self_signed(&key).unwrap().pem();
    let credentials = Credentials::token("https://127.0.0.1:1", ca.as_bytes(), "token").unwrap();
    let (cluster, _) = Clusters::new(ClientConfig::default()).set(id, credentials).unwrap();
    Link { place: "liqo-tenant-us".parse().unwrap(), cluster }
}

fn resources(text: &[(&str, &str)]) -> Resources {
    let parsed = Resources::parse(text.iter().copied());
    assert_eq!(parsed.problems, []);
    parsed.resources
}

fn provider(id: &str, name: &str) -> Provider {
    Provider {
        id: id.parse().unwrap(),
        name: Some(name.parse().unwrap()),
        local_namespace: "liqo-tenant-them".into(),
        link: Ok(link(id)),
        lent: Some(Arc::new(Lent {
            contract: "contract-1".into(),
            resources: resources(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "110")]),
            pools: [].into(),
            labels: BTreeMap::new(),
            storage_classes: vec![],
            until: Timestamp::MAX,
            ending: false,
        })),
        health: Health::Reachable,
    }
}

/// An API server with nodes, and what the room sees of it.
struct World {
    index: Index,
    providers: ByCluster,
    settings: Settings,
    survey: Survey,
    now: Timestamp,
    nodes: BTreeMap<String, Value>,
    version: u64,
    writes: usize,
    runtime: tokio::runtime::Runtime,
}

impl World {
    fn new() -> Self {
        let settings =
            Settings { address: Some("10.0.0.7".parse().unwrap()), ..Settings::new("manager-0", "0.1.0") };
        Self {
            index: Index::default(),
            providers: ByCluster::new(),
            settings,
            survey: Survey::default(),
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
            nodes: BTreeMap::new(),
            version: 1,
            writes: 0,
            runtime: runtime(),
        }
    }

    /// A world with one provider that has its node.
    fn settled() -> Self {
        let mut world = Self::new();
        world.add(ID, "milan");
        world.settle();
        world
    }

    fn add(&mut self, id: &str, name: &str) {
        let _inside = self.runtime.enter();
        self.providers.insert(id.parse().unwrap(), provider(id, name));
    }

    fn change(&mut self, id: &str, change: impl FnOnce(&mut Provider)) {
        change(self.providers.get_mut(id).unwrap());
    }

    fn lend(&mut self, change: impl FnOnce(&mut Lent)) {
        self.change(ID, |provider| change(Arc::make_mut(provider.lent.as_mut().unwrap())));
    }

    fn lose(&mut self) {
        let since = self.now;
        self.change(ID, |it| it.health = Health::Unreachable { since, why: "no route to host".into() });
    }

    fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    fn plan_one(&self, id: &str) -> Planned {
        self.plan_at(&Place::whole(id.parse().unwrap()))
    }

    fn plan_at(&self, place: &Place) -> Planned {
        let Self { index, providers, settings, survey, now, .. } = self;
        plan(&View { index, providers, settings, survey, now: *now }, place)
    }

    fn places(&self) -> Vec<Place> {
        let nodes = self.index.ours().map(|(place, ..)| place.clone());
        let all: std::collections::BTreeSet<_> =
            self.providers.values().flat_map(places).chain(nodes).collect();
        all.into_iter().collect()
    }

    fn put(&mut self, name: &str, node: Value) {
        self.version += 1;
        let mut node = node;
        node["metadata"]["name"] = json!(name);
        node["metadata"]["resourceVersion"] = json!(self.version.to_string());
        if node["metadata"]["uid"].is_null() {
            node["metadata"]["uid"] = json!(format!("uid-{}", self.version));
        }
        self.nodes.insert(name.to_owned(), node.clone());
        self.index.apply(&Key::cluster(name), Known::read(serde_json::from_value(node).unwrap()));
    }

    /// Changes a node as a user would.
    fn edit(&mut self, name: &str, patch: &Value) {
        let mut node = self.nodes[name].clone();
        merge(&mut node, patch);
        self.put(name, node);
    }

    fn write(&mut self, step: &Step) {
        self.writes += 1;
        assert!(step.write().is_ok());
        match &step.what {
            What::Create(node) => {
                assert!(!self.nodes.contains_key(&step.node), "{step:?}");
                self.put(&step.node, node.clone());
            }
            What::Change { version, patch } => {
                assert_eq!(self.nodes[&step.node]["metadata"]["resourceVersion"], json!(version));
                self.edit(&step.node, patch);
            }
            What::Status(object) => {
                assert_eq!(self.nodes[&step.node]["metadata"]["uid"], object["metadata"]["uid"]);
                let mut node = self.nodes[&step.node].clone();
                node["status"] = object["status"].clone();
                self.put(&step.node, node);
            }
            What::Delete(uid) => {
                assert_eq!(self.nodes[&step.node]["metadata"]["uid"], json!(uid));
                self.nodes.remove(&step.node);
                liqo_kit::Index::<Known>::delete(&mut self.index, &Key::cluster(&step.node));
            }
        }
    }

    /// Notices what the leader notices before it plans.
    fn notice(&mut self) {
        for place in self.places() {
            notice(&mut self.index, &self.providers, &place, self.now);
        }
    }

    /// Writes what is missing until nothing is, and returns how many writes that took.
    fn settle(&mut self) -> usize {
        let before = self.writes;
        for _ in 0..20 {
            self.notice();
            let steps: Vec<_> = self.places().iter().flat_map(|it| self.plan_at(it).steps).collect();
            if steps.is_empty() {
                return self.writes - before;
            }
            for step in steps {
                // As the queue does: planned again just before it is written.
                let is_same = |it: &Step| it.node == step.node && it.is_status() == step.is_status();
                let again = self.places().iter().flat_map(|it| self.plan_at(it).steps).find(is_same);
                if let Some(step) = again {
                    self.write(&step);
                }
            }
        }
        panic!("it never settles: {:#?}", self.nodes);
    }

    fn node(&self, name: &str) -> &Value {
        self.nodes.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.nodes.keys()))
    }

    fn milan(&self) -> &Value {
        self.node("liqo-milan")
    }

    fn condition(&self, kind: &str) -> Value {
        let conditions = self.milan()["status"]["conditions"].as_array().unwrap();
        conditions.iter().find(|it| it["type"] == kind).unwrap().clone()
    }

    fn taints(&self) -> Vec<String> {
        let taints = self.milan()["spec"]["taints"].as_array().unwrap();
        taints
            .iter()
            .map(|it| format!("{}:{}", it["key"].as_str().unwrap(), it["effect"].as_str().unwrap()))
            .collect()
    }
}

/// A JSON merge patch.
fn merge(target: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (field, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(field);
        } else {
            merge(&mut target[field.as_str()], value);
        }
    }
}
