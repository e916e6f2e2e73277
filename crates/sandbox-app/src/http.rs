//! As much of HTTP/1.1 as this program speaks, as server and as client.
//!
//! Strict where leniency lets two programs read one message differently (line ends, whitespace before a
//! colon, contradicting lengths), and bounded everywhere: the peer decides neither memory nor time.

use std::fmt;
use std::io;

mod body;
mod head;
mod wire;

pub(crate) use body::{Framing, read_body};
pub(crate) use head::{Headers, RequestHead, StatusLine};
pub(crate) use wire::{Timed, Wire};

/// Room for request line and all headers; proxies in front of a server commonly allow 8 to 16 KiB.
pub(crate) const MAX_HEAD: usize = 16 * 1024;
/// The method, the target and the version together.
pub(crate) const MAX_START_LINE: usize = 8 * 1024;
/// More headers than any real client sends.
pub(crate) const MAX_HEADERS: usize = 100;

/// Why a message could not be read.
#[derive(Debug)]
pub(crate) enum HttpError {
    /// The peer broke the rules, or one of our limits; `status` is what a server answers then.
    Refused { status: u16, why: String },
    /// The connection ended inside a message.
    Closed,
    /// The deadline passed.
    TimedOut,
    /// The network failed.
    Io(io::Error),
}

impl HttpError {
    pub(crate) fn refused(status: u16, why: impl Into<String>) -> Self {
        Self::Refused { status, why: why.into() }
    }

    fn bad(why: impl Into<String>) -> Self {
        Self::refused(400, why)
    }
}

impl From<io::Error> for HttpError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // A socket with a timeout reports its expiry as either, depending on the system.
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::TimedOut,
            io::ErrorKind::UnexpectedEof => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl fmt::Display for HttpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused { why, .. } => f.write_str(why),
            Self::Closed => f.write_str("the connection was closed in the middle of a message"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

/// The words that go with a status code.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        417 => "Expectation Failed",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests;
