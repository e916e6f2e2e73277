//! The queue against a server that answers by script, in paused time.

mod slots;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::*;
use crate::key::Key;

/// Status code of the answer, or none at all.
type Answers = VecDeque<Option<u16>>;
type Asked = Vec<(Instant, String)>;

#[derive(Clone, Default)]
struct Server(Arc<Mutex<(Answers, Asked)>>);

impl Server {
    fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let path = request.uri().path().to_owned();
                let line = format!("{} {path}", request.method());
                let body = request.into_body().collect().await?.to_bytes();
                let line = format!("{line} {}", String::from_utf8_lossy(&body));
                let answer = {
                    let mut script = server.0.lock();
                    script.1.push((Instant::now(), line));
                    script.0.pop_front().unwrap_or(Some(200))
                };
                let Some(code) = answer else { return std::future::pending().await };
                let body = if code < 300 {
                    json!({"metadata": {"name": "x", "resourceVersion": "100"}})
                } else {
                    json!({"kind": "Status", "status": "Failure", "code": code, "message": "no", "metadata": {}})
                };
                Ok::<_, BoxError>(
                    Response::builder().status(code).body(Full::new(Bytes::from(body.to_string())))?,
                )
            }
        });
        kube::Client::new(service, "default")
    }

    fn asked(&self) -> Vec<String> {
        self.0.lock().1.iter().map(|(_, line)| line.clone()).collect()
    }
}

#[derive(Default)]
struct Outcomes(Mutex<Vec<String>>);

struct Running {
    queue: Queue,
    server: Server,
    outcomes: Arc<Outcomes>,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

fn target(name: &str) -> Target {
    Target::of::<ConfigMap>(Key::namespaced("ns", name))
}

fn write(name: &str, value: &str) -> Write {
    Write::merge(target(name), "7", &json!({"data": {"value": value}})).unwrap()
}

fn start(answers: impl IntoIterator<Item = Option<u16>>, change: impl FnOnce(&mut QueueConfig)) -> Running {
    let server = Server::default();
    server.0.lock().0.extend(answers);
    let outcomes = Arc::new(Outcomes::default());
    let seen = Arc::clone(&outcomes);
    let mut config = QueueConfig {
        observer: Some(Arc::new(move |target, outcome| {
            let word = match outcome {
                Outcome::Written { .. } => "written".to_owned(),
                Outcome::Unneeded => "unneeded".to_owned(),
                Outcome::Failed(failed) => format!("{} after {}", failed.reason, failed.attempts),
            };
            seen.0.lock().push(format!("{} {word}", target.key().name()));
        })),
        ..QueueConfig::default()
    };
    change(&mut config);
    let (queue, worker) = Queue::new("test", server.client(), config, &WriteMetrics::default());
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    tasks.spawn(worker.run(stop.clone()));
    Running { queue, server, outcomes, stop, tasks }
}

impl Running {
    async fn empty(&self) {
        let deadline = Instant::now() + Duration::from_secs(3600);
        while self.queue.depth() > 0 {
            assert!(Instant::now() < deadline, "not empty after {:?}", self.server.asked());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn outcomes(&self) -> Vec<String> {
        self.outcomes.0.lock().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_when_the_object_is_as_it_should_be() {
    let running = start([], |_| {});
    assert_eq!(running.queue.enqueue(|| None), Enqueued::Equal);
    // It is needed when queued, and no longer when its turn comes.
    let calls = AtomicU32::new(0);
    let once = move || (calls.fetch_add(1, Ordering::SeqCst) == 0).then(|| write("a", "1"));
    assert_eq!(running.queue.enqueue(once), Enqueued::Queued);
    running.empty().await;
    assert_eq!(running.outcomes(), ["a unneeded"]);
    assert!(running.server.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_latest_plan_wins_and_the_same_object_is_never_written_twice_at_once() {
    let running = start([None, Some(200)], |config| config.timeout = Duration::from_secs(5));
    assert_eq!(running.queue.write(&write("a", "1")), Enqueued::Queued);
    assert_eq!(running.queue.write(&write("a", "2")), Enqueued::Coalesced);
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The first is under way (and will time out); these wait for it.
    assert_eq!(running.queue.write(&write("a", "3")), Enqueued::Coalesced);
    assert_eq!(running.queue.write(&write("a", "4")), Enqueued::Coalesced);
    assert_eq!(running.server.asked().len(), 1);
    running.empty().await;
    let asked = running.server.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(asked[0].contains("\"2\"") && asked[1].contains("\"4\""), "{asked:?}");
    assert_eq!(running.outcomes(), ["a written"]);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_says_so_and_still_takes_newer_plans_for_what_it_holds() {
    let running = start([None], |config| config.capacity = 1);
    assert_eq!(running.queue.write(&write("a", "1")), Enqueued::Queued);
    assert_eq!(running.queue.write(&write("b", "1")), Enqueued::Full);
    assert_eq!(running.queue.write(&write("a", "2")), Enqueued::Coalesced);
    running.empty().await;
    assert_eq!(running.queue.write(&write("b", "1")), Enqueued::Queued);
    running.empty().await;
    assert_eq!(running.outcomes(), ["a written", "b written"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_tried_with_growing_waits_and_then_given_up() {
    let running = start((0..20).map(|_| None), |config| {
        config.timeout = Duration::from_secs(1);
        config.max_attempts = 5;
    });
    assert_eq!(running.queue.write(&write("a", "1")), Enqueued::Queued);
    running.empty().await;
    assert_eq!(running.outcomes(), ["a timeout after 5"]);
    let times: Vec<_> = running.server.0.lock().1.iter().map(|(at, _)| *at).collect();
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0] - Duration::from_secs(1)).collect();
    assert!(waits[0] <= Duration::from_millis(250) && waits[3] >= Duration::from_millis(800), "{waits:?}");

    // Asked again at once, it waits before it bothers the server.
    let given_up = Instant::now();
    running.server.0.lock().0.clear();
    assert_eq!(running.queue.write(&write("a", "2")), Enqueued::Queued);
    running.empty().await;
    assert_eq!(running.outcomes().last().unwrap(), "a written");
    assert!(given_up.elapsed() >= Duration::from_secs(4), "after {:?}", given_up.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_conflict_leads_to_a_new_plan() {
    let running = start([Some(409)], |_| {});
    let calls = AtomicU32::new(0);
    let plan = move || {
        let number = calls.fetch_add(1, Ordering::SeqCst);
        Some(write("a", &format!("plan {number}")))
    };
    assert_eq!(running.queue.enqueue(plan), Enqueued::Queued);
    running.empty().await;
    let asked = running.server.asked();
    assert!(asked[0].contains("plan 1") && asked[1].contains("plan 2"), "{asked:?}");
    assert_eq!(running.outcomes(), ["a written"]);
}

#[tokio::test(start_paused = true)]
async fn what_will_never_be_accepted_is_not_tried_twice() {
    let running = start([Some(422)], |_| {});
    assert_eq!(running.queue.write(&write("a", "1")), Enqueued::Queued);
    running.empty().await;
    assert_eq!(running.outcomes(), ["a refused after 1"]);
    assert_eq!(running.server.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn deleting_what_is_gone_already_is_a_success_and_names_the_uid() {
    let running = start([Some(404)], |_| {});
    assert_eq!(running.queue.write(&Write::delete(target("a"), "uid-1").grace(0)), Enqueued::Queued);
    running.empty().await;
    assert_eq!(running.outcomes(), ["a written"]);
    let asked = running.server.asked();
    assert!(
        asked[0].starts_with("DELETE /api/v1/namespaces/ns/configmaps/a") && asked[0].contains("uid-1"),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn creating_what_is_there_already_is_a_conflict_unless_any_object_of_that_name_will_do() {
    let running = start([Some(409)], |_| {});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let create = Write::create(target("a"), &object).unwrap().or_exists();
    assert_eq!(running.queue.write(&create), Enqueued::Queued);
    running.empty().await;
    assert_eq!(running.outcomes(), ["a written"]);
    assert_eq!(running.server.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_stuck_object_does_not_hold_up_the_others() {
    let running = start([None], |config| config.concurrency = 2);
    assert_eq!(running.queue.write(&write("stuck", "1")), Enqueued::Queued);
    tokio::time::sleep(Duration::from_millis(10)).await;
    for number in 0..10 {
        assert_eq!(running.queue.write(&write(&format!("n{number}"), "1")), Enqueued::Queued);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(running.outcomes().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_while_the_gate_is_closed() {
    let open = Arc::new(AtomicBool::new(false));
    let gate = Arc::clone(&open);
    let running = start([], |config| config.gate = Some(Arc::new(move || gate.load(Ordering::SeqCst))));
    assert_eq!(running.queue.write(&write("a", "1")), Enqueued::Queued);
    running.empty().await;
    assert_eq!(running.outcomes(), ["a gate after 1"]);
    assert!(running.server.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_under_way_is_finished_at_shutdown_and_the_rest_is_left() {
    let mut running = start([None], |config| {
        config.concurrency = 1;
        config.timeout = Duration::from_secs(2);
    });
    assert_eq!(running.queue.write(&write("a", "1")), Enqueued::Queued);
    assert_eq!(running.queue.write(&write("b", "1")), Enqueued::Queued);
    tokio::time::sleep(Duration::from_millis(10)).await;
    let asked_to_stop = Instant::now();
    running.stop.cancel();
    running.tasks.join_next().await.unwrap().unwrap();
    assert!(asked_to_stop.elapsed() <= Duration::from_secs(2));
    assert_eq!(running.server.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_planner_can_tell_whether_a_watch_has_seen_its_write() {
    let running = start([], |_| {});
    let a = target("a");
    assert!(running.queue.written().has_seen(&a, 0));
    assert_eq!(running.queue.write(&write("a", "1")), Enqueued::Queued);
    running.empty().await;
    assert!(!running.queue.written().has_seen(&a, 99));
    assert!(running.queue.written().has_seen(&a, 100));
    // A position that is never reached does not stop planning for ever.
    assert_eq!(running.queue.write(&write("a", "2")), Enqueued::Queued);
    running.empty().await;
    assert!(!running.queue.written().has_seen(&a, 99));
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(running.queue.written().has_seen(&a, 99));
}

#[test]
fn the_verbs_become_the_requests_they_should() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let line = |write: &Write| {
        let request = write.request("me").unwrap();
        let kind =
            request.headers().get("content-type").map_or("", |value| value.to_str().unwrap()).to_owned();
        format!("{} {} {kind}", request.method(), request.uri())
    };
    let base = "/api/v1/namespaces/ns/configmaps";
    let create = Write::create(target("a"), &object).unwrap();
    assert_eq!(line(&create), format!("POST {base}?&fieldManager=me application/json"));
    let apply = Write::apply(target("a"), &object).unwrap();
    assert_eq!(
        line(&apply),
        format!("PATCH {base}/a?&force=true&fieldManager=me application/apply-patch+yaml")
    );
    let status = Write::merge_status(target("a"), "5", &json!({"phase": "Running"})).unwrap();
    assert_eq!(line(&status), format!("PATCH {base}/a/status?&fieldManager=me application/merge-patch+json"));
    assert_ne!(status.slot(), apply.slot(), "a status and its object wait in different slots");
    let resize =
        Write::strategic(target("a"), Part::Subresource("resize"), "u", &json!({"spec": {}})).unwrap();
    assert_eq!(
        line(&resize),
        format!("PATCH {base}/a/resize?&fieldManager=me application/strategic-merge-patch+json")
    );
    assert_ne!(resize.slot(), status.slot(), "each part has a slot of its own");
}
