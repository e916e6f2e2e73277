//! Nodes of the provider that do not answer.

use liqo_api::shadow_pod::PLACED;
use liqo_providers::nodes::Answer;

use super::*;

/// When it is noticed that a node does not answer.
const NOTICED: &str = "2026-01-01T00:00:50Z";

fn on_node(node: &str) -> (Arc<str>, Arc<str>) {
    ("away".into(), node.into())
}

/// The node `n1` of the provider has died.
fn dead() -> Nodes {
    let mut nodes = Nodes::default();
    nodes.use_only(&[(on_node("n1"), false), (on_node("n2"), false)].into(), NOTICED.parse().unwrap());
    let noticed: Timestamp = NOTICED.parse().unwrap();
    let before = |seconds: i64| noticed - SignedDuration::from_secs(seconds);
    nodes.observe(&on_node("n1"), Answer::Lives, before(8));
    nodes.observe(&on_node("n2"), Answer::Lives, before(0));
    for ago in [6, 3, 0] {
        nodes.observe(&on_node("n1"), Answer::Silent("refused".to_owned()), before(ago));
    }
    assert!(nodes.health("away", "n1").is_gone());
    nodes
}

impl World {
    /// The pod runs there on this node.
    fn placed(mut self, node: &str) -> Self {
        self = self.sent(|_| {}).running();
        self.pods.at("shop", "away", |place| {
            if let Some(remote) = place.pods.get_mut("one") {
                remote.node = Some(node.into());
            }
        });
        self
    }
}

fn tolerating(seconds: Option<i64>) -> impl FnOnce(&mut serde_json::Value) {
    move |pod| {
        ready(pod);
        let mut toleration =
            json!({ "key": "virtual-node.liqo.io/unreachable", "operator": "Exists", "effect": "NoExecute" });
        if let Some(seconds) = seconds {
            toleration["tolerationSeconds"] = json!(seconds);
        }
        pod["spec"]["tolerations"] = json!([toleration]);
    }
}

#[test]
fn a_pod_on_a_dead_node_is_not_ready_and_leaves_when_it_has_waited() {
    let mut world = World::new().home(tolerating(Some(12))).placed("n1");
    world.nodes = dead();
    let planned = world.plan();
    assert_eq!(planned.steps.iter().map(word).collect::<Vec<_>>(), ["show"]);
    let patch = shown(&planned).clone();
    let conditions = patch["conditions"].as_array().unwrap();
    let condition = conditions.iter().find(|it| it["type"] == "Ready").unwrap();
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("ProviderNodeUnreachable"))
    );
    let message = condition["message"].as_str().unwrap();
    assert!(message.contains("node n1 of the provider away") && message.contains("refused"), "{message}");
    assert_eq!(condition["lastTransitionTime"], NOTICED);
    assert_eq!(planned.wake, Some("2026-01-01T00:01:02Z".parse().unwrap()));
    world.now = "2026-01-01T00:01:02Z".parse().unwrap();
    let planned = world.plan();
    assert_eq!(planned.steps.iter().map(word).collect::<Vec<_>>(), ["leave", "show"]);
    assert_eq!(planned.report.unwrap().reason, "ProviderNodeUnreachable");
}

#[test]
fn pods_on_other_nodes_stay() {
    let mut world = World::new().home(tolerating(Some(0))).placed("n2");
    world.nodes = dead();
    assert!(!world.words().contains(&"leave"));
    let patch = shown(&world.plan()).clone();
    assert!(
        patch["conditions"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["type"] == "Ready" && it["status"] == "True")
    );
}

#[test]
fn a_pod_that_waits_for_ever_and_one_that_must_not_run_twice_stay() {
    let fenced = |pod: &mut serde_json::Value| {
        tolerating(Some(0))(pod);
        pod["metadata"]["annotations"] = json!({ "liqo.io/fenced": "true" });
    };
    for mut world in [World::new().home(tolerating(None)), World::new().home(fenced)] {
        world = world.placed("n1");
        world.nodes = dead();
        world.now = "2026-01-02T00:00:00Z".parse().unwrap();
        assert_eq!(world.words(), ["show"]);
    }
}

#[test]
fn one_that_goes_waits_until_it_is_gone_there() {
    let mut world = World::new().home(deleting).placed("n1");
    world.nodes = dead();
    world.now = "2026-01-02T00:00:00Z".parse().unwrap();
    let words = world.words();
    assert!(!words.contains(&"finish") && !words.contains(&"leave"), "{words:?}");
    assert!(words.contains(&"withdraw"), "{words:?}");
}

#[test]
fn who_leads_anew_takes_nothing_back_before_it_has_found_out() {
    let cut_off = |pod: &mut serde_json::Value| {
        let ready = json!({ "type": "Ready", "status": "False", "reason": "ProviderNodeUnreachable" });
        let placed = json!({ "type": PLACED, "status": "True", "message": "n1" });
        pod["status"] = json!({ "phase": "Running", "conditions": [ready, placed] });
    };
    let mut world = World::new().home(cut_off).placed("n1");
    assert_eq!(world.words(), Vec::<&str>::new());
    world.nodes.use_only(&[(on_node("n1"), true)].into(), now());
    assert_eq!(world.words(), Vec::<&str>::new());
    world.nodes.observe(&on_node("n1"), Answer::Lives, now());
    assert_eq!(world.words(), ["show"]);
    // Another node has not been asked yet either, and nobody said anything of it.
    assert_eq!(World::new().home(cut_off).placed("n2").words(), ["show"]);
}

#[test]
fn what_is_sent_meanwhile_is_kept_from_the_dead_node() {
    let mut world = World::new().home(|_| {});
    let affinity = |world: &World| match world.plan().steps.pop() {
        Some(Step::Send { shadow, .. }) => shadow.spec.pod.affinity,
        other => panic!("{other:?}"),
    };
    assert_eq!(affinity(&world), None);
    world.nodes = dead();
    let fields = json!([{ "key": "metadata.name", "operator": "NotIn", "values": ["n1"] }]);
    let required = json!({ "nodeSelectorTerms": [{ "matchFields": fields }] });
    let expected = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": required } });
    assert_eq!(json!(affinity(&world)), expected);
}

#[test]
fn a_node_that_died_or_came_back_is_no_reason_to_send_a_pod_again() {
    let mut world = World::new().home(tolerating(None)).placed("n2");
    let before = world.words();
    world.nodes = dead();
    assert_eq!(world.words(), before);
}
