//! How much one process asks of API servers at once.
//!
//! Of each namespace that is offloaded, reflection watches five kinds at home (those that are copied; claims are watched in
//! all namespaces at once), and nine at each provider that it is offloaded to: the six kinds of copies, ShadowPods, pods and
//! events. A tenant may look into its own namespaces only, so that these watches cannot be one. Sixty-four of them share a
//! connection. A kind of custom resources that is reflected adds one on each side.

/// Watches on the own cluster: those of the rooms, and those of 1,600 namespaces.
pub const WATCHES_HERE: usize = 8192;

/// Watches on one peer: a few, and those of 900 namespaces.
pub const WATCHES_AT_PEER: usize = 8192;

/// Requests to one peer at once.
pub const REQUESTS_AT_PEER: usize = 64;
