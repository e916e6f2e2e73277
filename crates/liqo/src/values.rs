//! What flags hold: types that parse once, at the door.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use liqo_core::Quantity;

mod duration;
mod labels;
#[cfg(test)]
mod tests;

pub(crate) use duration::Span;
pub(crate) use labels::{Annotations, Labels};

/// A value that may be left empty, as Go's flags without a default are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Maybe<T>(pub(crate) Option<T>);

impl<T: FromStr> FromStr for Maybe<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.is_empty() { Ok(Self(None)) } else { text.parse().map(|value| Self(Some(value))) }
    }
}

/// A whole number from 0 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(pub(crate) u8);

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| *number <= 100);
        number.map(Self).ok_or_else(|| "expected a whole number from 0 to 100".to_owned())
    }
}

/// Yes or no, in the words that Go's flags take.
pub(crate) fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => Ok(true),
        "false" | "False" | "FALSE" | "f" | "F" | "0" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// An amount of a resource that is not negative.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Amount(pub(crate) Quantity);

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let quantity: Quantity =
            text.parse().map_err(|error: liqo_core::ParseQuantityError| error.to_string())?;
        if quantity < Quantity::ZERO {
            return Err("expected an amount that is not negative".to_owned());
        }
        Ok(Self(quantity))
    }
}

/// Where to listen: `:8080`, `127.0.0.1:8080`, `[::1]:8080`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    /// The address; without one, all of them.
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
}

impl Listen {
    /// What to bind, in the order to try: a machine may have no IPv6.
    pub(crate) fn candidates(self) -> Vec<SocketAddr> {
        match self.address {
            Some(address) => vec![(address, self.port).into()],
            None => vec![(Ipv6Addr::UNSPECIFIED, self.port).into(), ([0, 0, 0, 0], self.port).into()],
        }
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || "expected an address such as :8080, 127.0.0.1:8080 or [::1]:8080".to_owned();
        if let Some(port) = text.strip_prefix(':') {
            return Ok(Self { address: None, port: parse_port(port).ok_or_else(refuse)? });
        }
        let address: SocketAddr = text.replace("localhost:", "127.0.0.1:").parse().map_err(|_| refuse())?;
        Ok(Self { address: Some(address.ip()), port: address.port() })
    }
}

/// Digits alone: Rust would take `+80`, too.
fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A port to be reached at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port(pub(crate) u16);

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = parse_port(text).filter(|port| *port > 0);
        port.map(Self).ok_or_else(|| "expected a port from 1 to 65535".to_owned())
    }
}

/// A host name or address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host(pub(crate) String);

impl FromStr for Host {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
        let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let name = !numeric && text.len() <= 253 && text.split('.').all(is_host_label);
        if bare.parse::<IpAddr>().is_ok() || name {
            return Ok(Self(text.to_owned()));
        }
        Err("expected a host name or an IP address".to_owned())
    }
}

fn is_host_label(label: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = label.as_bytes();
    label.len() <= 63
        && alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// Where a service is: `HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) host: Host,
    pub(crate) port: Port,
}

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || "expected HOST:PORT, such as broker-svc.broker.svc.cluster.local:7000".to_owned();
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        // An IPv6 address needs its brackets here, or its last part would be taken for the port.
        if host.contains(':') && !host.starts_with('[') {
            return Err(refuse());
        }
        Ok(Self { host: host.parse().map_err(|_| refuse())?, port: port.parse().map_err(|_| refuse())? })
    }
}

/// A name of an object, such as a storage class or a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectName(pub(crate) String);

impl FromStr for ObjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = !text.bytes().any(|byte| byte.is_ascii_uppercase());
        if lower && text.len() <= 253 && text.split('.').all(is_host_label) {
            return Ok(Self(text.to_owned()));
        }
        Err("expected a name of lower-case letters, digits, '-' and '.'".to_owned())
    }
}

/// How many of something work side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Workers(pub(crate) u16);

/// More would not be workers but a mistake.
const MOST_WORKERS: u16 = 1000;

impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse().ok().filter(|number| (1..=MOST_WORKERS).contains(number));
        number.map(Self).ok_or_else(|| format!("expected a whole number from 1 to {MOST_WORKERS}"))
    }
}
