//! Pools in contracts: they come, change and go with the policy.

use super::*;

/// A pool of the nodes with this number.
fn pool(name: &str, number: &str) -> Value {
    json!({ "name": name, "nodeSelector": { "matchLabels": { "number": number } } })
}

/// A policy that shares all of these pools.
#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn share(pools: Value) -> Value {
    json!({ "share": { "percentage": 100 }, "pools": pools })
}

/// What the contracts in force at `NORTH` say of pools, a line for each.
fn agreed_pools(world: &World) -> Vec<String> {
    let terms = world.agreed(NORTH);
    let pools = terms.iter().flat_map(|terms| {
        terms.pools.iter().map(|(name, pool)| format!("{} {name}: {}", terms.consumer.id, pool.resources))
    });
    pools.collect()
}

#[test]
fn pools_are_under_contract_and_follow_the_policy() {
    let mut world = World::new(&["north", "south", "west"]);
    world.nodes(NORTH, &["8", "4"]);
    world.meet(SOUTH, NORTH);
    world.meet(WEST, NORTH);
    world.policy(NORTH, "pools", &share(json!([pool("large", "0"), pool("small", "1")])));
    Act::Borrow(SOUTH, NORTH, "6").perform(&mut world);
    world.rest();
    let [large, small] = ["large: cpu=4, memory=64Gi, pods=110", "small: cpu=2, memory=64Gi, pods=110"];
    assert_eq!(agreed_pools(&world), [format!("south-id {large}"), format!("south-id {small}")]);

    // Nothing of a pool is sold twice: there is no memory left, but there are cores.
    Act::Borrow(WEST, NORTH, "6").perform(&mut world);
    world.rest();
    let west: Vec<String> =
        agreed_pools(&world).into_iter().filter(|line| line.starts_with("west")).collect();
    assert_eq!(west, ["west-id large: cpu=4", "west-id small: cpu=2"], "{}", world.told());

    // A pool gets another name, and then there are none: the contracts follow, each change at its pace.
    for (pools, expected) in [(json!([pool("large", "0"), pool("tiny", "1")]), 4), (json!([]), 0)] {
        world.policy(NORTH, "pools", &share(pools));
        for _ in 0..3 {
            world.rest();
            world.wait(SignedDuration::from_secs(90));
        }
        let agreed = agreed_pools(&world);
        assert_eq!(agreed.len(), expected, "{agreed:?} {}", world.told());
        assert!(agreed.iter().all(|line| !line.contains("small")), "{agreed:?} {}", world.told());
    }
}

/// Lets a minute pass: more than what is written at its pace needs, and less than after which missing capacity is believed.
fn a_minute_passes(world: &mut World) {
    for _ in 0..6 {
        world.rest();
        world.wait(SignedDuration::from_secs(10));
    }
}

#[test]
fn a_pool_that_the_policy_removes_leaves_the_contracts() {
    let mut world = World::new(&["north", "south", "west"]);
    world.nodes(NORTH, &["8", "4"]);
    world.meet(SOUTH, NORTH);
    world.meet(WEST, NORTH);
    world.policy(NORTH, "pools", &share(json!([pool("large", "0"), pool("small", "1")])));
    Act::Borrow(SOUTH, NORTH, "9").perform(&mut world);
    world.rest();
    Act::Borrow(WEST, NORTH, "3").perform(&mut world);
    world.rest();
    assert_eq!(agreed_pools(&world).len(), 4, "{:?}", agreed_pools(&world));

    world.policy(NORTH, "pools", &share(json!([pool("large", "0")])));
    a_minute_passes(&mut world);
    let agreed = agreed_pools(&world);
    assert_eq!(agreed.len(), 2, "{agreed:?} {}", world.told());
    assert!(agreed.iter().all(|line| line.contains(" large: ")), "{agreed:?} {}", world.told());
    assert_eq!(cpu(&world.really_sold(NORTH)), 8000, "{agreed:?}");
}

#[test]
fn a_contract_over_nothing_but_a_pool_that_the_policy_removes_ends() {
    let mut world = World::new(&["north", "south"]);
    world.nodes(NORTH, &["8", "4"]);
    world.meet(SOUTH, NORTH);
    world.policy(NORTH, "pools", &share(json!([pool("small", "1")])));
    Act::Borrow(SOUTH, NORTH, "4").perform(&mut world);
    world.rest();
    assert_eq!(agreed_pools(&world), ["south-id small: cpu=4, memory=64Gi, pods=110"], "{}", world.told());

    // Of the pool that there is instead, there are no nodes yet.
    world.policy(NORTH, "pools", &share(json!([pool("coming", "7")])));
    a_minute_passes(&mut world);
    assert_eq!(world.agreed(NORTH), [], "{}", world.told());
    world.policy(NORTH, "pools", &share(json!([pool("coming", "0")])));
    a_minute_passes(&mut world);
    assert_eq!(agreed_pools(&world), ["south-id coming: cpu=4, memory=64Gi, pods=110"], "{}", world.told());
}

#[test]
fn a_pool_whose_nodes_are_away_for_a_moment_stays_under_contract() {
    let mut world = World::new(&["north", "south"]);
    world.nodes(NORTH, &["8", "4"]);
    world.meet(SOUTH, NORTH);
    world.policy(NORTH, "pools", &share(json!([pool("large", "0"), pool("small", "1")])));
    Act::Borrow(SOUTH, NORTH, "12").perform(&mut world);
    world.rest();
    let before = agreed_pools(&world);
    world.nodes(NORTH, &["8"]);
    a_minute_passes(&mut world);
    assert_eq!(agreed_pools(&world), before, "{}", world.told());
}
