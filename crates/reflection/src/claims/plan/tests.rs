use std::sync::Arc;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use liqo_kit::Index;
use serde_json::{Value, json};

use super::*;
use crate::claims::objects::Order;
use crate::mirror::read_there;
use crate::pods::facts::{Mapping, VirtualNode};
use crate::policies::Policy;

/// A namespace `shop` that is `shop-home` at the provider `away`, whose node is `liqo-away`.
struct World {
    claims: Claims,
    mirror: Mirror,
    pods: Pods,
    standing: Option<Standing>,
}

fn key(name: &str) -> Key {
    Key::namespaced("shop", name)
}

fn claim(uid: &str, node: Option<&str>) -> Value {
    let mut claim = json!({ "metadata": { "name": "data", "namespace": "shop", "uid": uid, "resourceVersion": "1" },
        "spec": { "storageClassName": "liqo", "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } } } });
    if let Some(node) = node {
        claim["metadata"]["annotations"] = json!({ "volume.kubernetes.io/selected-node": node });
    }
    claim
}

impl World {
    fn new() -> Self {
        let (shop, away): (Arc<str>, Arc<str>) = (Arc::from("shop"), Arc::from("away"));
        let mut mirror = Mirror::default();
        mirror.open(&shop, &away, &Arc::from("shop-home"), true);
        mirror.seen_here(Kind::Claim, &shop);
        mirror.seen_there(Kind::Claim, &shop, &away);
        let mut pods = Pods::default();
        let node = VirtualNode { provider: "away".into(), pool: None, address: None };
        pods.apply(&Key::cluster("liqo-away"), node);
        let namespaces = [(shop, (Arc::from("shop-home"), true))].into();
        pods.apply(&Key::namespaced("t", "away"), Mapping { provider: "away".into(), namespaces });
        let standing = Standing { storage_class: Some("fast".to_owned()), ..Standing::default() };
        Self { claims: Claims::default(), mirror, pods, standing: Some(standing) }
    }

    fn claim(mut self, value: Value) -> Self {
        let claim: PersistentVolumeClaim = serde_json::from_value(value).unwrap();
        self.claims.apply(&key("data"), Claim::read(claim, "liqo", Policy::DenyList).unwrap());
        self
    }

    fn no_claim(mut self) -> Self {
        Index::<Claim>::delete(&mut self.claims, &key("data"));
        self
    }

    /// What is at the provider, made for the claim with this uid.
    fn there(mut self, uid: &str) -> Self {
        let there = json!({ "metadata": { "name": "data", "uid": "there",
            "labels": { "virtualkubelet.liqo.io/origin": "home" },
            "annotations": { "storage.liqo.io/virtual-pvc-uid": uid } } });
        let there: PersistentVolumeClaim = serde_json::from_value(there).unwrap();
        self.mirror.put_there(Kind::Claim, key("data"), &Arc::from("away"), read_there(there));
        self
    }

    fn not_there(mut self) -> Self {
        self.mirror.drop_there(Kind::Claim, key("data"), "away");
        self
    }

    /// A volume as it is made for the claim with this uid, at the provider or here.
    fn volume(mut self, uid: &str, provider: Option<&str>, phase: &str, policy: &str) -> Self {
        let claim: PersistentVolumeClaim = serde_json::from_value(claim(uid, None)).unwrap();
        let claim = Claim::read(claim, "liqo", Policy::DenyList).unwrap();
        let key = key("data");
        let order = Order { key: &key, claim: &claim, class: None, class_name: "liqo" };
        let made = match provider {
            Some(provider) => order.stand(provider, Some("blue"), "shop-home/data"),
            None => order.twin(Default::default()),
        };
        let mut made = json!(made);
        made["metadata"]["uid"] = json!("volume");
        made["status"] = json!({ "phase": phase });
        made["spec"]["persistentVolumeReclaimPolicy"] = json!(policy);
        let made: PersistentVolume = serde_json::from_value(made).unwrap();
        let volume = Volume::read(&made).unwrap();
        self.claims.apply(&Key::cluster(&volume.name.clone()), volume);
        self
    }

    fn real(mut self, uid: &str, node: Option<&str>, volume: Option<&str>) -> Self {
        let claim: PersistentVolumeClaim = serde_json::from_value(claim(uid, None)).unwrap();
        let claim = Claim::read(claim, "liqo", Policy::DenyList).unwrap();
        let key = key("data");
        let order = Order { key: &key, claim: &claim, class: None, class_name: "liqo" };
        let mut real = json!(order.real("liqo-storage", None, "node"));
        real["metadata"]["uid"] = json!("real");
        real["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] =
            json!(node.unwrap_or_default());
        if node.is_none() {
            real["metadata"]["annotations"]
                .as_object_mut()
                .unwrap()
                .remove("volume.kubernetes.io/selected-node");
        }
        if let Some(volume) = volume {
            real["spec"]["volumeName"] = json!(volume);
            real["status"] = json!({ "phase": "Bound" });
        }
        let real = Real::read(&serde_json::from_value(real).unwrap()).unwrap();
        self.claims.apply(&real.key.clone(), real);
        self
    }

    fn plan(&self) -> Planned {
        let standing = |_: &str| self.standing.clone();
        let view = View {
            home: "home",
            claims: &self.claims,
            mirror: &self.mirror,
            pods: &self.pods,
            standing: &standing,
        };
        plan(&view, &key("data"))
    }

    /// The kinds of steps.
    fn steps(&self) -> Vec<&'static str> {
        self.plan().steps.iter().map(word).collect()
    }
}

fn word(step: &Step) -> &'static str {
    match step {
        Step::Ask { .. } => "ask",
        Step::Stand { .. } => "stand",
        Step::Twin { .. } => "twin",
        Step::Unselect { .. } => "unselect",
        Step::DropReal { .. } => "drop real",
        Step::DropVolume { .. } => "drop volume",
    }
}

fn reason(planned: &Planned) -> &str {
    planned.report.as_ref().map_or("", |report| &report.reason)
}

#[test]
fn a_claim_waits_for_its_first_consumer() {
    let planned = World::new().claim(claim("u", None)).plan();
    assert!(planned.steps.is_empty() && planned.sent.is_none() && planned.report.is_none(), "{planned:?}");
}

#[test]
fn on_a_virtual_node_it_goes_to_the_provider_and_is_bound_when_it_is_there() {
    let world = World::new().claim(claim("u", Some("liqo-away")));
    let planned = world.plan();
    assert!(planned.steps.is_empty(), "{planned:?}");
    let sent = planned.sent.unwrap();
    assert_eq!(sent.only, Some([Box::from("away")].into()));
    let step = Step::Stand { provider: "away".into(), pool: None, remote: "shop-home/data".to_owned() };
    assert_eq!(world.there("u").plan().steps, [step]);
}

#[test]
fn what_an_earlier_claim_of_the_name_left_is_never_taken_for_it() {
    let world = World::new().claim(claim("new", Some("liqo-away"))).there("old");
    assert!(world.steps().is_empty());
    // Kept on purpose, it stays, and the claim says so.
    let planned = world.volume("old", Some("away"), "Released", "Retain").plan();
    assert_eq!(planned.sent.as_ref().unwrap().uid.as_ref(), "old");
    assert_eq!(reason(&planned), "ProvisioningWaits");
}

#[test]
fn a_provider_that_cannot_have_it_is_told_and_another_node_is_chosen() {
    let none = |world: World| World { standing: None, ..world };
    let silent = |world: World| World {
        standing: Some(Standing { gone: Some(Arc::from("silence")), ..world.standing.unwrap() }),
        ..world
    };
    let poor = |world: World| World { standing: Some(Standing::default()), ..world };
    let unmapped = |mut world: World| {
        Index::<Mapping>::delete(&mut world.pods, &Key::namespaced("t", "away"));
        world
    };
    let cases: [&dyn Fn(World) -> World; 4] = [&none, &silent, &poor, &unmapped];
    for case in cases {
        let planned = case(World::new().claim(claim("u", Some("liqo-away")))).plan();
        assert_eq!(planned.steps.iter().map(word).collect::<Vec<_>>(), ["unselect"], "{planned:?}");
        assert_eq!(reason(&planned), "ProvisioningFailed");
        assert!(planned.sent.is_none());
    }
}

#[test]
fn a_claim_that_is_to_stay_at_home_does_not_go() {
    let mut kept = claim("u", Some("liqo-away"));
    kept["metadata"]["annotations"]["liqo.io/skip-reflection"] = json!("true");
    let planned = World::new().claim(kept).plan();
    assert!(planned.sent.is_none());
    assert_eq!(reason(&planned), "ProvisioningFailed");
}

#[test]
fn the_claim_of_a_pod_is_left_to_the_provider() {
    let mut of_pod = claim("u", Some("liqo-away"));
    of_pod["metadata"]["ownerReferences"] =
        json!([{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": true }]);
    let planned = World::new().claim(of_pod).plan();
    assert!(planned.sent.is_none());
    assert_eq!(planned.steps.iter().map(word).collect::<Vec<_>>(), ["stand"]);
}

#[test]
fn on_a_physical_node_a_real_claim_is_made_and_its_volume_gets_a_twin() {
    let world = World::new().claim(claim("u", Some("node")));
    assert_eq!(world.steps(), ["ask"]);
    let world = world.real("u", Some("node"), None);
    assert!(world.steps().is_empty());
    assert_eq!(world.real("u", Some("node"), Some("pv")).steps(), ["twin"]);
}

#[test]
fn a_real_claim_that_finds_no_volume_there_is_given_up() {
    let world = World::new().claim(claim("u", Some("node"))).real("u", None, None);
    assert_eq!(world.steps(), ["drop real", "unselect"]);
    // Its consumer was placed elsewhere.
    let world = World::new().claim(claim("u", Some("liqo-away"))).real("u", Some("node"), None);
    assert_eq!(world.steps(), ["drop real"]);
}

#[test]
fn a_bound_claim_keeps_what_is_behind_it_and_says_when_it_is_lost() {
    let mut bound = claim("u", Some("liqo-away"));
    bound["spec"]["volumeName"] = json!("pvc-u");
    let world = World::new().claim(bound).there("u").volume("u", Some("away"), "Bound", "Delete");
    let planned = world.plan();
    assert!(planned.steps.is_empty() && planned.report.is_none(), "{planned:?}");
    assert_eq!(planned.sent.unwrap().uid.as_ref(), "u");
    assert_eq!(reason(&world.not_there().plan()), "VolumeLost");
}

#[test]
fn what_is_behind_a_claim_stays_also_while_its_volume_is_not_known_yet() {
    let mut bound = claim("u", Some("liqo-away"));
    bound["spec"]["volumeName"] = json!("pvc-u");
    let world = World::new().claim(bound.clone()).there("u");
    let planned = world.plan();
    assert!(planned.steps.is_empty() && planned.report.is_none(), "{planned:?}");
    let sent = planned.sent.unwrap();
    assert_eq!((sent.uid.as_ref(), sent.body.is_empty()), ("u", true), "it is kept, and never made anew");
    // Also while it is on its way out: whether the volume stays is for its policy to say.
    bound["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    assert!(World::new().claim(bound).there("u").plan().sent.is_some());
    // Nothing at a provider is wanted for one that was placed at home.
    let mut home = claim("u", Some("node"));
    home["spec"]["volumeName"] = json!("pvc-u");
    assert!(World::new().claim(home).there("u").plan().sent.is_none());
}

#[test]
fn without_its_claim_the_policy_says_what_becomes_of_a_volume() {
    let world = World::new().there("u").volume("u", Some("away"), "Released", "Delete");
    let planned = world.plan();
    assert!(planned.sent.is_none() && planned.steps.is_empty(), "what is there goes first: {planned:?}");
    assert_eq!(world.not_there().steps(), ["drop volume"]);
    let world = World::new().there("u").volume("u", Some("away"), "Released", "Retain");
    assert!(world.steps().is_empty());
    assert!(world.plan().sent.is_some());
    let world = World::new().real("u", Some("node"), Some("pv")).volume("u", None, "Released", "Delete");
    assert_eq!(world.steps(), ["drop real"]);
    let world = World::new().real("u", Some("node"), Some("pv")).volume("u", None, "Released", "Retain");
    assert!(world.steps().is_empty());
    // Claims go a moment before their volumes know.
    let world = World::new().real("u", Some("node"), Some("pv")).volume("u", None, "Bound", "Delete");
    assert!(world.steps().is_empty());
}

#[test]
fn later_consumers_are_kept_where_the_data_is() {
    let claim: PersistentVolumeClaim = serde_json::from_value(claim("u", None)).unwrap();
    let claim = Claim::read(claim, "liqo", Policy::DenyList).unwrap();
    let key = key("data");
    let order = Order { key: &key, claim: &claim, class: None, class_name: "liqo" };
    let terms = |volume: PersistentVolume| {
        json!(volume)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"].to_string()
    };
    let there = terms(order.stand("away", Some("blue"), "shop-home/data"));
    assert!(there.contains("away") && there.contains("blue") && there.contains("virtual-node"), "{there}");
    let real = json!({ "nodeAffinity": { "required": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["a"] }] },
        { "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["b"] }] }] } } });
    let here = terms(order.twin(serde_json::from_value(real).unwrap()));
    assert_eq!(here.matches("NotIn").count(), 2, "in each term: {here}");
    assert_eq!(terms(order.twin(Default::default())).matches("NotIn").count(), 1);
}

#[test]
fn a_volume_at_a_provider_that_is_gone_for_good_goes() {
    let mut world = World::new().volume("u", Some("away"), "Released", "Delete");
    Index::<Mapping>::delete(&mut world.pods, &Key::namespaced("t", "away"));
    world.mirror.close(&Arc::from("shop"), &Arc::from("away"));
    assert_eq!(world.steps(), ["drop volume"]);
}

#[test]
fn a_real_claim_whose_claim_went_before_it_had_a_volume_goes() {
    let world = World::new().claim(claim("u", Some("node"))).real("u", Some("node"), None).no_claim();
    assert_eq!(world.steps(), ["drop real"]);
}
