//! The local network: multicast DNS (RFC 6762) with service discovery (RFC 6763), for one service.
//!
//! ```text
//!  interfaces ──▶ sockets ──packets──▶ budget ──▶ message ──▶ advertise  ("who is there?" – "we are")
//!                    ▲                                   └──▶ browse ──▶ book
//!                    └──────────────── packets that are due ◀──┘
//! ```
//!
//! A cluster publishes these, all in one packet, with one lifetime (90 s unless set), three times when it begins and then
//! twice per lifetime; when it ends, with lifetime 0. On each interface, the addresses are those of the interface.
//!
//! | name | type | content |
//! |---|---|---|
//! | `_liqo_auth._tcp.local.` | PTR | `<cluster ID>._liqo_auth._tcp.local.` |
//! | `<cluster ID>._liqo_auth._tcp.local.` | SRV | the port of the authentication service, `<cluster ID>.local.` |
//! | `<cluster ID>._liqo_auth._tcp.local.` | TXT | `id=`, `name=`, `version=`, `fp=sha256:…` of the service's certificate |
//! | `<cluster ID>.local.` | A, AAAA | the addresses |
//!
//! Liqo 0.4 publishes the same without content in TXT, which is understood.

use std::net::SocketAddr;

use tokio::sync::watch;

pub(crate) mod advertise;
pub(crate) mod browse;
mod budget;
mod engine;
pub(crate) mod interfaces;
mod message;
mod socket;

pub use advertise::{Advertisement, DEFAULT_TTL};
pub(crate) use engine::Engine;
pub use interfaces::{InterfaceChoice, InterfaceRule, InvalidRule};

/// The service under which clusters advertise their authentication service.
pub(crate) const SERVICE: &str = "_liqo_auth._tcp.local.";

/// The name under which kinds of services are listed.
const SERVICES: &str = "_services._dns-sd._udp.local.";

/// The port of multicast DNS.
const MDNS_PORT: u16 = 5353;

/// What to do on the local network.
#[derive(Clone, Debug)]
pub struct Lan {
    /// Whether to look for clusters.
    pub browse: bool,
    /// What to say about ourselves, now and whenever it changes; nothing means that we are silent.
    pub advertise: Option<watch::Receiver<Option<Advertisement>>>,
    /// On which interfaces.
    pub interfaces: InterfaceChoice,
    /// Whether to speak over IPv4.
    pub ipv4: bool,
    /// Whether to speak over IPv6.
    pub ipv6: bool,
}

/// One network: an interface, spoken to in IPv4 or IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LinkId {
    pub(crate) interface: u32,
    pub(crate) is_ipv6: bool,
}

/// A packet to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) link: LinkId,
    /// To whom; if to nobody, to all.
    pub(crate) to: Option<SocketAddr>,
    pub(crate) bytes: Vec<u8>,
}
