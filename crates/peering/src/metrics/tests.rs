use serde_json::json;

use super::*;
use crate::testing::World;

fn shown(metrics: &PeeringMetrics) -> String {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    text
}

#[test]
fn peers_contracts_and_the_ledger_are_shown_and_go_when_nobody_leads() {
    let mut world = World::new(&["north", "south"]);
    world.nodes(0, &["8"]);
    world.meet(1, 0);
    let want =
        json!({ "spec": { "outgoingPeeringEnabled": "Yes", "borrowing": { "wanted": { "cpu": "2" } } } });
    world.change(1, 0, &want);
    let metrics = PeeringMetrics::default();
    let show = |world: &World| {
        let side = &world.sides[0];
        metrics.show(&side.process.index, &side.me, &side.settings);
        shown(&metrics)
    };
    world.rest();
    let text = show(&world);
    for line in [
        "liqo_peering_peers{direction=\"incoming\",phase=\"established\"} 1",
        "liqo_peering_contracts{role=\"provider\",phase=\"active\"} 1",
        "liqo_peering_ledger_sold{resource=\"cpu\"} 2.0",
        "liqo_peering_peers_unreachable 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("liqo_peering_ledger_free{resource=\"cpu\"} 5.2"), "{text}");
    assert!(
        text.contains("liqo_peering_contracts_broken{role=\"provider\",obligation=\"capacity\"} 0"),
        "{text}"
    );
    world.change(1, 0, &json!({ "spec": { "outgoingPeeringEnabled": "No" } }));
    world.rest();
    let text = show(&world);
    let left = "liqo_peering_peers{direction=\"incoming\",phase=\"none\"} 1";
    assert!(text.contains(left), "{text}");
    metrics.clear();
    assert!(!shown(&metrics).contains("ledger_sold{"), "{}", shown(&metrics));
}

#[test]
fn contracts_that_are_not_kept_are_counted_by_what_is_owed() {
    let mut world = World::new(&["north", "south"]);
    world.nodes(0, &["8"]);
    world.meet(1, 0);
    world.change(1, 0, &json!({ "spec": { "outgoingPeeringEnabled": "Yes" } }));
    world.rest();
    let side = &mut world.sides[0];
    let (key, deal) = side.process.index.here.contracts.iter().next().unwrap();
    let (key, mut contract) = (key.clone(), (**deal).clone());
    for condition in &mut contract.status.as_mut().unwrap().conditions {
        if condition.type_ == CAPACITY_BACKED {
            condition.status = "False".to_owned();
        }
    }
    liqo_kit::Index::<Deal>::apply(&mut side.process.index, &key, Deal::read(contract));
    let metrics = PeeringMetrics::default();
    metrics.show(&side.process.index, &side.me, &side.settings);
    let text = shown(&metrics);
    let count = |role: &str, what: &str| {
        text.contains(&format!("contracts_broken{{role=\"{role}\",obligation=\"{what}\"}} 1"))
    };
    assert!(count("provider", "capacity") && !count("provider", "use"), "{text}");
    assert!(!count("consumer", "capacity"), "{text}");
}
