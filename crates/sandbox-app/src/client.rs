//! GET with a deadline for everything: name resolution, connecting, sending, reading.

use std::fmt;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use crate::http::{Framing, HttpError, MAX_HEAD, StatusLine, Timed, Wire, read_body};
use crate::slots::Slots;

mod url;

pub(crate) use url::Url;

/// The C resolver cannot be interrupted: a lookup that takes too long goes on in its thread, so these are counted.
const MAX_LOOKUPS: usize = 32;
/// Interim answers (100, 103) before the real one.
const MAX_INTERIM: usize = 8;

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether the body was longer than wanted.
    pub(crate) truncated: bool,
}

/// What failed, in the words of the step that failed.
#[derive(Debug)]
pub(crate) struct ClientError(String);

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fetches URLs.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    lookups: Slots,
}

impl Client {
    pub(crate) fn new() -> Self {
        Self { lookups: Slots::new(MAX_LOOKUPS) }
    }

    /// One GET on a connection of its own, with at most `limit` bytes of the body.
    pub(crate) fn get(&self, url: &Url, timeout: Duration, limit: usize) -> Result<Answer, ClientError> {
        let deadline = Instant::now() + timeout;
        let addresses = self.resolve(url, deadline)?;
        let stream = connect(&addresses, deadline)?;
        exchange(Timed::new(stream, deadline), url, limit)
            .map_err(|error| ClientError(format!("cannot get {url}: {error}")))
    }

    fn resolve(&self, url: &Url, deadline: Instant) -> Result<Vec<SocketAddr>, ClientError> {
        if let Some(address) = url.literal() {
            return Ok(vec![address]);
        }
        let failed = |why: String| ClientError(format!("cannot resolve {:?}: {why}", url.host()));
        let slot =
            self.lookups.take(1).ok_or_else(|| failed(format!("{MAX_LOOKUPS} lookups hang already")))?;
        let (sender, receiver) = sync_channel(1);
        let target = (url.host().to_owned(), url.port());
        let lookup = move || {
            let _slot = slot;
            // Nobody listens any more when the deadline has passed.
            let _ = sender.send(target.to_socket_addrs().map(Vec::from_iter));
        };
        std::thread::Builder::new().spawn(lookup).map_err(|error| failed(error.to_string()))?;
        let addresses = receiver
            .recv_timeout(remaining(deadline))
            .map_err(|_| failed("timed out".into()))?
            .map_err(|error| failed(error.to_string()))?;
        if addresses.is_empty() { Err(failed("the name has no address".into())) } else { Ok(addresses) }
    }
}

/// Tries each address in turn, none of them longer than its share of the time that is left.
fn connect(addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, ClientError> {
    let mut failures = Vec::new();
    for (tried, address) in addresses.iter().enumerate() {
        let left = u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        let share = (remaining(deadline) / left).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(address, share) {
            Ok(stream) => return Ok(stream),
            Err(error) => failures.push(format!("{address}: {error}")),
        }
    }
    Err(ClientError(format!("cannot connect to {}", failures.join(", "))))
}

fn remaining(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn exchange(mut stream: Timed, url: &Url, limit: usize) -> Result<Answer, HttpError> {
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: sandbox-app/{}\r\nAccept: */*\r\nConnection: close\r\n\r\n",
        url.target(),
        url.authority(),
        env!("CARGO_PKG_VERSION"),
    );
    stream.write_all(request.as_bytes())?;
    let mut wire = Wire::new(stream);
    for _ in 0..MAX_INTERIM {
        let head = StatusLine::parse(&wire.head(MAX_HEAD)?)?;
        if head.status < 200 && head.status != 101 {
            continue;
        }
        let framing = Framing::of_response(head.status, &head.headers)?;
        let (body, complete) = read_body(&mut wire, framing, limit)?;
        return Ok(Answer { status: head.status, body, truncated: !complete });
    }
    Err(HttpError::refused(502, format!("more than {MAX_INTERIM} interim answers")))
}

#[cfg(test)]
mod tests;
