//! Parting, by whoever and however, and coming together again, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod install;
#[path = "support/papers.rs"]
mod papers;
#[path = "support/world.rs"]
mod world;

use std::time::Duration;

use install::NAMESPACE;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_api::{Contract, ForeignCluster, ResourceOffer, ResourceRequest};
use liqo_authentication::tokens::{self, NewToken};
use liqo_sandbox::{ClusterSpec, Component, TestSandbox};
use papers::{check_log, in_force};
use serde_json::json;
use tokio::time::Instant;
use world::{House, Process, eventually};

/// How long parting may take in these tests where nobody answers.
const PARTING: SignedDuration = SignedDuration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_parts_leaves_nothing_and_can_come_back() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1), ClusterSpec::hollow("a", 1)]).await;
    let (mut a, mut b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    (a.settings.parting, b.settings.parting) = (PARTING, PARTING);
    let (at_a, at_b) = (a.start().await, b.start().await);
    a.add(&b, &at_b, PeeringEnabled::Yes).await;
    in_force(&a, &b, "the first", |_| true).await;

    unpeering_ends_the_contract_and_keeps_the_acquaintance(&a, &b).await;
    peering_again_right_after_works(&a, &b).await;
    the_provider_may_part_too(&a, &b).await;
    who_is_put_out_is_out_everywhere_and_comes_back_by_another_token(&a, &b, &at_b).await;
    deleting_the_foreign_cluster_parts_and_the_other_side_forgets(&a, &b).await;
    adding_it_again_right_after_works(&a, &b, &at_b).await;
    the_provider_deletes_the_foreign_cluster(&a, &b).await;
    adding_it_again_right_after_works(&a, &b, &at_b).await;
    at_b.kill();
    a_provider_that_does_not_answer_is_not_waited_for_longer_than_that(&a, &b).await;
    let at_b = b.start().await;
    what_the_provider_was_not_told_it_learns_when_the_consumer_is_back(&a, &b, &at_b).await;
    at_a.kill();
    a_consumer_that_is_gone_does_not_keep_the_provider(&b).await;
    check_log(&a).await;
    check_log(&b).await;
}

/// What is left of a peering in a cluster.
async fn left(house: &House<'_>) -> Vec<String> {
    let mut left = Vec::new();
    left.extend(house.all::<ResourceRequest>().await.iter().map(|it| format!("request {}", it.name_any())));
    left.extend(house.all::<ResourceOffer>().await.iter().map(|it| format!("offer {}", it.name_any())));
    left.extend(
        house.all::<Contract>().await.iter().map(|it| format!("contract {} {:?}", it.name_any(), it.status)),
    );
    left
}

async fn wait_nothing_left<const N: usize>(houses: [&House<'_>; N]) {
    for house in houses {
        eventually(&format!("nothing is left in {}", house.name), || async {
            let left = left(house).await;
            if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
        })
        .await;
    }
}

async fn wait_no_finalizer(house: &House<'_>, name: &str) {
    eventually(&format!("{name} has no finalizer of this room"), || async {
        let cluster = house.clusters().get(name).await.unwrap();
        let held = cluster.finalizers().iter().any(|it| it.contains("contracts"));
        if held { Err(format!("{:?} {:?}", cluster.metadata, cluster.status)) } else { Ok(()) }
    })
    .await;
}

async fn unpeering_ends_the_contract_and_keeps_the_acquaintance(a: &House<'_>, b: &House<'_>) {
    let started = Instant::now();
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "No" } })).await;
    a.wait_outgoing("b", "None NotWanted").await;
    b.wait_incoming("a", "None NotAsked").await;
    wait_nothing_left([a, b]).await;
    println!("unpeering took {:?}", started.elapsed());
    wait_no_finalizer(a, "b").await;
    wait_no_finalizer(b, "a").await;
}

async fn peering_again_right_after_works(a: &House<'_>, b: &House<'_>) {
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "Yes" } })).await;
    let first = in_force(a, b, "again", |_| true).await;
    // Before the parting has come to its end.
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "No" } })).await;
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "Yes" } })).await;
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "No" } })).await;
    eventually("the first ends", || async {
        let contracts = b.contracts(b, a).await;
        let over = contracts
            .iter()
            .find(|it| it.name_any() == first.name_any())
            .is_none_or(|it| it.spec.ended.is_some());
        if over { Ok(()) } else { Err(format!("{contracts:?}")) }
    })
    .await;
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "Yes" } })).await;
    let second = in_force(a, b, "once more", |it| it.name_any() != first.name_any()).await;
    assert_ne!(first.name_any(), second.name_any());
}

async fn the_provider_may_part_too(a: &House<'_>, b: &House<'_>) {
    b.change("a", json!({ "spec": { "incomingPeeringEnabled": "No" } })).await;
    let told = a.wait_outgoing("b", "Denied RefusedByProvider").await;
    assert_eq!(told.message, "provider refused: the provider does not lend to this cluster");
    b.wait_incoming("a", "Denied IncomingDisabled").await;
    eventually("no offer", || async {
        let offers: Vec<ResourceOffer> = b.all().await;
        if offers.is_empty() { Ok(()) } else { Err(format!("{offers:?}")) }
    })
    .await;
    b.change("a", json!({ "spec": { "incomingPeeringEnabled": "Auto" } })).await;
    in_force(a, b, "after a refusal", |_| true).await;
}

/// Its certificate does nothing any more, its contract ends, and nothing stays reserved.
async fn who_is_put_out_is_out_everywhere_and_comes_back_by_another_token(
    a: &House<'_>,
    b: &House<'_>,
    at_b: &Process,
) {
    let contract = in_force(a, b, "before it is put out", |_| true).await;
    let place = b.tenant(a).await.unwrap().name_any();
    let requests: Api<ResourceRequest> = Api::namespaced(a.client_at(b).await, &place);
    requests.list(&ListParams::default()).await.expect("the certificate works");
    let sold = || at_b.metric("liqo_peering_ledger_sold{resource=\"cpu\"}");
    eventually("something is sold", || async {
        if sold().is_some_and(|sold| sold > 0.0) { Ok(()) } else { Err(format!("{:?}", sold())) }
    })
    .await;

    let started = Instant::now();
    for token in tokens::list(&b.client, NAMESPACE).await.unwrap() {
        tokens::revoke(&b.client, NAMESPACE, &token.id).await.unwrap();
    }
    eventually("its certificate does nothing", || async {
        match requests.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let told = b.wait_incoming("a", "Denied PeerPutOut").await;
    assert!(told.message.contains("what it came in by was revoked"), "{}", told.message);
    eventually("the contract is over, and nothing is sold", || async {
        let contracts = b.contracts(b, a).await;
        let ended = |it: &Contract| {
            let conditions = it.status.iter().flat_map(|status| &status.conditions);
            let mut ended = conditions.filter(|it| it.type_ == "Ended");
            it.name_any() != contract.name_any() || ended.any(|it| it.reason == "PeerPutOut")
        };
        let over = contracts.iter().all(ended) && sold().unwrap_or_default() == 0.0;
        if over { Ok(()) } else { Err(format!("{:?} {contracts:?}", sold())) }
    })
    .await;
    println!("who is put out is out everywhere after {:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());

    let (_, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
    tokens::keep_remote(&a.client, NAMESPACE, &b.identity.id, &token).await.unwrap();
    let again = in_force(a, b, "let in again", |_| true).await;
    assert_ne!(again.name_any(), contract.name_any());
    let tenant = b.tenant(a).await.unwrap();
    assert!(!tenant.annotations().contains_key("authentication.liqo.io/put-out"), "{tenant:?}");
}

async fn deleting_the_foreign_cluster_parts_and_the_other_side_forgets(a: &House<'_>, b: &House<'_>) {
    let started = Instant::now();
    a.clusters().delete("b", &DeleteParams::default()).await.unwrap();
    a.wait_gone("b").await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    b.wait_gone("a").await;
    println!("deleting took {:?}", started.elapsed());
    wait_nothing_left([a, b]).await;
    for (house, peer) in [(a, b), (b, a)] {
        eventually("no namespace is blocked", || async {
            let namespaces: Vec<Namespace> = house.all().await;
            let mut of_peer =
                namespaces.iter().filter(|it| it.labels().values().any(|value| value == peer.id()));
            of_peer.next().map_or(Ok(()), |it| Err(format!("{it:?}")))
        })
        .await;
    }
}

async fn adding_it_again_right_after_works(a: &House<'_>, b: &House<'_>, at_b: &Process) {
    let started = Instant::now();
    a.add(b, at_b, PeeringEnabled::Yes).await;
    in_force(a, b, "added again", |_| true).await;
    println!("adding again took {:?}", started.elapsed());
}

async fn the_provider_deletes_the_foreign_cluster(a: &House<'_>, b: &House<'_>) {
    b.clusters().delete("a", &DeleteParams::default()).await.unwrap();
    b.wait_gone("a").await;
    let clusters: Vec<ForeignCluster> = a.all().await;
    assert_eq!(clusters.len(), 1);
    a.clusters().delete("b", &DeleteParams::default()).await.unwrap();
    a.wait_gone("b").await;
    wait_nothing_left([a, b]).await;
}

async fn a_provider_that_does_not_answer_is_not_waited_for_longer_than_that(a: &House<'_>, b: &House<'_>) {
    // Its API server answers, and nobody works there.
    let started = Instant::now();
    a.clusters().delete("b", &DeleteParams::default()).await.unwrap();
    a.wait_gone("b").await;
    let took = started.elapsed();
    println!("without an answer: {took:?}");
    assert!(took < Duration::from_secs(30), "{took:?}");
    wait_nothing_left([a]).await;
    let contracts = b.contracts(b, a).await;
    assert!(contracts.iter().all(|it| it.spec.ended.is_some()), "{contracts:?}");
}

async fn what_the_provider_was_not_told_it_learns_when_the_consumer_is_back(
    a: &House<'_>,
    b: &House<'_>,
    at_b: &Process,
) {
    eventually("what ended is over", || async {
        let contracts = b.contracts(b, a).await;
        let open = contracts.iter().any(|it| it.status.as_ref().is_some_and(|it| it.phase.is_in_force()));
        if open { Err(format!("{contracts:?}")) } else { Ok(()) }
    })
    .await;
    a.add(b, at_b, PeeringEnabled::Yes).await;
    in_force(a, b, "after a parting that was not answered", |_| true).await;
    // The API server of the provider is gone for ever.
    b.cluster.stop(Component::Apiserver).await;
    let started = Instant::now();
    a.clusters().delete("b", &DeleteParams::default()).await.unwrap();
    a.wait_gone("b").await;
    println!("without an API server: {:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    wait_nothing_left([a]).await;
    b.cluster.start(Component::Apiserver).await;
    b.cluster.wait_ready().await;
    a.add(b, at_b, PeeringEnabled::Yes).await;
    in_force(a, b, "after the provider was thought to be gone", |_| true).await;
}

async fn a_consumer_that_is_gone_does_not_keep_the_provider(b: &House<'_>) {
    let started = Instant::now();
    b.clusters().delete("a", &DeleteParams::default()).await.unwrap();
    b.wait_gone("a").await;
    println!("without a consumer: {:?}", started.elapsed());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    eventually("nothing is left of it", || async {
        let left = left(b).await;
        if left.is_empty() { Ok(()) } else { Err(left.join("\n")) }
    })
    .await;
}
