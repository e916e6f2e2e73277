//! Custom resources that the owner of a namespace wants elsewhere, on real API servers.
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

use install::put;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::events::v1::Event;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, ResourceExt};
use liqo_api::NamespaceOffloading;
use liqo_api::namespace_offloading::{ConditionStatus, ReflectedKind};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use world::{World, eventually};

const RBAC: &str = "rbac.authorization.k8s.io";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn custom_resources_of_chosen_kinds_are_copied_one_way() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("home", 1), ClusterSpec::hollow("away", 1)]).await;
    let world = World::new(&sandbox, "home", "home-1").await;
    world.map(&[("shop", "shop-home")]).await;
    let process = world.start().await;
    what_is_in_the_way_is_told_step_by_step(&world).await;
    copies_follow(&world).await;
    what_is_not_ours_is_never_touched(&world).await;
    a_right_that_is_taken_away_is_told(&world).await;
    process.kill();
    // While nobody looks, the owner wants them no more.
    wish(&world, json!([])).await;
    let process = world.start().await;
    copies_go_and_the_note_with_them(&world).await;
    process.kill();
}

fn widgets(client: &kube::Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Widget");
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

fn widget(namespace: &str, name: &str, size: u32) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name, "namespace": namespace },
        "spec": { "size": size } })
}

/// The definition of the kind.
async fn define(client: &kube::Client) {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "type": "object", "properties": { "spec": any, "status": any } });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema } }] },
    });
    put(client, &definition).await;
}

fn role(verbs: &[&str]) -> Value {
    json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRole", "metadata": { "name": "widgets" },
        "rules": [{ "apiGroups": ["example.com"], "resources": ["widgets"], "verbs": verbs }] })
}

async fn wish(world: &World<'_>, kinds: Value) {
    let object = json!({ "apiVersion": "offloading.liqo.io/v1alpha1", "kind": "NamespaceOffloading",
        "metadata": { "name": "offloading", "namespace": "shop" }, "spec": { "podOffloadingStrategy": "Remote", "reflect": kinds } });
    put(&world.here, &object).await;
}

async fn reflected(world: &World<'_>) -> Vec<ReflectedKind> {
    let found = world.at_home::<NamespaceOffloading>("shop").get("offloading").await.unwrap();
    found.status.map(|status| status.reflected).unwrap_or_default()
}

/// Waits until this is told about the one kind.
async fn told(world: &World<'_>, what: &str, check: impl Fn(&ReflectedKind) -> bool) {
    eventually(what, || async {
        let all = reflected(world).await;
        if all.len() == 1 && check(&all[0]) { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .await;
}

fn failing_there(it: &ReflectedKind, reason: &str) -> bool {
    it.failing.len() == 1 && it.failing.values().all(|why| why.reason == reason)
}

async fn what_is_in_the_way_is_told_step_by_step(world: &World<'_>) {
    wish(world, json!([{ "group": "example.com", "kind": "Widget" }])).await;
    told(world, "nobody knows it", |it| it.reason == "KindMissing" && it.version.is_none()).await;
    define(&world.here).await;
    put(&world.here, &widget("shop", "early", 1)).await;
    told(world, "the manager may not", |it| {
        it.reason == "Forbidden" && it.message.contains("customKinds.reflected")
    })
    .await;
    put(&world.here, &role(&["get", "list", "watch"])).await;
    put(
        &world.here,
        &json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "ClusterRoleBinding", "metadata": { "name": "widgets" },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "widgets" },
            "subjects": [{ "kind": "ServiceAccount", "name": "liqo-controller-manager", "namespace": "liqo" }] }),
    )
    .await;
    told(world, "the provider has no such kind", |it| failing_there(it, "KindMissing")).await;
    define(&world.there).await;
    told(world, "the provider does not permit it", |it| failing_there(it, "Forbidden")).await;
    put(&world.there, &role(&["get", "list", "watch", "create", "update", "delete"])).await;
    put(
        &world.there,
        &json!({ "apiVersion": format!("{RBAC}/v1"), "kind": "RoleBinding",
            "metadata": { "name": "liqo-tenant-kinds", "namespace": "shop-home" },
            "roleRef": { "apiGroup": RBAC, "kind": "ClusterRole", "name": "widgets" },
            "subjects": [{ "kind": "User", "name": world.id, "apiGroup": RBAC }] }),
    )
    .await;
    told(world, "it is copied", |it| it.status == ConditionStatus::True && it.failing.is_empty()).await;
}

async fn size_is(api: &Api<DynamicObject>, name: &str, size: u32) -> DynamicObject {
    eventually(&format!("{name} is {size}"), || async {
        let found = api.get_opt(name).await.map_err(|error| error.to_string())?.ok_or("it is not there")?;
        if found.data["spec"]["size"] == size { Ok(found) } else { Err(format!("{found:?}")) }
    })
    .await
}

async fn copies_follow(world: &World<'_>) {
    let (here, there) = (widgets(&world.here, "shop"), widgets(&world.there, "shop-home"));
    let copy = size_is(&there, "early", 1).await;
    assert_eq!(copy.labels()["virtualkubelet.liqo.io/origin"], "home-1");
    // How it is there is told there, and stays when it is changed here.
    let (params, status) = (PatchParams::default(), json!({ "status": { "turning": true } }));
    there.patch_status("early", &params, &Patch::Merge(&status)).await.unwrap();
    here.patch_status("early", &params, &Patch::Merge(&json!({ "status": { "turning": false } })))
        .await
        .unwrap();
    put(&world.here, &widget("shop", "early", 2)).await;
    let copy = size_is(&there, "early", 2).await;
    assert_eq!(copy.data["status"]["turning"], true);
    // An object that should stay at home goes home.
    put(&world.here, &widget("shop", "private", 1)).await;
    size_is(&there, "private", 1).await;
    let skip = json!({ "metadata": { "annotations": { "liqo.io/skip-reflection": "true" } } });
    here.patch("private", &params, &Patch::Merge(&skip)).await.unwrap();
    world.wait_gone(&there, "private").await;
    // What is deleted here goes there.
    put(&world.here, &widget("shop", "brief", 1)).await;
    size_is(&there, "brief", 1).await;
    here.delete("brief", &DeleteParams::default()).await.unwrap();
    world.wait_gone(&there, "brief").await;
}

async fn what_is_not_ours_is_never_touched(world: &World<'_>) {
    put(&world.there, &widget("shop-home", "theirs", 7)).await;
    put(&world.here, &widget("shop", "theirs", 1)).await;
    let events: Api<Event> = world.at_home("shop");
    eventually("it is told", || async {
        let all = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let about = |event: &&Event| {
            event.reason.as_deref() == Some("NameTaken")
                && event.regarding.as_ref().is_some_and(|it| it.kind.as_deref() == Some("Widget"))
        };
        all.items.iter().find(about).map(|_| ()).ok_or_else(|| format!("{:?}", all.items))
    })
    .await;
    size_is(&widgets(&world.there, "shop-home"), "theirs", 7).await;
}

/// The provider takes no new ones, and the owner of the namespace learns why.
async fn a_right_that_is_taken_away_is_told(world: &World<'_>) {
    put(&world.there, &role(&["get", "list", "watch", "delete"])).await;
    may_not_create(world).await;
    put(&world.here, &widget("shop", "late", 1)).await;
    told(world, "it is refused", |it| {
        failing_there(it, "Refused") && it.failing.values().all(|why| why.message.contains("cannot create"))
    })
    .await;
}

/// Waits until the provider's API server knows that the right is gone: it learns that a moment after it was taken away.
async fn may_not_create(world: &World<'_>) {
    let attributes =
        json!({ "namespace": "shop-home", "group": "example.com", "resource": "widgets", "verb": "create" });
    let review = json!({ "metadata": {}, "spec": { "user": world.id, "resourceAttributes": attributes } });
    let review: SubjectAccessReview = serde_json::from_value(review).unwrap();
    let reviews: Api<SubjectAccessReview> = Api::all(world.there.clone());
    eventually("it may not create them", || async {
        let said =
            reviews.create(&PostParams::default(), &review).await.map_err(|error| error.to_string())?;
        let status = said.status.unwrap_or_default();
        if status.allowed { Err(format!("{status:?}")) } else { Ok(()) }
    })
    .await;
}

async fn copies_go_and_the_note_with_them(world: &World<'_>) {
    let there = widgets(&world.there, "shop-home");
    world.wait_gone(&there, "early").await;
    eventually("nothing is noted any more", || async {
        let all = reflected(world).await;
        if all.is_empty() { Ok(()) } else { Err(format!("{all:?}")) }
    })
    .await;
    let left: Vec<_> =
        there.list(&ListParams::default()).await.unwrap().items.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["theirs"]);
    assert!(widgets(&world.here, "shop").get_opt("early").await.unwrap().is_some(), "the originals stay");
}
