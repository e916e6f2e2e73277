use std::collections::BTreeSet;

use super::*;
use crate::mirror::{read_here, read_there};
use crate::translate::Unchanged;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::discovery::v1::EndpointSlice;

/// A namespace `shop` that is `shop-home` at the provider `away`.
struct World {
    mirror: Mirror,
    gone: bool,
    own: Option<&'static str>,
}

impl World {
    fn new() -> Self {
        let mut mirror = Mirror::default();
        let (shop, away) = (Arc::from("shop"), Arc::from("away"));
        mirror.open(&shop, &away, &Arc::from("shop-home"), true);
        mirror.seen_here(Kind::ConfigMap, &shop);
        mirror.seen_there(Kind::ConfigMap, &shop, &away);
        Self { mirror, gone: false, own: None }
    }

    fn here(mut self, name: &str, value: &str) -> Self {
        let map = json!({ "metadata": { "name": name, "uid": "u" }, "data": { "k": value } });
        let here = read_here::<ConfigMap>(serde_json::from_value(map).unwrap()).unwrap();
        self.mirror.put_here(Kind::ConfigMap, key(name), here);
        self
    }

    fn there(mut self, object: Value) -> Self {
        let mut map: ConfigMap = serde_json::from_value(object).unwrap();
        map.metadata.uid = Some("there".to_owned());
        map.metadata.resource_version = Some("7".to_owned());
        let name = map.metadata.name.clone().unwrap();
        self.mirror.put_there(Kind::ConfigMap, key(&name), &Arc::from("away"), read_there(map));
        self
    }

    fn plan(&self, name: &str) -> Planned {
        self.plan_kind(Kind::ConfigMap, name)
    }

    fn plan_kind(&self, kind: Kind, name: &str) -> Planned {
        let standing =
            |_: &str| Some(Standing { gone: self.gone.then(|| Arc::from("silence")), ..Standing::default() });
        let around = Around { translate: &Unchanged, provider_of: &|_| None };
        plan(
            &View { home: "home", own: self.own, mirror: &self.mirror, standing: &standing, around },
            kind,
            &key(name),
        )
    }

    fn step(&self, name: &str) -> Option<Step> {
        let mut steps = self.plan(name).steps;
        assert!(steps.len() <= 1, "{steps:?}");
        steps.pop().map(|(_, _, step)| step)
    }

    /// The copy of what is here.
    fn copy(&self, name: &str) -> Value {
        match self.step(name) {
            Some(Step::Create { object }) => object,
            other => panic!("{other:?}"),
        }
    }
}

fn key(name: &str) -> Key {
    Key::namespaced("shop", name)
}

#[test]
fn what_is_here_is_made_there_once() {
    let world = World::new().here("a", "1");
    let copy = world.copy("a");
    assert_eq!(copy["metadata"]["namespace"], "shop-home");
    assert_eq!(world.there(copy).step("a"), None);
}

#[test]
fn what_changed_here_is_replaced_there() {
    let copy = World::new().here("a", "1").copy("a");
    let world = World::new().here("a", "2").there(copy);
    let Some(Step::Replace { uid, version, object }) = world.step("a") else {
        panic!("{:?}", world.step("a"))
    };
    assert_eq!((&*uid, &*version, &object["data"]["k"]), ("there", "7", &json!("2")));
}

#[test]
fn a_change_leaves_what_others_need_to_clean_up() {
    let mut copy = World::new().here("a", "1").copy("a");
    copy["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    let world = World::new().here("a", "2").there(copy.clone());
    let Some(Step::Replace { object, .. }) = world.step("a") else { panic!("{:?}", world.step("a")) };
    assert_eq!(object["metadata"]["finalizers"], copy["metadata"]["finalizers"]);
    assert_eq!(World::new().here("a", "1").there(copy).step("a"), None);
}

#[test]
fn what_was_changed_there_is_put_right() {
    let mut copy = World::new().here("a", "1").copy("a");
    copy["data"]["k"] = json!("wrong");
    assert!(matches!(World::new().here("a", "1").there(copy).step("a"), Some(Step::Replace { .. })));
}

#[test]
fn what_cannot_be_changed_is_made_anew() {
    let mut copy = World::new().here("a", "1").copy("a");
    copy["immutable"] = json!(true);
    let world = World::new().here("a", "2").there(copy);
    assert_eq!(world.step("a"), Some(Step::Delete { uid: "there".into() }));
}

#[test]
fn what_is_gone_here_goes_there() {
    let copy = World::new().here("a", "1").copy("a");
    assert_eq!(World::new().there(copy).step("a"), Some(Step::Delete { uid: "there".into() }));
}

#[test]
fn what_is_not_ours_is_never_touched_and_that_is_told() {
    let theirs = json!({ "metadata": { "name": "a" }, "data": { "k": "theirs" } });
    assert_eq!(World::new().there(theirs.clone()).step("a"), None);
    let planned = World::new().here("a", "1").there(theirs).plan("a");
    assert!(planned.steps.is_empty());
    assert_eq!(planned.report.unwrap().reason, "NameTaken");
    let anothers =
        json!({ "metadata": { "name": "a", "labels": { "virtualkubelet.liqo.io/origin": "another" } } });
    assert_eq!(World::new().there(anothers).step("a"), None);
}

#[test]
fn nothing_is_written_to_who_does_not_answer_or_where_not_all_is_known() {
    let mut world = World::new().here("a", "1");
    world.gone = true;
    assert_eq!(world.step("a"), None);
    let mut world = World::new().here("a", "1");
    let (shop, away): (Arc<str>, Arc<str>) = ("shop".into(), "away".into());
    world.mirror.close(&shop, &away);
    world.mirror.open(&shop, &away, &"shop-home".into(), true);
    assert_eq!(world.step("a"), None, "it may be there");
}

#[test]
fn nothing_new_is_sent_to_a_namespace_that_goes() {
    let mut world = World::new().here("a", "1");
    world.mirror.open(&"shop".into(), &"away".into(), &"shop-home".into(), false);
    assert_eq!(world.step("a"), None);
}

#[test]
fn what_is_for_one_provider_alone_goes_nowhere_else() {
    let mut world = World::new().here("a", "1");
    let mut here = world.mirror.here(Kind::ConfigMap, &key("a")).unwrap().clone();
    here.only = Some(BTreeSet::from(["other".into()]));
    world.mirror.put_here(Kind::ConfigMap, key("a"), here);
    assert_eq!(world.step("a"), None);
}

#[test]
fn of_where_liqo_runs_nothing_goes_but_what_leads_to_its_services() {
    let (shop, away): (Arc<str>, Arc<str>) = ("shop".into(), "away".into());
    for kind in Kind::ALL {
        let mut world = World::new().here("a", "1");
        let here = world.mirror.here(Kind::ConfigMap, &key("a")).unwrap().clone();
        world.mirror.put_here(kind, key("a"), here);
        world.mirror.seen_here(kind, &shop);
        world.mirror.seen_there(kind, &shop, &away);
        world.own = Some("elsewhere");
        let usual = world.plan_kind(kind, "a").steps.len();
        world.own = Some("shop");
        let leads_there = matches!(kind, Kind::Service | Kind::EndpointSlice);
        assert_eq!(world.plan_kind(kind, "a").steps.len(), if leads_there { usual } else { 0 }, "{kind:?}");
    }
    // What got there before is taken back.
    let copy = World::new().here("a", "1").copy("a");
    let mut world = World::new().here("a", "1").there(copy);
    world.own = Some("shop");
    assert_eq!(world.step("a"), Some(Step::Delete { uid: "there".into() }));
}

/// Addresses are seen from providers with this in front of them.
struct Prefixed(&'static str);

impl crate::translate::Translate for Prefixed {
    fn to_home(&self, _: &str, address: &str) -> Option<String> {
        Some(address.to_owned())
    }

    fn to_provider(&self, _: &str, address: &str) -> Option<String> {
        Some(format!("{}{address}", self.0))
    }
}

#[test]
fn endpoints_are_written_again_when_their_addresses_are_seen_otherwise_or_their_nodes_turn_out_to_be_there() {
    let (shop, away): (Arc<str>, Arc<str>) = ("shop".into(), "away".into());
    let mut world = World::new();
    world.mirror.seen_here(Kind::EndpointSlice, &shop);
    world.mirror.seen_there(Kind::EndpointSlice, &shop, &away);
    let endpoint = |node: &str, address: &str| json!({ "nodeName": node, "addresses": [address] });
    let slice = json!({ "metadata": { "name": "web-1", "uid": "u" }, "addressType": "IPv4", "ports": [],
        "endpoints": [endpoint("node-1", "10.0.0.1"), endpoint("liqo-away", "10.0.0.2")] });
    let here = read_here::<EndpointSlice>(serde_json::from_value(slice).unwrap()).unwrap();
    world.mirror.put_here(Kind::EndpointSlice, key("web-1"), here);
    let step = |world: &World, prefix: &'static str, nodes: bool| {
        let standing = |_: &str| Some(Standing::default());
        let provider_of = |node: &str| (nodes && node == "liqo-away").then(|| "away".to_owned());
        let around = Around { translate: &Prefixed(prefix), provider_of: &provider_of };
        let view = View { home: "home", own: None, mirror: &world.mirror, standing: &standing, around };
        plan(&view, Kind::EndpointSlice, &key("web-1")).steps.pop().map(|(_, _, step)| step)
    };
    let Some(Step::Create { object }) = step(&world, "1", false) else { panic!("it is not made") };
    let mut made: EndpointSlice = serde_json::from_value(object).unwrap();
    (made.metadata.uid, made.metadata.resource_version) = (Some("there".into()), Some("7".into()));
    world.mirror.put_there(Kind::EndpointSlice, key("web-1"), &away, read_there(made));
    assert_eq!(step(&world, "1", false), None, "nothing has changed");
    let addresses = |step: Option<Step>| {
        let Some(Step::Replace { object, .. }) = step else { panic!("{step:?}") };
        let slice: EndpointSlice = serde_json::from_value(object).unwrap();
        slice.endpoints.into_iter().flat_map(|it| it.addresses).collect::<Vec<_>>()
    };
    assert_eq!(addresses(step(&world, "2", false)), ["210.0.0.1", "210.0.0.2"]);
    assert_eq!(addresses(step(&world, "1", true)), ["110.0.0.1"]);
}
