//! Pods that must never run twice, at a provider with the rights and policies of the chart, while their consumer is heard of
//! and while it is not.

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

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::namespace_map::MappingPhase::Accepted;
use liqo_core::contract::Enforcement;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::json;
use tokio::time::Instant;
use world::{Consumer, Provider, eventually, is_of, pod, shadow};

const SPACE: &str = "shop-milan";

#[tokio::test(flavor = "multi_thread")]
async fn what_must_never_run_twice_runs_while_its_consumer_is_heard_of() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 1)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    let process = provider.start().await;
    let milan = provider.consumer("milan").await;
    milan.sign(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "20")], Enforcement::Hard).await;
    milan.ask("map", &[("shop", SPACE)]).await;
    milan.wait_told("map", "shop", Accepted, "").await;
    let web = pod("1m");
    eventually("the consumer is let in", || milan.want(SPACE, "web", &web)).await;
    milan.wait_pod(SPACE, "web", |_| true).await;

    // One pod has its consumer heard of; what was sent long ago says nothing.
    let mut wanted = shadow(&milan.id, "db-0", &pod("1m"));
    wanted.labels_mut().insert("liqo.io/fenced".to_owned(), "true".to_owned());
    milan.create(SPACE, &wanted).await.unwrap();
    renew(&milan, Timestamp::now() - SignedDuration::from_secs(60)).await;
    milan.wait_refused(SPACE, "db-0", "Fenced").await;
    assert!(milan.api::<Pod>(SPACE).get_opt("db-0").await.unwrap().is_none());
    renew(&milan, Timestamp::now()).await;
    let renewed = Instant::now();
    let first = milan.wait_pod(SPACE, "db-0", |_| true).await;
    println!("made {:.2} s after its consumer was heard of", renewed.elapsed().as_secs_f64());
    assert_eq!(first.labels()["liqo.io/fenced"], "true");

    // Silence, in which the provider's manager is killed and another one begins: the Lease tells it how old it is.
    drop(process);
    let process = provider.start().await;
    milan.wait_no_pod(SPACE, "db-0").await;
    let silence = renewed.elapsed().as_secs_f64();
    println!("gone {silence:.1} s after its consumer was last heard of");
    assert!((13.0..60.0).contains(&silence), "{silence}");
    milan.wait_refused(SPACE, "db-0", "Fenced").await;
    assert!(milan.api::<Pod>(SPACE).get_opt("web").await.unwrap().is_some(), "others go on");

    renew(&milan, Timestamp::now()).await;
    let uid = first.uid();
    milan.wait_pod(SPACE, "db-0", is_of(uid.as_deref())).await;
    drop(process);
}

/// Says that the consumer is there, as it does, with the rights that it has.
async fn renew(consumer: &Consumer<'_>, time: Timestamp) {
    let leases: Api<Lease> = consumer.api(&consumer.place);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "liqo-home" },
        "spec": { "holderIdentity": consumer.id, "leaseDurationSeconds": 16, "renewTime": format!("{time:.6}") },
    });
    let params = PatchParams::apply("liqo-reflection").force();
    leases.patch("liqo-home", &params, &Patch::Apply(&lease)).await.unwrap();
}
