use std::io::{self, Read};

use super::{Framing, HttpError, MAX_HEAD, RequestHead, StatusLine, Wire, read_body};

/// Hands out its bytes a few at a time, as a slow or malicious peer would.
struct Trickle<'a> {
    bytes: &'a [u8],
    step: usize,
    reads: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        let count = self.step.min(self.bytes.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.bytes[..count]);
        self.bytes = &self.bytes[count..];
        Ok(count)
    }
}

fn trickle(bytes: &[u8], step: usize) -> Wire<Trickle<'_>> {
    Wire::new(Trickle { bytes, step, reads: 0 })
}

fn request(text: &str) -> Result<RequestHead, HttpError> {
    RequestHead::parse(&Wire::new(text.as_bytes()).head(MAX_HEAD)?)
}

/// The status a server would answer a request with that it cannot read; 0 when the peer is gone.
fn refusal(text: &str) -> u16 {
    let result = request(text).and_then(|head| {
        Framing::of_request(&head.headers)?;
        Ok(head)
    });
    match result.expect_err(text) {
        HttpError::Refused { status, .. } => status,
        HttpError::Closed => 0,
        error => panic!("{text:?} gave {error:?}"),
    }
}

fn body(framing: Framing, bytes: &[u8], limit: usize) -> Result<(Vec<u8>, bool), HttpError> {
    let whole = read_body(&mut Wire::new(bytes), framing, limit);
    let in_pieces = read_body(&mut trickle(bytes, 1), framing, limit);
    assert_eq!(
        format!("{whole:?}"),
        format!("{in_pieces:?}"),
        "the pieces in which bytes arrive do not matter"
    );
    whole
}

#[test]
fn a_request_is_taken_apart() {
    let head = request(
        "POST /a%20b/c+d?x=1&name=a+b%26c&flag HTTP/1.1\r\nHost: h:1\r\nX-Two: a\r\nx-tWO:  b \t\r\nEmpty:\r\n\r\nbody",
    )
    .unwrap();
    assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "/a b/c+d"));
    assert_eq!(head.query, "x=1&name=a+b%26c&flag");
    assert_eq!(head.parameter("name").unwrap().as_deref(), Some("a b&c"));
    assert_eq!(head.parameter("flag").unwrap().as_deref(), Some(""));
    assert_eq!(head.parameter("none").unwrap(), None);
    assert_eq!(head.headers.all("x-two").collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(head.headers.get("empty"), Some(""));
    assert!(head.keep_alive);
}

#[test]
fn targets_of_every_allowed_form_are_understood() {
    let cases = [
        ("/", "/", ""),
        ("/?", "/", ""),
        ("/a?b?c", "/a", "b?c"),
        ("*", "*", ""),
        ("http://host:1/a?b", "/a", "b"),
        ("http://host", "/", ""),
        ("http://host?b", "", "b"),
        ("//double", "//double", ""),
        ("/%e2%82%ac", "/€", ""),
    ];
    for (target, path, query) in cases {
        let head = request(&format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n")).unwrap();
        assert_eq!((head.path.as_str(), head.query.as_str()), (path, query), "for {target}");
        assert_eq!(head.target, target);
    }
}

#[test]
fn connections_are_kept_by_the_rules_of_each_version() {
    let cases = [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: x, CLOSE\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
    ];
    for (version, header, expected) in cases {
        let head = request(&format!("GET / HTTP/{version}\r\nHost: h\r\n{header}\r\n")).unwrap();
        assert_eq!(head.keep_alive, expected, "HTTP/{version} {header:?}");
    }
}

#[test]
fn empty_lines_before_a_request_are_forgiven_but_not_without_end() {
    assert!(request("\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n").is_ok());
    assert_eq!(refusal(&"\r\n".repeat(MAX_HEAD)), 400);
}

#[test]
fn requests_that_break_the_rules_are_refused_with_a_fitting_status() {
    let host = "Host: h\r\n";
    let cases = [
        (400, "GET /\r\n\r\n".to_owned()),
        (400, "GET  / HTTP/1.1\r\n\r\n".into()),
        (400, " GET / HTTP/1.1\r\n\r\n".into()),
        (400, "GET / HTTP/1.1 \r\n\r\n".into()),
        (400, "GET\t/\tHTTP/1.1\r\n\r\n".into()),
        (400, "G(T / HTTP/1.1\r\n\r\n".into()),
        (400, "GET / FTP/1.1\r\n\r\n".into()),
        (400, "\u{16}\u{3}\u{1}\u{2}\0\u{1}\r\n\r\n".into()),
        (505, "GET / HTTP/2.0\r\n\r\n".into()),
        (505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into()),
        (400, "GET relative HTTP/1.1\r\n\r\n".into()),
        (400, "CONNECT host:443 HTTP/1.1\r\n\r\n".into()),
        (400, "GET /\0 HTTP/1.1\r\n\r\n".into()),
        (400, "GET /ü HTTP/1.1\r\n\r\n".into()),
        (400, "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n".into()),
        (400, "GET /%f HTTP/1.1\r\nHost: h\r\n\r\n".into()),
        (400, "GET /%ff HTTP/1.1\r\nHost: h\r\n\r\n".into()),
        (400, "GET /%+1 HTTP/1.1\r\nHost: h\r\n\r\n".into()),
        (400, "GET / HTTP/1.1\r\n\r\n".into()),
        (400, format!("GET / HTTP/1.1\r\n{host}{host}\r\n")),
        (400, format!("GET / HTTP/1.1\r\n{host}no colon\r\n\r\n")),
        (400, format!("GET / HTTP/1.1\r\n{host}: nameless\r\n\r\n")),
        (400, format!("GET / HTTP/1.1\r\n{host}space : x\r\n\r\n")),
        (400, format!("GET / HTTP/1.1\r\n{host}A: b\r\n folded\r\n\r\n")),
        (400, format!("GET / HTTP/1.1\r\n{host}A: b\nInjected: c\r\n\r\n")),
        (400, format!("GET / HTTP/1.1\r\n{host}A: b\rc\r\n\r\n")),
        (400, format!("GET / HTTP/1.1\r\n{host}A: \0\r\n\r\n")),
        (414, format!("GET /{} HTTP/1.1\r\n{host}\r\n", "x".repeat(9000))),
        (431, format!("GET / HTTP/1.1\r\n{host}A: {}\r\n\r\n", "x".repeat(MAX_HEAD))),
        (431, format!("GET / HTTP/1.1\r\n{host}{}\r\n", "A: b\r\n".repeat(100))),
        (431, "x".repeat(MAX_HEAD + 1)),
        (0, "GET / HT".into()),
        (0, String::new()),
    ];
    for (status, text) in cases {
        assert_eq!(refusal(&text), status, "for {:?}", &text[..text.len().min(60)]);
    }
}

#[test]
fn lengths_that_two_readers_could_understand_differently_are_refused() {
    let cases = [
        (400, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        (400, "Content-Length: 5\r\nContent-Length: 5\r\n"),
        (400, "Content-Length: 5, 6\r\n"),
        (400, "Content-Length: +5\r\n"),
        (400, "Content-Length: -1\r\n"),
        (400, "Content-Length: 0x5\r\n"),
        (400, "Content-Length:\r\n"),
        (400, "Content-Length: 99999999999999999999\r\n"),
        (501, "Transfer-Encoding: gzip, chunked\r\n"),
        (501, "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        (501, "Transfer-Encoding: xchunked\r\n"),
    ];
    for (status, headers) in cases {
        assert_eq!(
            refusal(&format!("GET / HTTP/1.1\r\nHost: h\r\n{headers}\r\n")),
            status,
            "for {headers:?}"
        );
    }
}

#[test]
fn bodies_end_where_they_say() {
    let cases: [(Framing, &str, &str, bool); 8] = [
        (Framing::Empty, "next", "", true),
        (Framing::Length(5), "hello, and more", "hello", true),
        (Framing::Length(0), "x", "", true),
        (Framing::Length(u64::MAX), "0123456789x", "0123456789", false),
        (Framing::Chunked, "5\r\nhello\r\n3;ext=1\r\n, a\r\n0\r\n\r\nnext", "hello, a", true),
        (Framing::Chunked, "000\r\nTrailer: x\r\n\r\n", "", true),
        (Framing::Chunked, "A\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n", "0123456789", false),
        (Framing::UntilClose, "0123456789x", "0123456789", false),
    ];
    for (framing, bytes, expected, complete) in cases {
        let (body, whole) = body(framing, bytes.as_bytes(), 10).unwrap();
        assert_eq!((body.as_slice(), whole), (expected.as_bytes(), complete), "{framing:?} {bytes:?}");
    }
}

#[test]
fn broken_chunks_are_refused() {
    let cases = [
        "\r\n",
        "g\r\n",
        "-1\r\n",
        "+1\r\nx\r\n",
        "0x1\r\nx\r\n",
        "1\r\nxy\r\n0\r\n\r\n",
        "1 1\r\nx\r\n",
        "10000000000000000\r\n",
        &format!("1;{}\r\n", "x".repeat(300)),
        &format!("0\r\n{}", "T: x\r\n".repeat(65)),
    ];
    for bytes in cases {
        let result = body(Framing::Chunked, bytes.as_bytes(), 100);
        assert!(matches!(result, Err(HttpError::Refused { .. })), "{bytes:?} gave {result:?}");
    }
}

#[test]
fn a_huge_chunk_is_not_believed_before_it_arrives() {
    let result = body(Framing::Chunked, b"ffffffffffffffff\r\nx", 10);
    assert!(matches!(result, Err(HttpError::Closed)), "{result:?}");
}

#[test]
fn bodies_that_end_early_are_no_bodies() {
    for (framing, bytes) in
        [(Framing::Length(5), "hell"), (Framing::Chunked, "5\r\nhell"), (Framing::Chunked, "0\r\n")]
    {
        let result = body(framing, bytes.as_bytes(), 100);
        assert!(matches!(result, Err(HttpError::Closed)), "{framing:?} {bytes:?} gave {result:?}");
    }
}

#[test]
fn pipelined_requests_come_out_one_by_one() {
    let text = "POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nabGET /2 HTTP/1.1\r\nHost: h\r\n\r\n";
    let mut wire = trickle(text.as_bytes(), 7);
    let mut paths = Vec::new();
    while wire.has_more().unwrap() {
        let head = RequestHead::parse(&wire.head(MAX_HEAD).unwrap()).unwrap();
        read_body(&mut wire, Framing::of_request(&head.headers).unwrap(), 10).unwrap();
        paths.push(head.path);
    }
    assert_eq!(paths, ["/1", "/2"]);
}

#[test]
fn a_head_without_end_is_given_up_at_the_limit() {
    let endless = vec![b'x'; 10 * MAX_HEAD];
    let mut wire = trickle(&endless, 1);
    assert!(matches!(wire.head(MAX_HEAD), Err(HttpError::Refused { status: 431, .. })));
    assert!(wire.get_mut().reads <= MAX_HEAD + 1, "read {} times", wire.get_mut().reads);
}

#[test]
fn status_lines_are_read_and_nonsense_is_refused() {
    let parse = |text: &str| StatusLine::parse(text.as_bytes());
    assert_eq!(parse("HTTP/1.1 200 OK\r\nA: b").unwrap().status, 200);
    assert_eq!(parse("HTTP/1.0 404").unwrap().status, 404);
    assert_eq!(parse("HTTP/1.1 503 Service Unavailable").unwrap().status, 503);
    for text in [
        "",
        "200 OK",
        "HTTP/1.1",
        "HTTP/1.1 20",
        "HTTP/1.1 2000",
        "HTTP/1.1 abc",
        "HTTP/1.1 099",
        "HTTP/1.1 +20",
        "SSH-2.0-x",
    ] {
        assert!(parse(text).is_err(), "{text:?} was read");
    }
}

#[test]
fn responses_without_a_length_last_until_the_end() {
    let head = |text: &str| StatusLine::parse(text.as_bytes()).unwrap();
    let cases = [
        ("HTTP/1.1 200 OK", Framing::UntilClose),
        ("HTTP/1.1 204 No Content", Framing::Empty),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 5", Framing::Empty),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5", Framing::Length(5)),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked", Framing::Chunked),
    ];
    for (text, expected) in cases {
        let head = head(text);
        assert_eq!(Framing::of_response(head.status, &head.headers).unwrap(), expected, "for {text:?}");
    }
}
