//! What only real kubelets show: volumes of the virtual storage class are where their first consumer is placed, and so are
//! all others; and what a kubelet says about a pod is told at home.
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
#[path = "support/provisioner.rs"]
mod provisioner;
#[path = "support/world.rs"]
mod world;

use k8s_openapi::api::core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use provisioner::Provisioner;
use serde_json::{Value, json};
use world::{StandIn, World, create, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn volumes_are_where_their_first_consumer_is() {
    let sandbox = TestSandbox::start([ClusterSpec::real("home", 1), ClusterSpec::real("away", 1)]).await;
    let world = World::new(&sandbox, "home", "home").await;
    install::put(
        &world.here,
        &json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "liqo" },
            "provisioner": "liqo.io/storage", "volumeBindingMode": "WaitForFirstConsumer" }),
    )
    .await;
    let _real =
        (Provisioner::start(&world.here, "slow").await, Provisioner::start(&world.there, "fast").await);
    world.map(&[("shop", "shop-home")]).await;
    let _stand_in = StandIn::start(&world);
    let process = world.start().await;
    at_the_provider(&world).await;
    process.kill();
    // Another process finds all of it.
    let process = world.start().await;
    its_data_is_found_again(&world).await;
    a_claim_of_the_same_name_is_another(&world).await;
    what_is_to_be_kept_is(&world).await;
    at_home(&world).await;
    why_a_claim_waits_is_told(&world).await;
    what_a_kubelet_says_is_told(&world).await;
    process.kill();
}

fn claim(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
        "spec": { "storageClassName": "liqo", "accessModes": ["ReadWriteOnce"],
                  "resources": { "requests": { "storage": "1Mi" } } } })
}

/// A pod that adds a line to a file of the claim and ends; placed by the scheduler, as it says.
fn writer(name: &str, claim: &str, text: &str, spec: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "labels": { "liqo.io/shadowPod": "true" } },
        "spec": { "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "securityContext": { "runAsUser": 0 },
            "automountServiceAccountToken": false,
            "containers": [{ "name": "main", "image": "localhost/liqo/sandbox-app:1", "imagePullPolicy": "Never",
                "args": ["note", "/data/log", text], "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }] },
    });
    for (field, value) in spec.as_object().unwrap() {
        pod["spec"][field] = value.clone();
    }
    pod
}

fn there(world: &World<'_>) -> Value {
    json!({ "nodeSelector": { "liqo.io/remote-cluster-id": world.provider } })
}

/// What the pod printed, once it has ended.
async fn lines(world: &World<'_>, cluster: &TestCluster<'_>, namespace: &str, name: &str) -> Vec<String> {
    let ended = |pod: &Pod| pod.status.as_ref()?.phase.clone().filter(|phase| phase == "Succeeded");
    world.wait_pod("shop", name, ended).await;
    let output = cluster.kubectl(["-n", namespace, "logs", name]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

async fn drop_pod(world: &World<'_>, name: &str) {
    let pods: Api<Pod> = world.at_home("shop");
    pods.delete(name, &DeleteParams::default()).await.unwrap();
    world.wait_gone(&pods, name).await;
}

/// The volume of a claim, once it is bound.
async fn volume(world: &World<'_>, name: &str) -> PersistentVolume {
    let claims: Api<PersistentVolumeClaim> = world.at_home("shop");
    let bound = eventually(name, || async {
        let found = claims.get(name).await.map_err(|error| error.to_string())?;
        let phase = found.status.as_ref().and_then(|status| status.phase.clone());
        if phase.as_deref() == Some("Bound") { Ok(found) } else { Err(format!("{found:?}")) }
    })
    .await;
    let volumes: Api<PersistentVolume> = Api::all(world.here.clone());
    volumes.get(&bound.spec.unwrap().volume_name.unwrap()).await.unwrap()
}

async fn at_the_provider(world: &World<'_>) {
    let claims: Api<PersistentVolumeClaim> = world.at_home("shop");
    create(&claims, &claim("data")).await;
    create(&world.at_home::<Pod>("shop"), &writer("first", "data", "one", &there(world))).await;
    assert_eq!(lines(world, &world.away, "shop-home", "first").await, ["one"]);
    let volume = volume(world, "data").await;
    let affinity = json!(volume.spec.unwrap().node_affinity).to_string();
    assert!(affinity.contains("\"away\""), "{affinity}");
    let remote: Api<PersistentVolumeClaim> = world.at_provider("shop-home");
    let remote = remote.get("data").await.unwrap();
    assert_eq!(remote.spec.unwrap().storage_class_name.as_deref(), Some("fast"));
    drop_pod(world, "first").await;
}

/// By a pod that may run anywhere: the volume says where.
async fn its_data_is_found_again(world: &World<'_>) {
    create(&world.at_home::<Pod>("shop"), &writer("second", "data", "two", &json!({}))).await;
    assert_eq!(lines(world, &world.away, "shop-home", "second").await, ["one", "two"]);
    drop_pod(world, "second").await;
    // It cannot be had here.
    let here = json!({ "nodeSelector": { "kubernetes.io/hostname": home_node(world).await } });
    create(&world.at_home::<Pod>("shop"), &writer("astray", "data", "x", &here)).await;
    let why = world.wait_pod("shop", "astray", |pod| {
        let conditions = pod.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|it| it.reason.as_deref() == Some("Unschedulable"))?.message.clone()
    });
    let why = why.await;
    assert!(why.contains("PersistentVolume"), "{why}");
    drop_pod(world, "astray").await;
}

async fn home_node(world: &World<'_>) -> String {
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(world.here.clone());
    let nodes = nodes.list(&ListParams::default().labels("liqo.io/type!=virtual-node")).await.unwrap();
    nodes.items[0].name_any()
}

async fn a_claim_of_the_same_name_is_another(world: &World<'_>) {
    let claims: Api<PersistentVolumeClaim> = world.at_home("shop");
    let before = volume(world, "data").await.name_any();
    claims.delete("data", &DeleteParams::default()).await.unwrap();
    create(&claims, &claim("data")).await;
    create(&world.at_home::<Pod>("shop"), &writer("third", "data", "new", &there(world))).await;
    assert_eq!(lines(world, &world.away, "shop-home", "third").await, ["new"]);
    world.wait_gone(&Api::<PersistentVolume>::all(world.here.clone()), &before).await;
    drop_pod(world, "third").await;
}

async fn what_is_to_be_kept_is(world: &World<'_>) {
    let claims: Api<PersistentVolumeClaim> = world.at_home("shop");
    let volumes: Api<PersistentVolume> = Api::all(world.here.clone());
    let kept = volume(world, "data").await.name_any();
    let policy = json!({ "spec": { "persistentVolumeReclaimPolicy": "Retain" } });
    volumes.patch(&kept, &PatchParams::default(), &Patch::Merge(&policy)).await.unwrap();
    claims.delete("data", &DeleteParams::default()).await.unwrap();
    eventually("it is released", || async {
        let phase = volumes.get(&kept).await.unwrap().status.and_then(|status| status.phase);
        if phase.as_deref() == Some("Released") { Ok(()) } else { Err(format!("{phase:?}")) }
    })
    .await;
    // What comes later is seen later.
    create(&claims, &claim("later")).await;
    create(&world.at_home::<Pod>("shop"), &writer("later", "later", "x", &there(world))).await;
    assert_eq!(lines(world, &world.away, "shop-home", "later").await, ["x"]);
    let remote: Api<PersistentVolumeClaim> = world.at_provider("shop-home");
    assert!(remote.get_opt("data").await.unwrap().is_some(), "it went though it was to be kept");
    volumes.delete(&kept, &DeleteParams::default()).await.unwrap();
    world.wait_gone(&remote, "data").await;
    drop_pod(world, "later").await;
    claims.delete("later", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&remote, "later").await;
}

async fn at_home(world: &World<'_>) {
    let claims: Api<PersistentVolumeClaim> = world.at_home("shop");
    let node = home_node(world).await;
    let here = json!({ "nodeSelector": { "kubernetes.io/hostname": node } });
    create(&claims, &claim("local")).await;
    create(&world.at_home::<Pod>("shop"), &writer("one", "local", "one", &here)).await;
    assert_eq!(lines(world, &world.home, "shop", "one").await, ["one"]);
    drop_pod(world, "one").await;
    // The other node has room as well, and would be endured.
    create(&world.at_home::<Pod>("shop"), &writer("two", "local", "two", &json!({}))).await;
    assert_eq!(lines(world, &world.home, "shop", "two").await, ["one", "two"]);
    drop_pod(world, "two").await;
    let real: Api<PersistentVolumeClaim> = world.at_home("liqo-storage");
    let behind = world::all(&real).await;
    assert_eq!(behind.len(), 1);
    assert_eq!(behind[0].labels()["storage.liqo.io/virtual-pvc-name"], "local");
    let place = Api::<Namespace>::all(world.here.clone()).get("liqo-storage").await.unwrap();
    assert_eq!(
        place.labels()["app.kubernetes.io/part-of"],
        "liqo-rs",
        "an uninstallation finds it by its labels"
    );
    assert_eq!(place.labels()["app.kubernetes.io/component"], "storage");
    assert!(world::all(&world.at_provider::<PersistentVolumeClaim>("shop-home")).await.is_empty());
    claims.delete("local", &DeleteParams::default()).await.unwrap();
    let volumes: Api<PersistentVolume> = Api::all(world.here.clone());
    eventually("nothing is left", || async {
        let (claims, volumes) = (world::all(&real).await, world::all(&volumes).await);
        if claims.is_empty() && volumes.is_empty() { Ok(()) } else { Err(format!("{claims:?} {volumes:?}")) }
    })
    .await;
}

async fn why_a_claim_waits_is_told(world: &World<'_>) {
    let claims: Api<PersistentVolumeClaim> = world.at_home("shop");
    let mut kept = claim("private");
    kept["metadata"]["annotations"] = json!({ "liqo.io/skip-reflection": "true" });
    create(&claims, &kept).await;
    create(&world.at_home::<Pod>("shop"), &writer("waits", "private", "x", &there(world))).await;
    let events: Api<Event> = world.at_home("shop");
    eventually("it is told", || async {
        let found = events.list(&ListParams::default()).await.unwrap().items;
        let is = |event: &&Event| {
            event.reason.as_deref() == Some("ProvisioningFailed")
                && event.regarding.as_ref().is_some_and(|it| it.name.as_deref() == Some("private"))
        };
        match found.iter().find(is) {
            Some(event) if event.note.as_deref().unwrap_or_default().contains("annotation") => Ok(()),
            other => Err(format!("{other:?} of {}", found.len())),
        }
    })
    .await;
    assert!(
        world.at_provider::<PersistentVolumeClaim>("shop-home").get_opt("private").await.unwrap().is_none()
    );
}

/// Of a pod that does not come to run: warnings at once, what is normal after a while, and what is repeated with its count.
async fn what_a_kubelet_says_is_told(world: &World<'_>) {
    let mut broken = world.pod("shop", "broken");
    broken["spec"]["containers"][0]["imagePullPolicy"] = json!("Never");
    let mut quiet = broken.clone();
    quiet["metadata"]["name"] = json!("quiet");
    quiet["metadata"]["annotations"] = json!({ "liqo.io/skip-events": "true" });
    create(&world.at_home::<Pod>("shop"), &quiet).await;
    create(&world.at_home::<Pod>("shop"), &broken).await;
    let events: Api<k8s_openapi::api::core::v1::Event> = world.at_home("shop");
    let about = |name: &str| ListParams::default().fields(&format!("involvedObject.name={name}"));
    eventually("it is told", || async {
        let found = events.list(&about("broken")).await.map_err(|error| error.to_string())?.items;
        let says = |reason: &str, type_: &str, component: &str| {
            found.iter().find(|event| {
                let source = event.source.as_ref().and_then(|source| source.component.as_deref());
                event.reason.as_deref() == Some(reason)
                    && event.type_.as_deref() == Some(type_)
                    && source == Some(component)
            })
        };
        let again = says("Failed", "Warning", "kubelet").and_then(|event| event.count).unwrap_or_default();
        let normal = says("Scheduled", "Normal", "default-scheduler").is_some();
        if again > 1 && normal { Ok(()) } else { Err(format!("{found:#?}")) }
    })
    .await;
    let found = events.list(&about("broken")).await.unwrap().items;
    assert!(found.len() < 10, "{found:#?}");
    assert!(events.list(&about("quiet")).await.unwrap().items.is_empty());
}
