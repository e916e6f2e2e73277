//! `liqoctl logs`, and the logs in a bundle, of pods that really run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/archive.rs"]
mod archive;
#[path = "support/installed.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use archive::Archive;
use liqo_sandbox::ClusterSpec;
use serde_json::{Value, json};
use support::{Installed, put};
use tokio::time::Instant;

/// A container is started within seconds, on a machine that is ten times busier within this.
const DEADLINE: Duration = Duration::from_secs(90);

fn pod(name: &str, component: &str, arguments: &[&str]) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "liqo", "labels": {
            "app.kubernetes.io/part-of": "liqo-rs", "app.kubernetes.io/component": component}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "main", "image": "localhost/liqo/sandbox-app:1", "args": arguments}]},
    })
}

#[tokio::test]
async fn logs_are_shown_followed_and_collected() {
    let cluster = Installed::start_with(ClusterSpec::real("one", 1)).await;
    let none = cluster.ends_with(1, &["logs"]);
    assert!(none.stderr.contains("no pod of liqo is in namespace liqo"), "{none:#?}");
    let client = cluster.cluster().client().await;
    put(&client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "liqo"}})).await;
    // Pods are refused until their account is there.
    cluster.kubectl(&["-n", "liqo", "wait", "--for=create", "serviceaccount/default", "--timeout=60s"]);
    for name in ["manager-a", "manager-b"] {
        put(&client, &pod(name, "controller-manager", &["serve"])).await;
    }
    // It ends at once and says in its log what it was told.
    put(&client, &pod("crash", "gateway", &["serve", "--listen", "token=planted-in-a-log"])).await;
    cluster.kubectl(&[
        "-n",
        "liqo",
        "wait",
        "--for=condition=Ready",
        "pod/manager-a",
        "pod/manager-b",
        "--timeout=120s",
    ]);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "liqo-controller-manager", "namespace": "liqo"}, "spec": {"holderIdentity": "manager-a_0123456789abcdef"}});
    put(&client, &lease).await;
    for name in ["manager-a", "manager-b"] {
        until_it_has_said_something(&cluster, name);
    }
    the_leader_s_log_is_shown(&cluster);
    all_logs_are_merged(&cluster);
    unknown_names_are_refused(&cluster);
    following_goes_on_after_a_restart(&cluster);
    the_log_before_a_restart_is_shown(&cluster);
    a_bundle_has_the_logs_without_secrets(&cluster);
}

/// A container without a probe is ready when its program is started, which is before it has said anything.
fn until_it_has_said_something(cluster: &Installed, pod: &str) {
    let deadline = Instant::now() + DEADLINE;
    loop {
        let log = cluster.kubectl(&["-n", "liqo", "logs", pod]);
        if log.contains("8080") {
            return;
        }
        assert!(Instant::now() < deadline, "{pod} has said only: {log}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn the_leader_s_log_is_shown(cluster: &Installed) {
    let said = cluster.ends_with(0, &["logs", "controller-manager"]);
    assert!(said.stderr.contains("note: of 2 replicas, this is the one that leads"), "{said:#?}");
    assert!(said.stdout.contains("8080") && !said.stdout.contains("[manager"), "{said:#?}");
    let one = cluster.ends_with(0, &["logs", "manager-b", "--tail", "1", "--timestamps"]);
    assert_eq!(one.stdout.lines().count(), 1, "{one:#?}");
    assert!(one.stdout.starts_with("20"), "{one:#?}");
}

fn all_logs_are_merged(cluster: &Installed) {
    let said = cluster.ends_with(0, &["logs", "liqo-controller-manager", "--all", "--timestamps"]);
    let times: Vec<&str> = said
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| word.starts_with("20")))
        .collect();
    assert!(times.len() > 1 && times.is_sorted(), "{said:#?}");
    assert!(said.stdout.contains("[manager-"), "{said:#?}");
    let young = cluster.ends_with(0, &["logs", "manager-a", "--since", "1s"]);
    assert!(young.stdout.lines().count() <= 1, "{young:#?}");
}

fn unknown_names_are_refused(cluster: &Installed) {
    let said = cluster.ends_with(1, &["logs", "nonsense"]);
    assert!(
        said.stderr
            .contains("nothing of liqo is called \"nonsense\". There is: controller-manager, gateway, crash"),
        "{said:#?}"
    );
    let none = cluster.ends_with(1, &["logs", "manager-b", "--previous"]);
    assert!(
        none.stderr.contains("note: no log of manager-b/main")
            && none.stderr.contains("error: none of the logs"),
        "{none:#?}"
    );
    cluster.ends_with(2, &["logs", "-f", "--previous"]);
}

/// A program whose lines are read as they come, ended with the value.
struct Following {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Following {
    fn start(cluster: &Installed, arguments: &[&str]) -> Self {
        let mut child = cluster.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = sync_channel(1000);
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, lines, seen: vec![] }
    }

    /// Waits until this many lines of the start were written.
    fn starts(&mut self, wanted: usize) {
        let deadline = Instant::now() + DEADLINE;
        while self.seen.iter().filter(|line| line.contains("8080")).count() < wanted {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no start number {wanted} in time: {:#?}", self.seen)
                }
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn following_goes_on_after_a_restart(cluster: &Installed) {
    let mut following = Following::start(cluster, &["logs", "manager-b", "-f"]);
    following.starts(1);
    // It may be gone before it has answered.
    let _ = cluster.cluster().kubectl([
        "-n",
        "liqo",
        "exec",
        "manager-b",
        "--",
        "sandbox-app",
        "get",
        "http://127.0.0.1:8080/stop?code=3",
    ]);
    following.starts(2);
    let starts = following.seen.iter().filter(|line| line.contains("8080")).count();
    assert_eq!(starts, 2, "no line comes twice: {:#?}", following.seen);
}

fn the_log_before_a_restart_is_shown(cluster: &Installed) {
    let said = cluster.ends_with(0, &["logs", "manager-b", "--previous"]);
    assert!(said.stdout.contains("8080"), "{said:#?}");
}

/// It goes on crashing: by now it may have been started more than twice.
fn wait_for_a_restart(cluster: &Installed) {
    let ended = "{.status.containerStatuses[0].lastState.terminated.exitCode}";
    let path = format!("--for=jsonpath={ended}");
    cluster.kubectl(&["-n", "liqo", "wait", &path, "pod/crash", "--timeout=120s"]);
}

fn a_bundle_has_the_logs_without_secrets(cluster: &Installed) {
    wait_for_a_restart(cluster);
    let bundle = Archive::read(&cluster.command(&["bundle", "-o", "-"]).output().unwrap().stdout);
    for path in
        ["logs/manager-a/main.log", "logs/manager-b/main.previous.log", "logs/crash/main.log", "nodes.yaml"]
    {
        assert!(bundle.has(path), "{path}: {:#?}", bundle.paths());
    }
    let crash = bundle.text("logs/crash/main.log");
    assert!(
        crash.contains("token=<removed>")
            || crash.contains("token=\"<removed>\"")
            || crash.contains("<removed>"),
        "{crash}"
    );
    assert_eq!(bundle.containing("planted-in-a-log"), Vec::<String>::new());
}
