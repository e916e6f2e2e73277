//! Tokens: what a cluster says at its first call to show that someone wanted it to come.
//!
//! There are two sorts. The cluster's **own** token is one for all, is printed by `liqoctl generate-add-command`, and must
//! therefore be kept as it is. A **peer token** is for one peer: the first that comes with it, or the one it was made for.
//! It may expire and be revoked, and only a salted hash of it is kept. A token is for coming in; who is in proves itself by
//! its key and stays when its token expires. Revoking the token puts out whoever came in by it.
//!
//! Nothing here prints a token except [`Token::reveal`].

use std::collections::BTreeMap;
use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use jiff::Timestamp;
use liqo_api::names::ClusterId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

mod keep;
mod record;
#[cfg(test)]
mod tests;

pub use keep::{NewToken, TokenError, create, keep_remote, list, own, put_out, revoke, rotate_own};
pub(crate) use record::{
    DENIED_TOKEN_KEY, denied_config_map, denied_name, hex, own_secret, secret_name, text_of,
};
pub use record::{Record, TokenState};

/// Random bytes of the cluster's own token; as many as Liqo's has.
const OWN_BYTES: usize = 64;
/// Random bytes of a peer token.
const PEER_BYTES: usize = 32;
/// Random bytes of a peer token's ID. It names the token in lists and is no secret.
const ID_BYTES: usize = 4;
/// Random bytes that are hashed with a token, so that equal tokens have different hashes.
const SALT_BYTES: usize = 16;

/// How the cluster's own token is called where tokens have IDs.
pub(crate) const OWN: &str = "own";
/// How it is called there that somebody came without a token, as none was asked for.
pub(crate) const OPEN: &str = "open";

/// A token. It is wiped from memory when it is dropped, and never printed.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// A token that someone typed or that was kept. Blanks around it are not part of it.
    pub fn new(text: &str) -> Self {
        Self(Zeroizing::new(text.trim().to_owned()))
    }

    /// The token itself, to be sent or to be shown to the one person who asked for it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// A new token for all peers.
    pub(crate) fn new_own() -> Result<Self, NoRandomness> {
        Ok(Self(Zeroizing::new(hex(&*random::<OWN_BYTES>()?))))
    }

    /// A new token for one peer; its ID stands in front of it.
    fn new_for_peer() -> Result<(String, Self), NoRandomness> {
        let id = hex(&*random::<ID_BYTES>()?);
        let text = format!("{id}.{}", hex(&*random::<PEER_BYTES>()?));
        Ok((id, Self(Zeroizing::new(text))))
    }

    /// The ID in front of a peer token.
    fn id(&self) -> Option<&str> {
        self.0.split_once('.').map(|(id, _)| id)
    }

    /// The ID in front of it, if it looks like a peer token of ours.
    pub(crate) fn peer_token_id(&self) -> Option<&str> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        self.id().filter(|id| id.len() == 2 * ID_BYTES && id.bytes().all(is_hex))
    }

    /// A short text that is equal for equal tokens and tells nothing else.
    pub(crate) fn digest(&self) -> String {
        hex(&self.hash(b"liqo.io/token-digest/v1"))
    }

    fn hash(&self, salt: &[u8]) -> [u8; 32] {
        Sha256::new().chain_update(salt).chain_update(self.0.as_bytes()).finalize().into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "Token(none)" } else { "Token(…)" })
    }
}

/// The operating system gave no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gives no random numbers")]
pub struct NoRandomness;

fn random<const N: usize>() -> Result<Zeroizing<[u8; N]>, NoRandomness> {
    let mut bytes = Zeroizing::new([0; N]);
    aws_lc_rs::rand::fill(&mut *bytes).map_err(|_| NoRandomness)?;
    Ok(bytes)
}

/// By what a peer came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdmittedBy {
    /// The cluster's own token.
    Own,
    /// The peer token with this ID.
    Token(String),
    /// Nothing: no token was asked for.
    Open,
}

impl AdmittedBy {
    /// As the tenant namespace says it.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Own => OWN,
            Self::Token(id) => id,
            Self::Open => OPEN,
        }
    }
}

impl From<&str> for AdmittedBy {
    fn from(text: &str) -> Self {
        match text {
            OWN => Self::Own,
            OPEN => Self::Open,
            id => Self::Token(id.to_owned()),
        }
    }
}

/// All tokens that peers may come with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Book {
    pub(crate) own: Option<Token>,
    pub(crate) peers: BTreeMap<String, Record>,
}

impl Book {
    /// Whether `token` lets `caller` in now. Why not, nobody is told: that would help only those who guess.
    pub(crate) fn admits(&self, token: &Token, caller: &ClusterId, now: Timestamp) -> Option<AdmittedBy> {
        if token.is_empty() {
            return None;
        }
        if self.own.as_ref().is_some_and(|own| !own.is_empty() && same(&own.hash(&[]), &token.hash(&[]))) {
            return Some(AdmittedBy::Own);
        }
        let record = self.peers.get(token.id()?)?;
        // Compared in any case, so that time tells nothing about what is wrong.
        let right = same(&record.hash, &token.hash(&record.salt));
        let usable = record.state(now) != TokenState::Revoked
            && record.state(now) != TokenState::Expired
            && record.is_for(caller);
        (right && usable).then(|| AdmittedBy::Token(record.id.clone()))
    }

    /// Whether this peer was put out by its token, and not let in by another one since.
    pub(crate) fn has_put_out(&self, peer: &ClusterId) -> bool {
        let mut used = self.peers.values().filter(|record| record.used_by.as_ref() == Some(peer)).peekable();
        used.peek().is_some() && used.all(|record| record.revoked.is_some())
    }

    /// Whether the token with this ID was revoked.
    pub(crate) fn is_revoked(&self, id: &str) -> bool {
        self.peers.get(id).is_some_and(|record| record.revoked.is_some())
    }
}

/// Takes as long wherever the two differ.
fn same(one: &[u8], other: &[u8]) -> bool {
    verify_slices_are_equal(one, other).is_ok()
}

/// A token for one peer and what is kept of it.
#[cfg(test)]
pub(crate) fn testing_record(now: Timestamp) -> (Record, Token) {
    Record::make(&NewToken::default(), now).unwrap()
}
