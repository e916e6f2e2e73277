//! `kubectl top`: real metrics-servers on both sides, a real kubelet and a real container at the provider, and the figures
//! at home are those.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/lender.rs"]
mod lender;
#[path = "support/metrics_server.rs"]
mod metrics_server;
#[path = "support/toolbox.rs"]
mod toolbox;
#[path = "support/world.rs"]
mod world;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use lender::{Lender, Reached};
use liqo_core::Quantity;
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use metrics_server::MetricsServer;
use serde_json::{Value, json};
use world::{Process, bind, eventually, host, install, namespace, put, us};

const HERE: &str = "shop";
const THERE: &str = "shop-us-123456";
const POD: &str = "busy";
/// What the container may use, in cores.
const LIMIT: f64 = 0.2;
/// What its program holds, in bytes.
const HELD: f64 = 24e6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_top_tells_what_a_pod_uses_at_its_provider() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("a", 1), ClusterSpec::real("b", 1)]).await;
    let (consumer, provider) = (sandbox.cluster("a"), sandbox.cluster("b"));
    let (here, there) = (consumer.client().await, provider.client().await);
    toolbox::load(&provider);
    install(&here).await;
    let certificate = host(&there).await;
    let lender = Lender::new(1, "milan");
    namespace(&here, &lender.namespace).await;
    lender.know(&here, &Reached::of(&provider).await, &certificate).await;
    lender.lend(&here, &[("cpu", "4"), ("memory", "8Gi"), ("pods", "50")]).await;
    let _process = Process::start(&consumer, |_| {}).await;
    world::wait_ready(&here, &lender.node(), "True", "ProviderReachable").await;
    map(&here, &there, &lender).await;
    run(&here, &there, &lender).await;
    let _servers = (MetricsServer::start(&provider).await, MetricsServer::start(&consumer).await);

    let (told, measured) =
        eventually("metrics-server at home tells of the pod what its kubelet says", || async {
            let told = used(&consumer, HERE)?;
            // A node is told of after two looks, a new container after one.
            raw(&consumer, &format!("/apis/metrics.k8s.io/v1beta1/nodes/{}", lender.node()))?;
            // The first figures are of a time in which the container only started. And on a busy machine it may have got less
            // then than it gets now, while its kubelet tells of all that time.
            let measured = by_the_kubelet(&provider)?;
            let cores = told.cores > LIMIT / 4.0 && told.cores <= measured.cores * 1.5;
            let memory = told.memory >= HELD
                && told.memory >= measured.memory * 0.8
                && told.memory <= measured.memory * 1.2;
            if cores && memory { Ok((told, measured)) } else { Err(format!("{told:?} {measured:?}")) }
        })
        .await;
    println!("at home {told:?}, its kubelet {measured:?}");
    assert!(told.cores <= LIMIT * 1.5, "{told:?} {measured:?}");

    top_prints_it(&consumer, &lender);
    each_node_is_asked_by_its_own_path(&consumer, &lender);
}

/// As the guide says: all virtual nodes have one address, and only the path tells which of them is meant.
fn each_node_is_asked_by_its_own_path(consumer: &TestCluster<'_>, lender: &Lender) {
    let node = lender.node();
    let text = raw(consumer, &format!("/api/v1/nodes/{node}/proxy/nodes/{node}/stats/summary")).unwrap();
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["node"]["nodeName"], node.as_str());
    assert_eq!(summary["pods"][0]["podRef"]["name"], POD, "{text}");
    let other = raw(consumer, &format!("/api/v1/nodes/{node}/proxy/nodes/other/stats/summary"));
    assert!(other.is_err(), "{other:?}");
}

/// Maps the namespace, and lets us see there what a provider lets a consumer see.
async fn map(here: &kube::Client, there: &kube::Client, lender: &Lender) {
    namespace(here, HERE).await;
    namespace(there, THERE).await;
    let rules = json!([{ "apiGroups": ["metrics.k8s.io"], "resources": ["pods"], "verbs": ["list"] }]);
    bind(there, Some(THERE), "us", &rules, &us()).await;
    let map = json!({
        "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "NamespaceMap",
        "metadata": { "name": "milan", "namespace": lender.namespace },
        "spec": { "desiredMapping": { HERE: THERE } },
        "status": { "currentMapping": { HERE: { "remoteNamespace": THERE, "phase": "Accepted" } } },
    });
    put(here, &map).await;
}

/// A pod here, and the one behind it there, which holds some memory and uses all the CPU that it gets.
async fn run(here: &kube::Client, there: &kube::Client, lender: &Lender) {
    let script = format!("held=$(printf '%{HELD}s' x); while :; do :; done");
    let pod = |more: &Value| {
        let mut spec = json!({
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "main", "image": toolbox::IMAGE, "imagePullPolicy": "Never",
                "command": ["/bin/sh", "-c", script],
                "resources": { "limits": { "cpu": format!("{}m", LIMIT * 1000.0), "memory": "256Mi" } },
            }],
        });
        more.as_object().unwrap().iter().for_each(|(field, value)| spec[field] = value.clone());
        serde_json::from_value::<Pod>(json!({ "metadata": { "name": POD }, "spec": spec })).unwrap()
    };
    let local = json!({ "nodeName": lender.node(), "tolerations": [{ "operator": "Exists" }] });
    for (client, namespace, pod) in [(there, THERE, pod(&json!({}))), (here, HERE, pod(&local))] {
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        // The account of a new namespace is there a moment later.
        eventually("the pod is taken", || async {
            match pods.create(&PostParams::default(), &pod).await {
                Ok(_) => Ok(()),
                Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }
    let pods: Api<Pod> = Api::namespaced(there.clone(), THERE);
    eventually("the pod runs", || async {
        let status = pods.get(POD).await.unwrap().status.unwrap_or_default();
        let running = status.phase.as_deref() == Some("Running");
        if running { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    // As the room of reflection would: metrics-server tells of no pod that does not run.
    let running = json!({ "status": { "phase": "Running" } });
    let pods: Api<Pod> = Api::namespaced(here.clone(), HERE);
    pods.patch_status(POD, &PatchParams::default(), &Patch::Merge(&running)).await.unwrap();
}

/// Cores and bytes.
#[derive(Clone, Copy, Debug)]
struct Used {
    cores: f64,
    memory: f64,
}

fn raw(cluster: &TestCluster<'_>, path: &str) -> Result<String, String> {
    let output = cluster.kubectl(["get", "--raw", path]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(String::from_utf8(output.stdout).unwrap()) } else { Err(said) }
}

/// What a cluster's metrics-server says of the pod, through the cluster's API server.
fn used(cluster: &TestCluster<'_>, namespace: &str) -> Result<Used, String> {
    let text = raw(cluster, &format!("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods/{POD}"))?;
    let found: Value = serde_json::from_str(&text).unwrap();
    let [container] = found["containers"].as_array().unwrap().as_slice() else { return Err(text) };
    assert_eq!(container["name"], "main");
    let amount = |name: &str| {
        let text = container["usage"][name].as_str().unwrap();
        text.parse::<Quantity>().unwrap().nanos() as f64 / 1e9
    };
    Ok(Used { cores: amount("cpu"), memory: amount("memory") })
}

/// What the provider's kubelet itself says of the container: its average since it started.
fn by_the_kubelet(provider: &TestCluster<'_>) -> Result<Used, String> {
    let node = &provider.plan().first_machine().node_name;
    let text = raw(provider, &format!("/api/v1/nodes/{node}/proxy/metrics/resource"))?;
    let line = |name: &str| {
        let of_pod = format!("pod=\"{POD}\"");
        let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")) && line.contains(&of_pod));
        let line = line.ok_or_else(|| format!("no {name} of {POD} in {text}"))?;
        let mut words =
            line.rsplit_once('}').unwrap().1.split_whitespace().map(|it| it.parse::<f64>().unwrap());
        Ok::<_, String>((words.next().unwrap(), words.next()))
    };
    let (seconds, at) = line("container_cpu_usage_seconds_total")?;
    let (started, _) = line("container_start_time_seconds")?;
    let (memory, _) = line("container_memory_working_set_bytes")?;
    Ok(Used { cores: seconds / (at.unwrap() / 1e3 - started), memory })
}

/// What a person reads.
fn top_prints_it(consumer: &TestCluster<'_>, lender: &Lender) {
    let table = |arguments: &[&str]| {
        let output = consumer.kubectl(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        println!("kubectl {}\n{text}", arguments.join(" "));
        text
    };
    let cells = |text: &str, name: &str| -> Vec<String> {
        let line = text.lines().find(|line| line.split_whitespace().any(|word| word == name));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).split_whitespace().map(str::to_owned).collect()
    };
    let number = |cell: &str, unit: &str| -> f64 { cell.strip_suffix(unit).unwrap().parse().unwrap() };
    let plausible = |cpu: &str, memory: &str| {
        let (millicores, mebibytes) = (number(cpu, "m"), number(memory, "Mi"));
        assert!((1.0..=LIMIT * 1500.0).contains(&millicores), "{cpu}");
        assert!((HELD / 1.1e6..=256.0).contains(&mebibytes), "{memory}");
    };
    let pod = cells(&table(&["top", "pod", "-n", HERE]), POD);
    plausible(&pod[1], &pod[2]);
    let container = cells(&table(&["top", "pod", "-n", HERE, "--containers"]), POD);
    assert_eq!(container[1], "main");
    plausible(&container[2], &container[3]);
    let node = cells(&table(&["top", "node"]), &lender.node());
    plausible(&node[1], &node[3]);
    // Shares are of what the contract lends.
    let share = number(&node[1], "m") / 4000.0 * 100.0;
    assert!((number(&node[2], "%") - share).abs() <= 1.0, "{node:?}");
}
