use std::collections::BTreeSet;

use super::*;
use crate::mirror::{read_here, read_there};
use crate::translate::Unchanged;
use k8s_openapi::api::core::v1::ConfigMap;

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
