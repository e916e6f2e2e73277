use std::time::{Duration, Instant};

use super::{App, Identity, Request, Response};
use crate::http::RequestHead;

fn request(method: &str, target: &str) -> Request {
    let head = format!("{method} {target} HTTP/1.1\r\nHost: web:8080\r\nX-A: 1\r\nX-A: 2");
    Request {
        head: RequestHead::parse(head.as_bytes()).unwrap(),
        body: b"some \"body\"\xff".to_vec(),
        peer: [10, 0, 0, 7].into(),
    }
}

fn app() -> App {
    App::new(Identity { pod: Some("web-1".into()), cluster: Some("consumer".into()), ..Identity::default() })
}

fn answer(method: &str, target: &str) -> Response {
    app().answer(&request(method, target))
}

#[test]
fn the_root_tells_who_answers_and_who_asked() {
    let response = answer("GET", "/?a=b");
    let body = response.body.to_string();
    assert_eq!(response.status, 200);
    for part in [
        r#""cluster":"consumer""#,
        r#""pod":"web-1""#,
        r#""node":null"#,
        r#""requests":1"#,
        r#""request":{"method":"GET","path":"/","query":"a=b","host":"web:8080","peer":"10.0.0.7"}"#,
    ] {
        assert!(body.contains(part), "{part} is not in {body}");
    }
}

#[test]
fn echo_repeats_the_request() {
    let response = answer("PATCH", "/echo?x");
    assert_eq!(
        response.body.to_string(),
        r#"{"method":"PATCH","path":"/echo","query":"x","headers":{"host":"web:8080","x-a":"1, 2"},"bodyBytes":12,"body":"some \"body\"�"}"#
    );
}

#[test]
fn health_can_be_switched_off_and_on() {
    let app = app();
    let status = |method, target| app.answer(&request(method, target)).status;
    assert_eq!(status("GET", "/healthz"), 200);
    assert_eq!(status("GET", "/healthz?fail=true"), 200, "only POST switches");
    assert_eq!(status("GET", "/healthz"), 200);
    assert_eq!(status("POST", "/healthz?fail=true"), 200);
    assert_eq!(status("GET", "/healthz"), 503);
    assert_eq!(status("POST", "/healthz"), 400, "to what?");
    assert_eq!(status("GET", "/healthz"), 503);
    assert_eq!(status("POST", "/healthz?fail=false"), 200);
    assert_eq!(status("GET", "/healthz"), 200);
}

#[test]
fn unknown_paths_methods_and_values_are_refused() {
    let cases = [
        ("GET", "/nothing", 404),
        ("GET", "//", 404),
        ("OPTIONS", "*", 404),
        ("POST", "/", 405),
        ("DELETE", "/healthz", 405),
        ("POST", "/dial?url=http://web/", 405),
        ("GET", "/burn?ms=60001", 400),
        ("GET", "/burn?ms=-1", 400),
        ("GET", "/burn?ms=1&cores=17", 400),
        ("GET", "/burn?ms=1&cores=0", 400),
        ("GET", "/burn?ms=%ff", 400),
        ("GET", "/stop?code=256", 400),
        ("GET", "/dial", 400),
        ("GET", "/dial?url=file:///etc/passwd", 400),
        ("GET", "/dial?url=http://web/%0d%0aX:y", 400),
        ("GET", "/dial?url=http://web/&timeout=2h", 400),
        ("GET", "/dial?url=http://web/&timeout=soon", 400),
    ];
    for (method, target, status) in cases {
        let response = answer(method, target);
        assert_eq!(response.status, status, "{method} {target}: {}", response.body);
        assert!(response.exit.is_none());
        assert_eq!(response.allow.is_some(), status == 405, "{method} {target}");
    }
}

#[test]
fn stop_ends_the_program_with_the_code_asked_for() {
    assert_eq!(answer("GET", "/stop").exit, Some(0));
    assert_eq!(answer("POST", "/stop?code=7").exit, Some(7));
}

#[test]
fn burning_takes_as_long_as_asked() {
    let started = Instant::now();
    let response = answer("GET", "/burn?ms=30&cores=2");
    assert_eq!(response.status, 200, "{}", response.body);
    assert!(started.elapsed() >= Duration::from_millis(30));
    assert!(response.body.to_string().ends_with(r#""cores":2}"#), "{}", response.body);
}

#[test]
fn no_more_cores_burn_at_once_than_the_limit() {
    let app = app();
    let held = app.burning.take(15).unwrap();
    assert_eq!(app.answer(&request("GET", "/burn?ms=1&cores=2")).status, 429);
    assert_eq!(app.answer(&request("GET", "/burn?ms=1&cores=1")).status, 200);
    drop(held);
    assert_eq!(app.answer(&request("GET", "/burn?ms=1&cores=2")).status, 200);
}
