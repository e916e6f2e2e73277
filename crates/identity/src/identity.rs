//! Who the cluster is, and the key that proves it.

use std::fmt;

use liqo_api::ClusterIdentity;
use liqo_api::names::{ClusterId, ClusterName};

use crate::key::{KeyError, PublicKey, SigningKey};

#[cfg(test)]
mod tests;

/// Digits of the ID in a name that nobody chose.
const NAME_DIGITS: usize = 6;

/// What the flags ask for; nothing means "choose yourself".
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The cluster's ID.
    pub id: Option<ClusterId>,
    /// The cluster's name.
    pub name: Option<ClusterName>,
}

/// A cluster's identity with the key that proves it.
pub struct Identity {
    /// What identifies the cluster for good.
    pub id: ClusterId,
    /// What people call it.
    pub name: ClusterName,
    /// With this the cluster signs.
    pub key: SigningKey,
}

impl Identity {
    /// A new identity: as wanted, and where nothing is wanted, a random UUID and a name made from the ID.
    pub fn generate(wanted: &Wanted) -> Result<Self, KeyError> {
        let id = match &wanted.id {
            Some(id) => id.clone(),
            // A UUID is a legal ID; that it parses is tested.
            None => random_uuid()?.parse().map_err(|_| KeyError::NotMade)?,
        };
        let name = match &wanted.name {
            Some(name) => name.clone(),
            None => name_for(&id).parse().map_err(|_| KeyError::NotMade)?,
        };
        Ok(Self { id, name, key: SigningKey::generate()? })
    }

    /// Signs a message with the cluster's key.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.key.sign(message)
    }

    /// The key by which others recognise what the cluster signed.
    pub fn public_key(&self) -> PublicKey {
        self.key.public_key()
    }

    /// ID and name as objects carry them.
    pub fn cluster_identity(&self) -> ClusterIdentity {
        ClusterIdentity {
            cluster_id: self.id.as_str().to_owned(),
            cluster_name: self.name.as_str().to_owned(),
        }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fingerprint = self.public_key().fingerprint();
        f.debug_struct("Identity")
            .field("id", &self.id.as_str())
            .field("name", &self.name.as_str())
            .field("fingerprint", &fingerprint)
            .finish_non_exhaustive()
    }
}

/// A name that can be read aloud, and that most likely no other cluster has.
fn name_for(id: &ClusterId) -> String {
    let digits: String = id.as_str().chars().filter(char::is_ascii_alphanumeric).take(NAME_DIGITS).collect();
    format!("cluster-{digits}")
}

/// A random UUID (version 4 of RFC 9562).
fn random_uuid() -> Result<String, KeyError> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| KeyError::NotMade)?;
    let mut number = u128::from_be_bytes(bytes);
    number &= !(0xf << 76) & !(0b11 << 62);
    number |= (4 << 76) | (0b10 << 62);
    let hex = format!("{number:032x}");
    let parts = [(0, 8), (8, 12), (12, 16), (16, 20), (20, 32)];
    Ok(parts.map(|(from, to)| hex.get(from..to).unwrap_or_default()).join("-"))
}
