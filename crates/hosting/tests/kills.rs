//! The room killed after each single write: whoever comes after it finishes the same work, on a real API server.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

// One way to count writes and to stop after so many is enough.
#[path = "../../reflection/tests/support/fuse.rs"]
mod fuse;
#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use fuse::Fuse;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use liqo_api::namespace_map::MappingPhase::Accepted;
use liqo_api::shadow_pod::PodPhase;
use liqo_api::{NamespaceMap, ShadowPod};
use liqo_core::contract::Enforcement;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use parking_lot::Mutex;
use serde_json::{Value, json};
use world::{Consumer, Provider, eventually, is_of, pod};

/// More writes than any of this takes; a test that reaches it never ends by itself.
const TOO_MANY: isize = 60;
/// What a life takes at least: a namespace with what is in it, a pod, its changes, another one, and the end of all.
const AT_LEAST: isize = 16;

/// A namespace with pods, from its beginning to its end.
#[derive(Default)]
struct Life {
    space: String,
    known: Mutex<Known>,
}

/// What is known of it, whoever saw it.
#[derive(Clone, Default)]
struct Known {
    stage: usize,
    /// The pod that was made first.
    first: Option<String>,
    /// The one that was made after somebody deleted it.
    second: Option<String>,
    recreations: u32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_room_killed_after_each_write_comes_to_the_same_end() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 1)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    let milan = provider.consumer("milan").await;
    milan.sign(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "20")], Enforcement::Hard).await;
    for writes in 1..TOO_MANY {
        let life = Life { space: format!("k{writes}-milan"), ..Life::default() };
        let fuse = Fuse::after(writes);
        let process = provider.start_with(fuse.client(&provider.room_config().await).unwrap()).await;
        tokio::select! {
            () = fuse.blown() => {}
            () = live(&provider, &milan, &life) => {}
        }
        let last = fuse.last();
        drop(process);
        let process = provider.start().await;
        live(&provider, &milan, &life).await;
        drop(process);
        match last {
            Some(last) => println!("killed after write {writes}: {last}"),
            None => {
                println!("a life takes {} writes", writes - 1);
                assert!(writes > AT_LEAST, "{writes}");
                // Undisturbed, nothing is missed.
                assert_eq!(life.known.lock().recreations, 1);
                return nothing_is_left(&provider).await;
            }
        }
    }
    panic!("it never came to an end");
}

/// Lives as far as it did not yet.
async fn live(provider: &Provider<'_>, milan: &Consumer<'_>, life: &Life) {
    loop {
        let stage = life.known.lock().stage;
        match stage {
            0 => is_given_a_namespace(milan, life).await,
            1 => runs(provider, milan, life).await,
            2 => is_changed(milan, life).await,
            3 => vanishes(provider, milan, life).await,
            4 => comes_to_its_end(provider, milan, life).await,
            5 => is_taken_back(provider, milan, life).await,
            _ => return,
        }
        life.known.lock().stage += 1;
    }
}

async fn is_given_a_namespace(milan: &Consumer<'_>, life: &Life) {
    milan.ask("map", &[("shop", &life.space)]).await;
    eventually("the namespace is given", || async {
        let told = milan.told("map", "shop").await;
        let given = |it: &liqo_api::namespace_map::RemoteNamespace| {
            it.phase == Accepted && it.remote_namespace == life.space
        };
        if told.as_ref().is_some_and(given) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
}

/// Wants a pod, unless it does already.
async fn want(milan: &Consumer<'_>, space: &str, name: &str, pod: &Value) {
    eventually(&format!("{name} is wanted"), || async {
        match milan.want(space, name, pod).await {
            Err(said) if !said.starts_with("409") => Err(said),
            _ => Ok(()),
        }
    })
    .await;
}

async fn runs(provider: &Provider<'_>, milan: &Consumer<'_>, life: &Life) {
    want(milan, &life.space, "web", &pod("100m")).await;
    let is_running = |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
    let found = milan.wait_pod(&life.space, "web", is_running).await;
    life.known.lock().first = found.uid();
    // A kubelet says what it has given; without that, the API server takes it for one that cannot resize.
    let mut statuses = found.status.unwrap().container_statuses.unwrap();
    statuses.iter_mut().for_each(|it| it.resources = Some(Default::default()));
    let patch = Patch::Merge(json!({ "status": { "containerStatuses": statuses } }));
    provider.api::<Pod>(&life.space).patch_status("web", &PatchParams::default(), &patch).await.unwrap();
}

/// The first pod, which must not have been made twice.
async fn first(milan: &Consumer<'_>, life: &Life, fine: impl Fn(&Pod) -> bool) -> Pod {
    let found = milan.wait_pod(&life.space, "web", fine).await;
    assert_eq!(found.uid(), life.known.lock().first, "{}: the pod was started twice", life.space);
    found
}

async fn is_changed(milan: &Consumer<'_>, life: &Life) {
    let mut wanted = pod("200m");
    wanted["containers"][0]["image"] = json!("example.com/app:2");
    wanted["ephemeralContainers"] = json!([{ "name": "debugger", "image": "example.com/debugger" }]);
    let patch =
        json!({ "metadata": { "labels": { "app": null, "tier": "front" } }, "spec": { "pod": wanted } });
    let shadows: Api<ShadowPod> = milan.api(&life.space);
    shadows.patch("web", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let is_changed = |pod: &Pod| {
        let spec = pod.spec.as_ref().unwrap();
        let main = &spec.containers[0];
        let requests = main.resources.as_ref().and_then(|it| it.requests.as_ref()).unwrap();
        pod.labels().contains_key("tier")
            && !pod.labels().contains_key("app")
            && main.image.as_deref() == Some("example.com/app:2")
            && requests["cpu"].0 == "200m"
            && spec.ephemeral_containers.as_ref().is_some_and(|list| list.len() == 1)
    };
    first(milan, life, is_changed).await;
}

async fn vanishes(provider: &Provider<'_>, milan: &Consumer<'_>, life: &Life) {
    let uid = life.known.lock().first.clone();
    let preconditions = Some(Preconditions { uid: uid.clone(), resource_version: None });
    let params = DeleteParams { preconditions, ..DeleteParams::default().grace_period(0) };
    // One that it was not made for, or none, is fine: it was deleted before.
    let _ = provider.api::<Pod>(&life.space).delete("web", &params).await;
    let again = milan.wait_pod(&life.space, "web", is_of(uid.as_deref())).await;
    assert_eq!(again.labels()["tier"], "front");
    let shadow = milan.api::<ShadowPod>(&life.space).get("web").await.unwrap();
    let recreations = shadow.status.and_then(|status| status.recreations).unwrap_or_default();
    // One that vanished while nobody looked is made again, and not counted.
    assert!(recreations <= 1, "{recreations}");
    let mut known = life.known.lock();
    (known.second, known.recreations) = (again.uid(), recreations);
}

async fn comes_to_its_end(provider: &Provider<'_>, milan: &Consumer<'_>, life: &Life) {
    let mut job = pod("1m");
    job["restartPolicy"] = json!("Never");
    want(milan, &life.space, "job", &job).await;
    let (pods, shadows) = (provider.api::<Pod>(&life.space), milan.api::<ShadowPod>(&life.space));
    eventually("its end is noted", || async {
        let done = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
        let _ = pods.patch_status("job", &PatchParams::default(), &done).await;
        let status = shadows.get("job").await.unwrap().status;
        let phase = status.as_ref().and_then(|status| status.phase);
        if phase == Some(PodPhase::Succeeded) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
    let _ = pods.delete("job", &DeleteParams::default().grace_period(0)).await;
}

async fn is_taken_back(provider: &Provider<'_>, milan: &Consumer<'_>, life: &Life) {
    // Nobody made a further one meanwhile.
    if let Some(pod) = milan.api::<Pod>(&life.space).get_opt("web").await.unwrap() {
        assert_eq!(pod.uid(), life.known.lock().second, "{}: the pod was started twice", life.space);
    }
    let _ = milan.api::<ShadowPod>(&life.space).delete("web", &DeleteParams::default()).await;
    milan.wait_no_pod(&life.space, "web").await;
    milan.wait_no_pod(&life.space, "job").await;
    let _ = milan.api::<NamespaceMap>(&milan.place).delete("map", &DeleteParams::default()).await;
    eventually("the namespace is taken back", || async {
        let namespaces: Api<Namespace> = Api::all(provider.client.clone());
        let found = namespaces.get_opt(&life.space).await.unwrap();
        let stays = found.filter(|it| it.metadata.deletion_timestamp.is_none());
        if stays.is_none() { Ok(()) } else { Err(format!("{stays:?}")) }
    })
    .await;
}

async fn nothing_is_left(provider: &Provider<'_>) {
    let _process = provider.start().await;
    eventually("nothing is left", || async {
        let of_milan = ListParams::default().labels("liqo.io/remote-cluster-id=milan");
        let namespaces: Api<Namespace> = Api::all(provider.client.clone());
        let namespaces = namespaces.list(&of_milan).await.unwrap().items;
        let ours = ListParams::default().labels("liqo.io/managed-by=shadowpod");
        let pods: Api<Pod> = Api::all(provider.client.clone());
        let pods = pods.list(&ours).await.unwrap().items;
        let names: Vec<_> = namespaces
            .iter()
            .map(ResourceExt::name_any)
            .chain(pods.iter().map(ResourceExt::name_any))
            .collect();
        if names.is_empty() { Ok(()) } else { Err(format!("{names:?}")) }
    })
    .await;
}
