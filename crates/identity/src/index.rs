//! What is known: the three objects that an identity consists of, trimmed to what decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use liqo_api::cluster_config::{
    CLUSTER_CONFIG, CLUSTER_ID_CONFIG_MAP, CLUSTER_ID_KEY, CLUSTER_NAME_KEY, IDENTITY_SECRET,
    KEY_FINGERPRINT, identity_secret,
};
use liqo_api::{ClusterConfig, ClusterConfigStatus, ClusterIdentity};
use liqo_kit::watch::{self, Meta, Wire};
use liqo_kit::{Index as Indexed, Key};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use zeroize::Zeroizing;

use crate::identity::Identity;
use crate::key::{PublicKey, SigningKey};
use crate::objects;

#[cfg(test)]
mod tests;

/// How long one watch may be behind another before what it has not told counts as gone.
const LATE: Duration = Duration::from_secs(2);

/// What is known of one object.
#[derive(Debug)]
pub(crate) struct Seen<T> {
    /// The object, if there is one.
    pub(crate) object: Option<T>,
    /// Whether a watch has told all there is.
    pub(crate) synced: bool,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self { object: None, synced: false }
    }
}

/// All that is known.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) config_map: Seen<Published>,
    pub(crate) secret: Seen<Kept>,
    pub(crate) cluster_config: Seen<Told>,
    /// Names of the events that were made.
    pub(crate) reported: BTreeSet<String>,
    /// Objects that could not be written, and why; until they are.
    pub(crate) failures: BTreeMap<String, String>,
    /// Since when the ConfigMap is seen without the Secret.
    pub(crate) keyless_since: Option<Timestamp>,
}

impl Index {
    fn note_keyless(&mut self) {
        let keyless = self.secret.synced && self.secret.object.is_none() && self.config_map.object.is_some();
        self.keyless_since = keyless.then(|| self.keyless_since.unwrap_or_else(Timestamp::now));
    }

    /// How much longer a missing Secret is only late. It is made before the ConfigMap, but two watches tell in any order.
    pub(crate) fn late(&self, now: Timestamp) -> Option<Duration> {
        let waited = Duration::try_from(now.duration_since(self.keyless_since?)).ok()?;
        LATE.checked_sub(waited).filter(|left| !left.is_zero())
    }
}

/// The ConfigMap that everyone may read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Published {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    /// ID and name as they stand there, legal or not.
    pub(crate) identity: Option<ClusterIdentity>,
    /// The fingerprint of the key that belongs to it, where it is noted.
    pub(crate) fingerprint: Option<String>,
    /// Whether the labels are there by which others find it.
    pub(crate) labelled: bool,
}

impl Published {
    pub(crate) fn read(object: &ConfigMap) -> Self {
        let data = |key: &str| object.data.as_ref()?.get(key).filter(|value| !value.is_empty()).cloned();
        let identity = data(CLUSTER_ID_KEY).zip(data(CLUSTER_NAME_KEY));
        Self {
            uid: object.uid().unwrap_or_default(),
            resource_version: object.resource_version().unwrap_or_default(),
            identity: identity.map(|(cluster_id, cluster_name)| ClusterIdentity { cluster_id, cluster_name }),
            fingerprint: object.annotations().get(KEY_FINGERPRINT).cloned(),
            labelled: objects::config_map_labels()
                .iter()
                .all(|label| object.labels().get(label.0) == Some(label.1)),
        }
    }
}

/// The Secret: a whole identity, or what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) uid: String,
    pub(crate) identity: Result<Arc<Identity>, String>,
}

/// The Secret as it comes over the wire; what else is in it is not read.
#[derive(Deserialize)]
pub(crate) struct SecretOnWire {
    metadata: Meta,
    #[serde(default)]
    data: BTreeMap<String, Value>,
}

/// A value of a Secret, wiped when it is dropped.
struct Value(Zeroizing<Vec<u8>>);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The error of the decoder might quote what it could not decode.
        let bytes =
            ByteString::deserialize(deserializer).map_err(|_| D::Error::custom("a value is no base64"))?;
        Ok(Self(Zeroizing::new(bytes.0)))
    }
}

impl Wire for SecretOnWire {
    fn identity(&self) -> watch::Identity<'_> {
        self.metadata.identity()
    }
}

impl Kept {
    /// Parses once, when the object comes.
    pub(crate) fn read(object: &SecretOnWire) -> Self {
        Self { uid: object.metadata.uid.to_string(), identity: parse(&object.data).map(Arc::new) }
    }
}

fn parse(data: &BTreeMap<String, Value>) -> Result<Identity, String> {
    let value = |key: &str| match data.get(key) {
        Some(value) => Ok(value.0.as_slice()),
        None => Err(format!("its key {key} is missing")),
    };
    let text = |key: &str| -> Result<&str, String> {
        std::str::from_utf8(value(key)?).map_err(|_| format!("its key {key} is no text"))
    };
    let private = SigningKey::from_pem(value(identity_secret::PRIVATE_KEY)?)
        .map_err(|error| format!("its key {} cannot be used: {error}", identity_secret::PRIVATE_KEY))?;
    let public = PublicKey::from_pem(value(identity_secret::PUBLIC_KEY)?)
        .map_err(|error| format!("its key {} cannot be used: {error}", identity_secret::PUBLIC_KEY))?;
    if public != private.public_key() {
        return Err("its private-key and public-key do not belong together".to_owned());
    }
    let id =
        text(identity_secret::CLUSTER_ID)?.parse().map_err(|error| format!("in its cluster-id, {error}"))?;
    let name = text(identity_secret::CLUSTER_NAME)?
        .parse()
        .map_err(|error| format!("in its cluster-name, {error}"))?;
    Ok(Identity { id, name, key: private })
}

/// The ClusterConfig.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) resource_version: String,
    pub(crate) generation: Option<i64>,
    pub(crate) status: ClusterConfigStatus,
}

impl Told {
    pub(crate) fn read(object: ClusterConfig) -> Self {
        Self {
            resource_version: object.resource_version().unwrap_or_default(),
            generation: object.metadata.generation,
            status: object.status.unwrap_or_default(),
        }
    }
}

/// Each kind has one object that counts, whatever else a server may send.
macro_rules! one_object {
    ($kind:ty, $field:ident, $name:expr) => {
        impl Indexed<$kind> for Index {
            fn apply(&mut self, key: &Key, object: $kind) {
                if key.name() == $name {
                    self.$field.object = Some(object);
                    self.note_keyless();
                }
            }

            fn delete(&mut self, key: &Key) {
                if key.name() == $name {
                    self.$field.object = None;
                    self.note_keyless();
                }
            }

            fn synced(&mut self) {
                self.$field.synced = true;
                self.note_keyless();
            }
        }
    };
}

one_object!(Published, config_map, CLUSTER_ID_CONFIG_MAP);
one_object!(Kept, secret, IDENTITY_SECRET);
one_object!(Told, cluster_config, CLUSTER_CONFIG);
