//! How much.

use serde_json::{Value, json};

use super::{World, offer, peer, sale};
use crate::policy::{Cause, Verdict};
use crate::testing::list;

#[test]
fn a_second_consumer_is_offered_only_what_the_first_left() {
    let world = World::with_node("cpu=8").percentage(50).sold("first", None, "cpu=3");
    assert_eq!(world.offered("second"), list("cpu=1"));
    assert_eq!(world.offered("first"), list("cpu=4"), "its own contract is part of what it is offered");
    let full = world.sold("third", None, "cpu=1");
    let refusal = full.refusal("second");
    assert_eq!(refusal.cause, Cause::NothingLeft);
    assert_eq!(refusal.message, "nothing is left to share: no free capacity, or all of it is sold");
}

#[test]
fn ninety_percent_of_one_gpu_is_one_or_none_by_the_rounding() {
    let world = |rounding: &str| {
        let share = json!({"share": {"percentage": 90, "rounding": rounding}});
        World::with_node("cpu=1, nvidia.com/gpu=1").policy("p", share).offered("x")
    };
    assert_eq!(world("Down"), list("cpu=900m"));
    assert_eq!(world("Up"), list("cpu=900m, nvidia.com/gpu=1"));
    assert_eq!(world("Nearest"), list("cpu=900m, nvidia.com/gpu=1"));
    assert_eq!(World::with_node("cpu=1, nvidia.com/gpu=1").percentage(90).offered("x"), list("cpu=900m"));
}

#[test]
fn each_resource_has_its_own_portions() {
    let world = World::with_node(
        "cpu=3333m, memory=16393244Ki, ephemeral-storage=1000000, hugepages-2Mi=10Mi, pods=110, nvidia.com/gpu=7",
    )
    .percentage(50);
    // 16393244Ki / 2 is 8004.51… Mi; less than a MiB of storage is none; half of five pages are two.
    assert_eq!(
        world.offer("x").resources,
        list("cpu=1666m, memory=8004Mi, hugepages-2Mi=4Mi, pods=55, nvidia.com/gpu=3")
    );
}

#[test]
fn shares_are_made_up_of_all_their_parts() {
    let cpu = |share: Value| {
        let spec = json!({"share": {"percentage": 50}, "shares": {"cpu": share}});
        World::with_node("cpu=10, memory=10Gi")
            .pod("local", "cpu=2")
            .policy("p", spec)
            .offered("x")
            .amount("cpu")
            .to_string()
    };
    for (share, expected) in [
        (json!({}), "4"),
        (json!({"percentage": 90}), "7200m"),
        (json!({"percentage": 0}), "0"),
        (json!({"percentage": 100}), "8"),
        (json!({"cap": "3"}), "3"),
        (json!({"cap": 100}), "8"),
        (json!({"cap": "3", "percentage": 10}), "800m"),
        (json!({"reserve": "2"}), "3"),
        (json!({"reserve": "20"}), "0"),
        (json!({"overcommit": "1.5"}), "6"),
        (json!({"overcommit": 3, "percentage": 100}), "24"),
        (json!({"overcommit": "1.5", "reserve": "2", "cap": "4"}), "4"),
        (json!({"autoscaled": "10"}), "9"),
        (json!({"perPeerPercentage": 25}), "1"),
        (json!({"perPeerCap": "500m"}), "500m"),
        (json!({"percentage": 33}), "2640m"),
    ] {
        assert_eq!(cpu(share.clone()), expected, "{share}");
    }
}

#[test]
fn a_gpu_that_an_autoscaler_brings_can_be_offered_before_it_is_there() {
    let spec = json!({"shares": {"nvidia.com/gpu": {"autoscaled": 8, "percentage": 50}}});
    let offer = World::with_node("cpu=4").policy("burst", spec).offer("x");
    assert_eq!(offer.resources.amount("nvidia.com/gpu"), list("a=4").amount("a"));
    assert_eq!(offer.largest_pod.of_each, list("cpu=4"), "no node has one now");
}

#[test]
fn only_the_resources_and_nodes_of_the_policy_are_shared() {
    let world = World::new()
        .labelled_node("cpu=4, memory=8Gi, nvidia.com/gpu=2, amd.com/gpu=2, pods=10", &[("lend", "yes")])
        .node("cpu=32, memory=64Gi, pods=10");
    let spec =
        json!({"resources": ["cpu", "nvidia.com/*"], "nodeSelector": {"matchLabels": {"lend": "yes"}}});
    let offer = world.policy("p", spec).offer("x");
    assert_eq!(offer.resources, list("cpu=4, nvidia.com/gpu=2, pods=10"), "nothing runs without pods");
}

#[test]
fn a_contract_under_another_policy_takes_only_from_the_whole() {
    let world = World::with_node("cpu=10")
        .policy("gold", json!({"peers": {"clusterIDs": ["a", "b"]}, "share": {"percentage": 60}}))
        .policy("any", json!({"share": {"percentage": 60}}))
        .sold("a", Some("gold"), "cpu=5");
    assert_eq!(world.offered("b"), list("cpu=1"), "the pot of gold has 6");
    assert_eq!(world.offered("x"), list("cpu=5"), "the pot of any has 6, but the cluster only 5");
    let gone = World { policies: world.policies[1..].to_vec(), ..world };
    assert_eq!(gone.offered("x"), list("cpu=1"), "what a deleted policy sold counts against every pot");
}

#[test]
fn what_somebody_uses_beyond_the_contract_is_gone_too() {
    let world = World::with_node("cpu=10").pod("greedy", "cpu=5").sold("greedy", None, "cpu=3");
    assert_eq!(world.offered("x"), list("cpu=5"));
    let modest = World::with_node("cpu=10").pod("modest", "cpu=1").sold("modest", None, "cpu=3");
    assert_eq!(modest.offered("x"), list("cpu=7"), "what is sold is counted once, used or not");
    let uninvited = World::with_node("cpu=10").pod("uninvited", "cpu=2").percentage(50);
    assert_eq!(uninvited.offered("x"), list("cpu=4"), "pods without a contract are just in the way");
}

#[test]
fn shrinking_capacity_never_makes_a_negative_offer() {
    let world = World::with_node("cpu=2, memory=8Gi").sold("a", None, "cpu=9, memory=1Gi");
    assert_eq!(world.offered("x"), list("memory=7Gi"));
    assert!(world.offer("x").limits.pot.iter().all(|(_, amount)| !amount.is_negative()));
    assert_eq!(World::new().refusal("x").cause, Cause::NothingLeft);
}

#[test]
fn nobody_gets_more_than_it_asks_for() {
    let mut modest = peer("x");
    modest.wants = list("cpu=2, memory=1500Ki, pods=-4");
    let world = World::with_node("cpu=8, memory=8Gi, nvidia.com/gpu=1, pods=10");
    assert_eq!(offer(world.ask_as(&modest)).resources, list("cpu=2, memory=1Mi, nvidia.com/gpu=1"));
}

#[test]
fn an_offer_can_be_sold_at_once_and_then_is_gone() {
    let world = World::with_node("cpu=7, memory=9Gi, pods=11").percentage(35);
    let offer = world.offer("x");
    let ledger = world.ledger.admit(&offer.limits, sale("x", None, offer.resources.clone())).unwrap();
    assert!(ledger.admit(&offer.limits, sale("y", None, list("cpu=1m"))).is_err());
    let sold = World { ledger, ..world };
    assert_eq!(sold.refusal("y").cause, Cause::NothingLeft);
    assert_eq!(sold.offer("x").resources, offer.resources, "signing changes nothing for the one who signed");
}

#[test]
fn prices_and_terms_come_with_the_offer() {
    let world = World::with_node("cpu=4, memory=8Gi").policy(
        "paid",
        json!({
            "prices": {"currency": "EUR", "period": "Hourly", "perUnit": {"cpu": "0.02", "memory": 0.004, "nvidia.com/gpu": "1"}},
            "contract": {"offerValidity": "10m", "duration": "7d", "renewal": "None", "serviceLevel": {"availability": "99.9"}},
            "enforcement": "Soft",
            "storageClasses": ["fast-*"], "defaultStorageClass": "fast-ssd", "services": ["shop/*"], "images": ["*"],
        }),
    );
    let offer = world.offer("x");
    let prices = offer.prices.unwrap();
    assert_eq!(prices.iter().len(), 2, "no price for what is not offered");
    assert_eq!(prices.total(&offer.resources).unwrap().to_string(), "0.112 per hour");
    assert_eq!(
        (offer.conditions.offer_validity.seconds(), offer.conditions.duration.seconds()),
        (600, 604_800)
    );
    assert_eq!(offer.conditions.service_level.iter().next(), Some(("availability", "99.9")));
    assert!(
        offer.extras.storage_classes.matches("fast-ssd") && !offer.extras.storage_classes.matches("slow")
    );
    assert!(offer.extras.services.matches("shop/front") && offer.extras.images.matches("nginx"));
}

#[test]
fn the_explanation_adds_up_line_by_line() {
    let world = World::with_node("cpu=10, pods=10")
        .pod("local", "cpu=1")
        .pod("x", "cpu=2")
        .node("cpu=2")
        .pod("local", "cpu=3")
        .sold("y", Some("half"), "cpu=1")
        .policy(
            "half",
            json!({
                "resources": ["cpu"],
                "shares": {"cpu": {"percentage": 50, "overcommit": "1.5", "reserve": "333m", "cap": 6}},
            }),
        );
    let evaluation = world.ask("x");
    let lines: Vec<String> = evaluation.lines.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "policy half applies: it is for any cluster",
            "2 nodes count",
            "cpu: allocatable on these nodes: 12",
            "cpu: requested by local pods: -4",
            "cpu: requested in excess on overdrawn nodes, which takes nothing from the others: 1",
            "cpu: kept back: -333m",
            "cpu: 50 % of 8667m, sold 1.5 times, rounded down: 6500m",
            "cpu: at most, for all clusters together: 6",
            "cpu: sold to other clusters: -1",
            "cpu: offered: 5",
            "pods: allocatable on these nodes: 10",
            "pods: requested by local pods: -2",
            "pods: requested in excess on overdrawn nodes, which takes nothing from the others: 1",
            "pods: 100 % of 9: 9",
            "pods: offered: 9",
            "largest single pod that fits now: cpu=5",
            "free of charge",
        ]
    );
    assert!(matches!(evaluation.verdict, Verdict::Offer(_)));
}

#[test]
fn a_refusal_is_explained_too() {
    let world = World::with_node("cpu=1").sold("y", None, "cpu=1");
    let lines: Vec<String> = world.ask("x").lines.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines.last().unwrap(),
        "refused: nothing is left to share: no free capacity, or all of it is sold"
    );
    assert!(lines.contains(&"cpu: sold to other clusters: -1".to_owned()), "{lines:#?}");
}

#[test]
fn what_was_promised_and_is_no_longer_there_is_found() {
    let short = |world: &World| -> Vec<(String, String)> {
        crate::policy::shortages(&world.policies, &world.capacity(), &world.ledger)
            .into_iter()
            .map(|shortage| (shortage.peer.to_string(), shortage.missing.to_string()))
            .collect()
    };
    let entry = |peer: &str, missing: &str| (peer.to_owned(), missing.to_owned());
    let world = World::with_node("cpu=8, memory=8Gi")
        .pod("a", "cpu=3")
        .sold("a", None, "cpu=4")
        .sold("b", None, "cpu=4");
    assert_eq!(short(&world), []);
    // A local pod takes what was promised; the later contract bears it.
    assert_eq!(short(&world.clone().pod("local", "cpu=1, memory=99Gi")), [entry("b", "cpu=1")]);
    assert_eq!(
        short(&World { nodes: Vec::new(), ..world.clone() }),
        [entry("a", "cpu=4"), entry("b", "cpu=4")]
    );

    // On a cordoned node the pods of a still run; nobody else can come.
    let mut cordoned = world.clone();
    cordoned.nodes[0].0.schedulable = false;
    assert_eq!(short(&cordoned), [entry("a", "cpu=1"), entry("b", "cpu=4")]);

    // Two pots on the same nodes: each is backed, both are not.
    let sharing = |world: World| {
        world
            .policy("p", json!({"share": {"percentage": 50}}))
            .policy("q", json!({"share": {"percentage": 50}}))
    };
    let two = sharing(World::with_node("cpu=6")).sold("a", Some("p"), "cpu=4").sold("b", Some("q"), "cpu=4");
    assert_eq!(short(&two), [entry("b", "cpu=2")]);

    // Overcommit and autoscaling are part of the promise, a lowered percentage is no breach.
    let generous = World::with_node("cpu=4").sold("a", Some("p"), "cpu=8");
    let with = |share: Value| {
        generous.clone().policy("p", json!({"share": {"percentage": 1}, "shares": {"cpu": share}}))
    };
    assert_eq!(short(&with(json!({"overcommit": 2}))), []);
    assert_eq!(short(&with(json!({"autoscaled": 4}))), []);
    assert_eq!(short(&with(json!({"overcommit": "1.5"}))), [entry("a", "cpu=2")]);
    assert_eq!(short(&with(json!({"overcommit": "0.5"}))), [entry("a", "cpu=4")]);
}

#[test]
fn a_contract_lasts_as_long_as_the_policy_says_and_no_longer_than_the_offer() {
    let world = World::with_node("cpu=4")
        .policy("p", json!({"contract": {"duration": "7d"}, "notAfter": "2026-07-05T00:00:00Z"}));
    let offer = world.offer("x");
    let validity = |now: &str| offer.validity(crate::testing::time(now)).1.to_string();
    assert_eq!(validity("2026-06-01T12:00:00.9Z"), "2026-06-08T12:00:00Z");
    assert_eq!(validity("2026-07-01T12:00:00Z"), "2026-07-05T00:00:00Z");
    assert_eq!(validity("2026-07-06T12:00:00Z"), "2026-07-06T12:00:01Z", "never nothing");
    assert_eq!(offer.renewal().map(|span| span.to_string()).as_deref(), Some("1w"));
    let usual = World::with_node("cpu=4").offer("x");
    let (from, to) = usual.validity(crate::testing::time("2026-06-01T12:00:00Z"));
    assert_eq!(
        from.duration_until(to).as_hours(),
        24,
        "nothing stays reserved for long for a consumer that is gone"
    );
    assert_eq!(usual.renewal().map(|span| span.to_string()).as_deref(), Some("1d"));
    let once = World::with_node("cpu=4").policy("p", json!({"contract": {"renewal": "None"}})).offer("x");
    assert_eq!((once.renewal(), once.ends), (None, None));
}
