use super::*;

const NODE: &str = "liqo-milan";

impl World {
    fn left(&mut self, left: usize) {
        let since = self.since();
        self.index.emptied.insert(NODE.into(), Emptied { since, left });
    }

    fn since(&self) -> Timestamp {
        let since = &self.milan()["metadata"]["annotations"]["virtual-node.liqo.io/draining-since"];
        since.as_str().unwrap().parse().unwrap()
    }

    fn draining(&self) -> Option<Draining> {
        self.plan_one(ID).draining
    }
}

#[test]
fn a_contract_that_ends_empties_its_node_and_then_the_node_goes() {
    let mut world = World::settled();
    world.lend(|lent| lent.ending = true);
    assert_eq!(world.settle(), 1);
    assert_eq!(world.milan()["spec"]["unschedulable"], true);
    assert_eq!(world.condition("Ready")["status"], "True", "what runs there still does");
    let since = world.since();
    assert_eq!(world.draining(), Some(Draining { node: NODE.into(), since, must: false }));
    world.left(3);
    world.pass(59);
    assert_eq!((world.settle(), world.draining().unwrap().must), (0, false));
    world.pass(1);
    assert_eq!((world.settle(), world.draining().unwrap().must), (0, true));
    world.left(0);
    assert_eq!(world.settle(), 1);
    assert!(world.nodes.is_empty());
    assert_eq!(world.settle(), 0, "and is not made again");
}

#[test]
fn a_node_goes_at_last_though_pods_do_not() {
    let mut world = World::settled();
    world.lend(|lent| lent.ending = true);
    world.settle();
    world.left(1);
    world.pass(89);
    assert_eq!(world.settle(), 0);
    assert_eq!(world.plan_one(ID).wake, Some(world.now + SignedDuration::from_secs(1)));
    world.pass(1);
    world.settle();
    assert!(world.nodes.is_empty());
}

#[test]
fn a_contract_that_is_gone_for_a_moment_moves_nothing() {
    let mut world = World::settled();
    let lent = world.providers.get(ID).unwrap().lent.clone();
    world.change(ID, |it| it.lent = None);
    assert_eq!(world.settle(), 1, "it says that it is over");
    assert_eq!(world.condition("Ready")["reason"], "ContractOver");
    assert_eq!(world.plan_one(ID).wake, Some(world.now + SignedDuration::from_secs(5)));
    world.pass(4);
    assert_eq!(world.settle(), 0);
    world.change(ID, |it| it.lent = lent);
    assert_eq!(world.settle(), 1);
    assert_eq!(world.milan()["spec"]["unschedulable"], Value::Null);
    // For good, with the provider forgotten altogether.
    world.providers.clear();
    world.settle();
    world.pass(5);
    world.settle();
    assert!(world.draining().is_some());
    world.left(0);
    world.settle();
    assert!(world.nodes.is_empty());
}

#[test]
fn a_new_contract_brings_back_a_node_that_was_being_emptied() {
    let mut world = World::settled();
    world.lend(|lent| lent.ending = true);
    world.settle();
    world.lend(|lent| lent.ending = false);
    assert_eq!(world.settle(), 1);
    assert_eq!((&world.milan()["spec"]["unschedulable"], world.draining()), (&Value::Null, None));
}

#[test]
fn a_node_that_somebody_wants_empty_is_emptied_and_stays() {
    let mut world = World::settled();
    world.edit(NODE, &json!({ "metadata": { "annotations": { "virtual-node.liqo.io/drain": "true" } } }));
    assert_eq!(world.settle(), 1);
    assert_eq!(world.milan()["spec"]["unschedulable"], true);
    assert!(world.draining().is_some());
    world.left(0);
    world.pass(1000);
    assert_eq!(world.settle(), 0);
    world.edit(NODE, &json!({ "metadata": { "annotations": { "virtual-node.liqo.io/drain": null } } }));
    assert_eq!(world.settle(), 1);
    assert_eq!(world.milan()["spec"]["unschedulable"], Value::Null);
}

#[test]
fn a_node_on_its_way_out_is_left_alone() {
    let mut world = World::settled();
    world.edit(NODE, &json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }));
    world.lose();
    assert_eq!(world.settle(), 0);
}
