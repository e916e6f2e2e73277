//! What becomes of a pod that runs when its consumer wants it to be otherwise, on a real kubelet.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Event, Pod};
use kube::api::{DeleteParams, ListParams, LogParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::ShadowPod;
use liqo_api::namespace_map::MappingPhase::Accepted;
use liqo_core::contract::Enforcement;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use world::{Consumer, Provider, eventually, is_of};

const SPACE: &str = "shop-milan";
const IMAGE: &str = "localhost/liqo/sandbox-app:1";

#[tokio::test(flavor = "multi_thread")]
async fn pods_that_run_follow_what_their_consumer_wants() {
    let sandbox = TestSandbox::start([ClusterSpec::real("provider", 1)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    let process = provider.start().await;
    let milan = provider.consumer("milan").await;
    milan.sign(&[("cpu", "1"), ("memory", "2Gi"), ("pods", "10")], Enforcement::Hard).await;
    milan.ask("map", &[("shop", SPACE)]).await;
    milan.wait_told("map", "shop", Accepted, "").await;
    let web = serving("100m");
    eventually("the consumer is let in", || milan.want(SPACE, "web", &web)).await;
    let first = milan.wait_pod(SPACE, "web", is_ready).await;

    labels_come_and_go_and_those_of_others_stay(&provider, &milan).await;
    a_container_is_put_into_the_running_pod(&milan).await;
    a_hostile_one_is_refused_and_told(&milan).await;
    the_pod_grows_as_far_as_the_contract_allows(&milan).await;
    another_image_is_run_in_the_same_pod(&milan).await;
    let same = milan.wait_pod(SPACE, "web", |_| true).await;
    assert_eq!(first.uid(), same.uid(), "it was the same pod all the time");
    milan.drop_pod(SPACE, "web").await;
    sidecars_and_sizes_of_whole_pods_are_run_and_counted(&milan).await;
    pods_that_vanish_are_counted(&provider, &milan).await;
    drop(process);
    let _process = provider.start().await;
    the_count_survives_the_manager(&provider, &milan).await;
}

/// A pod that serves until it is stopped.
fn serving(cpu: &str) -> Value {
    json!({ "terminationGracePeriodSeconds": 1, "containers": [container("main", cpu)] })
}

fn container(name: &str, cpu: &str) -> Value {
    json!({ "name": name, "image": IMAGE, "imagePullPolicy": "Never", "args": ["sleep", "1h"],
            "resources": { "requests": { "cpu": cpu }, "limits": { "cpu": "900m" } } })
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|it| it.type_ == "Ready" && it.status == "True")
}

/// The consumer changes what it wants.
async fn change(milan: &Consumer<'_>, name: &str, patch: &Value) {
    let shadows: Api<ShadowPod> = milan.api(SPACE);
    shadows.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// The consumer wants the pod to be so.
async fn want(milan: &Consumer<'_>, name: &str, pod: &Value) {
    change(milan, name, &json!({ "spec": { "pod": pod } })).await;
}

async fn labels_come_and_go_and_those_of_others_stay(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let theirs =
        json!({ "metadata": { "labels": { "team": "provider" }, "annotations": { "seen": "yes" } } });
    provider.api::<Pod>(SPACE).patch("web", &PatchParams::default(), &Patch::Merge(&theirs)).await.unwrap();
    let labels = json!({ "app": null, "tier": "front", "liqo.io/managed-by": "me" });
    let notes = json!({ "note": null, "other": "kept", "k8s.v1.cni.cncf.io/networks": "host" });
    change(milan, "web", &json!({ "metadata": { "labels": labels, "annotations": notes } })).await;
    let pod = milan.wait_pod(SPACE, "web", |pod| pod.labels().contains_key("tier")).await;
    let (labels, notes) = (pod.labels(), pod.annotations());
    assert_eq!((labels.get("app"), notes.get("note")), (None, None));
    assert_eq!((labels["tier"].as_str(), notes["other"].as_str()), ("front", "kept"));
    assert_eq!((labels["team"].as_str(), notes["seen"].as_str()), ("provider", "yes"));
    assert_eq!(labels["liqo.io/managed-by"], "shadowpod");
    assert!(!notes.contains_key("k8s.v1.cni.cncf.io/networks"), "{notes:?}");
}

fn debugger(name: &str, fields: &Value) -> Value {
    let mut it = json!({ "name": name, "image": IMAGE, "imagePullPolicy": "Never", "targetContainerName": "main",
                         "args": ["--version"] });
    fields.as_object().unwrap().iter().for_each(|(key, value)| it[key] = value.clone());
    it
}

async fn a_container_is_put_into_the_running_pod(milan: &Consumer<'_>) {
    let mut web = serving("100m");
    web["ephemeralContainers"] = json!([debugger("debugger", &json!({}))]);
    want(milan, "web", &web).await;
    let has_run = |pod: &Pod| {
        let statuses = pod.status.as_ref().and_then(|it| it.ephemeral_container_statuses.as_ref());
        let state = |it: &ContainerStatus| it.state.as_ref().and_then(|state| state.terminated.clone());
        statuses.into_iter().flatten().filter_map(state).any(|ended| ended.exit_code == 0)
    };
    milan.wait_pod(SPACE, "web", has_run).await;
    let params = LogParams { container: Some("debugger".to_owned()), ..LogParams::default() };
    let said = milan.api::<Pod>(SPACE).logs("web", &params).await.unwrap();
    assert!(said.contains("sandbox-app"), "{said}");
}

async fn a_hostile_one_is_refused_and_told(milan: &Consumer<'_>) {
    let mut web = serving("100m");
    let hostile = [
        ("privileged", json!({ "securityContext": { "privileged": true } })),
        // Not refused by us, but by the Pod Security level of the namespace.
        ("capable", json!({ "securityContext": { "capabilities": { "add": ["SYS_ADMIN"] } } })),
    ];
    for (name, fields) in hostile {
        web["ephemeralContainers"] = json!([debugger("debugger", &json!({})), debugger(name, &fields)]);
        want(milan, "web", &web).await;
        let message = wait_not_changed(milan, "web", "Forbidden", name).await;
        println!("{name}: {message}");
    }
    // Without it, all is well again.
    web["ephemeralContainers"] = json!([debugger("debugger", &json!({}))]);
    want(milan, "web", &web).await;
    wait_changed(milan, "web").await;
    let pod = milan.wait_pod(SPACE, "web", |_| true).await;
    assert_eq!(pod.spec.unwrap().ephemeral_containers.unwrap().len(), 1);
}

/// What is said about changes of the pod.
async fn up_to_date(milan: &Consumer<'_>, name: &str) -> Option<(String, String, String)> {
    let shadow = milan.api::<ShadowPod>(SPACE).get(name).await.unwrap();
    let conditions = shadow.status.map(|status| status.conditions).unwrap_or_default();
    let found = conditions.into_iter().find(|it| it.type_ == "UpToDate");
    found.map(|it| (it.status, it.reason, it.message))
}

/// Waits until it is told why a pod is not changed, in the ShadowPod and in an event about the pod; returns the words.
async fn wait_not_changed(milan: &Consumer<'_>, name: &str, reason: &str, words: &str) -> String {
    let message = eventually(&format!("{name} is not changed: {reason}"), || async {
        match up_to_date(milan, name).await {
            Some((status, found, message))
                if status == "False" && found == reason && message.contains(words) =>
            {
                Ok(message)
            }
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let events: Api<Event> = milan.api(SPACE);
    let about = ListParams::default().fields(&format!("involvedObject.kind=Pod,involvedObject.name={name}"));
    eventually("it is told in an event", || async {
        let found = events.list(&about).await.unwrap().items;
        let is = |it: &Event| {
            let says = it.message.as_ref().is_some_and(|message| message.contains(words));
            it.reason.as_deref() == Some(reason) && says
        };
        if found.iter().any(is) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    message
}

async fn wait_changed(milan: &Consumer<'_>, name: &str) {
    eventually(&format!("{name} is as it should be"), || async {
        match up_to_date(milan, name).await {
            None => Ok(()),
            Some((status, ..)) if status == "True" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// What the kubelet has given to a container.
fn given(pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let resources = statuses.iter().find(|it| it.name == "main")?.resources.as_ref()?;
    resources.requests.as_ref()?.get("cpu").map(|amount| amount.0.clone())
}

async fn the_pod_grows_as_far_as_the_contract_allows(milan: &Consumer<'_>) {
    let mut web = serving("300m");
    web["ephemeralContainers"] = json!([debugger("debugger", &json!({}))]);
    want(milan, "web", &web).await;
    milan.wait_pod(SPACE, "web", |pod| given(pod).as_deref() == Some("300m")).await;
    // Another pod takes a part, so that it may not grow as it wants to.
    milan.want(SPACE, "other", &serving("400m")).await.unwrap();
    let other = milan.wait_pod(SPACE, "other", |_| true).await;
    web["containers"][0]["resources"]["requests"]["cpu"] = json!("700m");
    want(milan, "web", &web).await;
    wait_not_changed(milan, "web", "QuotaExceeded", "cpu (400m wanted, 1 agreed for all pods)").await;
    let pod = milan.wait_pod(SPACE, "web", |_| true).await;
    assert_eq!(given(&pod).as_deref(), Some("300m"));
    // Room that becomes free is used.
    milan.drop_pod(SPACE, "other").await;
    milan.wait_no_pod(SPACE, "other").await;
    let pod = milan.wait_pod(SPACE, "web", |pod| given(pod).as_deref() == Some("700m")).await;
    assert_ne!(pod.uid(), other.uid());
    wait_changed(milan, "web").await;
    let restarts = pod.status.unwrap().container_statuses.unwrap()[0].restart_count;
    assert_eq!(restarts, 0, "it grew without being started again");
}

async fn another_image_is_run_in_the_same_pod(milan: &Consumer<'_>) {
    let mut web = serving("700m");
    web["ephemeralContainers"] = json!([debugger("debugger", &json!({}))]);
    web["containers"][0]["image"] = json!("localhost/liqo/sandbox-app:of-tomorrow");
    web["activeDeadlineSeconds"] = json!(3000);
    web["tolerations"] = json!([{ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
        "tolerationSeconds": 5 }]);
    want(milan, "web", &web).await;
    let image = |it: &Container| it.image.clone();
    let is_new = |pod: &Pod| {
        let spec = pod.spec.as_ref().unwrap();
        spec.containers.iter().filter_map(image).any(|image| image.ends_with(":of-tomorrow"))
    };
    let pod = milan.wait_pod(SPACE, "web", is_new).await;
    let spec = pod.spec.unwrap();
    assert_eq!(spec.active_deadline_seconds, Some(3000));
    let seconds: Vec<_> = spec.tolerations.iter().flatten().map(|it| it.toleration_seconds).collect();
    assert!(seconds.contains(&Some(5)) && seconds.contains(&Some(300)), "{seconds:?}");
    // The kubelet ends what ran, and says that there is no such image.
    let waits = |pod: &Pod| {
        let statuses = pod.status.as_ref().and_then(|it| it.container_statuses.as_ref());
        let reason = |it: &ContainerStatus| it.state.as_ref()?.waiting.as_ref()?.reason.clone();
        statuses.into_iter().flatten().filter_map(reason).any(|reason| reason == "ErrImageNeverPull")
    };
    milan.wait_pod(SPACE, "web", waits).await;
    web["containers"][0]["image"] = json!(IMAGE);
    want(milan, "web", &web).await;
    milan.wait_pod(SPACE, "web", is_ready).await;
}

async fn sidecars_and_sizes_of_whole_pods_are_run_and_counted(milan: &Consumer<'_>) {
    let mut sidecar = container("proxy", "200m");
    sidecar["restartPolicy"] = json!("Always");
    let mut with_sidecar = serving("300m");
    with_sidecar["initContainers"] = json!([sidecar]);
    milan.want(SPACE, "sidecar", &with_sidecar).await.unwrap();
    milan.wait_pod(SPACE, "sidecar", is_ready).await;
    let mut whole = json!({ "containers": [{ "name": "main", "image": IMAGE, "imagePullPolicy": "Never",
        "args": ["sleep", "1h"] }], "terminationGracePeriodSeconds": 1 });
    whole["resources"] = json!({ "requests": { "cpu": "400m" }, "limits": { "cpu": "400m" } });
    milan.want(SPACE, "whole", &whole).await.unwrap();
    milan.wait_pod(SPACE, "whole", is_ready).await;
    // 300m + 200m + 400m of 1 are used.
    milan.want(SPACE, "more", &serving("200m")).await.unwrap();
    milan.wait_refused(SPACE, "more", "QuotaExceeded").await;
    let mut claims = serving("1m");
    claims["resourceClaims"] = json!([{ "name": "gpu", "resourceClaimName": "gpu" }]);
    let said = milan.want(SPACE, "claims", &claims).await.unwrap_err();
    assert!(said.contains("claims of devices are not offloaded"), "{said}");
    for name in ["sidecar", "whole", "more"] {
        milan.drop_pod(SPACE, name).await;
    }
}

async fn recreations(milan: &Consumer<'_>, name: &str) -> u32 {
    let shadow = milan.api::<ShadowPod>(SPACE).get(name).await.unwrap();
    shadow.status.and_then(|status| status.recreations).unwrap_or_default()
}

/// Somebody deletes the pod; it comes back.
async fn delete(provider: &Provider<'_>, milan: &Consumer<'_>, name: &str) {
    let pods = provider.api::<Pod>(SPACE);
    let uid = pods.get(name).await.unwrap().uid();
    pods.delete(name, &DeleteParams::default().grace_period(0)).await.unwrap();
    milan.wait_pod(SPACE, name, is_of(uid.as_deref())).await;
}

async fn pods_that_vanish_are_counted(provider: &Provider<'_>, milan: &Consumer<'_>) {
    milan.want(SPACE, "lost", &serving("1m")).await.unwrap();
    milan.wait_pod(SPACE, "lost", |_| true).await;
    delete(provider, milan, "lost").await;
    assert_eq!(recreations(milan, "lost").await, 1);
}

async fn the_count_survives_the_manager(provider: &Provider<'_>, milan: &Consumer<'_>) {
    // What is new is served, so that the new process leads.
    milan.want(SPACE, "new", &serving("1m")).await.unwrap();
    milan.wait_pod(SPACE, "new", |_| true).await;
    assert_eq!(recreations(milan, "lost").await, 1);
    let begun = tokio::time::Instant::now();
    delete(provider, milan, "lost").await;
    assert_eq!(recreations(milan, "lost").await, 2);
    // The second time, it waits a little; the first time it did not.
    let waited = begun.elapsed();
    assert!(waited >= std::time::Duration::from_secs(1), "{waited:?}");
}
