//! The called side: other clusters come and get a certificate for our API server.
//!
//! ```text
//!  request ──parse──▶ judge (pure) ──▶ Grant ──▶ next (pure): the first thing that is missing ──▶ one write ──┐
//!                        │                         ▲                                                         │
//!                        └──▶ 400, 401, 403        └──────────────── what the API server answered ◀──────────┘
//! ```
//!
//! Every write has a name that follows from what it is for and leaves something whole behind, so that a call that is cut off
//! after any of them is completed by the next. That an ID has one key, and a peer token one peer, is kept true by the API
//! server itself: those are written only onto the version of the object that was judged.

pub(crate) mod address;
pub(crate) mod execute;
pub(crate) mod http;
pub(crate) mod judge;
pub(crate) mod plan;
pub(crate) mod rates;
pub(crate) mod upkeep;

use std::time::Duration;

/// The limits of the service. Each is what a hostile caller would otherwise choose.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address (IPv6: from one /64 network).
    pub connections_per_source: usize,
    /// How long the TLS handshake may take, the header of a request, and its body.
    pub patience: Duration,
    /// How long a caller waits for its certificate.
    pub certificate: Duration,
    /// Certificates that are being made at once; further callers wait.
    pub certificates: usize,
    /// Certificates that one peer gets at once, and the time after which it gets one more.
    pub certificates_per_peer: (u32, Duration),
    /// New peers that come in by the cluster's own token, or without one, at once, and the time after which one more does:
    /// whoever has that token could else fill the cluster with namespaces. Peer tokens are for one each.
    pub newcomers: (u32, Duration),
    /// Failed attempts from one address before it must wait, and the time after which one more is allowed.
    pub failures_per_source: (u32, Duration),
    /// The same for all addresses together. Only those that failed before have to wait then.
    pub failures: (u32, Duration),
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            // A network of peers behind one address is served, and eight hostile ones are needed to fill all places.
            connections_per_source: 64,
            patience: Duration::from_secs(5),
            // As long as Liqo waits for Kubernetes' signer.
            certificate: Duration::from_secs(30),
            certificates: 32,
            certificates_per_peer: (30, Duration::from_secs(20)),
            newcomers: (100, Duration::from_secs(10)),
            failures_per_source: (20, Duration::from_secs(3)),
            failures: (500, Duration::from_millis(100)),
        }
    }
}
