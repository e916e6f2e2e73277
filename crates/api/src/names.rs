//! Names that both sides of a peering must form alike.
//!
//! A name that came from a peer is parsed into one of the types here before anything is built from it, so that
//! what reaches the API server is always a legal name and never longer than Kubernetes allows.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

/// Longest DNS label, hence the longest namespace name and the longest label value.
pub const MAX_LABEL: usize = 63;

/// Name that every [`NamespaceOffloading`](crate::NamespaceOffloading) has: a namespace has one or none.
pub const NAMESPACE_OFFLOADING: &str = "offloading";

/// Taint key that keeps pods off virtual nodes unless their namespace is offloaded.
pub const VIRTUAL_NODE_TAINT: &str = "virtual-node.liqo.io/not-allowed";

/// Taint key of a virtual node whose provider does not answer; pods tolerate it for as long as their namespace says.
pub const UNREACHABLE_TAINT: &str = "virtual-node.liqo.io/unreachable";

/// ClusterRole that a consumer is given in the namespaces that a provider hosts for it.
pub const REMOTE_TENANT_ROLE: &str = "liqo-remote-tenant";

/// RoleBinding that gives it.
pub const REMOTE_TENANT_BINDING: &str = "liqo-tenant";

/// ResourceQuota with what a contract allows, in each namespace that a provider hosts.
pub const CONTRACT_QUOTA: &str = "liqo-contract";

/// What the names of tenant namespaces begin with.
pub const TENANT_NAMESPACE_PREFIX: &str = "liqo-tenant-";
const VIRTUAL_NODE_PREFIX: &str = "liqo-";

/// Hex digits that tell two shortened names apart; 40 bits, as the names may be chosen by a stranger.
const SHORTENED_HASH_DIGITS: usize = 10;

/// Why a text is not a legal name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{value:?} is not a {what}: expected 1 to {MAX_LABEL} lower-case letters, digits or '-', \
     beginning and ending with a letter or digit"
)]
pub struct InvalidName {
    what: &'static str,
    value: String,
}

impl InvalidName {
    fn new(what: &'static str, value: &str) -> Self {
        // A stranger's text may be megabytes; the message needs only enough to recognise it.
        let value = value.chars().take(MAX_LABEL + 1).collect();
        Self { what, value }
    }
}

/// Declares a text that is a DNS label, parsed once.
macro_rules! label_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                if is_dns_label(text) { Ok(Self(text.to_owned())) } else { Err(InvalidName::new($what, text)) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    };
}

label_type!(
    /// What identifies a cluster for good; a UUID unless someone chose otherwise.
    ClusterId,
    "cluster ID"
);
label_type!(
    /// What people call a cluster. Two clusters may have the same name.
    ClusterName,
    "cluster name"
);
label_type!(
    /// The name of a namespace.
    NamespaceName,
    "namespace name"
);

impl ClusterId {
    /// The six hex digits that tell clusters of equal name apart.
    fn short_hash(&self) -> String {
        hex_of_sha256(&self.0, 6)
    }
}

/// A cluster's identity with both parts known to be well-formed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// What identifies the cluster for good.
    pub id: ClusterId,
    /// What people call it.
    pub name: ClusterName,
}

impl Identity {
    /// `<cluster name>-<6 hex digits>`: readable, and different for clusters of equal name.
    ///
    /// Fits an object's name, but with a very long cluster name not a label's value or a namespace's name.
    pub fn unique_name(&self) -> String {
        format!("{}-{}", self.name, self.id.short_hash())
    }

    /// `liqo-tenant-<unique name>`: where everything about the peering with this cluster lives.
    ///
    /// A very long cluster name is cut, never the hex digits. Look the namespace up by its label; this name is
    /// for creating it.
    pub fn tenant_namespace(&self) -> NamespaceName {
        let hash = self.id.short_hash();
        let room = MAX_LABEL - TENANT_NAMESPACE_PREFIX.len() - hash.len() - 1;
        NamespaceName(format!("{TENANT_NAMESPACE_PREFIX}{}-{hash}", cut(self.name.as_str(), room)))
    }

    /// `liqo-<cluster name>`: the node that stands for this cluster.
    ///
    /// Clusters of equal name ask for the same node; the second one gets [`Self::distinct_virtual_node`].
    pub fn virtual_node(&self) -> String {
        shorten(format!("{VIRTUAL_NODE_PREFIX}{}", self.name))
    }

    /// `liqo-<unique name>`: the node's name where [`Self::virtual_node`] is taken by another cluster.
    pub fn distinct_virtual_node(&self) -> String {
        let hash = self.id.short_hash();
        let room = MAX_LABEL - VIRTUAL_NODE_PREFIX.len() - hash.len() - 1;
        format!("{VIRTUAL_NODE_PREFIX}{}-{hash}", cut(self.name.as_str(), room))
    }

    /// `liqo-<cluster name>-<pool>`: the node that stands for one pool of this cluster's nodes.
    pub fn pool_node(&self, pool: &str) -> String {
        shorten(format!("{VIRTUAL_NODE_PREFIX}{}-{pool}", self.name))
    }

    /// `liqo-<unique name>-<pool>`: its name where [`Self::pool_node`] is taken by another one.
    pub fn distinct_pool_node(&self, pool: &str) -> String {
        shorten(format!("{VIRTUAL_NODE_PREFIX}{}-{pool}", self.unique_name()))
    }

    /// `<namespace>-<unique name>`: what this cluster's `namespace` is called at its peers under the mapping
    /// strategy `DefaultName`.
    pub fn default_remote_namespace(&self, namespace: &NamespaceName) -> NamespaceName {
        NamespaceName(shorten(format!("{namespace}-{}", self.unique_name())))
    }
}

/// Whether `text` is a DNS-1123 label.
pub(crate) fn is_dns_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let alphanumeric = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.len() <= MAX_LABEL
        && bytes.first().is_some_and(alphanumeric)
        && bytes.last().is_some_and(alphanumeric)
        && bytes.iter().all(|byte| alphanumeric(byte) || *byte == b'-')
}

/// Leaves `name` alone if it is a legal length, else replaces its end by a hash of the whole.
///
/// Cutting alone would give two long names with a common beginning the same result.
fn shorten(name: String) -> String {
    if name.len() <= MAX_LABEL {
        return name;
    }
    let hash = hex_of_sha256(&name, SHORTENED_HASH_DIGITS);
    format!("{}-{hash}", cut(&name, MAX_LABEL - hash.len() - 1))
}

/// The first `length` bytes of `name`, which is ASCII, without a dangling '-'.
fn cut(name: &str, length: usize) -> &str {
    name.get(..length).unwrap_or(name).trim_end_matches('-')
}

fn hex_of_sha256(text: &str, digits: usize) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.truncate(digits);
    hex
}

#[cfg(test)]
mod tests;
