//! Either side killed after each single write of a peering and of an unpeering: whoever comes after it finishes the same
//! work, on real API servers.
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
#[path = "support/state.rs"]
mod state;
#[path = "support/world.rs"]
mod world;

use std::time::Duration;

use fuse::Fuse;
use jiff::SignedDuration;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use pair::{Act, Pair, Who};
use papers::check_log;
use tokio::time::Instant;
use world::House;

/// More writes than any of this takes; a test that reaches it never ends by itself.
const TOO_MANY: isize = 40;
/// Whoever comes after a killed process does not wait for what ends by itself, as parting does after 55 s.
const PROMPT: Duration = Duration::from_secs(30);

/// What happens in a round.
struct Round {
    /// Who is killed.
    who: Who,
    /// What is done in each round, and whether somebody is killed meanwhile.
    acts: &'static [(Act, bool)],
    /// Whether the clusters are new in each round; else they know each other already.
    new: bool,
    /// How many writes each of these acts takes at least.
    at_least: isize,
}

impl Round {
    /// Goes on with rounds in which a process of one side is killed after its first, second, third … write of each act, until
    /// none of them takes so many.
    async fn killed_after_each_write(&self) {
        let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1), ClusterSpec::hollow("a", 1)]).await;
        let (mut a, mut b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
        // These API servers are not restarted.
        let soon = SignedDuration::from_millis(100);
        (a.settings.forbidden, b.settings.forbidden) = (soon, soon);
        let mut pair = Pair::of(a, b).await;
        if !self.new {
            pair.undisturbed(&[Act::Add]).await;
        }
        let acts: Vec<Act> = self.acts.iter().map(|(act, _)| *act).collect();
        let ends = pair.undisturbed(&acts).await;
        let mut open: Vec<bool> = self.acts.iter().map(|(_, killed)| *killed).collect();
        let mut slowest = Duration::ZERO;
        let mut fuse = Fuse::new();
        pair.restart(self.who, &fuse).await;
        for writes in 1..TOO_MANY {
            let started = Instant::now();
            if self.new {
                pair.renew(self.who, &fuse).await;
            }
            pair.begin().await;
            for ((act, end), open) in acts.iter().zip(&ends).zip(&mut open) {
                let what = format!("{act:?}, where {:?} is killed after {writes} writes", self.who);
                if *open {
                    fuse.arm(writes);
                }
                pair.perform(*act).await;
                tokio::select! {
                    () = fuse.blown() => {}
                    () = pair.reached(end, &what) => fuse.disarm(),
                }
                let Some(last) = fuse.last() else {
                    if std::mem::take(open) {
                        println!("{act:?}: {:?} makes {} writes", self.who, writes - 1);
                        assert!(writes > self.at_least, "{what}");
                    }
                    continue;
                };
                let killed = Instant::now();
                fuse = Fuse::new();
                pair.restart(self.who, &fuse).await;
                pair.reached(end, &format!("{what} ({last})")).await;
                let took = killed.elapsed();
                println!("{what} ({last}): {took:?}");
                slowest = slowest.max(took);
                assert!(took < PROMPT, "{what} ({last}): {took:?}");
            }
            println!("round {writes} took {:?}", started.elapsed());
            if !open.contains(&true) {
                assert!(writes > 3, "{writes}");
                println!("a successor is done after {slowest:?} at most");
                check_log(&pair.a).await;
                check_log(&pair.b).await;
                return;
            }
        }
        panic!("it never came to an end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_killed_after_each_write_of_adding_and_removing_ends_as_ever() {
    let acts = &[(Act::Add, true), (Act::Remove, true)];
    Round { who: Who::Consumer, acts, new: true, at_least: 3 }.killed_after_each_write().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_killed_after_each_write_of_unpeering_and_peering_again_ends_as_ever() {
    let acts = &[(Act::Unpeer, true), (Act::Again, true)];
    Round { who: Who::Consumer, acts, new: false, at_least: 3 }.killed_after_each_write().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_killed_after_each_write_of_being_added_and_removed_ends_as_ever() {
    let acts = &[(Act::Add, true), (Act::Remove, true)];
    Round { who: Who::Provider, acts, new: true, at_least: 3 }.killed_after_each_write().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_killed_after_each_write_of_unpeering_and_refusing_ends_as_ever() {
    let acts = &[(Act::Unpeer, true), (Act::Again, true), (Act::Refuse, true), (Act::Lend, true)];
    Round { who: Who::Provider, acts, new: false, at_least: 3 }.killed_after_each_write().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_killed_after_each_write_of_putting_a_consumer_out_ends_as_ever() {
    let acts = &[(Act::Add, false), (Act::PutOut, true), (Act::Forget, false)];
    Round { who: Who::Provider, acts, new: true, at_least: 3 }.killed_after_each_write().await;
}

/// Of a standing offer, from the first word to a contract, back to nothing, and from there to a contract that ends with all
/// else. The consumer does nothing but forget in the end.
const PUSHED: &[(Act, bool)] = &[
    (Act::Push, true),
    (Act::Take, true),
    (Act::Withdraw, true),
    (Act::PushAgain, true),
    (Act::Leave, true),
    (Act::Forget, false),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_killed_after_each_write_of_offering_by_itself_and_withdrawing_ends_as_ever() {
    Round { who: Who::Provider, acts: PUSHED, new: true, at_least: 1 }.killed_after_each_write().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_killed_after_each_write_of_being_offered_something_unasked_ends_as_ever() {
    Round { who: Who::Consumer, acts: PUSHED, new: true, at_least: 1 }.killed_after_each_write().await;
}
