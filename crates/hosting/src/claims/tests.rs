//! Who gets which namespace.

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::index::testing::World;

const AGREED: &[(&str, &str)] = &[("cpu", "4"), ("pods", "10")];

fn denial(world: &World, id: &str, map: &str, original: &str) -> Option<&'static str> {
    let denied = world.index.claims.denied.get(&World::map_key(id, map))?;
    Some(denied.get(original)?.reason)
}

fn owner<'a>(world: &'a World, name: &str) -> Option<&'a str> {
    world.index.claims.wanted.get(name).map(|claim| claim.peer.as_str())
}

#[test]
fn a_consumer_with_a_contract_gets_what_it_asks_for() {
    let world = World::new().consumer("milan", AGREED).map("milan", "map", &[("shop", "shop-milan")]);
    assert_eq!(owner(&world, "shop-milan"), Some("milan"));
}

#[test]
fn names_of_the_cluster_itself_are_nobodys() {
    let names =
        ["kube-system", "kube-x", "default", "liqo", "liqo-storage", "openshift-x", "liqo-tenant-turin"];
    for name in names {
        let world = World::new().consumer("milan", AGREED).map("milan", "map", &[("a", name)]);
        assert_eq!(denial(&world, "milan", "map", "a"), Some(PROTECTED_NAME), "{name}");
        assert!(world.index.claims.wanted.is_empty());
    }
    // An application may be called after us.
    let world = World::new().consumer("milan", AGREED).map("milan", "map", &[("a", "liqo-demo")]);
    assert_eq!(owner(&world, "liqo-demo"), Some("milan"));
}

#[test]
fn a_namespace_that_is_there_is_its_owners() {
    let world =
        World::new().consumer("milan", AGREED).namespace("payroll").map("milan", "map", &[("a", "payroll")]);
    assert_eq!(denial(&world, "milan", "map", "a"), Some(NAME_TAKEN));
}

#[test]
fn who_has_a_name_keeps_it_whoever_else_asks() {
    let mut world = World::new().consumer("turin", AGREED).map("turin", "map", &[("shop", "shop")]);
    world.build("shop");
    let world = world.consumer("asti", AGREED).map("asti", "map", &[("shop", "shop")]);
    assert_eq!(owner(&world, "shop"), Some("turin"));
    assert_eq!(denial(&world, "asti", "map", "shop"), Some(NAME_TAKEN));
    let said = &world.index.claims.denied[&World::map_key("asti", "map")]["shop"].message;
    assert!(!said.contains("turin"), "whose it is, is nobody else's business: {said}");
}

#[test]
fn two_namespaces_of_one_consumer_are_not_one_here() {
    let world = World::new().consumer("milan", AGREED).map("milan", "map", &[("a", "same"), ("b", "same")]);
    assert_eq!(owner(&world, "same"), Some("milan"));
    assert_eq!(denial(&world, "milan", "map", "b"), Some(NAME_TAKEN));
}

#[test]
fn a_map_counts_only_in_its_own_place() {
    // Turin writes a map that says that it is Milan's.
    let mut world = World::new().consumer("milan", AGREED).consumer("turin", AGREED);
    world.ask("milan", "map", &[]);
    let forged = crate::index::Map {
        resource_version: "1".into(),
        origin: "milan".into(),
        deleting: false,
        wanted: [("a".to_owned(), "stolen".to_owned())].into(),
        told: Default::default(),
    };
    liqo_kit::Index::apply(&mut world.index, &World::map_key("turin", "forged"), forged);
    world.reckon();
    assert_eq!(owner(&world, "stolen"), None);
}

#[test]
fn without_a_contract_there_is_nothing_and_what_was_there_goes_after_a_while() {
    let mut world = World::new().consumer("milan", AGREED).map("milan", "map", &[("shop", "shop-milan")]);
    world.build("shop-milan");
    world.end("milan");
    assert_eq!(denial(&world, "milan", "map", "shop"), Some(NO_CONTRACT));
    assert!(world.index.claims.spared.contains("milan"));
    assert!(crate::namespaces::plan(&world.index, "shop-milan").is_empty());
    let wake = world.index.claims.wake.unwrap();
    assert_eq!(wake.duration_since(world.now), world.settings.grace);
    world.now = wake.checked_add(SignedDuration::from_millis(1)).unwrap();
    world.reckon();
    let steps = crate::namespaces::plan(&world.index, "shop-milan");
    assert_eq!(steps[0].what, "delete the namespace");
    // Signed again in time, nothing happens; and the next time it has as long again.
    world.contract("milan", AGREED, liqo_core::contract::Enforcement::Hard);
    assert!(world.index.memory.lapsed.is_empty());
    assert!(crate::namespaces::plan(&world.index, "shop-milan").is_empty());
}

#[test]
fn without_its_place_a_consumer_is_not_spared() {
    let mut world = World::new().consumer("milan", AGREED).map("milan", "map", &[("shop", "shop-milan")]);
    world.build("shop-milan");
    let place = Key::cluster("liqo-tenant-milan");
    liqo_kit::Index::<crate::index::Tenant>::delete(&mut world.index, &place);
    world.reckon();
    assert!(world.index.claims.spared.is_empty());
    assert_eq!(crate::namespaces::plan(&world.index, "shop-milan")[0].what, "delete the namespace");
}

proptest! {
    /// Whatever they ask for: nobody gets what is protected, taken or another's, nor more than it may.
    #[test]
    fn no_order_of_asking_gives_what_is_not_to_be_had(
        asked in proptest::collection::vec((0..3_usize, "[ab]", 0..6_usize, 0..8_usize), 0..40),
    ) {
        let names = ["kube-x", "default", "payroll", "one", "two", "three", "four", "five"];
        let peers = ["asti", "bari", "como"];
        let mut world = World::new().namespace("payroll");
        world.settings.namespaces = 3;
        for peer in peers {
            world = world.consumer(peer, AGREED);
        }
        let mut maps: BTreeMap<(usize, String), Vec<(String, &str)>> = BTreeMap::new();
        for (peer, map, local, name) in asked {
            maps.entry((peer, map)).or_default().push((format!("n{local}"), names[name]));
        }
        for ((peer, map), wanted) in &maps {
            let wanted: Vec<_> = wanted.iter().map(|(local, name)| (local.as_str(), *name)).collect();
            world.ask(peers[*peer], map, &wanted);
        }
        let claims = &world.index.claims;
        for name in ["kube-x", "default", "payroll"] {
            prop_assert!(!claims.wanted.contains_key(name));
        }
        for peer in peers {
            let count = claims.wanted.values().filter(|claim| claim.peer.as_str() == peer).count();
            prop_assert!(count <= 3);
        }
        // Everything that was asked for is given or denied.
        for ((peer, map), wanted) in &maps {
            let key = World::map_key(peers[*peer], map);
            for local in wanted.iter().map(|(local, _)| local).collect::<BTreeSet<_>>() {
                let given = claims.wanted.values().any(|it| it.map == key && it.original == *local);
                let denied = claims.denied.get(&key).is_some_and(|it| it.contains_key(local));
                prop_assert!(given != denied, "{key} {local}");
            }
        }
    }
}

#[test]
fn a_namespace_for_another_of_the_consumers_own_is_emptied_first() {
    let mut world = World::new().consumer("milan", AGREED).map("milan", "map", &[("a", "x")]);
    world.build("x");
    world.ask("milan", "map", &[("b", "x")]);
    assert_eq!(world.index.claims.wanted["x"].original, "b");
    assert_eq!(crate::namespaces::plan(&world.index, "x")[0].what, "delete the namespace");
    world.put_namespace(&json!({ "metadata": { "name": "y" } }));
}
