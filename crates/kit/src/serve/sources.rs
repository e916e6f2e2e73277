//! How many connections come from where.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;

#[cfg(test)]
mod tests;

/// Bits of an IPv6 address that name a network. Whoever has one of its addresses usually has all of them.
const IPV6_NETWORK: u32 = 64;

/// Who counts as one client: an IPv4 address, or the /64 network of an IPv6 address.
pub fn source(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << (u128::BITS - IPV6_NETWORK));
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// Counts the connections of each source.
#[derive(Clone)]
pub(super) struct Sources {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    max: usize,
}

impl Sources {
    pub(super) fn new(max: usize) -> Self {
        Self { open: Arc::default(), max }
    }

    /// A place for one more connection, if its source may have one.
    pub(super) fn enter(&self, address: SocketAddr) -> Option<Place> {
        let source = source(address);
        let mut open = self.open.lock();
        let count = open.entry(source).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(Place { open: Arc::clone(&self.open), source })
    }
}

/// One connection's place; given back when dropped.
pub(super) struct Place {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    source: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.source) {
            *count -= 1;
            // A source that is gone takes no memory.
            if *count == 0 {
                open.remove(&self.source);
            }
        }
    }
}
