//! The driver against a server that answers by script, in paused time.

use std::collections::VecDeque;
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use kube::client::Body;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use super::*;
use crate::index::{Shared, Store};
use crate::watch::{Scope, Watch, WatchConfig, WatchStatus};

enum Answer {
    /// This status and body, then the end.
    Say(u16, String),
    /// This body, and then silence, the connection open.
    Stay(String),
    /// This body, then a broken connection.
    Break(String),
    /// Never an answer.
    Nothing,
}

#[derive(Clone, Default)]
struct Server(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    asked: Vec<(Instant, String)>,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let server = Self::default();
        server.0.lock().answers.extend(answers);
        server
    }

    fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = {
                let mut script = server.0.lock();
                script.asked.push((Instant::now(), request.uri().to_string()));
                script.answers.pop_front().unwrap_or(Answer::Stay(String::new()))
            };
            answer.give()
        });
        kube::Client::new(service, "default")
    }

    fn asked(&self) -> Vec<&'static str> {
        let script = self.0.lock();
        let kind = |uri: &String| match uri {
            uri if uri.contains("sendInitialEvents=true") => "stream",
            uri if uri.contains("watch=true") => "watch",
            uri if uri.contains("continue=") => "next page",
            _ => "page",
        };
        script.asked.iter().map(|(_, uri)| kind(uri)).collect()
    }

    fn uri(&self, number: usize) -> String {
        self.0.lock().asked[number].1.clone()
    }

    fn times(&self) -> Vec<Duration> {
        let script = self.0.lock();
        script.asked.iter().map(|(at, _)| at.duration_since(script.asked[0].0)).collect()
    }
}

impl Answer {
    async fn give(self) -> Result<Response<UnsyncBoxBody<Bytes, BoxError>>, BoxError> {
        let frame = |text: String| Ok::<_, BoxError>(Frame::data(Bytes::from(text)));
        let (status, body) = match self {
            Self::Say(status, text) => {
                (status, Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync())
            }
            Self::Stay(text) => {
                use futures::StreamExt;
                let stream = futures::stream::iter([frame(text)]).chain(futures::stream::pending());
                (200, StreamBody::new(stream).boxed_unsync())
            }
            Self::Break(text) => {
                let stream = futures::stream::iter([frame(text), Err("reset by peer".into())]);
                (200, StreamBody::new(stream).boxed_unsync())
            }
            Self::Nothing => std::future::pending().await,
        };
        Ok(Response::builder().status(status).body(body)?)
    }
}

struct Running {
    server: Server,
    store: Shared<Store<Thing>>,
    status: WatchStatus,
    stop: CancellationToken,
    task: tokio::task::JoinSet<()>,
}

fn start(answers: impl IntoIterator<Item = Answer>) -> Running {
    let server = Server::new(answers);
    let store = Shared::new(Store::default());
    let scope = Scope::new("/apis/test/v1/things".into(), "things".into());
    let watch =
        Watch::<Thing>::new(server.client(), scope).config(WatchConfig::default()).feed(store.clone());
    let (status, stop) = (watch.status(), CancellationToken::new());
    let mut task = tokio::task::JoinSet::new();
    task.spawn(watch.run(stop.clone()));
    Running { server, store, status, stop, task }
}

impl Running {
    /// Waits until the server has been asked so many questions, and the last answer has been taken in.
    async fn asked(&self, count: usize) -> Vec<&'static str> {
        let deadline = Instant::now() + Duration::from_secs(600);
        while self.server.0.lock().asked.len() < count {
            assert!(Instant::now() < deadline, "only {:?} were asked", self.server.asked());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        self.server.asked()
    }

    fn values(&self) -> BTreeMap<String, u32> {
        self.store.read().iter().map(|(key, thing)| (key.name().to_owned(), thing.value)).collect()
    }
}

fn values<const N: usize>(values: [(&str, u32); N]) -> BTreeMap<String, u32> {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn streamed(objects: &[Value], version: u64) -> String {
    let events: String = objects.iter().map(|object| event("ADDED", object)).collect();
    events + &bookmark(version, true)
}

fn failure(code: u16) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "no", "reason": "Invalid", "code": code});
    Answer::Say(code, status.to_string())
}

#[tokio::test(start_paused = true)]
async fn a_streamed_list_goes_on_as_a_watch_and_resumes_where_it_broke() {
    let running = start([
        Answer::Break(
            streamed(&[thing("a", "u1", 3, 1)], 5)
                + &event("ADDED", &thing("b", "u2", 7, 2))
                + "{\"type\":\"ADD",
        ),
        Answer::Stay(event("DELETED", &thing("a", "u1", 9, 1))),
    ]);
    assert_eq!(running.asked(2).await, ["stream", "watch"]);
    assert!(
        running.server.uri(0).contains("resourceVersion=&")
            || running.server.uri(0).ends_with("resourceVersion=")
    );
    assert!(running.server.uri(1).contains("resourceVersion=7"), "resumed at {}", running.server.uri(1));
    assert_eq!(running.values(), values([("b", 2)]));
    assert_eq!(running.status.position(), 9);
}

#[tokio::test(start_paused = true)]
async fn a_server_without_streaming_lists_is_listed_in_pages_from_then_on() {
    let running = start([
        failure(422),
        Answer::Say(200, page(&[thing("a", "u1", 1, 1)], 5, Some("more"))),
        Answer::Say(200, page(&[thing("b", "u2", 2, 2)], 5, None)),
        Answer::Say(200, gone()),
        Answer::Say(200, page(&[thing("b", "u2", 2, 2)], 9, None)),
        Answer::Stay(String::new()),
    ]);
    assert_eq!(running.asked(6).await, ["stream", "page", "next page", "watch", "page", "watch"]);
    assert_eq!(running.values(), values([("b", 2)]));
    assert!(running.server.uri(5).contains("resourceVersion=9"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_question_for_a_streaming_list_is_listed_in_pages() {
    let running = start([
        Answer::Stay(event("ADDED", &thing("a", "u1", 1, 1))),
        Answer::Say(200, page(&[thing("a", "u1", 1, 1)], 5, None)),
        Answer::Stay(String::new()),
    ]);
    assert_eq!(running.asked(3).await, ["stream", "page", "watch"]);
    assert!(running.status.is_ready());
}

#[tokio::test(start_paused = true)]
async fn gone_leads_to_a_list_at_once_and_deletes_what_vanished() {
    let running = start([
        Answer::Say(200, streamed(&[thing("a", "u1", 3, 1), thing("b", "u2", 4, 2)], 5) + &gone()),
        Answer::Stay(streamed(&[thing("b", "u2", 4, 2)], 50)),
    ]);
    assert_eq!(running.asked(2).await, ["stream", "stream"]);
    assert_eq!(running.values(), values([("b", 2)]));
    assert!(running.server.times()[1] < Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_given_up_and_its_watch_resumed() {
    let running = start([Answer::Stay(streamed(&[thing("a", "u1", 3, 1)], 5)), Answer::Stay(String::new())]);
    assert_eq!(running.asked(2).await, ["stream", "watch"]);
    let noticed = running.server.times()[1];
    assert!(
        noticed > Duration::from_secs(40) && noticed < Duration::from_secs(60),
        "noticed after {noticed:?}"
    );
    assert!(running.status.failure().unwrap().contains("nothing was heard"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_was_resumed_is_back_though_nothing_happens() {
    let running = start([
        Answer::Break(streamed(&[thing("a", "u1", 3, 1)], 5)),
        failure(503),
        failure(503),
        Answer::Stay(String::new()),
    ]);
    running.asked(4).await;
    assert!(running.status.failure().is_some(), "it may still be ended at once");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(running.status.failure(), None);
    assert_eq!(running.server.asked().len(), 4, "it goes on with the same connection");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_watch_is_told_from_who_cannot() {
    let running = start([failure(403), failure(503), Answer::Stay(streamed(&[], 5))]);
    running.asked(1).await;
    assert!(running.status.is_forbidden());
    running.asked(2).await;
    assert!(!running.status.is_forbidden() && running.status.failure().is_some());
    running.asked(3).await;
    assert!(!running.status.is_forbidden() && running.status.failure().is_none());
}

#[tokio::test(start_paused = true)]
async fn failures_wait_longer_and_longer_until_something_works() {
    let mut answers = vec![Answer::Stay(streamed(&[], 5))];
    answers.extend((0..12).map(|_| Answer::Break(String::new())));
    answers.push(Answer::Nothing);
    let running = start(answers);
    running.asked(14).await;
    let times = running.server.times();
    let waits: Vec<_> = times.windows(2).skip(1).map(|pair| pair[1] - pair[0]).collect();
    assert!(waits[0] < Duration::from_millis(450), "second wait {:?}", waits[0]);
    assert!(waits.iter().all(|wait| *wait <= Duration::from_millis(10_100)), "{waits:?}");
    assert!(waits.last().unwrap() >= &Duration::from_secs(5), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_watch_at_once_is_not_asked_without_pause() {
    let mut answers = vec![Answer::Say(200, streamed(&[], 5))];
    answers.extend((0..5).map(|_| Answer::Say(200, String::new())));
    let running = start(answers);
    running.asked(6).await;
    assert!(running.server.times()[5] > Duration::from_secs(1), "{:?}", running.server.times());
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_refused_again_and_again_leads_to_a_list() {
    let mut answers = vec![Answer::Break(streamed(&[thing("a", "u1", 3, 1)], 5))];
    answers.extend((0..5).map(|_| failure(500)));
    answers.push(Answer::Stay(streamed(&[], 7)));
    let running = start(answers);
    assert_eq!(running.asked(7).await.last(), Some(&"stream"));
    assert!(running.values().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_watch_ends() {
    let mut running = start([Answer::Nothing]);
    running.stop.cancel();
    running.task.join_next().await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_check_fails_until_the_first_list_and_again_when_nothing_is_heard_for_long() {
    let running = start([Answer::Nothing, Answer::Stay(streamed(&[], 5)), Answer::Nothing, Answer::Nothing]);
    let checks = crate::health::Checks::default();
    checks.add_watch(&running.status, Duration::from_secs(60));
    running.asked(1).await;
    assert!(checks.run().text(false).contains("[-] watch/things: the first list is not complete"));
    running.status.ready().await;
    assert!(checks.run().is_ok());
    tokio::time::sleep(Duration::from_secs(62)).await;
    let text = checks.run().text(false);
    assert!(text.contains("nothing heard for") && text.contains("nothing was heard for"), "{text}");
}
