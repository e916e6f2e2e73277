//! Pods that run elsewhere as if they ran at home, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/fuse.rs"]
mod fuse;
#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::ShadowPod;
use liqo_providers::Health;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::json;
use world::{StandIn, World, all, create, eventually, is_ready};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_run_elsewhere() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("home", 1), ClusterSpec::hollow("away", 3)]).await;
    let world = World::new(&sandbox, "home", "home").await;
    world.map(&[("shop", "shop-home")]).await;
    let _stand_in = StandIn::start(&world);
    let process = world.start().await;
    a_pod_runs_there_and_is_ready_here(&world).await;
    warnings_there_are_told_here(&world).await;
    what_changes_here_changes_there(&world).await;
    a_pod_deleted_here_goes_there_first(&world).await;
    what_the_provider_refuses_is_told(&world).await;
    what_the_providers_api_server_refuses_is_told(&world).await;
    what_cannot_be_sent_is_told(&world).await;
    a_namespace_that_is_not_mapped_is_told(&world).await;
    pods_that_go_nowhere_are_told_and_do_not_stay(&world).await;
    pods_of_a_silent_provider_are_not_ready(&world).await;
    what_nobody_wants_is_removed_and_what_is_not_ours_stays(&world).await;
    println!("{}", process.metrics());
    process.kill();
    a_restart_writes_nothing(&world).await;
}

async fn a_pod_runs_there_and_is_ready_here(world: &World<'_>) {
    let (here, there): (Api<Pod>, Api<Pod>) = (world.at_home("shop"), world.at_provider("shop-home"));
    create(&here, &world.pod("shop", "one")).await;
    world.wait_ready("shop", "one").await;
    eventually("what is said here is what is said there", || async {
        let (home, away) = (here.get("one").await.unwrap(), there.get("one").await.unwrap());
        let (home, away) = (home.status.unwrap(), away.status.unwrap());
        let same = home.phase == away.phase
            && home.pod_ip == away.pod_ip
            && home.host_ip.as_deref() == Some("10.9.8.7")
            && home.container_statuses == away.container_statuses;
        if same { Ok(()) } else { Err(format!("{home:?}\n{away:?}")) }
    })
    .await;
    let shadow = world.at_provider::<ShadowPod>("shop-home").get("one").await.unwrap();
    assert_eq!(shadow.labels()["virtualkubelet.liqo.io/origin"], "home");
    assert_eq!(shadow.labels().get("liqo.io/shadowPod"), None);
    assert_eq!(shadow.spec.pod.node_name, None);
}

async fn warnings_there_are_told_here(world: &World<'_>) {
    let events: Api<k8s_openapi::api::core::v1::Event> = world.at_provider("shop-home");
    let event = |name: &str, type_: &str, reason: &str| {
        json!({ "metadata": { "name": name }, "type": type_, "reason": reason, "message": "said there",
            "involvedObject": { "kind": "Pod", "name": "one", "namespace": "shop-home" } })
    };
    create(&events, &event("one.1", "Normal", "Pulled")).await;
    create(&events, &event("one.2", "Warning", "Unhealthy")).await;
    wait_event(world, "shop", "one", "Unhealthy").await;
}

async fn what_changes_here_changes_there(world: &World<'_>) {
    let (here, there): (Api<Pod>, Api<ShadowPod>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let patch = json!({ "metadata": { "annotations": { "note": "new" }, "labels": { "app": "b" } } });
    here.patch("one", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    eventually("the change arrives", || async {
        let shadow = there.get("one").await.unwrap();
        let is = shadow.annotations().get("note").is_some_and(|note| note == "new")
            && shadow.labels()["app"] == "b";
        if is { Ok(()) } else { Err(format!("{:?}", shadow.metadata)) }
    })
    .await;
}

async fn a_pod_deleted_here_goes_there_first(world: &World<'_>) {
    let (here, there): (Api<Pod>, Api<Pod>) = (world.at_home("shop"), world.at_provider("shop-home"));
    here.delete("one", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&here, "one").await;
    assert!(there.get_opt("one").await.unwrap().is_none(), "it is gone here and not there");
    assert!(all(&world.at_provider::<ShadowPod>("shop-home")).await.is_empty());
}

async fn what_the_provider_refuses_is_told(world: &World<'_>) {
    let (here, there): (Api<Pod>, Api<ShadowPod>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let mut pod = world.pod("shop", "refused");
    pod["metadata"]["annotations"] = json!({ "test/refuse": "yes" });
    create(&here, &pod).await;
    eventually("it is sent", || async {
        there.get_opt("refused").await.unwrap().map(|_| ()).ok_or_else(|| "not there".to_owned())
    })
    .await;
    let status = json!({ "status": { "conditions": [{ "type": "Created", "status": "False", "reason": "QuotaExceeded",
        "message": "too much", "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
    there.patch_status("refused", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    world
        .wait_pod("shop", "refused", |pod| {
            let status = pod.status.as_ref()?;
            (status.reason.as_deref() == Some("QuotaExceeded")
                && status.message.as_ref()?.contains("too much"))
            .then_some(())
        })
        .await;
    wait_event(world, "shop", "refused", "QuotaExceeded").await;
    here.delete("refused", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&here, "refused").await;
}

/// As the policy `liqo-shadowpods` does.
async fn what_the_providers_api_server_refuses_is_told(world: &World<'_>) {
    let policy = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": "no-nonsense" }, "spec": { "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{ "apiGroups": ["virtualkubelet.liqo.io"], "apiVersions": ["*"],
                "operations": ["CREATE"], "resources": ["shadowpods"] }] },
            "validations": [{ "expression": "object.metadata.name != 'nonsense'", "message": "this is nonsense",
                "reason": "Forbidden" }] } });
    let binding = json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": "no-nonsense" }, "spec": { "policyName": "no-nonsense", "validationActions": ["Deny"] } });
    install::put(&world.there, &policy).await;
    install::put(&world.there, &binding).await;
    let probe = json!({ "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "ShadowPod",
        "metadata": { "name": "nonsense" }, "spec": { "pod": { "containers": [{ "name": "a" }] } } });
    let probe: ShadowPod = serde_json::from_value(probe).unwrap();
    eventually("the policy holds", || async {
        let params = PostParams { dry_run: true, ..PostParams::default() };
        match world.at_provider::<ShadowPod>("shop-home").create(&params, &probe).await {
            Ok(_) => Err("it was taken".to_owned()),
            Err(_) => Ok(()),
        }
    })
    .await;
    let here: Api<Pod> = world.at_home("shop");
    let begun = tokio::time::Instant::now();
    create(&here, &world.pod("shop", "nonsense")).await;
    world
        .wait_pod("shop", "nonsense", |pod| {
            let status = pod.status.as_ref()?;
            (status.reason.as_deref() == Some("Forbidden")
                && status.message.as_ref()?.contains("this is nonsense"))
            .then_some(())
        })
        .await;
    println!("refused by admission, told after {:?}", begun.elapsed());
    wait_event(world, "shop", "nonsense", "Forbidden").await;
    here.delete("nonsense", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&here, "nonsense").await;
}

async fn wait_event(world: &World<'_>, namespace: &str, pod: &str, reason: &str) {
    let events: Api<Event> = world.at_home(namespace);
    eventually(&format!("event {reason}"), || async {
        let found = events.list(&ListParams::default()).await.unwrap().items;
        let is = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.regarding.as_ref().is_some_and(|it| it.name.as_deref() == Some(pod))
        };
        if found.iter().any(is) { Ok(()) } else { Err(format!("{} others", found.len())) }
    })
    .await;
}

async fn what_cannot_be_sent_is_told(world: &World<'_>) {
    let here: Api<Pod> = world.at_home("shop");
    let mut pod = world.pod("shop", "claims");
    pod["spec"]["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimName": "some" }]);
    create(&here, &pod).await;
    world
        .wait_pod("shop", "claims", |pod| {
            (pod.status.as_ref()?.reason.as_deref() == Some("ResourceClaimsNotSupported")).then_some(())
        })
        .await;
    wait_event(world, "shop", "claims", "ResourceClaimsNotSupported").await;
    here.delete("claims", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&here, "claims").await;
}

async fn a_namespace_that_is_not_mapped_is_told(world: &World<'_>) {
    let here: Api<Pod> = world.at_home("default");
    eventually("account", || async {
        let accounts: Api<k8s_openapi::api::core::v1::ServiceAccount> = world.at_home("default");
        accounts.get_opt("default").await.unwrap().map(|_| ()).ok_or_else(|| "none".to_owned())
    })
    .await;
    create(&here, &world.pod("default", "stray")).await;
    world
        .wait_pod("default", "stray", |pod| {
            (pod.status.as_ref()?.reason.as_deref() == Some("OffloadingBackoff")).then_some(())
        })
        .await;
    here.delete("stray", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&here, "stray").await;
}

/// Those of a DaemonSet that tolerates everything, as kube-proxy does: no kubelet ever sees the one on the virtual node.
async fn pods_that_go_nowhere_are_told_and_do_not_stay(world: &World<'_>) {
    let sets: Api<DaemonSet> = world.at_home("default");
    let set = |version: &str| {
        let affinity = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "liqo.io/type", "operator": "NotIn", "values": ["virtual-node"] }] }] } } });
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": { "name": "everywhere", "namespace": "default" },
            "spec": { "selector": { "matchLabels": { "app": "everywhere" } }, "template": {
                "metadata": { "labels": { "app": "everywhere" }, "annotations": { "version": version } },
                "spec": { "tolerations": [{ "operator": "Exists" }], "containers": [{ "name": "main", "image": "nothing" }],
                    "affinity": if version == "3" { affinity } else { json!({}) } } } },
        })
    };
    create(&sets, &set("1")).await;
    let first = wait_stray(world, None).await;
    wait_event(world, "default", &first.name_any(), "OffloadingBackoff").await;
    // As `kubectl rollout restart` does it: the pod is replaced, and does not end for ever.
    let apply = PatchParams::apply("test").force();
    sets.patch("everywhere", &apply, &Patch::Apply(set("2"))).await.unwrap();
    let second = wait_stray(world, first.uid()).await;
    // As the reason advises.
    sets.patch("everywhere", &apply, &Patch::Apply(set("3"))).await.unwrap();
    world.wait_gone(&world.at_home::<Pod>("default"), &second.name_any()).await;
    eventually("all others are up to date", || async {
        let status = sets.get("everywhere").await.unwrap().status.unwrap();
        let done = status.updated_number_scheduled == Some(status.desired_number_scheduled)
            && status.number_ready == status.desired_number_scheduled;
        if done { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    sets.delete("everywhere", &DeleteParams::foreground()).await.unwrap();
    world.wait_gone(&sets, "everywhere").await;
}

/// The pod of the DaemonSet on the virtual node that says why it does not run, and is not that of this uid.
async fn wait_stray(world: &World<'_>, other_than: Option<String>) -> Pod {
    let pods: Api<Pod> = world.at_home("default");
    let here =
        ListParams::default().labels("app=everywhere").fields(&format!("spec.nodeName={}", world.node));
    eventually("the pod on the virtual node says why it waits", || async {
        let found = pods.list(&here).await.unwrap().items;
        let told = found.iter().find(|pod| {
            let status = pod.status.clone().unwrap_or_default();
            pod.uid() != other_than
                && status.phase.as_deref() == Some("Pending")
                && status.reason.as_deref() == Some("OffloadingBackoff")
                && status.message.is_some_and(|why| why.contains("node affinity"))
        });
        told.cloned().ok_or_else(|| format!("{:?}", found.iter().map(|pod| &pod.status).collect::<Vec<_>>()))
    })
    .await
}

async fn pods_of_a_silent_provider_are_not_ready(world: &World<'_>) {
    let here: Api<Pod> = world.at_home("shop");
    create(&here, &world.pod("shop", "two")).await;
    world.wait_ready("shop", "two").await;
    world.set_health(&Health::Unreachable { since: jiff::Timestamp::UNIX_EPOCH, why: Arc::from("silence") });
    let begun = tokio::time::Instant::now();
    world
        .wait_pod("shop", "two", |pod| {
            let conditions = pod.status.as_ref()?.conditions.as_ref()?;
            let ready = conditions.iter().find(|it| it.type_ == "Ready")?;
            (ready.status == "False" && ready.reason.as_deref() == Some("ProviderUnreachable")).then_some(())
        })
        .await;
    println!("not ready {:?} after it was known", begun.elapsed());
    // What is deleted now waits until somebody can say that it ended.
    here.delete("two", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(here.get_opt("two").await.unwrap().is_some(), "it went though nobody knows whether it runs");
    world.set_health(&Health::Reachable);
    world.wait_gone(&here, "two").await;
    create(&here, &world.pod("shop", "three")).await;
    world.wait_ready("shop", "three").await;
    world.set_health(&Health::Unreachable { since: jiff::Timestamp::UNIX_EPOCH, why: Arc::from("silence") });
    world.wait_pod("shop", "three", |pod| (!is_ready(pod)).then_some(())).await;
    world.set_health(&Health::Reachable);
    world.wait_ready("shop", "three").await;
}

async fn what_nobody_wants_is_removed_and_what_is_not_ours_stays(world: &World<'_>) {
    let there: Api<ShadowPod> = world.at_provider("shop-home");
    let shadow = |name: &str, labels: serde_json::Value| {
        json!({ "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "ShadowPod",
            "metadata": { "name": name, "labels": labels,
                "annotations": { "virtualkubelet.liqo.io/pod-uid": "gone", "test/refuse": "yes" } },
            "spec": { "pod": { "containers": [{ "name": "main", "image": "nothing" }] } } })
    };
    create(&there, &shadow("other", json!({ "virtualkubelet.liqo.io/origin": "another" }))).await;
    create(&there, &shadow("orphan", json!({ "virtualkubelet.liqo.io/origin": "home" }))).await;
    world.wait_gone(&there, "orphan").await;
    assert!(there.get_opt("other").await.unwrap().is_some(), "what is not ours was removed");
    // A pod of that name cannot run there, and says so.
    let here: Api<Pod> = world.at_home("shop");
    create(&here, &world.pod("shop", "other")).await;
    world
        .wait_pod("shop", "other", |pod| {
            (pod.status.as_ref()?.reason.as_deref() == Some("NameTaken")).then_some(())
        })
        .await;
    here.delete("other", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&here, "other").await;
    there.delete("other", &DeleteParams::default()).await.unwrap();
}

async fn a_restart_writes_nothing(world: &World<'_>) {
    let fuse = fuse::Fuse::never();
    let before = world.at_home::<Pod>("shop").get("three").await.unwrap();
    let told = told_of_others(world).await;
    let process = world.start_with(fuse.clone()).await;
    let here: Api<Pod> = world.at_home("shop");
    create(&here, &world.pod("shop", "after")).await;
    world.wait_ready("shop", "after").await;
    let after = here.get("three").await.unwrap();
    assert_eq!(before.resource_version(), after.resource_version());
    let counts = fuse.counts();
    println!("after a restart, with one new pod: {counts:?}");
    assert_eq!(counts.get("POST shadowpods"), Some(&1), "{counts:?}");
    assert_eq!(counts.get("PATCH pods/status"), Some(&1), "{counts:?}");
    // A token is asked for anew, as nobody keeps them; and what is said of the new pod is told if it takes long.
    let fine = ["POST serviceaccounts", "PUT secrets", "PATCH events"];
    let others = counts.keys().filter(|key| !key.starts_with("GET") && !fine.contains(&key.as_str())).count();
    assert_eq!(others, 2, "{counts:?}");
    assert_eq!(told_of_others(world).await, told, "nothing is told again");
    process.kill();
}

/// The versions of all events about other pods than the one that is made after a restart.
async fn told_of_others(world: &World<'_>) -> BTreeMap<String, Option<String>> {
    let events = all(&world.at_home::<Event>("shop")).await;
    let others = events.iter().filter(|event| {
        event.regarding.as_ref().is_none_or(|regarding| regarding.name.as_deref() != Some("after"))
    });
    others.map(|event| (event.name_any(), event.resource_version())).collect()
}
