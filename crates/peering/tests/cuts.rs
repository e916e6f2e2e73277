//! Links cut and API servers restarted in each phase of a peering: once they are whole again, the end is the same, and soon.
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
#[path = "support/pair.rs"]
mod pair;
#[path = "support/papers.rs"]
mod papers;
#[path = "support/relay.rs"]
mod relay;
#[path = "support/state.rs"]
mod state;
#[path = "support/world.rs"]
mod world;

use std::time::Duration;

use fuse::Fuse;
use liqo_sandbox::{ClusterSpec, Component, TestSandbox};
use pair::{Act, Pair, Who};
use papers::{check_log, has_cpu, in_force};
use relay::{Link, Relay};
use serde_json::{Value, json};
use tokio::time::Instant;
use world::{House, eventually};

/// The end is reached so soon after a link is whole again.
const AFTER_HEALING: Duration = Duration::from_secs(15);
/// A short cut of which nobody is told: longer than a write is waited for.
const SHORT: Duration = Duration::from_secs(5);
/// One of which everybody is told: they try again several times.
const SHORTER: Duration = Duration::from_secs(2);
/// A long one: everybody waits as long as they ever do before they try again.
const LONG: Duration = Duration::from_secs(60);
/// More writes than any of this takes at a peer.
const TOO_MANY: isize = 12;

/// A consumer that reaches the provider by a link that can be cut.
async fn linked(sandbox: &TestSandbox) -> (Pair<'_>, Relay) {
    let (a, mut b) = (House::new(sandbox, "a").await, House::new(sandbox, "b").await);
    let mut relay = Relay::new();
    let server = b.cluster.config().await.cluster_url;
    let target = format!("{}:{}", server.host().unwrap(), server.port_u16().unwrap());
    let api_server = relay.to(target.parse().unwrap()).await;
    b.authentication.api_server = Some(format!("https://{api_server}"));
    let service = relay.to(b.address).await;
    let mut pair = Pair::of(a, b).await;
    pair.url = Some(format!("https://{service}"));
    (pair, relay)
}

async fn sandbox() -> TestSandbox {
    TestSandbox::start([ClusterSpec::hollow("b", 1), ClusterSpec::hollow("a", 1)]).await
}

/// Waits for the end, which must come soon.
async fn soon(pair: &Pair<'_>, end: &Value, what: &str) {
    let healed = Instant::now();
    pair.reached(end, what).await;
    println!("{what}: {:?} after it was whole again", healed.elapsed());
    assert!(healed.elapsed() < AFTER_HEALING, "{what}: {:?}", healed.elapsed());
}

/// Cuts the link before the consumer does anything, and after its first, second, third … write at the provider, until there
/// are no more: while it asks, while it is offered something, while both sign, and while they part.
async fn cut_in_each_phase(link: Link, before: &[Act], acts: [Act; 2]) {
    let sandbox = sandbox().await;
    let (mut pair, relay) = linked(&sandbox).await;
    pair.undisturbed(before).await;
    let ends = pair.undisturbed(&acts).await;
    let mut open = [true; 2];
    for writes in 0..TOO_MANY {
        pair.begin().await;
        for ((act, end), open) in acts.iter().zip(&ends).zip(&mut open) {
            if !*open {
                pair.perform(*act).await;
                pair.reached(end, &format!("{act:?} once more")).await;
                continue;
            }
            let what = format!("{act:?}, {link:?} after {writes} writes");
            let fuse = Fuse::then(relay.cutter(link));
            pair.at_a.end();
            pair.at_a = fuse.start_at_peers(&pair.a).await;
            if writes == 0 {
                relay.set(link);
            } else {
                fuse.arm(writes);
            }
            pair.perform(*act).await;
            if writes > 0 {
                tokio::select! {
                    () = fuse.blown() => {}
                    () = pair.reached(end, &what) => {}
                }
                fuse.disarm();
                // The end may be seen just before the last write is answered: then the link was cut all the same.
                *open = fuse.last().is_some();
            }
            if *open {
                tokio::time::sleep(if link == Link::Silent { SHORT } else { SHORTER }).await;
                relay.set(Link::Whole);
                soon(&pair, end, &format!("{what} ({})", fuse.last().unwrap_or_default())).await;
            }
        }
        if !open.contains(&true) {
            assert!(writes > 2, "{writes}");
            check_log(&pair.a).await;
            check_log(&pair.b).await;
            return;
        }
    }
    panic!("it never came to an end");
}

const KNOWING: ([Act; 0], [Act; 2]) = ([], [Act::Add, Act::Remove]);
const BORROWING: ([Act; 1], [Act; 2]) = ([Act::Add], [Act::Unpeer, Act::Again]);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_resets_connections_while_clusters_get_to_know_each_other_changes_nothing() {
    cut_in_each_phase(Link::Reset, &KNOWING.0, KNOWING.1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_resets_connections_in_each_phase_of_borrowing_changes_nothing() {
    cut_in_each_phase(Link::Reset, &BORROWING.0, BORROWING.1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_says_nothing_while_clusters_get_to_know_each_other_changes_nothing() {
    cut_in_each_phase(Link::Silent, &KNOWING.0, KNOWING.1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_says_nothing_in_each_phase_of_borrowing_changes_nothing() {
    cut_in_each_phase(Link::Silent, &BORROWING.0, BORROWING.1).await;
}

/// After a minute of silence everybody waits as long as they ever do; still it is over soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contract_is_amended_soon_after_a_minute_of_silence() {
    let sandbox = sandbox().await;
    let (mut pair, relay) = linked(&sandbox).await;
    pair.undisturbed(&[Act::Add]).await;
    relay.set(Link::Silent);
    pair.b.put_policy("half", json!({ "share": { "percentage": 50 } })).await;
    tokio::time::sleep(LONG).await;
    pair.a.wait_outgoing("b", "Established ContractInForce").await;
    relay.set(Link::Whole);
    let healed = Instant::now();
    in_force(&pair.a, &pair.b, "half of it", has_cpu("16")).await;
    println!("amended {:?} after it was whole again", healed.elapsed());
    assert!(healed.elapsed() < AFTER_HEALING, "{:?}", healed.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_borrows_again_while_nobody_answers_is_lent_to_soon_after_a_minute_of_silence() {
    let sandbox = sandbox().await;
    let (mut pair, relay) = linked(&sandbox).await;
    pair.undisturbed(&[Act::Add]).await;
    let ends = pair.undisturbed(&[Act::Unpeer, Act::Again]).await;
    pair.begin().await;
    pair.perform(Act::Unpeer).await;
    pair.reached(&ends[0], "unpeered").await;
    relay.set(Link::Silent);
    pair.perform(Act::Again).await;
    tokio::time::sleep(LONG).await;
    relay.set(Link::Whole);
    soon(&pair, &ends[1], "borrowing again, a minute of silence").await;
}

/// While the consumer does not know the provider yet, its service must answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_first_while_nobody_answers_is_answered_soon_after_a_minute_of_silence() {
    let sandbox = sandbox().await;
    let (mut pair, relay) = linked(&sandbox).await;
    let ends = pair.undisturbed(&[Act::Add, Act::Remove]).await;
    pair.begin().await;
    relay.set(Link::Silent);
    pair.perform(Act::Add).await;
    tokio::time::sleep(LONG).await;
    relay.set(Link::Whole);
    soon(&pair, &ends[0], "asking, a minute of silence").await;
}

/// The API server of either side goes away in the middle, and comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_restarted_in_the_middle_changes_nothing() {
    let sandbox = sandbox().await;
    let mut pair = Pair::start(&sandbox).await;
    pair.undisturbed(&[Act::Add]).await;
    let acts = [Act::Unpeer, Act::Again];
    let ends = pair.undisturbed(&acts).await;
    for (who, writes) in [(Who::Consumer, 2), (Who::Provider, 2), (Who::Consumer, 4), (Who::Provider, 4)] {
        pair.begin().await;
        for (act, end) in acts.iter().zip(&ends) {
            // Both sides notice; the one whose server it is has made so many writes.
            let fuse = Fuse::then(|| {});
            pair.restart(who, &fuse).await;
            fuse.arm(writes);
            let cluster = if who == Who::Consumer { pair.a.cluster } else { pair.b.cluster };
            pair.perform(*act).await;
            fuse.blown().await;
            cluster.kill(Component::Apiserver).await;
            cluster.start(Component::Apiserver).await;
            cluster.wait_ready().await;
            let last = fuse.last().unwrap_or_default();
            let what = format!("{act:?}, API server of {who:?} restarted after {writes} writes ({last})");
            eventually("both answer", || async {
                let answers = (
                    pair.a.clusters().list_metadata(&Default::default()).await.is_ok(),
                    pair.b.clusters().list_metadata(&Default::default()).await.is_ok(),
                );
                if answers == (true, true) { Ok(()) } else { Err(format!("{answers:?}")) }
            })
            .await;
            soon(&pair, end, &what).await;
        }
    }
    check_log(&pair.a).await;
    check_log(&pair.b).await;
}
