//! Who calls and who lends are two questions; who decides is a third; on real API servers.
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

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::{ForeignIdentity, PeeringConditionType, PeeringEnabled};
use liqo_api::names::Identity;
use liqo_api::{ForeignCluster, ForeignClusterSpec, ResourceOffer, SearchDomain, SearchDomainSpec};
use liqo_core::Span;
use liqo_core::contract::Delays;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use papers::{check_log, check_paper, cordon, has_cpu, in_force, reasons};
use serde_json::json;
use world::{House, Process, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn either_side_calls_either_side_lends_and_people_decide() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 2), ClusterSpec::hollow("a", 1)]).await;
    let (mut a, mut b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    strangers_that_are_found_come_to_a_contract_where_no_token_is_asked_for(&a, &mut b).await;
    a.settings.delays = Delays { raise_after: Span::clamped(1), clear_after: Span::clamped(1) };
    let (at_a, at_b) = (a.start().await, b.start().await);

    who_skips_the_verification_of_tls_comes_to_a_contract_too(&a, &b, &at_b).await;
    a_pushed_offer_waits_for_a_person(&a, &b, &at_b).await;
    what_was_pushed_is_amended(&a, &b).await;
    what_is_not_kept_of_it_is_told_on_both_sides(&a, &b).await;
    both_directions_at_once(&a, &b, &at_a, &at_b).await;
    a_pushed_offer_is_withdrawn(&a, &b).await;
    an_offer_beyond_the_limits_is_refused_in_words(&a, &b).await;
    a_person_accepts_or_refuses(&a, &b).await;
    a_policy_refuses_in_words(&a, &b).await;
    a_policy_needs_approval(&a, &b).await;
    check_log(&a).await;
    check_log(&b).await;
}

/// Neither has heard of the other, and nobody says anything but that clusters of a search domain are to be joined.
async fn strangers_that_are_found_come_to_a_contract_where_no_token_is_asked_for(
    a: &House<'_>,
    b: &mut House<'_>,
) {
    let (at_a, mut at_b) = (a.start().await, b.start().await);
    let domains: Api<SearchDomain> = Api::all(a.client.clone());
    let domain = SearchDomainSpec { domain: "example.org".to_owned(), autojoin: true };
    domains.create(&PostParams::default(), &SearchDomain::new("example", domain)).await.unwrap();
    let spec = found(b, &b.fingerprint(&at_b).await.to_string());
    a.clusters().create(&PostParams::default(), &spec).await.unwrap();
    // Who asks for tokens lets no stranger in.
    a.wait_part("b", PeeringConditionType::AuthenticationStatus, "EmptyDenied TokenMissing").await;
    assert!(b.all::<ForeignCluster>().await.is_empty());

    at_b.end();
    b.authentication.tokens_required = false;
    let at_b = b.start().await;
    b.fingerprint(&at_b).await;
    // Rather than wait until it asks again by itself.
    a.clusters().delete("b", &DeleteParams::default()).await.unwrap();
    a.wait_gone("b").await;
    a.clusters().create(&PostParams::default(), &spec).await.unwrap();
    let contract = in_force(a, b, "between strangers", |_| true).await;
    check_paper(&contract, b, a);
    let tenant = b.tenant(a).await.unwrap();
    assert_eq!(tenant.annotations()["authentication.liqo.io/admitted-by"], "open");

    // Put out, it does not come back by itself, though it tries.
    b.clusters().delete("a", &DeleteParams::default()).await.unwrap();
    b.wait_gone("a").await;
    a.change("b", json!({ "metadata": { "annotations": { "authentication.liqo.io/rotate": "now" } } })).await;
    a.wait_part("b", PeeringConditionType::AuthenticationStatus, "Established RenewalFailing").await;
    assert!(b.all::<ForeignCluster>().await.is_empty());
    domains.delete("example", &DeleteParams::default()).await.unwrap();
    a.clusters().delete("b", &DeleteParams::default()).await.unwrap();
    a.wait_gone("b").await;
    nothing_agreed(b, a).await;
    b.authentication.tokens_required = true;
    drop((at_a, at_b));
}

/// What is written about a cluster that a search domain names.
fn found(peer: &House<'_>, fingerprint: &str) -> ForeignCluster {
    let mut spec = ForeignClusterSpec::new(peer.url());
    spec.auth_fingerprint = Some(fingerprint.to_owned());
    let identity = Identity { id: peer.identity.id.clone(), name: peer.identity.name.clone() };
    spec.cluster_identity = Some(ForeignIdentity::from(identity));
    let mut cluster = ForeignCluster::new(&peer.name, spec);
    let labels = [
        ("discovery.liqo.io/discovery-type", "WAN"),
        ("discovery.liqo.io/searchdomain", "example"),
        ("discovery.liqo.io/cluster-id", peer.id()),
    ];
    cluster.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    cluster
}

/// By the key that the first one who answered told, which is said.
async fn who_skips_the_verification_of_tls_comes_to_a_contract_too(
    a: &House<'_>,
    b: &House<'_>,
    at_b: &Process,
) {
    let insecurely = |spec: &mut ForeignClusterSpec| {
        (spec.auth_fingerprint, spec.insecure_skip_tls_verify) = (None, true);
        spec.outgoing_peering_enabled = PeeringEnabled::Yes;
    };
    a.add_with(b, at_b, insecurely).await;
    let contract = in_force(a, b, "without verified TLS", |_| true).await;
    check_paper(&contract, b, a);
    let part = PeeringConditionType::AuthenticationStatus;
    let told = a.wait_part("b", part, "Established AuthenticatedInsecurely").await;
    let believed = format!("the key {} was believed", b.identity.public_key().fingerprint());
    assert!(told.message.contains(&believed), "{}", told.message);
    a.clusters().delete("b", &DeleteParams::default()).await.unwrap();
    a.wait_gone("b").await;
    b.wait_gone("a").await;
}

async fn nothing_agreed(provider: &House<'_>, consumer: &House<'_>) {
    for house in [provider, consumer] {
        eventually("nothing is in force", || async {
            let contracts = house.contracts(provider, consumer).await;
            let open = contracts.iter().any(|it| it.status.as_ref().is_none_or(|it| !it.phase.is_over()));
            if open { Err(format!("{}: {contracts:#?}", house.name)) } else { Ok(()) }
        })
        .await;
    }
}

/// a calls b, and lends: b gets an offer that it did not ask for.
async fn a_pushed_offer_waits_for_a_person(a: &House<'_>, b: &House<'_>, at_b: &Process) {
    let lend = |spec: &mut liqo_api::ForeignClusterSpec| {
        spec.outgoing_peering_enabled = PeeringEnabled::No;
        spec.incoming_peering_enabled = PeeringEnabled::Yes;
    };
    a.add_with(b, at_b, lend).await;
    b.wait_outgoing("a", "Pending ManualActionRequired").await;
    a.wait_incoming("b", "Pending ConsumerDecides").await;
    b.change("a", json!({ "spec": { "outgoingPeeringEnabled": "Yes" } })).await;
    let contract = in_force(b, a, "pushed", has_cpu("28800m")).await;
    check_paper(&contract, a, b);
    a.wait_incoming("b", "Established ContractInForce").await;
    b.wait_outgoing("a", "Established ContractInForce").await;
}

async fn what_was_pushed_is_amended(a: &House<'_>, b: &House<'_>) {
    a.put_policy("half", json!({ "share": { "percentage": 50 } })).await;
    in_force(b, a, "half", has_cpu("16")).await;
}

/// The contract lies at b, which has no copy of it to see by what changed.
async fn what_is_not_kept_of_it_is_told_on_both_sides(a: &House<'_>, b: &House<'_>) {
    let told = async |what: &str, at_lender: &'static [&str], at_borrower: &'static [&str]| {
        eventually(what, || async {
            let told = (reasons(a, "b", at_lender).await, reasons(b, "a", at_borrower).await);
            if told == (vec![1], vec![1]) { Ok(()) } else { Err(format!("{told:?}")) }
        })
        .await;
    };
    cordon(a, 0, true).await;
    told("the capacity is missing", &["CapacityMissing"], &["CapacityMissing"]).await;
    cordon(a, 0, false).await;
    told("it is back", &["CapacityBack"], &["ContractKept"]).await;
    in_force(b, a, "kept again", has_cpu("16")).await;
    // Nothing is told twice.
    told("once each", &["CapacityMissing"], &["CapacityMissing"]).await;
}

/// a also borrows from b over the same channel; then b calls a as well.
async fn both_directions_at_once(a: &House<'_>, b: &House<'_>, at_a: &Process, _at_b: &Process) {
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "Yes" } })).await;
    in_force(a, b, "the other way round", has_cpu("57600m")).await;
    in_force(b, a, "still", has_cpu("16")).await;
    // b learns where a is, and goes on.
    let fingerprint = a.fingerprint(at_a).await.to_string();
    let (_, token) = liqo_authentication::tokens::create(&a.client, install::NAMESPACE, &Default::default())
        .await
        .unwrap();
    liqo_authentication::tokens::keep_remote(&b.client, install::NAMESPACE, &a.identity.id, &token)
        .await
        .unwrap();
    b.change("a", json!({ "spec": { "foreignAuthUrl": a.url(), "authFingerprint": fingerprint } })).await;
    b.wait_part(
        "a",
        liqo_api::foreign_cluster::PeeringConditionType::AuthenticationStatus,
        "Established Authenticated",
    )
    .await;
    in_force(a, b, "undisturbed", has_cpu("57600m")).await;
    in_force(b, a, "undisturbed", has_cpu("16")).await;
}

async fn a_pushed_offer_is_withdrawn(a: &House<'_>, b: &House<'_>) {
    a.change("b", json!({ "spec": { "incomingPeeringEnabled": "No" } })).await;
    b.change("a", json!({ "spec": { "outgoingPeeringEnabled": "No" } })).await;
    nothing_agreed(a, b).await;
    b.wait_outgoing("a", "None NotWanted").await;
    in_force(a, b, "the other direction stays", has_cpu("57600m")).await;
}

/// 57.6 cores cost 2.88 EUR an hour.
async fn what_is_too_dear_is_refused(a: &House<'_>, b: &House<'_>) {
    let prices = json!({ "currency": "EUR", "period": "Hourly", "perUnit": { "cpu": "0.05" } });
    b.put_policy("dear", json!({ "share": { "percentage": 90 }, "prices": prices })).await;
    let limit = json!({ "maximumTotal": { "currency": "EUR", "period": "Hourly", "amount": "2.87" } });
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "Yes", "borrowing": limit } })).await;
    let told = a.wait_outgoing("b", "Denied BeyondLimits").await;
    assert!(told.message.contains("EUR"), "{}", told.message);
    nothing_agreed(b, a).await;
    let limit = json!({ "maximumTotal": { "currency": "EUR", "period": "Hourly", "amount": "2.88" } });
    a.change("b", json!({ "spec": { "borrowing": limit } })).await;
    in_force(a, b, "as dear as allowed", has_cpu("57600m")).await;
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "No", "borrowing": null } })).await;
    nothing_agreed(b, a).await;
    let policies: kube::Api<liqo_api::SharingPolicy> = kube::Api::all(b.client.clone());
    policies.delete("dear", &kube::api::DeleteParams::default()).await.unwrap();
}

async fn an_offer_beyond_the_limits_is_refused_in_words(a: &House<'_>, b: &House<'_>) {
    a.change("b", json!({ "spec": { "outgoingPeeringEnabled": "No" } })).await;
    nothing_agreed(b, a).await;
    what_is_too_dear_is_refused(a, b).await;
    a.change(
        "b",
        json!({ "spec": { "outgoingPeeringEnabled": "Yes", "borrowing": { "minimum": { "cpu": "500" } } } }),
    )
    .await;
    let told = a.wait_outgoing("b", "Denied BeyondLimits").await;
    assert!(told.message.contains("cpu"), "{}", told.message);
    let told = b.wait_incoming("a", "Denied OfferRefused").await;
    assert!(told.message.contains("a refused the offer"), "{}", told.message);
}

async fn copy_of_offer(a: &House<'_>, b: &House<'_>) -> ResourceOffer {
    eventually("the offer", || async {
        let offers: Vec<ResourceOffer> = a.all().await;
        let found = offers.into_iter().find(|offer| offer.spec.cluster_id == b.id());
        found.ok_or_else(|| "there is none".to_owned())
    })
    .await
}

async fn decide(a: &House<'_>, b: &House<'_>, word: &str) {
    let offer = copy_of_offer(a, b).await;
    let digest = liqo_peering::offer::digest(&offer.spec).unwrap();
    let patch =
        json!({ "metadata": { "annotations": { "sharing.liqo.io/decision": format!("{word} {digest}") } } });
    let offers = a.api::<ResourceOffer>(&offer.namespace().unwrap());
    offers.patch(&offer.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

async fn a_person_accepts_or_refuses(a: &House<'_>, b: &House<'_>) {
    a.change("b", json!({ "spec": { "borrowing": { "automatic": false, "minimum": null } } })).await;
    a.wait_outgoing("b", "Pending ManualActionRequired").await;
    b.wait_incoming("a", "Pending ConsumerDecides").await;
    decide(a, b, "refuse").await;
    a.wait_outgoing("b", "Denied RefusedByHand").await;
    decide(a, b, "accept").await;
    in_force(a, b, "accepted by hand", has_cpu("57600m")).await;
    // What was accepted stays until somebody accepts something else.
    b.put_policy("less", json!({ "share": { "percentage": 10 } })).await;
    a.wait_outgoing("b", "Established ContractInForce").await;
    eventually("the new offer is not accepted yet", || async {
        let offer = copy_of_offer(a, b).await;
        let phase = offer.status.as_ref().map(|status| format!("{:?}", status.phase));
        let less = offer.spec.policy.as_deref() == Some("less");
        if less && phase.as_deref() == Some("ManualActionRequired") {
            Ok(())
        } else {
            Err(format!("{offer:?}"))
        }
    })
    .await;
    decide(a, b, "accept").await;
    in_force(a, b, "less, accepted by hand", has_cpu("6400m")).await;
    a.change("b", json!({ "spec": { "borrowing": null } })).await;
}

async fn a_policy_refuses_in_words(a: &House<'_>, b: &House<'_>) {
    let gold = json!({ "peers": { "matchLabels": { "tier": "gold" } }, "share": { "percentage": 20 } });
    b.put_policy("gold-only", gold).await;
    let policies: kube::Api<liqo_api::SharingPolicy> = kube::Api::all(b.client.clone());
    policies.delete("less", &kube::api::DeleteParams::default()).await.unwrap();
    let told = a.wait_outgoing("b", "Denied RefusedByProvider").await;
    assert_eq!(told.message, "provider refused: policy gold-only needs label tier=gold");
    nothing_agreed(b, a).await;
    b.change("a", json!({ "metadata": { "labels": { "tier": "gold" } } })).await;
    in_force(a, b, "gold", has_cpu("12800m")).await;
}

async fn a_policy_needs_approval(a: &House<'_>, b: &House<'_>) {
    b.put_policy("approved", json!({ "peers": { "clusterIDs": [a.id()] }, "approval": "Required" })).await;
    a.wait_outgoing("b", "Pending NeedsApproval").await;
    b.wait_incoming("a", "Pending NeedsApproval").await;
    b.change("a", json!({ "metadata": { "annotations": { "sharing.liqo.io/approved": "true" } } })).await;
    in_force(a, b, "approved", has_cpu("57600m")).await;
}
