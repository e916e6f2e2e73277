//! A manager that is killed at each of its writes, and whoever comes after it.
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

use std::time::Duration;

use liqo_kit::rbac::Rule;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use process::Manager;
use world::{Who, World, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_it_is_killed_the_next_one_finishes_the_same_work() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let world = World::new(&sandbox, "a").await;

    killed_after_each_write(&world).await;
    killed_at_any_moment(&world).await;
    two_at_once_agree(&world).await;
}

/// What the manager writes on its first start, in order: group, resource, verb.
const WRITES: [(&str, &str, &str); 5] = [
    ("coordination.k8s.io", "leases", "create"),
    ("", "secrets", "create"),
    ("", "configmaps", "create"),
    ("config.liqo.io", "clusterconfigs", "create"),
    ("config.liqo.io", "clusterconfigs/status", "patch"),
];

/// Whether a rule allows one of these writes.
fn allows(rule: &Rule, writes: &[(&str, &str, &str)]) -> bool {
    let has = |list: &[&str], word: &str| list.contains(&word);
    writes.iter().any(|(group, resource, verb)| {
        has(rule.groups, group) && has(rule.resources, resource) && has(rule.verbs, verb)
    })
}

/// Which of our objects exist: Lease, Secret, ConfigMap, ClusterConfig, and whether the last has a status.
async fn existing(world: &World<'_>) -> usize {
    let config = world.cluster_config().await;
    let lease = ["get", "lease", "-n", "liqo", "--ignore-not-found", "-o", "name"];
    [
        !world::ok(&world.cluster.kubectl(lease)).is_empty(),
        world.secret().await.is_some(),
        world.config_map().await.is_some(),
        config.is_some(),
        config.is_some_and(|config| config.status.is_some()),
    ]
    .into_iter()
    .filter(|there| *there)
    .count()
}

/// The rest of the work, done by another manager; the identity of the first must live on.
async fn finish(world: &World<'_>, before: Option<String>) -> Who {
    // The dead one's lease would run out by itself; waiting for that each time proves nothing more.
    world::ok(&world.cluster.kubectl(["delete", "lease", "-n", "liqo", "--all"]));
    let manager = world.manager("second", &[]);
    manager.wait_ready().await;
    world.wait_condition("Ready", "True Operating").await;
    let who = world.identity().await;
    if let Some(key) = before {
        assert_eq!(who.key, key, "the key changed");
    }
    manager.stop().await;
    who
}

async fn key(world: &World<'_>) -> Option<String> {
    let secret = world.secret().await?;
    Some(String::from_utf8(secret.data?["private-key"].0.clone()).unwrap())
}

async fn killed_after_each_write(world: &World<'_>) {
    for done in 0..=WRITES.len() {
        world.forget().await;
        // It cannot get further than this write, so it is killed exactly there.
        world.allow(|rule| !allows(rule, &WRITES[done..])).await;
        let manager = world.manager("first", &[]);
        eventually(&format!("{done} writes were made"), || async {
            let found = existing(world).await;
            if found == done { Ok(()) } else { Err(format!("{found} writes\n{}", manager.log())) }
        })
        .await;
        if let Some((_, resource, verb)) = WRITES.get(done) {
            // The missing right is named where an administrator looks; others go missing with it.
            manager.wait_unready(&format!("cannot {verb} resource \"{resource}\"")).await;
        }
        let before = key(world).await;
        manager.murder().await;
        world.allow(|_| true).await;
        finish(world, before).await;
    }
}

async fn killed_at_any_moment(world: &World<'_>) {
    let mut seen = std::collections::BTreeMap::<usize, u32>::new();
    for attempt in 0..12 {
        world.forget().await;
        let manager = world.manager("first", &[]);
        manager.wait_log("serving metrics").await;
        tokio::time::sleep(Duration::from_millis(attempt * 8)).await;
        manager.murder().await;
        *seen.entry(existing(world).await).or_default() += 1;
        let before = key(world).await;
        finish(world, before).await;
    }
    println!("killed after so many writes, so often: {seen:?}");
}

async fn two_at_once_agree(world: &World<'_>) {
    for _ in 0..3 {
        world.forget().await;
        let managers: Vec<Manager> = ["one", "two", "three"].map(|pod| world.manager(pod, &[])).into();
        for manager in &managers {
            manager.wait_ready().await;
        }
        world.wait_condition("Ready", "True Operating").await;
        let who = world.identity().await;
        // They are asked one after the other, and the lease may pass from one to the other meanwhile.
        eventually("one of them leads", || async {
            let leads: Vec<_> = managers.iter().map(|it| it.metric("liqo_manager_leader")).collect();
            let count = leads.iter().filter(|leads| **leads == Some(1.0)).count();
            if count == 1 { Ok(()) } else { Err(format!("{leads:?}")) }
        })
        .await;
        for manager in managers {
            manager.wait_log(&who.id).await;
            assert_eq!(manager.lines_with("ERROR"), 0, "{}", manager.log());
            manager.stop().await;
        }
    }
}
