//! `http://host:port/path?query`, taken apart and checked.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// An address to fetch. What it is made of can be put into a request without changing the request's shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    host: String,
    port: u16,
    target: String,
}

impl Url {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("cannot use the URL {text:?}: {why}");
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("spaces, control characters and non-ASCII letters must be percent-encoded"));
        }
        let rest = text.strip_prefix("http://").ok_or_else(|| bad("it does not start with http://"))?;
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(bad("user names and passwords are not supported"));
        }
        let (host, port) = split_authority(authority).map_err(bad)?;
        let slash = if target.starts_with('/') { "" } else { "/" };
        Ok(Self { host, port, target: format!("{slash}{target}") })
    }

    /// A name, or an address without brackets.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Path and query, never empty.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    /// The socket address when the host is no name.
    pub(crate) fn literal(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    /// What belongs into the Host header.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == 80 { host } else { format!("{host}:{}", self.port) }
    }
}

fn split_authority(authority: &str) -> Result<(String, u16), &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, after) =
                rest.split_once(']').ok_or("the bracket of the IPv6 address is not closed")?;
            address.parse::<Ipv6Addr>().map_err(|_| "there is no IPv6 address between the brackets")?;
            (address, after.strip_prefix(':').or(after.is_empty().then_some("80")))
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, Some("80")),
        },
    };
    let is_name = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
    if host.is_empty() || !(is_name || authority.starts_with('[')) {
        return Err("the host is neither a name nor an address");
    }
    let port = port.filter(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    match port.and_then(|port| port.parse().ok()) {
        Some(port) if port > 0 => Ok((host.to_owned(), port)),
        _ => Err("the port is not a number from 1 to 65535"),
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.target)
    }
}
