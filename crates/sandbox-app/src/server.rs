//! Sockets, threads and log lines around [`App`].

use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::clock::{milliseconds, rfc3339};
use crate::http::{Framing, HttpError, MAX_HEAD, RequestHead, Timed, Wire, read_body, reason};
use crate::routes::{App, Request, Response};
use crate::slots::Slots;

/// One thread each; twice what a load test of the sandbox opens.
const MAX_CONNECTIONS: usize = 128;
/// A connection needs little stack: everything of size is on the heap and bounded.
const STACK: usize = 256 * 1024;
const MAX_BODY: usize = 1024 * 1024;
/// How long a kept connection may stay silent between two requests.
const IDLE: Duration = Duration::from_secs(30);
/// From a request's first byte to its last.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// What is read and thrown away after an error, so that closing does not reset the answer off the line.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_BYTES: usize = 256 * 1024;
/// Out of file descriptors, most likely: let some connections end first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Where to listen: an address, or a port on all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listen {
    Address(SocketAddr),
    Port(u16),
}

impl Listen {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let bad = || format!("cannot listen on {text:?}: write :8080 or 127.0.0.1:8080 or [::1]:8080");
        match text.strip_prefix(':') {
            Some(port) => port.parse().map(Self::Port).map_err(|_| bad()),
            None => text.parse().map(Self::Address).map_err(|_| bad()),
        }
    }

    fn bind(self) -> io::Result<TcpListener> {
        match self {
            Self::Address(address) => TcpListener::bind(address),
            // The IPv6 socket takes IPv4 too, where there is IPv6 at all.
            Self::Port(port) => {
                TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.kind() {
                    io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => Err(error),
                    _ => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)),
                })
            }
        }
    }
}

/// A listening server.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    app: Arc<App>,
    connections: Slots,
    requests: Slots,
}

/// Tells what the server is still busy with.
#[derive(Debug)]
pub(crate) struct Busy(Slots);

impl Busy {
    /// Waits until no request is being answered, but not longer than `limit`.
    pub(crate) fn drain(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while self.0.used() > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Server {
    pub(crate) fn bind(listen: Listen, app: App) -> Result<Self, String> {
        let listener = listen.bind().map_err(|error| match listen {
            Listen::Address(address) => format!("cannot listen on {address}: {error}"),
            Listen::Port(port) => format!("cannot listen on port {port}: {error}"),
        })?;
        let (connections, requests) = (Slots::new(MAX_CONNECTIONS), Slots::new(MAX_CONNECTIONS));
        Ok(Self { listener, app: Arc::new(app), connections, requests })
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    pub(crate) fn busy(&self) -> Busy {
        Busy(self.requests.clone())
    }

    /// Serves until the process ends.
    pub(crate) fn run(&self) -> ! {
        loop {
            match self.listener.accept() {
                Ok((stream, peer)) => self.accept(stream, peer.ip().to_canonical()),
                Err(error) => {
                    log(format_args!("cannot accept a connection: {error}"));
                    std::thread::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    fn accept(&self, stream: TcpStream, peer: IpAddr) {
        let deadline = Instant::now() + IDLE;
        let Some(slot) = self.connections.take(1) else {
            return turn_away(Timed::new(stream, deadline), peer);
        };
        let mut connection = Connection {
            wire: Wire::new(Timed::new(stream, deadline)),
            peer,
            app: Arc::clone(&self.app),
            requests: self.requests.clone(),
        };
        let spawned = std::thread::Builder::new().stack_size(STACK).spawn(move || {
            let _slot = slot;
            connection.serve();
        });
        if let Err(error) = spawned {
            log(format_args!("cannot start a thread for {peer}: {error}"));
        }
    }
}

/// Too many connections: the answer fits into the socket's buffer, so that this does not block the others.
fn turn_away(mut stream: Timed, peer: IpAddr) {
    let response = Response::error(503, format!("{MAX_CONNECTIONS} connections are open already"));
    stream.end_after(ACCEPT_PAUSE);
    let sent = write_response(&mut stream, &response, false, true);
    let note = if sent.is_ok() { "" } else { ", and it does not read" };
    log(format_args!("- - 503 0ms {peer} too many connections{note}"));
}

struct Connection {
    wire: Wire<Timed>,
    peer: IpAddr,
    app: Arc<App>,
    requests: Slots,
}

impl Connection {
    fn serve(&mut self) {
        loop {
            self.wire.get_mut().end_after(IDLE);
            // Closed, reset or silent for too long between two requests: nobody waits for an answer.
            if !self.wire.has_more().unwrap_or(false) {
                return;
            }
            let _busy = self.requests.take(1);
            if !self.serve_request() {
                return;
            }
        }
    }

    /// Answers one request; false when the connection is done with.
    fn serve_request(&mut self) -> bool {
        let started = Instant::now();
        self.wire.get_mut().end_after(REQUEST_TIMEOUT);
        let (request, response) = match self.read() {
            Ok(request) => {
                let response = self.app.answer(&request);
                (Some(request.head), response)
            }
            Err(error) => match refusal(&error) {
                Some(response) => (None, response),
                None => {
                    log(format_args!("- - 0 {}ms {} {error}", milliseconds(started.elapsed()), self.peer));
                    return false;
                }
            },
        };
        let head = request.as_ref();
        let keep = head.is_some_and(|head| head.keep_alive) && response.exit.is_none();
        let with_body = head.is_none_or(|head| head.method != "HEAD");
        self.wire.get_mut().end_after(RESPONSE_TIMEOUT);
        let sent = write_response(self.wire.get_mut(), &response, keep, with_body);
        self.log_request(head, &response, started.elapsed(), sent.as_ref().err());
        if let Some(code) = response.exit {
            std::process::exit(i32::from(code));
        }
        if sent.is_ok() && head.is_none() {
            self.linger();
        }
        keep && sent.is_ok()
    }

    fn read(&mut self) -> Result<Request, HttpError> {
        let head = RequestHead::parse(&self.wire.head(MAX_HEAD)?)?;
        let framing = Framing::of_request(&head.headers)?;
        let too_large = || HttpError::refused(413, format!("the body exceeds {MAX_BODY} bytes"));
        if matches!(framing, Framing::Length(length) if length > MAX_BODY as u64) {
            return Err(too_large());
        }
        match head.headers.get("expect") {
            None => {}
            Some(what) if what.eq_ignore_ascii_case("100-continue") => {
                self.wire.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            Some(what) => {
                return Err(HttpError::refused(417, format!("cannot meet the expectation {what:?}")));
            }
        }
        let (body, complete) = read_body(&mut self.wire, framing, MAX_BODY)?;
        if complete { Ok(Request { head, body, peer: self.peer }) } else { Err(too_large()) }
    }

    fn log_request(
        &self,
        head: Option<&RequestHead>,
        response: &Response,
        elapsed: Duration,
        failure: Option<&io::Error>,
    ) {
        let mut line = String::new();
        let (method, target) = head.map_or(("-", "-"), |head| (&head.method, &head.target));
        // Writing to a String cannot fail.
        let _ = write!(
            line,
            "{method} {} {} {}ms {}",
            shorten(target),
            response.status,
            milliseconds(elapsed),
            self.peer
        );
        if head.is_none() {
            let _ = write!(line, " {}", response.body);
        }
        if let Some(error) = failure {
            let _ = write!(line, " but the answer was not taken: {error}");
        }
        log(format_args!("{line}"));
    }

    fn linger(&mut self) {
        let stream = self.wire.get_mut();
        stream.end_after(LINGER);
        let _ = stream.stream().shutdown(Shutdown::Write);
        let _ = self.wire.rest(LINGER_BYTES, &mut Vec::new());
    }
}

/// What a peer gets for a request that could not be read, if it is still there to get something.
fn refusal(error: &HttpError) -> Option<Response> {
    match error {
        HttpError::Refused { status, why } => Some(Response::error(*status, why)),
        HttpError::TimedOut => Some(Response::error(408, "the request took too long to arrive")),
        HttpError::Closed | HttpError::Io(_) => None,
    }
}

fn write_response(stream: &mut Timed, response: &Response, keep: bool, with_body: bool) -> io::Result<()> {
    let body = format!("{}\n", response.body);
    let mut message = format!(
        "HTTP/1.1 {} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: {}\r\n",
        response.status,
        reason(response.status),
        body.len(),
        if keep { "keep-alive" } else { "close" },
    );
    if let Some(allow) = response.allow {
        message.push_str(&format!("Allow: {allow}\r\n"));
    }
    message.push_str("\r\n");
    if with_body {
        message.push_str(&body);
    }
    stream.write_all(message.as_bytes())
}

/// Enough of a target to recognise it; the whole may be as long as a head.
fn shorten(target: &str) -> &str {
    target.get(..200).unwrap_or(target)
}

/// A line on stdout, which is the container's log. Where that is gone, there is nobody to tell.
pub(crate) fn log(message: std::fmt::Arguments<'_>) {
    let line = format!("{} {message}\n", rfc3339(SystemTime::now()));
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
}
