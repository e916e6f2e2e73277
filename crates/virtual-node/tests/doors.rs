//! kubectl against a virtual node: a real API server asks our doors, we ask another one, and a real container answers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/lender.rs"]
mod lender;
#[path = "support/toolbox.rs"]
mod toolbox;
#[path = "support/world.rs"]
mod world;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use lender::{Certified, Lender, Reached, certify};
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use serde_json::{Value, json};
use tokio::time::Instant;
use world::{Process, bind, eventually, host, install, namespace, put, us};

const HERE: &str = "shop";
const THERE: &str = "shop-us-123456";
/// Ends the first time, and stays the second.
const PAST: &str = "if [ -e /past/1 ]; then echo second life; while true; do sleep 1; done; fi; \
                    echo first life > /past/1; echo first life; exit 3";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_reaches_the_containers_of_a_provider_through_its_node() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("a", 1), ClusterSpec::real("b", 1)]).await;
    let (consumer, provider) = (sandbox.cluster("a"), sandbox.cluster("b"));
    let (here, there) = (consumer.client().await, provider.client().await);
    install(&here).await;
    let certificate = host(&there).await;
    let lender = Lender::new(1, "milan");
    namespace(&here, &lender.namespace).await;
    lender.know(&here, &Reached::of(&provider).await, &certificate).await;
    lender.lend(&here, &[("cpu", "4"), ("memory", "8Gi"), ("pods", "50")]).await;
    let process = Process::start(&consumer, |_| {}).await;
    world::wait_ready(&here, &lender.node(), "True", "ProviderReachable").await;
    map(&here, &there, &lender).await;
    toolbox::load(&provider);
    run(&here, &there, &lender).await;

    let kubectl = Kubectl { cluster: &consumer };
    logs_are_read(&kubectl);
    logs_are_followed(&kubectl);
    commands_run_and_tell_how_they_ended(&kubectl);
    a_terminal_is_a_terminal(&kubectl);
    one_can_attach(&kubectl);
    ports_are_forwarded(&kubectl).await;
    files_are_copied_both_ways(&kubectl);
    what_goes_wrong_is_told(&kubectl);
    only_who_may_is_answered(&here, &consumer, &process).await;
    println!("{}", process.metrics());
    assert!(process.metric("liqo_virtual_node_door_requests_total{door=\"exec\",code=\"101\"}") >= 3.0);
    eventually("all streams end", || async {
        let open = process.metric("liqo_virtual_node_door_streams");
        if open == 0.0 { Ok(()) } else { Err(open.to_string()) }
    })
    .await;
}

/// Maps the namespace, and lets us do there what a provider lets a consumer do.
async fn map(here: &kube::Client, there: &kube::Client, lender: &Lender) {
    namespace(here, HERE).await;
    namespace(there, THERE).await;
    let rules = json!([
        { "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"] },
        { "apiGroups": [""], "resources": ["pods/log"], "verbs": ["get"] },
        { "apiGroups": [""], "resources": ["pods/exec", "pods/attach", "pods/portforward"], "verbs": ["create", "get"] },
    ]);
    bind(there, Some(THERE), "us", &rules, &us()).await;
    let map = json!({
        "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "NamespaceMap",
        "metadata": { "name": "milan", "namespace": lender.namespace },
        "spec": { "desiredMapping": { HERE: THERE } },
        "status": { "currentMapping": { HERE: { "remoteNamespace": THERE, "phase": "Accepted" } } },
    });
    put(here, &map).await;
}

/// A pod here, and the one behind it there.
async fn run(here: &kube::Client, there: &kube::Client, lender: &Lender) {
    let script = "echo first; echo second; (while true; do echo tick; sleep 1; done) & \
                  while read line; do echo \"heard $line\"; done; wait";
    let containers = json!([
        {
            "name": "main", "image": toolbox::IMAGE, "imagePullPolicy": "Never", "stdin": true,
            "command": ["/bin/sh", "-c", script],
        },
        { "name": "web", "image": "localhost/liqo/sandbox-app:1", "imagePullPolicy": "Never" },
        // Has a past: it ended once, and runs.
        {
            "name": "again", "image": toolbox::IMAGE, "imagePullPolicy": "Never",
            "command": ["/bin/sh", "-c", PAST],
            "volumeMounts": [{ "name": "past", "mountPath": "/past" }],
        },
    ]);
    let pod = |more: Value| {
        let volumes = json!([{ "name": "past", "emptyDir": {} }]);
        let mut spec =
            json!({ "containers": containers, "volumes": volumes, "terminationGracePeriodSeconds": 1 });
        for (field, value) in more.as_object().unwrap() {
            spec[field] = value.clone();
        }
        serde_json::from_value::<Pod>(json!({ "metadata": { "name": "web-0" }, "spec": spec })).unwrap()
    };
    let at = |client: &kube::Client, namespace: &str| Api::<Pod>::namespaced(client.clone(), namespace);
    create(&at(there, THERE), &pod(json!({}))).await;
    let local = json!({ "nodeName": lender.node(), "tolerations": [{ "operator": "Exists" }] });
    create(&at(here, HERE), &pod(local)).await;
    let status = eventually("the pod runs", || async {
        let status = at(there, THERE).get("web-0").await.unwrap().status.unwrap_or_default();
        let containers = || status.container_statuses.iter().flatten();
        let ready = containers().filter(|it| it.ready).count();
        let again = containers().any(|it| it.name == "again" && it.restart_count > 0);
        if ready == 3 && again { Ok(status) } else { Err(format!("{status:?}")) }
    })
    .await;
    let status = json!({ "status": { "phase": "Running", "containerStatuses": status.container_statuses } });
    at(here, HERE).patch_status("web-0", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

async fn create(pods: &Api<Pod>, pod: &Pod) {
    eventually("create", || async {
        match pods.create(&PostParams::default(), pod).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
            // The account of a new namespace is there a moment later.
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

struct Kubectl<'a> {
    cluster: &'a TestCluster<'a>,
}

impl Kubectl<'_> {
    fn output(&self, arguments: &[&str]) -> Output {
        self.cluster.kubectl(["-n", HERE].iter().chain(arguments))
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "kubectl {arguments:?}: {}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, while one can talk to it.
    fn start(&self, arguments: &[&str]) -> Running {
        let mut command = self.cluster.kubectl_command();
        command.args(["-n", HERE]).args(arguments);
        Running(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    /// The same, in a terminal, with these lines typed.
    fn in_terminal(&self, arguments: &str, typed: &str) -> (String, i32) {
        let kubectl = self.cluster.kubectl_command();
        let line = format!("{} -n {HERE} {arguments}", kubectl.get_program().to_string_lossy());
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm");
        for (name, value) in kubectl.get_envs() {
            command.env(name, value.unwrap());
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        (said(&output), output.status.code().unwrap())
    }
}

/// A kubectl that goes on; dropping it ends it.
struct Running(Child);

impl Running {
    fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        BufReader::new(self.0.stdout.take().unwrap()).lines().map(Result::unwrap)
    }

    fn type_line(&mut self, text: &str) {
        self.0.stdin.as_mut().unwrap().write_all(format!("{text}\n").as_bytes()).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn logs_are_read(kubectl: &Kubectl<'_>) {
    let all = kubectl.run(&["logs", "web-0", "-c", "main"]);
    assert!(all.starts_with("first\nsecond\n"), "{all}");
    let tail = kubectl.run(&["logs", "web-0", "-c", "main", "--tail=1", "--timestamps"]);
    assert_eq!(tail.lines().count(), 1, "{tail}");
    assert!(tail.contains('T') && tail.trim_end().ends_with("tick"), "{tail}");
    let bytes = kubectl.run(&["logs", "web-0", "-c", "main", "--limit-bytes=5"]);
    assert_eq!(bytes, "first");
    let none = kubectl.run(&["logs", "web-0", "-c", "main", "--since-time=2100-01-01T00:00:00Z"]);
    assert_eq!(none, "");
    let previous = kubectl.output(&["logs", "web-0", "-c", "main", "--previous"]);
    assert!(said(&previous).contains("previous terminated container"), "{}", said(&previous));
    let past = kubectl.run(&["logs", "web-0", "-c", "again", "--previous"]);
    assert_eq!(past, "first life\n");
}

fn logs_are_followed(kubectl: &Kubectl<'_>) {
    let mut following = kubectl.start(&["logs", "web-0", "-c", "main", "-f", "--tail=1"]);
    let ticks = following.lines().filter(|line| line == "tick").take(4).count();
    assert_eq!(ticks, 4);
    let since = kubectl.run(&["logs", "web-0", "-c", "main", "--since=2s"]);
    assert!(!since.contains("first") && since.lines().count() <= 5, "{since}");
}

fn commands_run_and_tell_how_they_ended(kubectl: &Kubectl<'_>) {
    let exec = ["exec", "web-0", "-c", "main", "--"];
    let with = |more: &[&'static str]| [&exec[..], more].concat();
    assert_eq!(kubectl.run(&with(&["/bin/sh", "-c", "echo out; echo err >&2"])), "out\n");
    let both = kubectl.output(&with(&["/bin/sh", "-c", "echo out; echo err >&2; exit 7"]));
    assert_eq!(both.status.code(), Some(7), "{}", said(&both));
    let err = String::from_utf8_lossy(&both.stderr).into_owned();
    assert!(err.starts_with("err\n") && err.contains("exit code 7"), "{err}");
    let odd = kubectl.run(&with(&["/bin/sh", "-c", "printf '%s' \"$0\"", "a b&c=d%20?/\u{e9}"]));
    assert_eq!(odd, "a b&c=d%20?/\u{e9}");
    // What goes in comes out, however much it is.
    let mut copying = kubectl.start(&["exec", "-i", "web-0", "-c", "main", "--", "/bin/cat"]);
    let mut stdin = copying.0.stdin.take().unwrap();
    let sent: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
    let to_send = sent.clone();
    let sender = std::thread::spawn(move || stdin.write_all(&to_send).unwrap());
    let mut received = Vec::new();
    copying.0.stdout.as_mut().unwrap().read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
}

fn a_terminal_is_a_terminal(kubectl: &Kubectl<'_>) {
    let command = "exec -it web-0 -c main -- /bin/sh";
    let (text, code) = kubectl.in_terminal(command, "test -t 0 && echo is-a-''terminal\nexit 3\n");
    assert!(text.contains("is-a-terminal"), "{text}");
    assert_eq!(code, 3, "{text}");
}

fn one_can_attach(kubectl: &Kubectl<'_>) {
    let mut attached = kubectl.start(&["attach", "-i", "web-0", "-c", "main"]);
    let lines = attached.lines();
    attached.type_line("you");
    let heard = lines.take(60).find(|line| line == "heard you");
    assert!(heard.is_some());
}

async fn ports_are_forwarded(kubectl: &Kubectl<'_>) {
    let mut forwarding = kubectl.start(&["port-forward", "pod/web-0", ":8080"]);
    // Kept: kubectl ends when nobody reads what it says.
    let mut lines = forwarding.lines();
    let line = lines.next().unwrap();
    let port: u16 = line.split(' ').find_map(|word| word.strip_prefix("127.0.0.1:")?.parse().ok()).unwrap();
    for number in 0..5 {
        let answer = get(port).await;
        if !answer.starts_with("HTTP/1.1 200") || !answer.contains("\"cluster\"") {
            let mut stderr = forwarding.0.stderr.take().unwrap();
            drop(forwarding);
            let mut said = String::new();
            stderr.read_to_string(&mut said).unwrap();
            panic!("{number}: {answer}; kubectl: {said}");
        }
    }
}

/// What the server behind a local port answers; then what went wrong, if something did.
async fn get(port: u16) -> String {
    let asking = async {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let request = b"GET / HTTP/1.1\r\nHost: web\r\nConnection: close\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, request).await.unwrap();
        let mut answer = Vec::new();
        let end = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut answer).await;
        format!(
            "{}{}",
            String::from_utf8_lossy(&answer),
            end.err().map(|error| error.to_string()).unwrap_or_default()
        )
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap_or_else(|_| "no answer".to_owned())
}

fn files_are_copied_both_ways(kubectl: &Kubectl<'_>) {
    let directory = kubectl.cluster.plan().dir.join("copied");
    std::fs::create_dir_all(&directory).unwrap();
    let (to, from) = (directory.join("to"), directory.join("from"));
    let content = "some content\n".repeat(10_000);
    std::fs::write(&to, &content).unwrap();
    kubectl.run(&["cp", "-c", "main", to.to_str().unwrap(), "web-0:/tmp/file"]);
    kubectl.run(&["cp", "-c", "main", "web-0:/tmp/file", from.to_str().unwrap()]);
    assert!(std::fs::read_to_string(&from).unwrap() == content);
}

fn what_goes_wrong_is_told(kubectl: &Kubectl<'_>) {
    let missing = kubectl.output(&["exec", "web-0", "-c", "main", "--", "/bin/none"]);
    assert!(!missing.status.success() && said(&missing).contains("no such file"), "{}", said(&missing));
    // A pod that is on the node, in a namespace that is not offloaded.
    let elsewhere = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "alone", "namespace": "default" },
        "spec": {
            "nodeName": "liqo-milan", "tolerations": [{ "operator": "Exists" }],
            "containers": [{ "name": "main", "image": "none" }],
        },
    });
    let applied = kubectl.cluster.kubectl_apply(&elsewhere.to_string());
    assert!(applied.status.success(), "{}", said(&applied));
    let refused = kubectl.cluster.kubectl(["logs", "-n", "default", "alone"]);
    assert!(
        said(&refused).contains("the namespace default is not offloaded to liqo-milan"),
        "{}",
        said(&refused)
    );
}

/// Asks the doors directly, without an API server between.
async fn ask(
    address: std::net::SocketAddr,
    path: &str,
    identity: Option<&Certified>,
    token: Option<&str>,
) -> (u16, String) {
    let mut command = tokio::process::Command::new("curl");
    command.args(["-sk", "-m", "20", "-w", "\n%{http_code}", &format!("https://{address}{path}")]);
    let directory = std::env::temp_dir().join(format!("vnode-doors-{}", std::process::id()));
    if let Some((certificate, key)) = identity {
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("crt"), certificate).unwrap();
        std::fs::write(directory.join("key"), key).unwrap();
        command.arg("--cert").arg(directory.join("crt")).arg("--key").arg(directory.join("key"));
    }
    if let Some(token) = token {
        command.args(["-H", &format!("Authorization: Bearer {token}")]);
    }
    let output = command.output().await.unwrap();
    let _ = std::fs::remove_dir_all(&directory);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, code) = text.rsplit_once('\n').unwrap_or(("", "0"));
    (code.parse().unwrap_or(0), body.to_owned())
}

async fn only_who_may_is_answered(here: &kube::Client, consumer: &TestCluster<'_>, process: &Process) {
    let started = Instant::now();
    let address = process.address;
    let logs = format!("/containerLogs/{HERE}/web-0/main?tailLines=1");
    assert_eq!(ask(address, &logs, None, None).await.0, 401);
    assert_eq!(ask(address, "/healthz", None, Some("no-token")).await.0, 401);
    let stranger = certify(here, "stranger").await;
    for path in [
        logs.as_str(),
        "/exec/shop/web-0/main?command=id",
        "/pods",
        "/stats/summary",
        "/metrics/resource",
        "/healthz",
    ] {
        assert_eq!(ask(address, path, Some(&stranger), None).await.0, 403, "{path}");
    }
    assert_eq!(ask(address, "/containerLogs/shop/none/main", Some(&stranger), None).await.0, 403);
    assert_eq!(
        ask(address, "/containerLogs/..%2f..%2fsecrets/web-0/main", Some(&stranger), None).await.0,
        403
    );
    // Somebody whom another authority vouches for does not even get to ask.
    let key = rcgen::KeyPair::generate().unwrap();
    let mut forged = rcgen::CertificateParams::default();
    forged.distinguished_name.push(rcgen::DnType::OrganizationName, "system:masters");
    let forged = (forged.self_signed(&key).unwrap().pem(), key.serialize_pem());
    assert_eq!(ask(address, "/healthz", Some(&forged), None).await.0, 0);
    // Rights to one node are rights to its pods, and not to all nodes.
    let reader = certify(here, "reader").await;
    let rules = json!([{ "apiGroups": [""], "resources": ["nodes/proxy"], "verbs": ["get"], "resourceNames": ["liqo-milan"] }]);
    let subjects = json!([{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader" }]);
    bind(here, None, "reader", &rules, &subjects).await;
    eventually("the reader may read", || async {
        let (code, body) = ask(address, &logs, Some(&reader), None).await;
        if code == 200 && body.trim() == "tick" { Ok(()) } else { Err(format!("{code} {body}")) }
    })
    .await;
    assert_eq!(ask(address, "/exec/shop/web-0/main?command=id", Some(&reader), None).await.0, 403);
    assert_eq!(ask(address, "/pods", Some(&reader), None).await.0, 403);
    // A token of an account with the rights of monitoring.
    let token = consumer.kubectl(["create", "token", "default", "-n", "default"]);
    let token = String::from_utf8(token.stdout).unwrap();
    let rules =
        json!([{ "apiGroups": [""], "resources": ["nodes/stats", "nodes/metrics"], "verbs": ["get"] }]);
    let subjects = json!([{ "kind": "ServiceAccount", "name": "default", "namespace": "default" }]);
    bind(here, None, "monitoring", &rules, &subjects).await;
    eventually("monitoring may ask", || async {
        let (code, body) = ask(address, "/metrics/resource", None, Some(token.trim())).await;
        if code == 200 && body.contains("resource_scrape_error 0") {
            Ok(())
        } else {
            Err(format!("{code} {body}"))
        }
    })
    .await;
    let (code, body) = ask(address, "/stats/summary", None, Some(token.trim())).await;
    let summary: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((code, &summary["node"]["nodeName"]), (200, &json!("liqo-milan")));
    // metrics-server asks where the node's annotation says.
    let node = world::node(here, "liqo-milan").await.unwrap();
    let path = &node["metadata"]["annotations"]["metrics.k8s.io/resource-metrics-path"];
    let (code, body) = ask(address, path.as_str().unwrap(), None, Some(token.trim())).await;
    assert!(code == 200 && body.contains("\nnode_cpu_usage_seconds_total "), "{code} {body}");
    assert_eq!(ask(address, "/nodes/nobody/metrics/resource", None, Some(token.trim())).await.0, 404);
    assert_eq!(ask(address, &logs, None, Some(token.trim())).await.0, 403);
    println!("callers: {:?}", started.elapsed());
}
