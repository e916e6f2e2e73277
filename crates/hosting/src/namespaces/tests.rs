//! What is missing of namespaces, and what maps say.

use liqo_kit::Index as _;
use serde_json::json;

use super::*;
use crate::index::Quota;
use crate::index::testing::World;

const AGREED: &[(&str, &str)] = &[("cpu", "4"), ("memory", "8Gi"), ("pods", "10")];

fn world() -> World {
    World::new().consumer("milan", AGREED).map("milan", "map", &[("shop", "shop-milan")])
}

fn missing(world: &World) -> Vec<&'static str> {
    plan(&world.index, "shop-milan").iter().map(|step| step.what).collect()
}

fn said(world: &World) -> BTreeMap<String, RemoteNamespace> {
    let key = World::map_key("milan", "map");
    mapping(&world.index, &key, world.index.maps.get(&key).unwrap(), &World::peer("milan"))
}

#[test]
fn a_namespace_is_accepted_once_all_is_in_it() {
    let mut world = world();
    assert_eq!(missing(&world), ["create the namespace"]);
    assert!(said(&world).is_empty());
    world.build("shop-milan");
    assert!(missing(&world).is_empty());
    assert_eq!(said(&world)["shop"].phase, MappingPhase::Accepted);
    let key = Key::namespaced("shop-milan", "liqo-tenant");
    liqo_kit::Index::<crate::index::Binding>::delete(&mut world.index, &key);
    assert_eq!(missing(&world), ["let the consumer in"]);
    assert!(said(&world).is_empty());
}

#[test]
fn a_namespace_is_given_when_what_may_be_in_it_is_counted_and_stays_given() {
    let mut world = world();
    world.build("shop-milan");
    let key = Key::namespaced("shop-milan", "liqo-objects");
    let quota = world.index.quotas.get(&key).unwrap().clone();
    world.index.apply(&key, Quota { counted: false, ..quota.clone() });
    assert!(missing(&world).is_empty());
    assert!(said(&world).is_empty(), "whatever the consumer would make in it is refused");
    world.index.apply(&key, quota.clone());
    let map = World::map_key("milan", "map");
    let told = Map { told: said(&world), ..world.index.maps.get(&map).unwrap().clone() };
    assert_eq!(told.told["shop"].phase, MappingPhase::Accepted);
    world.index.apply(&map, told);
    world.index.apply(&key, Quota { counted: false, ..quota });
    assert_eq!(said(&world)["shop"].phase, MappingPhase::Accepted);
}

#[test]
fn objects_are_limited_whatever_the_contract_and_whoever_changed_that() {
    let mut world = world();
    world.build("shop-milan");
    world.contract("milan", AGREED, Enforcement::Soft);
    assert_eq!(missing(&world), ["delete the quota"]);
    let key = Key::namespaced("shop-milan", "liqo-objects");
    let mut quota = world.index.quotas.get(&key).unwrap().clone();
    quota.hard.insert("count/secrets".to_owned(), "1000000".to_owned());
    world.index.apply(&key, quota);
    assert_eq!(missing(&world), ["delete the quota", "change the limits of objects"]);
    liqo_kit::Index::<Quota>::delete(&mut world.index, &key);
    assert_eq!(missing(&world), ["delete the quota", "limit the objects"]);
}

#[test]
fn amounts_in_other_words_are_the_same() {
    let mut world = world();
    world.build("shop-milan");
    let hard = [("requests.cpu", "4000m"), ("requests.memory", "8192Mi"), ("pods", "10")];
    let hard = hard.map(|(name, amount)| (name.to_owned(), amount.to_owned())).into();
    let key = Key::namespaced("shop-milan", "liqo-contract");
    world.index.apply(&key, Quota { uid: "q".into(), resource_version: "2".into(), hard, counted: true });
    assert!(missing(&world).is_empty());
    world.contract("milan", &[("cpu", "2")], Enforcement::Hard);
    assert_eq!(missing(&world), ["change the quota"]);
    world.contract("milan", &[("cpu", "2")], Enforcement::Soft);
    assert_eq!(missing(&world), ["delete the quota"]);
}

#[test]
fn the_custom_kinds_of_the_policy_are_noted_and_stay_while_nothing_is_offered() {
    let mut world = world();
    world.build("shop-milan");
    world.policy(&json!({ "workloads": { "customKinds": ["widgets.example.com", "gadgets.example.com"] } }));
    world.offer("milan");
    let steps = plan(&world.index, "shop-milan");
    assert_eq!(steps.iter().map(|step| step.what).collect::<Vec<_>>(), ["note the custom kinds"]);
    let noted = "gadgets.example.com widgets.example.com";
    assert!(format!("{:?}", steps[0].write).contains(noted), "{:?}", steps[0].write);

    world.build("shop-milan");
    assert!(missing(&world).is_empty());
    // Without an offer nobody knows which policy counts.
    world.withdraw("milan");
    assert!(missing(&world).is_empty());
    world.offer("milan");
    world.policy(&json!({}));
    assert_eq!(missing(&world), ["note the custom kinds"]);
}

#[test]
fn what_could_not_be_made_is_told() {
    let mut world = world();
    let target = Target::of::<Namespace>(Key::cluster("shop-milan"));
    world.index.memory.troubles.insert(target, "the API server is full".to_owned());
    let told = &said(&world)["shop"];
    assert_eq!((told.phase, told.reason.as_deref()), (MappingPhase::CreationLoopBackOff, Some("Failed")));
    assert_eq!(told.message.as_deref(), Some("the API server is full"));
}

#[test]
fn a_namespace_that_goes_is_told_until_it_is_gone() {
    let mut world = world();
    world.build("shop-milan");
    world.ask("milan", "map", &[]);
    assert_eq!(missing(&world), ["delete the namespace"]);
    assert_eq!(said(&world)["shop"].phase, MappingPhase::Terminating);
    let object = json!({ "metadata": {
        "name": "shop-milan", "uid": "uid-shop-milan", "deletionTimestamp": "2026-01-02T03:04:05Z",
        "labels": { "liqo.io/remote-cluster-id": "milan" },
        "annotations": { "liqo.io/managed-by-namespace-map": "liqo-tenant-milan/map",
                         "liqo.io/original-name": "shop" } } });
    world.put_namespace(&object);
    assert!(missing(&world).is_empty());
    assert_eq!(said(&world)["shop"].phase, MappingPhase::Terminating);
    // Asked for again meanwhile, it has to go first.
    world.ask("milan", "map", &[("shop", "shop-milan")]);
    assert!(missing(&world).is_empty());
    assert_eq!(said(&world)["shop"].phase, MappingPhase::Terminating);
}

#[test]
fn who_is_put_out_loses_its_rights_at_once_and_its_namespaces_a_little_later() {
    let mut world = world();
    world.build("shop-milan");
    world.put_out("milan", true);
    // The contract is not ended yet.
    assert_eq!(missing(&world), ["shut the consumer out"]);
    assert_eq!(said(&world)["shop"].reason.as_deref(), Some("NoContract"));
    let key = Key::namespaced("shop-milan", "liqo-tenant");
    liqo_kit::Index::<crate::index::Binding>::delete(&mut world.index, &key);
    assert!(missing(&world).is_empty());
    world.now = world.now.checked_add(world.settings.grace).unwrap();
    world.reckon();
    assert_eq!(missing(&world), ["delete the namespace"]);
    world.put_out("milan", false);
    assert_eq!(missing(&world), ["let the consumer in"]);
}

#[test]
fn a_namespace_of_somebody_is_never_touched() {
    let mut world = World::new().namespace("shop-milan");
    assert!(missing(&world).is_empty());
    // A label alone does not make it a consumer's.
    let labelled =
        json!({ "metadata": { "name": "shop-milan", "labels": { "liqo.io/remote-cluster-id": "gone" } } });
    world.put_namespace(&labelled);
    assert!(missing(&world).is_empty());
}

#[test]
fn a_map_is_answered_only_when_something_is_new() {
    let mut world = world();
    world.build("shop-milan");
    let key = World::map_key("milan", "map");
    assert!(answer(&world.index, &key).is_some());
    let mut map = world.index.maps.get(&key).unwrap().clone();
    map.told = said(&world);
    world.index.apply(&key, map);
    assert!(answer(&world.index, &key).is_none());
}
