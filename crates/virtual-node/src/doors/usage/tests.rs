use super::*;

fn pod(json: Value) -> Vec<(Place, Used)> {
    serde_json::from_value::<PodMetrics>(json)
        .unwrap()
        .read("shop")
        .map_or_else(Vec::new, |seen| seen.containers)
}

fn measured() -> Measured {
    let containers = pod(json!({
        "metadata": { "name": "web-0" },
        "containers": [
            { "name": "main", "usage": { "cpu": "250m", "memory": "64Mi" } },
            { "name": "side", "usage": { "cpu": "500000n", "memory": "1Ki" } },
        ],
    }));
    Measured { at: 1_700_000_000_000, containers: containers.into_iter().collect(), ..Measured::default() }
}

#[tokio::test(start_paused = true)]
async fn speeds_add_up_to_seconds_and_who_is_gone_is_forgotten() {
    let mut totals = Totals::default();
    let mut containers = measured().containers;
    totals.add(&mut containers, Instant::now());
    tokio::time::advance(Duration::from_secs(20)).await;
    totals.add(&mut containers, Instant::now());
    let main = containers[&("shop".into(), "web-0".into(), "main".into())];
    assert_eq!((main.seconds, main.memory), (BEGINNING + 5.0, 64 << 20));
    // Nobody asked for an hour: nobody knows what was used meanwhile.
    tokio::time::advance(Duration::from_secs(3600)).await;
    totals.add(&mut containers, Instant::now());
    let main = containers[&("shop".into(), "web-0".into(), "main".into())];
    assert_eq!(main.seconds, BEGINNING + 35.0);
    totals.add(&mut BTreeMap::new(), Instant::now());
    assert!(totals.0.is_empty());
}

#[test]
fn it_is_told_as_a_kubelet_would() {
    let text = measured().text(true);
    for line in [
        "container_memory_working_set_bytes{container=\"main\",namespace=\"shop\",pod=\"web-0\"} 67108864 1700000000000",
        "pod_memory_working_set_bytes{namespace=\"shop\",pod=\"web-0\"} 67109888 1700000000000",
        "node_memory_working_set_bytes 67109888 1700000000000",
        "container_cpu_usage_seconds_total{container=\"side\",namespace=\"shop\",pod=\"web-0\"} 0 1700000000000",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(!measured().text(false).contains("node_"), "of several nodes, none is told");
    let summary = measured().summary(Some("liqo-b"));
    assert_eq!(summary["node"]["nodeName"], "liqo-b");
    assert_eq!(summary["pods"][0]["podRef"], json!({ "name": "web-0", "namespace": "shop" }));
    assert_eq!(summary["pods"][0]["containers"][0]["cpu"]["usageNanoCores"], 250_000_000);
}

#[test]
fn what_a_provider_makes_up_is_not_passed_on() {
    assert_eq!(pod(json!({ "metadata": { "name": "a\"} 1\nb{c=\"" }, "containers": [{ "name": "x" }] })), []);
    let odd = pod(json!({
        "metadata": { "name": "web-0" },
        "containers": [{ "name": "x\n" }, { "name": "y", "usage": { "cpu": "-5", "memory": "lots" } }],
    }));
    assert_eq!(odd, [(("shop".into(), "web-0".into(), "y".into()), Used::default())]);
}

#[test]
fn each_node_tells_of_its_own_pods() {
    use liqo_kit::Index as _;
    let mut index = Index::default();
    for (name, id) in
        [("liqo-a", "liqo://a"), ("liqo-b-gpu", "liqo://b/gpu"), ("liqo-b-plain", "liqo://b/plain")]
    {
        let node = json!({ "metadata": { "name": name, "uid": name }, "spec": { "providerID": id } });
        let known = node::Known::read(serde_json::from_value(node).unwrap());
        index.apply(&liqo_kit::Key::cluster(name), known);
    }
    let mut measured = Measured::default();
    for (cluster, name, labels) in [
        ("a", "one", json!({})),
        ("b", "two", json!({ "liqo.io/pool": "gpu" })),
        ("b", "three", json!({ "liqo.io/pool": "plain" })),
    ] {
        let found = json!({
            "metadata": { "name": name, "labels": labels },
            "containers": [{ "name": "main", "usage": { "cpu": "1", "memory": "1Mi" } }],
        });
        let seen = serde_json::from_value::<PodMetrics>(found).unwrap().read("shop").unwrap();
        measured.add(&index, &cluster.parse().unwrap(), seen);
    }
    for (node, pod) in [("liqo-a", "one"), ("liqo-b-gpu", "two"), ("liqo-b-plain", "three")] {
        let summary = measured.of(node).summary(Some(node));
        let pods: Vec<_> =
            summary["pods"].as_array().unwrap().iter().map(|it| it["podRef"]["name"].clone()).collect();
        assert_eq!(pods, [pod]);
        assert_eq!(summary["node"]["cpu"]["usageNanoCores"], 1_000_000_000);
        let text = measured.of(node).text(true);
        assert!(text.contains("node_memory_working_set_bytes 1048576"), "{text}");
    }
}
