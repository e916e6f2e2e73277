//! Installing and uninstalling in a cluster with controllers: what comes, what stays, and that nothing is left.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod support;

use std::collections::BTreeMap;
use std::time::Duration;

use liqo_sandbox::ClusterSpec;
use nix::sys::signal::Signal;
use support::{CLUSTER, Manager, SOON, World, names, settled, until_as_before};
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn taking_it_out_again() {
    let world = World::start(ClusterSpec::hollow(CLUSTER, 1)).await;
    let client = world.client().await;
    let before = settled(&client).await;
    let _manager = Manager::start(client.clone(), true);
    where_nothing_is_nothing_is_done(&world);
    a_purge_leaves_nothing(&world, &before).await;
    without_purge_the_identity_stays(&world, &before).await;
    what_somebody_put_into_the_namespace_stays(&world, &before).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taking_it_out_against_resistance() {
    let world = World::start(ClusterSpec::hollow(CLUSTER, 1)).await;
    let client = world.client().await;
    let before = settled(&client).await;
    let _manager = Manager::start(client.clone(), true);
    peerings_are_ended_only_when_agreed(&world, &before).await;
    half_an_installation_and_a_dead_manager_are_no_obstacle(&world, &before).await;
    an_interrupted_removal_goes_on(&world, &before).await;
    what_cannot_go_is_named_in_time(&world, &before).await;
}

fn where_nothing_is_nothing_is_done(world: &World) {
    world.ok(&["uninstall"]).tells(&["liqo is not installed in namespace liqo"]);
    world.ok(&["uninstall", "--purge", "--yes"]).tells(&["liqo is not installed in namespace liqo"]);
}

async fn a_purge_leaves_nothing(world: &World, before: &BTreeMap<String, String>) {
    let client = world.client().await;
    world
        .ok(&["install"])
        .tells(&["the manager is ready", "liqo 0.1.0 is installed in namespace liqo and ready"]);
    let with = names(&client).await;
    for object in [
        "Deployment apps/liqo/liqo-controller-manager",
        "ClusterConfig config.liqo.io//liqo",
        "Secret /liqo/liqo-identity",
    ] {
        assert!(with.iter().any(|name| name == object), "{object}: {with:#?}");
    }
    world.ok(&["install"]).tells(&["nothing to change"]);
    world
        .ok(&["uninstall", "--purge", "--yes"])
        .tells(&["Namespace liqo removed", "liqo is gone, with everything of it"]);
    until_as_before(&client, before).await;
}

/// What an installation that is removed without its identity leaves, besides its kinds.
const KEPT: [&str; 5] = [
    "ConfigMap /liqo/clusterid-configmap",
    "ConfigMap /liqo/kube-root-ca.crt",
    "Namespace //liqo",
    "Secret /liqo/liqo-identity",
    "ServiceAccount /liqo/default",
];

async fn without_purge_the_identity_stays(world: &World, before: &BTreeMap<String, String>) {
    let client = world.client().await;
    world.ok(&["install", "--cluster-name", "turin"]);
    world.ok(&["uninstall"]).tells(&["are kept for a later installation"]);
    // What belonged to what was removed is collected by Kubernetes a moment later.
    let deadline = Instant::now() + SOON;
    loop {
        let mut left = names(&client).await;
        left.retain(|name| {
            !before.contains_key(name)
                && !name.starts_with("CustomResourceDefinition")
                && !name.starts_with("APIService")
        });
        if left == KEPT {
            break;
        }
        assert!(Instant::now() < deadline, "left is {left:#?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    world.ok(&["uninstall"]).tells(&["not installed", "are kept, liqoctl uninstall --purge"]);
    // The cluster is still who it was.
    world.ok(&["install"]).tells(&["cluster name: turin (from the identity that the cluster has)"]);
    world.ok(&["uninstall"]);
    world.ok(&["uninstall", "--purge"]).tells(&["Namespace liqo removed"]);
    until_as_before(&client, before).await;
}

/// A peering and an offloaded namespace, with finalizers that nobody handles.
fn peer(world: &World) {
    world.kubectl(&["create", "namespace", "shop"]);
    world.apply(
        "apiVersion: discovery.liqo.io/v1alpha1
kind: ForeignCluster
metadata: {name: rome, finalizers: [crdReplicator.liqo.io]}
spec: {foreignAuthUrl: 'https://rome.example.com', outgoingPeeringEnabled: 'Yes'}
---
apiVersion: offloading.liqo.io/v1alpha1
kind: NamespaceOffloading
metadata: {name: offloading, namespace: shop, finalizers: [namespaceoffloading-controller.liqo.io/finalizer]}
spec: {}
",
    );
    let status =
        r#"{"status": {"peeringConditions": [{"type": "OutgoingPeering", "status": "Established"}]}}"#;
    world.kubectl(&["patch", "foreigncluster", "rome", "--subresource=status", "--type=merge", "-p", status]);
}

async fn peerings_are_ended_only_when_agreed(world: &World, before: &BTreeMap<String, String>) {
    let client = world.client().await;
    world.ok(&["install"]);
    peer(world);
    // Kubernetes goes on making what belongs to the new namespaces and Services.
    let with = settled(&client).await;
    let asks = [
        (&["uninstall"][..], "this stays as it is, but nobody looks after it"),
        (&["uninstall", "--purge"][..], "this is in use and ends"),
    ];
    for (arguments, what_becomes_of_it) in asks {
        world.fails(arguments).tells(&[
            what_becomes_of_it,
            "peering with rome (outgoing Established)",
            "namespace shop is offloaded",
            "nothing was changed",
            "--yes",
        ]);
    }
    until_as_before(&client, &with).await;
    let started = std::time::SystemTime::now();
    world.ok(&["uninstall", "--purge", "--yes"]).tells(&[
        "ForeignCluster rome: nobody is left who would handle its finalizers",
        "crdReplicator.liqo.io",
        "liqo is gone",
    ]);
    assert!(started.elapsed().unwrap().as_secs() < 120);
    world.kubectl(&["delete", "namespace", "shop"]);
    until_as_before(&client, before).await;
}

async fn what_somebody_put_into_the_namespace_stays(world: &World, before: &BTreeMap<String, String>) {
    let client = world.client().await;
    world.ok(&["install"]);
    world.kubectl(&["create", "configmap", "mine", "-n", "liqo"]);
    world
        .ok(&["uninstall", "--purge"])
        .tells(&["Namespace liqo stays, as it holds what is not ours: ConfigMap liqo/mine"]);
    world.kubectl(&["get", "configmap", "mine", "-n", "liqo"]);
    let labels = world.kubectl(&["get", "namespace", "liqo", "-o", "jsonpath={.metadata.labels}"]);
    assert!(!labels.contains("liqo-rs"), "{labels}");
    // Now it is theirs: an installation uses it, and leaves it.
    world.ok(&["install"]);
    world.ok(&["uninstall", "--purge"]);
    world.kubectl(&["get", "configmap", "mine", "-n", "liqo"]);
    world.kubectl(&["delete", "namespace", "liqo"]);
    until_as_before(&client, before).await;
}

async fn half_an_installation_and_a_dead_manager_are_no_obstacle(
    world: &World,
    before: &BTreeMap<String, String>,
) {
    let client = world.client().await;
    let mut running = world.start_command(&["install"]);
    running.until_it_says("ServiceAccount");
    running.send(Signal::SIGKILL);
    let _ = running.end();
    world.ok(&["uninstall", "--purge"]);
    until_as_before(&client, before).await;

    world.ok(&["install"]);
    peer(world);
    // A dead manager, its webhook left behind, and the notes lost.
    world.kubectl(&["scale", "deployment", "-n", "liqo", "liqo-controller-manager", "--replicas=0"]);
    world.kubectl(&["delete", "secret", "-n", "liqo", "liqo-installation"]);
    world.apply(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: liqo-everything, labels: {app.kubernetes.io/part-of: liqo-rs, app.kubernetes.io/managed-by: liqoctl}}
webhooks:
- name: everything.liqo.io
  failurePolicy: Fail
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {service: {name: liqo-webhook, namespace: liqo}}
  rules: [{apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: [CREATE, UPDATE, DELETE]}]
",
    );
    // Installing again puts it right, too.
    world.ok(&["install"]).tells(&["ValidatingWebhookConfiguration liqo-everything", "the manager is ready"]);
    world.kubectl(&["scale", "deployment", "-n", "liqo", "liqo-controller-manager", "--replicas=0"]);
    lend_and_borrow(world);
    world.ok(&["uninstall", "--purge", "--yes"]).tells(&[
        "Namespace shop-of-rome removed",
        "the namespaces of peers have gone, with their pods",
        "Node liqo-rome removed",
        "Namespace liqo-storage stays, as data is behind it: PersistentVolumeClaim liqo-storage/volume",
    ]);
    let labels = world.kubectl(&["get", "namespace", "liqo-storage", "-o", "jsonpath={.metadata.labels}"]);
    assert!(!labels.contains("liqo-rs"), "{labels}");
    world.kubectl(&["delete", "namespace", "shop", "liqo-storage"]);
    until_as_before(&client, before).await;
}

/// What a manager leaves that died with peerings: a peer's namespace with a running pod, a virtual node, and a volume.
fn lend_and_borrow(world: &World) {
    world.apply(
        "apiVersion: v1
kind: Namespace
metadata:
  name: shop-of-rome
  labels: {app.kubernetes.io/part-of: liqo-rs, app.kubernetes.io/managed-by: liqo-controller-manager, app.kubernetes.io/component: hosting}
---
apiVersion: v1
kind: Namespace
metadata:
  name: liqo-storage
  labels: {app.kubernetes.io/part-of: liqo-rs, app.kubernetes.io/managed-by: liqo-controller-manager, app.kubernetes.io/component: storage}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: volume, namespace: liqo-storage}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Node
metadata:
  name: liqo-rome
  labels: {liqo.io/type: virtual-node}
  finalizers: [virtualnode-controller.liqo.io/finalizer]
",
    );
    let settled = ["wait", "--for=create", "serviceaccount/default", "-n", "shop-of-rome", "--timeout=60s"];
    world.kubectl(&settled);
    world.apply(
        "apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop-of-rome}
spec:
  terminationGracePeriodSeconds: 1
  tolerations: [{operator: Exists}]
  containers: [{name: app, image: nothing}]
",
    );
    world.kubectl(&["wait", "--for=condition=Ready", "pod/web", "-n", "shop-of-rome", "--timeout=60s"]);
}

async fn an_interrupted_removal_goes_on(world: &World, before: &BTreeMap<String, String>) {
    let client = world.client().await;
    for moment in ["Deployment liqo/liqo-controller-manager removed", "definitions of kinds removed"] {
        // At first; later only if the removal was quicker than the signal.
        if !world.kubectl(&["get", "crd", "-o", "name"]).contains("liqo.io") {
            world.ok(&["install"]);
        }
        let mut running = world.start_command(&["uninstall", "--purge"]);
        running.until_it_says(moment);
        running.send(Signal::SIGINT);
        let said = running.end();
        assert!(matches!(said.code, Some(130 | 0)), "{said}");
    }
    world.ok(&["uninstall", "--purge"]);
    until_as_before(&client, before).await;
}

async fn what_cannot_go_is_named_in_time(world: &World, before: &BTreeMap<String, String>) {
    let client = world.client().await;
    world.ok(&["install"]);
    world.apply(
        "apiVersion: discovery.liqo.io/v1alpha1
kind: ForeignCluster
metadata: {name: held, finalizers: [example.com/hold]}
spec: {foreignAuthUrl: 'https://rome.example.com'}
",
    );
    let started = std::time::SystemTime::now();
    world
        .fails(&["uninstall", "--purge", "--timeout", "10"])
        .tells(&["this is left of liqo", "foreignclusters.discovery.liqo.io"]);
    assert!(started.elapsed().unwrap().as_secs() < 60);
    world.fails(&["install"]).tells(&["is still being deleted", "foreignclusters.discovery.liqo.io"]);
    world.kubectl(&[
        "patch",
        "foreigncluster",
        "held",
        "--type=merge",
        "-p",
        r#"{"metadata": {"finalizers": null}}"#,
    ]);
    world.ok(&["uninstall", "--purge"]);
    until_as_before(&client, before).await;
}
