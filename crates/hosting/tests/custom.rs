//! Custom resources of consumers at a real API server: of what the cluster hosts, each may bring along what its policy says.

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

use kube::Api;
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, PostParams};
use liqo_api::namespace_map::MappingPhase::Accepted;
use liqo_core::contract::Enforcement;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use world::{Consumer, Provider, US, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn consumers_bring_along_the_custom_kinds_that_their_policies_name() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 1)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    for (plural, kind) in [("widgets", "Widget"), ("gadgets", "Gadget")] {
        define(&provider, plural, kind).await;
    }
    let _process = provider.start().await;
    let milan = provider.consumer("milan").await;
    let turin = provider.consumer("turin").await;
    policy(&provider, &json!(["widgets.example.com"])).await;
    offer(&provider, &milan).await;
    for consumer in [&milan, &turin] {
        consumer.sign(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "100")], Enforcement::Hard).await;
        consumer.ask("map", &[("shop", &space(consumer))]).await;
        consumer.wait_told("map", "shop", Accepted, "").await;
    }

    // No policy speaks of turin: it may bring all that is hosted.
    wait_taken(&turin, "Widget").await;
    wait_taken(&turin, "Gadget").await;
    wait_taken(&milan, "Widget").await;
    let said = wait_refused(&milan, "Gadget").await;
    assert!(said.contains("gadgets.example.com is not among what the provider takes"), "{said}");
    assert!(said.contains("liqo-tenants"), "{said}");

    // The policy changes, both ways, and nothing that is there stands in the way of leaving.
    policy(&provider, &json!(["gadgets.example.com", "widgets.example.com"])).await;
    wait_taken(&milan, "Gadget").await;
    policy(&provider, &json!([])).await;
    wait_refused(&milan, "Widget").await;
    wait_refused(&milan, "Gadget").await;
    let mine = objects(&milan, "Gadget");
    mine.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    policy(&provider, &Value::Null).await;
    wait_taken(&milan, "Gadget").await;

    // Who is offered nothing for a while keeps what was said before.
    policy(&provider, &json!([])).await;
    wait_refused(&milan, "Widget").await;
    let offers: Api<liqo_api::ResourceOffer> = provider.api(&milan.place);
    offers.delete("provider", &DeleteParams::default()).await.unwrap();
    let other = Api::<k8s_openapi::api::core::v1::Namespace>::all(provider.client.clone());
    eventually("the room has looked again", || async {
        // A namespace that is asked for later is made later.
        milan.ask("map", &[("shop", &space(&milan)), ("late", "late-milan")]).await;
        let late = other.get_opt("late-milan").await.map_err(|error| error.to_string())?;
        late.map(drop).ok_or_else(|| "not yet".to_owned())
    })
    .await;
    wait_refused(&milan, "Widget").await;
}

fn space(consumer: &Consumer<'_>) -> String {
    format!("shop-{}", consumer.place.rsplit('-').next().unwrap())
}

async fn define(provider: &Provider<'_>, plural: &str, kind: &str) {
    let any = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.example.com") },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": any } }],
        },
    });
    install::put(&provider.client, &definition).await;
}

/// Has the policy name these kinds; `null`: it does not speak of them.
async fn policy(provider: &Provider<'_>, kinds: &Value) {
    let mut object = json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "SharingPolicy", "metadata": { "name": "some" },
        "spec": { "share": { "percentage": 50 } },
    });
    if !kinds.is_null() {
        object["spec"]["workloads"] = json!({ "customKinds": kinds });
    }
    install::put(&provider.client, &object).await;
}

async fn offer(provider: &Provider<'_>, consumer: &Consumer<'_>) {
    let offer = json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "ResourceOffer",
        "metadata": { "name": "provider", "namespace": consumer.place },
        "spec": { "clusterId": US, "policy": "some" },
    });
    install::put(&provider.client, &offer).await;
}

fn objects(consumer: &Consumer<'_>, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", kind));
    Api::namespaced_with(consumer.client.clone(), &space(consumer), &resource)
}

/// What an attempt to bring one along ends in.
async fn bring(consumer: &Consumer<'_>, kind: &str) -> Result<(), String> {
    let object =
        json!({ "apiVersion": "example.com/v1", "kind": kind, "metadata": { "generateName": "one-" } });
    let object = serde_json::from_value(object).unwrap();
    let made = objects(consumer, kind).create(&PostParams::default(), &object).await;
    made.map(drop).map_err(|error| error.to_string())
}

async fn wait_taken(consumer: &Consumer<'_>, kind: &str) {
    eventually(&format!("{kind} of {} is taken", consumer.id), || bring(consumer, kind)).await;
}

async fn wait_refused(consumer: &Consumer<'_>, kind: &str) -> String {
    eventually(&format!("{kind} of {} is refused", consumer.id), || async {
        match bring(consumer, kind).await {
            Err(said) if said.contains("liqo-tenants") => Ok(said),
            said => Err(format!("{said:?}")),
        }
    })
    .await
}
