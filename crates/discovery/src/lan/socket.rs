//! The sockets of multicast DNS: one per interface and version of IP.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use tokio::net::UdpSocket;

use super::MDNS_PORT;
use super::interfaces::Interface;

/// The addresses to which everybody listens.
const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);

/// As RFC 6762 (11) has it, so that receivers can tell that no router passed it on.
const HOPS: u32 = 255;

/// Where all packets go that are for everybody.
pub(crate) fn group(is_ipv6: bool) -> SocketAddr {
    if is_ipv6 { (GROUP_V6, MDNS_PORT).into() } else { (GROUP_V4, MDNS_PORT).into() }
}

/// Opens a socket that hears and speaks on this interface alone, beside others of this machine on the same port.
pub(crate) fn open(interface: &Interface, is_ipv6: bool) -> io::Result<UdpSocket> {
    let domain = if is_ipv6 { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    // Old kernels let only root do this; the groups below are of this interface in any case.
    if let Err(error) = socket.bind_device(Some(interface.name.as_bytes())) {
        tracing::debug!(%error, interface = interface.name, "cannot bind a socket to the interface");
    }
    if is_ipv6 {
        socket.set_only_v6(true)?;
        socket.set_multicast_all_v6(false)?;
        socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, MDNS_PORT)).into())?;
        socket.join_multicast_v6(&GROUP_V6, interface.index)?;
        socket.set_multicast_if_v6(interface.index)?;
        socket.set_multicast_hops_v6(HOPS)?;
        socket.set_unicast_hops_v6(HOPS)?;
    } else {
        let address = interface.networks.iter().find_map(|network| match network.addr() {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        });
        let address = address.ok_or_else(|| io::Error::other("the interface has no IPv4 address"))?;
        socket.set_multicast_all_v4(false)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, MDNS_PORT)).into())?;
        socket.join_multicast_v4_n(&GROUP_V4, &InterfaceIndexOrAddress::Index(interface.index))?;
        socket.set_multicast_if_v4(&address)?;
        socket.set_multicast_ttl_v4(HOPS)?;
        socket.set_ttl_v4(HOPS)?;
    }
    UdpSocket::from_std(socket.into())
}
