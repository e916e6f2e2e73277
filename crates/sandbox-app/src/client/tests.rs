use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use super::{Client, Url};

#[test]
fn urls_are_taken_apart() {
    let cases = [
        ("http://host", "host", 80, "/", "host"),
        ("http://host/", "host", 80, "/", "host"),
        ("http://host:8080/a/b?c=d#fragment", "host", 8080, "/a/b?c=d", "host:8080"),
        ("http://host?q", "host", 80, "/?q", "host"),
        ("http://10.0.0.1:1/x", "10.0.0.1", 1, "/x", "10.0.0.1:1"),
        ("http://[::1]:8080/x", "::1", 8080, "/x", "[::1]:8080"),
        ("http://[fd00::1]", "fd00::1", 80, "/", "[fd00::1]"),
        (
            "http://web.demo.svc.cluster.local:80/",
            "web.demo.svc.cluster.local",
            80,
            "/",
            "web.demo.svc.cluster.local",
        ),
    ];
    for (text, host, port, target, authority) in cases {
        let url = Url::parse(text).unwrap();
        assert_eq!((url.host(), url.port(), url.target()), (host, port, target), "for {text}");
        assert_eq!(url.authority(), authority, "for {text}");
    }
    assert_eq!(Url::parse("http://[::1]:8080/").unwrap().literal(), "[::1]:8080".parse().ok());
    assert_eq!(Url::parse("http://host/").unwrap().literal(), None);
}

#[test]
fn urls_that_would_change_the_request_or_make_no_sense_are_refused() {
    let cases = [
        "",
        "host",
        "https://host",
        "HTTP://host",
        "http://",
        "http:///path",
        "http://:80",
        "http://user:secret@host/",
        "http://host:0/",
        "http://host:65536/",
        "http://host:+80/",
        "http://host:/",
        "http://host:80:80/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[host]/",
        "http://fd00::1/",
        "http://a b/",
        "http://host/ HTTP/1.1",
        "http://host/\r\nInjected: header",
        "http://host\u{0}/",
        "http://hôst/",
        "http://host%2f/",
    ];
    for text in cases {
        let error = Url::parse(text).expect_err(text);
        assert!(error.contains("cannot use the URL"), "{error}");
    }
}

/// Answers one connection with these bytes, once a request has arrived, and returns the request.
fn server(answer: &'static [u8]) -> (SocketAddr, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        stream.write_all(answer).unwrap();
        String::from_utf8(request).unwrap()
    });
    (address, thread)
}

fn get(address: SocketAddr) -> Result<(u16, String, bool), String> {
    let url = Url::parse(&format!("http://{address}/path?a=b")).unwrap();
    let answer = Client::new().get(&url, Duration::from_secs(20), 10).map_err(|error| error.to_string())?;
    Ok((answer.status, String::from_utf8(answer.body).unwrap(), answer.truncated))
}

#[test]
fn answers_of_every_framing_are_read() {
    let cases: [(&[u8], u16, &str, bool); 6] = [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", false),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", 200, "hi", false),
        (b"HTTP/1.0 500 Oops\r\n\r\nuntil the end", 500, "until the ", true),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789x", 200, "0123456789", true),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", false),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, "", false),
    ];
    for (answer, status, body, truncated) in cases {
        let (address, thread) = server(answer);
        assert_eq!(get(address), Ok((status, body.to_owned(), truncated)));
        let request = thread.join().unwrap();
        assert!(request.starts_with("GET /path?a=b HTTP/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("\r\nHost: {address}\r\n")), "{request}");
    }
}

#[test]
fn answers_that_are_no_http_are_errors_not_panics() {
    let cases: [(&[u8], &str); 5] = [
        (b"", "closed"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", "closed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "both"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk"),
    ];
    for (answer, expected) in cases {
        let (address, thread) = server(answer);
        let error = get(address).expect_err(expected);
        assert!(error.contains(expected) && error.contains(&address.to_string()), "{error}");
        thread.join().unwrap();
    }
}

#[test]
fn a_server_that_accepts_and_stays_silent_costs_only_the_timeout() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let started = Instant::now();
    let error = Client::new().get(&url, Duration::from_millis(100), 10).unwrap_err().to_string();
    assert!(error.contains("timed out"), "{error}");
    assert!(started.elapsed() >= Duration::from_millis(100));
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_closed_port_and_an_unknown_name_are_told_apart() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = get(address).unwrap_err();
    assert!(error.contains(&format!("cannot connect to {address}")), "{error}");

    let url = Url::parse("http://no-such-host.invalid/").unwrap();
    let error = Client::new().get(&url, Duration::from_secs(20), 10).unwrap_err().to_string();
    assert!(error.contains("cannot resolve \"no-such-host.invalid\""), "{error}");
}
