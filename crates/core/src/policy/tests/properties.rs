//! What must hold in every world.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{World, peer, sale_of};
use crate::policy::Verdict;
use crate::quantity::Quantity;

fn any_share() -> impl Strategy<Value = Value> {
    let rounding = prop::sample::select(vec!["Down", "Up", "Nearest"]);
    let maybe = |range: std::ops::Range<i64>| prop::option::of(range);
    (0_i64..=100, 1_i64..4000, rounding, maybe(0..30), maybe(0..10), maybe(0..10), maybe(0..101)).prop_map(
        |(percentage, overcommit, rounding, cap, reserve, autoscaled, per_peer)| {
            json!({
                "percentage": percentage, "overcommit": format!("{overcommit}m"), "rounding": rounding, "cap": cap,
                "reserve": reserve, "autoscaled": autoscaled, "perPeerPercentage": per_peer,
            })
        },
    )
}

fn any_world() -> impl Strategy<Value = World> {
    let node = (
        0_i64..20_000,
        0_i64..64,
        0_i64..9,
        prop::collection::vec((0_usize..4, 0_i64..9000, 0_i64..3), 0..5),
    );
    let policy = prop::option::of((any_share(), any_share(), any::<bool>()));
    let sold = prop::collection::vec((1_usize..4, 0_i64..12_000, 0_i64..4, any::<bool>()), 0..4);
    (prop::collection::vec(node, 0..5), policy, sold, 0_i64..=100).prop_map(
        |(nodes, policy, sold, percentage)| {
            let owners = ["local", "x", "y", "z"];
            let mut world = World::new().percentage(percentage);
            for (cpu, memory, gpu, pods) in nodes {
                // The last ones are in no pool, or in the second of two that select them.
                let labels = match world.nodes.len() {
                    0 | 3 => vec![("pool", "a")],
                    1 => vec![("pool", "b")],
                    2 => vec![("pool", "a"), ("also", "b")],
                    _ => vec![],
                };
                let amounts = format!("cpu={cpu}m, memory={memory}Gi, nvidia.com/gpu={gpu}, pods=20");
                world = world.labelled_node(&amounts, &labels);
                for (owner, cpu, gpu) in pods {
                    world = world.pod(owners[owner], &format!("cpu={cpu}m, nvidia.com/gpu={gpu}"));
                }
            }
            if let Some((mut cpu, mut gpu, pooled)) = policy {
                let mut pools = json!([]);
                if pooled {
                    for share in [&mut cpu, &mut gpu] {
                        share.as_object_mut().unwrap().remove("autoscaled");
                    }
                    pools = json!([
                        {"name": "a", "nodeSelector": {"matchLabels": {"pool": "a"}}},
                        {"name": "b", "nodeSelector": {"matchExpressions": [
                            {"key": "pool", "operator": "In", "values": ["a", "b"]},
                        ]}},
                    ]);
                }
                world =
                    world.policy("p", json!({"shares": {"cpu": cpu, "nvidia.com/gpu": gpu}, "pools": pools}));
            }
            for (owner, cpu, gpu, in_pot) in sold {
                let pot = in_pot.then_some("p");
                world = world.sold(owners[owner], pot, &format!("cpu={cpu}m, nvidia.com/gpu={gpu}"));
            }
            world
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_offered_can_be_sold(world in any_world(), asker in prop::sample::select(vec!["x", "y", "new"])) {
        let evaluation = world.ask(asker);
        prop_assert_eq!(&evaluation, &world.ask(asker), "equal worlds give equal answers");
        let Verdict::Offer(offer) = evaluation.verdict else { return Ok(()) };
        for (name, amount) in offer.resources.iter() {
            prop_assert!(amount.is_positive());
            prop_assert_eq!(amount.nanos().unsigned_abs() % name.portion(), 0, "{} of {}", amount, name);
        }
        if !offer.pools.is_empty() {
            prop_assert_eq!(crate::pools::sum(&offer.pools), offer.resources.clone(), "pools add up");
        }
        let ledger = world.ledger.end(&format!("of-{asker}"));
        let mut new = sale_of(asker, &offer);
        new.sequence = 1;
        let sold = ledger.admit(&offer.limits, new);
        prop_assert!(sold.is_ok(), "{:?} for {} with {:?}", sold, offer.resources, offer.limits);
    }

    #[test]
    fn any_order_of_askers_sells_at_most_the_pot(
        world in any_world(), order in prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "d"]), 1..8),
    ) {
        let mut world = world;
        world.ledger = crate::ledger::Ledger::default();
        for (step, asker) in order.into_iter().enumerate() {
            let Verdict::Offer(offer) = world.ask(asker).verdict else { continue };
            let mut new = sale_of(asker, &offer);
            new.sequence = step as u64;
            world.ledger = world.ledger.admit(&offer.limits, new).unwrap().confirm(&format!("of-{asker}"), step as u64);
            let sold = world.ledger.sold();
            prop_assert!(sold.fits_in(&offer.limits.pot), "sold {} of {}", sold, offer.limits.pot);
            for (pool, limit) in &offer.limits.pools {
                let mut sold = crate::Resources::new();
                world.ledger.sales().filter_map(|sale| sale.pools.get(pool)).for_each(|part| sold.accumulate(part));
                prop_assert!(sold.fits_in(limit), "sold {} of {} in pool {}", sold, limit, pool);
            }
        }
    }

    #[test]
    fn a_resource_stands_for_itself(world in any_world(), gpus in 0_i64..50) {
        let cpu = |world: &World| match world.ask_as(&peer("new")).verdict {
            Verdict::Offer(offer) => offer.resources.amount("cpu"),
            _ => Quantity::ZERO,
        };
        let before = cpu(&world);
        let overdrawn = if world.nodes.is_empty() { world } else { world.pod("local", &format!("pods=1, nvidia.com/gpu={gpus}")) };
        prop_assert_eq!(before, cpu(&overdrawn));
    }
}
