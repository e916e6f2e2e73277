use super::*;

#[test]
fn a_provider_that_lends_becomes_a_node() {
    let mut world = World::new();
    world.add(ID, "milan");
    world.lend(|lent| {
        lent.storage_classes = vec!["fast".into()];
        lent.labels = BTreeMap::from([("topology.kubernetes.io/region".into(), "eu".into())]);
    });
    assert_eq!(world.settle(), 2, "made, and what it has");
    let node = world.milan();
    assert_eq!(node["spec"]["providerID"], format!("liqo://{ID}"));
    let labels = &node["metadata"]["labels"];
    for (key, value) in [
        ("kubernetes.io/hostname", "liqo-milan"),
        ("kubernetes.io/role", "agent"),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("liqo.io/type", "virtual-node"),
        ("liqo.io/remote-cluster-id", ID),
        ("node.kubernetes.io/exclude-from-external-load-balancers", "true"),
        ("alpha.service-controller.kubernetes.io/exclude-balancer", "true"),
        ("storage.liqo.io/available", "true"),
        ("topology.kubernetes.io/region", "eu"),
    ] {
        assert_eq!(labels[key], value, "{key}");
    }
    assert_eq!(world.taints(), ["virtual-node.liqo.io/not-allowed:NoExecute"]);
    let status = &node["status"];
    let amounts = json!({ "cpu": "4", "memory": "8Gi", "pods": "110" });
    assert_eq!((&status["capacity"], &status["allocatable"]), (&amounts, &amounts));
    assert_eq!(status["addresses"], json!([{ "type": "InternalIP", "address": "10.0.0.7" }]));
    assert_eq!(status["daemonEndpoints"]["kubeletEndpoint"]["Port"], 10250);
    assert_eq!(status["nodeInfo"]["kubeletVersion"], "v1.34.0-liqo-0.1.0");
    let ready = world.condition("Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("True"), &json!("ProviderReachable")));
    for kind in ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"] {
        assert_eq!(world.condition(kind)["status"], "False", "{kind}");
    }
}

#[test]
fn nothing_is_made_before_it_is_known_whether_the_provider_answers() {
    let mut world = World::new();
    world.add(ID, "milan");
    world.change(ID, |it| it.health = Health::Unknown);
    assert_eq!(world.settle(), 0);
    world.lose();
    assert_eq!(world.settle(), 3);
    assert_eq!(world.condition("Ready")["reason"], "ProviderUnreachable");
}

#[test]
fn a_name_that_is_taken_gets_digits() {
    let mut world = World::new();
    world.put("liqo-milan", json!({ "metadata": {}, "spec": { "providerID": "other://1" } }));
    world.add(ID, "milan");
    world.add(OTHER_ID, "milan");
    world.settle();
    let names: Vec<_> = world.nodes.keys().cloned().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("liqo-milan")), "{names:?}");
    assert_eq!(world.node("liqo-milan")["spec"]["providerID"], "other://1", "it is left alone");
    // Two of equal name that come at the same time.
    let mut world = World::new();
    world.add(ID, "milan");
    world.add(OTHER_ID, "milan");
    world.settle();
    assert_eq!(world.nodes.len(), 2);
}

#[test]
fn a_provider_that_is_gone_shows_since_when_and_why_and_pods_may_leave() {
    let mut world = World::settled();
    world.lose();
    assert_eq!(world.settle(), 2);
    let ready = world.condition("Ready");
    assert_eq!((&ready["status"], &ready["reason"]), (&json!("False"), &json!("ProviderUnreachable")));
    let message = ready["message"].as_str().unwrap();
    assert!(
        message.contains("milan has not answered since 2026-01-01T00:00:00Z: no route to host"),
        "{message}"
    );
    let tainted =
        ["virtual-node.liqo.io/not-allowed:NoExecute", "virtual-node.liqo.io/unreachable:NoExecute"];
    assert_eq!(world.taints(), tainted);
    // Another leader has not asked yet, then finds the same, later: nothing is written.
    world.pass(60);
    world.change(ID, |it| it.health = Health::Unknown);
    assert_eq!(world.settle(), 0);
    world.lose();
    assert_eq!(world.settle(), 0);
    world.change(ID, |it| it.health = Health::Reachable);
    assert_eq!(world.settle(), 2);
    assert_eq!(world.taints(), tainted[..1]);
    let outage = &world.milan()["metadata"]["annotations"]["virtual-node.liqo.io/last-outage"];
    assert_eq!(outage, "2026-01-01T00:00:00Z/2026-01-01T00:01:00Z");
    let ready = world.condition("Ready");
    assert_eq!(
        (&ready["status"], &ready["lastTransitionTime"]),
        (&json!("True"), &json!("2026-01-01T00:01:00Z"))
    );
}

#[test]
fn what_is_not_known_is_not_taken_back_when_something_else_changes() {
    let mut world = World::settled();
    world.change(ID, |it| it.health = Health::Unknown);
    world.lend(|lent| lent.resources = resources(&[("cpu", "2"), ("memory", "8Gi")]));
    assert_eq!(world.settle(), 1);
    assert_eq!(world.condition("Ready")["status"], "True");
    let amounts = json!({ "cpu": "2", "memory": "8Gi", "pods": "1M" });
    assert_eq!(world.milan()["status"]["capacity"], amounts, "a contract that does not limit pods");
}

#[test]
fn a_node_of_nothing_is_not_ready_and_neither_is_one_without_identity() {
    let mut world = World::settled();
    world.lend(|lent| lent.resources = resources(&[("cpu", "2")]));
    world.settle();
    assert_eq!(world.condition("Ready")["reason"], "NothingLent");
    assert_eq!(world.condition("MemoryPressure")["status"], "True");
    world.change(ID, |it| it.link = Err("we have no identity there yet".into()));
    world.settle();
    let ready = world.condition("Ready");
    assert_eq!(
        (&ready["reason"], &ready["message"]),
        (&json!("NoIdentity"), &json!("we have no identity there yet"))
    );
    assert_eq!(world.taints().len(), 1, "nobody knows that it is gone");
}

#[test]
fn what_users_add_stays_and_what_is_ours_comes_back() {
    let mut world = World::settled();
    world.edit(
        "liqo-milan",
        &json!({
            "metadata": {
                "labels": { "team": "blue", "liqo.io/type": "mine", "kubernetes.io/hostname": null },
                "annotations": { "note": "keep" },
            },
            "spec": {
                "unschedulable": true,
                "taints": [{ "key": "own", "effect": "NoSchedule" }],
            },
        }),
    );
    assert_eq!(world.settle(), 1);
    let node = world.milan();
    let labels = &node["metadata"]["labels"];
    assert_eq!(labels["team"], "blue");
    assert_eq!(
        (&labels["liqo.io/type"], &labels["kubernetes.io/hostname"]),
        (&json!("virtual-node"), &json!("liqo-milan"))
    );
    assert_eq!(node["metadata"]["annotations"]["note"], "keep");
    assert_eq!(node["spec"]["unschedulable"], true);
    assert_eq!(world.taints(), ["own:NoSchedule", "virtual-node.liqo.io/not-allowed:NoExecute"]);
}

#[test]
fn labels_of_the_offer_come_and_go_but_never_over_a_users() {
    let mut world = World::settled();
    world.edit("liqo-milan", &json!({ "metadata": { "labels": { "tier": "mine" } } }));
    world.lend(|lent| {
        lent.labels = BTreeMap::from([("tier".into(), "gold".into()), ("gpu".into(), "yes".into())]);
    });
    world.settle();
    let labels = &world.milan()["metadata"]["labels"];
    assert_eq!((&labels["tier"], &labels["gpu"]), (&json!("mine"), &json!("yes")));
    world.lend(|lent| lent.labels = BTreeMap::from([("gpu".into(), "no".into())]));
    world.settle();
    assert_eq!(world.milan()["metadata"]["labels"]["gpu"], "no");
    world.lend(|lent| lent.labels = BTreeMap::new());
    world.settle();
    let labels = &world.milan()["metadata"]["labels"];
    assert_eq!((&labels["tier"], &labels["gpu"]), (&json!("mine"), &Value::Null));
}

#[test]
fn a_provider_cannot_say_what_kubernetes_or_we_act_on() {
    let bad = [
        ("node-role.kubernetes.io/control-plane", ""),
        ("node-restriction.kubernetes.io/x", "y"),
        ("kubernetes.io/hostname", "other"),
        ("beta.kubernetes.io/os", "other"),
        ("foo.k8s.io/bar", "x"),
        ("liqo.io/type", "physical"),
        ("liqo.io/remote-cluster-id", OTHER_ID),
        ("not a key", "x"),
        ("fine", "not a value!"),
        ("long", &"x".repeat(64)),
    ];
    let mut world = World::settled();
    let before = world.milan()["metadata"]["labels"].clone();
    world.lend(|lent| lent.labels = bad.map(|(key, value)| (key.into(), value.into())).into());
    assert_eq!(world.settle(), 0);
    assert_eq!(world.milan()["metadata"]["labels"], before);
    for key in ["notkubernetes.io/x", "liqo.io/provider", "plain", "kubernetes.io.example.com/x"] {
        let mut world = World::settled();
        world.lend(|lent| lent.labels = BTreeMap::from([(key.into(), "v".into())]));
        world.settle();
        assert_eq!(world.milan()["metadata"]["labels"][key], "v", "{key}");
    }
}

#[test]
fn the_administrators_labels_and_annotations_are_on_every_node() {
    let mut world = World::new();
    world.settings.labels =
        BTreeMap::from([("zone".into(), "a".into()), ("liqo.io/type".into(), "no".into())]);
    world.settings.annotations = BTreeMap::from([("contact".into(), "ops".into())]);
    world.add(ID, "milan");
    world.lend(|lent| lent.labels = BTreeMap::from([("zone".into(), "theirs".into())]));
    world.settle();
    let meta = &world.milan()["metadata"];
    assert_eq!(
        (&meta["labels"]["zone"], &meta["labels"]["liqo.io/type"]),
        (&json!("a"), &json!("virtual-node"))
    );
    assert_eq!(meta["annotations"]["contact"], "ops");
}

#[test]
fn another_leader_moves_the_address_and_nothing_else() {
    let mut world = World::settled();
    world.settings.address = Some("10.0.0.8".parse().unwrap());
    assert_eq!(world.settle(), 1);
    assert_eq!(world.milan()["status"]["addresses"][0]["address"], "10.0.0.8");
}
