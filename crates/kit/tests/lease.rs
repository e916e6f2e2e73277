//! Leader election between candidates of which one dies, one is cut off and one leaves politely.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::sync::Arc;
use std::time::Duration;

use liqo_kit::clusters::{ClientConfig, client};
use liqo_kit::lease::{Campaign, Ended, Leadership, LeaseConfig, Standing};
use liqo_sandbox::{ClusterSpec, Component, TestCluster, TestSandbox};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Who leads, by the leaders' own word, and whether two ever did at once.
#[derive(Clone, Default)]
struct Throne(Arc<Mutex<Chronicle>>);

#[derive(Default)]
struct Chronicle {
    reigning: Vec<(String, Leadership)>,
    terms: Vec<(String, i32)>,
    overlaps: Vec<String>,
}

impl Throne {
    async fn reign(self, name: String, leadership: Leadership) {
        {
            let mut chronicle = self.0.lock();
            let others: Vec<_> = chronicle
                .reigning
                .iter()
                .filter(|(_, other)| other.is_valid())
                .map(|(other, _)| other.clone())
                .collect();
            chronicle.overlaps.extend(others.iter().map(|other| format!("{name} began while {other} led")));
            chronicle.terms.push((name.clone(), leadership.term()));
            chronicle.reigning.push((name.clone(), leadership.clone()));
        }
        leadership.ended().cancelled().await;
        self.0.lock().reigning.retain(|(reigning, _)| *reigning != name);
    }

    fn leader(&self) -> Option<String> {
        let chronicle = self.0.lock();
        let mut valid = chronicle.reigning.iter().filter(|(_, leadership)| leadership.is_valid());
        let leader = valid.next().map(|(name, _)| name.clone());
        let second = valid.next().map(|(name, _)| name.clone());
        assert!(second.is_none(), "{leader:?} and {second:?} lead at once");
        leader
    }

    async fn wait_for_leader(
        &self,
        within: Duration,
        expected: impl Fn(Option<&str>) -> bool,
    ) -> Option<String> {
        let deadline = Instant::now() + within;
        loop {
            let leader = self.leader();
            if expected(leader.as_deref()) {
                return leader;
            }
            assert!(
                Instant::now() < deadline,
                "after {within:?} the leader is {leader:?}; {:?}",
                self.0.lock().terms
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Long enough for a server that takes its time to answer a renewal: whoever then lost the lease would have done right.
const DURATION: Duration = Duration::from_secs(8);
const RENEW_DEADLINE: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_secs(1);

struct Candidate {
    task: JoinSet<Ended>,
    stop: CancellationToken,
    standing: watch::Receiver<Standing>,
}

async fn candidate(cluster: &TestCluster<'_>, throne: &Throne, name: &str) -> Candidate {
    let client = client(&cluster.config().await, &ClientConfig::default()).unwrap();
    let config = LeaseConfig {
        duration: DURATION,
        renew_deadline: RENEW_DEADLINE,
        retry: RETRY,
        earlier_lives: name.split_once('_').map(|(pod, _)| format!("{pod}_")),
        ..LeaseConfig::new("default", "throne", name)
    };
    let (stop, throne, name) = (CancellationToken::new(), throne.clone(), name.to_owned());
    let mut task = JoinSet::new();
    let standing = watch::Sender::new(Standing::Unknown { failure: None });
    let campaign = Campaign::new(client, config).tell(standing.clone());
    task.spawn(campaign.run(stop.clone(), move |leadership| throne.reign(name, leadership)));
    Candidate { task, stop, standing: standing.subscribe() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_one_leader_at_most_and_soon_another_when_one_goes() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let cluster = sandbox.cluster("a");
    let throne = Throne::default();
    let mut first = candidate(&cluster, &throne, "first").await;
    throne.wait_for_leader(Duration::from_secs(30), |leader| leader == Some("first")).await;
    let mut second = candidate(&cluster, &throne, "second").await;
    let mut third = candidate(&cluster, &throne, "third").await;
    assert_eq!(*first.standing.borrow(), Standing::Leader);
    let follower = Standing::Follower { leader: "first".to_owned() };
    let known = second.standing.wait_for(|standing| *standing == follower);
    tokio::time::timeout(Duration::from_secs(30), known).await.expect("the second knows who leads").unwrap();

    // The holder dies without a word: another leads when the lease has run out, and not before.
    first.task.abort_all();
    let died = Instant::now();
    while first.task.join_next().await.is_some() {}
    let heir = throne
        .wait_for_leader(DURATION + 4 * RETRY, |leader| leader.is_some_and(|name| name != "first"))
        .await;
    println!("taken over {:?} after the holder died", died.elapsed());
    assert!(died.elapsed() > DURATION - 3 * RETRY, "taken over too early: {:?}", died.elapsed());

    // The holder leaves politely: the next one leads within a few retries.
    let (leaving, staying) =
        if heir.as_deref() == Some("second") { (&mut second, &mut third) } else { (&mut third, &mut second) };
    leaving.stop.cancel();
    let left = Instant::now();
    assert_eq!(leaving.task.join_next().await.unwrap().unwrap(), Ended::Stopped);
    let last =
        throne.wait_for_leader(4 * RETRY, |leader| leader.is_some() && leader != heir.as_deref()).await;
    println!("taken over {:?} after the holder left", left.elapsed());

    // The API server falls silent: the holder stops leading by itself, before the lease could be taken.
    cluster.pause(Component::Apiserver).await;
    let silent = Instant::now();
    throne.wait_for_leader(RENEW_DEADLINE + Duration::from_millis(500), |leader| leader.is_none()).await;
    println!("stopped leading {:?} after the server fell silent", silent.elapsed());
    assert_eq!(staying.task.join_next().await.unwrap().unwrap(), Ended::Lost);
    assert_eq!(*staying.standing.borrow(), Standing::Unknown { failure: None });
    cluster.resume(Component::Apiserver).await;
    cluster.wait_ready().await;
    let mut fourth = candidate(&cluster, &throne, "fourth").await;
    throne.wait_for_leader(DURATION + 6 * RETRY, |leader| leader == Some("fourth")).await;
    fourth.stop.cancel();
    assert_eq!(fourth.task.join_next().await.unwrap().unwrap(), Ended::Stopped);

    // A container that died and starts again leads at once: nobody else can be its earlier life.
    let mut died = candidate(&cluster, &throne, "pod_1").await;
    throne.wait_for_leader(Duration::from_secs(30), |leader| leader == Some("pod_1")).await;
    died.task.abort_all();
    while died.task.join_next().await.is_some() {}
    throne.0.lock().reigning.clear();
    let restarted = Instant::now();
    let mut again = candidate(&cluster, &throne, "pod_2").await;
    throne.wait_for_leader(DURATION, |leader| leader == Some("pod_2")).await;
    assert!(restarted.elapsed() < DURATION / 2, "led {:?} after the restart", restarted.elapsed());
    again.stop.cancel();
    assert_eq!(again.task.join_next().await.unwrap().unwrap(), Ended::Stopped);

    let chronicle = throne.0.lock();
    assert_eq!(chronicle.overlaps, Vec::<String>::new());
    let terms: Vec<_> = chronicle.terms.iter().map(|(_, term)| *term).collect();
    assert!(terms.windows(2).all(|pair| pair[0] < pair[1]), "terms do not grow: {:?}", chronicle.terms);
    assert!(last.is_some());
}
