//! The provider answers, and the nodes behind it do not.

use liqo_providers::nodes::{Behind, Bench};

use super::*;

const TAINTED: [&str; 2] =
    ["virtual-node.liqo.io/not-allowed:NoExecute", "virtual-node.liqo.io/unreachable:NoExecute"];

impl World {
    /// This is known of the only node behind the virtual node.
    fn survey(&mut self, health: Health) {
        let behind = Behind { nodes: vec![health], unplaced: false };
        self.survey = Bench::default().judge(&[("liqo-milan".into(), behind)].into(), self.now);
    }

    fn lose_nodes(&mut self) {
        self.survey(Health::Unreachable { since: self.now, why: "connection refused".into() });
    }
}

#[test]
fn a_node_behind_which_nothing_answers_is_tainted_and_says_why() {
    let mut world = World::settled();
    world.survey(Health::Reachable);
    assert_eq!(world.settle(), 0);
    world.lose_nodes();
    world.pass(8);
    assert_eq!(world.settle(), 2);
    assert_eq!(world.taints(), TAINTED);
    let ready = world.condition("Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("ProviderNodesUnreachable")));
    let message = ready["message"].as_str().unwrap();
    assert!(message.contains("2026-01-01T00:00:00Z") && message.contains("connection refused"), "{message}");
    world.pass(60);
    world.survey(Health::Reachable);
    assert_eq!(world.settle(), 2);
    assert_eq!(world.taints(), TAINTED[..1]);
    assert_eq!(world.condition("Ready")["reason"], "ProviderReachable");
}

#[test]
fn who_leads_anew_leaves_it_as_it_was_until_it_knows() {
    let mut world = World::settled();
    world.lose_nodes();
    world.settle();
    let before = world.milan().clone();
    // Another one leads, and has not looked; then it has, and was not answered yet.
    world.survey = Survey::default();
    world.pass(3);
    assert_eq!(world.settle(), 0);
    world.survey(Health::Unknown);
    assert_eq!(world.settle(), 0);
    world.lose_nodes();
    assert_eq!(world.settle(), 0);
    assert_eq!(*world.milan(), before);
}

#[test]
fn what_is_behind_says_nothing_of_a_provider_that_does_not_answer() {
    let mut world = World::settled();
    world.lose();
    world.settle();
    assert_eq!(world.condition("Ready")["reason"], "ProviderUnreachable");
    world.survey(Health::Reachable);
    assert_eq!(world.settle(), 0);
    // It is back, and nobody knows yet about the nodes: that is no reason to wait.
    world.survey(Health::Unknown);
    world.change(ID, |it| it.health = Health::Reachable);
    world.settle();
    assert_eq!(world.taints(), TAINTED[..1]);
    assert_eq!(world.condition("Ready")["status"], "True");
}
