//! Contracts on paper: drafted, signed, and checked by whoever has the paper and the keys.
//!
//! ```text
//! consumer: Read (an offer) + what is taken ──Draft──▶ Terms ──sign──▶ spec of a Contract
//! provider: Terms ──sign──▶ status.agreed
//! anybody:  Contract + two public keys ──verify──▶ what holds and what does not, line by line
//! ```
//!
//! The canonical form of terms and what is signed is told in [`liqo_core::contract`]. A signature is written `ed25519:`
//! and 128 small hex digits.

use liqo_core::contract::{Party, PublicKey, Terms};
use liqo_identity::Identity;
use liqo_identity::key;

mod draft;
mod keys;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod verify;

pub use draft::{Draft, new_contract_id};
pub use keys::{NoKey, key_from_spki, key_from_text};
pub use verify::{Check, Keys, Verification, verify};

const SIGNATURE_PREFIX: &str = "ed25519:";
/// Bytes of an Ed25519 signature.
const SIGNATURE_LENGTH: usize = 64;

/// This cluster as a party of a contract; `None` if its names are none, which an identity's are not.
pub fn party(identity: &Identity) -> Option<Party> {
    Some(Party {
        id: identity.id.as_str().parse().ok()?,
        name: identity.name.as_str().parse().ok()?,
        key: PublicKey::new(identity.public_key().to_bytes()),
    })
}

/// This cluster's signature under some terms.
pub fn sign(identity: &Identity, terms: &Terms) -> String {
    let signature = identity.sign(&terms.signing_input());
    let digits: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{SIGNATURE_PREFIX}{digits}")
}

/// Whether `signature` is that of `key` under these terms.
pub fn is_signed(key: &PublicKey, terms: &Terms, signature: &str) -> bool {
    let key = key::PublicKey::from_bytes(key.as_bytes());
    read_signature(signature).is_some_and(|signature| key.verify(&terms.signing_input(), &signature))
}

/// 64 bytes from `ed25519:` and 128 small hex digits; other spellings are refused, as one signature has one text.
fn read_signature(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(SIGNATURE_PREFIX)?.as_bytes();
    if digits.len() != 2 * SIGNATURE_LENGTH {
        return None;
    }
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    digits.chunks_exact(2).map(|pair| Some(value(pair[0])? << 4 | value(pair[1])?)).collect()
}

/// What the terms cost, for people: `EUR 0.112 per hour`; `None` if it is free.
pub fn price(terms: &Terms) -> Option<String> {
    let prices = terms.prices.as_ref()?;
    let total = prices.total(&terms.resources).ok()?;
    Some(format!("{} {total}", prices.currency()))
}
