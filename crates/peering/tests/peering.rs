//! From the first request to the contract, through amendments and renewals to its end, on real API servers.
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

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use liqo_api::contract::{ContractPhase, WITHIN_AGREED};
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_api::{Contract, ResourceOffer, SharingPolicy};
use liqo_core::Span;
use liqo_core::contract::Delays;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use papers::{amount, check_log, check_paper, cordon, has_cpu, in_force, reasons};
use serde_json::json;
use tokio::time::Instant;
use world::{House, Process, eventually};

/// For so long nothing must be written when nothing changes: several times as long as a restarted process needs to look.
const QUIET: Duration = Duration::from_secs(4);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_and_a_provider_agree_and_keep_it_while_the_world_changes() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 3), ClusterSpec::hollow("a", 1)]).await;
    let (a, mut b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    b.settings.delays = Delays { raise_after: Span::clamped(2), clear_after: Span::clamped(1) };
    let (mut at_a, mut at_b) = (a.start().await, b.start().await);

    they_agree(&a, &b, &at_a, &at_b).await;
    settled(&a, &b).await;
    at_a.kill();
    at_b.kill();
    (at_a, at_b) = a_restart_writes_nothing(&a, &b).await;
    less_capacity_is_told_and_amended(&a, &b).await;
    more_capacity_is_amended(&a, &b, &at_b).await;
    what_is_wanted_is_asked_for(&a, &b).await;
    use_beyond_the_agreed_is_told_on_both_sides(&a, &b).await;
    it_is_renewed_before_it_ends(&a, &b).await;
    a_policy_changes_the_price_and_tells_whom_it_is_applied_to(&a, &b).await;
    what_is_not_renewed_ends_as_agreed(&a, &b).await;
    check_log(&a).await;
    check_log(&b).await;
    drop((at_a, at_b));
}

async fn they_agree(a: &House<'_>, b: &House<'_>, at_a: &Process, at_b: &Process) {
    let started = Instant::now();
    a.add(b, at_b, PeeringEnabled::Yes).await;
    // 90 % of 3 nodes with 32 cores.
    let contract = in_force(a, b, "the first", has_cpu("86400m")).await;
    println!("peer to contract in force on both sides: {:?}", started.elapsed());
    a.wait_outgoing("b", "Established ContractInForce").await;
    b.wait_incoming("a", "Established ContractInForce").await;
    check_paper(&contract, b, a);
    let copies: Vec<ResourceOffer> = a.all().await;
    assert_eq!(copies.len(), 1, "{copies:#?}");
    assert_eq!(copies[0].spec.cluster_id, b.id());
    eventually("ledger and contracts in the metrics", || async {
        let sold = at_b.metric("liqo_peering_ledger_sold{resource=\"cpu\"}");
        let free = at_b.metric("liqo_peering_ledger_free{resource=\"cpu\"}");
        let borrowed = at_a.metric("liqo_peering_contracts{role=\"consumer\",phase=\"active\"}");
        let took = at_a
            .metric("liqo_peering_phase_duration_seconds_count{direction=\"outgoing\",phase=\"pending\"}");
        let found = (sold, free, borrowed, took);
        let fine = found == (Some(86.4), None, Some(1.0), Some(1.0));
        if fine { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    eventually("events on both sides", || async {
        let told = (
            reasons(a, "b", &["OfferReceived", "OfferAccepted", "ContractProposed"]).await,
            reasons(b, "a", &["ResourcesOffered", "ContractSigned"]).await,
        );
        if told == (vec![1, 1, 1], vec![1, 1]) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
}

/// Waits until nobody writes any more: what is under way when a process is killed may come later.
async fn settled(a: &House<'_>, b: &House<'_>) {
    let mut last = (Instant::now(), a.versions().await, b.versions().await);
    let deadline = Instant::now() + 10 * QUIET;
    while last.0.elapsed() < QUIET {
        assert!(Instant::now() < deadline, "it does not come to rest: {last:#?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = (a.versions().await, b.versions().await);
        if now != (last.1.clone(), last.2.clone()) {
            last = (Instant::now(), now.0, now.1);
        }
    }
}

async fn a_restart_writes_nothing(a: &House<'_>, b: &House<'_>) -> (Process, Process) {
    let started = Instant::now();
    let before = (a.versions().await, b.versions().await);
    let (at_a, at_b) = (a.start().await, b.start().await);
    eventually("both lead again", || async {
        let found = [&at_a, &at_b].map(|at| at.metric("liqo_peering_contracts{role="));
        found.iter().all(Option::is_some).then_some(()).ok_or_else(|| format!("{found:?}"))
    })
    .await;
    println!("both lead again after {:?}", started.elapsed());
    let deadline = Instant::now() + QUIET;
    while Instant::now() < deadline {
        assert_eq!((a.versions().await, b.versions().await), before);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    (at_a, at_b)
}

async fn less_capacity_is_told_and_amended(a: &House<'_>, b: &House<'_>) {
    cordon(b, 1, true).await;
    let contract = in_force(a, b, "two nodes", has_cpu("57600m")).await;
    check_paper(&contract, b, a);
    eventually("both were told", || async {
        let told = (reasons(b, "a", &["CapacityMissing"]).await, reasons(a, "b", &["CapacityMissing"]).await);
        if told == (vec![1], vec![1]) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
}

async fn more_capacity_is_amended(a: &House<'_>, b: &House<'_>, at_b: &Process) {
    cordon(b, 1, false).await;
    in_force(a, b, "three nodes", has_cpu("86400m")).await;
    eventually("the ledger follows", || async {
        let sold = at_b.metric("liqo_peering_ledger_sold{resource=\"cpu\"}");
        if sold == Some(86.4) { Ok(()) } else { Err(format!("{sold:?}")) }
    })
    .await;
    eventually("all is backed", || async {
        let contracts = a.contracts(b, a).await;
        let conditions = contracts.iter().filter_map(|it| it.status.as_ref()).flat_map(|it| &it.conditions);
        let broken: Vec<_> = conditions.filter(|it| it.status != "True").collect();
        if broken.is_empty() { Ok(()) } else { Err(format!("{broken:?}")) }
    })
    .await;
}

async fn what_is_wanted_is_asked_for(a: &House<'_>, b: &House<'_>) {
    a.change(
        "b",
        json!({ "spec": { "borrowing": { "wanted": { "cpu": "2", "memory": "4Gi", "pods": "10" } } } }),
    )
    .await;
    let contract = in_force(a, b, "what is wanted", has_cpu("2")).await;
    assert_eq!(amount(&contract, "memory"), "4Gi");
}

async fn use_beyond_the_agreed_is_told_on_both_sides(a: &House<'_>, b: &House<'_>) {
    let namespaces: Api<Namespace> = Api::all(b.client.clone());
    let lodging =
        json!({ "metadata": { "name": "work-of-a", "labels": { "liqo.io/remote-cluster-id": a.id() } } });
    namespaces.create(&PostParams::default(), &serde_json::from_value(lodging).unwrap()).await.unwrap();
    let pods: Api<Pod> = b.api("work-of-a");
    let node = papers::node_name(b, 0).await;
    let pod = json!({
        "metadata": { "name": "greedy" },
        "spec": {
            "nodeName": node, "automountServiceAccountToken": false,
            "containers": [{ "name": "c", "image": "i", "resources": { "requests": { "cpu": "3" } } }],
        },
    });
    let pod: Pod = serde_json::from_value(pod).unwrap();
    // Not before the namespace has its service account, which Kubernetes makes.
    eventually("a pod is made", || async {
        let made = pods.create(&PostParams::default(), &pod).await;
        made.map(drop).map_err(|error| error.to_string())
    })
    .await;
    let told = |expected: &'static str| async move {
        for (house, name) in [(a, "b"), (b, "a")] {
            eventually(&format!("{} is told of {name}: {expected}", house.name), || async {
                let contracts = house.contracts(b, a).await;
                let conditions =
                    contracts.iter().filter_map(|it| it.status.as_ref()).flat_map(|it| &it.conditions);
                let found: Vec<_> = conditions.filter(|it| it.type_ == WITHIN_AGREED).collect();
                let fine = found.iter().any(|it| it.status == expected);
                if fine { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .await;
        }
    };
    told("False").await;
    eventually("events on both sides", || async {
        let told =
            (reasons(b, "a", &["UsedBeyondAgreed"]).await, reasons(a, "b", &["UsedBeyondAgreed"]).await);
        if told == (vec![1], vec![1]) { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
    pods.delete("greedy", &DeleteParams::default().grace_period(0)).await.unwrap();
    told("True").await;
}

async fn it_is_renewed_before_it_ends(a: &House<'_>, b: &House<'_>) {
    let ends = papers::valid_until(a, b).await;
    // It lasts a day.
    [a, b].iter().for_each(|house| house.set_clock(SignedDuration::from_hours(23)));
    let later = |contract: &Contract| papers::end(contract) > ends;
    let contract = in_force(a, b, "renewed", later).await;
    assert_eq!(amount(&contract, "cpu"), "2");
    check_paper(&contract, b, a);
}

async fn a_policy_changes_the_price_and_tells_whom_it_is_applied_to(a: &House<'_>, b: &House<'_>) {
    let prices = json!({ "currency": "EUR", "period": "Hourly", "perUnit": { "cpu": "0.05" } });
    let contract = json!({ "duration": "1h", "renewal": "None", "offerValidity": "1h" });
    b.put_policy("paid", json!({ "share": { "percentage": 50 }, "prices": prices, "contract": contract }))
        .await;
    let price = |contract: &Contract| contract.status.as_ref().and_then(|it| it.price.clone());
    in_force(a, b, "paid", |it| price(it).as_deref() == Some("EUR 0.1 per hour")).await;
    eventually("the policy tells", || async {
        let policies: Vec<SharingPolicy> = b.all().await;
        let status = policies[0].status.clone().ok_or("no status")?;
        let sold = status.sold.get("cpu").map(|amount| amount.0.clone());
        let valid = status.conditions.iter().any(|it| it.type_ == "Valid" && it.status == "True");
        let fine = valid && status.peers == ["a"] && sold.as_deref() == Some("2");
        if fine { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

async fn what_is_not_renewed_ends_as_agreed(a: &House<'_>, b: &House<'_>) {
    [a, b].iter().for_each(|house| house.set_clock(SignedDuration::from_hours(25)));
    a.wait_outgoing("b", "None EndedAsAgreed").await;
    for house in [a, b] {
        eventually("it is over", || async {
            let contracts = house.contracts(b, a).await;
            let phases: Vec<_> =
                contracts.iter().filter_map(|it| it.status.as_ref()).map(|it| it.phase).collect();
            if phases == [ContractPhase::Expired] { Ok(()) } else { Err(format!("{phases:?}")) }
        })
        .await;
    }
}
