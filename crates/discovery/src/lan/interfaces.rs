//! On which network interfaces to speak.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use getifaddrs::InterfaceFlags;
use ipnet::IpNet;

use crate::advert::is_usable;

#[cfg(test)]
mod tests;

/// Interfaces spoken on at once. Machines have a few; a node with hundreds of them has one per pod, and means none of
/// those.
const MAX_INTERFACES: usize = 16;

/// The kernel's longest interface name.
const MAX_NAME: usize = 15;

/// Which interfaces: a name, or a network that one of its addresses is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InterfaceRule {
    /// The interface of this name.
    Name(String),
    /// The interfaces with an address in this network.
    Network(IpNet),
}

/// Why a text does not say which interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected the name of an interface, such as eth0, or a network, such as 192.168.0.0/16")]
pub struct InvalidRule;

impl FromStr for InterfaceRule {
    type Err = InvalidRule;

    fn from_str(text: &str) -> Result<Self, InvalidRule> {
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Self::Network(network.trunc()));
        }
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Network(address.into()));
        }
        let legal = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b',';
        let named = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(legal);
        if named { Ok(Self::Name(text.to_owned())) } else { Err(InvalidRule) }
    }
}

impl fmt::Display for InterfaceRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Network(network) => network.fmt(f),
        }
    }
}

/// Which interfaces to speak on. With nothing said: those that are up, can multicast, are no loopback, and have an
/// address by which others reach this machine that is not in the pods' network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceChoice {
    /// Only these; all if empty.
    pub include: Vec<InterfaceRule>,
    /// Not these, whatever is included.
    pub exclude: Vec<InterfaceRule>,
    /// The networks of this cluster's pods and Services. Addresses in them are not spoken from, and who claims to have
    /// one is not connected to: strangers must not choose what is asked inside the cluster.
    pub pod_networks: Vec<IpNet>,
}

impl InterfaceChoice {
    /// Whether an address is inside this cluster.
    pub(crate) fn is_inside(&self, address: IpAddr) -> bool {
        self.pod_networks.iter().any(|network| network.contains(&address))
    }

    /// Whether an address of an interface may be advertised.
    fn allows(&self, name: &str, address: IpAddr) -> bool {
        let matches = |rule: &InterfaceRule| match rule {
            InterfaceRule::Name(wanted) => wanted == name,
            InterfaceRule::Network(network) => network.contains(&address),
        };
        is_usable(address)
            && !self.is_inside(address)
            && !self.exclude.iter().any(matches)
            && (self.include.is_empty() || self.include.iter().any(matches))
    }
}

/// An interface of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// Whether it is up, can multicast, and is no loopback.
    pub(crate) speaks: bool,
    /// Its addresses with the networks around them.
    pub(crate) networks: Vec<IpNet>,
}

impl Interface {
    /// Whether a packet from this address can only have been sent on this very network.
    pub(crate) fn is_near(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => true,
            _ => self.networks.iter().any(|network| network.contains(&address)),
        }
    }
}

/// The chosen interfaces, each with the addresses to advertise on it.
pub(crate) fn choose(all: Vec<Interface>, choice: &InterfaceChoice) -> Vec<(Interface, Vec<IpAddr>)> {
    let chosen = all.into_iter().filter(|interface| interface.speaks).filter_map(|interface| {
        let addresses = interface.networks.iter().map(IpNet::addr);
        let allowed: Vec<_> = addresses.filter(|address| choice.allows(&interface.name, *address)).collect();
        (!allowed.is_empty()).then_some((interface, allowed))
    });
    chosen.take(MAX_INTERFACES).collect()
}

/// The interfaces of this machine, as the kernel tells them.
pub(crate) fn read() -> std::io::Result<Vec<Interface>> {
    let mut interfaces: BTreeMap<u32, Interface> = BTreeMap::new();
    for found in getifaddrs::getifaddrs()? {
        let (Some(index), Some(address)) = (found.index, found.address.ip_addr()) else { continue };
        let speaks = found.flags.contains(InterfaceFlags::UP | InterfaceFlags::MULTICAST)
            && !found.flags.contains(InterfaceFlags::LOOPBACK);
        let network = found.address.netmask().and_then(|mask| IpNet::with_netmask(address, mask).ok());
        let interface = interfaces.entry(index).or_insert_with(|| Interface {
            name: found.name,
            index,
            speaks,
            networks: Vec::new(),
        });
        interface.networks.push(network.unwrap_or_else(|| address.into()));
    }
    let mut interfaces: Vec<_> = interfaces.into_values().collect();
    // The kernel's order may change, and a change would be taken for news.
    interfaces.iter_mut().for_each(|interface| interface.networks.sort());
    Ok(interfaces)
}
