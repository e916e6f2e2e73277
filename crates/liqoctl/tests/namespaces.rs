//! `liqoctl offload`, `unoffload` and `status namespace` on a real API server, where the test plays the manager.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, ResourceExt};
use liqo_api::NamespaceOffloading;
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use serde_json::{Value, json};
use tokio::time::Instant;

const SOON: Duration = Duration::from_secs(60);

struct World<'a> {
    cluster: TestCluster<'a>,
    client: kube::Client,
}

impl World<'_> {
    fn liqoctl(&self, words: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_liqoctl"));
        command.args(words).arg("--kubeconfig").arg(self.cluster.kubeconfig()).stdin(Stdio::null());
        command.output().unwrap()
    }

    /// Ends with this code; gives all that it said.
    fn says(&self, code: i32, words: &[&str]) -> String {
        let output = self.liqoctl(words);
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        said
    }

    fn api(&self) -> Api<NamespaceOffloading> {
        Api::namespaced(self.client.clone(), "shop")
    }

    /// What a manager would tell.
    async fn tell(&self, phase: &str, clusters: Value) {
        let generation = self.api().get("offloading").await.unwrap().metadata.generation;
        let status = json!({ "status": {
            "offloadingPhase": phase, "remoteNamespaceName": "shop-home-1", "remoteNamespacesConditions": clusters,
            "conditions": [{
                "type": "Valid", "status": "True", "reason": "Accepted", "message": "fine",
                "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z",
            }],
        } });
        self.api().patch_status("offloading", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }
}

fn cluster(required: &str, why: &str, ready: &str, reason: &str, message: &str) -> Value {
    json!([
        { "type": "OffloadingRequired", "status": required, "reason": "Because", "message": why },
        { "type": "Ready", "status": ready, "reason": reason, "message": message },
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn namespaces_are_offloaded_looked_at_and_brought_home() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("home")]).await;
    let cluster = sandbox.cluster("home");
    let client = cluster.client().await;
    let world = World { cluster, client };
    what_is_not_there_is_told(&world).await;
    prepare(&world).await;
    it_is_offloaded_once(&world).await;
    it_is_shown(&world).await;
    custom_resources_are_chosen(&world).await;
    its_pods_are_shown(&world).await;
    it_is_brought_home(&world).await;
}

async fn what_is_not_there_is_told(world: &World<'_>) {
    let said = world.says(1, &["offload", "namespace", "shop"]);
    assert!(
        said.contains("there is no namespace shop") && said.contains("kubectl create namespace shop"),
        "{said}"
    );
    let said = world.says(2, &["offload", "namespace", "shop", "--selector", "a in b"]);
    assert!(said.contains("is no requirement"), "{said}");
    let said = world.says(2, &["offload", "namespace", "shop", "--pod-offloading-strategy", "Sometimes"]);
    assert!(said.contains("LocalAndRemote"), "{said}");
}

async fn prepare(world: &World<'_>) {
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let shop = serde_json::from_value(json!({ "metadata": { "name": "shop" } })).unwrap();
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    let said = world.says(1, &["offload", "namespace", "shop"]);
    assert!(said.contains("is liqo installed?"), "{said}");
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    for definition in liqo_api::crds() {
        let params = PatchParams::apply("test").force();
        definitions.patch(&definition.name_any(), &params, &Patch::Apply(&definition)).await.unwrap();
    }
    let deadline = Instant::now() + SOON;
    for definition in liqo_api::crds() {
        let (spec, version) = (&definition.spec, &definition.spec.versions[0].name);
        let gvk = GroupVersionKind::gvk(&spec.group, version, &spec.names.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &spec.names.plural);
        let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
        while let Err(error) = api.list(&ListParams::default().limit(1)).await {
            assert!(Instant::now() < deadline, "{}: {error}", spec.names.plural);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

async fn it_is_offloaded_once(world: &World<'_>) {
    let words = [
        "offload",
        "namespace",
        "shop",
        "--pod-offloading-strategy",
        "remote",
        "--selector",
        "tier=gold,!spot",
        "--denied-cluster-labels",
        "zone=moon",
        "--no-wait",
    ];
    assert!(world.says(0, &words).contains("namespace shop is offloaded"));
    let made = world.api().get("offloading").await.unwrap();
    let spec = serde_json::to_value(&made.spec).unwrap();
    assert_eq!(spec["podOffloadingStrategy"], "Remote");
    let terms = spec["clusterSelector"]["nodeSelectorTerms"].as_array().unwrap();
    assert_eq!((terms.len(), terms[0]["matchExpressions"].as_array().unwrap().len()), (1, 3), "{spec:#}");
    assert!(world.says(0, &words).contains("like this already"));
    assert_eq!(world.api().get("offloading").await.unwrap().resource_version(), made.resource_version());
    let said = world.says(1, &["offload", "ns", "shop", "--namespace-mapping-strategy", "EnforceSameName"]);
    assert!(said.contains("liqoctl unoffload namespace shop first"), "{said}");
    // What is not said stays; an empty selector means all.
    world.says(0, &["offload", "ns", "shop", "--selector", "", "--no-wait"]);
    let spec = world.api().get("offloading").await.unwrap().spec;
    assert!(spec.cluster_selector.is_none());
    assert_eq!(format!("{:?}", spec.pod_offloading_strategy), "Remote");
    going_back_is_asked_for_and_taken_back(world).await;
    // Nobody has noticed, and that is said.
    let said = world.says(1, &["offload", "ns", "shop", "--timeout", "1s"]);
    assert!(said.contains("waiting for the manager to notice"), "{said}");
}

async fn going_back_is_asked_for_and_taken_back(world: &World<'_>) {
    for (word, noted) in [("--fail-back", "true"), ("--fail-back=300", "300"), ("--fail-back=false", "false")]
    {
        let words = ["offload", "ns", "shop", word, "--no-wait"];
        assert!(world.says(0, &words).contains("is offloaded as you say now"), "{word}");
        assert!(world.says(0, &words).contains("like this already"), "{word}");
        let found = world.api().get("offloading").await.unwrap();
        assert_eq!(found.annotations()["liqo.io/fail-back"], noted);
    }
    // What is not said stays.
    world.says(0, &["offload", "ns", "shop", "--pod-offloading-strategy", "Remote", "--no-wait"]);
    assert_eq!(world.api().get("offloading").await.unwrap().annotations()["liqo.io/fail-back"], "false");
    let said = world.says(2, &["offload", "ns", "shop", "--fail-back=soon"]);
    assert!(said.contains("a number of seconds from 10 to 86400"), "{said}");
}

async fn it_is_shown(world: &World<'_>) {
    let gold =
        cluster("True", "its node is selected", "True", "NamespaceReady", "it is there as shop-home-1");
    let tin = cluster("False", "its node does not match: tier=gold", "False", "NotRequired", "not there");
    world.tell("Ready", json!({ "milan-1": gold, "rome-1": tin })).await;
    let said = world.says(0, &["offload", "ns", "shop"]);
    assert!(said.contains("milan-1: it is there as shop-home-1"), "{said}");
    let said = world.says(0, &["status", "namespace", "shop"]);
    for part in ["Ready", "only in other clusters", "milan-1", "rome-1", "does not match: tier=gold"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let output = world.liqoctl(&["status", "ns", "shop", "-o", "json"]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&seen["phase"], &seen["clusters"][0]["name"]),
        (&json!("Ready"), &json!("milan-1")),
        "{seen:#}"
    );
    let bad = cluster("True", "its node is selected", "False", "NameTaken", "another tenant has it");
    world.tell("AllFailed", json!({ "milan-1": bad })).await;
    let said = world.says(1, &["status", "namespace", "shop"]);
    assert!(said.contains("another tenant has it"), "{said}");
    let said = world.says(1, &["offload", "ns", "shop"]);
    assert!(said.contains("not all clusters take namespace shop"), "{said}");
    assert!(world.says(1, &["status", "namespace", "nowhere"]).contains("there is no namespace nowhere"));
}

async fn custom_resources_are_chosen(world: &World<'_>) {
    world.says(
        0,
        &["offload", "ns", "shop", "--reflect", "example.com/Widget,b.example.com/Gadget", "--no-wait"],
    );
    let kinds = |spec: &liqo_api::NamespaceOffloadingSpec| -> Vec<String> {
        spec.reflect.iter().map(ToString::to_string).collect()
    };
    let spec = world.api().get("offloading").await.unwrap().spec;
    assert_eq!(kinds(&spec), ["b.example.com/Gadget", "example.com/Widget"]);
    // What is not said stays.
    world.says(0, &["offload", "ns", "shop", "--pod-offloading-strategy", "LocalAndRemote", "--no-wait"]);
    assert_eq!(kinds(&world.api().get("offloading").await.unwrap().spec).len(), 2);
    let said = world.says(2, &["offload", "ns", "shop", "--reflect", "apps/Deployment"]);
    assert!(said.contains("only custom resources can be reflected"), "{said}");
    // The API server knows it as well.
    let said = world.says(1, &["offload", "ns", "shop", "--reflect", "net.liqo.io/NetworkConfig"]);
    assert!(said.contains("Liqo's own kinds are not reflected"), "{said}");
    let told = json!({ "status": { "reflected": [{ "group": "example.com", "kind": "Widget", "status": "False",
        "reason": "KindMissing", "message": "this cluster has no kind example.com/Widget" }] } });
    world.api().patch_status("offloading", &PatchParams::default(), &Patch::Merge(&told)).await.unwrap();
    let said = world.says(1, &["status", "ns", "shop"]);
    assert!(said.contains("example.com/Widget is not reflected: this cluster has no kind"), "{said}");
    world.says(0, &["offload", "ns", "shop", "--reflect", "", "--no-wait"]);
    assert!(world.api().get("offloading").await.unwrap().spec.reflect.is_empty());
    let nothing = json!({ "status": { "reflected": null } });
    world.api().patch_status("offloading", &PatchParams::default(), &Patch::Merge(&nothing)).await.unwrap();
}

/// A pod as the webhook, the scheduler and reflection would leave it.
async fn pod(world: &World<'_>, name: &str, labels: Value, node: Option<&str>, status: Value) {
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "shop");
    let pod = json!({ "metadata": { "name": name, "labels": labels }, "spec": { "nodeName": node,
        "automountServiceAccountToken": false, "containers": [{ "name": "app", "image": "app" }] } });
    let pod = serde_json::from_value(pod).unwrap();
    let deadline = Instant::now() + SOON;
    while let Err(error) = pods.create(&PostParams::default(), &pod).await {
        assert!(Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let status = json!({ "status": status });
    pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

async fn its_pods_are_shown(world: &World<'_>) {
    let milan =
        cluster("True", "its node is selected", "True", "NamespaceReady", "it is there as shop-home-1");
    world.tell("Ready", json!({ "milan-1": milan })).await;
    let account = json!({ "metadata": { "name": "default" } });
    let accounts: Api<ServiceAccount> = Api::namespaced(world.client.clone(), "shop");
    // Nobody makes accounts in a cluster that is an API server alone.
    let _ = accounts.create(&PostParams::default(), &serde_json::from_value(account).unwrap()).await;
    let node = json!({ "metadata": { "name": "liqo-milan", "labels": {
        "liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "id-milan" } } });
    let nodes: Api<Node> = Api::all(world.client.clone());
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" },
        { "type": "virtualkubelet.liqo.io/placed", "status": "True", "message": "worker-3" }] });
    let mark = json!({ "liqo.io/shadowPod": "true" });
    pod(world, "away", mark.clone(), Some("liqo-milan"), ready).await;
    let refused =
        json!({ "phase": "Pending", "reason": "QuotaExceeded", "message": "more than was agreed on" });
    pod(world, "refused", mark, Some("liqo-milan"), refused).await;
    pod(world, "earlier", json!({}), None, json!({ "phase": "Running" })).await;
    let output = world.liqoctl(&["pods", "-n", "shop", "-o", "json"]);
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<_> = seen.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["away", "earlier", "refused"], "{seen:#}");
    assert_eq!(
        (&seen[0]["node"], &seen[0]["provider"]),
        (&json!("worker-3"), &json!("id-milan")),
        "{seen:#}"
    );
    assert_eq!(seen[2]["why"], "QuotaExceeded: more than was agreed on");
    // Moved by nobody, which is told with what to do about it.
    let said = world.says(0, &["status", "ns", "shop"]);
    assert!(said.contains("1 pods that were made before") && said.contains("rollout restart"), "{said}");
    let said = world.says(0, &["pods", "-A"]);
    assert!(said.contains("NAMESPACE") && said.contains("worker-3"), "{said}");
    assert!(world.says(1, &["pods", "-n", "nowhere"]).contains("there is no namespace nowhere"));
    assert!(world.says(0, &["pods", "-n", "default"]).contains("namespace default is not offloaded"));
    assert!(world.says(1, &["pods", "-A", "--peer", "rome"]).contains("there is no cluster"));
    world.says(2, &["pods", "-A", "-n", "shop"]);
    let pods: Api<Pod> = Api::namespaced(world.client.clone(), "shop");
    for name in ["away", "refused", "earlier"] {
        pods.delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
    }
}

async fn it_is_brought_home(world: &World<'_>) {
    assert!(world.says(0, &["unoffload", "namespace", "shop"]).contains("at home, and nowhere else"));
    assert!(world.says(0, &["unoffload", "namespace", "shop"]).contains("is not offloaded"));
    assert!(world.says(0, &["status", "ns", "shop"]).contains("liqoctl offload namespace shop"));
    // A label that would offload it again goes, too.
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    let label = json!({ "metadata": { "labels": { "liqo.io/enabled": "true" } } });
    namespaces.patch("shop", &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    world.says(0, &["unoffload", "namespace", "shop", "--yes"]);
    assert!(!namespaces.get("shop").await.unwrap().labels().contains_key("liqo.io/enabled"));
}
