//! How tokens are kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::credentials::{OWN_TOKEN_SECRET, TOKEN_KEY};
use liqo_api::labels;
use liqo_api::names::ClusterId;

use super::{NewToken, NoRandomness, SALT_BYTES, Token, random};
use crate::objects::labels_of;

/// Type of the Secrets with the hash of a token.
const PEER_TOKEN_TYPE: &str = "liqo.io/token";

/// What may be said about a token, in bytes; it is for one line of a list.
const MAX_NOTE: usize = 256;

/// Key of the ConfigMap that says that a peer was put out: the digest of the token that it came with.
pub(crate) const DENIED_TOKEN_KEY: &str = "token-digest";

mod key {
    pub(super) const HASH: &str = "hash";
    pub(super) const SALT: &str = "salt";
    pub(super) const CREATED: &str = "created";
    pub(super) const EXPIRES: &str = "expires";
    pub(super) const NOTE: &str = "note";
    pub(super) const PEER: &str = "peer";
    pub(super) const USED_BY: &str = "usedBy";
    pub(super) const USED_AT: &str = "usedAt";
    pub(super) const REVOKED: &str = "revoked";
}

/// What is kept of a peer token: everything but the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    /// By this it is revoked.
    pub id: String,
    /// When it was made.
    pub created: Timestamp,
    /// From when on nobody comes in by it; never, if not said.
    pub expires: Option<Timestamp>,
    /// What it is for, in the words of whoever made it.
    pub note: String,
    /// The only peer that may use it, if someone said so.
    pub peer: Option<ClusterId>,
    /// The peer that came in by it; no other may.
    pub used_by: Option<ClusterId>,
    /// When it came.
    pub used_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
    pub(super) hash: Vec<u8>,
    pub(super) salt: Vec<u8>,
    pub(crate) resource_version: String,
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Whether a token can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenState {
    /// Nobody came with it yet.
    Unused,
    /// A peer came in by it.
    Used,
    /// Nobody comes in by it any more.
    Expired,
    /// Neither does anybody, and whoever came in by it is out.
    Revoked,
}

impl TokenState {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unused => "Unused",
            Self::Used => "Used",
            Self::Expired => "Expired",
            Self::Revoked => "Revoked",
        }
    }
}

impl Record {
    /// Whether it can be used at `now`.
    pub fn state(&self, now: Timestamp) -> TokenState {
        if self.revoked.is_some() {
            TokenState::Revoked
        } else if self.expires.is_some_and(|expires| expires <= now) {
            TokenState::Expired
        } else if self.used_by.is_some() {
            TokenState::Used
        } else {
            TokenState::Unused
        }
    }

    /// Whether no other peer than `caller` may use it.
    pub(crate) fn is_for(&self, caller: &ClusterId) -> bool {
        [&self.peer, &self.used_by].into_iter().flatten().all(|peer| peer == caller)
    }

    /// A new token and what is kept of it.
    pub(super) fn make(wanted: &NewToken, now: Timestamp) -> Result<(Self, Token), NoRandomness> {
        let (id, token) = Token::new_for_peer()?;
        let salt = random::<SALT_BYTES>()?.to_vec();
        let mut note: String = wanted.note.chars().filter(|character| !character.is_control()).collect();
        note.truncate(note.floor_char_boundary(MAX_NOTE));
        let record = Self {
            id,
            created: now,
            expires: wanted.lifetime.and_then(|lifetime| now.checked_add(lifetime).ok()),
            note,
            peer: wanted.peer.clone(),
            used_by: None,
            used_at: None,
            revoked: None,
            hash: token.hash(&salt).to_vec(),
            salt,
            resource_version: String::new(),
        };
        Ok((record, token))
    }

    /// The Secret that keeps it.
    pub(super) fn secret(&self, namespace: &str) -> Secret {
        let mut data = BTreeMap::from([
            (key::HASH, hex(&self.hash)),
            (key::SALT, hex(&self.salt)),
            (key::CREATED, self.created.to_string()),
        ]);
        let times =
            [(key::EXPIRES, self.expires), (key::USED_AT, self.used_at), (key::REVOKED, self.revoked)];
        data.extend(times.into_iter().filter_map(|(key, time)| Some((key, time?.to_string()))));
        let peers = [(key::PEER, &self.peer), (key::USED_BY, &self.used_by)];
        data.extend(peers.into_iter().filter_map(|(key, peer)| Some((key, peer.as_ref()?.to_string()))));
        if !self.note.is_empty() {
            data.insert(key::NOTE, self.note.clone());
        }
        let mut labels = labels_of("liqo");
        labels.insert(labels::PEER_TOKEN.to_owned(), labels::TRUE.to_owned());
        Secret {
            metadata: ObjectMeta {
                name: Some(secret_name(&self.id)),
                namespace: Some(namespace.to_owned()),
                labels: Some(labels),
                ..ObjectMeta::default()
            },
            type_: Some(PEER_TOKEN_TYPE.to_owned()),
            data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), bytes(&value))).collect()),
            ..Secret::default()
        }
    }

    /// Reads one; `None` if it is no token or makes no sense.
    pub(crate) fn read(secret: &Secret) -> Option<Self> {
        if secret.labels().get(labels::PEER_TOKEN).map(String::as_str) != Some(labels::TRUE) {
            return None;
        }
        let text = |key: &str| text_of(secret, key);
        // A time that cannot be read must not turn into "never".
        let time = |key: &str| text(key).map(|text| text.parse::<Timestamp>()).transpose();
        let peer = |key: &str| text(key).map(|text| text.parse::<ClusterId>()).transpose();
        Some(Self {
            id: secret.metadata.name.as_deref()?.strip_prefix(NAME_PREFIX)?.to_owned(),
            created: time(key::CREATED).ok()??,
            expires: time(key::EXPIRES).ok()?,
            note: text(key::NOTE).unwrap_or_default(),
            peer: peer(key::PEER).ok()?,
            used_by: peer(key::USED_BY).ok()?,
            used_at: time(key::USED_AT).ok()?,
            revoked: time(key::REVOKED).ok()?,
            hash: from_hex(&text(key::HASH)?)?,
            salt: from_hex(&text(key::SALT)?)?,
            resource_version: secret.resource_version().unwrap_or_default(),
        })
    }

    /// What a merge must say for the token to be `caller`'s.
    pub(crate) fn use_patch(caller: &ClusterId, now: Timestamp) -> serde_json::Value {
        serde_json::json!({ "data": {
            key::USED_BY: bytes(caller.as_str()),
            key::USED_AT: bytes(&now.to_string()),
        } })
    }

    /// What a merge must say for the token to be revoked.
    pub(crate) fn revoke_patch(now: Timestamp) -> serde_json::Value {
        serde_json::json!({ "data": { key::REVOKED: bytes(&now.to_string()) } })
    }
}

const NAME_PREFIX: &str = "liqo-token-";

/// The name of the Secret that keeps the token with this ID.
pub(crate) fn secret_name(id: &str) -> String {
    format!("{NAME_PREFIX}{id}")
}

/// The Secret with the cluster's own token.
pub(crate) fn own_secret(token: &Token, namespace: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(OWN_TOKEN_SECRET.to_owned()),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels_of("liqo")),
            ..ObjectMeta::default()
        },
        data: Some([(TOKEN_KEY.to_owned(), bytes(token.reveal()))].into()),
        ..Secret::default()
    }
}

/// The ConfigMap that says that a peer which came by the cluster's own token is not to come by it again.
pub(crate) fn denied_config_map(peer: &ClusterId, digest: &str, namespace: &str) -> ConfigMap {
    let mut labels = labels_of("liqo");
    labels.insert(labels::DENIED_PEER.to_owned(), labels::TRUE.to_owned());
    labels.insert(labels::CLUSTER_ID.to_owned(), peer.to_string());
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(denied_name(peer)),
            namespace: Some(namespace.to_owned()),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        data: Some([(DENIED_TOKEN_KEY.to_owned(), digest.to_owned())].into()),
        ..ConfigMap::default()
    }
}

pub(crate) fn denied_name(peer: &ClusterId) -> String {
    format!("liqo-denied-{peer}")
}

/// One value of a Secret as text, if it is there and is one.
pub(crate) fn text_of(secret: &Secret, key: &str) -> Option<String> {
    let bytes = secret.data.as_ref()?.get(key)?;
    String::from_utf8(bytes.0.clone()).ok()
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}
