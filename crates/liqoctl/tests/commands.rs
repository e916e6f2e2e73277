//! Every command of `liqoctl sandbox`, as a person uses it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/cli.rs"]
mod support;

use std::process::Stdio;
use std::time::Duration;

use tokio::time::Instant;

use support::{Cli, all_text, until};

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn component(cli: &Cli, cluster: &str, name: &str) -> String {
    let status = json(&cli.ok(&["status", "-o", "json"]));
    let clusters = status["clusters"].as_array().unwrap();
    let cluster = clusters.iter().find(|one| one["name"] == cluster).unwrap();
    let components = cluster["components"].as_array().unwrap();
    components.iter().find(|one| one["name"] == name).unwrap()["state"].as_str().unwrap().to_owned()
}

#[test]
fn clusters_without_nodes_can_be_looked_at_broken_and_mended() {
    let cli = Cli::new("commands");
    cli.ok(&["up", "--clusters", "a,b", "--nodes", "0"]);
    status_and_kubeconfig(&cli);
    kubectl_exec_and_logs(&cli);
    components_stop_and_start(&cli);
    network_faults(&cli);
    unknown_things_are_refused(&cli);
    cli.ok(&["down"]);
    cli.assert_no_traces();
}

fn status_and_kubeconfig(cli: &Cli) {
    let status = json(&cli.ok(&["status", "-o", "json"]));
    assert_eq!(status["clusters"][0]["ready"], true, "{status}");
    assert_eq!(status["clusters"][0]["podCIDR"], status["clusters"][1]["podCIDR"], "equal by default");
    assert!(cli.ok(&["status", "-o", "yaml"]).contains("apiServer: https://"));
    assert!(cli.ok(&["status", "-o", "wide"]).contains("apiserver.log"));
    let both = cli.ok(&["kubeconfig"]);
    assert!(both.contains("name: a\n") && both.contains("name: b\n"), "{both}");
    let file = std::env::temp_dir().join(format!("{}.kubeconfig", cli.name));
    std::fs::write(&file, both).unwrap();
    let config = file.to_str().unwrap();
    for name in ["a", "b"] {
        let by_context = ["kubectl", "a", "--", "--kubeconfig", config, "--context", name, "cluster-info"];
        let address = status["clusters"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        let said = cli.ok(&by_context);
        assert!(said.contains(address["apiServer"].as_str().unwrap()), "context {name}: {said}");
    }
    std::fs::remove_file(file).unwrap();
    let one = cli.ok(&["kubeconfig", "b"]);
    assert!(one.contains("current-context: b"), "{one}");
}

fn kubectl_exec_and_logs(cli: &Cli) {
    let version = json(&cli.ok(&["kubectl", "a", "version", "-o", "json"]));
    assert_eq!(version["serverVersion"]["gitVersion"], version["clientVersion"]["gitVersion"], "{version}");
    let failed = cli.run(&["kubectl", "a", "--", "get", "nonsense"]);
    assert_eq!(failed.status.code(), Some(1), "kubectl's own exit code");
    let mine = cli.ok(&["exec", "a", "--", "hostname", "-I"]);
    let status = json(&cli.ok(&["status", "-o", "json"]));
    assert!(status["clusters"][0]["apiServer"].as_str().unwrap().contains(mine.trim()), "{mine}");
    assert_eq!(cli.run(&["exec", "a", "--", "sh", "-c", "exit 42"]).status.code(), Some(42));
    assert!(!cli.ok(&["logs", "a", "apiserver"]).is_empty());
    assert_eq!(cli.ok(&["logs", "a", "apiserver", "--tail", "3"]).lines().count(), 3);
    let mut follow = cli.command(&["logs", "a", "apiserver", "-f"]).stdout(Stdio::piped()).spawn().unwrap();
    assert!(follow.try_wait().unwrap().is_none(), "it goes on");
    follow.kill().unwrap();
    follow.wait().unwrap();
}

fn answers(cli: &Cli, cluster: &str) -> Result<(), String> {
    let output = cli.run(&["kubectl", cluster, "--", "--request-timeout=2s", "get", "--raw", "/readyz"]);
    if output.status.success() { Ok(()) } else { Err(all_text(&output)) }
}

fn components_stop_and_start(cli: &Cli) {
    cli.ok(&["stop", "a", "apiserver"]);
    assert_eq!(component(cli, "a", "apiserver"), "stopped");
    assert!(answers(cli, "a").is_err());
    until("the other cluster, which does not notice", 30, || answers(cli, "b"));
    cli.ok(&["start", "a", "apiserver"]);
    until("ready after the API server's start", 30, || answers(cli, "a"));

    cli.ok(&["pause", "a", "etcd"]);
    assert_eq!(component(cli, "a", "etcd"), "paused");
    cli.ok(&["resume", "a", "etcd"]);
    assert_eq!(component(cli, "a", "etcd"), "running");
    cli.ok(&["pause", "a", "etcd"]);
    cli.ok(&["start", "a"]);
    assert_eq!(component(cli, "a", "etcd"), "running", "start lets a paused component go on");
    until("ready after etcd's pause", 30, || answers(cli, "a"));

    cli.ok(&["kubectl", "a", "--", "create", "namespace", "kept"]);
    cli.ok(&["kill", "a"]);
    assert_eq!(
        (component(cli, "a", "etcd"), component(cli, "a", "apiserver")),
        ("stopped".into(), "stopped".into())
    );
    let said = cli.refused(&["pause", "a", "etcd"]);
    assert!(said.contains("not running") && said.contains("sandbox start a"), "{said}");
    cli.ok(&["start", "a"]);
    cli.ok(&["kubectl", "a", "--", "get", "namespace", "kept"]);
}

/// The best round trip between two clusters in milliseconds; none if they cannot reach each other.
fn ping(cli: &Cli, from: &str, to: &str) -> Option<f64> {
    let address = cli.ok(&["exec", to, "--", "hostname", "-I"]);
    let output = cli.run(&["exec", from, "--", "ping", "-c", "10", "-i", "0.2", "-W", "1", address.trim()]);
    let text = all_text(&output);
    text.split("min/avg/max/mdev = ").nth(1)?.split('/').next()?.parse().ok()
}

fn network_faults(cli: &Cli) {
    assert!(ping(cli, "a", "b").is_some_and(|ms| ms < 20.0));
    cli.ok(&["delay", "a", "b", "100ms"]);
    for (from, to) in [("a", "b"), ("b", "a")] {
        let ms = ping(cli, from, to);
        assert!(ms.is_some_and(|ms| (200.0..300.0).contains(&ms)), "{from} to {to}: {ms:?}");
    }
    let status = json(&cli.ok(&["status", "-o", "json"]));
    assert_eq!(status["faults"]["delays"].as_array().unwrap().len(), 1, "{status}");
    cli.ok(&["delay", "b", "a", "20ms"]);
    let ms = ping(cli, "a", "b");
    assert!(ms.is_some_and(|ms| (40.0..120.0).contains(&ms)), "a new delay replaces the old one: {ms:?}");
    cli.ok(&["cut", "a", "b"]);
    assert_eq!(ping(cli, "a", "b"), None, "a cut works beside a delay");
    cli.ok(&["cut", "b", "host"]);
    assert!(answers(cli, "b").is_err());
    until("the one that is not cut off", 30, || answers(cli, "a"));
    assert!(cli.ok(&["status"]).contains("fault: b and host cannot reach each other"));
    cli.ok(&["heal"]);
    assert!(ping(cli, "a", "b").is_some_and(|ms| ms < 20.0));
    until("b after healing", 60, || answers(cli, "b"));
}

fn unknown_things_are_refused(cli: &Cli) {
    for (arguments, expected) in [
        (&["kubectl", "c", "--", "get", "pods"][..], "there is no cluster \"c\"; known: a, b"),
        (&["cut", "a", "c"], "known: a, b, host"),
        (&["cut", "a", "a"], "two different ends"),
        (&["stop", "a", "scheduler"], "there is no component \"scheduler\"; known: etcd, apiserver"),
        (&["logs", "a", "kubelet"], "there is no component"),
        (&["exec", "a", "--node", "2", "--", "true"], "there is no node \"2\"; known: 1"),
        (&["load-image", "a", "/no/such.tar"], "there is no file /no/such.tar"),
        (&["load-image", "c", env!("CARGO_MANIFEST_PATH")], "there is no cluster \"c\""),
        (&["load-image", "a", env!("CARGO_MANIFEST_PATH")], "no real node"),
    ] {
        let said = cli.refused(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_real_node_runs_images_from_archives_and_comes_back_after_faults() {
    let cli = Cli::new("image");
    let started = Instant::now();
    let description = "clusters:\n- name: solo\n  podCIDR: 10.9.0.0/16\n  serviceCIDR: 10.10.0.0/16\n";
    let mut up =
        cli.command(&["up", "--file", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut up.stdin.take().unwrap(), description.as_bytes()).unwrap();
    assert!(up.wait().unwrap().success());
    assert!(started.elapsed() < Duration::from_secs(120));

    let archive = std::env::temp_dir().join(format!("{}.tar", cli.name));
    liqo_sandbox::image::Image::new("localhost/test/hello:1")
        .layer(liqo_sandbox::image::Layer::new().file(
            "/hello",
            liqo_sandbox::image::sandbox_app_program(),
            0o555,
        ))
        .entrypoint(["/hello"])
        .write(&archive)
        .unwrap();
    cli.ok(&["load-image", "solo", archive.to_str().unwrap()]);
    std::fs::remove_file(&archive).unwrap();
    let run = "run hello --image=localhost/test/hello:1 --image-pull-policy=Never --restart=Never -- exit 0";
    let run: Vec<&str> = ["kubectl", "solo", "--"].into_iter().chain(run.split(' ')).collect();
    cli.ok(&run);
    let phase =
        ["kubectl", "solo", "--", "get", "pod", "hello", "-o", "jsonpath={.status.phase} {.status.podIP}"];
    until("the pod succeeds", 60, || match cli.ok(&phase) {
        said if said.starts_with("Succeeded 10.9.") => Ok(()),
        said => Err(said),
    });
    let said = cli.refused(&["load-image", "solo", env!("CARGO_MANIFEST_PATH")]);
    assert!(said.contains("Is it an OCI or Docker image archive?"), "{said}");
    node_components_stop_and_start(&cli);
    cli.ok(&["down"]);
    cli.assert_no_traces();
}

/// How many processes of the sandbox are this program; a component must never run twice.
fn count(cli: &Cli, program: &str) -> usize {
    let is_it = |line: &&String| {
        line.split_whitespace().nth(2).is_some_and(|path| path.ends_with(&format!("/{program}")))
    };
    cli.traces().iter().filter(is_it).count()
}

fn node_components_stop_and_start(cli: &Cli) {
    cli.ok(&["kill", "solo", "kubelet"]);
    assert_eq!((component(cli, "solo", "node-1/kubelet").as_str(), count(cli, "kubelet")), ("stopped", 0));
    cli.ok(&["start", "solo"]);
    cli.ok(&["start", "solo"]);
    assert_eq!((component(cli, "solo", "node-1/kubelet").as_str(), count(cli, "kubelet")), ("running", 1));
    for part in ["kubelet", "node"] {
        cli.ok(&["pause", "solo", part]);
        assert_eq!(component(cli, "solo", "node-1/kubelet"), "paused");
        cli.ok(&["resume", "solo", part]);
        assert_eq!(component(cli, "solo", "node-1/kubelet"), "running");
    }
    cli.ok(&["stop", "solo", "node"]);
    assert_eq!(component(cli, "solo", "node-1/containerd"), "stopped");
    let said = cli.refused(&["load-image", "solo", env!("CARGO_MANIFEST_PATH")]);
    assert!(said.contains("it is down. Start it: liqoctl sandbox start solo node-1"), "{said}");
    cli.ok(&["start", "solo"]);
    until("DNS runs again after the node's restart", 90, || {
        let dns = [
            "kubectl",
            "solo",
            "--",
            "-n",
            "kube-system",
            "wait",
            "--for=condition=ready",
            "pod",
            "--all",
            "--timeout=5s",
        ];
        let output = cli.run(&dns);
        if output.status.success() { Ok(()) } else { Err(all_text(&output)) }
    });
    assert_eq!((count(cli, "kubelet"), count(cli, "kube-proxy")), (1, 1), "{:?}", cli.traces());
}
