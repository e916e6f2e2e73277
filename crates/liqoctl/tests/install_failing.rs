//! An installation that does not become ready says which pod and why, on a real node.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod support;

use liqo_sandbox::ClusterSpec;
use support::{CLUSTER, World, until};

#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_it_from_becoming_ready() {
    let world = World::start(ClusterSpec::real(CLUSTER, 1)).await;
    a_sandbox_without_the_image_is_refused(&world);
    an_image_that_is_not_there(&world);
    a_crash_with_its_last_words(&world);
    no_room_on_any_node(&world);
    a_quota(&world);
    world.ok(&["uninstall", "--purge"]).tells(&["liqo is gone"]);
}

fn a_sandbox_without_the_image_is_refused(world: &World) {
    world.fails(&["install", "sandbox", "--image-archive", "/nowhere/liqo.tar"]).tells(&[
        "liqo:0.1.0 is not on the nodes",
        "/nowhere/liqo.tar",
        "--image-archive",
        "nothing was changed",
    ]);
    let namespaces = world.kubectl(&["get", "namespaces", "-o", "name"]);
    assert!(!namespaces.contains("namespace/liqo"), "{namespaces}");
}

/// Named as another distribution, nobody brings the image.
fn an_image_that_is_not_there(world: &World) {
    let install = ["install", "kubeadm", "--timeout", "12", "--set", "image.name=127.0.0.1:9/liqo"];
    world.fails_telling(
        &install,
        &[
            "it looks like sandbox",
            "not ready after",
            "pod liqo-controller-manager-",
            "the image 127.0.0.1:9/liqo:0.1.0 cannot be pulled",
            "connection refused",
            "image.name=REGISTRY/liqo",
            "run the same command again",
        ],
    );
}

fn a_crash_with_its_last_words(world: &World) {
    let mut app = String::new();
    // A node tells its images every now and then.
    until("the app is on the node", || {
        let images = world.kubectl(&["get", "nodes", "-o", "jsonpath={.items[0].status.images[*].names}"]);
        let found = images.split('"').find(|name| name.contains("sandbox-app")).map(str::to_owned);
        app = found.ok_or(images)?;
        Ok(())
    });
    let (name, tag) = app.rsplit_once(':').unwrap();
    let set = format!("image.name={name},image.tag={tag}");
    world.fails_telling(
        &["install", "kubeadm", "--timeout", "15", "--set-string", &set],
        &["pod liqo-controller-manager-", "its container ended with code", "its last words"],
    );
}

fn no_room_on_any_node(world: &World) {
    let much =
        "controllerManager.pod.resources.requests.cpu=1000,controllerManager.pod.resources.limits.cpu=1000";
    world.fails_telling(
        &["install", "kubeadm", "--timeout", "15", "--set", much],
        &["no node takes it", "Insufficient cpu"],
    );
}

fn a_quota(world: &World) {
    world.kubectl(&["delete", "deployment", "-n", "liqo", "liqo-controller-manager"]);
    world.kubectl(&["create", "quota", "none", "--hard=pods=0", "-n", "liqo"]);
    // Before the controller has counted for the first time, pods are refused in other words, or even let in.
    let counted = "--for=jsonpath={.status.hard.pods}=0";
    world.kubectl(&["wait", counted, "quota/none", "-n", "liqo", "--timeout=60s"]);
    world.fails_telling(
        &["install", "kubeadm", "--timeout", "8", "--reset-values"],
        &[
            "Deployment liqo/liqo-controller-manager: no pod can be made",
            "exceeded quota: none",
            "ResourceQuota",
        ],
    );
    world.kubectl(&["delete", "quota", "none", "-n", "liqo"]);
}
