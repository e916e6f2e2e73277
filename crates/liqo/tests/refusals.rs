//! An identity that is lost, broken or contradicted: told in every place, never changed, and taken back once repaired by
//! the very commands that the message names.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/process.rs"]
mod process;
#[path = "support/world.rs"]
mod world;

use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use process::Manager;
use serde_json::json;
use world::{NAMESPACE, Who, World, eventually, ok};

const NEW_IDENTITY: &str =
    "kubectl -n liqo delete --ignore-not-found secret/liqo-identity configmap/clusterid-configmap";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identity_is_never_changed_silently() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let world = World::new(&sandbox, "a").await;

    a_secret_lost_while_the_manager_runs_is_told_and_a_backup_repairs_it(&world).await;
    a_secret_lost_before_the_start_is_told_as_well_and_a_new_identity_is_one_command_away(&world).await;
    an_unreadable_key_is_told(&world).await;
    objects_that_disagree_are_told_and_deleting_the_config_map_makes_the_secret_count(&world).await;
    another_key_under_the_same_name_is_noticed(&world).await;
    flags_that_contradict_the_identity_are_refused(&world).await;
}

/// A manager that has established an identity from nothing.
async fn established(world: &World<'_>) -> (Manager, Who) {
    world.forget().await;
    let manager = world.manager("manager", &[]);
    manager.wait_ready().await;
    (manager, world.identity().await)
}

/// All the places that tell of a refusal agree; returns the message.
async fn told(world: &World<'_>, manager: &Manager, reason: &str) -> String {
    manager.wait_log("ERROR").await;
    let message = eventually("the condition says what the log says", || async {
        let (condition, message) = world.condition("IdentityReady").await;
        let agree = condition == format!("False {reason}") && manager.log().contains(&message);
        if agree { Ok(message) } else { Err(format!("{condition} {message}\n{}", manager.log())) }
    })
    .await;
    world.wait_condition("Ready", "False IdentityNotReady").await;
    let ready = manager.wait_unready(reason).await;
    assert!(ready.contains(&message), "{ready}");
    assert_eq!(manager.get("probes", "/healthz").unwrap().0, 200, "it must not be restarted for this");
    eventually("an event tells", || async {
        let events = world.events().await;
        let same = events.iter().any(|event| {
            event.reason.as_deref() == Some(reason) && event.note.as_deref() == Some(message.as_str())
        });
        if same { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await;
    let events = ok(&world.cluster.kubectl(["get", "events", "-n", NAMESPACE]));
    assert!(events.contains("Warning") && events.contains(reason), "{events}");
    let described =
        ok(&world.cluster.kubectl(["describe", "-n", NAMESPACE, "configmap/clusterid-configmap"]));
    assert!(described.contains(reason), "{described}");
    let errors = manager.lines_with("ERROR");
    assert_eq!(errors, 1, "one error in the log:\n{}", manager.log());
    manager.wait_metric("liqo_identity_ready", 0.0).await;
    manager.wait_metric(&format!("liqo_identity_refused{{reason=\"{reason}\"}}"), 1.0).await;
    message
}

async fn well_again(world: &World<'_>, manager: &Manager) {
    world.wait_condition("Ready", "True Operating").await;
    world.wait_condition("IdentityReady", "True Established").await;
    manager.wait_ready().await;
    manager.wait_metric("liqo_identity_ready", 1.0).await;
}

/// The Secret as a backup has it: without what the server adds.
async fn backup(world: &World<'_>) -> Secret {
    let mut secret = world.secret().await.unwrap();
    secret.metadata.resource_version = None;
    secret.metadata.uid = None;
    secret.metadata.managed_fields = None;
    secret
}

async fn a_secret_lost_while_the_manager_runs_is_told_and_a_backup_repairs_it(world: &World<'_>) {
    let (manager, who) = established(world).await;
    let backup = backup(world).await;
    world.secrets().delete("liqo-identity", &DeleteParams::default()).await.unwrap();
    let message = told(world, &manager, "KeyLost").await;
    assert!(message.contains(&format!("{} ({})", who.name, who.id)), "{message}");
    assert!(message.contains("kubectl -n liqo apply -f BACKUP.yaml"), "{message}");
    assert!(world.secret().await.is_none(), "a new key was made");
    let shown = world.cluster_config().await.unwrap().status.unwrap();
    assert_eq!(shown.cluster_identity.unwrap().cluster_id, who.id);

    // It stays so over a restart, and a restart makes no second event.
    manager.stop().await;
    let manager = world.manager("manager", &[]);
    told(world, &manager, "KeyLost").await;
    assert_eq!(world.events().await.len(), 1);

    world.secrets().create(&PostParams::default(), &backup).await.unwrap();
    well_again(world, &manager).await;
    assert_eq!(world.identity().await, who);
    manager.stop().await;
}

async fn a_secret_lost_before_the_start_is_told_as_well_and_a_new_identity_is_one_command_away(
    world: &World<'_>,
) {
    let (manager, who) = established(world).await;
    manager.stop().await;
    world.secrets().delete("liqo-identity", &DeleteParams::default()).await.unwrap();
    // Nor do flags that name the same cluster make a key for it.
    let (id, name) = (format!("--cluster-id={}", who.id), format!("--cluster-name={}", who.name));
    let manager = world.manager("manager", &[&id, &name]);
    let message = told(world, &manager, "KeyLost").await;
    assert!(message.contains(&format!("first set {id} {name}")), "{message}");
    let command = "kubectl -n liqo delete configmap clusterid-configmap";
    assert!(message.contains(command), "{message}");
    world.run_advice(command);
    well_again(world, &manager).await;
    let now = world.identity().await;
    assert_eq!((&now.id, &now.name), (&who.id, &who.name));
    assert_ne!(now.key, who.key);
    eventually("an event tells of the new key", || async {
        let events = world.events().await;
        let told = events.iter().any(|event| event.reason.as_deref() == Some("IdentityReplaced"));
        if told { Ok(()) } else { Err(format!("{events:?}")) }
    })
    .await;
    manager.stop().await;
}

async fn an_unreadable_key_is_told(world: &World<'_>) {
    let (manager, who) = established(world).await;
    world.patch_secret(json!({ "stringData": { "private-key": "hunter2" } })).await;
    let message = told(world, &manager, "KeyUnreadable").await;
    assert!(
        message.contains("it is no PEM block of the type PRIVATE KEY") && !message.contains("hunter2"),
        "{message}"
    );
    world.patch_secret(json!({ "stringData": { "private-key": who.key } })).await;
    well_again(world, &manager).await;
    assert_eq!(world.identity().await, who);

    world.patch_secret(json!({ "data": { "cluster-id": null } })).await;
    let message = world.wait_condition("IdentityReady", "False KeyUnreadable").await;
    assert!(message.contains("its key cluster-id is missing"), "{message}");
    assert!(message.contains(NEW_IDENTITY), "{message}");
    world.run_advice(NEW_IDENTITY);
    well_again(world, &manager).await;
    assert_ne!(world.identity().await.id, who.id);
    manager.stop().await;
}

async fn objects_that_disagree_are_told_and_deleting_the_config_map_makes_the_secret_count(
    world: &World<'_>,
) {
    let (manager, who) = established(world).await;
    world.patch_config_map(json!({ "data": { "CLUSTER_NAME": "another" } })).await;
    let message = told(world, &manager, "Mismatch").await;
    assert!(message.contains(&format!("another ({})", who.id)), "{message}");
    let command = "kubectl -n liqo delete configmap clusterid-configmap";
    assert!(message.contains(command), "{message}");
    world.run_advice(command);
    well_again(world, &manager).await;
    assert_eq!(world.identity().await, who);
    manager.stop().await;
}

async fn another_key_under_the_same_name_is_noticed(world: &World<'_>) {
    let (manager, _) = established(world).await;
    let stranger = backup(world).await;
    manager.stop().await;
    let (manager, who) = established(world).await;
    // The stranger's keys under our ID and name.
    let keys = stranger.data.unwrap();
    let patch = json!({ "data": { "private-key": keys["private-key"], "public-key": keys["public-key"] } });
    world.patch_secret(patch).await;
    let message = told(world, &manager, "Mismatch").await;
    assert!(message.contains(&format!("is not the one of cluster {} ({})", who.name, who.id)), "{message}");
    manager.stop().await;
}

async fn flags_that_contradict_the_identity_are_refused(world: &World<'_>) {
    let (manager, who) = established(world).await;
    manager.stop().await;
    for flag in ["--cluster-name=another", "--cluster-id=another"] {
        let manager = world.manager("manager", &[flag]);
        let message = told(world, &manager, "IdentityChangeRefused").await;
        assert!(message.starts_with(&format!("{flag} is not what this cluster is")), "{message}");
        assert!(message.contains(NEW_IDENTITY), "{message}");
        assert_eq!(world.identity().await, who);
        manager.stop().await;
    }
    let manager = world.manager("manager", &[]);
    well_again(world, &manager).await;
    assert_eq!(world.identity().await, who);
    manager.stop().await;
}
