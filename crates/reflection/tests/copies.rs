//! What pods need is copied to where they run, on real API servers.
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

use std::fmt::Debug;

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Resource, ResourceExt};
use liqo_api::ShadowPod;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use world::{Process, StandIn, World, create, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_pods_need_is_copied() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("home", 1), ClusterSpec::hollow("away", 1)]).await;
    let world = World::new(&sandbox, "home", "home-1").await;
    world.map(&[("shop", "shop-home")]).await;
    let _stand_in = StandIn::start(&world);
    before_the_start(&world).await;
    let process = world.start().await;
    config_follows(&world).await;
    immutable_config_is_made_anew(&world).await;
    what_stays_at_home(&world).await;
    what_is_not_ours_is_never_touched(&world).await;
    every_kind_can_be_kept_at_home_and_leaves_others_alone(&world).await;
    services_lead_there_as_well(&world).await;
    claims_go_where_their_consumer_went(&world).await;
    tokens_work_at_home(&world).await;
    how_long_it_took_is_told_by_kind(&process).await;
    process.kill();
    a_restart_finds_all_of_it_as_it_should_be(&world).await;
}

fn config(name: &str, value: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": { "key": value } })
}

async fn wait<K, T>(api: &Api<K>, name: &str, check: impl Fn(&K) -> Option<T>) -> T
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    eventually(name, || async {
        let found = api.get_opt(name).await.map_err(|error| error.to_string())?.ok_or("it is not there")?;
        check(&found).ok_or_else(|| format!("{found:?}"))
    })
    .await
}

/// What nobody wants any more, left by an earlier life.
async fn before_the_start(world: &World<'_>) {
    let there: Api<ConfigMap> = world.at_provider("shop-home");
    let mut left = config("left", "old");
    left["metadata"]["labels"] = json!({ "virtualkubelet.liqo.io/origin": "home-1" });
    create(&there, &left).await;
    create(&there, &config("theirs", "untouched")).await;
    create(&world.at_home::<ConfigMap>("shop"), &config("theirs", "ours")).await;
    create(&world.at_home::<ConfigMap>("shop"), &config("early", "first")).await;
}

async fn config_follows(world: &World<'_>) {
    let (here, there): (Api<ConfigMap>, Api<ConfigMap>) =
        (world.at_home("shop"), world.at_provider("shop-home"));
    let value = |map: &ConfigMap, wanted: &str| (map.data.as_ref()?.get("key")? == wanted).then_some(());
    wait(&there, "early", |map| value(map, "first")).await;
    world.wait_gone(&there, "left").await;
    let params = PatchParams::default();
    here.patch("early", &params, &Patch::Merge(&json!({ "data": { "key": "second" } }))).await.unwrap();
    wait(&there, "early", |map| value(map, "second")).await;
    // Changed there, it is put right.
    there.patch("early", &params, &Patch::Merge(&json!({ "data": { "key": "wrong" } }))).await.unwrap();
    wait(&there, "early", |map| value(map, "second")).await;
    there.delete("early", &DeleteParams::default()).await.unwrap();
    wait(&there, "early", |map| value(map, "second")).await;
    here.delete("early", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&there, "early").await;
    // Home's certificate authority, beside the provider's own.
    let ours = Some(wait(&here, "kube-root-ca.crt", |map| map.data.clone()).await);
    wait(&there, "kube-root-ca.crt.home", |map| (map.data == ours).then_some(())).await;
    let theirs = wait(&there, "kube-root-ca.crt", |map| map.data.clone()).await;
    assert_ne!(Some(theirs), ours);
    let secrets: (Api<Secret>, Api<Secret>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "login" },
        "type": "kubernetes.io/basic-auth", "stringData": { "username": "u", "password": "p" } });
    create(&secrets.0, &secret).await;
    wait(&secrets.1, "login", |found| {
        (found.type_.as_deref() == Some("kubernetes.io/basic-auth")).then_some(())
    })
    .await;
}

async fn immutable_config_is_made_anew(world: &World<'_>) {
    let (here, there): (Api<ConfigMap>, Api<ConfigMap>) =
        (world.at_home("shop"), world.at_provider("shop-home"));
    let mut map = config("fixed", "one");
    map["immutable"] = json!(true);
    create(&here, &map).await;
    wait(&there, "fixed", |map| map.immutable).await;
    here.delete("fixed", &DeleteParams::default()).await.unwrap();
    map["data"]["key"] = json!("two");
    create(&here, &map).await;
    wait(&there, "fixed", |map| (map.data.as_ref()?["key"] == "two").then_some(())).await;
}

async fn what_stays_at_home(world: &World<'_>) {
    let (here, there): (Api<ConfigMap>, Api<ConfigMap>) =
        (world.at_home("shop"), world.at_provider("shop-home"));
    let mut map = config("private", "x");
    map["metadata"]["annotations"] = json!({ "liqo.io/skip-reflection": "true" });
    create(&here, &map).await;
    create(&here, &config("public", "x")).await;
    wait(&there, "public", |_| Some(())).await;
    assert!(there.get_opt("private").await.unwrap().is_none());
    let note = json!({ "metadata": { "annotations": { "liqo.io/skip-reflection": "true" } } });
    here.patch("public", &PatchParams::default(), &Patch::Merge(&note)).await.unwrap();
    world.wait_gone(&there, "public").await;
    let secrets: (Api<Secret>, Api<Secret>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let token = json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": { "name": "forever", "annotations": { "kubernetes.io/service-account.name": "default" } } });
    create(&secrets.0, &token).await;
    create(&here, &config("later", "x")).await;
    wait(&there, "later", |_| Some(())).await;
    assert!(secrets.1.get_opt("forever").await.unwrap().is_none());
}

async fn what_is_not_ours_is_never_touched(world: &World<'_>) {
    let there: Api<ConfigMap> = world.at_provider("shop-home");
    let found = there.get("theirs").await.unwrap();
    assert_eq!(found.data.unwrap()["key"], "untouched");
    let events: Api<Event> = world.at_home("shop");
    eventually("it is told", || async {
        let found = events.list(&ListParams::default()).await.unwrap().items;
        let is = |event: &Event| {
            event.reason.as_deref() == Some("NameTaken")
                && event.regarding.as_ref().is_some_and(|it| it.kind.as_deref() == Some("ConfigMap"))
        };
        if found.iter().any(is) { Ok(()) } else { Err(format!("{} others", found.len())) }
    })
    .await;
    world.at_home::<ConfigMap>("shop").delete("theirs", &DeleteParams::default()).await.unwrap();
    create(&world.at_home::<ConfigMap>("shop"), &config("next", "x")).await;
    wait(&there, "next", |_| Some(())).await;
    assert!(there.get_opt("theirs").await.unwrap().is_some(), "it was removed though it is not ours");
}

/// An object of each kind that is copied, as far as it needs to be.
fn one_of_each(world: &World<'_>, name: &str) -> Vec<Value> {
    let metadata =
        json!({ "name": name, "annotations": { "volume.kubernetes.io/selected-node": world.node } });
    let endpoint = json!({ "addresses": ["10.1.1.1"], "nodeName": "home-0" });
    let service = json!({ "service": { "name": "web", "port": { "number": 80 } } });
    let kinds = [
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "k": "v" } }),
        json!({ "apiVersion": "v1", "kind": "Secret", "stringData": { "k": "v" } }),
        json!({ "apiVersion": "v1", "kind": "Service", "spec": { "ports": [{ "port": 80 }] } }),
        json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
                "endpoints": [endpoint], "ports": [] }),
        json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": { "defaultBackend": service } }),
        json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": { "storageClassName": "liqo",
                "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }),
    ];
    let named = |mut object: Value| {
        object["metadata"] = metadata.clone();
        object
    };
    kinds.into_iter().map(named).collect()
}

fn api_of(client: &kube::Client, namespace: &str, object: &Value) -> Api<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    let (group, version) = match text("apiVersion").split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text("apiVersion")),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind { group, version, kind: text("kind") });
    Api::namespaced_with(client.clone(), namespace, &resource)
}

async fn every_kind_can_be_kept_at_home_and_leaves_others_alone(world: &World<'_>) {
    for (mut kept, taken) in one_of_each(world, "kept").into_iter().zip(one_of_each(world, "taken")) {
        let (here, there) = (api_of(&world.here, "shop", &kept), api_of(&world.there, "shop-home", &kept));
        let kind = kept["kind"].as_str().unwrap().to_owned();
        let new = |object: &Value| serde_json::from_value::<DynamicObject>(object.clone()).unwrap();
        let theirs = there.create(&PostParams::default(), &new(&taken)).await.unwrap();
        kept["metadata"]["annotations"]["liqo.io/skip-reflection"] = json!("true");
        here.create(&PostParams::default(), &new(&kept)).await.unwrap();
        here.create(&PostParams::default(), &new(&taken)).await.unwrap();
        wait_taken(world, &kind).await;
        // What comes later is seen later.
        let mut next = taken.clone();
        next["metadata"]["name"] = json!("after");
        here.create(&PostParams::default(), &new(&next)).await.unwrap();
        eventually(&format!("the next {kind}"), || async {
            let found = there.get_opt("after").await.map_err(|error| error.to_string())?;
            found.map(|_| ()).ok_or_else(|| "missing".to_owned())
        })
        .await;
        assert!(there.get_opt("kept").await.unwrap().is_none(), "{kind}");
        // From here on it may go, and from here on it may not.
        let may = json!({ "metadata": { "annotations": { "liqo.io/skip-reflection": null } } });
        let may_not = json!({ "metadata": { "annotations": { "liqo.io/skip-reflection": "true",
            "volume.kubernetes.io/selected-node": world.node } } });
        if kind != "PersistentVolumeClaim" {
            here.patch("kept", &PatchParams::default(), &Patch::Merge(&may)).await.unwrap();
            eventually(&format!("the {kind} that may go"), || async {
                let found = there.get_opt("kept").await.map_err(|error| error.to_string())?;
                found.map(|_| ()).ok_or_else(|| "missing".to_owned())
            })
            .await;
            here.patch("kept", &PatchParams::default(), &Patch::Merge(&may_not)).await.unwrap();
            world.wait_gone(&there, "kept").await;
        }
        for name in ["kept", "taken", "after"] {
            here.delete(name, &DeleteParams::default()).await.unwrap();
        }
        world.wait_gone(&there, "after").await;
        let found = there.get("taken").await.unwrap();
        assert_eq!(found.metadata.uid, theirs.metadata.uid, "{kind}");
        assert_eq!(found.labels(), theirs.labels(), "{kind}");
        there.delete("taken", &DeleteParams::default()).await.unwrap();
        // A claim goes only when Kubernetes has seen that nobody uses it.
        world.wait_gone(&there, "taken").await;
    }
}

/// Waits until it is told that the name of an object of this kind is taken.
async fn wait_taken(world: &World<'_>, kind: &str) {
    let events: Api<Event> = world.at_home("shop");
    eventually(&format!("a taken name of a {kind} is told"), || async {
        let found = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let is = |event: &Event| {
            event.reason.as_deref() == Some("NameTaken")
                && event.regarding.as_ref().is_some_and(|it| it.kind.as_deref() == Some(kind))
        };
        if found.iter().any(is) { Ok(()) } else { Err(format!("{} others", found.len())) }
    })
    .await;
}

async fn services_lead_there_as_well(world: &World<'_>) {
    let services: (Api<Service>, Api<Service>) = (world.at_home("shop"), world.at_provider("shop-home"));
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "type": "NodePort", "selector": { "app": "web" }, "ports": [{ "port": 80 }] } });
    let ours = create(&services.0, &service).await.spec.unwrap();
    let theirs = wait(&services.1, "web", |found| found.spec.clone()).await;
    assert_eq!(theirs.selector, ours.selector);
    assert_eq!(theirs.type_.as_deref(), Some("NodePort"));
    let change = json!({ "spec": { "ports": [{ "port": 81, "name": "http" }] } });
    services.0.patch("web", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    wait(&services.1, "web", |it| (it.spec.as_ref()?.ports.as_ref()?[0].port == 81).then_some(())).await;
    let slices: (Api<EndpointSlice>, Api<EndpointSlice>) =
        (world.at_home("shop"), world.at_provider("shop-home"));
    let endpoint = |ip: &str, node: &str| {
        json!({ "addresses": [ip], "nodeName": node,
        "conditions": { "ready": true }, "targetRef": { "kind": "Pod", "name": "p", "namespace": "shop" } })
    };
    let slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "web-x", "labels": { "kubernetes.io/service-name": "web" } },
        "endpoints": [endpoint("10.1.1.1", "home-0"), endpoint("10.1.1.2", &world.node)],
        "ports": [{ "port": 8080, "name": "http" }] });
    create(&slices.0, &slice).await;
    let found = wait(&slices.1, "web-x", |found| Some(found.clone())).await;
    assert_eq!(found.labels()["endpointslice.kubernetes.io/managed-by"], "endpointslice.reflection.liqo.io");
    assert_eq!(found.endpoints.len(), 1, "what runs there is not told by us");
    assert_eq!(found.endpoints[0].addresses, ["10.1.1.1"]);
    assert_eq!(found.endpoints[0].node_name.as_deref(), Some("home-1"));
    let only = json!({ "endpoints": [endpoint("10.1.1.2", &world.node)] });
    slices.0.patch("web-x", &PatchParams::default(), &Patch::Merge(&only)).await.unwrap();
    world.wait_gone(&slices.1, "web-x").await;
    let ingress = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": { "name": "web" },
        "spec": { "ingressClassName": "mine", "rules": [{ "host": "shop.example.com", "http": { "paths": [
            { "path": "/", "pathType": "Prefix", "backend": { "service": { "name": "web", "port": { "number": 81 } } } }] } }] } });
    create(&world.at_home::<Ingress>("shop"), &ingress).await;
    let found = wait(&world.at_provider::<Ingress>("shop-home"), "web", |found| found.spec.clone()).await;
    assert_eq!(found.ingress_class_name, None);
    services.0.delete("web", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&services.1, "web").await;
}

async fn claims_go_where_their_consumer_went(world: &World<'_>) {
    let claims: (Api<PersistentVolumeClaim>, Api<PersistentVolumeClaim>) =
        (world.at_home("shop"), world.at_provider("shop-home"));
    let claim = |name: &str, class: &str, node: Option<&str>| {
        let mut claim = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": name },
            "spec": { "storageClassName": class, "accessModes": ["ReadWriteOnce"],
                      "resources": { "requests": { "storage": "1Gi" } } } });
        if let Some(node) = node {
            claim["metadata"]["annotations"] = json!({ "volume.kubernetes.io/selected-node": node });
        }
        claim
    };
    create(&claims.0, &claim("local", "other", Some(&world.node))).await;
    create(&claims.0, &claim("elsewhere", "liqo", Some("home-0"))).await;
    create(&claims.0, &claim("data", "liqo", Some(&world.node))).await;
    let found = wait(&claims.1, "data", |found| found.spec.clone()).await;
    assert_eq!(found.storage_class_name.as_deref(), Some("fast"));
    assert_eq!(world::all(&claims.1).await.len(), 1);
}

async fn tokens_work_at_home(world: &World<'_>) {
    let pod = world.pod("shop", "asks");
    create(&world.at_home::<Pod>("shop"), &pod).await;
    world.wait_ready("shop", "asks").await;
    let secrets: Api<Secret> = world.at_provider("shop-home");
    let data = wait(&secrets, "liqo-token-default", |found| found.data.clone()).await;
    assert_eq!(data["namespace"].0, b"shop");
    let token = String::from_utf8(data["token"].0.clone()).unwrap();
    let review: TokenReview =
        serde_json::from_value(json!({ "metadata": {}, "spec": { "token": token } })).unwrap();
    let reviews: Api<TokenReview> = Api::all(world.here.clone());
    let status = reviews.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
    assert_eq!(status.user.unwrap().username.as_deref(), Some("system:serviceaccount:shop:default"));
    let shadow = world.at_provider::<ShadowPod>("shop-home").get("asks").await.unwrap();
    let text = json!(shadow.spec.pod.volumes).to_string();
    assert!(text.contains("liqo-token-default") && text.contains("kube-root-ca.crt.home"), "{text}");
    assert!(!text.contains("serviceAccountToken") && !text.contains("metadata.namespace"), "{text}");
    assert_eq!(shadow.spec.pod.service_account_name, None);
    assert_eq!(shadow.spec.pod.automount_service_account_token, Some(false));
}

async fn how_long_it_took_is_told_by_kind(process: &Process) {
    for kind in [
        "shadowpods",
        "pods",
        "configmaps",
        "secrets",
        "services",
        "endpointslices",
        "ingresses",
        "persistentvolumeclaims",
        "persistentvolumes",
    ] {
        // What was written is seen before the answer to it is counted.
        let (count, sum) = eventually(&format!("it is told of {kind}"), || async {
            let metrics = process.metrics();
            let value = |name: &str| {
                let begin = format!(
                    "liqo_virtual_kubelet_reflection_latency_seconds_{name}{{reflector_resource=\"{kind}\"}} "
                );
                let line = metrics.lines().find_map(|line| line.strip_prefix(&begin));
                line.and_then(|it| it.parse::<f64>().ok())
            };
            match (value("count"), value("sum")) {
                (Some(count), Some(sum)) if count >= 1.0 => Ok((count, sum)),
                _ => Err(metrics.clone()),
            }
        })
        .await;
        println!("{kind}: {count} writes, {:.1} ms each", sum * 1000.0 / count);
        assert!(count >= 1.0 && sum > 0.0 && sum / count < 10.0, "{kind}: {sum} s for {count}");
    }
}

async fn a_restart_finds_all_of_it_as_it_should_be(world: &World<'_>) {
    let fuse = fuse::Fuse::never();
    let process = world.start_with(fuse.clone()).await;
    let (here, there): (Api<ConfigMap>, Api<ConfigMap>) =
        (world.at_home("shop"), world.at_provider("shop-home"));
    create(&here, &config("last", "x")).await;
    wait(&there, "last", |_| Some(())).await;
    let secrets: Api<Secret> = world.at_provider("shop-home");
    eventually("the token is renewed", || async {
        let counts = fuse.counts();
        counts.get("PUT secrets").map(|_| ()).ok_or_else(|| format!("{counts:?}"))
    })
    .await;
    assert!(secrets.get_opt("liqo-token-default").await.unwrap().is_some());
    let mut counts = fuse.counts();
    counts.retain(|key, _| !key.starts_with("GET"));
    println!("after a restart, with one new ConfigMap: {counts:?}");
    let expected: Vec<_> =
        ["POST configmaps", "POST serviceaccounts", "PUT secrets"].map(str::to_owned).into();
    assert_eq!(counts.keys().cloned().collect::<Vec<_>>(), expected, "{counts:?}");
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    process.kill();
}
