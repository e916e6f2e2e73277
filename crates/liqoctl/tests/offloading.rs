//! An ordinary application of one cluster runs in another, and looks as if it ran at home: liqo in pods with the chart's own
//! rights, real kubelets and containers on both sides.
//!
//! Needs `make image`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/pair.rs"]
mod pair;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::Duration;

use liqo_sandbox::{ClusterSpec, Component, TestSandbox, testing};
use pair::{CONSUMER, PROVIDER, Pair};
use serde_json::Value;
use tokio::time::Instant;

/// A machine may be ten times busier than ours.
const SOON: Duration = Duration::from_secs(90);
const NODE: &str = "liqo-provider";

#[tokio::test(flavor = "multi_thread")]
async fn an_application_runs_elsewhere_as_if_it_ran_at_home() {
    // Fails here rather than in the middle.
    testing::product_image();
    let sandbox = TestSandbox::start([ClusterSpec::real(CONSUMER, 1), ClusterSpec::real(PROVIDER, 1)]).await;
    let pair = Pair { sandbox };
    for cluster in [CONSUMER, PROVIDER] {
        pair.ok(cluster, &["install", "sandbox"]);
    }
    let command = pair.ok(PROVIDER, &["generate-add-command", "--only-command"]).out;
    pair.ok(CONSUMER, &command.split_whitespace().skip(1).collect::<Vec<_>>());
    the_provider_is_a_node(&pair);
    let remote = its_namespace_is_there_too(&pair).await;
    pods_run_there(&pair, &remote).await;
    the_doors_of_the_kubelet_are_open(&pair).await;
    ended_pods_tell_how(&pair).await;
    where_liqo_runs_only_services_are_shown(&pair).await;
    what_is_deleted_at_home_goes_there(&pair, &remote).await;
    a_provider_that_is_gone_is_replaced(&pair).await;
    a_peer_that_is_drained_is_emptied(&pair).await;
    one_of_two_managers_is_enough(&pair).await;
    nothing_is_left(&pair, &remote).await;
    the_rights_of_the_chart_are_enough(&pair);
}

fn the_provider_is_a_node(pair: &Pair) {
    pair.kubectl(CONSUMER, &["wait", "--for=create", "node", NODE, "--timeout=60s"]);
    pair.kubectl(CONSUMER, &["wait", "--for=condition=Ready", "node", NODE, "--timeout=60s"]);
    let node: Value = read(pair, CONSUMER, &["get", "node", NODE]);
    assert_eq!(node["metadata"]["labels"]["liqo.io/type"], "virtual-node");
    assert_ne!(node["status"]["allocatable"]["cpu"], Value::Null, "{node:#}");
}

/// The application's namespace with what its pods need, offloaded; its name at the provider.
async fn its_namespace_is_there_too(pair: &Pair) -> String {
    pair.apply(CONSUMER, APPLICATION);
    // Pods are refused until their account is there.
    let account = ["-n", "shop", "wait", "--for=create", "serviceaccount/default", "--timeout=60s"];
    pair.kubectl(CONSUMER, &account);
    pair.apply(CONSUMER, EARLY);
    pair.kubectl(CONSUMER, &["-n", "shop", "wait", "--for=condition=Ready", "pod/early", "--timeout=90s"]);
    let words = ["offload", "namespace", "shop", "--pod-offloading-strategy", "Remote"];
    pair.ok(CONSUMER, &words);
    // Twice is once.
    pair.ok(CONSUMER, &words);
    let nsof = ["-n", "shop", "get", "namespaceoffloading", "offloading"];
    eventually("the namespace is there", || {
        let found: Value = read(pair, CONSUMER, &nsof);
        match found["status"]["offloadingPhase"].as_str() {
            Some("Ready") => Ok(()),
            _ => Err(format!("{found:#}")),
        }
    })
    .await;
    let remote = text(&read(pair, CONSUMER, &nsof)["status"]["remoteNamespaceName"]);
    assert!(remote.starts_with("shop-consumer-"), "{remote}");
    pair.kubectl(PROVIDER, &["get", "namespace", &remote]);
    what_was_there_before_stays(pair);
    remote
}

/// A pod is not moved because its namespace may run elsewhere from now on; what to do is told.
fn what_was_there_before_stays(pair: &Pair) {
    let listed = pair.ok(CONSUMER, &["status", "namespace", "shop"]);
    assert!(listed.out.contains("1 pods that were made before"), "{listed}");
    assert!(listed.out.contains("rollout restart"), "{listed}");
    let pod: Value = read(pair, CONSUMER, &["-n", "shop", "get", "pod", "early"]);
    assert_eq!(pod["spec"]["nodeName"], "consumer-1");
    assert_eq!(pod["metadata"]["deletionTimestamp"], Value::Null);
    let seen = pods(pair);
    assert_eq!((&seen[0]["name"], &seen[0]["provider"]), (&Value::from("early"), &Value::Null), "{seen:#}");
    pair.kubectl(CONSUMER, &["-n", "shop", "delete", "pod", "early", "--timeout=60s"]);
}

/// What `liqoctl pods` says.
fn pods(pair: &Pair) -> Value {
    let said = pair.ok(CONSUMER, &["pods", "-n", "shop", "-o", "json"]);
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said}"))
}

async fn pods_run_there(pair: &Pair, remote: &str) {
    pair.apply(CONSUMER, &DEPLOYMENT.replace("      PREFERENCE: {}\n", ""));
    pair.kubectl(CONSUMER, &["-n", "shop", "rollout", "status", "deployment/shop", "--timeout=90s"]);
    let here: Value = read(pair, CONSUMER, &["-n", "shop", "get", "pods"]);
    let there: Value = read(pair, PROVIDER, &["-n", remote, "get", "pods"]);
    let nodes: Vec<&str> = items(&here).iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap()).collect();
    assert_eq!(nodes, [NODE, NODE]);
    assert_eq!(names(&here), names(&there));
    let nodes: Vec<&str> =
        items(&there).iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["provider-1", "provider-1"]);
    let listed = pair.ok(CONSUMER, &["status", "namespace", "shop"]);
    assert!(listed.out.contains("provider"), "{listed}");
    // Nobody needs access to the provider to know where they are.
    let seen = pods(pair);
    assert_eq!(seen.as_array().map(Vec::len), Some(2), "{seen:#}");
    for pod in seen.as_array().unwrap() {
        assert_eq!((&pod["provider"], &pod["node"]), (&"provider".into(), &"provider-1".into()), "{seen:#}");
        assert_eq!((&pod["remoteNamespace"], &pod["why"]), (&remote.into(), &Value::Null), "{seen:#}");
    }
}

/// Everything that a person does with a pod.
async fn the_doors_of_the_kubelet_are_open(pair: &Pair) {
    let pods: Value = read(pair, CONSUMER, &["-n", "shop", "get", "pods"]);
    let pod = names(&pods)[0].clone();
    let said = pair.kubectl(
        CONSUMER,
        &["-n", "shop", "exec", &pod, "--", "/bin/sandbox-app", "get", "http://127.0.0.1:8080/"],
    );
    let answer: Value = serde_json::from_str(&said).unwrap();
    // The ConfigMap and the Secret came along.
    assert_eq!(
        (&answer["cluster"], &answer["pod"]),
        (&Value::from("from the config map"), &Value::from(pod.as_str()))
    );
    let log = pair.kubectl(CONSUMER, &["-n", "shop", "logs", &pod, "--tail=5"]);
    assert!(!log.is_empty());
    let output = pair.sandbox.cluster(CONSUMER).kubectl([
        "-n",
        "shop",
        "exec",
        &pod,
        "--",
        "/bin/sandbox-app",
        "exit",
        "7",
    ]);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    forwarded(pair, &pod);
    followed(pair, &pod);
}

fn kubectl_child(pair: &Pair, words: &[&str]) -> Child {
    let mut command = pair.sandbox.cluster(CONSUMER).kubectl_command();
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::inherit()).stdin(Stdio::null());
    command.spawn().unwrap()
}

fn forwarded(pair: &Pair, pod: &str) {
    let mut child = kubectl_child(pair, &["-n", "shop", "port-forward", pod, ":8080"]);
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port: u16 = line.split(" -> ").next().unwrap().rsplit(':').next().unwrap().parse().expect(&line);
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(pod), "{answer}");
    let _ = child.kill();
    let _ = child.wait();
}

/// A log that is followed shows what is written afterwards.
fn followed(pair: &Pair, pod: &str) {
    let mut child = kubectl_child(pair, &["-n", "shop", "logs", "-f", pod, "--tail=0"]);
    let (sender, lines) = std::sync::mpsc::sync_channel(1024);
    let stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let url = "http://127.0.0.1:8080/echo?marked";
    let deadline = Instant::now() + SOON;
    loop {
        pair.kubectl(CONSUMER, &["-n", "shop", "exec", pod, "--", "/bin/sandbox-app", "get", url]);
        if lines.recv_timeout(Duration::from_secs(1)).is_ok_and(|line| line.contains("marked")) {
            break;
        }
        assert!(Instant::now() < deadline, "nothing was followed");
    }
    let _ = child.kill();
    let _ = child.wait();
    reader.join().unwrap();
}

async fn ended_pods_tell_how(pair: &Pair) {
    for (name, code, phase) in [("well", "0", "Succeeded"), ("badly", "3", "Failed")] {
        pair.apply(CONSUMER, &ENDING.replace("NAME", name).replace("CODE", code));
        let wait = format!("--for=jsonpath={{.status.phase}}={phase}");
        pair.kubectl(CONSUMER, &["-n", "shop", "wait", &wait, "pod", name, "--timeout=60s"]);
        let pod: Value = read(pair, CONSUMER, &["-n", "shop", "get", "pod", name]);
        let ended = &pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"];
        assert_eq!(ended.to_string(), code, "{pod:#}");
    }
}

/// Its own namespace never goes elsewhere, but others may be let to reach what is in it.
async fn where_liqo_runs_only_services_are_shown(pair: &Pair) {
    let refused = pair.fails(CONSUMER, &["offload", "namespace", "liqo"]);
    assert!(refused.err.contains("podOffloadingStrategy Local"), "{refused}");
    pair.ok(CONSUMER, &["offload", "namespace", "liqo", "--pod-offloading-strategy", "Local"]);
    let nsof: Value = read(pair, CONSUMER, &["-n", "liqo", "get", "namespaceoffloading", "offloading"]);
    let remote = text(&nsof["status"]["remoteNamespaceName"]);
    let copies = |kind: &str| {
        let ours = ["-n", &remote, "get", kind, "-l", "virtualkubelet.liqo.io/origin"];
        names(&read(pair, PROVIDER, &ours))
    };
    eventually("its Services are there", || {
        let found = copies("services,endpointslices");
        if found.iter().any(|name| name == "liqo-auth") { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    assert_eq!(copies("secrets,configmaps,shadowpods,persistentvolumeclaims"), Vec::<String>::new());
    pair.ok(CONSUMER, &["unoffload", "namespace", "liqo", "--yes"]);
    pair.kubectl(PROVIDER, &["wait", "--for=delete", "namespace", &remote, "--timeout=60s"]);
}

async fn what_is_deleted_at_home_goes_there(pair: &Pair, remote: &str) {
    pair.kubectl(CONSUMER, &["-n", "shop", "delete", "deployment,pod", "--all", "--timeout=60s"]);
    eventually("the pods are gone on both sides", || {
        let here = names(&read(pair, CONSUMER, &["-n", "shop", "get", "pods"]));
        let there = names(&read(pair, PROVIDER, &["-n", remote, "get", "pods,shadowpods"]));
        if here.is_empty() && there.is_empty() { Ok(()) } else { Err(format!("{here:?} {there:?}")) }
    })
    .await;
    pair.ok(CONSUMER, &["unoffload", "namespace", "shop", "--yes"]);
    pair.kubectl(PROVIDER, &["wait", "--for=delete", "namespace", remote, "--timeout=60s"]);
}

/// The provider's API server is stopped: its pods run at home within the time that is promised.
async fn a_provider_that_is_gone_is_replaced(pair: &Pair) {
    pair.ok(CONSUMER, &["offload", "namespace", "shop"]);
    pair.apply(CONSUMER, &DEPLOYMENT.replace("PREFERENCE: {}", PREFERENCE));
    pair.kubectl(CONSUMER, &["-n", "shop", "rollout", "status", "deployment/shop", "--timeout=90s"]);
    let nodes = running_nodes(pair);
    assert_eq!(nodes, [NODE, NODE], "they prefer the provider");
    let provider = pair.sandbox.cluster(PROVIDER);
    provider.stop(Component::Apiserver).await;
    let gone = Instant::now();
    eventually("the pods run at home", || {
        let nodes = running_nodes(pair);
        if nodes == ["consumer-1", "consumer-1"] { Ok(()) } else { Err(format!("{nodes:?}")) }
    })
    .await;
    let took = gone.elapsed();
    println!("a provider that was stopped was replaced after {took:?}");
    assert!(took < Duration::from_secs(40), "{took:?}");
    provider.start(Component::Apiserver).await;
    provider.wait_ready().await;
    pair.kubectl(CONSUMER, &["wait", "--for=condition=Ready", "node", NODE, "--timeout=60s"]);
    takes_pods(pair).await;
}

/// Kubernetes takes its own taints off a node a moment after that is ready, or not cordoned any more.
async fn takes_pods(pair: &Pair) {
    eventually("the provider's node takes pods", || {
        let node: Value = read(pair, CONSUMER, &["get", "node", NODE]);
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let keeps_off =
            |taint: &Value| taint["key"].as_str().is_some_and(|it| it.starts_with("node.kubernetes.io/"));
        let cordoned = node["spec"]["unschedulable"] == true;
        if cordoned || taints.iter().any(keeps_off) { Err(format!("{:#}", node["spec"])) } else { Ok(()) }
    })
    .await;
}

/// The nodes of the pods that are ready and not on their way out.
fn running_nodes(pair: &Pair) -> Vec<String> {
    let pods: Value = read(pair, CONSUMER, &["-n", "shop", "get", "pods"]);
    let ready = |pod: &&Value| {
        let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
        pod["metadata"]["deletionTimestamp"].is_null()
            && conditions.iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
    };
    items(&pods).iter().filter(ready).map(|pod| text(&pod["spec"]["nodeName"])).collect()
}

/// Starts the application's pods anew, and waits until they run.
fn restart(pair: &Pair) {
    pair.kubectl(CONSUMER, &["-n", "shop", "rollout", "restart", "deployment/shop"]);
    pair.kubectl(CONSUMER, &["-n", "shop", "rollout", "status", "deployment/shop", "--timeout=90s"]);
}

/// Before a provider is worked on: its pods move away, others do not come, and what was agreed on stays.
async fn a_peer_that_is_drained_is_emptied(pair: &Pair) {
    restart(pair);
    assert_eq!(running_nodes(pair), [NODE, NODE], "it answers again, and they prefer it");
    let begun = Instant::now();
    pair.ok(CONSUMER, &["drain", "peer", "provider"]);
    eventually("the pods run at home", || {
        let nodes = running_nodes(pair);
        if nodes == ["consumer-1", "consumer-1"] { Ok(()) } else { Err(format!("{nodes:?}")) }
    })
    .await;
    println!("a provider was drained after {:?}", begun.elapsed());
    restart(pair);
    assert_eq!(running_nodes(pair), ["consumer-1", "consumer-1"], "it takes no new ones");
    let contracts = pair.json(CONSUMER, &["contract", "list"]);
    assert_eq!(contracts[0]["phase"], "Active", "{contracts:#}");
    pair.ok(CONSUMER, &["drain", "peer", "provider", "--undo"]);
    takes_pods(pair).await;
    restart(pair);
    assert_eq!(running_nodes(pair), [NODE, NODE], "they may go there again");
}

/// Pods of offloaded namespaces are made and run though the manager that led died, and no other can take its place.
async fn one_of_two_managers_is_enough(pair: &Pair) {
    let manager = ["-n", "liqo", "rollout", "status", "deployment/liqo-controller-manager", "--timeout=90s"];
    pair.ok(CONSUMER, &["install", "sandbox", "--enable-ha"]);
    pair.kubectl(CONSUMER, &manager);
    let lease = ["-n", "liqo", "get", "lease", "liqo-controller-manager"];
    // The one that led before may still be ending.
    let leader = eventually("one of those that stay leads", || {
        let lease: Value = read(pair, CONSUMER, &lease);
        let holder = lease["spec"]["holderIdentity"].as_str().and_then(|it| it.split('_').next());
        let pods: Value = read(pair, CONSUMER, &["-n", "liqo", "get", "pods"]);
        let stays = |pod: &&Value| {
            pod["metadata"]["name"].as_str() == holder && pod["metadata"]["deletionTimestamp"].is_null()
        };
        items(&pods)
            .iter()
            .find(stays)
            .map(|pod| text(&pod["metadata"]["name"]))
            .ok_or_else(|| format!("{lease:#}"))
    })
    .await;
    pair.kubectl(CONSUMER, &["cordon", "consumer-1"]);
    let noticed =
        "--for=jsonpath={.spec.taints[?(@.key==\"node.kubernetes.io/unschedulable\")].effect}=NoSchedule";
    pair.kubectl(CONSUMER, &["wait", noticed, "node/consumer-1", "--timeout=60s"]);
    let killed = Instant::now();
    pair.kubectl(CONSUMER, &["-n", "liqo", "delete", "pod", &leader, "--grace-period=0", "--force"]);
    pair.kubectl(CONSUMER, &["-n", "shop", "scale", "deployment/shop", "--replicas=4"]);
    eventually("more pods run", || {
        let nodes = running_nodes(pair);
        if nodes == [NODE; 4] { Ok(()) } else { Err(format!("{nodes:?}")) }
    })
    .await;
    println!("with one manager less, pods ran after {:?}", killed.elapsed());
    let left: Value = read(pair, CONSUMER, &["-n", "liqo", "get", "pods"]);
    let waits = items(&left).iter().filter(|pod| pod["status"]["phase"] == "Pending").count();
    assert_eq!(waits, 1, "nobody took its place: {left:#}");
    pair.kubectl(CONSUMER, &["uncordon", "consumer-1"]);
    pair.kubectl(CONSUMER, &manager);
    pair.kubectl(CONSUMER, &["-n", "shop", "scale", "deployment/shop", "--replicas=2"]);
}

/// Parting with pods running: they come home, and the provider keeps nothing of them.
async fn nothing_is_left(pair: &Pair, remote: &str) {
    restart(pair);
    pair.ok(CONSUMER, &["unpeer", "provider"]);
    pair.kubectl(CONSUMER, &["wait", "--for=delete", "node", NODE, "--timeout=90s"]);
    pair.kubectl(PROVIDER, &["wait", "--for=delete", "namespace", remote, "--timeout=90s"]);
    eventually("the pods run at home", || {
        let nodes = running_nodes(pair);
        if nodes == ["consumer-1", "consumer-1"] { Ok(()) } else { Err(format!("{nodes:?}")) }
    })
    .await;
}

/// Nothing that the managers tried was forbidden.
fn the_rights_of_the_chart_are_enough(pair: &Pair) {
    for cluster in [CONSUMER, PROVIDER] {
        let log = pair.kubectl(cluster, &["-n", "liqo", "logs", "deployment/liqo-controller-manager"]);
        // Nobody may make anything in a namespace that is going, which is no matter of rights.
        let going = "because it is being terminated";
        let forbidden: Vec<&str> =
            log.lines().filter(|line| line.contains("forbidden") && !line.contains(going)).collect();
        assert!(forbidden.is_empty(), "{cluster}:\n{}", forbidden.join("\n"));
    }
}

fn read(pair: &Pair, cluster: &str, words: &[&str]) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["-o", "json"]).collect();
    serde_json::from_str(&pair.kubectl(cluster, &words)).unwrap()
}

fn items(list: &Value) -> &Vec<Value> {
    list["items"].as_array().unwrap()
}

fn names(list: &Value) -> Vec<String> {
    items(list).iter().map(|item| text(&item["metadata"]["name"])).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

async fn eventually<T>(what: &str, look: impl Fn() -> Result<T, String>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        match look() {
            Ok(found) => return found,
            Err(state) if Instant::now() > deadline => panic!("not within {SOON:?}: {what}; now: {state}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

const APPLICATION: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shop, namespace: shop}
data: {name: from the config map}
---
apiVersion: v1
kind: Secret
metadata: {name: shop, namespace: shop}
stringData: {word: open sesame}
";

const EARLY: &str = "
apiVersion: v1
kind: Pod
metadata: {name: early, namespace: shop}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: app
    image: localhost/liqo/sandbox-app:1
    imagePullPolicy: Never
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      PREFERENCE: {}
      terminationGracePeriodSeconds: 1
      containers:
      - name: app
        image: localhost/liqo/sandbox-app:1
        imagePullPolicy: Never
        env:
        - {name: CLUSTER_NAME, valueFrom: {configMapKeyRef: {name: shop, key: name}}}
        - {name: WORD, valueFrom: {secretKeyRef: {name: shop, key: word}}}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        resources: {requests: {cpu: 10m, memory: 8Mi}, limits: {memory: 32Mi}}
        securityContext:
          allowPrivilegeEscalation: false
          runAsNonRoot: true
          capabilities: {drop: [ALL]}
";

const PREFERENCE: &str = "affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 100
            preference: {matchExpressions: [{key: liqo.io/type, operator: In, values: [virtual-node]}]}";

const ENDING: &str = "
apiVersion: v1
kind: Pod
metadata: {name: NAME, namespace: shop}
spec:
  restartPolicy: Never
  containers:
  - name: app
    image: localhost/liqo/sandbox-app:1
    imagePullPolicy: Never
    args: [exit, \"CODE\"]
    securityContext:
      allowPrivilegeEscalation: false
      runAsNonRoot: true
      capabilities: {drop: [ALL]}
";
