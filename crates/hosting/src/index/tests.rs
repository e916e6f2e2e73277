//! What changes, and what is counted.

use proptest::prelude::*;
use serde_json::json;

use super::testing::{World, sized};
use super::*;

fn world() -> World {
    let mut world = World::new().consumer("milan", &[("cpu", "2")]).map("milan", "map", &[("shop", "shop")]);
    world.build("shop");
    world
}

#[test]
fn a_status_that_concerns_nobody_here_wakes_nobody() {
    let mut world = world();
    let key = world.shadow("shop/web", &sized("1m"), &json!({}));
    world.pod(&key, "1m", "Pending", false);
    world.index.changed = Changed::default();
    world.pod(&key, "1m", "Running", false);
    assert!(world.index.changed.pods.is_empty());
    world.pod(&key, "1m", "Failed", false);
    assert_eq!(world.index.changed.pods.len(), 1);
}

#[test]
fn room_that_becomes_free_is_offered_to_those_who_wait_the_oldest_first() {
    let mut world = world();
    let peer = World::peer("milan");
    let running = world.shadow("shop/running", &sized("2"), &json!({}));
    world.pod(&running, "2", "Running", false);
    for n in 0..100 {
        let key = world.shadow(&format!("shop/w{n:03}"), &sized("1"), &json!({}));
        world.index.memory.wait(&key, &peer, Timestamp::from_second(1000 - n).unwrap());
    }
    world.index.changed = Changed::default();
    world.pod(&running, "2", "Succeeded", false);
    let woken: Vec<&Key> = world.index.changed.pods.iter().filter(|key| **key != running).collect();
    assert_eq!(woken.len(), TRIED_AGAIN);
    assert_eq!(woken.last().unwrap().name(), "w099");
    // Who is gone waits no longer.
    liqo_kit::Index::<Shadow>::delete(&mut world.index, &World::key("shop/w099"));
    assert_eq!(world.index.memory.waiters(), 99);
}

#[test]
fn pods_count_also_if_they_were_seen_before_their_namespace() {
    let mut world = World::new().consumer("milan", &[("cpu", "2")]).map("milan", "map", &[("shop", "shop")]);
    let key = world.shadow("shop/web", &sized("1"), &json!({}));
    world.pod(&key, "1", "Running", false);
    assert!(world.index.ledger.used(&World::peer("milan")).is_zero());
    world.build("shop");
    assert_eq!(world.index.ledger.used(&World::peer("milan")).amount("cpu").to_string(), "1");
}

proptest! {
    /// Whatever happens in whatever order: what is counted is what is there and what is being made.
    #[test]
    fn what_is_counted_is_what_is_there(
        deeds in proptest::collection::vec((0..5_u8, 0..4_u8, 1..4_u16), 0..60),
    ) {
        let mut world = world();
        let peer = World::peer("milan");
        let mut there: BTreeMap<u8, u16> = BTreeMap::new();
        let mut made: BTreeMap<u8, u16> = BTreeMap::new();
        for (deed, name, size) in deeds {
            let key = World::key(&format!("shop/p{name}"));
            let cpu = size.to_string();
            match deed {
                0 => {
                    world.pod(&key, &cpu, "Running", false);
                    there.insert(name, size);
                    made.remove(&name);
                }
                1 => {
                    world.pod(&key, &cpu, "Failed", false);
                    there.remove(&name);
                    made.remove(&name);
                }
                2 => {
                    liqo_kit::Index::<PodFacts>::delete(&mut world.index, &key);
                    there.remove(&name);
                }
                3 if !there.contains_key(&name) => {
                    let amount = liqo_core::Resources::parse([("cpu", cpu.as_str())]).resources;
                    world.index.ledger.reserve(&key, peer.clone(), Arc::new(amount), world.now);
                    made.insert(name, size);
                }
                4 => {
                    world.index.ledger.release(&key);
                    made.remove(&name);
                }
                _ => {}
            }
            let sum: u16 = there.values().chain(made.values()).sum();
            let counted = world.index.ledger.used(&peer).amount("cpu").to_string();
            prop_assert_eq!(counted, sum.to_string());
        }
    }
}
