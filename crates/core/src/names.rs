//! Names of clusters and contracts, checked once where they enter.
//!
//! All of them become names or label values of Kubernetes objects somewhere, so all of them are DNS labels.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::quantity::Excerpt;

#[cfg(test)]
mod tests;

/// Longest DNS label, hence the longest label value and namespace name.
const LONGEST: usize = 63;

/// A text that is not such a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text} is not a {what}: expected 1 to {LONGEST} lower-case letters, digits or '-', beginning and ending with \
     a letter or digit"
)]
pub struct InvalidName {
    what: &'static str,
    text: Excerpt,
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, InvalidName> {
                if is_dns_label(text) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidName { what: $what, text: Excerpt::of(text) })
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidName;

            fn try_from(text: String) -> Result<Self, InvalidName> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_owned()
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.pad(self.as_str())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(self.as_str(), formatter)
            }
        }
    };
}

name_type!(
    /// What identifies a cluster for good; a UUID unless someone chose otherwise. Cheap to clone.
    ClusterId,
    "cluster ID"
);
name_type!(
    /// What people call a cluster. Two clusters may have the same name. Cheap to clone.
    ClusterName,
    "cluster name"
);
name_type!(
    /// What identifies a contract, through all its amendments, on both sides. Cheap to clone.
    ContractId,
    "contract ID"
);
name_type!(
    /// What a provider calls a part of its nodes that it lends apart from the others. Cheap to clone.
    PoolName,
    "pool name"
);

fn is_dns_label(text: &str) -> bool {
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.len() <= LONGEST
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}
