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

/// A caller, the consumer or the provider, that reaches the other side by a link that can be cut.
async fn linked(sandbox: &TestSandbox, caller: Who) -> (Pair<'_>, Relay) {
    let (mut a, mut b) = (House::new(sandbox, "a").await, House::new(sandbox, "b").await);
    let called = if caller == Who::Consumer { &mut b } else { &mut a };
    let mut relay = Relay::new();
    let server = called.cluster.config().await.cluster_url;
    let target = format!("{}:{}", server.host().unwrap(), server.port_u16().unwrap());
    let api_server = relay.to(target.parse().unwrap()).await;
    called.authentication.api_server = Some(format!("https://{api_server}"));
    let service = relay.to(called.address).await;
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

/// What is done over a link.
struct Course {
    /// Who calls the other side.
    caller: Who,
    /// What is done in each round, and whether the link is cut meanwhile.
    acts: &'static [(Act, bool)],
    /// Whether the clusters are new in each round; else they know each other already.
    new: bool,
}

/// Cuts the link before the caller does anything, and after its first, second, third … write at the other side, until there
/// are no more: while it asks or offers, while both sign, and while they part.
async fn cut_in_each_phase(link: Link, course: &Course) {
    let sandbox = sandbox().await;
    let (mut pair, relay) = linked(&sandbox, course.caller).await;
    if !course.new {
        pair.undisturbed(&[Act::Add]).await;
    }
    let acts: Vec<Act> = course.acts.iter().map(|(act, _)| *act).collect();
    let ends = pair.undisturbed(&acts).await;
    let mut open: Vec<bool> = course.acts.iter().map(|(_, cut)| *cut).collect();
    for writes in 0..TOO_MANY {
        if course.new {
            pair.renew(course.caller, &Fuse::new()).await;
        }
        pair.begin().await;
        for ((act, end), open) in acts.iter().zip(&ends).zip(&mut open) {
            if !*open {
                pair.perform(*act).await;
                pair.reached(end, &format!("{act:?} once more")).await;
                continue;
            }
            let what = format!("{act:?}, {link:?} after {writes} writes");
            let fuse = Fuse::then(relay.cutter(link));
            pair.restart_at_peers(course.caller, &fuse).await;
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

const KNOWING: Course =
    Course { caller: Who::Consumer, acts: &[(Act::Add, true), (Act::Remove, true)], new: true };
const BORROWING: Course =
    Course { caller: Who::Consumer, acts: &[(Act::Unpeer, true), (Act::Again, true)], new: false };
const LENDING: Course = Course { caller: Who::Provider, acts: STANDING_OFFER, new: true };

/// A standing offer, up to a contract and back, and up to one that ends with all else.
const STANDING_OFFER: &[(Act, bool)] = &[
    (Act::Push, true),
    (Act::Take, true),
    (Act::Withdraw, true),
    // Nothing that the first two have not shown.
    (Act::PushAgain, false),
    (Act::Leave, true),
    // The consumer's own business.
    (Act::Forget, false),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_resets_connections_while_clusters_get_to_know_each_other_changes_nothing() {
    cut_in_each_phase(Link::Reset, &KNOWING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_resets_connections_in_each_phase_of_borrowing_changes_nothing() {
    cut_in_each_phase(Link::Reset, &BORROWING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_says_nothing_while_clusters_get_to_know_each_other_changes_nothing() {
    cut_in_each_phase(Link::Silent, &KNOWING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_says_nothing_in_each_phase_of_borrowing_changes_nothing() {
    cut_in_each_phase(Link::Silent, &BORROWING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_resets_connections_in_each_phase_of_a_standing_offer_changes_nothing() {
    cut_in_each_phase(Link::Reset, &LENDING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_that_says_nothing_in_each_phase_of_a_standing_offer_changes_nothing() {
    cut_in_each_phase(Link::Silent, &LENDING).await;
}

/// After a minute of silence everybody waits as long as they ever do; still it is over soon.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contract_is_amended_soon_after_a_minute_of_silence() {
    let sandbox = sandbox().await;
    let (mut pair, relay) = linked(&sandbox, Who::Consumer).await;
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
    let (mut pair, relay) = linked(&sandbox, Who::Consumer).await;
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
    let (mut pair, relay) = linked(&sandbox, Who::Consumer).await;
    let ends = pair.undisturbed(&[Act::Add, Act::Remove]).await;
    pair.begin().await;
    relay.set(Link::Silent);
    pair.perform(Act::Add).await;
    tokio::time::sleep(LONG).await;
    relay.set(Link::Whole);
    soon(&pair, &ends[0], "asking, a minute of silence").await;
}

/// What is done while API servers go away and come back.
struct Interrupted {
    /// What is done in each round, and whether an API server goes away meanwhile.
    acts: &'static [(Act, bool)],
    /// In each round: whose API server goes away after how many writes of its own side, if it makes so many.
    rounds: &'static [(Who, isize)],
    /// Whether the clusters are new in each round; else they know each other already.
    new: bool,
}

impl Interrupted {
    /// The API server of either side goes away in the middle, and comes back.
    async fn run(&self) {
        let sandbox = sandbox().await;
        let mut pair = Pair::start(&sandbox).await;
        if !self.new {
            pair.undisturbed(&[Act::Add]).await;
        }
        let acts: Vec<Act> = self.acts.iter().map(|(act, _)| *act).collect();
        let ends = pair.undisturbed(&acts).await;
        for (who, writes) in self.rounds {
            if self.new {
                pair.renew(*who, &Fuse::new()).await;
            }
            pair.begin().await;
            for ((act, interrupted), end) in self.acts.iter().zip(&ends) {
                if *interrupted {
                    interrupt(&mut pair, *act, end, (*who, *writes)).await;
                } else {
                    pair.perform(*act).await;
                    pair.reached(end, &format!("{act:?}")).await;
                }
            }
        }
        check_log(&pair.a).await;
        check_log(&pair.b).await;
    }
}

async fn interrupt(pair: &mut Pair<'_>, act: Act, end: &Value, (who, writes): (Who, isize)) {
    // Both sides notice; the one whose server it is has made so many writes.
    let fuse = Fuse::then(|| {});
    pair.restart(who, &fuse).await;
    fuse.arm(writes);
    pair.perform(act).await;
    let what = format!("{act:?}, API server of {who:?} restarted after {writes} writes");
    tokio::select! {
        () = fuse.blown() => {}
        () = pair.reached(end, &what) => {}
    }
    fuse.disarm();
    let cluster = &pair.house(who).cluster;
    cluster.kill(Component::Apiserver).await;
    cluster.start(Component::Apiserver).await;
    cluster.wait_ready().await;
    eventually("both answer", || async {
        let answers = (
            pair.a.clusters().list_metadata(&Default::default()).await.is_ok(),
            pair.b.clusters().list_metadata(&Default::default()).await.is_ok(),
        );
        if answers == (true, true) { Ok(()) } else { Err(format!("{answers:?}")) }
    })
    .await;
    soon(pair, end, &format!("{what} ({})", fuse.last().unwrap_or_default())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_restarted_in_the_middle_changes_nothing() {
    let acts = &[(Act::Unpeer, true), (Act::Again, true)];
    let rounds = &[(Who::Consumer, 2), (Who::Provider, 2), (Who::Consumer, 4), (Who::Provider, 4)];
    Interrupted { acts, rounds, new: false }.run().await;
}

/// Before the one may call, while the other is asked, while it signs, and when all of that is done but not yet forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_restarted_while_clusters_get_to_know_each_other_changes_nothing() {
    let acts = &[(Act::Add, true), (Act::Remove, true)];
    let rounds = &[(Who::Consumer, 1), (Who::Provider, 2), (Who::Consumer, 9), (Who::Provider, 7)];
    Interrupted { acts, rounds, new: true }.run().await;
}

/// The offer lies at the consumer, and the provider writes there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_restarted_in_the_middle_of_a_standing_offer_changes_nothing() {
    // The consumer's last: Kubernetes may take a minute until it signs certificates there again.
    let rounds = &[(Who::Provider, 3), (Who::Consumer, 3)];
    Interrupted { acts: STANDING_OFFER, rounds, new: true }.run().await;
}
