//! Namespaces extend to providers and come home, and pods run where their owner allowed, on real API servers with a real
//! scheduler.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "../../reflection/tests/support/fuse.rs"]
mod fuse;
#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::NamespaceMap;
use liqo_api::namespace_offloading::{RemoteNamespaceCondition, RemoteNamespaceConditionType};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use tokio::time::Instant;
use world::{World, deployment, eventually};

/// For so long nothing must be written when nothing changes.
const QUIET: Duration = Duration::from_secs(3);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn namespaces_and_their_pods_go_where_their_owner_allows() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("home", 1), ClusterSpec::api_only("there")]).await;
    let mut world = World::new(&sandbox).await;
    let process = world.start().await;
    world.add_provider("milan", json!({ "tier": "gold" })).await;
    world.add_provider("rome", json!({ "tier": "tin" })).await;

    a_label_is_enough(&world).await;
    pods_are_placed_by_the_strategy(&world).await;
    what_a_pod_wishes_itself_counts_too(&world).await;
    nonsense_is_refused_or_told(&world).await;
    nothing_is_under_way(&world).await;
    drop(process);
    let process = a_restart_writes_nothing(&world).await;
    narrowing_moves_the_pods_and_then_the_namespace(&world).await;
    a_budget_is_honoured_for_a_while(&world).await;
    pods_leave_a_pool_that_is_left_out(&world).await;
    drop(process);
    without_the_manager_no_pod_of_an_offloaded_namespace_is_made(&world).await;
    without_the_webhook_the_second_line_holds(&world).await;
    let _process = world.start().await;
    deletion_brings_the_pods_home(&world).await;
    a_namespace_may_go_with_everything_in_it(&world).await;
}

async fn a_label_is_enough(world: &World<'_>) {
    let began = Instant::now();
    world.namespace("shop", json!({ "liqo.io/enabled": "true" })).await;
    // One whose node is seen later is told of later.
    let status = eventually("both providers are told of", || async {
        let status = world.wait_phase("shop", "Ready").await.status.unwrap();
        if status.remote_namespaces_conditions.len() == 2 { Ok(status) } else { Err(format!("{status:#?}")) }
    })
    .await;
    println!("from the label to the namespace at both providers: {:?}", began.elapsed());
    world.wait_marked("shop", Some("LocalAndRemote")).await;
    let remote = status.remote_namespace_name.unwrap();
    assert!(remote.starts_with("shop-home-"), "{remote}");
    for name in ["milan", "rome"] {
        let copies = world.maps_at(name).await.list(&ListParams::default()).await.unwrap().items;
        assert_eq!(copies.len(), 1);
        assert_eq!(copies[0].spec.desired_mapping["shop"], remote);
        assert_eq!(copies[0].labels()["liqo.io/originID"], "home-id");
        let ours: Api<NamespaceMap> = Api::namespaced(world.client.clone(), &format!("liqo-tenant-{name}"));
        // What the provider says is written down here beside what is told of it.
        let ours = eventually("what the provider says is here", || async {
            let ours = ours.get(&copies[0].name_any()).await.map_err(|error| error.to_string())?;
            let said = ours.status.as_ref().is_some_and(|it| it.current_mapping.contains_key("shop"));
            if said { Ok(ours) } else { Err(format!("{ours:?}")) }
        })
        .await;
        assert_eq!(ours.labels()["liqo.io/remote-cluster-id"], format!("{name}-id"));
    }
    world.wait_reason("shop", "NamespaceOffloaded").await;
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    let configuration = configurations.get("liqo").await.unwrap();
    assert!(configuration.webhooks.unwrap()[0].client_config.ca_bundle.is_some());
}

async fn pods_are_placed_by_the_strategy(world: &World<'_>) {
    for (namespace, strategy, nodes) in [
        ("all-away", "Remote", &["liqo-"][..]),
        ("at-home", "Local", &["home"]),
        ("gold-away", "Remote", &["liqo-milan"]),
    ] {
        world.namespace(namespace, json!({})).await;
        let mut spec = json!({ "podOffloadingStrategy": strategy });
        if namespace == "gold-away" {
            spec["clusterSelector"] = selector("tier", "In", &["gold"]);
        }
        world.offload(namespace, spec).await;
        world.wait_marked(namespace, Some(strategy)).await;
        deploy(world, namespace, "web", 4).await;
        world.wait_places(namespace, 4, nodes).await;
    }
    let away = world.pods("all-away").list(&ListParams::default()).await.unwrap().items;
    assert!(away.iter().all(|pod| pod.labels()["liqo.io/shadowPod"] == "true"));
    let home = world.pods("at-home").list(&ListParams::default()).await.unwrap().items;
    assert!(home.iter().all(|pod| !pod.labels().contains_key("liqo.io/shadowPod")));
    // Namespaces that are not offloaded know nothing of it.
    world.namespace("plain", json!({})).await;
    deploy(world, "plain", "web", 2).await;
    world.wait_places("plain", 2, &["home"]).await;
}

/// In a namespace that is everywhere, pods go where they themselves want to.
async fn what_a_pod_wishes_itself_counts_too(world: &World<'_>) {
    let affinity = |key: &str, value: &str| {
        let terms = [json!({ "matchExpressions": [{ "key": key, "operator": "In", "values": [value] }] })];
        json!({ "spec": { "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms },
        } } } })
    };
    world.create_pod("shop", "to-rome", affinity("tier", "tin")).await.unwrap();
    world.create_pod("shop", "to-milan", affinity("kubernetes.io/hostname", "liqo-milan")).await.unwrap();
    let selected = json!({ "spec": { "nodeSelector": { "tier": "gold" } } });
    world.create_pod("shop", "selects-gold", selected).await.unwrap();
    let stays = json!({ "spec": { "affinity": { "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchExpressions": [
            { "key": "liqo.io/type", "operator": "DoesNotExist" }
        ] }] },
    } } } });
    world.create_pod("shop", "stays", stays).await.unwrap();
    eventually("all of them are where they want to be", || async {
        let places = world.places("shop").await;
        let expected = [
            ("to-rome", "liqo-rome"),
            ("to-milan", "liqo-milan"),
            ("selects-gold", "liqo-milan"),
            ("stays", "home"),
        ];
        let fine = expected.iter().all(|(pod, node)| places.get(*pod).is_some_and(|it| it.starts_with(node)));
        if fine { Ok(()) } else { Err(format!("{places:?}")) }
    })
    .await;
}

async fn nonsense_is_refused_or_told(world: &World<'_>) {
    world.offload("kube-system", json!({})).await;
    let refused = world.wait_phase("kube-system", "NoClusterSelected").await;
    let valid = refused.status.unwrap().conditions.into_iter().find(|it| it.type_ == "Valid").unwrap();
    assert_eq!(valid.reason, "ProtectedNamespace", "{}", valid.message);
    world.offloadings("kube-system").delete("offloading", &DeleteParams::default()).await.unwrap();
    eventually("it is gone", || async {
        let found = world.offloadings("kube-system").get_opt("offloading").await.unwrap();
        found.map_or(Ok(()), |found| Err(format!("{found:?}")))
    })
    .await;
    world.namespace("taken", json!({})).await;
    world.offload("taken", json!({ "namespaceMappingStrategy": "EnforceSameName" })).await;
    let told = world.wait_phase("taken", "AllFailed").await;
    let status = told.status.unwrap();
    let (_, conditions) = status.remote_namespaces_conditions.iter().next().unwrap();
    let ready = conditions.0.iter().find(|it| it.type_ == RemoteNamespaceConditionType::Ready).unwrap();
    assert_eq!((ready.reason.as_str(), ready.message.as_str()), ("NameTaken", "another tenant has it"));
    world.wait_reason("taken", "NameTaken").await;
}

/// Waits until all that follows from what happened is written: a status here may come after what it tells of.
async fn nothing_is_under_way(world: &World<'_>) {
    const REST: Duration = Duration::from_secs(1);
    const DEADLINE: Duration = Duration::from_secs(60);
    let began = Instant::now();
    let (mut last, mut since) = (versions(world).await, began);
    while since.elapsed() < REST {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = versions(world).await;
        if now != last {
            assert!(began.elapsed() < DEADLINE, "the room does not come to rest: {last:?} {now:?}");
            (last, since) = (now, Instant::now());
        }
    }
}

async fn a_restart_writes_nothing(world: &World<'_>) -> world::Process {
    let before = versions(world).await;
    // Another port is another configuration, which is not what is meant here.
    let process = world.start().await;
    let quiet = Instant::now() + QUIET;
    while Instant::now() < quiet {
        assert_eq!(versions(world).await, before);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    process
}

/// The versions of all that the room writes.
async fn versions(world: &World<'_>) -> Vec<String> {
    let mut all = Vec::new();
    for namespace in ["shop", "all-away", "at-home", "gold-away", "taken"] {
        let offloading = world.offloadings(namespace).get("offloading").await.unwrap();
        all.push(format!("{namespace} {:?}", offloading.resource_version()));
    }
    for name in ["milan", "rome"] {
        let ours: Api<NamespaceMap> = Api::namespaced(world.client.clone(), &format!("liqo-tenant-{name}"));
        for maps in [ours, world.maps_at(name).await] {
            let maps = maps.list(&ListParams::default()).await.unwrap().items;
            all.extend(maps.iter().map(|map| format!("{name} {:?}", map.resource_version())));
        }
    }
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(world.client.clone(), "liqo");
    let secret = secrets.get("liqo-webhook").await.unwrap();
    all.push(format!("secret {:?}", secret.resource_version()));
    all
}

async fn narrowing_moves_the_pods_and_then_the_namespace(world: &World<'_>) {
    change(world, "all-away", json!({ "clusterSelector": selector("tier", "In", &["gold"]) })).await;
    world.wait_places("all-away", 4, &["liqo-milan"]).await;
    let told = world.wait_phase("all-away", "Ready").await;
    assert!(!is_mapped(world, "rome", "all-away").await);
    assert!(is_mapped(world, "milan", "all-away").await);
    let status = told.status.unwrap();
    let rome =
        status.remote_namespaces_conditions.iter().find(|(name, _)| name.starts_with("rome")).unwrap().1;
    assert!(
        rome.0.iter().any(|it| it.reason == "NotSelected" && it.message.contains("tier=gold")),
        "{rome:?}"
    );
    world.wait_reason("all-away", "NamespaceWithdrawn").await;
    // And wider again.
    change(world, "all-away", json!({ "clusterSelector": null })).await;
    world.wait_phase("all-away", "Ready").await;
    assert!(is_mapped(world, "rome", "all-away").await);
}

async fn a_budget_is_honoured_for_a_while(world: &World<'_>) {
    world.namespace("budget", json!({})).await;
    let tin =
        json!({ "podOffloadingStrategy": "Remote", "clusterSelector": selector("tier", "In", &["tin"]) });
    world.offload("budget", tin).await;
    world.wait_marked("budget", Some("Remote")).await;
    deploy(world, "budget", "web", 2).await;
    world.wait_places("budget", 2, &["liqo-rome"]).await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(world.client.clone(), "budget");
    let budget = json!({
        "metadata": { "name": "web" },
        "spec": { "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } },
    });
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    eventually("the budget is known", || async {
        let status = budgets.get("web").await.unwrap().status.unwrap_or_default();
        if status.expected_pods == 2 && status.current_healthy == 2 {
            Ok(())
        } else {
            Err(format!("{status:?}"))
        }
    })
    .await;
    let began = Instant::now();
    change(world, "budget", json!({ "clusterSelector": selector("tier", "In", &["gold"]) })).await;
    world.wait_places("budget", 2, &["liqo-milan"]).await;
    // Evictions were refused for as long as the room is patient, and then the pods went all the same.
    assert!(began.elapsed() >= Duration::from_secs(3), "after {:?}", began.elapsed());
    world.wait_phase("budget", "Ready").await;
    assert!(!is_mapped(world, "rome", "budget").await);
}

/// The provider is selected before and after, so that the namespace stays.
async fn pods_leave_a_pool_that_is_left_out(world: &World<'_>) {
    for pool in ["fast", "plain"] {
        world.add_pool("milan", pool).await;
    }
    world.namespace("pooled", json!({})).await;
    let of = |pool: &str| selector("liqo.io/pool", "In", &[pool]);
    world
        .offload("pooled", json!({ "podOffloadingStrategy": "Remote", "clusterSelector": of("plain") }))
        .await;
    world.wait_phase("pooled", "Ready").await;
    world.wait_marked("pooled", Some("Remote")).await;
    deploy(world, "pooled", "web", 3).await;
    world.wait_places("pooled", 3, &["liqo-milan-plain"]).await;
    for (pool, node) in [("fast", "liqo-milan-fast"), ("plain", "liqo-milan-plain")] {
        change(world, "pooled", json!({ "clusterSelector": of(pool) })).await;
        world.wait_places("pooled", 3, &[node]).await;
        assert!(is_mapped(world, "milan", "pooled").await);
    }
    let told = world.wait_phase("pooled", "Ready").await;
    let status = told.status.unwrap();
    let says = |it: &RemoteNamespaceCondition| it.message.contains("liqo-milan-fast does not match");
    let mut all = status.remote_namespaces_conditions.values().flat_map(|all| &all.0);
    assert!(all.any(says), "{status:#?}");
}

async fn without_the_manager_no_pod_of_an_offloaded_namespace_is_made(world: &World<'_>) {
    // Whoever was just killed may answer once more.
    eventually("nobody answers", || async {
        match world.create_pod("gold-away", "unasked", json!({})).await {
            Err(refused) if refused.contains("mutate-pods.liqo.io") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    // Others do not even notice.
    world.create_pod("plain", "unaware", json!({})).await.unwrap();
}

async fn without_the_webhook_the_second_line_holds(world: &World<'_>) {
    let configurations: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    configurations.delete("liqo", &DeleteParams::default()).await.unwrap();
    let refused = eventually("the API server notices", || async {
        let refused = world.create_pod("gold-away", "slips-through", json!({})).await;
        let refused = refused.err().ok_or_else(|| "created".to_owned())?;
        if refused.contains("mutate-pods.liqo.io") { Err(refused) } else { Ok(refused) }
    })
    .await;
    assert!(
        refused.contains("liqo-placement")
            && refused.contains("is the MutatingWebhookConfiguration liqo there?"),
        "{refused}"
    );
    // A term that does not say so is enough to be refused.
    let half = json!({ "spec": { "affinity": { "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "liqo.io/type", "operator": "In", "values": ["virtual-node"] }] },
            { "matchExpressions": [{ "key": "tier", "operator": "DoesNotExist" }] },
        ] },
    } } } });
    let refused = world.create_pod("gold-away", "half", half).await.unwrap_err();
    assert!(refused.contains("liqo-placement"), "{refused}");
    // Where pods may run here, they do; the taint of virtual nodes keeps them off those.
    world.create_pod("shop", "stays-here", json!({})).await.unwrap();
    eventually("it stays here", || async {
        let places = world.places("shop").await;
        if places["stays-here"].starts_with("home") { Ok(()) } else { Err(format!("{places:?}")) }
    })
    .await;
}

async fn deletion_brings_the_pods_home(world: &World<'_>) {
    world.offloadings("all-away").delete("offloading", &DeleteParams::default()).await.unwrap();
    world.wait_places("all-away", 4, &["home"]).await;
    eventually("it is gone", || async {
        let found = world.offloadings("all-away").get_opt("offloading").await.unwrap();
        found.map_or(Ok(()), |found| Err(format!("{found:#?}")))
    })
    .await;
    world.wait_marked("all-away", None).await;
    for name in ["milan", "rome"] {
        assert!(!is_mapped(world, name, "all-away").await);
    }
}

async fn a_namespace_may_go_with_everything_in_it(world: &World<'_>) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(world.client.clone());
    for name in ["shop", "gold-away", "at-home", "budget", "taken", "pooled"] {
        namespaces.delete(name, &DeleteParams::default()).await.unwrap();
    }
    for name in ["shop", "gold-away", "at-home", "budget", "taken", "pooled"] {
        eventually(&format!("{name} goes"), || async {
            let found = namespaces.get_opt(name).await.unwrap();
            found.map_or(Ok(()), |found| Err(format!("{:#?}", found.status)))
        })
        .await;
    }
    // Nothing is left, here and there.
    for name in ["milan", "rome"] {
        let ours: Api<NamespaceMap> = Api::namespaced(world.client.clone(), &format!("liqo-tenant-{name}"));
        for maps in [ours, world.maps_at(name).await] {
            eventually("no map is left", || async {
                let left = maps.list(&ListParams::default()).await.unwrap().items;
                if left.is_empty() { Ok(()) } else { Err(format!("{left:#?}")) }
            })
            .await;
        }
    }
}

fn selector(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({ "nodeSelectorTerms": [{ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] }] })
}

async fn change(world: &World<'_>, namespace: &str, spec: Value) {
    let patch = json!({ "spec": spec });
    let api = world.offloadings(namespace);
    api.patch("offloading", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

async fn is_mapped(world: &World<'_>, provider: &str, namespace: &str) -> bool {
    let copies = world.maps_at(provider).await.list(&ListParams::default()).await.unwrap().items;
    copies.iter().any(|map| map.spec.desired_mapping.contains_key(namespace))
}

async fn deploy(world: &World<'_>, namespace: &str, name: &str, replicas: u32) {
    let api: Api<Deployment> = Api::namespaced(world.client.clone(), namespace);
    let deployment = serde_json::from_value(deployment(name, replicas)).unwrap();
    api.create(&PostParams::default(), &deployment).await.unwrap();
}
