use k8s_openapi::api::core::v1::Pod;
use liqo_kit::Index;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::pods::facts::{Mapping, RemoteOnWire, ShadowOnWire, VirtualNode};
use crate::pods::index::{PODS, SHADOWS};
use crate::translate::Unchanged;

mod nodes;

const NOW: &str = "2026-01-01T00:01:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn key() -> Key {
    Key::namespaced("shop", "one")
}

/// A namespace `shop` that is `shop-home` at the provider `away`, and a node that stands for it.
struct World {
    pods: Pods,
    gone: bool,
    access: bool,
    own: Option<&'static str>,
    silence: Duration,
    nodes: Nodes,
    now: Timestamp,
}

impl World {
    fn new() -> Self {
        let mut pods = Pods::default();
        (pods.sending, pods.synced) = (true, true);
        let node = VirtualNode { provider: "away".into(), pool: None, address: Some("10.9.8.7".into()) };
        pods.apply(&Key::cluster("liqo-away"), node);
        let (silence, nodes) = (Duration::ZERO, Nodes::default());
        let mut world = Self { pods, gone: false, access: true, own: None, silence, nodes, now: now() };
        world.map(true);
        world
    }

    fn unmapped() -> Self {
        let mut world = Self::new();
        Index::<Mapping>::delete(&mut world.pods, &Key::namespaced("tenant", "away"));
        world.pods.close("shop", "away");
        world
    }

    fn map(&mut self, open: bool) {
        let namespaces = [(Arc::from("shop"), (Arc::from("shop-home"), open))].into();
        self.pods.apply(&Key::namespaced("tenant", "away"), Mapping { provider: "away".into(), namespaces });
        self.pods.open(&"shop".into(), &"away".into(), &"shop-home".into(), open);
        self.pods.seen_all("shop", "away", SHADOWS);
        self.pods.seen_all("shop", "away", PODS);
    }

    fn home(mut self, change: impl FnOnce(&mut serde_json::Value)) -> Self {
        let mut pod = json!({
            "metadata": { "name": "one", "namespace": "shop", "uid": "uid-1", "labels": { "app": "a" } },
            "spec": { "nodeName": "liqo-away", "containers": [{ "name": "main", "image": "i" }] },
            "status": { "phase": "Pending" },
        });
        change(&mut pod);
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let seen = "2026-01-01T00:00:00Z".parse().unwrap();
        self.pods.apply(&key(), Home::read(pod, seen).unwrap());
        self
    }

    /// What was sent is there, as the provider's API server has it.
    fn sent(mut self, change: impl FnOnce(&mut serde_json::Value)) -> Self {
        let home = self.pods.home(&key());
        let source = home.map_or_else(|| "none".into(), |home| home.source.clone());
        let route = Route {
            home: "home",
            provider: "away",
            namespace: "shop",
            remote: "shop-home",
            storage_class: None,
        };
        let mut shadow = json!({
            "metadata": { "name": "one", "namespace": "shop-home", "uid": "shadow-1", "resourceVersion": "7",
                "labels": { "virtualkubelet.liqo.io/origin": "home" },
                "annotations": { "virtualkubelet.liqo.io/pod-uid": "uid-1",
                    "virtualkubelet.liqo.io/content": outgoing::content(&source, &route) } },
        });
        change(&mut shadow);
        let wire: ShadowOnWire = serde_json::from_value(shadow).unwrap();
        self.pods.at("shop", "away", |place| drop(place.shadows.insert("one".into(), Shadow::read(wire))));
        self
    }

    /// The pod there has this status.
    #[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
    fn remote(mut self, owner: &str, seen: &str, status: serde_json::Value) -> Self {
        let pod = json!({ "metadata": { "name": "one", "namespace": "shop-home", "ownerReferences": [
            { "apiVersion": "v1", "kind": "ShadowPod", "name": "one", "uid": owner }] }, "status": status });
        let wire: RemoteOnWire = serde_json::from_value(pod).unwrap();
        let remote = Remote::read(wire, seen.parse().unwrap());
        self.pods.at("shop", "away", |place| drop(place.pods.insert("one".into(), remote)));
        self
    }

    fn running(self) -> Self {
        self.remote(
            "shadow-1",
            NOW,
            json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] }),
        )
    }

    fn plan(&self) -> Planned {
        let standing = |_: &str| {
            self.access
                .then(|| Standing { gone: self.gone.then(|| Arc::from("silence")), storage_class: None })
        };
        let view = View {
            home: "home",
            own: self.own,
            pods: &self.pods,
            standing: &standing,
            translate: &Unchanged,
            nodes: &self.nodes,
            silence: &|_| self.silence,
            now: self.now,
        };
        plan(&view, &key())
    }

    fn words(&self) -> Vec<&'static str> {
        self.plan().steps.iter().map(word).collect()
    }
}

fn word(step: &Step) -> &'static str {
    match step {
        Step::Send { .. } => "send",
        Step::Renew { .. } => "renew",
        Step::Withdraw { .. } => "withdraw",
        Step::Show { .. } => "show",
        Step::Finish { .. } => "finish",
        Step::Leave { .. } => "leave",
        Step::Recall => "recall",
    }
}

fn deleting(pod: &mut serde_json::Value) {
    pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
}

fn ready(pod: &mut serde_json::Value) {
    pod["status"] = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
}

fn shown(planned: &Planned) -> &Value {
    let shown = planned.steps.iter().find_map(|step| match step {
        Step::Show { patch, .. } => Some(patch),
        _ => None,
    });
    shown.unwrap_or_else(|| panic!("{planned:?}"))
}

#[test]
fn a_pod_is_sent_once() {
    assert_eq!(World::new().home(|_| {}).words(), ["send"]);
    let planned = World::new().home(|_| {}).sent(|_| {}).plan();
    assert!(planned.steps.is_empty(), "{planned:?}");
    assert!(planned.sent, "what was sent need not be kept");
}

#[test]
fn a_pod_on_a_node_of_this_cluster_is_left_alone() {
    let world = World::new().home(|pod| pod["spec"]["nodeName"] = json!("node-1"));
    assert!(world.words().is_empty());
    assert!(world.plan().sent);
}

#[test]
fn nothing_is_sent_before_all_that_is_there_is_known() {
    let mut world = World::new().home(|_| {});
    world.pods.at("shop", "away", |place| place.seen = SHADOWS);
    assert!(world.words().is_empty());
}

#[test]
fn what_changed_is_sent_again_and_what_was_dropped_is_read_again() {
    let changed = |shadow: &mut serde_json::Value| {
        shadow["metadata"]["annotations"]["virtualkubelet.liqo.io/content"] = json!("older");
    };
    let mut world = World::new().home(|_| {}).sent(changed);
    assert_eq!(world.words(), ["renew"]);
    world.pods.drop_draft(&key());
    assert_eq!(world.words(), ["recall"]);
}

#[test]
fn a_running_pod_is_told_at_once_and_once() {
    let world = World::new().home(|_| {}).sent(|_| {}).running();
    let planned = world.plan();
    assert_eq!(shown(&planned)["phase"], "Running");
    let world = World::new()
        .home(|pod| {
            ready(pod);
            pod["status"]["hostIP"] = json!("10.9.8.7");
            pod["status"]["hostIPs"] = json!([{ "ip": "10.9.8.7" }]);
        })
        .sent(|_| {})
        .running();
    assert!(world.words().is_empty(), "{:?}", world.plan());
}

#[test]
fn a_pod_on_its_way_is_told_when_it_takes_long() {
    let unsaid =
        World::new().home(|_| {}).sent(|_| {}).remote("shadow-1", NOW, json!({ "phase": "Pending" }));
    assert!(unsaid.words().is_empty() && unsaid.plan().wake.is_none(), "home says so already");
    let pending = json!({ "phase": "Pending", "startTime": NOW });
    let mut world = World::new().home(|_| {}).sent(|_| {}).remote("shadow-1", NOW, pending);
    let planned = world.plan();
    assert!(planned.steps.is_empty());
    world.now = planned.wake.unwrap();
    assert_eq!(world.now, "2026-01-01T00:01:02Z".parse().unwrap());
    assert_eq!(world.words(), ["show"]);
}

#[test]
fn the_status_of_an_earlier_pod_is_not_taken_for_this_one() {
    let world = World::new().home(|_| {}).sent(|_| {}).remote("shadow-0", NOW, json!({ "phase": "Failed" }));
    assert!(world.words().is_empty());
    let waits = World::new().home(|_| {}).remote("shadow-0", NOW, json!({ "phase": "Running" }));
    assert!(waits.words().is_empty(), "the name is taken until that one is gone");
}

#[test]
fn a_refusal_is_told_with_an_event() {
    let refused = |shadow: &mut serde_json::Value| {
        shadow["status"] = json!({ "conditions": [{ "type": "Created", "status": "False", "reason": "QuotaExceeded",
            "message": "too much", "lastTransitionTime": NOW }] });
    };
    let planned = World::new().home(|_| {}).sent(refused).plan();
    assert_eq!(shown(&planned)["reason"], "QuotaExceeded");
    assert_eq!(planned.report.unwrap().reason, "QuotaExceeded");
}

#[test]
fn what_the_api_server_there_refuses_is_told_until_the_pod_changes() {
    let mut world = World::new().home(|_| {});
    world.pods.refuse(key(), "Forbidden", "host paths are not shared".to_owned());
    let planned = world.plan();
    assert_eq!(shown(&planned)["reason"], "Forbidden");
    assert_eq!(planned.steps.len(), 1, "it is not sent again at once: {planned:?}");
    let changed = world.home(|pod| pod["metadata"]["labels"]["app"] = json!("b"));
    assert_eq!(changed.words(), ["send"]);
}

#[test]
fn a_pod_deleted_here_is_taken_back_and_goes_when_nothing_is_left_there() {
    let world = World::new().home(deleting).sent(|_| {}).running();
    assert_eq!(world.words()[0], "withdraw");
    let gone = |shadow: &mut serde_json::Value| shadow["metadata"]["deletionTimestamp"] = json!(NOW);
    let world = World::new().home(deleting).sent(gone).running();
    assert!(!world.words().contains(&"withdraw") && !world.words().contains(&"finish"));
    let world = World::new().home(deleting).running();
    assert!(world.words().is_empty(), "it still runs");
    assert_eq!(World::new().home(deleting).words(), ["finish"]);
}

#[test]
fn what_nobody_wants_is_taken_back() {
    assert_eq!(World::new().sent(|_| {}).words(), ["withdraw"]);
    let another = World::new().home(|pod| pod["metadata"]["uid"] = json!("uid-2")).sent(|_| {});
    assert_eq!(another.words(), ["withdraw"]);
    let elsewhere = World::new().home(|pod| pod["spec"]["nodeName"] = json!("node-1")).sent(|_| {});
    assert_eq!(elsewhere.words(), ["withdraw"]);
    let mut unknown = World::new().sent(|_| {});
    unknown.pods.synced = false;
    assert!(unknown.words().is_empty(), "nobody knows yet whether somebody wants it");
}

#[test]
fn what_is_not_ours_is_never_touched() {
    let other = |shadow: &mut serde_json::Value| {
        shadow["metadata"]["labels"] = json!({ "virtualkubelet.liqo.io/origin": "another" });
    };
    assert!(World::new().sent(other).words().is_empty());
    let planned = World::new().home(|_| {}).sent(other).plan();
    assert_eq!(shown(&planned)["reason"], "NameTaken");
    assert_eq!(planned.steps.len(), 1);
}

#[test]
fn pods_of_a_provider_that_is_gone_are_not_ready_and_nothing_is_written_there() {
    let mut world = World::new().home(ready).sent(|_| {}).running();
    world.gone = true;
    let planned = world.plan();
    assert_eq!(shown(&planned)["conditions"][0]["reason"], UNREACHABLE);
    assert_eq!(planned.steps.len(), 1);
    for mut world in [World::new().home(|_| {}), World::new().sent(|_| {}), World::new().home(deleting)] {
        world.gone = true;
        assert!(world.words().is_empty(), "{:?}", world.plan());
    }
}

fn fenced(pod: &mut serde_json::Value) {
    deleting(pod);
    pod["metadata"]["ownerReferences"] = json!([{ "apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": true }]);
}

#[test]
fn what_must_never_run_twice_goes_when_its_provider_has_certainly_stopped_it() {
    let worlds: [fn() -> World; 3] = [
        || World { gone: true, ..World::new().home(fenced).sent(|_| {}).running() },
        || World { access: false, ..World::new().home(fenced) },
        // Its namespace was taken back meanwhile, which the provider cannot know.
        || World { gone: true, ..World::unmapped().home(fenced) },
    ];
    for world in worlds {
        let mut world = world();
        for (silence, words) in [(0, vec![]), (24, vec![]), (25, vec!["finish"]), (3000, vec!["finish"])] {
            world.silence = Duration::from_secs(silence);
            assert_eq!(world.words(), words, "{silence}");
        }
        world.silence = Duration::from_secs(20);
        assert_eq!(world.plan().wake, Some(now() + SignedDuration::from_secs(5)));
        // A clock that is set by five minutes changes nothing: silence is measured.
        world.now = now() + SignedDuration::from_mins(5);
        assert_eq!(world.words(), Vec::<&str>::new());
        world.silence = Duration::from_secs(25);
        world.now = now() - SignedDuration::from_mins(5);
        assert_eq!(world.words(), ["finish"]);
        assert_eq!(world.plan().report.unwrap().reason, "Fenced");
    }
}

#[test]
fn what_must_never_run_twice_goes_as_others_do_while_its_provider_answers() {
    let mut world = World::new().home(fenced).sent(|_| {}).running();
    world.silence = Duration::from_secs(3000);
    assert!(!world.words().contains(&"finish"), "{:?}", world.plan());
    let mut other = World::new().home(deleting).sent(|_| {}).running();
    (other.gone, other.silence) = (true, Duration::from_secs(3000));
    assert!(other.words().is_empty(), "others wait for their provider");
}

#[test]
fn what_waits_for_its_provider_for_ever_is_never_let_go_while_it_is_gone() {
    let never = |pod: &mut serde_json::Value| {
        fenced(pod);
        pod["spec"]["tolerations"] =
            json!([{ "key": "virtual-node.liqo.io/unreachable", "operator": "Exists" }]);
    };
    for mut world in [World::new().home(never).sent(|_| {}).running(), World::unmapped().home(never)] {
        (world.gone, world.silence) = (true, Duration::from_secs(3000));
        assert!(world.words().is_empty(), "{:?}", world.plan());
    }
}

#[test]
fn what_must_never_run_twice_is_marked_when_it_is_sent() {
    let label = |world: World| match &world.plan().steps[..] {
        [Step::Send { shadow, .. }] => shadow.metadata.labels.as_ref()?.get("liqo.io/fenced").cloned(),
        other => panic!("{other:?}"),
    };
    let claim = json!([{ "name": "v", "persistentVolumeClaim": { "claimName": "c" } }]);
    let with_claim = World::new().home(|pod| pod["spec"]["volumes"] = claim);
    assert_eq!(label(with_claim).as_deref(), Some("true"));
    // Who says so in a label of its own says nothing.
    let faked = World::new().home(|pod| pod["metadata"]["labels"]["liqo.io/fenced"] = json!("true"));
    assert_eq!(label(faked), None);
}

#[test]
fn a_pod_that_was_stopped_there_is_not_ready_and_did_not_begin_anew() {
    let refused = |shadow: &mut serde_json::Value| {
        shadow["status"] = json!({ "conditions": [{ "type": "Created", "status": "False", "reason": "Fenced",
            "message": "silence", "lastTransitionTime": NOW }] });
    };
    let planned = World::new().home(ready).sent(refused).plan();
    assert_eq!(shown(&planned)["conditions"][0]["reason"], "Fenced");
    assert_eq!(shown(&planned)["phase"], serde_json::Value::Null);
}

#[test]
fn a_pod_is_not_let_go_because_we_have_no_access() {
    let mut world = World::new().home(deleting);
    world.access = false;
    world.pods.close("shop", "away");
    assert!(world.words().is_empty());
}

#[test]
fn a_pod_without_a_namespace_there_says_so_and_may_go() {
    let mut world = World::unmapped().home(|_| {});
    let planned = world.plan();
    assert_eq!(shown(&planned)["reason"], BACKOFF);
    assert_eq!(planned.report.unwrap().reason, BACKOFF);
    world.now = "2026-01-01T00:00:00.5Z".parse().unwrap();
    assert!(world.words().is_empty(), "the namespace may be on its way");
    assert_eq!(World::unmapped().home(deleting).words(), ["finish"]);
    assert_eq!(shown(&World::unmapped().home(ready).plan())["conditions"][0]["status"], "False");
}

#[test]
fn nothing_new_goes_to_a_namespace_that_goes() {
    let mut world = World::new().home(|_| {});
    world.map(false);
    assert_eq!(shown(&world.plan())["reason"], BACKOFF);
}

#[test]
fn a_pod_that_ended_is_told_about_no_more() {
    let ended = |pod: &mut serde_json::Value| pod["status"]["phase"] = json!("Succeeded");
    assert!(World::new().home(ended).words().is_empty(), "it is not sent again");
    assert!(World::new().home(ended).sent(|_| {}).running().words().is_empty());
}

#[test]
fn a_pod_that_ended_while_nobody_looked_has_ended() {
    let ended = |shadow: &mut serde_json::Value| shadow["status"] = json!({ "phase": "Failed" });
    assert_eq!(shown(&World::new().home(ready).sent(ended).plan())["phase"], "Failed");
    let planned = World::new().home(ready).sent(|_| {}).plan();
    assert_eq!(shown(&planned)["conditions"][0]["reason"], MISSING);
}

proptest! {
    /// Whatever is known: never two writes to the same object, never one to a provider that does not answer, never one to
    /// what is not ours, and a pod goes at home only when it is deleted.
    #[test]
    fn plans_are_careful(
        home in proptest::option::of((any::<bool>(), any::<bool>(), 0..3_u8)),
        shadow in proptest::option::of((any::<bool>(), any::<bool>(), any::<bool>())),
        remote in proptest::option::of(any::<bool>()),
        gone: bool,
        mapped: bool,
    ) {
        let mut world = if mapped { World::new() } else { World::unmapped() };
        let mut is_deleting = false;
        if let Some((goes, is_ready, node)) = home {
            is_deleting = goes;
            world = world.home(|pod| {
                if goes { deleting(pod); }
                if is_ready { ready(pod); }
                pod["spec"]["nodeName"] = json!(["liqo-away", "node-1", "liqo-other"][usize::from(node)]);
            });
        }
        if let Some((ours, same, goes)) = shadow {
            world = world.sent(|shadow| {
                if !ours { shadow["metadata"]["labels"] = json!({}); }
                if !same { shadow["metadata"]["annotations"]["virtualkubelet.liqo.io/pod-uid"] = json!("uid-0"); }
                if goes { shadow["metadata"]["deletionTimestamp"] = json!(NOW); }
            });
        }
        if let Some(own) = remote {
            world = world.remote(if own { "shadow-1" } else { "shadow-0" }, NOW, json!({ "phase": "Running" }));
        }
        world.gone = gone;
        let words = world.words();
        let there = words.iter().filter(|word| ["send", "renew", "withdraw"].contains(word)).count();
        prop_assert!(there <= 1, "{words:?}");
        prop_assert!(words.iter().filter(|word| **word == "show").count() <= 1);
        prop_assert!(there == 0 || (mapped && !gone), "{words:?}");
        prop_assert!(!words.contains(&"finish") || is_deleting, "{words:?}");
        if let Some((false, _, _)) = shadow {
            prop_assert_eq!(there, 0);
        }
        if remote.is_some() || shadow.is_some_and(|(_, same, _)| same) {
            prop_assert!(!mapped || !words.contains(&"finish"), "it may still run: {words:?}");
        }
    }
}

#[test]
fn a_pod_on_the_node_of_a_pool_says_so_at_the_provider() {
    let mut world = World::new().home(|_| {});
    let node = VirtualNode { provider: "away".into(), pool: Some("gpu".into()), address: None };
    world.pods.apply(&Key::cluster("liqo-away"), node);
    let planned = world.plan();
    let [Step::Send { shadow, .. }] = &planned.steps[..] else { panic!("{:?}", planned.steps) };
    assert_eq!(shadow.metadata.labels.as_ref().unwrap()["liqo.io/pool"], "gpu");
}

#[test]
fn pods_of_liqo_itself_are_never_sent_though_their_namespace_is_there() {
    let mut world = World::new().home(|_| {});
    assert_eq!(world.words(), ["send"]);
    world.own = Some("shop");
    assert!(!world.words().contains(&"send"), "{:?}", world.words());
}
