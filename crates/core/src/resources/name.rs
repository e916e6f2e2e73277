//! Resource names, checked once where they enter.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::quantity::{Excerpt, Format, Granularity, Quantity};

const LONGEST_NAME: usize = 63;
const LONGEST_PREFIX: usize = 253;

const HUGE_PAGES: &str = "hugepages-";
const MEBIBYTE: u128 = 1 << 20;
/// Processors have pages of up to 16 GiB; a name that says more is no page size.
const LARGEST_PAGE: i64 = 1 << 34;

/// The name of a resource as Kubernetes allows it: `cpu`, `hugepages-2Mi`, `nvidia.com/gpu`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(Arc<str>);

/// A text that is not a resource name, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} is not a resource name: {reason}. Examples are cpu, memory, hugepages-2Mi or nvidia.com/gpu")]
pub struct InvalidResourceName {
    text: Excerpt,
    reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Reason {
    #[error("it has more than one '/'")]
    Slashes,
    #[error("the name is empty")]
    NameEmpty,
    #[error("the name is longer than {LONGEST_NAME} characters")]
    NameLong,
    #[error(
        "the name may have only letters, digits, '-', '_' and '.', the first and last being a letter or digit"
    )]
    NameCharacters,
    #[error("there is nothing before the '/'")]
    PrefixEmpty,
    #[error("what stands before the '/' is longer than {LONGEST_PREFIX} characters")]
    PrefixLong,
    #[error("what stands before the '/' must be a domain in lower case")]
    PrefixCharacters,
}

impl ResourceName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The step in which the resource can be shared: CPU in thousandths, everything else in whole units.
    pub fn granularity(&self) -> Granularity {
        match self.as_str() {
            "cpu" | "requests.cpu" | "limits.cpu" => Granularity::Milli,
            _ => Granularity::Whole,
        }
    }

    /// Whether the amount is a number of bytes: memory, storage, huge pages, and quotas of them.
    pub fn is_bytes(&self) -> bool {
        let name = self.as_str();
        let name = name.strip_prefix("requests.").or_else(|| name.strip_prefix("limits.")).unwrap_or(name);
        matches!(name, "memory" | "ephemeral-storage" | "storage") || name.starts_with(HUGE_PAGES)
    }

    /// The family of units in which amounts of the resource are commonly written: `4Gi` of memory, `500m` of CPU.
    pub fn format(&self) -> Format {
        if self.is_bytes() { Format::BinarySi } else { Format::DecimalSi }
    }

    /// The smallest portion that is worth sharing, in billionths of a unit: a millicore, a MiB of memory or
    /// storage, a page of huge pages, and one of everything else.
    pub(crate) fn portion(&self) -> u128 {
        const UNIT: u128 = 1_000_000_000;
        match self.as_str().strip_prefix(HUGE_PAGES) {
            Some(size) => UNIT * page_size(size),
            None if self.is_bytes() => UNIT * MEBIBYTE,
            None => self.granularity().nanos(),
        }
    }
}

/// Bytes in a page of `hugepages-<size>`; one where the name says nothing sensible.
fn page_size(size: &str) -> u128 {
    let Ok(size) = size.parse::<Quantity>() else { return 1 };
    let bytes = size.value();
    if (1..=LARGEST_PAGE).contains(&bytes) { bytes.unsigned_abs().into() } else { 1 }
}

impl FromStr for ResourceName {
    type Err = InvalidResourceName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match check(text) {
            Ok(()) => Ok(Self(text.into())),
            Err(reason) => Err(InvalidResourceName { text: Excerpt::of(text), reason }),
        }
    }
}

fn check(text: &str) -> Result<(), Reason> {
    match text.split_once('/') {
        None => check_name(text),
        Some((_, name)) if name.contains('/') => Err(Reason::Slashes),
        Some((prefix, name)) => check_prefix(prefix).and_then(|()| check_name(name)),
    }
}

fn check_name(name: &str) -> Result<(), Reason> {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match name.as_bytes() {
        [] => Err(Reason::NameEmpty),
        bytes if bytes.len() > LONGEST_NAME => Err(Reason::NameLong),
        bytes if is_word(bytes, inner) => Ok(()),
        _ => Err(Reason::NameCharacters),
    }
}

fn check_prefix(prefix: &str) -> Result<(), Reason> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match prefix.as_bytes() {
        [] => Err(Reason::PrefixEmpty),
        bytes if bytes.len() > LONGEST_PREFIX => Err(Reason::PrefixLong),
        bytes if bytes.split(|byte| *byte == b'.').all(|label| is_word(label, inner)) => Ok(()),
        _ => Err(Reason::PrefixCharacters),
    }
}

/// Whether all bytes are allowed and the outer ones are letters or digits.
fn is_word(bytes: &[u8], inner: impl Fn(u8) -> bool) -> bool {
    let outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    outer(bytes.first()) && outer(bytes.last()) && bytes.iter().all(|byte| inner(*byte))
}

impl Borrow<str> for ResourceName {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for ResourceName {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}
