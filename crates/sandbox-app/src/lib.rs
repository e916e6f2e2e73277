//! What runs in the sandbox's pods: `sandbox-app`, an HTTP server and client for demo and tests, and
//! `pause`, which holds a pod's namespaces open.
//!
//! ```text
//! command   argv and environment → Command        signals   what PID 1 of a container owes its kernel
//! server    sockets, threads, log lines           client    GET with a deadline, for /dial and `get`
//!   └ routes    request → response (no sockets)     └ url
//!   └ http      the bytes of HTTP/1.1, bounded      └ http
//! ```
//!
//! There is no async runtime and no HTTP library here: the programs are embedded in `liqoctl` and loaded
//! into every node of every sandbox, so that their size counts and their load does not.
#![expect(clippy::disallowed_types, reason = "there is no tokio here: std's clock is the only one")]

mod burn;
mod client;
mod clock;
mod command;
mod http;
mod json;
mod routes;
mod server;
pub mod signals;
mod slots;

pub use command::main;
