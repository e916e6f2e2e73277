//! What a record claims, parsed: everything behind this door is well-formed and of bounded size.
//!
//! Records come from whoever is on the network. What is not a legal name, fingerprint, port, address or lifetime is
//! refused here, with a reason that metrics and conditions show; nothing is repaired or guessed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use liqo_api::Fingerprint;
use liqo_api::names::{ClusterId, ClusterName};

#[cfg(test)]
mod tests;

/// Texts in a TXT record; ours has four, and another version may add some.
const MAX_TEXTS: usize = 16;

/// Bytes of a TXT record: what fits one packet (RFC 6763, 6.2).
const MAX_TEXT_BYTES: usize = 1300;

/// Addresses of one cluster that are tried; a machine has a handful.
pub(crate) const MAX_ADDRESSES: usize = 8;

/// The longest lifetime that is believed, in seconds. Who advertises for longer is asked again all the same.
pub(crate) const MAX_TTL: u32 = 3600;

/// The largest lifetime that DNS allows (RFC 2181, 8): what is above was meant to be negative.
const LARGEST_TTL: u32 = i32::MAX as u32;

/// Keys of the TXT record.
pub(crate) mod keys {
    /// The cluster's ID.
    pub(crate) const ID: &str = "id";
    /// The cluster's name.
    pub(crate) const NAME: &str = "name";
    /// The fingerprint of the authentication service's certificate.
    pub(crate) const FINGERPRINT: &str = "fp";
    /// The version of the program; for people who look.
    pub(crate) const VERSION: &str = "version";
}

/// Where a record came from, as far as that can be told.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sender {
    /// A machine on the local network: the index of the interface, and its address.
    Neighbour { interface: u32, address: IpAddr },
    /// A search domain: the name of the SearchDomain.
    Domain(Arc<str>),
}

/// How a cluster was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// By multicast DNS.
    Lan,
    /// Through the SearchDomain of this name.
    Wan(Arc<str>),
}

impl Sender {
    pub(crate) fn source(&self) -> Source {
        match self {
            Self::Neighbour { .. } => Source::Lan,
            Self::Domain(name) => Source::Wan(Arc::clone(name)),
        }
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Neighbour { address, .. } => write!(f, "{address} on the local network"),
            Self::Domain(name) => write!(f, "SearchDomain {name}"),
        }
    }
}

/// Which record of which sender: what one says never changes what another said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Origin {
    pub(crate) sender: Sender,
    /// The name of the record: the instance, or what a PTR record points to.
    pub(crate) record: Arc<str>,
}

/// How the URL names the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Host {
    /// By the address that answers: names on the local network mean nothing elsewhere.
    Address,
    /// By its name in DNS.
    Name(Arc<str>),
}

/// What a record says about a cluster; to be believed once the cluster itself has said the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advert {
    pub(crate) id: Option<ClusterId>,
    pub(crate) name: Option<ClusterName>,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) host: Host,
    pub(crate) port: u16,
    pub(crate) addresses: Vec<IpAddr>,
    /// Seconds for which it may be believed without being heard again.
    pub(crate) ttl: u32,
}

/// Why something was refused; the word is what metrics show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Refusal {
    /// The packet is no DNS message.
    Malformed,
    /// It came from outside the local network.
    OffLink,
    /// Larger or more than allowed.
    Oversized,
    /// More from one sender, or in all, than is kept.
    TooMany,
    /// Not a legal cluster ID or cluster name.
    InvalidName,
    /// Not a legal host name.
    InvalidHost,
    /// Text that cannot be read.
    InvalidText,
    /// Not a fingerprint.
    InvalidFingerprint,
    /// Port 0.
    InvalidPort,
    /// A negative lifetime.
    InvalidTtl,
    /// A record contradicts itself.
    Contradiction,
    /// No address, or none that could be another cluster's.
    NoAddress,
    /// The name server has no such record, or does not answer.
    NotResolved,
    /// Nothing answers at any address.
    Unreachable,
    /// What answers does not say who it is.
    NotIdentified,
    /// What answers says that it is somebody else.
    Impostor,
    /// Its certificate is not the advertised one.
    WrongCertificate,
    /// It claims to be this very cluster.
    OwnId,
    /// Another cluster has this ID.
    IdTaken,
    /// A cluster that we already trust has another certificate now.
    CertificateChanged,
}

impl Refusal {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::OffLink => "off_link",
            Self::Oversized => "oversized",
            Self::TooMany => "too_many",
            Self::InvalidName => "invalid_name",
            Self::InvalidHost => "invalid_host",
            Self::InvalidText => "invalid_text",
            Self::InvalidFingerprint => "invalid_fingerprint",
            Self::InvalidPort => "invalid_port",
            Self::InvalidTtl => "invalid_ttl",
            Self::Contradiction => "contradiction",
            Self::NoAddress => "no_address",
            Self::NotResolved => "not_resolved",
            Self::Unreachable => "unreachable",
            Self::NotIdentified => "not_identified",
            Self::Impostor => "impostor",
            Self::WrongCertificate => "wrong_certificate",
            Self::OwnId => "own_id",
            Self::IdTaken => "id_taken",
            Self::CertificateChanged => "certificate_changed",
        }
    }
}

/// A refusal with words for people. What the words quote from outside is cut and escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) why: Refusal,
    pub(crate) detail: String,
}

impl Refused {
    pub(crate) fn new(why: Refusal, detail: impl Into<String>) -> Self {
        Self { why, detail: detail.into() }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

/// A stranger's text, short and with nothing in it that a terminal would obey.
pub(crate) fn quote(text: &[u8]) -> String {
    const LONGEST: usize = 80;
    let text = String::from_utf8_lossy(text);
    let cut: String = text.chars().take(LONGEST).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}

/// What a TXT record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) id: Option<ClusterId>,
    pub(crate) name: Option<ClusterName>,
    pub(crate) fingerprint: Option<Fingerprint>,
}

impl Text {
    /// Reads the strings of a TXT record. Without any, as older peers have it, nothing is claimed.
    pub(crate) fn parse<T: AsRef<[u8]>>(texts: &[T]) -> Result<Self, Refused> {
        let bytes: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        if texts.len() > MAX_TEXTS || bytes > MAX_TEXT_BYTES {
            return Err(Refused::new(
                Refusal::Oversized,
                format!("its TXT record has {} texts of {bytes} bytes", texts.len()),
            ));
        }
        Ok(Self {
            id: value(texts, keys::ID)?.map(cluster_id).transpose()?,
            name: value(texts, keys::NAME)?.map(cluster_name).transpose()?,
            fingerprint: value(texts, keys::FINGERPRINT)?.map(fingerprint).transpose()?,
        })
    }
}

/// The value of the first text with this key (RFC 6763, 6.4: later ones are ignored, keys have no case).
fn value<'a, T: AsRef<[u8]>>(texts: &'a [T], key: &str) -> Result<Option<&'a str>, Refused> {
    let found = texts.iter().find_map(|text| {
        let text = text.as_ref();
        let (name, value) = text.split_at_checked(key.len())?;
        let value = value.strip_prefix(b"=")?;
        name.eq_ignore_ascii_case(key.as_bytes()).then_some(value)
    });
    let invalid = |bytes: &[u8]| {
        Refused::new(Refusal::InvalidText, format!("its TXT record has no text as {key}: {}", quote(bytes)))
    };
    found.map(|bytes| std::str::from_utf8(bytes).map_err(|_| invalid(bytes))).transpose()
}

/// A cluster ID.
pub(crate) fn cluster_id(text: &str) -> Result<ClusterId, Refused> {
    text.parse().map_err(|_| {
        Refused::new(Refusal::InvalidName, format!("{} is not a cluster ID", quote(text.as_bytes())))
    })
}

/// A cluster name.
pub(crate) fn cluster_name(text: &str) -> Result<ClusterName, Refused> {
    text.parse().map_err(|_| {
        Refused::new(Refusal::InvalidName, format!("{} is not a cluster name", quote(text.as_bytes())))
    })
}

fn fingerprint(text: &str) -> Result<Fingerprint, Refused> {
    text.parse().map_err(|_| {
        let detail = format!("{} is not the fingerprint of a certificate", quote(text.as_bytes()));
        Refused::new(Refusal::InvalidFingerprint, detail)
    })
}

/// A port that can be connected to.
pub(crate) fn port(port: u16) -> Result<u16, Refused> {
    if port == 0 { Err(Refused::new(Refusal::InvalidPort, "its port is 0")) } else { Ok(port) }
}

/// A lifetime that is not negative, cut to what is believed.
pub(crate) fn ttl(ttl: u32) -> Result<u32, Refused> {
    if ttl > LARGEST_TTL {
        return Err(Refused::new(Refusal::InvalidTtl, format!("its lifetime of {ttl} s is negative")));
    }
    Ok(ttl.min(MAX_TTL))
}

/// A host name as a URL may carry it, without the final dot.
pub(crate) fn host_name(name: &[u8]) -> Result<Arc<str>, Refused> {
    let refuse = || Refused::new(Refusal::InvalidHost, format!("{} is not a host name", quote(name)));
    let text = std::str::from_utf8(name).map_err(|_| refuse())?;
    let text = text.strip_suffix('.').unwrap_or(text);
    let legal = |label: &str| {
        let bytes = label.as_bytes();
        let alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        bytes.len() <= 63
            && alphanumeric(bytes.first())
            && alphanumeric(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    // Digits and dots alone would be read as an address.
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if text.len() > 253 || numeric || !text.split('.').all(legal) {
        return Err(refuse());
    }
    Ok(text.to_ascii_lowercase().into())
}

/// The addresses at which another cluster might be, each once.
pub(crate) fn addresses(found: impl IntoIterator<Item = IpAddr>) -> Result<Vec<IpAddr>, Refused> {
    let mut usable: Vec<IpAddr> = Vec::new();
    let mut last_unusable = None;
    for address in found {
        let address = address.to_canonical();
        if !is_usable(address) {
            last_unusable = Some(address);
        } else if !usable.contains(&address) && usable.len() < MAX_ADDRESSES {
            usable.push(address);
        }
    }
    if !usable.is_empty() {
        return Ok(usable);
    }
    Err(Refused::new(
        Refusal::NoAddress,
        match last_unusable {
            Some(address) => {
                format!(
                    "no URL can name its address {address}: it is not one by which others reach a cluster"
                )
            }
            None => "it has no address".to_owned(),
        },
    ))
}

/// Whether an address can be another cluster's. Link-local ones are reached only with the name of an interface, which a
/// URL does not carry, and include the metadata services of clouds.
pub(crate) fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            !(v4.is_unspecified()
                || v4.is_loopback()
                || v4.is_multicast()
                || v4.is_link_local()
                || v4 == Ipv4Addr::BROADCAST
                || v4.octets()[0] == 0)
        }
        IpAddr::V6(v6) => {
            !(v6 == Ipv6Addr::UNSPECIFIED
                || v6.is_loopback()
                || v6.is_multicast()
                || v6.is_unicast_link_local())
        }
    }
}
