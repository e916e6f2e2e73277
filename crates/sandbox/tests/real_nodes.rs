//! Real nodes: pods with containers, Services, DNS, several nodes, faults. One sandbox for all of it, because
//! starting one costs more than everything that is asked of it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

use std::process::Output;
use std::time::Duration;

use ipnet::Ipv4Net;
use liqo_sandbox::image::{Image, Layer};
use liqo_sandbox::{ClusterSpec, Component, TestCluster, TestSandbox};
use tokio::time::Instant;

const APP: &str = include_str!("../../../deploy/demo/app.yaml");

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn run(cluster: TestCluster<'_>, arguments: &str) -> String {
    let output = cluster.kubectl(arguments.split_whitespace());
    assert!(output.status.success(), "{}: kubectl {arguments}: {}", cluster.name(), text(&output));
    text(&output)
}

/// Asks until the answer pleases, or the deadline has come; then shows the last answer.
async fn until(what: &str, seconds: u64, mut ask: impl AsyncFnMut() -> Result<(), String>) -> Duration {
    let started = Instant::now();
    loop {
        let Err(state) = ask().await else { return started.elapsed() };
        assert!(started.elapsed() < Duration::from_secs(seconds), "{what} not after {seconds} s: {state}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn install_app(cluster: TestCluster<'_>) {
    let applied = cluster.kubectl_apply(&APP.replace("FILLED-IN-BY-THE-DEMO", cluster.name()));
    assert!(applied.status.success(), "{}", text(&applied));
}

/// Calls a URL from the network of the cluster's first machine, with the application's own client in a pod.
fn call_from_pod(cluster: TestCluster<'_>, url: &str) -> Output {
    let client =
        ["exec", "-n", "demo", "deployment/sandbox-app", "--", "sandbox-app", "get", url, "--timeout", "10s"];
    cluster.kubectl(client)
}

#[tokio::test]
async fn pods_services_dns_and_faults_are_those_of_real_clusters() {
    let other: Ipv4Net = "10.50.0.0/16".parse().unwrap();
    let sandbox = TestSandbox::start([
        ClusterSpec::real("east", 2),
        ClusterSpec::real("west", 1).with_networks(other, "10.60.0.0/16".parse().unwrap()),
    ])
    .await;
    let (east, west) = (sandbox.cluster("east"), sandbox.cluster("west"));
    // Kubernetes takes its taint off a node a moment after that is ready; until then all pods go to the other one.
    until("all nodes take pods", 60, async || {
        match run(east, "get nodes -o jsonpath={.items[*].spec.taints[*].key}") {
            taints if taints.contains("node.kubernetes.io/") => Err(taints),
            _ => Ok(()),
        }
    })
    .await;
    install_app(east);
    install_app(west);
    for cluster in [east, west] {
        run(cluster, "-n demo rollout status deployment/sandbox-app --timeout=90s");
    }
    pods_answer_by_service_name_across_nodes(east).await;
    networks_are_as_asked_for(east, west);
    logs_exec_and_nodes_are_real(east);
    an_image_is_loaded_once_and_again_when_it_has_changed(east);
    certificate_requests_are_signed(west).await;
    a_cut_separates_two_clusters_until_healed(&sandbox).await;
    a_delay_is_felt_in_both_directions(&sandbox).await;
    a_node_that_is_paused_becomes_not_ready_and_comes_back(east).await;
    a_killed_node_comes_back_with_its_pods(west).await;
    a_control_plane_survives_kill_and_start(east).await;
}

async fn pods_answer_by_service_name_across_nodes(east: TestCluster<'_>) {
    let nodes = run(east, "-n demo get pods -o jsonpath={.items[*].spec.nodeName}");
    assert!(nodes.contains("east-1") && nodes.contains("east-2"), "both nodes run pods: {nodes}");
    let url = "http://sandbox-app.demo.svc.cluster.local/";
    // Pods are ready a moment before kube-proxy has heard of it.
    until("the Service's first answer", 60, async || {
        let output = call_from_pod(east, url);
        if output.status.success() { Ok(()) } else { Err(text(&output)) }
    })
    .await;
    let mut answered = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let output = call_from_pod(east, url);
        assert!(output.status.success(), "{}", text(&output));
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["cluster"], "east");
        answered.insert(answer["node"].as_str().unwrap().to_owned());
    }
    assert_eq!(answered.len(), 2, "the Service reaches pods on both nodes: {answered:?}");
}

fn networks_are_as_asked_for(east: TestCluster<'_>, west: TestCluster<'_>) {
    for (cluster, pods, services) in [(east, "10.200.", "10.80."), (west, "10.50.", "10.60.")] {
        let address = run(cluster, "-n demo get pods -o jsonpath={.items[0].status.podIP}");
        assert!(address.starts_with(pods), "{address}");
        let address = run(cluster, "-n demo get service sandbox-app -o jsonpath={.spec.clusterIP}");
        assert!(address.starts_with(services), "{address}");
    }
}

fn logs_exec_and_nodes_are_real(east: TestCluster<'_>) {
    let logs = run(east, "-n demo logs deployment/sandbox-app --all-pods --prefix");
    assert!(logs.contains("GET /"), "requests are logged: {logs}");
    let refused =
        east.kubectl(["exec", "-n", "demo", "deployment/sandbox-app", "--", "sandbox-app", "exit", "7"]);
    assert!(text(&refused).contains("exit code 7"), "{}", text(&refused));
    let runtime = run(east, "get nodes -o jsonpath={.items[*].status.nodeInfo.containerRuntimeVersion}");
    assert!(runtime.contains("containerd://"), "{runtime}");
}

fn an_image_is_loaded_once_and_again_when_it_has_changed(east: TestCluster<'_>) {
    let archive = east.plan().dir.join("own.tar");
    let write = |content: &'static [u8]| {
        let layer = Layer::new().file("/content", content, 0o444);
        Image::new("docker.io/library/own:1").layer(layer).write(&archive).unwrap();
    };
    assert!(!east.has_image("own:1").unwrap());
    write(b"one");
    assert_eq!(east.load_image_where_missing(&archive).unwrap(), ["east-1", "east-2"]);
    assert!(east.has_image("own:1").unwrap() && !east.has_image("own:2").unwrap());
    assert_eq!(east.load_image_where_missing(&archive).unwrap(), [""; 0]);
    write(b"two");
    assert_eq!(east.load_image_where_missing(&archive).unwrap(), ["east-1", "east-2"]);
}

async fn certificate_requests_are_signed(west: TestCluster<'_>) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, "someone");
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    let request = serde_json::json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "someone"},
        "spec": {
            "request": k8s_openapi::ByteString(pem.into_bytes()),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["digital signature", "client auth"],
        },
    });
    let applied = west.kubectl_apply(&request.to_string());
    assert!(applied.status.success(), "{}", text(&applied));
    run(west, "certificate approve someone");
    until("the certificate", 60, async || {
        match run(west, "get csr someone -o jsonpath={.status.certificate}") {
            certificate if certificate.is_empty() => Err("not signed yet".into()),
            _ => Ok(()),
        }
    })
    .await;
}

/// The west cluster's API server, asked from the east's network: whether it can be reached.
fn west_from_east(sandbox: &TestSandbox) -> bool {
    let address = sandbox.cluster("west").plan().first_machine().address.to_string();
    let mut ping = sandbox
        .cluster("east")
        .exec_command(1, ["ping", "-c", "3", "-i", "0.2", "-W", "2", &address])
        .unwrap();
    ping.output().unwrap().status.success()
}

async fn a_cut_separates_two_clusters_until_healed(sandbox: &TestSandbox) {
    assert!(west_from_east(sandbox), "before the cut");
    sandbox.cut("east", "west").await;
    assert!(!west_from_east(sandbox), "during the cut");
    assert!(sandbox.cluster("west").api_ready().await.is_ok(), "this machine is not cut off");
    sandbox.heal().await;
    assert!(west_from_east(sandbox), "after healing");
}

fn round_trip(sandbox: &TestSandbox, from: &str, to: &str) -> Duration {
    let address = sandbox.cluster(to).plan().first_machine().address.to_string();
    let mut ping = sandbox
        .cluster(from)
        .exec_command(1, ["ping", "-c", "10", "-i", "0.2", "-W", "3", &address])
        .unwrap();
    let output = ping.output().unwrap();
    let said = text(&output);
    let best = said
        .split("min/avg/max/mdev = ")
        .nth(1)
        .and_then(|rest| rest.split('/').next())
        .map(str::parse::<f64>);
    Duration::from_secs_f64(best.unwrap_or_else(|| panic!("ping said: {said}")).unwrap() / 1000.0)
}

async fn a_delay_is_felt_in_both_directions(sandbox: &TestSandbox) {
    let before = round_trip(sandbox, "east", "west");
    assert!(before < Duration::from_millis(50), "{before:?}");
    sandbox.delay("east", "west", Duration::from_millis(100)).await;
    for (from, to) in [("east", "west"), ("west", "east")] {
        let delayed = round_trip(sandbox, from, to);
        assert!((200..300).contains(&delayed.as_millis()), "{from} to {to}: {delayed:?}");
    }
    let address = sandbox.cluster("west").plan().api_url();
    // With a delay, no answer comes so early; without one, a busy machine may still need longer now and then.
    until(&format!("an answer of {address}, without a delay from this machine"), 30, async || {
        let host = Instant::now();
        sandbox.cluster("west").api_ready().await.unwrap();
        let took = host.elapsed();
        if took < Duration::from_millis(190) { Ok(()) } else { Err(format!("{took:?}")) }
    })
    .await;
    sandbox.heal().await;
    assert!(round_trip(sandbox, "east", "west") < Duration::from_millis(50), "after healing");
}

fn ready_nodes(cluster: TestCluster<'_>) -> String {
    run(cluster, "get nodes -o jsonpath={.items[*].status.conditions[?(@.type=='Ready')].status}")
}

async fn a_node_that_is_paused_becomes_not_ready_and_comes_back(east: TestCluster<'_>) {
    let second = east.parts(Some("node-2")).unwrap();
    (*east).pause(&second).unwrap();
    until("NotReady", 90, async || match ready_nodes(east) {
        states if states.contains("Unknown") => Ok(()),
        states => Err(states),
    })
    .await;
    (*east).resume(&second).unwrap();
    until("Ready again", 60, async || match ready_nodes(east) {
        states if states == "True True" => Ok(()),
        states => Err(states),
    })
    .await;
}

async fn a_killed_node_comes_back_with_its_pods(west: TestCluster<'_>) {
    west.kill(Component::Node).await;
    let states = west.part_states();
    assert!(
        states
            .iter()
            .any(|(part, state)| part.to_string() == "node-1" && *state != liqo_sandbox::PartState::Running)
    );
    west.start(Component::Node).await;
    until("the application after the node's restart", 90, async || {
        let output = call_from_pod(west, "http://sandbox-app.demo.svc.cluster.local/");
        if output.status.success() { Ok(()) } else { Err(text(&output)) }
    })
    .await;
}

async fn a_control_plane_survives_kill_and_start(east: TestCluster<'_>) {
    let control_plane =
        [Component::Etcd, Component::Apiserver, Component::ControllerManager, Component::Scheduler];
    for component in control_plane {
        east.kill(component).await;
    }
    assert!(east.api_ready().await.is_err());
    (*east).start(&east.parts(None).unwrap(), &|_, _| {}).await.unwrap();
    east.wait_ready().await;
    until("scaling works again", 60, async || {
        run(east, "-n demo scale deployment/sandbox-app --replicas=3");
        match run(east, "-n demo get deployment sandbox-app -o jsonpath={.status.readyReplicas}") {
            ready if ready == "3" => Ok(()),
            ready => Err(format!("{ready} ready")),
        }
    })
    .await;
}
